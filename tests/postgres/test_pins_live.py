"""Which heap page a session keeps pinned after a prepared statement: docs/postgresql-19.md."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from pgheadroom.servers import Host, ServerPrograms

PINS = """
SELECT count(*) FROM pg_buffercache
WHERE relfilenode = pg_relation_filenode('t') AND relforknumber = 0 AND pinning_backends > 0
"""
SCANS = {
    "index": {"enable_seqscan": "off", "enable_bitmapscan": "off"},
    "sequential": {"enable_indexscan": "off", "enable_bitmapscan": "off"},
    "bitmap": {"enable_seqscan": "off", "enable_indexscan": "off"},
}
STATEMENTS = {
    "SELECT * FROM t WHERE id = %s": True,
    "SELECT * FROM t WHERE id = %s AND n = 5": True,
    "SELECT * FROM t WHERE id = %s FOR UPDATE": True,
    "SELECT * FROM t WHERE id = %s FOR SHARE": True,
    "UPDATE t SET v = v + 1 WHERE id = %s": False,
    "DELETE FROM t WHERE id = %s": False,
}
"""By statement, whether its portal is still there when it has ended."""


@pytest.mark.each
@pytest.mark.minors
@pytest.mark.contrib
def test_a_portal_keeps_the_page_of_its_scan(programs: ServerPrograms) -> None:
    """Until the session's next statement: of an index scan from 19 on, of a bitmap's up to 17."""
    keeping = {"index": range(19, 99), "bitmap": range(18), "sequential": ()}
    with Host(programs) as host:
        cluster = host.cluster("main")
        # Whoever writes a page has it pinned for a moment.
        cluster.start({"autovacuum": "off", "fsync": "off", "bgwriter_lru_maxpages": "0"})
        with cluster.connect() as monitor, cluster.connect() as connection:
            if not monitor.execute(
                "SELECT 1 FROM pg_available_extensions WHERE name = 'pg_buffercache'"
            ).fetchone():
                pytest.skip(f"{programs} has no pg_buffercache")
            monitor.execute("CREATE EXTENSION pg_buffercache")
            monitor.execute("CREATE TABLE t (id int PRIMARY KEY, n int, v int)")
            monitor.execute("INSERT INTO t SELECT i, 0, 0 FROM generate_series(1, 200) i")
            monitor.execute("VACUUM ANALYZE t")
            monitor.execute("CHECKPOINT")
            connection.prepare_threshold = 0
            for scan, settings in SCANS.items():
                for name, value in settings.items():
                    connection.execute(f"SET {name} = {value}".encode())
                for statement, has_portal in STATEMENTS.items():
                    keeps = has_portal and programs.version.major in keeping[scan]
                    with connection.transaction(force_rollback=True):
                        connection.execute(statement.encode(), (5,))
                        assert _pins(monitor) == int(keeps), (scan, statement)
                        connection.execute("SELECT %s::int", (1,))
                        assert _pins(monitor) == 0
                connection.execute("RESET ALL")


def _pins(connection: psycopg.Connection[Any]) -> int:
    row = connection.execute(PINS.encode()).fetchone()
    assert row is not None
    return int(row[0])
