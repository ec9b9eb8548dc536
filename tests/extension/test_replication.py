"""Standbys, subscribers and prepared transactions of tables that are kept in order."""

from __future__ import annotations

import psycopg
import pytest
from test_writers import check, make

from pgheadroom.servers import Cluster, Host, ServerPrograms

Session = psycopg.Connection[tuple[object, ...]]

SHORT_AND_LONG = [
    pytest.param("heap", marks=pytest.mark.long(reason="repeats by the trigger")),
    "clustered_heap",
]
LATECOMERS = """
INSERT INTO t SELECT g * 7919 % 500009, 1, repeat('x', 200) FROM generate_series(1, 3000) g
"""


def one(session: Session, query: str) -> object:
    row = session.execute(query).fetchone()
    assert row is not None
    return row[0]


def wait_until(session: Session, condition: str) -> None:
    """Ask again and again; a server that never gets there ends the test by its time limit."""
    while one(session, condition) is not True:
        pass


@pytest.mark.parametrize("method", SHORT_AND_LONG)
def test_standby_is_promoted(extended: ServerPrograms, method: str) -> None:
    """A standby replays plain heap's records; promoted in the middle, it goes on placing rows."""
    settings = {"wal_level": "replica", "max_prepared_transactions": "5", "jit": "off"}
    with Host(extended) as host:
        primary = host.cluster("primary")
        standby = host.copy(primary, "standby")
        primary.start(settings)
        # From the same, empty beginning: the primary has kept all of its WAL since then.
        (standby.data_dir / "standby.signal").touch()
        socket = primary.client_env()["PGHOST"]
        source = f"host={socket} port={primary.port} user=postgres"
        standby.start(settings | {"primary_conninfo": source, "hot_standby": "on"})
        with primary.connect() as session, standby.connect() as other:
            session.execute("CREATE EXTENSION clustered_heap")
            make(session, method)
            session.execute(LATECOMERS)
            session.execute("CREATE UNLOGGED TABLE unlogged (k int CONSTRAINT u PRIMARY KEY)")
            session.execute("BEGIN")
            session.execute("INSERT INTO t SELECT g, 2, 'p' FROM generate_series(1, 5000, 7) g")
            session.execute("PREPARE TRANSACTION 'later'")
            end = one(session, "SELECT pg_current_wal_insert_lsn()")
            session.execute("SELECT pg_switch_wal()")
            wait_until(other, f"SELECT pg_last_wal_replay_lsn() >= '{end}'")
            assert one(other, "SELECT count(*) FROM t") == 8000
            quality = "SELECT cluster_quality('t')::text"
            assert one(other, quality) == one(session, quality)
            with pytest.raises(psycopg.errors.FeatureNotSupported, match="during recovery"):
                other.execute("SELECT cluster_quality('unlogged', 'u')")
            # What the primary is in the middle of is lost with it.
            busy = primary.connect()
            busy.execute("BEGIN")
            busy.execute(LATECOMERS)
            primary.stop("immediate")
            busy.close()
            assert one(other, "SELECT pg_promote()") is True
            assert one(other, "SELECT count(*) FROM t") == 8000
            other.execute("COMMIT PREPARED 'later'")
            assert one(other, "SELECT count(*) FROM t") == 8715
            other.execute(LATECOMERS)
            check(other)
            assert one(other, "SELECT count(*) FROM t") == 11715
            near = "SELECT pages_per_1000 < 2 * pages_per_1000_ideal FROM cluster_quality('t')"
            assert one(other, near) is True


@pytest.mark.parametrize("method", SHORT_AND_LONG)
def test_subscriber(extended: ServerPrograms, method: str) -> None:
    """
    A subscriber's table is placed by its access method, or by a trigger that is ENABLE ALWAYS.

    Without ALWAYS a trigger does not fire there, as PostgreSQL has it for all triggers.
    """
    settings = {"wal_level": "logical", "jit": "off"}
    with Host(extended) as host:
        cluster: Cluster = host.cluster("main")
        cluster.start(settings)
        with cluster.connect() as maker:
            maker.execute("CREATE DATABASE subscriber")
        with cluster.connect() as session, cluster.connect("subscriber") as other:
            session.execute("CREATE TABLE t (k int, writer int, v text)")
            other.execute("CREATE EXTENSION clustered_heap")
            make(other, method)
            if method == "heap":
                other.execute("ALTER TABLE t ENABLE ALWAYS TRIGGER place")
            session.execute("CREATE PUBLICATION p FOR TABLE t WITH (publish = 'insert')")
            session.execute("SELECT pg_create_logical_replication_slot('s', 'pgoutput')")
            socket = cluster.client_env()["PGHOST"]
            source = f"host={socket} port={cluster.port} user=postgres dbname=postgres"
            other.execute(
                f"CREATE SUBSCRIPTION s CONNECTION '{source}' PUBLICATION p "
                "WITH (create_slot = false, copy_data = false)"
            )
            session.execute(LATECOMERS)
            wait_until(other, "SELECT count(*) = 8000 FROM t")
            near = "SELECT pages_per_1000 < 2 * pages_per_1000_ideal FROM cluster_quality('t')"
            assert one(other, near) is True
            check(other)
            other.execute("DROP SUBSCRIPTION s")
