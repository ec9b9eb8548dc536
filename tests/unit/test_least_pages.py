"""No interval of pages reaches where no server can come: below what was loaded, or off it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pgheadroom.outcome import Outcome
from pgheadroom.predict import predict
from pgheadroom.predict.cells import make_cells
from pgheadroom.predict.least_pages import least_pages_of
from pgheadroom.predict.spread import spread
from pgheadroom.profile import parse_profile, read_profile
from pgheadroom.types import Interval

Json = dict[str, Any]

PROFILES = Path(__file__).parents[2] / "golden" / "profiles"
UPDATE = {"table": "hot", "kind": "update", "sets": ["n"]}


def _table(name: str, rows: int, kind: str = "int4", **of_column: Any) -> Json:
    key = {"name": f"{name}_pkey", "columns": ["id"], "unique": True}
    columns = [{"name": "id", "type": "int4"}, {"name": "n", "type": kind} | of_column]
    return {"name": name, "rows": rows, "columns": columns, "indexes": [key]}


def _profile(tables: list[Json], work: list[Json], **run: Any) -> Json:
    run = {"operations": 4000, "clients": 4} | run
    server = run.pop("server", {})
    return {
        "schema_version": 1,
        "server": {"version": "18.4"} | server,
        "table": tables,
        "operation": work,
        "run": run,
    }


def _predicted(data: Json) -> Outcome:
    return predict(parse_profile(data)).cells[0].predicted


def test_a_table_has_at_least_what_was_loaded() -> None:
    """A heap of one page that four clients update was foreseen with 0 to 4.5, pages changed too."""
    found = _predicted(_profile([_table("hot", 16)], [UPDATE]))
    pages, modified, leaves = found.heap_pages, found.pages_modified, found.index_pages
    assert isinstance(pages, Interval)
    assert isinstance(modified, Interval)
    assert pages.low >= 1
    assert modified.low >= 1
    assert (leaves.low if isinstance(leaves, Interval) else leaves) == 2


def test_what_is_only_read_is_certain() -> None:
    """Beside tables that are written, and alone: 0.3 % of it was said to be uncertain."""
    reading = {"table": "still", "kind": "select"}
    tables = [_table("hot", 2000), _table("still", 50_000)]
    both = _predicted(_profile(tables, [UPDATE, reading]))
    assert not both.by_table["hot"].is_exact
    assert both.by_table["still"].is_exact
    assert isinstance(both.heap_pages, Interval)
    builtin = {"schema_version": 1, "pgbench": {"builtin": "select-only", "scale": 1}}
    alone = predict(parse_profile(builtin | {"run": {"operations": 800, "clients": 8}}))
    assert alone.cells[0].predicted.is_exact
    assert alone.evidence == "exact"
    assert alone.warnings == ()


@pytest.mark.parametrize(
    ("table", "pages"),
    [
        (_table("hot", 2000), 9),  # 226 rows of 32 bytes and a line pointer
        (_table("hot", 2000, "text", width=100), 35),
        (_table("hot", 0), 0),
        (_table("hot", 2000, "numeric"), 1),
        (_table("hot", 2000, "int4", null_frac=0.5), 1),
        (_table("hot", 2000, "text", width={"min_bytes": 1, "max_bytes": 9}), 1),
    ],
)
def test_rows_of_one_length_tell_how_many_pages(table: Json, pages: int) -> None:
    """As many as they fill; of others it is certain that they have one."""
    inserting = {"table": "hot", "kind": "insert"}
    data = _profile([table], [inserting], operations=4, clients=1)
    (cell,) = make_cells(parse_profile(data))
    least = least_pages_of(cell)["hot"]
    assert least == {"heap_pages": pages, "index_pages": 2 if table["rows"] else 1}
    found = _predicted(data)
    assert isinstance(found.heap_pages, int)
    assert found.heap_pages >= pages
    assert pages == 1 or found.heap_pages <= pages + 1, "four rows have come"


def test_what_gives_pages_back_is_not_held_to_them() -> None:
    """VACUUM truncates a heap, and not a B-tree; other commands write both anew."""

    def least(**run: Any) -> dict[str, Any]:
        (cell,) = make_cells(parse_profile(_profile([_table("hot", 2000)], [UPDATE], **run)))
        return dict(least_pages_of(cell))

    def of(do: str) -> list[Json]:
        return [{"do": do, "table": "hot", "at_frac": 0.5}]

    assert least(maintenance=of("analyze")) == {"hot": {"heap_pages": 9, "index_pages": 2}}
    assert least(maintenance=of("vacuum")) == {"hot": {"index_pages": 2}}
    assert least(server={"autovacuum": True}) == {"hot": {"index_pages": 2}}
    assert least(maintenance=of("truncate")) == {}


def test_a_run_with_fewer_pages_is_believed() -> None:
    """The twin's runs win over what is certain: none of them lies outside."""
    small, large = (_predicted(_profile([_table("hot", n)], [UPDATE], clients=1)) for n in (9, 900))
    found = spread([small, large], clients=4, major=18, least={"hot": {"heap_pages": 50}})
    pages = found.by_table["hot"].heap_pages
    assert isinstance(pages, Interval)
    assert pages.low <= 1


@pytest.mark.parametrize("path", sorted(PROFILES.glob("*.toml"))[::8], ids=lambda path: path.stem)
def test_the_twin_has_no_fewer(path: Path) -> None:
    """Of recorded profiles, at the end of a run."""
    profile = read_profile(path)
    (cell,) = make_cells(profile)
    (predicted,) = predict(profile).cells
    for name, least in least_pages_of(cell).items():
        for key, pages in least.items():
            value = predicted.predicted.by_table[name].value(key)
            assert pages <= (value.low if isinstance(value, Interval) else value or 0), (name, key)
