"""A reset of one table's statistics, which sets the database's time, is told from one of all."""

from __future__ import annotations

import pytest
from doctor_sides import run
from test_doctor_rules import asked, until

from pgheadroom.servers import Cluster, Host, ServerPrograms
from pgheadroom.sources.since import is_partly_reset

pytestmark = [pytest.mark.usefixtures("run_parent"), pytest.mark.each]

OTHERS = (
    b"SELECT count(*) FROM pg_stat_activity"
    b" WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
)


def is_partly(cluster: Cluster) -> bool:
    return bool(asked(cluster, "SELECT " + is_partly_reset(cluster.version.major, late_s=0)))


def alone(cluster: Cluster, statement: str) -> None:
    """Done when nobody is left who would tell later what was scanned before."""
    with cluster.connect() as connection:
        until(lambda: connection.execute(OTHERS).fetchone() == (0,), "all others are gone")
        connection.execute(statement.encode())


def test_what_later_vacuums_hide(programs: ServerPrograms) -> None:
    """Vacuumed since or not, by hand: scans tell from 16 on, the tables' own times from 19 on."""
    one = "SELECT pg_stat_reset_single_table_counters('t'::regclass)"
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        run(cluster, "postgres", "CREATE TABLE t (v int);\nCREATE TABLE u (v int);\nVACUUM ANALYZE")
        assert not is_partly(cluster)
        alone(cluster, one)
        assert is_partly(cluster)
        run(cluster, "postgres", "VACUUM ANALYZE")
        assert is_partly(cluster) == (programs.version.major >= 16)
        alone(cluster, "SELECT pg_stat_reset()")
        assert not is_partly(cluster)
        run(cluster, "postgres", "VACUUM ANALYZE")
        assert not is_partly(cluster)
        alone(cluster, one)
        assert is_partly(cluster)
