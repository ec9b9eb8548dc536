"""What an observation is derived from: queries, recordings, names, samples, columns."""

from __future__ import annotations

import json
import math
import random
import re
from pathlib import Path
from typing import Any

import pytest

from pgheadroom.errors import InputError
from pgheadroom.observe.columns import fills_pages, make_column, page_widths
from pgheadroom.observe.mask import pseudonym
from pgheadroom.observe.naming import profile_name
from pgheadroom.observe.sample import fit_skew
from pgheadroom.observe.widths import ColumnWidth
from pgheadroom.profile import Pick, Values, Width
from pgheadroom.sources import sql
from pgheadroom.sources.observing import EXTENSION_OF, ObservationRequest
from pgheadroom.sources.recording import read_files
from pgheadroom.sources.script import psql_script

WORDS_THAT_WRITE = re.compile(
    r"\b(insert|update|delete|merge|truncate|create|alter|drop|vacuum|analyze|reset|lock|set)\s+"
    r"(into|table|from|statistics|index|stat|local|session)\b|pg_stat_\w*reset|pg_switch_wal|"
    r"txid_current\(|pg_current_xact_id\(|for update|nextval",
    re.IGNORECASE,
)


@pytest.mark.parametrize("name", sql.names())
def test_every_query_only_reads_and_says_who_may_ask(name: str) -> None:
    """The statements are reviewed before they may run: each says what it needs, none writes."""
    for _, text in sql.variants(name):
        assert text.startswith("-- ")
        assert re.search(r"Anyone|[Nn]eeds|to pg_read_all_stats only|SELECT only", text)
        code = "\n".join(line for line in text.split("\n") if not line.startswith("--"))
        assert WORDS_THAT_WRITE.search(code) is None


def test_the_newest_fitting_text_is_chosen() -> None:
    """A column of 18 asked on 15 would fail; one of 16 left out on 17 would be lost."""
    assert "n_tup_newpage_upd" not in str(sql.text("table_counters", 15))
    assert "n_tup_newpage_upd" in str(sql.text("table_counters", 17))
    assert "total_vacuum_time" not in str(sql.text("table_counters", 17))
    assert "total_vacuum_time" in str(sql.text("table_counters", 19))
    assert "pg_stat_checkpointer" in str(sql.text("checkpoint_counters", 17))
    assert sql.text("io_counters", 15) is None


def test_what_queries_have_in_common_stands_once() -> None:
    """Two samples of a table read the same pages because the same lines choose them; in whole."""
    sampled = sql.text("sample_statements", 18) or ""
    chosen = sampled[sampled.index("FROM pg_class c") : sampled.index("pages > 0")]
    assert "AccessExclusiveLock" in chosen
    assert "row_security_active" in chosen
    assert chosen in (sql.text("age_statements", 18) or "")
    assert not [name for name in sql.names() for _, text in sql.variants(name) if "\\ir" in text]


def test_variables_are_bound_as_psql_does() -> None:
    """Names go in quoted, casts stay, and what has no value stays for psql."""
    bound = sql.bound("SELECT :n, :'s', :s.f(x::int8), :later", {"n": 5, "s": 'a"b'})
    assert bound == 'SELECT 5, \'a"b\', "a""b".f(x::int8), :later'


def test_the_script_holds_every_query_and_every_variable_has_a_value() -> None:
    """`--print-sql` is the whole: what is reviewed is what runs."""
    script = psql_script(ObservationRequest(duration_s=60.0, ticks=4, tables=("t",)))
    for name in sql.names():
        for _, text in sql.variants(name):
            assert text in script
    assert script.count("\\! sleep 15") == 4
    for _, variable in EXTENSION_OF.values():
        assert f"\\if :has_{variable}" in script
    assert script.count("\\if") == script.count("\\endif")
    without = psql_script(ObservationRequest(duration_s=60.0, samples=False))
    assert "TABLESAMPLE" not in without


def test_files_that_are_not_the_scripts_are_named(tmp_path: Path) -> None:
    """The way through psql has many steps; each mistake says which file and what to do."""
    with pytest.raises(InputError, match="holds no pgheadroom-observed"):
        read_files(tmp_path)
    path = tmp_path / "pgheadroom-observed-00-shape.jsonl"
    path.write_text('{"query": "identity", "pass": "shape", "rows": [{}]}\nERROR: no\n')
    with pytest.raises(InputError, match=r"line 2: not written by the script"):
        read_files(tmp_path)
    path.write_text('{"query": "identity", "pass": "shape", "rows": [{}]}\n')
    with pytest.raises(InputError, match="lacks the answer of settings in the pass 'shape'"):
        read_files(tmp_path)
    path.write_text(json.dumps({"query": 1, "pass": "shape", "rows": []}))
    with pytest.raises(InputError, match="expected query, pass and rows"):
        read_files(path)


def test_names_fit_a_profile_and_stay_apart() -> None:
    """A profile refuses colons, line breaks and long names; two tables must not become one."""
    taken: set[str] = set()
    names = ["orders", "a:b", "a\nb", "a_b", "x" * 63, "x" * 64, "ü" * 40, "", "a\\b", "orders"]
    made = [profile_name(name, taken) for name in names]
    assert made[0] == "orders"
    assert made[3] == "a_b"
    assert len(set(made)) == len(names)
    assert all(len(name.encode()) <= 63 and name.isprintable() for name in made)
    assert not any(set(":\\") & set(name) for name in made)
    again: set[str] = set()
    assert [profile_name(name, again) for name in names] == made


def test_pseudonyms_are_stable_and_need_the_key() -> None:
    """The same name is the same pseudonym for one key; another key, or kind, gives another."""
    assert pseudonym(b"k", "table", "users") == pseudonym(b"k", "table", "users")
    found = {pseudonym(key, kind, "users") for key in (b"k", b"l") for kind in ("table", "column")}
    assert len(found) == 4
    assert not any("users" in name for name in found)


def column(typ: str, typlen: int, align: str, **more: Any) -> dict[str, Any]:
    return {
        "attnum": 1,
        "name": "c",
        "type": typ,
        "is_user_type": False,
        "typlen": typlen,
        "typalign": align,
        "storage": "p",
    } | more


def made(
    row: dict[str, Any], stored: float | None = None, deviation: float = 0.0, **more: Any
) -> Any:
    width = None
    if stored is not None:
        width = ColumnWidth(mean_bytes=stored, deviation_bytes=deviation, evidence="sampled")
    options: dict[str, Any] = {"rows": 1000, "is_key": False, "indexed": False, "statistics": None}
    return make_column(row, width=width, null_frac=(0.0, "x"), taken=set(), **(options | more))


def test_a_types_stand_in_takes_the_same_bytes() -> None:
    """Types that profiles have keep their names; others become ones of their length."""
    assert made(column("integer", 4, "i")).profile.type == "int4"
    date = made(column("date", 4, "i"))
    assert (date.profile.type, date.observed.substituted) == ("date", None)
    uuid = made(column("uuid", 16, "c"))
    assert uuid.profile.type == "uuid"
    assert uuid.profile.width is None
    assert made(column("inet", -1, "i"), stored=7.0).profile.type == "inet"
    assert made(column("inet", -1, "i"), stored=19.0).profile.type == "text"
    box = made(column("box", 32, "d"))
    assert (box.profile.type, box.observed.substituted) == ("box", None)
    odd = made(column("odd", 20, "i", is_user_type=True))
    assert odd.profile.width == Width(min_bytes=19, max_bytes=19)
    assert odd.observed.substituted == "text of the same length, without its alignment"
    assert odd.profile.stands_for == "odd"
    jsonb = made(column("jsonb", -1, "i"), stored=54.0)
    assert jsonb.profile.type == "jsonb"
    assert jsonb.profile.width == Width(min_bytes=53, max_bytes=53)
    # Above 126 bytes of payload the header has 4 bytes.
    assert made(column("text", -1, "i"), stored=204.0).profile.width.min_bytes == 200
    # Uniform from 21 to 61: mean 41 and deviation 20 / sqrt(3).
    spread = made(column("text", -1, "i"), stored=42.0, deviation=20 / math.sqrt(3))
    assert spread.profile.width == Width(min_bytes=21, max_bytes=61)
    # 4,000 of 84 bytes, 900 of 83, 90 of 82, 9 of 81: none has 85.
    counted = made(column("jsonb", -1, "i"), stored=84.78, deviation=0.47)
    assert counted.profile.width == Width(min_bytes=83, max_bytes=84)
    assert made(column("numeric", -1, "i"), stored=12.0).profile.type == "text"
    assert made(column("mood", 4, "i", is_user_type=True)).profile.type == "int4"


def test_widths_by_pages() -> None:
    """One page says how long rows are at most, and rows are shorter than what goes to TOAST."""
    rows = [
        column("integer", 4, "i") | {"is_dropped": False},
        column("text", -1, "i") | {"attnum": 2, "is_dropped": False},
    ]

    def width(row_bytes: float | None, **more: bool) -> tuple[float, str]:
        (found,) = page_widths(rows, row_bytes=row_bytes, **more).values()
        return found.mean_bytes, found.evidence

    assert width(100.0) == (68.0, "estimated")
    assert width(100.0, are_full=False) == (32.0, "estimated")
    assert width(50.0, are_full=False) == (18.0, "estimated")
    assert width(8168.0) == (1968.0, "estimated")
    assert width(None) == (32.0, "assumed")


def test_rows_of_a_queue_are_not_as_long_as_its_pages_are_empty() -> None:
    """Jobs of graphile-worker, which row security hides, had 2,000 bytes: 70 rows on 54 pages."""
    assert fills_pages(70, pages=54, deleted=0)
    assert not fills_pages(70, pages=54, deleted=11_471)
    assert not fills_pages(70, pages=1, deleted=0)


@pytest.mark.parametrize(
    ("row", "stored", "indexed", "expected"),
    [
        (("cell", 24, "d", "p"), None, False, ("circle", None, None)),
        (("cell", 24, "d", "p"), None, True, ("text", 23, None)),
        (("spot", 16, "d", "p"), None, True, ("interval", None, None)),
        (("code", 8, "d", "p"), None, True, ("int8", None, None)),
        (("vector", -1, "i", "e"), 6148.0, False, ("text", 6144, "external")),
        (("geometry", -1, "d", "m"), 29.0, False, ("text", 28, "main")),
        (("geometry", -1, "d", "m"), 210.0, False, ("composite", 206, "main")),
        (("geometry", -1, "d", "m"), 508.0, True, ("composite", 504, "main")),
        (("geometry", -1, "d", "m"), 4000.0, True, ("composite", 3996, "main")),
        (("pair", -1, "d", "x"), 40.0, True, ("text", 39, None)),
        (("pair", -1, "d", "x"), 201.0, True, ("composite", 197, None)),
        (("cube", -1, "d", "p"), 40.0, False, ("text", 39, None)),
    ],
)
def test_another_type_is_played_by_its_form(
    row: tuple[str, int, str, str],
    stored: float | None,
    indexed: bool,
    expected: tuple[str, int | None, str | None],
) -> None:
    """Of the length, alignment and storage of the catalogue, and under its own name."""
    name, typlen, align, storage = row
    of_user = column(name, typlen, align, is_user_type=True, storage=storage)
    found = made(of_user, stored=stored, indexed=indexed).profile
    width = None if found.width is None else found.width.max_bytes
    assert (found.type, width, found.storage) == expected
    assert found.stands_for == name


def test_what_is_substituted_keeps_its_name() -> None:
    """Of another type's order nobody knows; strings and numerics are played as what they are."""
    found = [
        made(column("inet", -1, "i"), stored=19.0),
        made(column("box", 32, "d"), indexed=True),
        made(column("numeric", -1, "i"), stored=30.0),
        made(column("bpchar", -1, "i"), stored=30.0),
        made(column("integer", 4, "i")),
    ]
    assert [one.profile.stands_for for one in found] == ["inet", "box", None, None, None]
    assert [one.is_substituted for one in found] == [True, True, True, True, False]


def test_a_columns_own_storage_is_played() -> None:
    """As ALTER TABLE has set it; a type's own goes without saying."""
    text = column("text", -1, "i", storage="e")
    assert made(text, stored=40.0).profile.storage == "external"
    assert made(column("text", -1, "i", storage="x"), stored=40.0).profile.storage is None
    numeric = column("numeric", -1, "i", storage="m")
    assert made(numeric, stored=3.0).profile.storage is None
    assert made(numeric, stored=30.0).profile.storage == "main"


def test_a_key_keeps_its_type_and_its_order() -> None:
    """A uuid is one; it lies in the order of the rows where pg_stats says so (version 7)."""
    uuid = column("uuid", 16, "c")
    key = made(uuid, is_key=True)
    assert [(c.name, c.type) for c in key.entries] == [("c", "uuid")]
    assert key.profile.values == Values(kind="serial")
    assert "assumed" in key.observed.key_order
    for correlation, ordered in ((0.99, True), (0.01, False)):
        statistics = {"avg_width": 16, "n_distinct": -1, "correlation": correlation}
        key = made(uuid, is_key=True, statistics=statistics)
        assert key.profile.values == Values(kind="serial", ordered=ordered)
        assert f"{correlation}" in key.observed.key_order
    text = made(column("text", -1, "i"), stored=37.0, is_key=True)
    assert (text.profile.type, text.profile.width.min_bytes) == ("text", 36)
    statistics = {"avg_width": 15, "n_distinct": -1, "correlation": 1}
    spread = made(
        column("text", -1, "i"), stored=15.0, deviation=2.0, is_key=True, statistics=statistics
    )
    assert spread.profile.width == Width(min_bytes=14, max_bytes=14)


def test_a_key_of_another_type_becomes_an_integer_and_the_rest() -> None:
    """8 of its bytes count the rows; so do those of strings too short for hashes to differ."""
    key = made(column("timestamptz[]", -1, "d"), stored=48.0, is_key=True)
    assert [(c.name, c.type) for c in key.entries] == [("c", "int8"), ("c__rest", "text")]
    assert key.entries[1].width == Width(min_bytes=39, max_bytes=39)
    code = made(column("text", -1, "i"), stored=9.0, is_key=True)
    assert [c.type for c in code.entries] == ["int8", "text"]
    for spelled, typlen, name in (
        ("date", 4, "date"),
        ("timestamp without time zone", 8, "timestamp"),
        ("timestamp(3) with time zone", 8, "timestamptz"),
    ):
        when = made(column(spelled, typlen, "d"), is_key=True)
        assert [(c.type, c.values.kind) for c in when.entries] == [(name, "serial")]
        assert when.observed.substituted is None
    short = made(column("smallint", 2, "s"), is_key=True, rows=100_000)
    assert [c.type for c in short.entries] == ["int4"]
    assert short.observed.substituted is not None


def sample_of(picks: Any, *, rows: int, updates: int, pages: int, seed: int) -> dict[str, Any]:
    """A sample of all rows after that many updates, one a transaction, in the query's form."""
    rng = random.Random(seed)
    last = [0] * rows
    for xid in range(1, updates + 1):
        last[picks(rng)] = xid
    ages: dict[int, int] = {}
    per_page = [[0, 0] for _ in range(pages)]
    for row, xid in enumerate(last):
        age = updates + 1 - xid if xid else 100 * updates
        ages[int(math.log2(age))] = ages.get(int(math.log2(age)), 0) + 1
        per_page[row * pages // rows][0] += 1
        per_page[row * pages // rows][1] += xid > 0
    return {
        "rows": rows,
        "since_xids": updates,
        "recent_rows": sum(young for _, young in per_page),
        "ages": [[age, n, n * 100] for age, n in sorted(ages.items())],
        "page_moments": [
            sum(n * n for n, _ in per_page),
            sum(y * y for _, y in per_page),
            sum(n * y for n, y in per_page),
        ],
    }


def fit(picks: Any, updates: int = 20_000, inserts: int = 0) -> Pick:
    sample = sample_of(picks, rows=20_000, updates=updates, pages=400, seed=7)
    return fit_skew(sample, rows=20_000, updates=updates, inserts=inserts, xids=updates).pick


def test_uniform_updates_are_found_uniform() -> None:
    """Most tables are; inventing a hot set would promise HOT that never comes."""
    assert fit(lambda rng: rng.randrange(20_000)) == Pick(distribution="uniform")


@pytest.mark.parametrize(("frac", "weight"), [(0.05, 0.9), (0.2, 0.8)])
def test_a_hot_set_is_found(frac: float, weight: float) -> None:
    """Nine of ten updates on a twentieth of the rows: found within a step of the grid."""
    hot = int(frac * 20_000)

    def pick(rng: random.Random) -> int:
        return rng.randrange(hot) if rng.random() < weight else rng.randrange(hot, 20_000)

    found = fit(pick)
    assert found.distribution == "hot_set"
    assert found.rows_frac == pytest.approx(frac, rel=0.55)
    assert found.weight == pytest.approx(weight, abs=0.06)
    assert not found.scatter, "the hot rows are neighbours"


def test_scattered_hot_rows_are_told_from_neighbours() -> None:
    """Hot rows that share pages need room on few pages, scattered ones on all."""
    places = random.Random(1).sample(range(20_000), 1000)

    def pick(rng: random.Random) -> int:
        return rng.choice(places) if rng.random() < 0.9 else rng.randrange(20_000)

    found = fit(pick)
    assert found.distribution == "hot_set"
    assert found.scatter


def test_scattered_hot_rows_may_have_come_together() -> None:
    """
    Rows that updates have moved lie together, mostly hot ones; the others are where they were.

    Forecast as though all were neighbours, 1.3 % of the updates of a table that had lived left
    their page, of which 0.8 % did (tools/aged_tables.py).
    """
    moved = [*range(19_600, 20_000)]
    places = [*random.Random(1).sample(range(19_600), 600), *moved]

    def pick(rng: random.Random) -> int:
        return rng.choice(places) if rng.random() < 0.9 else rng.randrange(20_000)

    found = fit(pick)
    assert found.distribution == "hot_set"
    assert found.scatter


def test_few_young_rows_or_many_inserts_say_nothing() -> None:
    """Without evidence it is uniform and marked as assumed."""
    assert fit(lambda rng: rng.randrange(5), updates=40) == Pick(distribution="uniform")
    skew = fit_skew(
        sample_of(lambda rng: rng.randrange(100), rows=1000, updates=500, pages=20, seed=1),
        rows=1000,
        updates=500,
        inserts=400,
        xids=900,
    )
    assert skew.evidence == "assumed"
    none = fit_skew(None, rows=10, updates=5, inserts=0, xids=5)
    assert (none.evidence, none.pick) == ("assumed", Pick(distribution="uniform"))
