"""An upsert whose row comes to be there after it has looked inserts one, kills it and updates."""

from __future__ import annotations

import threading

import observed
import pytest

from pgheadroom.play.wal_source import WalSource
from pgheadroom.servers import Host, ServerPrograms

pytestmark = pytest.mark.usefixtures("run_parent")

# The gate stands in an index that has its entries before that of the key: the row is in the heap
# then, and the other one's was not there when the upsert looked for it.
_GATE = b"""
CREATE FUNCTION gate(int) RETURNS int IMMUTABLE LANGUAGE plpgsql
    AS 'BEGIN PERFORM pg_advisory_xact_lock_shared(7); RETURN $1; END'
"""
_DDL = """
CREATE TABLE t (k int NOT NULL, v int NOT NULL, f char(100) NOT NULL);
CREATE INDEX t_v ON t (gate(v));
CREATE UNIQUE INDEX t_k ON t (k)
"""
_UPSERT = b"INSERT INTO t VALUES (1, 10, 'x') ON CONFLICT (k) DO UPDATE SET v = t.v + 1"
_AT_THE_GATE = "SELECT count(*) > 0 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
_POSITION = b"SELECT pg_current_wal_insert_lsn()::text"
_RELATIONS = b"""
    SELECT format('%s/%s/%s', t.oid, d.oid, pg_relation_filenode(c.oid))
    FROM pg_class c, pg_database d, pg_tablespace t
    WHERE c.relname IN ('t', 't_v', 't_k') AND datname = current_database()
        AND spcname = 'pg_default'
"""
_COUNTERS = b"SELECT n_tup_ins, n_tup_upd, n_tup_del FROM pg_stat_user_tables"
# As the twin has them (`an_upsert_that_comes_too_late_kills_its_row`, tests/upserts.rs).
_RECORDS = {
    "Heap/INSERT+INIT": (1, 164),
    "Heap/INSERT": (1, 164),
    "Heap/DELETE": (1, 54),
    "Heap/LOCK": (1, 54),
    "Heap/UPDATE": (1, 71),
    "Btree/INSERT_LEAF": (6, 6 * 64),
}


def test_it_comes_too_late(programs: ServerPrograms) -> None:
    """The records of the key's table, to the byte, and what is counted."""
    with Host(programs) as host:
        cluster = host.cluster("main")
        settings = {"autovacuum": "off", "full_page_writes": "off", "wal_keep_size": "1GB"}
        cluster.start(settings | {"checkpoint_timeout": "1d"})
        with cluster.connect() as connection:
            connection.execute(_GATE)
        observed.load(cluster, _DDL)
        with cluster.connect() as other, cluster.connect() as ours:
            relations = [row[0] for row in other.execute(_RELATIONS).fetchall()]
            other.execute("SELECT pg_advisory_lock(7)")
            start = other.execute(_POSITION).fetchall()[0][0]
            upsert = threading.Thread(target=lambda: ours.execute(_UPSERT))
            upsert.start()
            try:
                observed.wait_until(cluster, _AT_THE_GATE, "the upsert is at the gate")
                other.execute("INSERT INTO t VALUES (1, 0, 'y')")
            finally:
                other.execute("SELECT pg_advisory_unlock(7)")
                upsert.join()
            end = other.execute(_POSITION).fetchall()[0][0]
            assert other.execute("SELECT k, v FROM t").fetchall() == [(1, 1)]
            source = WalSource(host, cluster, other)
            wal = source.read(start, end, dict.fromkeys(relations, "t"))
        counted = "SELECT n_tup_ins = 2 FROM pg_stat_user_tables"
        observed.wait_until(cluster, counted, "both rows are counted")
        with cluster.connect() as other:
            assert other.execute(_COUNTERS).fetchall() == [(2, 1, 1)]
    found = {name: sums for name, sums in wal.by_record.items() if name in _RECORDS}
    assert {name: (sums.records, sums.bytes) for name, sums in found.items()} == _RECORDS
    assert "Heap/HEAP_CONFIRM" not in wal.by_record
