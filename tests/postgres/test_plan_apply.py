"""`apply` on real servers: what it does, what it refuses, and that no interruption loses a step."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import observed
import planned
import pytest

from pgheadroom.cli.app import run
from pgheadroom.errors import InputError
from pgheadroom.plan import Plan, make_plan, read_plan
from pgheadroom.plan.apply import Applier, Options
from pgheadroom.plan.marks import mark_of, read_catalog
from pgheadroom.plan.record import Record, new_record, read_record, record_path, save
from pgheadroom.plan.session import APPLICATION_NAME, writing_session
from pgheadroom.plan.statements import wal_bytes
from pgheadroom.plan.text import as_text
from pgheadroom.profile import Profile, read_profile, to_json
from pgheadroom.servers import Cluster, Host, ServerPrograms
from pgheadroom.sources.session import read_only_session

pytestmark = pytest.mark.usefixtures("run_parent")

ODD = 'quote " colon: back\\slash\n-- line'
ODD_SQL = '"' + ODD.replace('"', '""') + '"'
HOSTILE = f"""
CREATE SCHEMA "Ünï";
CREATE TABLE "Ünï".{ODD_SQL} (id int PRIMARY KEY, "a ""b" text) WITH (fillfactor = 100);
CREATE INDEX "in""dex:" ON "Ünï".{ODD_SQL} ("a ""b", lower("a ""b"));
INSERT INTO "Ünï".{ODD_SQL} SELECT i, 'x' FROM generate_series(1, 500) i
"""


@contextmanager
def database(programs: ServerPrograms, *more: str) -> Iterator[tuple[Cluster, Profile]]:
    """A server with the known tables, observed under a few changes."""
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        observed.load(cluster)
        for ddl in more:
            observed.load(cluster, ddl)
        recording = observed.watched(cluster, lambda: observed.change(cluster))
        yield cluster, observed.profile_of(recording)


def options_of(cluster: Cluster) -> dict[str, list[str]]:
    """Storage parameters of every table of ours, by name."""
    query = (
        "SELECT relname, coalesce(reloptions, '{}') FROM pg_class c JOIN pg_namespace n"
        " ON n.oid = relnamespace WHERE relkind = 'r' AND nspname IN ('public', 'Ünï')"
    )
    with cluster.connect() as connection:
        return {name: sorted(found) for name, found in connection.execute(query).fetchall()}


def odd_name(profile: Profile) -> str:
    """The profile's name of the table whose name no profile can hold."""
    return next(t.name for t in profile.tables if t.observed and t.observed["name"] == ODD)


def three(profile: Profile, *, rewrite: str = "none") -> Plan:
    """A set value, none, and a partition."""
    return planned.plan_of(profile, {"jobs": 90, "quiet": 70, "parts_1": 85}, rewrite=rewrite)


def states(path: Path) -> list[str]:
    """Of the record's steps."""
    data = json.loads(record_path(path).read_text(encoding="utf-8"))
    return [step["state"] for step in data["steps"]]


def test_it_applies_undoes_and_repeats_nothing(
    programs: ServerPrograms, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Odd names and all: done, done again without a write, undone to exactly what was there."""
    with database(programs, HOSTILE) as (cluster, profile):
        observed.load(cluster, "CREATE ROLE reader LOGIN; ALTER ROLE postgres SET lock_timeout = 0")
        settings = {"jobs": 90, "quiet": 70, "parts_1": 85, odd_name(profile): 80}
        plan = planned.plan_of(profile, settings, rewrite="auto")
        path = planned.write_plan(plan, tmp_path)
        before, conninfo = options_of(cluster), observed.conninfo(cluster)
        assert run(["apply", str(path), conninfo, "--dry-run"]) == 0
        assert "Nothing was changed" in capsys.readouterr().out
        assert options_of(cluster) == before
        assert not record_path(path).exists()

        assert run(["apply", str(path), conninfo, "--yes"]) == 0
        shown = capsys.readouterr().out
        assert "SHARE UPDATE EXCLUSIVE" in shown
        assert "undo: ALTER TABLE" in shown
        assert states(path) == ["done"] * 8
        after = options_of(cluster)
        assert "fillfactor=90" in after["jobs"]
        assert "autovacuum_enabled=off" in after["jobs"], "other parameters stay"
        assert "fillfactor=80" in after[ODD]
        assert "fillfactor=85" in after["parts_1"]
        with cluster.connect() as connection:
            pages = connection.execute(
                "SELECT pg_relation_size('jobs') / 8192, pg_relation_size('quiet') / 8192"
            ).fetchone()
        assert pages is not None
        assert pages[0] < 81, "rewritten at 90 instead of 80"

        record = record_path(path).read_text(encoding="utf-8")
        assert run(["apply", str(path), conninfo, "--yes"]) == 0
        assert "Nothing is left to do" in capsys.readouterr().out
        first, second = json.loads(record), json.loads(record_path(path).read_text("utf-8"))
        assert first == second, "nothing was run again"

        observed.load(cluster, "ALTER TABLE quiet SET (fillfactor = 60)")
        assert run(["apply", str(path), conninfo, "--yes"]) == 2
        said = "quiet: storage parameter fillfactor: found 60, the plan has 70"
        assert said in capsys.readouterr().err, "done steps are checked"
        assert run(["apply", str(path), conninfo, "--yes", "--undo"]) == 2
        observed.load(cluster, "ALTER TABLE quiet SET (fillfactor = 70)")

        assert run(["apply", str(path), conninfo, "--yes", "--undo"]) == 0
        assert states(path) == ["undone"] * 4 + ["done"] * 4
        assert options_of(cluster) == before
        assert run(["apply", str(path), conninfo, "--yes", "--undo"]) == 0
        assert "Nothing is left to undo" in capsys.readouterr().out


def test_the_plans_text_runs_in_psql_and_locks_and_wal_are_as_said(
    programs: ServerPrograms, newest: ServerPrograms
) -> None:
    """The script does what apply does; its lock is read from pg_locks, its WAL from the server."""
    with database(programs, HOSTILE) as (cluster, profile):
        plan = planned.plan_of(profile, {"jobs": 90, odd_name(profile): 80})
        env = dict(os.environ) | cluster.client_env()
        done = subprocess.run(
            [newest.bin_dir / "psql", "-X", "-v", "ON_ERROR_STOP=1", "-U", "postgres", "postgres"],
            input=as_text(plan),
            text=True,
            capture_output=True,
            env=env,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.split() == ["SET", "ALTER", "TABLE", "ALTER", "TABLE"]
        after = options_of(cluster)
        assert "fillfactor=90" in after["jobs"]
        assert "fillfactor=80" in after[ODD]
        step = plan.steps[0]
        assert step.sql is not None
        assert step.undo is not None
        query = (
            "SELECT DISTINCT mode FROM pg_locks WHERE relation = 'jobs'::regclass"
            " AND pid = pg_backend_pid()"
        )
        for statement in (step.sql, step.undo, 'ALTER TABLE "jobs" RESET (fillfactor)'):
            with cluster.connect(autocommit=False) as connection:
                connection.execute("CHECKPOINT")
                connection.commit()
                start: Any = connection.execute("SELECT pg_current_wal_insert_lsn()").fetchone()
                connection.execute(statement.encode())
                modes = connection.execute(query).fetchall()
                assert [mode for (mode,) in modes] == ["ShareUpdateExclusiveLock"]
                assert step.lock == "SHARE UPDATE EXCLUSIVE"
                connection.commit()
                written: Any = connection.execute(
                    "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), %s)::int8", start
                ).fetchone()
                assert 0 < written[0] <= wal_bytes("ALTER TABLE", 0)


def test_what_a_plan_rests_on_is_checked_first(
    programs: ServerPrograms, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A changed table, another database: refused with what differs, before the first write."""
    changes = [
        ("ALTER TABLE jobs ADD extra int", "column 'extra' is new", "ALTER TABLE jobs DROP extra"),
        ("CREATE INDEX fresh ON quiet (note)", "index 'fresh' is new", "DROP INDEX fresh"),
        (
            "ALTER TABLE parts_1 SET (fillfactor = 55)",
            "storage parameter fillfactor: found 55, the plan has not set",
            "ALTER TABLE parts_1 RESET (fillfactor)",
        ),
        (
            "ALTER TABLE quiet RENAME TO loud",
            "found public.loud, the plan has public.quiet",
            "ALTER TABLE loud RENAME TO quiet",
        ),
        ("TRUNCATE quiet", "quiet: relfilenode (rewritten)", "SELECT 1"),
        ("DROP TABLE quiet", "quiet: it is gone", "SELECT 1"),
    ]
    with database(programs) as (cluster, profile):
        plan = three(profile)
        path = planned.write_plan(plan, tmp_path)
        conninfo = observed.conninfo(cluster)
        for change, said, back in changes:
            observed.load(cluster, change)
            before = options_of(cluster)
            assert run(["apply", str(path), conninfo, "--yes"]) == 2
            error = capsys.readouterr().err
            assert said in error
            assert "Nothing was changed" in error
            assert options_of(cluster) == before
            observed.load(cluster, back)
        observed.load(cluster, "CREATE DATABASE other")
        other = observed.conninfo(cluster, dbname="other")
        assert run(["apply", str(path), other, "--yes"]) == 2
        error = capsys.readouterr().err
        assert "database: found other, the plan has postgres" in error
        # The same names and OIDs in another cluster: only its identifier tells.
        target = replace(plan.target, system_identifier="1")
        path = planned.write_plan(replace(plan, target=target), tmp_path)
        assert run(["apply", str(path), conninfo, "--yes"]) == 2
        assert "cluster: found" in capsys.readouterr().err
        assert not record_path(path).exists()


def test_a_lock_that_never_comes(
    programs: ServerPrograms, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It gives up with exit code 1, says who holds it, keeps what was done, and goes on later."""
    with database(programs) as (cluster, profile):
        path = planned.write_plan(three(profile), tmp_path)
        conninfo = observed.conninfo(cluster)
        waiting = ["--lock-timeout", "100ms", "--lock-retries", "1", "--backoff", "10ms"]
        with cluster.connect(autocommit=False, application_name="keeper") as holder:
            holder.execute("LOCK TABLE quiet IN SHARE UPDATE EXCLUSIVE MODE")
            assert run(["apply", str(path), conninfo, "--yes", *waiting]) == 1
            shown = capsys.readouterr()
            assert "Stopped: step 2 failed: canceling statement due to lock timeout" in shown.out
            assert "ShareUpdateExclusiveLock by process" in shown.out
            assert "keeper" in shown.out
            assert "Done: step 1 (jobs)" in shown.out
            assert "Not done: step 2 (quiet), step 3 (parts_1)" in shown.out
            assert states(path) == ["done", "failed", "pending"]
            record = read_record(record_path(path), read_plan(path))
            assert record is not None
            assert record.step(2).attempts == 2
            # What readers and writers do is not held up by the waiting one.
            holder.execute("UPDATE quiet SET note = note WHERE id = 1")
        assert run(["apply", str(path), conninfo, "--yes", *waiting]) == 0
        assert states(path) == ["done"] * 3
        with cluster.connect(autocommit=False) as holder:
            holder.execute("LOCK TABLE quiet IN SHARE UPDATE EXCLUSIVE MODE")
            assert run(["apply", str(path), conninfo, "--yes", "--undo", *waiting]) == 1
            assert states(path) == ["done", "done", "undone"]
            released = threading.Timer(0.6, holder.rollback)
            released.start()
            patient = ["--lock-timeout", "200ms", "--lock-retries", "9", "--backoff", "50ms"]
            assert run(["apply", str(path), conninfo, "--yes", "--undo", *patient]) == 0
            released.join()
        assert states(path) == ["undone"] * 3


class Killed(BaseException):
    """Stands for the end of the process."""


def test_an_end_at_any_moment_loses_nothing(newest: ServerPrograms, tmp_path: Path) -> None:
    """
    The process ends right after a write of its record, before the statement or behind it.

    Whoever comes next finds out what has happened, does the rest, and runs nothing twice.
    """
    with database(newest) as (cluster, profile):
        conninfo = observed.conninfo(cluster)
        start = options_of(cluster)
        for undo in (False, True):
            plan = three(profile)
            path = planned.write_plan(plan, tmp_path)
            moments = 6  # three steps, each recorded before and after
            for moment in range(1, moments + 1):
                record_path(path).unlink(missing_ok=True)
                if undo:
                    assert _apply(conninfo, plan, path) == (1, 2, 3)
                statements = _log_size(cluster)
                with pytest.raises(Killed):
                    _apply(conninfo, plan, path, undo=undo, killed_at=moment)
                done_before = moment // 2
                assert _apply(conninfo, plan, path, undo=undo) == (
                    tuple(range(3 - done_before, 0, -1))
                    if undo
                    else tuple(range(done_before + 1, 4))
                )
                ran = _statements(cluster, statements)
                assert len(ran) == 3, "each once"
                record = read_record(record_path(path), plan)
                assert record is not None
                assert {step.state for step in record.steps} == {"undone" if undo else "done"}
                if not undo:
                    assert _apply(conninfo, plan, path, undo=True) == (3, 2, 1)
                assert options_of(cluster) == start


def _apply(
    conninfo: str, plan: Plan, path: Path, *, undo: bool = False, killed_at: int = 0
) -> tuple[int, ...]:
    """One call of apply; with `killed_at` it ends behind that write of the record."""
    writes = 0

    def keep(record: Record) -> None:
        nonlocal writes
        save(record, record_path(path))
        writes += 1
        if writes == killed_at:
            raise Killed

    with writing_session(conninfo, {}) as connection:
        record = read_record(record_path(path), plan) or new_record(plan)
        applier = Applier(
            plan, record, connection, keep=keep, say=lambda _: None, options=Options()
        )
        return applier.run(applier.prepare(undo=undo), undo=undo).done


def _log_size(cluster: Cluster) -> int:
    with cluster.connect() as connection:
        connection.execute("ALTER SYSTEM SET log_statement = 'ddl'")
        connection.execute("SELECT pg_reload_conf(), pg_sleep(0.05)")
    return len(cluster.log_tail(10**6))


def _statements(cluster: Cluster, since: int) -> list[str]:
    lines = cluster.log_tail(10**6)[since:]
    return [line for line in lines if re.search(r"statement: ALTER TABLE", line)]


def test_a_killed_program_leaves_a_step_in_doubt(
    programs: ServerPrograms, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """
    A real process, killed while its statement waits for a lock.

    The server does not notice at once: until its statement has ended another apply is refused, and
    then what became of it is read from the catalog.
    """
    with database(programs) as (cluster, profile):
        path = planned.write_plan(three(profile), tmp_path)
        again = ["apply", str(path), observed.conninfo(cluster), "--yes"]
        with waiting_child(cluster, again) as child:
            child.send_signal(signal.SIGKILL)
            child.communicate(timeout=30)
            assert states(path) == ["done", "running", "pending"]
            assert run(again) == 3
            assert "another pgheadroom apply is at work" in capfd.readouterr().err
        wait_for(cluster, "true", 0)
        assert options_of(cluster)["quiet"] == ["fillfactor=70"], "the server went on"
        assert run(again) == 0
        assert "step 2 was in doubt: the catalog says that it has run" in capfd.readouterr().err
        assert states(path) == ["done"] * 3
        record = read_record(record_path(path), read_plan(path))
        assert record is not None
        assert [step.found_out for step in record.steps] == [False, True, False]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_program_cancels_its_statement(
    newest: ServerPrograms, tmp_path: Path, capfd: pytest.CaptureFixture[str], number: int
) -> None:
    """Ctrl-C and a polite end: the step in doubt is named, and the next call does it."""
    with database(newest) as (cluster, profile):
        path = planned.write_plan(three(profile), tmp_path)
        again = ["apply", str(path), observed.conninfo(cluster), "--yes"]
        with waiting_child(cluster, again) as child:
            child.send_signal(number)
            _, said = child.communicate(timeout=30)
            assert child.returncode == (130 if number == signal.SIGINT else 128 + number)
            assert "step 2 was interrupted" in said
            assert states(path) == ["done", "running", "pending"]
            wait_for(cluster, "true", 0)
        assert options_of(cluster)["quiet"] == []
        assert run(again) == 0
        assert "the catalog says that it has not run" in capfd.readouterr().err
        assert states(path) == ["done"] * 3


@contextmanager
def waiting_child(cluster: Cluster, arguments: list[str]) -> Iterator[subprocess.Popen[str]]:
    """A process of apply that waits in its second step for a lock, which goes in the end."""
    with cluster.connect(autocommit=False) as holder:
        holder.execute("LOCK TABLE quiet IN SHARE UPDATE EXCLUSIVE MODE")
        child = subprocess.Popen(
            [sys.executable, "-m", "pgheadroom", *arguments, "--lock-timeout", "60s"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            wait_for(cluster, "wait_event_type = 'Lock'", 1)
            yield child
        finally:
            child.kill()
            child.wait()


def wait_for(cluster: Cluster, condition: str, count: int) -> None:
    """Until so many sessions of apply fulfil the condition."""
    query = f"SELECT count(*) FROM pg_stat_activity WHERE application_name = %s AND {condition}"
    for _ in range(200):
        with cluster.connect() as connection:
            found = connection.execute(query.encode(), (APPLICATION_NAME,)).fetchone()
        if found is not None and found[0] == count:
            return
        time.sleep(0.05)
    raise AssertionError(f"no {count} sessions with {condition}")


def test_what_goes_wrong_is_said(
    programs: ServerPrograms, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """No right, wrong password, no connection, nobody to ask, a table dropped meanwhile."""
    with database(programs) as (cluster, profile):
        observed.load(
            cluster,
            "CREATE ROLE guarded LOGIN PASSWORD 'right'; CREATE ROLE member LOGIN; "
            "GRANT postgres TO member; ALTER ROLE member SET default_transaction_read_only = on",
        )
        rules = cluster.data_dir / "pg_hba.conf"
        rules.write_text("local all guarded scram-sha-256\n" + rules.read_text())
        observed.load(cluster, "SELECT pg_reload_conf(), pg_sleep(0.2)")
        path = planned.write_plan(three(profile), tmp_path)
        before = options_of(cluster)
        guarded = observed.conninfo(cluster, "guarded")

        def refused(*arguments: str, code: int, said: str) -> None:
            assert run(["apply", str(path), *arguments]) == code
            shown = capfd.readouterr()
            assert said in shown.err
            assert "secret" not in shown.err + shown.out
            assert options_of(cluster) == before

        refused(
            f"{guarded} password=secret", "--yes", code=3, said="password authentication failed"
        )
        refused("host=/nowhere password=secret", "--yes", code=3, said="no connection")
        right = f"{guarded} password=right"
        refused(right, "--yes", code=3, said="does not own jobs (owner postgres)")
        refused(observed.conninfo(cluster), code=2, said="nobody can be asked")
        refused(observed.conninfo(cluster), "--undo", "--yes", code=2, said="nothing of this plan")
        refused("what is this", "--yes", code=2, said="the connection is not understood")
        # A member of the owner may, even where writing has been switched off by default.
        assert run(["apply", str(path), observed.conninfo(cluster, "member"), "--yes"]) == 0
        record = record_path(path).read_text(encoding="utf-8")
        assert '"user": "member"' in record
        assert "password" not in record


def test_a_table_that_goes_while_apply_runs(newest: ServerPrograms, tmp_path: Path) -> None:
    """Dropped between two steps: it stops there, and what was done is known."""
    with database(newest) as (cluster, profile):
        plan = three(profile)
        path = planned.write_plan(plan, tmp_path)
        seen: list[str] = []

        def say(text: str) -> None:
            seen.append(text)
            if text.startswith("step 2"):
                observed.load(cluster, "DROP TABLE quiet")

        with writing_session(observed.conninfo(cluster), {}) as connection:
            applier = Applier(
                plan,
                new_record(plan),
                connection,
                keep=lambda record: save(record, record_path(path)),
                say=say,
                options=Options(),
            )
            outcome = applier.run(applier.prepare(undo=False), undo=False)
        assert outcome.done == (1,)
        assert outcome.left == (2, 3)
        assert outcome.stopped is not None
        assert "the table is gone" in outcome.stopped


def test_statements_that_change_nothing_count_as_failed(
    newest: ServerPrograms, tmp_path: Path
) -> None:
    """An event trigger that takes the setting back: the catalog is believed, not the silence."""
    trigger = """
    CREATE FUNCTION back() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN
      IF pg_trigger_depth() = 0 AND current_query() LIKE '%fillfactor = 70%' THEN
        EXECUTE 'ALTER TABLE public.quiet RESET (fillfactor)' ^ END IF ^ END $$
    """.replace(" ^", ";")
    with database(newest) as (cluster, profile):
        path = planned.write_plan(planned.plan_of(profile, {"quiet": 70}), tmp_path)
        with cluster.connect() as connection:
            connection.execute(trigger.encode())
            connection.execute(
                "CREATE EVENT TRIGGER t ON ddl_command_end WHEN TAG IN ('ALTER TABLE')"
                " EXECUTE FUNCTION back()"
            )
        assert run(["apply", str(path), observed.conninfo(cluster), "--yes"]) == 1
        assert states(path) == ["failed"]


def test_no_plan_without_names_or_tools(newest: ServerPrograms, tmp_path: Path) -> None:
    """Masked and unobserved profiles, and rewrites that the server does not have."""
    with database(newest) as (cluster, profile):
        recording = observed.watched(cluster)
        masked = observed.profile_of(recording, mask=True)
        empty = planned.advice_of(masked, ())
        with pytest.raises(InputError, match="the profile is masked"):
            make_plan(empty, masked)
        for tool, why in (
            ("repack", "it is of version 19"),
            ("pg_squeeze", "not installed"),
            ("pg_repack", "not installed"),
        ):
            with pytest.raises(InputError, match=why):
                planned.plan_of(profile, {"jobs": 90}, rewrite=tool)
        offered = planned.plan_of(profile, {"jobs": 90}).offers
        assert [step.tool for step in offered] == ["VACUUM FULL"]
        every = {"pg_repack": "1.5.2", "pg_squeeze": "1.9"}
        later = replace(
            profile,
            server=replace(
                profile.server,
                version="19.0",
                observed={**(profile.server.observed or {}), "modules": every},
            ),
        )
        offered = planned.plan_of(later, {"jobs": 90}).offers
        assert [(step.tool, step.run_by, step.verified) for step in offered] == [
            ("REPACK (CONCURRENTLY)", "apply", False),
            ("pg_squeeze", "apply", False),
            ("pg_repack", "you", False),
            ("VACUUM FULL", "apply", False),
        ]
        chosen = planned.plan_of(later, {"jobs": 90}, rewrite="auto")
        assert [step.sql for step in chosen.steps][1:] == [
            'REPACK (CONCURRENTLY, ANALYZE) "public"."jobs"'
        ]
        assert "Not verified by us on this version" in as_text(chosen)
        path = tmp_path / "p.json"
        path.write_text(json.dumps(to_json(profile)))
        again = read_profile(path)
        for table in again.tables:
            assert mark_of(table) == mark_of(profile.table(table.name))
    bare = replace(profile, server=replace(profile.server, observed=None))
    with pytest.raises(InputError, match="was not observed"):
        make_plan(planned.advice_of(profile, ()), bare)


def test_a_standby_is_refused(
    newest: ServerPrograms, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It has the same identifier, tables and names; only its primary can be changed."""
    from test_observe_access import standby_of

    with Host(newest) as host:
        primary = host.cluster("main")
        primary.start({"wal_level": "replica"})
        observed.load(primary)
        plan = three(observed.profile_of(observed.watched(primary)))
        path = planned.write_plan(plan, tmp_path)
        standby = standby_of(host, primary)
        assert run(["apply", str(path), observed.conninfo(standby), "--yes"]) == 2
        assert "the server is a standby" in capsys.readouterr().err
        assert run(["apply", str(path), observed.conninfo(primary), "--yes"]) == 0


def test_it_asks_on_a_terminal(newest: ServerPrograms, tmp_path: Path) -> None:
    """No is no, with exit code 1; yes goes ahead."""
    with database(newest) as (cluster, profile):
        path = planned.write_plan(three(profile), tmp_path)
        before = options_of(cluster)
        for answer, code in (("n", 1), ("y", 0)):
            ours, theirs = pty.openpty()
            child = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "pgheadroom",
                    "apply",
                    str(path),
                    observed.conninfo(cluster),
                ],
                stdin=theirs,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
            os.write(ours, f"{answer}\n".encode())
            shown, _ = child.communicate(timeout=60)
            os.close(ours)
            os.close(theirs)
            assert child.returncode == code, shown
            assert ("the answer was no" in shown) is (answer == "n")
            assert (options_of(cluster) == before) is (answer == "n")


def test_advise_writes_the_plan(newest: ServerPrograms, tmp_path: Path) -> None:
    """As JSON, for a change request and for psql; a masked profile is refused before the work."""
    with database(newest) as (cluster, _):
        idle = observed.watched(cluster)
        for mask, code in ((False, 0), (True, 2)):
            profile = tmp_path / f"p{mask}.json"
            profile.write_text(json.dumps(to_json(observed.profile_of(idle, mask=mask))))
            wanted = [tmp_path / f"{mask}.{form}" for form in ("json", "md", "sql")]
            plans = [word for path in wanted for word in ("--plan", str(path))]
            assert run(["advise", str(profile), "-o", str(tmp_path / "a"), *plans]) == code
            assert [path.exists() for path in wanted] == [code == 0] * 3
        assert read_plan(tmp_path / "False.json").steps == ()
        assert "Nothing to change" in (tmp_path / "False.sql").read_text()
        path = str(tmp_path / "False.json")
        assert run(["apply", path, observed.conninfo(cluster), "--yes"]) == 0


def test_marks_are_the_same_from_profile_and_catalog(programs: ServerPrograms) -> None:
    """Every kind of table and index: what has not changed is not called changed."""
    from test_observe_zoo import ZOO

    with database(programs, ZOO, HOSTILE) as (cluster, profile):
        with read_only_session(observed.conninfo(cluster), {}) as connection:
            catalog = read_catalog(connection)
        assert len(profile.tables) >= 19
        for table in profile.tables:
            mark = mark_of(table)
            assert mark.differs(catalog.tables[mark.oid].mark) == ()
            assert mark == catalog.tables[mark.oid].mark
