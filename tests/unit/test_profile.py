"""Profiles: what a file may say, what stands in its place when it does not, what is refused."""

from __future__ import annotations

import contextlib
import copy
import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lengths import examples
from pgheadroom.errors import InputError
from pgheadroom.profile import Kind, RowRange, parse_profile, read_profile, to_json
from pgheadroom.profile.lines import line_of
from pgheadroom.profile.reading import load_text

_ROOT = Path(__file__).parents[2]
EXAMPLES = sorted(
    path
    for folder in ("examples", "experiments/accuracy", "experiments/clients")
    for path in (_ROOT / folder).glob("*.toml")
)
EVERY_FIELD = next(path for path in EXAMPLES if path.name == "every-field.toml")
ACCOUNTS = next(path for path in EXAMPLES if path.name == "accounts.toml")

Json = Any


def accounts() -> Json:
    return tomllib.loads(ACCOUNTS.read_text())


def every_field() -> Json:
    return tomllib.loads(EVERY_FIELD.read_text())


def put(data: Json, path: list[str | int], value: Json) -> Json:
    """The data with the value at the path; ... removes it."""
    data = copy.deepcopy(data)
    inner = data
    for step in path[:-1]:
        inner = inner[step]
    if value is ...:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return data


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_can_be_read_and_saved(path: Path, tmp_path: Path) -> None:
    """What ships must work, and a saved profile is the profile: stages start from files."""
    profile = read_profile(path)
    saved = tmp_path / "profile.json"
    saved.write_text(json.dumps(to_json(profile)))
    assert read_profile(saved) == profile


def test_every_field_arrives() -> None:
    """The contract's second example uses every field; each has to end where it belongs."""
    profile = read_profile(EVERY_FIELD)
    jobs = profile.table("jobs")
    owner, payload = jobs.column("owner"), jobs.column("payload")
    assert (owner.values.kind, owner.values.ndistinct) == ("random", 5000)
    assert payload.width is not None
    assert (payload.width.min_bytes, payload.width.max_bytes) == (50, 300)
    assert payload.null_frac == 0.1
    assert jobs.key == jobs.column("id")
    partial = jobs.indexes[1]
    assert (partial.include, partial.where, partial.fillfactor) == (("state",), "state = 0", 90)
    assert jobs.indexes[2].expressions == ("lower(payload)",)
    insert, update, delete = profile.workload.operations
    assert (insert.rows_per_statement, insert.abort_frac, insert.pick) == (10, 0.01, None)
    state, text = update.sets
    assert (state.changed_frac, state.draws) == (1.0, False)
    assert (text.changed_frac, text.grows_min_bytes, text.grows_max_bytes) == (0.1, 1, 8)
    assert update.pick is not None
    assert (update.pick.theta, update.pick.scatter) == (1.1, True)
    assert profile.workload.transactions() == ((insert,), (update, delete))
    assert profile.workload.run.snapshots[0].length_frac == 0.5
    assert profile.server.settings == {"autovacuum_vacuum_scale_factor": "0.05"}
    assert profile.server.shared_buffers_bytes == 1024**3


def test_a_candidate_is_a_version() -> None:
    """Its major decides what the defaults are."""
    for version, has_checksums in (("17.11", False), ("18", True), ("19rc1", True)):
        profile = parse_profile(put(accounts(), ["server"], {"version": version}))
        assert profile.assumed["server.data_checksums"] == has_checksums
        assert profile.server.version == version


def test_defaults_are_the_contracts_and_are_noted() -> None:
    """No silent defaults: what the file leaves open stands under `assumed`."""
    data = put(accounts(), ["table", 0, "fillfactor"], ...)
    data = put(data, ["server"], {})
    data["table"][0]["indexes"].append({"name": "by_bid", "columns": ["bid"]})
    profile = parse_profile(data)
    table = profile.tables[0]
    assert table.fillfactor == 100
    kinds = [(c.name, c.values.kind, c.values.ndistinct) for c in table.columns]
    assert kinds == [
        ("aid", "serial", None),
        ("bid", "random", 1_000_000),
        ("abalance", "constant", None),
        ("filler", "constant", None),
    ]
    assert profile.assumed["table[0].fillfactor"] == 100
    assert profile.assumed["server.shared_buffers"] == "1GB"
    assert profile.assumed["server.autovacuum"] is False
    assert profile.assumed["server.data_checksums"] is True
    assert "run.clients" not in profile.assumed, "the file says it"


@pytest.mark.parametrize("spelled", ["bpchar(84)", "char(84)", "character(84)"])
def test_spellings_of_one_type_are_one(spelled: str) -> None:
    """`char(n)` and its other names are one type, whose letter is padded to n."""
    profile = parse_profile(put(accounts(), ["table", 0, "columns", 3, "type"], spelled))
    column = profile.tables[0].column("filler")
    assert (column.type, column.kind, column.type_length) == ("bpchar(84)", Kind.PADDED, 84)


REFUSED: list[tuple[list[str | int], Json, str]] = [
    (["schema_version"], 2, "schema_version"),
    (["schema_version"], ..., "schema_version"),
    (["server", "version"], "14", "server.version"),
    (["server", "version"], "18.x", "server.version"),
    (["server", "shared_bufers"], "1GB", "did you mean shared_buffers"),
    (["server", "shared_buffers"], "1 lot", "server.shared_buffers"),
    (["server", "autovacuum"], "on", "true or false"),
    (["server", "settings"], {"fsync": "on"}, "server.settings.fsync"),
    (["server", "settings"], {"full_page_writes": "on"}, "server.full_page_writes"),
    (["server", "settings"], {"archive_command": "rm -rf /"}, "server.settings.archive_command"),
    (["server", "settings"], {"shared_preload_libraries": "x"}, "shared_preload_libraries"),
    (["table"], [], "table"),
    (["table", 0, "rows"], -1, "table[0].rows"),
    (["table", 0, "rows"], True, "table[0].rows"),
    (["table", 0, "rows"], 10**12, "values that fit int4"),
    (["table", 0, "fillfactor"], 9, "10 to 100"),
    (["table", 0, "fillfactor"], 101, "10 to 100"),
    (["table", 0, "name"], "a:b", "table[0].name"),
    (["table", 0, "columns", 1, "name"], "aid", "table[0].columns[1].name"),
    (["table", 0, "columns", 1, "name"], "ctid", "table[0].columns[1].name"),
    (["table", 0, "columns", 1, "type"], "int5", "table[0].columns[1].type"),
    (["table", 0, "columns", 1, "type"], "regclass", "table[0].columns[1].type"),
    (["table", 0, "columns", 1, "type"], "text", "table[0].columns[1].width"),
    (["table", 0, "columns", 1, "width"], {"min_bytes": 1, "max_bytes": 2}, "width"),
    (["table", 0, "columns", 1, "values"], {"kind": "random", "ndistinct": 2**40}, "fit int4"),
    (["table", 0, "columns", 0, "values"], {"kind": "random"}, "serial"),
    (["table", 0, "columns", 0, "type"], "interval", "the key"),
    (["table", 0, "columns", 0, "null_frac"], 0.5, "the key"),
    (["table", 0, "columns", 3, "type"], "bpchar(84)[]", "type"),
    (["table", 0, "indexes", 0, "columns"], ["uid"], "a column of this table"),
    (["table", 0, "indexes", 0, "columns"], [], "columns or expressions"),
    (["table", 0, "indexes", 0, "method"], "rum", "btree, brin"),
    (["table", 0, "indexes", 0, "unique"], False, "no unique index"),
    (["table", 0, "indexes", 0, "name"], "accounts", "no other table or index"),
    (["table", 0, "indexes", 0, "fillfactor"], 200, "10 to 100"),
    (["table", 0, "reloptions"], {"fillfactor": "90"}, "a field of its own"),
    (["operation", 0, "table"], "acounts", "one of accounts"),
    (["operation", 0, "kind"], "merge", "one of insert"),
    (["operation", 0, "kind"], "delete", "sets no column"),
    (["operation", 0, "weight"], 0, "operation[0].weight"),
    (["operation", 0, "weight"], 1.5, "operation[0].weight"),
    (["operation", 0, "rows_per_statement"], 0, "from 1 to 10000"),
    (["operation", 0, "rows_per_statement"], True, "from 1 to 10000"),
    (["operation", 0, "rows_per_statement"], "5-15", "or { min, max } of such"),
    (["operation", 0, "rows_per_statement"], {"min": 5}, "rows_per_statement.max: missing"),
    (["operation", 0, "rows_per_statement"], {"min": 0, "max": 5}, "rows_per_statement.min"),
    (["operation", 0, "rows_per_statement"], {"min": 5, "max": 4}, "from 5 to 10000"),
    (["operation", 0, "rows_per_statement"], {"min": 1, "mean": 4, "max": 9}, "unknown field"),
    (["operation", 0, "abort_frac"], 1.5, "from 0 to 1"),
    (["operation", 0, "sets"], [], "not empty"),
    (["operation", 0, "sets"], ["aid"], "not the key"),
    (["operation", 0, "sets"], ["balance"], "a column of accounts"),
    (["operation", 0, "sets"], {"abalance": {"grows_bytes": {"min": 1, "max": 2}}}, "grow"),
    (["operation", 0, "sets"], {"filler": {"grows_bytes": {"min": 1, "max": 2}}}, "grow"),
    (["operation", 0, "pick"], {"distribution": "normal"}, "one of uniform"),
    (["operation", 0, "pick"], {"distribution": "uniform", "theta": 2}, "does not belong"),
    (["operation", 0, "pick"], {"distribution": "zipfian", "theta": 1}, "1.001"),
    (["operation", 0, "pick"], {"distribution": "gaussian", "param": 1.9}, "from 2"),
    (["operation", 0, "pick"], {"distribution": "hot_set", "rows_frac": 1, "weight": 1}, "rows_f"),
    (["operation", 0, "pick"], {"distribution": "uniform", "among": "all"}, "one of live"),
    (["operation", 0, "pick"], {"distribution": "age", "min": 3}, "pick.max: missing"),
    (["operation", 0, "pick"], {"distribution": "age", "min": 3, "max": 2}, "pick.max: found 2"),
    (["operation", 0, "pick"], {"distribution": "age", "min": -1, "max": 2}, "pick.min: found -1"),
    (["operation", 0, "pick"], {"distribution": "oldest", "within": 0}, "pick.within: found 0"),
    (["operation", 0, "pick"], {"distribution": "newest", "among": "live"}, "does not belong"),
    (["operation", 0, "pick"], {"distribution": "age", "min": 1, "max": 2, "within": 3}, "belong"),
    (["operation", 0, "find"], "hash", "index, seqscan, bitmap"),
    (["run", "clients"], 3, "a multiple of run.clients"),
    (["run", "operations"], ..., "neither"),
    (["run", "duration_s"], 5, "both"),
    (["run", "rate_per_s"], 5, "duration_s"),
    (["run", "snapshot"], [{"start_frac": 0.8, "length_frac": 0.5}], "within the run"),
]


@pytest.mark.parametrize(("path", "value", "said"), REFUSED, ids=lambda item: str(item)[:50])
def test_what_is_wrong_is_named(path: list[str | int], value: Json, said: str) -> None:
    """Each refusal names the field or the word that repairs it; nothing is taken silently."""
    with pytest.raises(InputError) as caught:
        parse_profile(put(accounts(), path, value))
    assert said in str(caught.value)


def test_rows_too_wide_are_refused() -> None:
    """A row that even TOAST cannot make fit, and an index entry above a third of a page."""
    data = accounts()
    many = [{"name": f"c{n}", "type": "int8"} for n in range(1100)]
    with pytest.raises(InputError, match="at most 8160 bytes"):
        parse_profile(put(data, ["table", 0, "columns"], data["table"][0]["columns"] + many))
    wide = {"name": "t", "type": "text", "width": {"min_bytes": 1, "max_bytes": 5000}}
    data["table"][0]["columns"].append(wide)
    parse_profile(data)
    data["table"][0]["indexes"].append({"name": "by_t", "columns": ["t"]})
    with pytest.raises(InputError, match="at most 2704"):
        parse_profile(data)


def test_keys_must_not_repeat_or_be_lost() -> None:
    """Inserts of one table share the formula of their keys, and `oldest` its counter."""
    data = every_field()
    data["operation"].append({"table": "jobs", "kind": "insert", "rows_per_statement": 3})
    with pytest.raises(InputError, match="keys would repeat"):
        parse_profile(data)
    data = every_field()
    data["operation"].append({"table": "jobs", "kind": "delete"})
    parse_profile(data)  # the oldest of the living is what no delete of the oldest has tried
    data["operation"][2]["rows_per_statement"] = 2
    with pytest.raises(InputError, match="expected oldest"):
        parse_profile(data)


def test_upserts_leave_the_keys_of_inserts_alone() -> None:
    """Random profile 141129-30: 18.4 ended the clients whose keys another's upsert had taken."""
    data = accounts()
    name = data["table"][0]["name"]
    data["operation"] = [
        {"table": name, "kind": "insert"},
        {"table": name, "kind": "upsert", "sets": ["abalance"], "rows_per_statement": 30},
    ]
    for clients in (1, 4):
        data["run"]["clients"] = clients
        if clients > 1:
            with pytest.raises(InputError, match=r"operation\[1\].rows_per_statement: found 30"):
                parse_profile(data)
        else:
            parse_profile(data)
    data["operation"][1]["rows_per_statement"] = 1
    parse_profile(data)


LIVING: list[Json] = [
    {"distribution": "oldest"},
    {"distribution": "oldest", "within": 4},
    {"distribution": "age", "min": 0, "max": 4},
    {"distribution": "uniform", "among": "live"},
    {"distribution": "zipfian", "theta": 1.1, "among": "live"},
    {"distribution": "gaussian", "param": 2, "among": "live"},
]


@pytest.mark.parametrize("pick", LIVING, ids=lambda pick: "-".join(map(str, pick.values())))
def test_living_rows_are_found_one_by_one(pick: Json) -> None:
    """A table may begin empty; upserts, several rows and scattering are refused by field."""
    data = put(accounts(), ["table", 0, "rows"], 0)
    data = put(data, ["operation", 0, "pick"], pick)
    profile = parse_profile(data)
    assert parse_profile(to_json(profile)) == profile
    assert not any("scatter" in path for path in profile.assumed)
    several = put(data, ["operation", 0, "rows_per_statement"], 2)
    if len(pick) == 1:  # the oldest of the loaded rows, which there are none of
        with pytest.raises(InputError, match=r"^operation\[0\]\.table: .*a table with rows"):
            parse_profile(several)
    else:
        with pytest.raises(InputError, match=r"^operation\[0\]\.rows_per_statement: .*expected 1"):
            parse_profile(several)
    with pytest.raises(InputError, match=r"^operation\[0\]\.pick\.\w+: .*an upsert makes rows"):
        parse_profile(put(data, ["operation", 0, "kind"], "upsert"))
    if "among" in pick:
        scattered = put(data, ["operation", 0, "pick"], pick | {"scatter": True})
        with pytest.raises(InputError, match=r"^operation\[0\]\.pick\.scatter: "):
            parse_profile(scattered)


def test_hot_sets_are_of_loaded_rows() -> None:
    """They have no order of age to lie in."""
    pick = {"distribution": "hot_set", "rows_frac": 0.1, "weight": 0.9, "among": "live"}
    with pytest.raises(InputError, match=r"pick\.among: does not belong to the distribution hot"):
        parse_profile(put(accounts(), ["operation", 0, "pick"], pick))


def test_deletes_of_the_oldest_go_through_the_same_blocks() -> None:
    """Two sizes of blocks, or deletes with and without, would count one thing in two ways."""

    def of(delete: Json, other: Json, kind: str = "delete") -> Json:
        data = accounts()
        oldest = {"table": "accounts", "kind": kind, "pick": {"distribution": "oldest"} | other}
        if kind == "update":
            oldest["sets"] = ["abalance"]
        first = {"table": "accounts", "kind": "delete", "pick": {"distribution": "oldest"} | delete}
        data["operation"] = [first, oldest]
        return data

    parse_profile(of({"within": 4}, {"within": 4}))
    parse_profile(of({"within": 4}, {}, "update"))
    parse_profile(of({"within": 4}, {"within": 4}, "update"))
    for delete, other, kind, said in (
        ({"within": 4}, {"within": 5}, "delete", r"within: found 5, expected within = 4"),
        ({"within": 4}, {}, "delete", r"distribution: found 'oldest', expected within = 4"),
        ({}, {"within": 5}, "delete", r"within: found 5, expected no within"),
        ({"within": 4}, {"within": 5}, "update", r"within: found 5, expected within = 4"),
        ({}, {"within": 5}, "update", r"within: found 5, expected no within"),
    ):
        with pytest.raises(InputError, match=rf"^operation\[1\]\.pick\.{said}"):
            parse_profile(of(delete, other, kind))


def test_rows_of_a_statement_may_vary() -> None:
    """A range keeps both ends and is written out again; one of a single number is that number."""
    data = every_field()
    data["operation"][0]["rows_per_statement"] = {"min": 5, "max": 15}
    profile = parse_profile(data)
    insert = profile.workload.operations[0]
    assert insert.rows_per_statement == RowRange(min_rows=5, max_rows=15)
    assert (insert.rows_max, insert.rows_mean) == (15, 10)
    assert to_json(profile)["operation"][0]["rows_per_statement"] == {"min": 5, "max": 15}
    assert parse_profile(to_json(profile)) == profile
    # What decides whether keys repeat is the room that they are given.
    data["operation"].append({"table": "jobs", "kind": "insert", "rows_per_statement": 15})
    parse_profile(data)
    data["operation"][-1]["rows_per_statement"] = {"min": 5, "max": 14}
    with pytest.raises(InputError, match=r"statement\.max: found 14, expected 15, as in"):
        parse_profile(data)
    data["operation"][-1]["rows_per_statement"] = {"min": 15, "max": 15}
    assert parse_profile(data).workload.operations[-1].rows_per_statement == 15


def test_the_line_of_the_mistake_is_named(tmp_path: Path) -> None:
    """A profile may be long; the message says where to look."""
    text = EVERY_FIELD.read_text()
    wrong = text.replace('"int2"', '"int3"')
    path = tmp_path / "p.toml"
    path.write_text(wrong)
    line = next(n for n, line in enumerate(wrong.splitlines(), 1) if '"int3"' in line)
    with pytest.raises(InputError, match=rf"line {line}: table\[0\]\.columns\[2\]\.type"):
        read_profile(path)
    assert line_of(text, "operation[1].weight") == next(
        n for n, line in enumerate(text.splitlines(), 1) if line.startswith("weight = 2")
    )
    assert line_of(text, "run.snapshot[0].length_frac") == len(text.splitlines())


@pytest.mark.parametrize("content", [b"\xff\xfe", b"[", b"{", b"[" * 100_000, b"", b"a = 1"])
def test_files_that_are_no_profiles(content: bytes, tmp_path: Path) -> None:
    """Whatever the bytes are, the answer is a sentence about the file."""
    path = tmp_path / "p.toml"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"p\.toml"):
        read_profile(path)
    with pytest.raises(InputError, match="no such file"):
        read_profile(tmp_path / "absent.toml")


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from(["update", "int4", "accounts", "\0", "\ud800"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)


def _places(data: Json, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """The paths of all values in a JSON document."""
    items: list[tuple[str | int, Json]] = []
    if isinstance(data, dict):
        items = list(data.items())
    elif isinstance(data, list):
        items = list(enumerate(data))
    deeper = [place for key, value in items for place in _places(value, (*path, key))]
    return [*([path] if path else []), *deeper]


@settings(max_examples=examples(400), deadline=None)
@given(st.data())
def test_garbage_in_any_place_is_refused_or_read(data: st.DataObject) -> None:
    """Foreign files never crash the reader: it is a profile that survives saving, or an error."""
    whole = every_field()
    place = data.draw(st.sampled_from(_places(whole)))
    try:
        profile = parse_profile(put(whole, list(place), data.draw(JSON_VALUES)))
    except InputError:
        return
    assert parse_profile(to_json(profile)) == profile


@settings(max_examples=examples(200), deadline=None)
@given(st.text(), st.text())
def test_garbage_text_is_refused(text: str, path: str) -> None:
    """Texts that are neither TOML nor JSON, and paths that do not exist, end in our error."""
    with contextlib.suppress(InputError):
        parse_profile(load_text(text))
    line = line_of(text, path)
    assert line is None or 1 <= line <= len(text.splitlines())


@settings(max_examples=examples(100), deadline=None)
@given(
    rows=st.integers(1, 2**31 - 1),
    fillfactor=st.integers(10, 100),
    clients=st.integers(1, 50),
    pick=st.sampled_from(
        [
            {"distribution": "uniform", "scatter": True},
            {"distribution": "zipfian", "theta": 1.5},
            {"distribution": "gaussian", "param": 2.5},
            {"distribution": "stride", "n": 7},
            {"distribution": "newest"},
            {"distribution": "oldest"},
            {"distribution": "oldest", "within": 9},
            {"distribution": "age", "min": 0, "max": 7},
            {"distribution": "zipfian", "theta": 1.5, "among": "live"},
        ]
    ),
)
def test_profiles_survive_saving(rows: int, fillfactor: int, clients: int, pick: Json) -> None:
    """A profile that was read, saved and read again is the same value."""
    data = accounts()
    data["table"][0] |= {"rows": rows // clients * clients or clients, "fillfactor": fillfactor}
    data["operation"][0]["pick"] = pick
    data["run"] = {"operations": 10 * clients, "clients": clients}
    profile = parse_profile(data)
    again = parse_profile(json.loads(json.dumps(to_json(profile))))
    assert again == profile
    assert profile.with_fillfactor({"accounts": 55}).tables[0].fillfactor == 55


def test_assumed_checksums_follow_the_server() -> None:
    """Whether a cluster has checksums by default depends on the server that runs, not the file."""
    table = {"name": "t", "rows": 1, "columns": [{"name": "id", "type": "int4"}]}
    data = {
        "schema_version": 1,
        "server": {"version": "18"},
        "table": [table],
        "operation": [{"table": "t", "kind": "insert"}],
        "run": {"operations": 1},
    }
    profile = parse_profile(data)
    assert profile.assumed_on(18)["server.data_checksums"] is True
    assert profile.assumed_on(15)["server.data_checksums"] is False
    stated = parse_profile(data | {"server": {"version": "18", "data_checksums": True}})
    assert "server.data_checksums" not in stated.assumed_on(15)
