"""The laboratory's engine `clustered_heap` on servers, and the twin's model of it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sandbox import built_once

from cluster_decay import decay, without_others
from pgheadroom.errors import UnsupportedServer
from pgheadroom.extension import lacking, objects_sql
from pgheadroom.outcome import KEYS
from pgheadroom.play import play
from pgheadroom.play import run as play_run
from pgheadroom.play.load import load
from pgheadroom.predict import predict
from pgheadroom.profile import Profile, parse_profile
from pgheadroom.servers import Host, ServerPrograms


def test_the_model_has_the_extensions_pages(
    extended: ServerPrograms, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    With the server's random numbers the twin chooses the extension's page for every row.

    So pages of the table and of ranges are equal to the unit in every round, where nobody else
    holds a page while VACUUM wants it.
    """
    without_others(monkeypatch)
    result = decay(
        str(extended.bin_dir),
        tmp_path / "record",
        "engine=clustered_heap,clustered",
        "round=0..6",
        "ranges=10",
    )
    cells = {(cell["engine"], cell["round"]): cell for cell in result["cells"]}
    assert len(cells) == 14
    for number in range(7):
        measured, model = cells["clustered_heap", number], cells["clustered", number]
        for name in ("pages_per_range", "heap_pages", "index_pages"):
            assert model[name] == measured[name], (number, name)
        assert measured["predicted_pages_per_range"] == measured["pages_per_range"]
        assert measured["predicted_heap_pages"] == measured["heap_pages"]
        assert model["range_ms"] is None
    # Placed, not appended: 20 rows of a range are replaced in each round.
    fresh, worn = cells["clustered_heap", 0], cells["clustered_heap", 6]
    assert worn["pages_per_range"] < 1.2 * fresh["pages_per_range"]
    assert "nothing ran" in result["assumed"]["engine clustered"]


ID, NUMBER = {"name": "id", "type": "int4"}, {"name": "n", "type": "int4"}
OWNER = {"name": "owner", "type": "int4", "values": {"kind": "random", "ndistinct": 500}}
NOTE = {"name": "note", "type": "text", "width": {"min_bytes": 20, "max_bytes": 300}}
FILLER = {"name": "filler", "type": "bpchar(200)"}
UNIFORM = {"distribution": "uniform"}
GROWS = {"note": {"grows_bytes": {"min": 4, "max": 12}}}


def _table(name: str, *columns: dict[str, Any], by: str = "id") -> dict[str, Any]:
    index = {"name": f"{name}_by", "columns": [by], "unique": by == "id"}
    return {"name": name, "rows": 3000, "columns": [*columns], "indexes": [index]}


PROFILE: dict[str, Any] = {
    "schema_version": 1,
    "table": [
        _table("changing", ID, NUMBER, FILLER),
        _table("growing", ID, NUMBER, NOTE),
        _table("owned", ID, OWNER, NUMBER, FILLER, by="owner"),
    ],
    "operation": [
        {"table": "changing", "kind": "update", "sets": ["n"], "pick": UNIFORM},
        {"table": "changing", "kind": "delete", "pick": UNIFORM},
        {"table": "changing", "kind": "upsert", "sets": ["n"], "pick": UNIFORM, "weight": 2},
        {"table": "growing", "kind": "update", "sets": GROWS, "pick": UNIFORM, "weight": 2},
        {"table": "owned", "kind": "insert", "weight": 2},
    ],
    "run": {"operations": 8000},
}


def test_every_figure_of_a_run_is_the_extensions(
    extended: ServerPrograms, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    The twin has the server's counters, pages and WAL of each table, to the byte.

    Versions leave their page, upserts insert and update, rows grow, and many have one key.
    """

    def load_clustered(connection: psycopg.Connection[Any], profile: Profile) -> None:
        connection.execute("CREATE EXTENSION clustered_heap")
        connection.execute("SET default_table_access_method = clustered_heap")
        load(connection, profile)
        for table in profile.tables:
            index = table.indexes[0].name
            connection.execute(f"ALTER TABLE {table.name} CLUSTER ON {index}".encode())

    monkeypatch.setattr(play_run, "load", load_clustered)
    profile = parse_profile(PROFILE)
    measured = play(profile, server=str(extended.bin_dir)).measured
    version = str(extended.version)
    heap, clustered = (
        predict(profile, server=version, engine=engine).cells[0].predicted
        for engine in ("heap", "clustered")
    )
    for name, table in measured.by_table.items():
        for key in KEYS:
            assert clustered.by_table[name].value(key) == table.value(key), (name, key)
        assert any(heap.by_table[name].value(key) != table.value(key) for key in KEYS), name
    assert clustered.wal_bytes == measured.wal_bytes


def test_a_server_of_ours_has_it_without_installing(programs: ServerPrograms) -> None:
    """The statements name the library by its path; nothing is put into the server's folders."""
    problem = lacking(programs)
    if problem is not None:
        pytest.skip(f"{programs}: {problem}")
    compiled = built_once(programs).files[0].source.parent
    with Host(programs) as host:
        folder = host.folder / "clustered_heap"
        shutil.copytree(compiled, folder)
        cluster = host.cluster("main")
        cluster.start({})
        with cluster.connect() as session:
            session.execute(objects_sql(programs, folder))
            session.execute("CREATE TABLE t (k int) USING clustered_heap")
            session.execute("INSERT INTO t VALUES (1)")
            assert session.execute("SELECT count(*) FROM pg_extension").fetchone() == (1,)


def test_a_borrowed_server_is_told_how_to_get_it(programs: ServerPrograms, tmp_path: Path) -> None:
    """Into somebody's server nothing is loaded that was not installed there."""
    if "clustered_heap" in programs.contrib:
        pytest.skip("installed there")
    with Host(programs) as host:
        cluster = host.cluster("borrowed")
        cluster.start({})
        place = cluster.client_env()
        lent = (
            f"host={place['PGHOST']} port={place['PGPORT']} user={place['PGUSER']} dbname=postgres"
        )
        with pytest.raises(UnsupportedServer, match="install the extension"):
            decay(lent, tmp_path / "record", "engine=clustered_heap", "round=0,1")
