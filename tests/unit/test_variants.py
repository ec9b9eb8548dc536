"""Variants of a profile: what an index change does to it, and what is refused by name."""

from __future__ import annotations

from typing import Any

import pytest

from pgheadroom.errors import InputError
from pgheadroom.predict import IndexChange, make_cells, predict
from pgheadroom.predict.variants import UNCHANGED, changed, name_of
from pgheadroom.profile import Profile, parse_profile, to_json

Json = dict[str, Any]


def _profile(run: Json | None = None, **server: Any) -> Profile:
    return parse_profile(
        {
            "schema_version": 1,
            "server": {"version": "18.4"} | server,
            "table": [
                {
                    "name": "jobs",
                    "rows": 1000,
                    "fillfactor": 80,
                    "columns": [
                        {"name": "id", "type": "int8"},
                        {"name": "owner", "type": "int4"},
                        {"name": "state", "type": "int2"},
                        {"name": "open", "type": "bool"},
                    ],
                    "indexes": [
                        {"name": "jobs_pkey", "columns": ["id", "state"], "unique": True},
                        {"name": "by_owner", "columns": ["owner", "state"], "include": ["open"]},
                        {"name": "by_open", "columns": ["open"], "fillfactor": 70},
                        {"name": "by_lower", "expressions": ["abs(owner)"]},
                        {"name": "by_time", "columns": ["owner"], "method": "brin"},
                        {"name": "only", "columns": ["owner", "id"], "unique": True},
                    ],
                }
            ],
            "operation": [{"table": "jobs", "kind": "update", "sets": ["state"]}],
            "run": run or {"operations": 500},
        }
    )


def _small(sets: str = "state", **server: Any) -> Profile:
    """One index besides the key's, which holds what updates change."""
    return parse_profile(
        {
            "schema_version": 1,
            "server": {"version": "18.4"} | server,
            "table": [
                {
                    "name": "jobs",
                    "rows": 1000,
                    "fillfactor": 70,
                    "columns": [
                        {"name": name, "type": "int4"} for name in ("id", "owner", "state")
                    ],
                    "indexes": [
                        {"name": "jobs_pkey", "columns": ["id"], "unique": True},
                        {"name": "by_owner", "columns": ["owner", "state"]},
                    ],
                }
            ],
            "operation": [{"table": "jobs", "kind": "update", "sets": [sets]}],
            "run": {"operations": 500},
        }
    )


def _without(name: str) -> IndexChange:
    return IndexChange(kind="without", index=name)


def _narrow(name: str, *columns: str) -> IndexChange:
    return IndexChange(kind="narrow", index=name, columns=columns)


def _brin(name: str) -> IndexChange:
    return IndexChange(kind="brin", index=name)


def _fill(name: str, fillfactor: int) -> IndexChange:
    return IndexChange(kind="fillfactor", index=name, fillfactor=fillfactor)


def _index(profile: Profile, name: str) -> Json:
    indexes: list[Json] = to_json(profile)["table"][0]["indexes"]
    return next(index for index in indexes if index["name"] == name)


def test_only_the_named_index_changes() -> None:
    """Rows, operations and the other indexes are the profile's own, in their order."""
    before = _profile()
    after = changed(before, [_without("by_owner"), _fill("by_open", 100)])
    assert [index.name for index in after.tables[0].indexes] == [
        index.name for index in before.tables[0].indexes if index.name != "by_owner"
    ]
    assert _index(after, "by_open") == _index(before, "by_open") | {"fillfactor": 100}
    assert after.workload == before.workload
    assert after.tables[0].columns == before.tables[0].columns


def test_narrowing_keeps_the_index_order() -> None:
    """Key columns stay key columns, included ones included; the key's index keeps the key."""
    before = _profile()
    after = changed(before, [_narrow("by_owner", "open", "owner"), _narrow("jobs_pkey", "id")])
    assert _index(after, "by_owner")["columns"] == ["owner"]
    assert _index(after, "by_owner")["include"] == ["open"]
    assert after.tables[0].key_index is not None
    assert after.tables[0].key_index.columns == ("id",)


def test_brin_has_nothing_of_a_btree() -> None:
    """Over the key columns alone; narrowing and BRIN go together, in either order."""
    for changes in (
        [_narrow("by_owner", "owner"), _brin("by_owner")],
        [_brin("by_owner"), _narrow("by_owner", "owner")],
    ):
        index = _index(changed(_profile(), changes), "by_owner")
        assert index["method"] == "brin"
        assert index["columns"] == ["owner"]
        assert "fillfactor" not in index
        assert not index.get("include")


REFUSED: dict[str, tuple[list[IndexChange], str]] = {
    "unknown": ([_without("by_ower")], r"without_index by_ower: .* did you mean by_owner\?"),
    "key": ([_without("jobs_pkey")], "jobs_pkey is the key of jobs, by which its rows are found"),
    "key as BRIN": ([_brin("jobs_pkey")], "jobs_pkey is the key of jobs"),
    "key's key": ([_narrow("jobs_pkey", "state")], "by whose first column, id, rows are found"),
    "unique as BRIN": ([_brin("only")], "only is unique, which BRIN cannot be"),
    "unique narrowed": ([_narrow("only", "owner")], "only is unique over owner, id"),
    "boolean as BRIN": ([_brin("by_open")], "open is a boolean"),
    "BRIN as BRIN": ([_brin("by_time")], "by_time is BRIN already"),
    "BRIN's fillfactor": ([_fill("by_time", 50)], "BRIN, whose pages have no fillfactor"),
    "expression narrowed": ([_narrow("by_lower", "owner")], r"over expressions \(abs\(owner\)\)"),
    "no such column": ([_narrow("by_owner", "id")], "by_owner does not hold id, expected some of"),
    "column twice": ([_narrow("by_owner", "owner", "owner")], "owner is given twice"),
    "nothing narrowed": ([_narrow("by_open", "open")], "holds just these columns"),
    "no key column": ([_narrow("by_owner", "open")], "would have no key column left"),
    "same fillfactor": ([_fill("by_open", 70)], "that is its fillfactor"),
    "default fillfactor": ([_fill("by_owner", 90)], "that is its fillfactor"),
    "fillfactor below": ([_fill("by_open", 9)], "expected a whole number from 10 to 100"),
    "fillfactor above": ([_fill("by_open", 101)], "expected a whole number from 10 to 100"),
    "twice": ([_fill("by_open", 80), _fill("by_open", 90)], "is changed so twice"),
    "gone and changed": ([_fill("by_owner", 80), _without("by_owner")], "exclude each other"),
    "BRIN and leaves": ([_brin("by_owner"), _fill("by_owner", 80)], "exclude each other"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_is_refused_by_name(name: str) -> None:
    """The message says which option, what was found, and what would do."""
    changes, message = REFUSED[name]
    with pytest.raises(InputError, match=message):
        changed(_profile(), changes)


def test_pgbench_has_no_other_indexes() -> None:
    """Its tables have their primary keys only."""
    profile = parse_profile(
        {
            "schema_version": 1,
            "pgbench": {"builtin": "tpcb-like", "scale": 1},
            "run": {"operations": 10},
        }
    )
    with pytest.raises(InputError, match="primary keys"):
        make_cells(profile, changes=[_without("pgbench_accounts_pkey")])


def test_each_fillfactor_has_its_variant() -> None:
    """The unchanged profile first, at each; without changes no cell has a variant."""
    changes = [_without("by_owner"), _fill("by_open", 100)]
    cells = make_cells(_profile(), [100, 80], changes=changes)
    name = "without by_owner; by_open at fillfactor 100"
    assert name_of(changes) == name
    assert [(cell.fillfactor, cell.variant) for cell in cells] == [
        (100, UNCHANGED),
        (100, name),
        (80, UNCHANGED),
        (80, name),
    ]
    assert [cell.variant for cell in make_cells(_profile())] == [None]


def test_without_the_index_updates_are_hot() -> None:
    """The state's index is all that keeps them from it; the result says by how much."""
    found = predict(_small(), changes=[_without("by_owner")]).to_json()
    unchanged, variant = found["cells"]
    assert (unchanged["variant"], variant["variant"]) == ("unchanged", "without by_owner")
    assert (unchanged["predicted"]["hot_frac"], variant["predicted"]["hot_frac"]) == (0, 1)
    assert "difference" not in unchanged
    difference = variant["difference"]["predicted"]
    assert difference["hot_frac"] == 1
    for key in ("index_pages", "wal_bytes_per_update"):
        assert difference[key] == variant["predicted"][key] - unchanged["predicted"][key] < 0


def test_narrowed_to_what_does_not_change() -> None:
    """An index over the owner alone does not mind a new state."""
    found = predict(_small(), changes=[_narrow("by_owner", "owner")])
    assert [cell.predicted.hot_frac for cell in found.cells] == [0, 1]


@pytest.mark.parametrize(("version", "hot"), [("15.18", 0), ("16.14", 1), ("18.4", 1)])
def test_brin_is_hot_neutral_from_16(version: str, hot: float) -> None:
    """Before, BRIN keeps updates of its columns from being HOT as a B-tree does."""
    found = predict(_small(), server=version, changes=[_brin("by_owner")])
    assert [cell.predicted.hot_frac for cell in found.cells] == [0, hot]


def test_emptier_leaves_are_more_pages() -> None:
    """1,000 entries of 20 bytes, all updates HOT: 3 leaves of 366, or 5 of 203; and 2 pages."""
    full, empty = (
        predict(_small(), changes=[_without("by_owner"), *more]).cells[1].predicted.index_pages
        for more in ([], [_fill("jobs_pkey", 50)])
    )
    assert (full, empty) == (5, 7)


def test_log_structured_storage_has_no_images() -> None:
    """Counters and sizes are those of local storage; the result names the storage."""
    local = predict(_small(full_page_writes=True, data_checksums=True))
    found = predict(_small(full_page_writes=True, data_checksums=True), storage="log-structured")
    assert (local.to_json()["storage"], found.to_json()["storage"]) == ("local", "log-structured")
    one, other = local.cells[0].predicted, found.cells[0].predicted
    assert one.wal_fpi
    assert other.wal_fpi == other.wal_fpi_bytes == 0
    assert (one.heap_pages, one.index_pages) == (other.heap_pages, other.index_pages)
    assert one.n_tup_hot_upd == other.n_tup_hot_upd


def test_log_structured_storage_compresses_nothing() -> None:
    """No images, nothing to estimate: exact where local storage gives intervals."""
    local = predict(_small(full_page_writes=True, wal_compression="pglz"))
    assert not local.cells[0].predicted.is_exact
    found = predict(
        _small(full_page_writes=True, wal_compression="pglz", checkpoint_interval_s=60),
        storage="log-structured",
    )
    assert found.cells[0].predicted.is_exact
