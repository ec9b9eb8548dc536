"""
Where a session goes on to insert when a table is analyzed beside it: on a server and in the twin.

`prove` of Synapse's tables had 3 % more WAL than the server: an ANALYZE of one table made the twin
begin anew in all of them, on pages that had no image yet. The server tells sessions of the one.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from pgheadroom import _core
from pgheadroom.profile import parse_profile, to_json
from pgheadroom.servers import Host, ServerPrograms

pytestmark = pytest.mark.usefixtures("run_parent")

DDL = """
CREATE TABLE other (id int4, f char(500));
INSERT INTO other SELECT i, 'f' FROM generate_series(1, 100) i;
CREATE TABLE filled (id int4, f char(500));
INSERT INTO filled SELECT i, 'f' FROM generate_series(1, 1500) i;
DELETE FROM filled WHERE id % 2 = 0;
VACUUM ANALYZE
"""


@pytest.mark.each
def test_a_session_goes_on_beside_the_analyze_of_another_table(programs: ServerPrograms) -> None:
    """The page where it inserted last is forgotten with its own table's statistics alone."""
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off", "fsync": "off"})
        with cluster.connect() as session, cluster.connect() as beside:
            for statement in DDL.split(";"):
                session.execute(statement.encode())

            def block() -> int:
                row = session.execute(
                    "INSERT INTO filled VALUES (1, 'f') RETURNING (ctid::text::point)[0]"
                ).fetchone()
                assert row is not None
                return int(row[0])

            first = block()
            beside.execute("INSERT INTO other SELECT i, 'f' FROM generate_series(1, 900) i")
            beside.execute("ANALYZE other")
            assert block() == first
            beside.execute("DELETE FROM filled WHERE id % 3 = 0")
            beside.execute("ANALYZE filled")
            assert block() != first


def test_so_it_does_in_the_twin() -> None:
    """Another table's ANALYZE changes nothing, its own where inserts go on, and so the images."""
    kinds = [{"pages_frac": 0.5, "rows": 4}, {"pages_frac": 0.5, "rows": 12}]
    tables: list[dict[str, Any]] = [
        {
            "name": name,
            "rows": 400,
            "columns": [{"name": "id", "type": "int4"}, {"name": "f", "type": "bpchar(500)"}],
            "indexes": [{"name": f"{name}_pkey", "columns": ["id"], "unique": True}],
            "pages": kinds,
        }
        for name in ("filled", "other")
    ]
    data = {
        "schema_version": 1,
        "server": {"autovacuum": True},
        "table": tables,
        "operation": [{"table": "filled", "kind": "insert"}],
        "run": {"operations": 100},
    }
    profile = json.dumps(to_json(parse_profile(data)))

    def images(*events: tuple[float, str, str | None]) -> int:
        played = _core.simulate(profile, "18.4", events=list(events))
        return sum(table.wal_fpi for table in played.tables)

    alone = images()
    assert images((0.43, "autoanalyze", "other")) == alone
    assert images((0.43, "autoanalyze", None)) == alone
    assert images((0.43, "autoanalyze", "filled")) == alone + 1
