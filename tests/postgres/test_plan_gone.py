"""`apply` and `verify` of a plan some of whose tables are not there any more."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import observed
import planned
import pytest

from pgheadroom.cli.app import run
from pgheadroom.plan.record import record_path
from pgheadroom.servers import ServerPrograms

pytestmark = pytest.mark.usefixtures("run_parent")

GONE = "it is gone: dropped since it was observed"


def _errors(path: Path) -> list[str | None]:
    data = json.loads(record_path(path).read_text(encoding="utf-8"))
    return [step["error"] for step in data["steps"]]


def test_a_table_that_is_gone_leaves_the_other_steps_alone(
    programs: ServerPrograms, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A partition that is dropped each night refused the whole plan, for tables that were there."""
    with planned.database(programs) as (cluster, profile):
        path = planned.write_plan(planned.three(profile, rewrite="vacuum-full"), tmp_path)
        conninfo = observed.conninfo(cluster)
        observed.load(cluster, "DROP TABLE parts_1")
        before = planned.options_of(cluster)

        assert run(["apply", str(path), conninfo, "--dry-run"]) == 0
        shown = capsys.readouterr().out
        assert f"Left out: step 3 (parts_1): {GONE}." in shown
        assert f"Left out: step 6 (parts_1): {GONE}." in shown
        assert planned.options_of(cluster) == before
        assert not record_path(path).exists()

        assert run(["apply", str(path), conninfo, "--yes"]) == 1
        shown = capsys.readouterr().out
        assert "Done: step 1 (jobs), step 2 (quiet), step 4 (jobs), step 5 (quiet)." in shown
        assert f"Left out: step 3 (parts_1): {GONE}." in shown
        assert "Stopped" not in shown
        assert planned.states(path) == ["done", "done", "gone", "done", "done", "gone"]
        assert _errors(path) == [None, None, GONE, None, None, GONE]
        after = planned.options_of(cluster)
        assert "fillfactor=90" in after["jobs"]
        assert after["quiet"] == ["fillfactor=70"]

        assert run(["apply", str(path), conninfo, "--yes"]) == 1
        assert "Nothing is left to do." in capsys.readouterr().out
        assert run(["apply", str(path), conninfo, "--yes", "--skip", "parts_1"]) == 0
        capsys.readouterr()

        # One that goes after its step was done is no step that is left out.
        observed.load(cluster, "DROP TABLE quiet")
        assert run(["apply", str(path), conninfo, "--yes", "--skip", "parts_1"]) == 0
        assert ", and its table is gone since." in capsys.readouterr().out
        assert planned.states(path) == ["done", "done", "gone", "done", "done", "gone"]

        assert run(["verify", str(path), conninfo, "--for", "1s", "-f", "json"]) == 6
        found = json.loads(capsys.readouterr().out)
        said = {table["name"]: (table["verdict"], table["reason"]) for table in found["tables"]}
        assert said["parts_1"] == ("not comparable", GONE)
        assert said["quiet"] == ("not comparable", GONE)

        assert run(["apply", str(path), conninfo, "--yes", "--undo"]) == 1
        assert f"step 2 (quiet): {GONE}" in capsys.readouterr().out
        assert planned.options_of(cluster)["jobs"] == before["jobs"]


def test_only_tables_that_are_gone(
    newest: ServerPrograms, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is left to do, which is written down, and not called done."""
    with planned.database(newest) as (cluster, profile):
        path = planned.write_plan(planned.plan_of(profile, {"quiet": 70}), tmp_path)
        observed.load(cluster, "DROP TABLE quiet")
        call = ["apply", str(path), observed.conninfo(cluster), "--yes"]
        assert run(call) == 1
        shown = capsys.readouterr().out
        assert f"Left out: step 1 (quiet): {GONE}." in shown
        assert planned.states(path) == ["gone"]
        assert run([*call, "--undo"]) == 0


def test_a_table_of_the_same_name_is_another_one(
    programs: ServerPrograms, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What was observed of the old one says nothing of it: its step is refused, with the reason."""
    with planned.database(programs) as (cluster, profile):
        plan = planned.three(profile)
        path = planned.write_plan(plan, tmp_path)
        conninfo = observed.conninfo(cluster)
        observed.load(cluster, "CREATE TABLE anew (LIKE quiet INCLUDING ALL)")
        observed.load(cluster, "DROP TABLE quiet; ALTER TABLE anew RENAME TO quiet")
        with cluster.connect() as connection:
            row = connection.execute("SELECT 'quiet'::regclass::oid::int8").fetchone()
        assert row is not None
        assert run(["apply", str(path), conninfo, "--yes"]) == 1
        shown = " ".join(capsys.readouterr().out.split())
        why = (
            f"it is gone, and another table has its name (OID {row[0]}, the plan's had "
            f"{plan.steps[1].table.oid}), which was not observed"
        )
        assert f"Left out: step 2 (quiet): {why}." in shown
        assert planned.states(path) == ["done", "gone", "done"]
        assert planned.options_of(cluster)["quiet"] == []
        assert run(["verify", str(path), conninfo, "--for", "1s", "-f", "json"]) == 6
        found = json.loads(capsys.readouterr().out)
        assert [t["reason"] for t in found["tables"] if t["name"] == "quiet"] == [why]


def test_a_table_that_goes_while_its_lock_is_awaited(
    newest: ServerPrograms, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The statement finds no table, though it was checked just before: the rest is done."""
    with planned.database(newest) as (cluster, profile):
        path = planned.write_plan(planned.three(profile), tmp_path)
        with cluster.connect(autocommit=False) as holder:
            holder.execute("LOCK TABLE quiet IN SHARE UPDATE EXCLUSIVE MODE")

            def drop() -> None:
                observed.wait_until(
                    cluster,
                    "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted"
                    " AND mode = 'ShareUpdateExclusiveLock')",
                    "apply waits for its lock",
                )
                holder.execute("DROP TABLE quiet")
                holder.commit()

            dropping = threading.Thread(target=drop)
            dropping.start()
            call = ["apply", str(path), observed.conninfo(cluster), "--yes"]
            code = run([*call, "--lock-timeout", "60s"])
            dropping.join()
        assert code == 1
        shown = capsys.readouterr().out
        assert f"Left out: step 2 (quiet): {GONE}." in shown
        assert "Done: step 1 (jobs), step 3 (parts_1)." in shown
        assert planned.states(path) == ["done", "gone", "done"]
        assert "autovacuum_enabled=off" in planned.options_of(cluster)["jobs"]
