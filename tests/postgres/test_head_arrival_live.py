"""A queue's head asks on its arrival whether others hold a row, by a snapshot from before."""

from __future__ import annotations

import threading

import observed
import psycopg
import pytest

from pgheadroom.servers import Cluster, Host, ServerPrograms

pytestmark = pytest.mark.usefixtures("run_parent")

_DDL = """
CREATE TABLE t (k int PRIMARY KEY, v int);
INSERT INTO t SELECT i, 0 FROM generate_series(1, 3) i;
CREATE FUNCTION gate(int) RETURNS bool VOLATILE LANGUAGE sql
    AS 'SELECT pg_advisory_xact_lock_shared(7) IS NOT NULL'
"""
_HEAD = (
    b"UPDATE t SET v = v + 1 WHERE k = "
    b"(SELECT k FROM t WHERE gate(k) ORDER BY k LIMIT 1 FOR UPDATE SKIP LOCKED)"
)
_AT_THE_GATE = "SELECT count(*) > 0 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
_FAILS = "could not serialize access due to concurrent update"


def _head_beside(cluster: Cluster, change: str, end: str, isolation: str) -> str | None:
    """
    Update the head while another session ends its change of row 1: the error, if there is one.

    The statement has its snapshot when it stands at the gate, where it has found row 1 and not
    locked it yet.
    """
    failed: list[str] = []
    with cluster.connect() as other, cluster.connect() as ours:
        other.execute("SELECT pg_advisory_lock(7)")
        other.execute("BEGIN")
        other.execute(change.encode())

        def update() -> None:
            ours.execute(f"BEGIN ISOLATION LEVEL {isolation}".encode())
            try:
                ours.execute(_HEAD)
                ours.execute("COMMIT")
            except psycopg.Error as error:
                failed.append(str(error))
                ours.execute("ROLLBACK")

        thread = threading.Thread(target=update)
        thread.start()
        try:
            observed.wait_until(cluster, _AT_THE_GATE, "the statement is at the gate")
            other.execute(end.encode())
        finally:
            other.execute("SELECT pg_advisory_unlock(7)")
            thread.join()
    return failed[0] if failed else None


@pytest.mark.parametrize("isolation", ["READ COMMITTED", "REPEATABLE READ"])
def test_the_head_is_what_it_is_on_arrival(programs: ServerPrograms, isolation: str) -> None:
    """What the twin does (`a_queues_head_*`, tests/sessions.rs): nothing of it is passed over."""
    update, delete = "UPDATE t SET v = v + 10 WHERE k = 1", "DELETE FROM t WHERE k = 1"
    fails = isolation == "REPEATABLE READ"
    expected = {
        (update, "COMMIT"): [(1, 10 if fails else 11), (2, 0), (3, 0)],
        (update, "ROLLBACK"): [(1, 1), (2, 0), (3, 0)],
        (delete, "COMMIT"): [(2, 0 if fails else 1), (3, 0)],
    }
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        for (change, end), rows in expected.items():
            observed.load(cluster, f"DROP TABLE IF EXISTS t; DROP FUNCTION IF EXISTS gate; {_DDL}")
            error = _head_beside(cluster, change, end, isolation)
            assert (error == _FAILS) == (fails and end == "COMMIT"), (change, end, error)
            with cluster.connect() as connection:
                found = connection.execute("SELECT k, v FROM t ORDER BY k").fetchall()
            assert found == rows, (change, end)
