"""`apply` cut short on real servers: locks, kills, interrupts, tables that go; no step is lost."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import observed
import planned
import pytest
from footprint import DEADLINE_S

from pgheadroom.cli.app import run
from pgheadroom.plan import Plan, read_plan
from pgheadroom.plan.apply import Applier
from pgheadroom.plan.execution import ApplyCall
from pgheadroom.plan.record import AppliedRecord, new_record, read_record, record_path, save
from pgheadroom.plan.session import APPLICATION_NAME, LOCK_CLASS, writing_session
from pgheadroom.servers import Cluster, ServerPrograms

pytestmark = pytest.mark.usefixtures("run_parent")


def test_a_lock_that_never_comes(
    programs: ServerPrograms, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It gives up with exit code 1, says who holds it, keeps what was done, and goes on later."""
    with planned.database(programs) as (cluster, profile):
        path = planned.write_plan(planned.three(profile), tmp_path)
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
            assert planned.states(path) == ["done", "failed", "pending"]
            record = read_record(record_path(path), read_plan(path))
            assert record is not None
            assert record.step(2).attempts == 2
            # What readers and writers do is not held up by the waiting one.
            holder.execute("UPDATE quiet SET note = note WHERE id = 1")
        assert run(["apply", str(path), conninfo, "--yes", *waiting]) == 0
        assert planned.states(path) == ["done"] * 3
        with cluster.connect(autocommit=False) as holder:
            holder.execute("LOCK TABLE quiet IN SHARE UPDATE EXCLUSIVE MODE")
            assert run(["apply", str(path), conninfo, "--yes", "--undo", *waiting]) == 1
            assert planned.states(path) == ["done", "done", "undone"]
            released = threading.Timer(0.6, holder.rollback)
            released.start()
            patient = ["--lock-timeout", "200ms", "--lock-retries", "200", "--backoff", "50ms"]
            assert run(["apply", str(path), conninfo, "--yes", "--undo", *patient]) == 0
            released.join()
        assert planned.states(path) == ["undone"] * 3


class Killed(BaseException):
    """Stands for the end of the process."""


def test_an_end_at_any_moment_loses_nothing(newest: ServerPrograms, tmp_path: Path) -> None:
    """
    The process ends right after a write of its record, before the statement or behind it.

    Whoever comes next finds out what has happened, does the rest, and runs nothing twice.
    """
    with planned.database(newest) as (cluster, profile):
        conninfo = observed.conninfo(cluster)
        start = planned.options_of(cluster)
        for undo in (False, True):
            plan = planned.three(profile)
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
                assert planned.options_of(cluster) == start


def _apply(
    conninfo: str, plan: Plan, path: Path, *, undo: bool = False, killed_at: int = 0
) -> tuple[int, ...]:
    """One call of apply; with `killed_at` it ends behind that write of the record."""
    writes = 0

    def keep(record: AppliedRecord) -> None:
        nonlocal writes
        save(record, record_path(path))
        writes += 1
        if writes == killed_at:
            raise Killed

    with writing_session(conninfo, {}) as connection:
        record = read_record(record_path(path), plan) or new_record(plan)
        call = ApplyCall(
            plan=plan, record=record, connection=connection, keep=keep, say=lambda _: None
        )
        applier = Applier(call)
        return applier.run(applier.prepare(undo=undo), undo=undo).done


def _log_size(cluster: Cluster) -> int:
    with cluster.connect() as connection:
        connection.execute("ALTER SYSTEM SET log_statement = 'ddl'")
    observed.reload(cluster)
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
    with planned.database(programs) as (cluster, profile):
        path = planned.write_plan(planned.three(profile), tmp_path)
        again = ["apply", str(path), observed.conninfo(cluster), "--yes"]
        with waiting_child(cluster, again) as child:
            child.send_signal(signal.SIGKILL)
            child.communicate(timeout=DEADLINE_S)
            assert planned.states(path) == ["done", "running", "pending"]
            assert run(again) == 3
            assert "another `pgheadroom apply` is at work" in capfd.readouterr().err
        wait_for(cluster, "true", 0)
        assert planned.options_of(cluster)["quiet"] == ["fillfactor=70"], "the server went on"
        assert run(again) == 0
        assert "step 2 was in doubt: the catalog says that it has run" in capfd.readouterr().err
        assert planned.states(path) == ["done"] * 3
        record = read_record(record_path(path), read_plan(path))
        assert record is not None
        assert [step.found_out for step in record.steps] == [False, True, False]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_program_cancels_its_statement(
    newest: ServerPrograms, tmp_path: Path, capfd: pytest.CaptureFixture[str], number: int
) -> None:
    """Ctrl-C and a polite end: the step in doubt is named, and the next call does it."""
    with planned.database(newest) as (cluster, profile):
        path = planned.write_plan(planned.three(profile), tmp_path)
        again = ["apply", str(path), observed.conninfo(cluster), "--yes"]
        with waiting_child(cluster, again) as child:
            child.send_signal(number)
            _, said = child.communicate(timeout=DEADLINE_S)
            assert child.returncode == (130 if number == signal.SIGINT else 128 + number)
            assert "step 2 was interrupted" in said
            assert planned.states(path) == ["done", "running", "pending"]
            wait_for(cluster, "true", 0)
        assert planned.options_of(cluster)["quiet"] == []
        assert run(again) == 0
        assert "the catalog says that it has not run" in capfd.readouterr().err
        assert planned.states(path) == ["done"] * 3


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
    observed.wait_until(
        cluster,
        f"SELECT count(*) = {count} FROM pg_stat_activity"
        f" WHERE application_name = '{APPLICATION_NAME}' AND {condition}",
        f"{count} sessions with {condition}",
    )


def test_a_session_that_is_just_ending_is_waited_for(
    newest: ServerPrograms, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lock of a call that has ended goes with its server process, a moment later."""
    waits: list[float] = []
    with planned.database(newest) as (cluster, _):
        conninfo = observed.conninfo(cluster)
        with cluster.connect() as ended:
            ended.execute("SELECT pg_advisory_lock(%s, 1)", (LOCK_CLASS,))

            def sleep(seconds: float) -> None:
                waits.append(seconds)
                ended.execute("SELECT pg_advisory_unlock(%s, 1)", (LOCK_CLASS,))

            monkeypatch.setattr("pgheadroom.plan.session.time", SimpleNamespace(sleep=sleep))
            with writing_session(conninfo, {}) as connection:
                assert connection.execute("SELECT 1").fetchone() == (1,)
    assert len(waits) == 1


def test_a_table_that_goes_while_apply_runs(newest: ServerPrograms, tmp_path: Path) -> None:
    """Dropped between two steps: its own is left out, and what was done is known."""
    with planned.database(newest) as (cluster, profile):
        plan = planned.three(profile)
        path = planned.write_plan(plan, tmp_path)
        seen: list[str] = []

        def say(text: str) -> None:
            seen.append(text)
            if text.startswith("step 2"):
                observed.load(cluster, "DROP TABLE quiet")

        with writing_session(observed.conninfo(cluster), {}) as connection:
            call = ApplyCall(
                plan=plan,
                record=new_record(plan),
                connection=connection,
                keep=lambda record: save(record, record_path(path)),
                say=say,
            )
            applier = Applier(call)
            outcome = applier.run(applier.prepare(undo=False), undo=False)
        assert (outcome.done, outcome.left, outcome.stopped) == ((1, 3), (), None)
        assert outcome.gone == ((2, "it is gone: dropped since it was observed"),)
        assert planned.states(path) == ["done", "gone", "done"]


def test_statements_that_change_nothing_count_as_failed(
    newest: ServerPrograms, tmp_path: Path
) -> None:
    """An event trigger that takes the setting back: the catalog is believed, not the silence."""
    trigger = """
    CREATE FUNCTION back() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN
      IF pg_trigger_depth() = 0 AND current_query() LIKE '%fillfactor = 70%' THEN
        EXECUTE 'ALTER TABLE public.quiet RESET (fillfactor)' ^ END IF ^ END $$
    """.replace(" ^", ";")
    with planned.database(newest) as (cluster, profile):
        path = planned.write_plan(planned.plan_of(profile, {"quiet": 70}), tmp_path)
        with cluster.connect() as connection:
            connection.execute(trigger.encode())
            connection.execute(
                "CREATE EVENT TRIGGER t ON ddl_command_end WHEN TAG IN ('ALTER TABLE')"
                " EXECUTE FUNCTION back()"
            )
        assert run(["apply", str(path), observed.conninfo(cluster), "--yes"]) == 1
        assert planned.states(path) == ["failed"]
