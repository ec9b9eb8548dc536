"""Tables that migrations have changed: what is said of a row is what its next UPDATE writes."""

from __future__ import annotations

import json
from typing import Any

import observed
import pytest
from page_file import Item, read_pages

from pgheadroom.api import predict
from pgheadroom.cli.app import run
from pgheadroom.layout import of_profile
from pgheadroom.servers import Cluster, Host, ServerPrograms
from pgheadroom.types import Interval

pytestmark = pytest.mark.usefixtures("run_parent")

ROWS = 3000
MIGRATIONS = f"""
CREATE TABLE either (id int NOT NULL, a bigint, b text, gone text, c int);
INSERT INTO either SELECT i, i, 'b' || i, repeat('g', 40), i FROM generate_series(1, {ROWS}) i;
ALTER TABLE either DROP COLUMN gone;
ALTER TABLE either ADD COLUMN d bigint NOT NULL DEFAULT 7;
ALTER TABLE either ADD COLUMN e text NOT NULL DEFAULT 'twenty characters ok';
CREATE TABLE nine (c1 int NOT NULL, c2 int NOT NULL, c3 int NOT NULL, c4 int NOT NULL,
    c5 int NOT NULL, c6 int NOT NULL, c7 int NOT NULL, c8 int, c9 int);
INSERT INTO nine SELECT i, i, i, i, i, i, i, nullif(i % 4, 0), i FROM generate_series(1, {ROWS}) i;
ALTER TABLE nine DROP COLUMN c9;
CREATE TABLE fast (id int NOT NULL, x text NOT NULL);
INSERT INTO fast SELECT i, 'x' FROM generate_series(1, {ROWS}) i;
ALTER TABLE fast ADD y bigint NOT NULL DEFAULT 1, ADD z text NOT NULL DEFAULT repeat('z', 50);
CREATE TABLE out_of_line (id int NOT NULL, gone int, long text, b text NOT NULL);
ALTER TABLE out_of_line ALTER long SET STORAGE EXTERNAL;
INSERT INTO out_of_line SELECT i, i, repeat('l', 3000), 'abc' FROM generate_series(1, {ROWS}) i;
ALTER TABLE out_of_line DROP COLUMN gone;
VACUUM ANALYZE
"""
VIRTUAL = f"""
CREATE TABLE computed (id int NOT NULL, a int, b text GENERATED ALWAYS AS ('a long word' || a));
INSERT INTO computed SELECT i, i FROM generate_series(1, {ROWS}) i;
VACUUM ANALYZE
"""
DROPPED = {"either": 1, "nine": 1, "fast": 0, "out_of_line": 1, "computed": 0}
ADDED = {"either": ["d", "e"], "fast": ["y", "z"]}


def _items(cluster: Cluster, table: str) -> list[Item]:
    with cluster.connect() as connection:
        connection.execute("CHECKPOINT")
        (path,) = connection.execute("SELECT pg_relation_filepath(%s)", (table,)).fetchall()[0]
    pages = read_pages(cluster.data_dir / path)
    return [item for page in pages for item in page.normal_items]


def _by_name(layout: dict[str, Any]) -> dict[str, Any]:
    return {table["name"]: table for table in layout["tables"]}


@pytest.mark.each
def test_a_row_is_as_long_as_its_next_update_makes_it(
    programs: ServerPrograms, capsys: pytest.CaptureFixture[str]
) -> None:
    """
    Dropped columns count in the header of new rows; added ones are not in old rows yet.

    A sample took the dropped values of old rows for theirs, gave missing values the long header
    that the catalogue has, and the row that was laid out had no bitmap for its dropped columns.
    """
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        observed.load(cluster, MIGRATIONS)
        names = [name for name in DROPPED if name != "computed" or programs.version.major >= 18]
        if "computed" in names:
            observed.load(cluster, VIRTUAL)
        old = {name: _items(cluster, name) for name in names}
        target = observed.conninfo(cluster)
        assert run(["layout", target, "-f", "json"]) == 0
        live = _by_name(json.loads(capsys.readouterr().out))
        assert run(["layout", target]) == 0
        shown = " ".join(capsys.readouterr().out.split())
        profile = observed.profile_of(observed.watched(cluster))
        again = _by_name(json.loads(json.dumps(of_profile(profile, None).to_json())))
        for name in names:
            column = "id" if name != "nine" else "c1"
            observed.load(cluster, f"UPDATE {name} SET {column} = {column}; VACUUM {name}")
        new = {name: _items(cluster, name) for name in names}
        observed.load(cluster, "VACUUM FULL nine")
        with cluster.connect() as connection:
            size = connection.execute("SELECT pg_relation_size('nine') / 8192").fetchone()
    assert size is not None
    (nine,) = (table for table in profile.tables if table.name == "nine")
    assert [c.null_frac for c in nine.columns if c.name.startswith("........pg.dropped")] == [1]
    (cell,) = predict(profile).cells
    foreseen = cell.predicted.by_table["nine"].heap_pages
    assert isinstance(foreseen, Interval)
    assert foreseen.mid == pytest.approx(size[0], abs=1)
    for name in names:
        assert len(new[name]) == ROWS
        mean = sum(item.lp_len for item in new[name]) / ROWS
        hoffs = {item.data[22] for item in new[name]}
        for found in (live[name], again[name]):
            tolerance = 0.01 if name != "out_of_line" else 4  # there values are not aligned
            measured = found["measured"]["tuple_bytes"]["mean"]
            assert measured == pytest.approx(mean, abs=tolerance), name
            assert hoffs == {found["hoff_bytes"]}, name
            if name != "out_of_line":
                assert found["computed"]["tuple_bytes"] == pytest.approx(mean, abs=1), name
            assert found["dropped_columns"] == DROPPED[name]
            assert found["added_columns"] == ADDED.get(name, [])
    # The pages that old rows lie on are still those of old rows.
    assert {item.lp_len for item in old["fast"]} == {30}
    assert {item.data[22] for item in new["nine"]} == {32}
    assert {item.lp_len for item in old["either"]} != {item.lp_len for item in new["either"]}
    assert "columns that were dropped (1) are NULL in it" in shown
    assert "Rows from before y, z came lack them" in shown


def test_free_room_is_not_told_from_rows_that_lack_values(programs: ServerPrograms) -> None:
    """Where rows lie with dropped values their lengths say how full pages are; else nothing."""
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        observed.load(cluster, MIGRATIONS)
        profile = observed.profile_of(observed.watched(cluster))
    rooms = {
        table.name: [found for found in table.observed.free_space or () if found.source == "rows"]
        for table in profile.tables
        if table.observed is not None
    }
    assert rooms["fast"] == rooms["either"] == []
    (full,) = rooms["nine"]
    # Filled by one INSERT: but for the last, no page has room for another row.
    assert sum(pages for room, pages in full.classes if room > 0) <= 1
