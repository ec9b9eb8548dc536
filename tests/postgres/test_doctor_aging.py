"""Rules of the doctor on a server whose ids grow old soon and whose cache is tiny."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from doctor_scenarios import LOG
from doctor_sides import change_many_files, examined, near, run
from test_doctor_rules import asked, burn, only, servers, until

from pgheadroom.doctor import Diagnosis, Finding
from pgheadroom.servers import Cluster, Host
from places import fast_place


@pytest.fixture(scope="module", params=servers())
def aging(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A server on which ids grow old soon, with autovacuum that comes by force alone."""
    parent = Path(tempfile.mkdtemp(prefix="pgh-aging-", dir=fast_place()))
    parent.chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PGHEADROOM_TMPDIR", str(parent))
        with Host(request.param) as host:
            cluster = host.cluster("main")
            cluster.start(
                {
                    "autovacuum": "off",
                    "autovacuum_freeze_max_age": "100000",
                    "autovacuum_multixact_freeze_max_age": "10000",
                    "max_prepared_transactions": "4",
                    "max_connections": "14",
                    "shared_buffers": "128kB",
                    "max_wal_size": "64MB",
                    "min_wal_size": "32MB",
                }
            )
            yield cluster
    shutil.rmtree(parent, ignore_errors=True)


def test_ages(aging: Cluster) -> None:
    """
    Young ids are silent; old ones are told with what is left, and at an interval's rate.

    A prepared transaction keeps autovacuum, which comes by force, from making them young again, and
    a lock keeps it at work on one table while the doctor looks.
    """
    run(
        aging,
        "postgres",
        "CREATE TABLE t (id int);\nINSERT INTO t SELECT generate_series(1, 16000)",
    )
    # As DROP DATABASE leaves it where it is interrupted: its ids hold nobody up.
    run(
        aging,
        "postgres",
        "CREATE DATABASE half_gone;\n"
        "UPDATE pg_database SET datconnlimit = -2 WHERE datname = 'half_gone'",
    )
    rules = ("transaction-ids", "multixact-ids", "wraparound-vacuum")
    for rule in rules:
        assert examined(aging, "postgres", rule).findings == ()
    run(aging, "postgres", "BEGIN;\nINSERT INTO t VALUES (0);\nPREPARE TRANSACTION 'old'")
    try:
        with aging.connect(autocommit=False) as holder:
            holder.execute("LOCK TABLE t IN SHARE UPDATE EXCLUSIVE MODE")
            rate = examined(
                aging, "postgres", "transaction-ids", work=lambda: burn(aging, "postgres", 160_000)
            )
            until(lambda: comes_by_force(aging), "autovacuum comes by force to the table")
            forced = examined(aging, "postgres", "wraparound-vacuum")
        # Those of catalogs come and go beside it.
        found = next(each for each in forced.findings if each.object == "public.t")
        assert found.severity == "info"
        aged = examined(aging, "postgres", "transaction-ids").findings
        _old_ids(rate, aged)
        assert "database half_gone" not in {found.object for found in aged}
        old = locked_by_two(aging).findings
        of_database = [found for found in old if found.object == "database postgres"]
        assert len(of_database) == 1
        assert of_database[0].severity == "warning"
        near(of_database[0].numbers["age_mxids"], 16_000, within=0.05)
    finally:
        run(aging, "postgres", "ROLLBACK PREPARED 'old'")


def test_connections(aging: Cluster) -> None:
    """Eleven are for everybody: nine are few enough, ten are not."""
    with contextlib.ExitStack() as opened:
        for _ in range(9):
            opened.enter_context(aging.connect())
        assert examined(aging, "postgres", "connections-near-limit").findings == ()
        opened.enter_context(aging.connect())
        diagnosis = examined(aging, "postgres", "connections-near-limit")
    found = only(diagnosis.findings, "connections-near-limit", "max_connections")
    assert found is not None
    assert found.severity == "warning"
    assert (found.numbers["used"], found.numbers["usable"]) == (10, 11)


def test_statements_that_sync(aging: Cluster) -> None:
    """Sixteen buffers make a queue of as many files: who writes to more has to sync himself."""
    change_many_files(aging)
    diagnosis = examined(aging, "postgres", "backend-syncs")
    found = only(diagnosis.findings, "backend-syncs", "shared_buffers")
    assert found is not None
    assert found.severity == "warning"
    syncs = found.numbers["syncs"]
    assert isinstance(syncs, int)
    view = "pg_stat_bgwriter" if aging.version.major < 17 else "pg_stat_io"
    counted = "buffers_backend_fsync" if aging.version.major < 17 else "sum(fsyncs)::int8"
    where = "" if aging.version.major < 17 else " WHERE backend_type = 'client backend'"
    assert 100 <= syncs <= asked(aging, f"SELECT {counted} FROM {view}{where}") < 1.1 * syncs


def comes_by_force(cluster: Cluster) -> bool:
    """Each VACUUM asks for autovacuum where ids are old; it does one database at a time."""
    run(cluster, "postgres", "VACUUM pg_am")
    query = """
        SELECT count(*) > 0 FROM pg_stat_activity WHERE backend_type = 'autovacuum worker'
        AND query LIKE '%public.t (to prevent wraparound)%'
    """
    return bool(asked(cluster, query))


def _old_ids(rated: Diagnosis, found: tuple[Finding, ...]) -> None:
    (alone,) = (each for each in found if each.object == "database postgres")
    assert alone.severity == "warning"
    assert alone.price.amount is None, "statistics do not count transaction ids"
    age = alone.numbers["age_xids"]
    assert isinstance(age, int)
    near(age, 160_800, within=0.02)
    assert alone.numbers["left_xids"] == 2**31 - 3_000_000 - age
    (timed,) = (each for each in rated.findings if each.object == "database postgres")
    left = timed.numbers["left_xids"]
    assert isinstance(left, int)
    assert rated.examined.interval_s is not None
    near(timed.price.amount, left / 160_000 * rated.examined.interval_s)
    assert timed.price.unit == "seconds"


def locked_by_two(cluster: Cluster) -> Diagnosis:
    """While 16,000 rows are locked by a transaction and a part of another: as many multixacts."""
    with cluster.connect(autocommit=False) as first, cluster.connect(autocommit=False) as second:
        first.execute("SELECT count(*) FROM (SELECT FROM t WHERE id > 0 FOR KEY SHARE) s")
        second.execute(
            "DO $$ DECLARE r record; BEGIN FOR r IN SELECT ctid FROM t WHERE id > 0 LOOP "
            "BEGIN PERFORM FROM t WHERE ctid = r.ctid FOR KEY SHARE; "
            "EXCEPTION WHEN division_by_zero THEN NULL; END; END LOOP; END $$"
        )
        # Autovacuum, which comes by force, may not take away what is held.
        return examined(cluster, "postgres", "multixact-ids")


def test_a_checkpoint_that_does_not_end(aging: Cluster) -> None:
    """Its process stands still while the log grows: told; once it has ended, silent."""
    limit = asked(aging, "SELECT setting::int8 FROM pg_settings WHERE name = 'max_wal_size'")
    pid = asked(aging, "SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'")
    run(aging, "postgres", "CHECKPOINT")
    os.kill(pid, signal.SIGSTOP)
    try:
        run(aging, "postgres", LOG.format(limit + 20))
        before = asked(aging, LOGGED)
        (found,) = examined(aging, "postgres", "checkpoint-overdue", ahead_s=3600.0).findings
        after = asked(aging, LOGGED)
        assert found.severity == "warning"
        assert before <= found.numbers["replayed_bytes"] <= after
        assert found.price.amount == found.numbers["replayed_bytes"]
        assert limit * 2**20 < before
        assert examined(aging, "postgres", "checkpoint-overdue").findings == (), "not for long"
    finally:
        os.kill(pid, signal.SIGCONT)
    run(aging, "postgres", "CHECKPOINT")
    assert examined(aging, "postgres", "checkpoint-overdue", ahead_s=3600.0).findings == ()


LOGGED = "SELECT pg_current_wal_insert_lsn() - redo_lsn FROM pg_control_checkpoint()"
