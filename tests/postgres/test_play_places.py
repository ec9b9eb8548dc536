"""Relation files after a run, and WAL by way of pg_walinspect, on real servers."""

from __future__ import annotations

from typing import Any

import pytest

from pgheadroom.play import play
from pgheadroom.play.wal_source import WalSource
from pgheadroom.play.waldump import WindowWal, sum_wal
from pgheadroom.play.walinspect import is_available, read_walinspect
from pgheadroom.profile import parse_profile
from pgheadroom.servers import Host, ServerPrograms

pytestmark = [pytest.mark.contrib, pytest.mark.usefixtures("run_parent")]

PROFILE: dict[str, Any] = {
    "schema_version": 1,
    "server": {"shared_buffers": "64MB", "full_page_writes": False},
    "table": [
        {
            "name": "t",
            "rows": 1000,
            "columns": [
                {"name": "id", "type": "int4"},
                {"name": "p", "type": "text", "width": {"min_bytes": 3000, "max_bytes": 3000}},
            ],
            "indexes": [{"name": "t_pkey", "columns": ["id"], "unique": True}],
        }
    ],
    "operation": [
        {"table": "t", "kind": "delete", "pick": {"distribution": "stride", "n": 3}},
    ],
    "run": {"operations": 300},
}


def test_places_of_every_fork(programs: ServerPrograms) -> None:
    """A row is gone from exactly one line pointer a delete; TOAST and maps are read as well."""
    played = play(parse_profile(PROFILE), server=str(programs.bin_dir), with_places=True)
    places = played.places
    assert places is not None
    assert set(places) == {
        "t:main",
        "t:fsm",
        "t:vm",
        "t_pkey:main",
        "t.toast:main",
        "t.toast:fsm",
        "t.toast:vm",
        "t.toast.index:main",
    }
    assert len(places["t:main"]) == played.measured.heap_pages
    assert len(places["t_pkey:main"]) == played.measured.index_pages
    lines = "".join(places["t:main"]).splitlines()
    tuples = [line for line in lines if " normal " in line]
    deleted = [line for line in tuples if "xmax=-" not in line]
    pruned = [line for line in lines if line.endswith(" dead")]
    assert len(deleted) + len(pruned) == played.measured.n_tup_del == 300
    assert len(tuples) + len(pruned) == 1000
    for name, (records, _, _) in played.by_record.items():
        if name.startswith("Transaction"):
            assert records == 300


def test_two_ways_to_read_wal(programs: ServerPrograms) -> None:
    """Where a server has both programs, both sources give the same sums, images included."""
    if not programs.has("pg_waldump"):
        pytest.skip(f"{programs} has no pg_waldump")
    with Host(programs, label="test") as host:
        cluster = host.cluster("wal")
        cluster.start({"autovacuum": "off", "wal_keep_size": "1GB", "checkpoint_timeout": "1d"})
        with cluster.connect() as connection:
            if not is_available(connection):
                pytest.skip(f"{programs} has no pg_walinspect")
            connection.execute("CREATE EXTENSION pg_walinspect")
            connection.execute("CREATE TABLE t (id int PRIMARY KEY, p text)")
            connection.execute("INSERT INTO t SELECT i, 'x' FROM generate_series(1, 3000) i")
            connection.execute("VACUUM t")
            connection.execute("CHECKPOINT")
            oid = "SELECT format('%s/%s/%s', t.oid, d.oid, pg_relation_filenode(%s::text)) "
            where = "FROM pg_database d, pg_tablespace t WHERE datname = current_database() "
            default = "AND spcname = 'pg_default'"
            query = (oid.replace("%s/%s/%s", "%%s/%%s/%%s") + where + default).encode()
            rows = [connection.execute(query, (name,)).fetchone() for name in ("t", "t_pkey")]
            table_of = {row[0]: "t" for row in rows if row is not None}
            position = "SELECT pg_current_wal_insert_lsn()::text"
            start = connection.execute(position).fetchall()[0][0]
            connection.execute("UPDATE t SET p = 'y' WHERE id % 3 = 0")
            connection.execute("DELETE FROM t WHERE id % 5 = 0")
            connection.execute("VACUUM t")
            end = connection.execute(position).fetchall()[0][0]
            connection.execute("CHECKPOINT")
            source = WalSource(host, cluster, connection)
            by_waldump = source.read(start, end, table_of)
            by_walinspect = sum_wal(read_walinspect(connection, start, end), table_of)
        cluster.stop()
    assert by_waldump == by_walinspect
    _is_rich(by_waldump)


def _is_rich(wal: WindowWal) -> None:
    """The window has images, and blocks of every fork."""
    assert wal.tables["t"].fpi_bytes > 0
    assert {fork for _, fork, _ in wal.tables["t"].blocks} >= {"main", "vm"}
