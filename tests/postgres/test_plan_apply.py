"""`apply` on real servers: what it does, what it refuses, and that no interruption loses a step."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import observed
import planned
import pytest

from pgheadroom.cli.app import run
from pgheadroom.errors import InputError
from pgheadroom.forms import read, write
from pgheadroom.plan import make_plan, read_plan
from pgheadroom.plan.marks import mark_of, read_catalog
from pgheadroom.plan.record import record_path
from pgheadroom.plan.statements import wal_bytes
from pgheadroom.plan.text import as_text
from pgheadroom.profile import Profile, read_profile, to_json
from pgheadroom.profile.observed_server import ObservedServer
from pgheadroom.servers import Host, ServerPrograms
from pgheadroom.sources.session import read_only_session

pytestmark = pytest.mark.usefixtures("run_parent")

ODD = 'quote " colon: back\\slash\n-- line */ \x1b[2J\u202e\u2028'
ODD_SQL = '"' + ODD.replace('"', '""') + '"'
HOSTILE = f"""
CREATE SCHEMA "Ünï";
CREATE TABLE "Ünï".{ODD_SQL} (id int PRIMARY KEY, "a ""b" text) WITH (fillfactor = 100);
CREATE INDEX "in""dex:" ON "Ünï".{ODD_SQL} ("a ""b", lower("a ""b"));
INSERT INTO "Ünï".{ODD_SQL} SELECT i, 'x' FROM generate_series(1, 500) i
"""


def odd_name(profile: Profile) -> str:
    """The profile's name of the table whose name no profile can hold."""
    return next(t.name for t in profile.tables if t.observed and t.observed["name"] == ODD)


def test_it_applies_undoes_and_repeats_nothing(
    programs: ServerPrograms, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Odd names and all: done, done again without a write, undone to exactly what was there."""
    with planned.database(programs, HOSTILE) as (cluster, profile):
        observed.load(cluster, "CREATE ROLE reader LOGIN; ALTER ROLE postgres SET lock_timeout = 0")
        settings = {"jobs": 90, "quiet": 70, "parts_1": 85, odd_name(profile): 80}
        plan = planned.plan_of(profile, settings, rewrite="auto")
        path = planned.write_plan(plan, tmp_path)
        before, conninfo = planned.options_of(cluster), observed.conninfo(cluster)
        assert run(["apply", str(path), conninfo, "--dry-run"]) == 0
        assert "Nothing was changed" in capsys.readouterr().out
        assert planned.options_of(cluster) == before
        assert not record_path(path).exists()

        assert run(["apply", str(path), conninfo, "--yes"]) == 0
        shown = capsys.readouterr().out
        assert "SHARE UPDATE EXCLUSIVE" in shown
        assert "undo: ALTER TABLE" in shown
        assert planned.states(path) == ["done"] * 8
        after = planned.options_of(cluster)
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
        assert run(["apply", str(path), conninfo, "--yes", "--undo", "--skip", "jobs"]) == 1
        assert planned.states(path) == ["done", "done", "undone", "undone"] + ["done"] * 4
        observed.load(cluster, "ALTER TABLE quiet SET (fillfactor = 70)")

        assert run(["apply", str(path), conninfo, "--yes", "--undo"]) == 0
        assert planned.states(path) == ["undone"] * 4 + ["done"] * 4
        assert planned.options_of(cluster) == before
        assert run(["apply", str(path), conninfo, "--yes", "--undo"]) == 0
        assert "Nothing is left to undo" in capsys.readouterr().out


def test_a_program_reads_the_record(
    programs: ServerPrograms, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--format json`: the record alone on standard output, a person's words beside it."""
    with planned.database(programs, HOSTILE) as (cluster, profile):
        path = planned.write_plan(planned.plan_of(profile, {"jobs": 90}), tmp_path)
        call = ["apply", str(path), observed.conninfo(cluster), "--format", "json"]

        def states(*more: str) -> list[str]:
            assert run([*call, *more]) == 0
            shown = capsys.readouterr()
            assert "Digest" in shown.err
            return [step["state"] for step in json.loads(shown.out)["steps"]]

        assert set(states("--dry-run")) == {"pending"}
        assert not record_path(path).exists()
        for _ in range(2):
            assert set(states("--yes")) == {"done"}
        assert set(states("--yes", "--undo")) == {"undone"}
        assert run([*call, "--yes", "--undo"]) == 0
        assert capsys.readouterr().out == record_path(path).read_text(encoding="utf-8")


def test_the_plans_text_runs_in_psql_and_locks_and_wal_are_as_said(
    programs: ServerPrograms, newest: ServerPrograms
) -> None:
    """The script does what apply does; its lock is read from pg_locks, its WAL from the server."""
    with planned.database(programs, HOSTILE) as (cluster, profile):
        plan = planned.plan_of(profile, {"jobs": 90, odd_name(profile): 80})
        env = dict(os.environ) | cluster.client_env()
        # Names are the same whatever strings are.
        env["PGOPTIONS"] = "-c standard_conforming_strings=off"
        assert "\x1b" not in as_text(plan)
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
        after = planned.options_of(cluster)
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
    ]
    with planned.database(programs) as (cluster, profile):
        plan = planned.three(profile)
        path = planned.write_plan(plan, tmp_path)
        conninfo = observed.conninfo(cluster)
        for change, said, back in changes:
            observed.load(cluster, change)
            before = planned.options_of(cluster)
            assert run(["apply", str(path), conninfo, "--yes"]) == 2
            error = capsys.readouterr().err
            assert said in error
            assert "Nothing was changed" in error
            assert planned.options_of(cluster) == before
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


def test_what_goes_wrong_is_said(
    programs: ServerPrograms, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """No right, wrong password, no connection, nobody to ask, a table dropped meanwhile."""
    with planned.database(programs) as (cluster, profile):
        observed.load(
            cluster,
            "CREATE ROLE guarded LOGIN PASSWORD 'right'; CREATE ROLE member LOGIN; "
            "GRANT postgres TO member; ALTER ROLE member SET default_transaction_read_only = on",
        )
        rules = cluster.data_dir / "pg_hba.conf"
        rules.write_text("local all guarded scram-sha-256\n" + rules.read_text())
        observed.reload(cluster)
        path = planned.write_plan(planned.three(profile), tmp_path)
        before = planned.options_of(cluster)
        guarded = observed.conninfo(cluster, "guarded")

        def refused(*arguments: str, code: int, said: str) -> None:
            assert run(["apply", str(path), *arguments]) == code
            shown = capfd.readouterr()
            assert said in shown.err
            assert "secret" not in shown.err + shown.out
            assert planned.options_of(cluster) == before

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


def test_no_plan_without_names_or_tools(newest: ServerPrograms, tmp_path: Path) -> None:
    """Masked and unobserved profiles, and rewrites that the server does not have."""
    with planned.database(newest) as (cluster, profile):
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
        settings = write(profile.server.observed)["settings"] | {
            "squeeze.max_xlock_time": {"setting": "0"}
        }
        later = replace(
            profile,
            server=replace(
                profile.server,
                version="19.0",
                observed=read(
                    ObservedServer,
                    {**(profile.server.observed or {}), "modules": every, "settings": settings},
                ),
            ),
        )
        offered = planned.plan_of(later, {"jobs": 90}).offers
        assert [(step.tool, step.run_by, step.verified) for step in offered] == [
            ("REPACK (CONCURRENTLY)", "apply", True),
            ("pg_squeeze", "apply", False),
            ("pg_repack", "you", False),
            ("VACUUM FULL", "apply", True),
        ]
        chosen = planned.plan_of(later, {"jobs": 90}, rewrite="auto")
        assert [step.sql for step in chosen.steps][1:] == [
            'REPACK (CONCURRENTLY, ANALYZE) "public"."jobs"'
        ]
        assert "Not verified by us on this version" not in as_text(chosen)
        squeezed = planned.plan_of(later, {"jobs": 90}, rewrite="pg_squeeze")
        assert "Not verified by us on this version" in as_text(squeezed)
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
        plan = planned.three(observed.profile_of(observed.watched(primary)))
        path = planned.write_plan(plan, tmp_path)
        standby = standby_of(host, primary)
        assert run(["apply", str(path), observed.conninfo(standby), "--yes"]) == 2
        assert "the server is a standby" in capsys.readouterr().err
        assert run(["apply", str(path), observed.conninfo(primary), "--yes"]) == 0


def test_it_asks_on_a_terminal(newest: ServerPrograms, tmp_path: Path) -> None:
    """No is no, with exit code 1; yes goes ahead."""
    with planned.database(newest) as (cluster, profile):
        path = planned.write_plan(planned.three(profile), tmp_path)
        before = planned.options_of(cluster)
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
            assert (planned.options_of(cluster) == before) is (answer == "n")


def test_advise_writes_the_plan(newest: ServerPrograms, tmp_path: Path) -> None:
    """As JSON, for a change request and for psql; a masked profile is refused before the work."""
    with planned.database(newest) as (cluster, _):
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

    with planned.database(programs, ZOO, HOSTILE) as (cluster, profile):
        with read_only_session(observed.conninfo(cluster), {}) as connection:
            catalog = read_catalog(connection)
        assert len(profile.tables) >= 19
        for table in profile.tables:
            mark = mark_of(table)
            assert mark.differs(catalog.tables[mark.oid].mark) == ()
            assert mark == catalog.tables[mark.oid].mark
