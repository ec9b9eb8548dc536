"""What the first read after an INSERT writes, and what VACUUM has left to do: 18 beside 19."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from log_tools import position

from pgheadroom.servers import Host, ServerPrograms

PAGES = 1539
FIRST_READ = {18: (1539, 67_716), 19: (3077, 159_996)}
"""Records and bytes of WAL, as docs/postgresql-19.md has them."""


@pytest.mark.minors
@pytest.mark.pg(">= 18")
def test_the_first_read_pays_for_vacuum(programs: ServerPrograms) -> None:
    """On 19 it sets the visibility map, which 18 leaves to VACUUM."""
    with Host(programs) as host:
        cluster = host.cluster("main")
        settings = {"autovacuum": "off", "full_page_writes": "off", "shared_buffers": "256MB"}
        cluster.start(settings | {"max_parallel_workers_per_gather": "0", "jit": "off"})
        with cluster.connect() as connection:
            connection.execute("CREATE TABLE rows (id int PRIMARY KEY, n int, v text)")
            connection.execute(
                "INSERT INTO rows SELECT g, 0, repeat('x', 80) FROM generate_series(1, 100000) g"
            )
            connection.execute("CHECKPOINT")
            first, second = _read(connection), _read(connection)
            before = position(connection)
            connection.execute("VACUUM rows")
            vacuum_bytes = position(connection) - before
            size = connection.execute("SELECT pg_relation_size('rows')::int / 8192").fetchone()
    assert size == (PAGES,)
    assert first == FIRST_READ[programs.version.major]
    assert second == (0, 0)
    # VACUUM also updates pg_class, and whatever else runs on the server writes a little.
    if programs.version.major == 18:
        assert vacuum_bytes > 40 * PAGES
    else:
        assert vacuum_bytes < 10 * PAGES


def _read(connection: psycopg.Connection[Any]) -> tuple[int, int]:
    query = "EXPLAIN (ANALYZE, WAL, FORMAT JSON) SELECT count(v) FROM rows"
    row = connection.execute(query.encode()).fetchone()
    assert row is not None
    plan = row[0][0]["Plan"]
    return plan.get("WAL Records", 0), plan.get("WAL Bytes", 0)
