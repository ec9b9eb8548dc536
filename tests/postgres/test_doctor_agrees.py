"""All remedies of all the doctor's scenarios at once: no two of them contradict each other."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import psycopg
import pytest
from doctor_scenarios import SCENARIOS
from doctor_sides import DAY_S, SETTINGS, Scenario, conninfo, run
from observed import reload
from test_doctor_plan import states, written

from pgheadroom.cli.app import run as command
from pgheadroom.doctor import Diagnosis
from pgheadroom.doctor.live_plan import examine_and_plan
from pgheadroom.doctor.planning import PlanGrounds, PlanWish, plan_findings
from pgheadroom.doctor.remedy_facts import RemedyFacts
from pgheadroom.doctor.standbys import standby_evidence
from pgheadroom.plan import Plan
from pgheadroom.servers import Cluster, Host, ServerPrograms
from pgheadroom.sources.session import read_only_session

pytestmark = pytest.mark.usefixtures("run_parent")

OBJECT = re.compile(r"(DROP INDEX|REINDEX INDEX)(?: CONCURRENTLY)? (.+)")
SETTING = re.compile(r"ALTER SYSTEM (?:SET|RESET) ([a-z_]+)")
STORAGE = re.compile(r"ALTER TABLE (\S+) (?:SET|RESET) \((.+)\)")
EVERYTHING = PlanWish(settings=True, rewrite="vacuum-full")


def load(cluster: Cluster, scenarios: Sequence[Scenario]) -> None:
    """Each in a schema of its own; what is refused for a second of its name is left out."""
    for number, scenario in enumerate(scenarios):
        work = scenario.work or ""
        statements = scenario.common + scenario.fires + work
        with cluster.connect(prepare_threshold=None) as connection:
            connection.execute(f"CREATE SCHEMA s{number}".encode())
            connection.execute(f"SET search_path = s{number}, public".encode())
            connection.execute("SET statement_timeout = '20s'")
            for statement in filter(str.strip, statements.split(";\n")):
                text = statement.strip().removeprefix("!")
                # Those of one name in the catalog are those of all schemas otherwise.
                text = re.sub(r"WHERE relname = ('\w+')$", r"WHERE oid = \1::regclass", text)
                if text == "SELECT pg_reload_conf()":
                    reload(cluster)
                    continue
                try:
                    connection.execute(text.encode())
                    connection.execute("SELECT pg_stat_force_next_flush()")
                except psycopg.Error:
                    continue


@pytest.fixture(
    params=[
        pytest.param(
            (False, True), marks=pytest.mark.long(reason="beside slots and switched-off things")
        ),
        pytest.param((True, True), marks=pytest.mark.long(reason="tables of some MiB are loaded")),
        (True, False),
    ],
    ids=["with-settings", "without", "small"],
)
def everything(
    newest: ServerPrograms, request: pytest.FixtureRequest
) -> Iterator[tuple[Cluster, Diagnosis, Plan]]:
    """One server with what is found in all scenarios of its version; slots and settings undone."""
    is_undone, with_bloat = request.param
    with Host(newest) as host:
        cluster = host.cluster("main")
        cluster.start(SETTINGS)
        fitting = [
            one
            for one in SCENARIOS
            if one.since <= cluster.version.major <= one.until
            and (with_bloat or "bloat" not in one.rule)
        ]
        load(cluster, fitting)
        if is_undone:
            for one in fitting:
                run(cluster, "postgres", "".join(f"!{each};\n" for each in one.undo.split(";\n")))
        found, plan = examine_and_plan(
            conninfo(cluster, "postgres"), {}, EVERYTHING, ahead_s=31 * DAY_S
        )
        assert plan is not None
        yield cluster, found, plan


def test_no_two_remedies_contradict(
    everything: tuple[Cluster, Diagnosis, Plan], tmp_path: Path
) -> None:
    """By what is printed, by what is planned, and by what carrying all of it out leaves."""
    cluster, found, plan = everything
    rules = {one.rule for one in found.findings}
    assert len(rules) >= 20, sorted(rules)
    kinds = Counter(s.kind for s in plan.work)
    printed_agree(found)
    planned_agree(plan)
    assert len(kinds) >= 5, kinds
    any_of_them_agree(cluster, found, plan)
    path = written(plan, tmp_path)
    assert command(["apply", str(path), conninfo(cluster, "postgres"), "--yes"]) == 0
    assert set(states(path)) == {"done"}


def any_of_them_agree(cluster: Cluster, found: Diagnosis, plan: Plan) -> None:
    """Whatever findings are accepted or known already: of the others no two contradict."""
    drawn = random.Random(7)
    with read_only_session(conninfo(cluster, "postgres"), {}) as connection:
        grounds = PlanGrounds(
            facts=RemedyFacts(connection),
            target=plan.target,
            standbys=standby_evidence(connection, ()),
            wal=None,
        )
        for _ in range(5):
            some = [one for one in found.findings if drawn.random() < 0.5]
            drawn.shuffle(some)
            planned_agree(plan_findings(replace(found, findings=tuple(some)), grounds, EVERYTHING))


def printed_agree(found: Diagnosis) -> None:
    acts: list[tuple[str, str]] = []
    settings: list[str] = []
    options: list[tuple[str, str]] = []
    for finding in found.findings:
        for statement in finding.remedy.sql:
            if match := OBJECT.match(statement):
                acts.append((match[2], match[1]))
            elif match := SETTING.match(statement):
                settings.append(match[1])
            elif match := STORAGE.match(statement):
                options += [(match[1], part.partition(" = ")[0]) for part in match[2].split(", ")]
    assert max(Counter(name for name, _ in acts).values()) == 1
    assert max(Counter(settings).values(), default=1) == 1
    assert max(Counter(options).values(), default=1) == 1


def planned_agree(plan: Plan) -> None:
    steps = plan.remedies or ()
    dropped = {s.index.relation.oid for s in steps if s.kind == "drop_index" and s.index}
    kept = {s.keeps.relation.oid for s in steps if s.keeps}
    rewritten = {s.table.oid for s in steps if s.kind == "rewrite_table" and s.table}
    assert dropped.isdisjoint(kept)
    for one, other in combinations(steps, 2):
        same_index = (
            one.index and other.index and one.index.relation.called == other.index.relation.called
        )
        assert not same_index, (one.about, other.about)
        if one.setting and other.setting:
            assert one.setting.name != other.setting.name
        if one.options and other.options and one.table == other.table:
            assert one.options.keys().isdisjoint(other.options)
    for step in steps:
        if step.kind in ("rebuild_index", "vacuum"):
            assert step.table is not None
            assert step.table.oid not in rewritten
