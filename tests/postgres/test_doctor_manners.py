"""The doctor on whole servers: silent where all is well, quick, read-only, not stopped whole."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from doctor_sides import change_many_files, conninfo, examined, run
from test_doctor_rules import asked, until

from pgheadroom.doctor import Diagnosis, Examination, Finding, Rule, all_rules, examine, rule_named
from pgheadroom.doctor.live import examine_live
from pgheadroom.servers import Cluster, Host, ServerPrograms
from pgheadroom.servers.user import arguments, server_user
from pgheadroom.sources.session import read_only_session

pytestmark = pytest.mark.usefixtures("run_parent")

TABLES = 2000
PASS_S_MAX = 2.0
MAKE = f"""
DO $$ BEGIN
  FOR i IN 1..{TABLES} LOOP
    EXECUTE format('CREATE TABLE t%s (id int8 PRIMARY KEY, a int, b int, c text, d timestamptz,'
        ' e numeric, f varchar(30), g bool)', i);
    EXECUTE format('CREATE INDEX ON t%s (a) WHERE g', i);
    EXECUTE format('INSERT INTO t%s SELECT i, i, i, ''x'' FROM generate_series(1, 60) i', i);
    IF i % 200 = 0 THEN COMMIT; END IF;
  END LOOP;
END $$
"""


def severe(diagnosis: Diagnosis) -> list[str]:
    return [f"{each.rule}: {each.text}" for each in diagnosis.findings if each.severity != "info"]


def looked(cluster: Cluster, *, ahead_s: float = 0.0) -> Diagnosis:
    with read_only_session(conninfo(cluster, "postgres"), {}) as connection:
        return Examination(connection, all_rules(), ahead_s=ahead_s).end()


def test_a_healthy_server_has_no_finding(newest: ServerPrograms) -> None:
    """A fresh server with defaults; then pgbench's tables, loaded and under load, vacuumed."""
    with Host(newest) as host:
        cluster = host.cluster("main")
        cluster.start({"fsync": "on", "autovacuum_naptime": "1s"})
        fresh = looked(cluster)
        assert fresh.findings == ()
        assert not fresh.cut_off
        pgbench = newest.program("pgbench")
        user = arguments(server_user())

        def bench(*options: str) -> None:
            subprocess.run(
                [pgbench, *options],
                env=cluster.client_env(),
                cwd=host.scratch,
                check=True,
                capture_output=True,
                **user,
            )

        bench("-i", "-s", "2", "-q")
        with read_only_session(conninfo(cluster, "postgres"), {}) as connection:
            examination = Examination(connection, all_rules())
            examination.start()
            bench("-c", "2", "-t", "2000", "-n")
            examination.ahead_s = 60.0  # a load of a minute
            under_load = examination.end()
        assert severe(under_load) == []
        assert not under_load.cut_off
        # As if nothing else had happened for a month.
        assert severe(looked(cluster, ahead_s=40 * 86_400.0)) == []


def test_two_thousand_tables(newest: ServerPrograms) -> None:
    """
    One pass takes the server less than 2 s of processor time, and waits for no lock.

    One table is held as VACUUM FULL would hold it, another is wanted so.
    """
    with Host(newest) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off", "max_locks_per_transaction": "512"})
        with cluster.connect() as connection:
            connection.execute(MAKE.encode())
            connection.execute("ANALYZE")
        with (
            cluster.connect(autocommit=False) as holder,
            read_only_session(conninfo(cluster, "postgres"), {}) as connection,
        ):
            holder.execute("LOCK TABLE t1 IN ACCESS EXCLUSIVE MODE")
            examination = Examination(connection, all_rules())
            stat = Path(f"/proc/{connection.info.backend_pid}/schedstat")
            before = int(stat.read_text().split()[0])
            diagnosis = examination.end()
            used_s = (int(stat.read_text().split()[0]) - before) / 1e9
            held = connection.execute(
                "SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND relation >= 16384"
            ).fetchone()
        assert not diagnosis.cut_off, diagnosis.blind
        assert held == (0,)
        assert used_s < PASS_S_MAX, f"{used_s:.2f} s"


def test_what_is_cut_off_is_named(newest: ServerPrograms) -> None:
    """A timeout stops one rule; the end of the connection all that come after."""
    with Host(newest) as host:
        cluster = host.cluster("main")
        cluster.start({"fsync": "off"})
        found = rule_named("fsync-off")

        def by(*rules: Rule) -> Diagnosis:
            with read_only_session(conninfo(cluster, "postgres"), {}) as connection:
                examination = Examination(connection, rules)
                connection.execute("SELECT set_config('statement_timeout', '100ms', false)")
                return examination.end()

        slow = replace(found, id="slow", sql={15: "SELECT pg_sleep(10)"})
        diagnosis = by(slow, found)
        assert [each.rule for each in diagnosis.findings] == ["fsync-off"]
        (blind,) = diagnosis.blind
        assert blind.rule == "slow"
        assert blind.cut_off
        assert "57014" in blind.why

        killed = replace(
            found, id="killed", sql={15: "SELECT pg_terminate_backend(pg_backend_pid())"}
        )
        later = replace(found, id="later")
        diagnosis = by(found, killed, later)
        assert [each.rule for each in diagnosis.findings] == ["fsync-off"]
        assert {each.rule for each in diagnosis.blind} == {"killed", "later"}
        assert diagnosis.cut_off

        def stop(_seconds: float) -> None:
            run(
                cluster,
                "postgres",
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE application_name = 'pgheadroom doctor'",
            )

        def interrupt(_seconds: float) -> None:
            raise KeyboardInterrupt

        diagnosis = examine_live(conninfo(cluster, "postgres"), {}, interval_s=60, sleep=interrupt)
        assert [each.rule for each in diagnosis.findings] == ["fsync-off"]
        assert {each.rule for each in diagnosis.blind if each.cut_off} == {
            rule.id for rule in all_rules() if rule.counters and rule.text_for(18) is not None
        }
        (why,) = {each.why for each in diagnosis.blind if each.cut_off}
        assert why.startswith("over the whole 60 s, for the interval was cut short after 0.")

        diagnosis = examine_live(conninfo(cluster, "postgres"), {}, interval_s=5.0, sleep=stop)
        assert diagnosis.findings == ()
        assert {each.rule for each in diagnosis.blind} == {rule.id for rule in all_rules()}
        assert diagnosis.cut_off


def test_what_no_rule_understands(newest: ServerPrograms) -> None:
    """A rule that fails is named as cut off, and the others go on; PostgreSQL takes 0x3E8."""
    with Host(newest) as host:
        cluster = host.cluster("main")
        cluster.start({"fsync": "off", "autovacuum": "off"})
        run(
            cluster,
            "postgres",
            "CREATE TABLE t (v int) WITH (autovacuum_vacuum_threshold = '0x3E8');\n"
            "INSERT INTO t SELECT generate_series(1, 1000);\nANALYZE t;\nDELETE FROM t;\n",
        )
        found = rule_named("fsync-off")

        def fail(*_: object) -> list[Finding]:
            raise ValueError("0x3E8")

        with read_only_session(conninfo(cluster, "postgres"), {}) as connection:
            failing = replace(found, id="failing", decide=fail)
            diagnosis = examine(connection, [failing, *all_rules()])
        assert "fsync-off" in {each.rule for each in diagnosis.findings}
        (cut,) = (each for each in diagnosis.blind if each.cut_off)
        assert cut.rule == "failing"
        assert "ValueError: 0x3E8" in cut.why


def test_shared_statistics_that_were_reset(newest: ServerPrograms) -> None:
    """They say nothing of a database's own: rates of it are not told, instead of far too high."""
    with Host(newest) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        old = "SELECT now() > backend_start + interval '1s' FROM pg_stat_activity"
        old += " WHERE backend_type = 'checkpointer'"
        until(lambda: bool(asked(cluster, old)), "the server is a second old")
        assert looked(cluster).examined.statistics_since is not None
        for kind in ("bgwriter", "wal", "archiver"):
            run(cluster, "postgres", f"SELECT pg_stat_reset_shared('{kind}')")
        diagnosis = looked(cluster)
        assert diagnosis.examined.statistics_since is None
        why = "nothing says since when the statistics count: watch an interval"
        assert why in {each.why for each in diagnosis.blind}
        run(cluster, "postgres", "SELECT pg_stat_reset()")
        assert looked(cluster).examined.statistics_since is not None


def test_what_is_made_inside_an_interval(newest: ServerPrograms) -> None:
    """What the table of a new index, and a new database, counted before is not the interval's."""
    with Host(newest) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        load = "INSERT INTO t SELECT generate_series(1, 100000)"
        run(cluster, "postgres", f"CREATE TABLE t (v int);\nCREATE INDEX one ON t (v);\n{load}")
        with read_only_session(conninfo(cluster, "postgres"), {}) as connection:
            examination = Examination(connection, all_rules())
            examination.start()
            run(cluster, "postgres", "CREATE INDEX two ON t (v);\nCREATE DATABASE other")
            examination.ahead_s = 60.0
            diagnosis = examination.end()
        (found,) = (each for each in diagnosis.findings if each.rule == "duplicate-index")
        assert found.object == "two"
        assert found.numbers["wal_bytes_a_day"] is None
        assert "transaction-ids" not in {each.rule for each in diagnosis.findings}
        assert not diagnosis.cut_off


def test_rows_that_are_counted_twice(newest: ServerPrograms) -> None:
    """
    A table that was loaded and vacuumed has nothing to vacuum, whatever its counters say.

    A session told of 40,000 rows behind the VACUUM which had counted them: twice the rows were
    taken for twice the pages, half of them not all-visible.
    """
    with Host(newest) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum_naptime": "2147483"})
        run(cluster, "postgres", "CREATE TABLE t (v int, w text)")
        with cluster.connect() as loading:
            loading.execute("BEGIN")
            loading.execute(
                "INSERT INTO t SELECT i, repeat('x', 500) FROM generate_series(1, 40000) i"
            )
            loading.execute("COMMIT; BEGIN")  # it is not idle, and tells nothing yet
            run(cluster, "postgres", "VACUUM ANALYZE t")
            loading.execute("SELECT pg_stat_force_next_flush()")
            loading.execute("COMMIT")
        counted = "SELECT n_live_tup FROM pg_stat_user_tables WHERE relname = 't'"
        until(lambda: asked(cluster, counted) == 80_000, "they are counted twice")
        assert examined(cluster, "postgres", "insert-vacuum-late").findings == ()
        load = "INSERT INTO t SELECT i, repeat('x', 500) FROM generate_series(1, 40000) i"
        run(cluster, "postgres", load)
        (found,) = examined(cluster, "postgres", "insert-vacuum-late").findings
        # 15 rows a page.
        assert found.price.amount == -(-80_000 // 15) * 8192 - 40_000 // 15 * 8192 - 8192


def test_statements_that_sync(newest: ServerPrograms) -> None:
    """A queue as long as there are buffers: sixteen are too few for 200 files, 2,048 are not."""
    with Host(newest) as host:
        for size, fires in (("128kB", True), ("16MB", False)):
            cluster = host.cluster(f"of-{size}")
            cluster.start({"shared_buffers": size})
            change_many_files(cluster)
            assert bool(examined(cluster, "postgres", "backend-syncs").findings) == fires
            cluster.remove()


def test_it_only_reads(newest: ServerPrograms) -> None:
    """No transaction id is taken, and no setting of the session stays."""
    with Host(newest) as host:
        cluster = host.cluster("main")
        cluster.start({})
        with read_only_session(conninfo(cluster, "postgres"), {}) as connection:
            query = (
                "SELECT pg_snapshot_xmax(pg_current_snapshot())::text, pg_current_wal_lsn()::text"
            )
            before = connection.execute(query).fetchone()
            examine(connection, all_rules())
            assert connection.execute(query).fetchone() == before


def test_levels_of_access(newest: ServerPrograms) -> None:
    """A role without rights sees what catalogs tell, and each rule that it blinds is named."""
    with Host(newest) as host:
        cluster = host.cluster("main")
        cluster.start({"fsync": "off"})
        run(cluster, "postgres", "CREATE ROLE nobody LOGIN;\nCREATE ROLE monitor LOGIN")
        run(cluster, "postgres", "GRANT pg_monitor TO monitor")
        nobody = examine_live(conninfo(cluster, "postgres", "nobody"), {})
        monitor = examine_live(conninfo(cluster, "postgres", "monitor"), {})
        assert [each.rule for each in nobody.findings] == ["fsync-off"]
        assert [each.rule for each in monitor.findings] == ["fsync-off"]
        assert not nobody.cut_off
        assert not monitor.cut_off
        hidden = {each.rule for each in nobody.blind} - {each.rule for each in monitor.blind}
        assert hidden == {rule.id for rule in all_rules() if rule.needs_monitor}
        assert "configuration-errors" in {each.rule for each in monitor.blind}
