"""
Rewrites by the tools that servers have: REPACK of 19, pg_squeeze and pg_repack of the 18 of Debian.

What `usable_rewrites` says of a table is held against the tool itself; a rewrite by `apply` beside
a client that updates loses nothing, and none waits longer for its lock than it may.
"""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import observed
import planned
import psycopg
import pytest
from footprint import DEADLINE_S
from test_plan_apply import run

from pgheadroom.doctor import rule_named
from pgheadroom.doctor.live_plan import examine_and_plan
from pgheadroom.doctor.planning import PlanWish
from pgheadroom.doctor.remedy_facts import RemedyFacts
from pgheadroom.doctor.rewriting import rewriting_facts, tools_for
from pgheadroom.plan import execution, plan_text
from pgheadroom.plan.guard import SqueezeGuard
from pgheadroom.plan.marks import mark_of
from pgheadroom.plan.record import record_path
from pgheadroom.plan.rewrites import usable_rewrites
from pgheadroom.plan.statements import OPTIONS, rewrite
from pgheadroom.plan.values import Target, Tool
from pgheadroom.profile import Profile
from pgheadroom.servers import Cluster, Host, ServerPrograms
from pgheadroom.sources.session import read_only_session
from pgheadroom.types import PgVersion

TABLES = """
CREATE TABLE keyed (id int PRIMARY KEY, v text);
CREATE TABLE bare (id int, v text);
CREATE TABLE only_unique (id int NOT NULL UNIQUE, v text);
CREATE TABLE unique_nulls (id int UNIQUE, v text);
CREATE TABLE unique_partly (id int NOT NULL);
CREATE UNIQUE INDEX ON unique_partly (id) WHERE id > 0;
CREATE TABLE unique_expression (id int NOT NULL);
CREATE UNIQUE INDEX ON unique_expression ((id + 1));
CREATE TABLE unique_both (id int NOT NULL, b int);
CREATE UNIQUE INDEX ON unique_both (id, b);
CREATE TABLE covering (id int, v text, PRIMARY KEY (id) INCLUDE (v));
CREATE TABLE identified (id int NOT NULL, v text);
CREATE UNIQUE INDEX identified_i ON identified (id);
ALTER TABLE identified REPLICA IDENTITY USING INDEX identified_i;
CREATE TABLE later (id int PRIMARY KEY DEFERRABLE, v text);
CREATE TABLE later_identified (id int PRIMARY KEY DEFERRABLE, b int NOT NULL);
CREATE UNIQUE INDEX later_b ON later_identified (b);
ALTER TABLE later_identified REPLICA IDENTITY USING INDEX later_b;
CREATE TABLE whole_rows (id int PRIMARY KEY);
ALTER TABLE whole_rows REPLICA IDENTITY FULL;
CREATE TABLE nothing (id int PRIMARY KEY);
ALTER TABLE nothing REPLICA IDENTITY NOTHING;
CREATE UNLOGGED TABLE unlogged (id int PRIMARY KEY);
CREATE TABLE parted (id int PRIMARY KEY) PARTITION BY RANGE (id);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (100);
CREATE TABLE generated (id int PRIMARY KEY, g int GENERATED ALWAYS AS (id * 2) STORED);
CREATE TABLE narrowed (id int PRIMARY KEY, v text);
ALTER TABLE narrowed DROP COLUMN v;
CREATE TABLE "od d""x" (id int PRIMARY KEY);
"""
BUSY = """
CREATE TABLE counts (id int PRIMARY KEY, n int NOT NULL DEFAULT 0, b int, v text);
INSERT INTO counts SELECT g, 0, g % 10, repeat('x', 80) FROM generate_series(1, 20000) g;
CREATE INDEX ON counts (b);
VACUUM ANALYZE counts
"""
EXTENSIONS = ("pg_squeeze", "pg_repack")
TARGET = Target(system_identifier=None, database_oid=5, database="postgres", server_version="18.6")


@contextmanager
def prepared(programs: ServerPrograms, *ddl: str) -> Iterator[tuple[Cluster, Profile, list[Tool]]]:
    """A server set up for the tools that it has, tables, an observation."""
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        with cluster.connect() as connection:
            rows = connection.execute("SELECT name FROM pg_available_extensions").fetchall()
            plugins = connection.execute("SELECT current_setting('output_plugin_libraries', true)")
            named = plugins.fetchone()
        there = [name for (name,) in rows if name in EXTENSIONS]
        tools: list[Tool] = [t for t in ("pg_squeeze", "pg_repack") if t in there]
        if programs.version.major >= 19:
            tools.insert(0, "REPACK (CONCURRENTLY)")
        if not tools:
            pytest.skip("this server has none of REPACK, pg_squeeze, pg_repack")
        if "pg_squeeze" in there:
            cluster.stop()
            more = {"shared_preload_libraries": "pg_squeeze", "wal_level": "logical"}
            if named is not None and named[0] is not None:
                more["output_plugin_libraries"] = f"{named[0]}, pg_squeeze"
            cluster.start({"autovacuum": "off"} | more)
        for text in (*ddl, *(f"CREATE EXTENSION {name}" for name in there)):
            observed.load(cluster, text)
        recording = observed.watched(cluster)
        yield cluster, observed.profile_of(recording), tools


def environment(cluster: Cluster) -> Mapping[str, str]:
    return os.environ | {**cluster.client_env(), "PGUSER": "postgres", "PGDATABASE": "postgres"}


def works(cluster: Cluster, programs: ServerPrograms, tool: Tool, table: Any) -> bool:
    """Whether the statement or command of a plan rewrites the table."""
    statement, command = rewrite(tool, mark_of(table), TARGET)
    with cluster.connect() as connection:
        asked = (table.observed.oid,)
        file = "SELECT relfilenode FROM pg_class WHERE oid = %s"
        before = connection.execute(file, asked).fetchone()
        if command is not None:
            path = f"{programs.bin_dir}:{os.environ['PATH']}"
            env = {**environment(cluster), "PATH": path}
            subprocess.run(command, shell=True, env=env, capture_output=True, check=False)
        else:
            assert statement is not None
            try:
                connection.execute(statement.encode())
            except psycopg.Error:
                return False
        return before != connection.execute(file, asked).fetchone()


def judged(profile: Profile, name: str) -> tuple[list[Tool], dict[Tool, str]]:
    facts, server = profile.table(name).observed, profile.server
    assert facts is not None
    assert server.observed is not None
    major = PgVersion.parse(server.version).major
    return usable_rewrites(facts, server.observed, major=major, wal_level=server.wal_level)


def judged_by_the_doctor(cluster: Cluster, name: str) -> dict[Tool, str]:
    """What cannot rewrite a table, by the doctor's own questions."""
    with read_only_session(observed.conninfo(cluster), {}) as connection:
        facts = RemedyFacts(connection)
        (row,) = facts.rows(f"SELECT 'public.{name}'::regclass::oid::int8 AS oid")
        found = rewriting_facts(facts.rows, [row["oid"]])[row["oid"]]
        major = connection.info.server_version // 10000
        return tools_for(facts.settings(), major, found)[1]


@pytest.mark.minors
@pytest.mark.pg(">= 18")
def test_a_table_is_judged_as_the_tools_judge_it(programs: ServerPrograms) -> None:
    """What is said to be usable rewrites the table, and what is not does not."""
    with prepared(programs, TABLES) as (cluster, profile, tools):
        names = [table.name for table in profile.tables]
        assert len(names) >= 18
        said = {(n, tool): tool in judged(profile, n)[0] for n in names for tool in tools}
        found = {(n, tool): works(cluster, programs, tool, profile.table(n)) for n, tool in said}
        assert said == found
        assert {False, True} == set(found.values())


@pytest.mark.minors
@pytest.mark.pg(">= 18")
def test_settings_decide_too(programs: ServerPrograms) -> None:
    """wal_level, slots, a library that is not loaded or not trusted: as the tools have it."""
    minimal = {"wal_level": "minimal", "max_wal_senders": "0"}
    with prepared(programs, "CREATE TABLE keyed (id int PRIMARY KEY)") as (cluster, _, tools):
        loaded = {"shared_preload_libraries": "pg_squeeze"} if "pg_squeeze" in tools else {}
        logical = {"wal_level": "logical"}
        whys: list[tuple[Tool, dict[str, str], str]] = [
            ("REPACK (CONCURRENTLY)", minimal, "wal_level is minimal"),
            ("REPACK (CONCURRENTLY)", {"max_repack_replication_slots": "0"}, "slots is 0"),
            ("pg_squeeze", loaded, "wal_level is replica"),
            ("pg_squeeze", loaded | logical, "output_plugin_libraries does not name it"),
            ("pg_squeeze", logical, "not in shared_preload_libraries"),
        ]
        for tool, settings, why in whys:
            if tool not in tools:
                continue
            cluster.stop()
            cluster.start(settings)
            profile = observed.profile_of(observed.watched(cluster))
            assert why in judged(profile, "keyed")[1][tool]
            assert why in judged_by_the_doctor(cluster, "keyed")[tool]
            assert not works(cluster, programs, tool, profile.table("keyed"))


class Client:
    """Updates one row after the other, and counts them."""

    def __init__(self, cluster: Cluster) -> None:
        self.updates = 0
        self._conninfo = observed.conninfo(cluster)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work)

    def __enter__(self) -> Client:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def goes_on(self) -> bool:
        """Whether it updates another row, and one that it began by now."""
        aim, deadline_s = self.updates + 2, time.monotonic() + DEADLINE_S
        while self.updates < aim and time.monotonic() < deadline_s:
            time.sleep(0.01)
        return self.updates >= aim

    def _work(self) -> None:
        with psycopg.connect(self._conninfo, autocommit=True) as connection:
            key = 1
            while not self._ended.wait(0.001):
                key = key * 7919 % 20000
                connection.execute("UPDATE counts SET n = n + 1 WHERE id = %s", (key + 1,))
                self.updates += 1


class _LateGuard(SqueezeGuard):
    """Has no processor for a while when a worker was told to end."""

    def _end(self, pids: list[int]) -> None:
        super()._end(pids)
        time.sleep(0.3)


def as_it_was(cluster: Cluster) -> Profile:
    """The table without setting and updates, observed."""
    observed.load(cluster, "ALTER TABLE counts RESET (fillfactor); UPDATE counts SET n = 0")
    observed.load(cluster, "VACUUM FULL counts")
    return observed.profile_of(observed.watched(cluster))


def sums(cluster: Cluster) -> tuple[Any, ...]:
    """Updates, rows, slots that are left, and the heap's size in blocks."""
    with cluster.connect() as connection:
        row = connection.execute(
            "SELECT (SELECT sum(n) FROM counts)::int, (SELECT count(*) FROM counts)::int,"
            " (SELECT count(*) FROM pg_replication_slots)::int,"
            " pg_relation_size('counts')::int / 8192"
        ).fetchone()
    assert row is not None
    return tuple(row)


@pytest.mark.minors
@pytest.mark.pg(">= 18")
def test_applied_beside_a_client(
    programs: ServerPrograms, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The setting and each rewrite: rows and updates are whole, pages have the room."""
    with prepared(programs, BUSY) as (cluster, profile, tools):
        blocks, now = sums(cluster)[3], profile
        for tool, fillfactor in zip(tools, (60, 70, 80), strict=False):
            option = {"REPACK (CONCURRENTLY)": "repack"}.get(tool, tool)
            plan = planned.plan_of(now, {"counts": fillfactor}, rewrite=option)
            step = plan.steps[1]
            assert (step.tool, step.verified) == (tool, True)
            path = planned.write_plan(plan, tmp_path)
            with Client(cluster) as client:
                assert run(["apply", str(path), observed.conninfo(cluster), "--yes"]) == 0
                if step.run_by == "you":
                    assert works(cluster, programs, tool, profile.table("counts"))
                    assert run(["apply", str(path), observed.conninfo(cluster), "--yes"]) == 0
            assert planned.states(path) == ["done", "done"]
            assert sums(cluster)[:3] == (client.updates, 20000, 0)
            assert sums(cluster)[3] > blocks * 90 / fillfactor
            capsys.readouterr()
            record_path(path).unlink()
            now = as_it_was(cluster)


@pytest.mark.minors
@pytest.mark.pg(">= 18")
def test_a_lock_that_is_not_had(
    programs: ServerPrograms,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """
    A transaction stays open: others wait no longer than for lock_timeout, and it is said.

    Also where the thread that ends pg_squeeze's worker comes on long after the worker has ended.
    """
    monkeypatch.setattr(execution, "SqueezeGuard", _LateGuard)
    monkeypatch.setattr(execution, "_CHEAP_S", 0.0)  # the table is small, its copy quick
    with prepared(programs, BUSY) as (cluster, profile, tools):
        now = profile
        for tool in [tool for tool in tools if tool != "pg_repack"]:
            option = {"REPACK (CONCURRENTLY)": "repack"}.get(tool, tool)
            plan = planned.plan_of(now, {"counts": 80}, rewrite=option)
            path = planned.write_plan(plan, tmp_path)
            told = ["apply", str(path), observed.conninfo(cluster), "--yes", "--lock-timeout=1s"]
            before = sums(cluster)[1:]
            with cluster.connect() as reader:
                reader.execute("BEGIN")
                reader.execute("SELECT FROM counts WHERE id = 1")
                with Client(cluster) as client:
                    assert run(told) == 1
                    assert client.goes_on(), "the reader is still there, and nobody waits for it"
                err = " ".join(capsys.readouterr().out.split())
                assert "was in vain, so it is not tried again by itself" in err, err
                assert "held: AccessShareLock" in err
                assert planned.states(path) == ["done", "failed"]
                with cluster.connect() as connection:
                    waits = connection.execute("SELECT FROM pg_locks WHERE NOT granted").fetchall()
                assert waits == []
                reader.execute("ROLLBACK")
            assert sums(cluster)[1:3] == before[:2]
            assert run(told) == 0
            assert planned.states(path) == ["done", "done"]
            record_path(path).unlink()
            now = as_it_was(cluster)


@pytest.mark.minors
@pytest.mark.pg(">= 18")
def test_pg_repack_by_a_role_that_is_no_superuser(programs: ServerPrograms) -> None:
    """The plan's command has --no-superuser-check, without which pg_repack refuses such a role."""
    with prepared(programs, BUSY) as (cluster, _, tools):
        if "pg_repack" not in tools:
            pytest.skip("this server has no pg_repack")
        observed.load(
            cluster,
            "CREATE ROLE owner LOGIN; ALTER TABLE counts OWNER TO owner; GRANT pg_monitor TO owner;"
            " GRANT USAGE, CREATE ON SCHEMA repack TO owner;"
            " GRANT SELECT ON ALL TABLES IN SCHEMA repack TO owner",
        )
        with cluster.connect() as connection:
            file = "SELECT pg_relation_filenode('counts')"
            before = connection.execute(file).fetchall()
            said = {}
            for role in ("postgres", "owner"):
                recording = observed.watched(cluster, user=role)
                profile = observed.profile_of(recording)
                plan = planned.plan_of(profile, {"counts": 80}, rewrite="pg_repack")
                said[role] = str(plan.steps[1].command)
            assert "--no-superuser-check" not in said["postgres"]
            path = f"{programs.bin_dir}:{os.environ['PATH']}"
            env = {**environment(cluster), "PATH": path, "PGUSER": "owner"}
            done = {
                role: subprocess.run(
                    command, shell=True, env=env, capture_output=True, text=True, check=False
                )
                for role, command in said.items()
            }
            assert "You must be a superuser" in done["postgres"].stderr
            assert done["owner"].returncode == 0, done["owner"].stderr
            assert connection.execute(file).fetchall() != before


BLOATED = """
CREATE TABLE big (id int8 PRIMARY KEY, v char(500) NOT NULL);
INSERT INTO big SELECT i, 'v' FROM generate_series(1, 50000) i;
DELETE FROM big WHERE id % 5 < 3
"""


def test_a_doctors_plan_by_each_tool(programs: ServerPrograms, tmp_path: Path) -> None:
    """What the tool gives back is inside the claim; a client's command is left to its owner."""
    asked = {tool: option for option, tool in OPTIONS.items()}
    with prepared(programs, "CREATE TABLE kept (id int)") as (cluster, _, tools):
        target = observed.conninfo(cluster)
        for number, tool in enumerate(tools):
            for text in ("DROP TABLE IF EXISTS big", *BLOATED.split(";\n"), "VACUUM big"):
                observed.load(cluster, text)
            observed.load(cluster, "ANALYZE big")
            wish = PlanWish(rewrite=asked[tool])
            _, plan = examine_and_plan(target, {}, wish, rules=[rule_named("bloated-table")])
            assert plan is not None
            assert [step.tool for step in plan.work] == [tool], plan.notes
            path = tmp_path / f"{number}.json"
            path.write_text(plan_text(plan), encoding="utf-8")
            assert run(["apply", str(path), target, "--yes"]) == 0
            if tool == "pg_repack":
                assert planned.states(path) == ["yours"]
                assert plan.work[0].command is not None
                found = f"{programs.bin_dir}:{os.environ['PATH']}"
                env = {**environment(cluster), "PATH": found}
                subprocess.run(plan.work[0].command, shell=True, env=env, check=True)
                assert run(["apply", str(path), target, "--yes"]) == 0
            assert planned.states(path) == ["done"]
            assert run(["verify", str(path), target, "--for", "10ms"]) == 0
