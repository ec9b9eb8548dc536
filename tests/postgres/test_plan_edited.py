"""Plans that were edited, tables that have changed: what `apply` refuses, shows, goes on with."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path
from typing import Any

import observed
import planned
import pytest

from pgheadroom.cli.app import run
from pgheadroom.plan import Plan, plan_text
from pgheadroom.plan.apply import Applier
from pgheadroom.plan.execution import ApplyCall
from pgheadroom.plan.record import AppliedRecord, new_record, read_record, record_path, save
from pgheadroom.plan.session import writing_session
from pgheadroom.servers import Cluster, ServerPrograms

pytestmark = pytest.mark.usefixtures("run_parent")

ODD = "red \x1b[31m\u202e\x9b2J\nend"
ODD_DDL = f"""
CREATE TABLE "{ODD}" (id int PRIMARY KEY, v int);
INSERT INTO "{ODD}" SELECT i, 0 FROM generate_series(1, 500) i
"""


def files_of(cluster: Cluster) -> dict[str, int]:
    with cluster.connect() as connection:
        return dict(
            connection.execute(
                "SELECT relname, relfilenode::int8 FROM pg_class WHERE relkind = 'r'"
                " AND relnamespace = 'public'::regnamespace"
            ).fetchall()
        )


def acting(text: str) -> list[str]:
    """What acts on a terminal instead of being seen; our own line breaks aside."""
    return [c for c in text if c != "\n" and unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp")]


def renamed(step: dict[str, Any], name: str) -> None:
    """A step that carries another table's name beside its own number, wherever a name stands."""
    old = step["table"]["name"]
    for mark in (step["table"], step["forecast"]["table"]):
        mark["name"] = name
    for key in ("sql", "undo"):
        if step[key] is not None:
            step[key] = step[key].replace(f'"{old}"', f'"{name}"')


def test_each_step_is_checked_against_its_own_table(
    programs: ServerPrograms, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """
    One table's number with another's name, by somebody who makes the digest anew.

    Only the last step of a number was checked: a first one changed the other table, and VACUUM FULL
    of a foreign table ran the same way.
    """
    with planned.database(programs) as (cluster, profile):
        plan = planned.plan_of(profile, {"jobs": 90, "parts_1": 85}, rewrite="vacuum-full")
        before, files = planned.options_of(cluster), files_of(cluster)
        path = tmp_path / "plan.json"
        conninfo = observed.conninfo(cluster)
        for steps in ((0,), (2,), (0, 2)):  # the setting alone, the rewrite alone, both
            data = json.loads(plan_text(plan))
            for n in steps:
                renamed(data["steps"][n], "quiet")
            path.write_text(plan_text(Plan.from_json(data)))
            assert run(["apply", str(path), conninfo, "--yes"]) == 2
            said = capsys.readouterr().err
            assert ("name: found public.jobs, the plan has public.quiet" in said) is (
                steps == (0, 2)
            )
            assert ("another fingerprint" in said) is (steps != (0, 2))
        edited = plan_text(plan).replace('"fillfactor": 90', '"fillfactor": 10')
        path.write_text(edited.replace("(fillfactor = 90)", "(fillfactor = 10)"))
        assert run(["apply", str(path), conninfo, "--yes"]) == 2
        assert "was changed since it was written" in capsys.readouterr().err
        assert planned.options_of(cluster) == before
        assert files_of(cluster) == files
        assert not record_path(path).exists()


def test_nothing_of_a_file_or_a_name_acts_on_a_terminal(
    newest: ServerPrograms, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Escape sequences and lies in the plan, and a table whose name would paint the screen."""
    with planned.database(newest, ODD_DDL) as (cluster, profile):
        odd = next(t.name for t in profile.tables if t.observed and t.observed["name"] == ODD)
        plan = planned.plan_of(profile, {"jobs": 90, odd: 85}, rewrite="vacuum-full")
        data = json.loads(plan_text(plan))
        for step in data["steps"]:
            for name in ("lock", "blocks", "risk", "undo_note"):
                step[name] = "none\x1b[2J\u202e"
            step["verified"] = True
        path = tmp_path / "plan.json"
        path.write_text(plan_text(Plan.from_json(data)))
        conninfo = observed.conninfo(cluster)

        def shown(*arguments: str, code: int) -> str:
            assert run(list(arguments)) == code, arguments
            found = capsys.readouterr()
            assert acting(found.out + found.err) == [], arguments
            return found.out + found.err

        said = shown("apply", str(path), conninfo, "--dry-run", code=0)
        assert "lock: ACCESS EXCLUSIVE; blocks everything" in said
        assert "lock: none" not in said
        assert "The table cannot be used meanwhile" in said
        assert "red \\x1b[31m\\u202e\\x9b2J\\nend" in said
        shown("apply", str(path), conninfo, "--yes", "--skip", ODD + "?", code=2)
        shown("apply", str(path), conninfo, "--yes", code=0)
        saved = tmp_path / "profile.json"
        shown("observe", conninfo, "--for", "100ms", "-o", str(saved), code=0)
        shown("advise", str(saved), "--verbose", code=0)
        shown("layout", conninfo, code=0)
        shown("verify", str(path), conninfo, "--for", "100ms", code=6)
        observed.load(cluster, f'ALTER TABLE "{ODD}" ADD extra int; DROP TABLE jobs')
        shown("verify", str(path), conninfo, "--for", "100ms", code=6)
        shown("apply", str(path), conninfo, "--yes", code=0)  # all was done before
        shown("apply", str(path), conninfo, "--yes", "--undo", code=1)


def test_undo_goes_on_past_what_cannot_be_undone(
    programs: ServerPrograms, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The rest is undone, what cannot be is named with why, exit code 1; or it is left out."""
    with planned.database(programs) as (cluster, profile):
        observed.load(cluster, "CREATE ROLE other; CREATE ROLE member LOGIN")
        observed.load(cluster, "GRANT postgres TO member")
        path = planned.write_plan(planned.three(profile), tmp_path)
        conninfo, before = observed.conninfo(cluster), planned.options_of(cluster)
        apply = ["apply", str(path), conninfo, "--yes"]
        assert run([*apply, "--skip", "absent"]) == 2
        assert "expected one of jobs, quiet, parts_1" in capsys.readouterr().err
        observed.load(cluster, "ALTER TABLE quiet ADD extra int")
        assert run(apply) == 2
        assert "--skip TABLE" in capsys.readouterr().err
        assert run([*apply, "--skip", "public.quiet"]) == 0
        assert "Left alone: step 2 (quiet)" in capsys.readouterr().out
        assert planned.states(path) == ["done", "pending", "done"]
        observed.load(cluster, "ALTER TABLE quiet DROP extra")
        assert run(apply) == 0
        assert planned.states(path) == ["done"] * 3

        observed.load(cluster, "ALTER TABLE quiet SET (fillfactor = 60)")
        undo = [*apply, "--undo"]
        assert run([*undo, "--dry-run"]) == 0
        assert run(undo) == 1
        said = " ".join(capsys.readouterr().out.split())  # as wide as the terminal
        assert "Undone: step 3 (parts_1), step 1 (jobs)." in said
        why = "storage parameter fillfactor: found 60, the plan has 70"
        assert f"Cannot be undone: step 2 (quiet): {why}" in said
        assert planned.states(path) == ["undone", "done", "undone"]
        left = planned.options_of(cluster)
        assert left.pop("quiet") == ["fillfactor=60"]
        assert left == {name: found for name, found in before.items() if name != "quiet"}
        assert run(undo) == 1
        assert "Nothing is left to undo" in capsys.readouterr().out
        assert run([*undo, "--skip", "quiet"]) == 0

        observed.load(cluster, "ALTER TABLE quiet SET (fillfactor = 70)")
        observed.load(cluster, "ALTER TABLE quiet OWNER TO other")
        member = ["apply", str(path), observed.conninfo(cluster, "member"), "--yes", "--undo"]
        observed.load(cluster, "ALTER ROLE member NOSUPERUSER; REVOKE postgres FROM member")
        assert run(member) == 1
        assert "its owner is other" in capsys.readouterr().out
        assert run(undo) == 0
        assert planned.states(path) == ["undone"] * 3
        assert planned.options_of(cluster) == before


class Killed(BaseException):
    """Stands for the end of the process."""


def test_an_interrupted_undo_goes_on_past_a_table_that_went(
    newest: ServerPrograms, tmp_path: Path
) -> None:
    """Dropped while it runs, or between a kill and the next call: the others are undone."""
    with planned.database(newest) as (cluster, profile):
        conninfo = observed.conninfo(cluster)
        for dropped_at in (0, 1):  # during the call; after one that ended behind its first write
            plan = planned.three(profile)
            path = planned.write_plan(plan, tmp_path)
            record_path(path).unlink(missing_ok=True)
            planned_for = applied(conninfo, plan, path)
            assert planned_for.done == (1, 2, 3)
            if dropped_at:
                with pytest.raises(Killed):
                    applied(conninfo, plan, path, undo=True, killed_at=1)
                observed.load(cluster, "ALTER TABLE quiet RENAME TO gone")
                outcome = applied(conninfo, plan, path, undo=True)
                observed.load(cluster, "ALTER TABLE gone RENAME TO quiet")
            else:
                outcome = applied(
                    conninfo,
                    plan,
                    path,
                    undo=True,
                    at=("step 3", lambda: observed.load(cluster, "ALTER TABLE quiet RENAME TO x")),
                )
                observed.load(cluster, "ALTER TABLE x RENAME TO quiet")
            assert outcome.done == (3, 1)
            assert outcome.stopped is None
            assert [number for number, _ in outcome.changed] == [2]
            assert "name: found public." in dict(outcome.changed)[2]
            assert planned.states(path) == ["undone", "done", "undone"]
            assert applied(conninfo, plan, path, undo=True).done == (2,)


def applied(
    conninfo: str,
    plan: Plan,
    path: Path,
    *,
    undo: bool = False,
    killed_at: int = 0,
    at: tuple[str, Any] | None = None,
) -> Any:
    """One call of apply; it ends behind a write of the record, or something happens at a step."""
    writes = 0

    def keep(record: AppliedRecord) -> None:
        nonlocal writes
        save(record, record_path(path))
        writes += 1
        if writes == killed_at:
            raise Killed

    def say(text: str) -> None:
        if at is not None and text.startswith(at[0]):
            at[1]()

    with writing_session(conninfo, {}) as connection:
        record = read_record(record_path(path), plan) or new_record(plan)
        call = ApplyCall(plan=plan, record=record, connection=connection, keep=keep, say=say)
        applier = Applier(call)
        return applier.run(applier.prepare(undo=undo), undo=undo)
