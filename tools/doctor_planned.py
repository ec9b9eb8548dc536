"""
The doctor's findings carried out by a plan: what each step claims beside what `verify` measured.

`doctor_applied.py` runs these with its own cases. Nothing is done by hand here: the doctor makes
the plan, `apply` carries it out, `verify` judges each claim.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg

from pgheadroom.doctor import rule_named
from pgheadroom.doctor.live_plan import examine_and_plan
from pgheadroom.doctor.planning import PlanWish
from pgheadroom.outcome import Value
from pgheadroom.plan.execution import ApplyCall
from pgheadroom.plan.record import AppliedRecord, new_record
from pgheadroom.plan.remedy_apply import applier_of
from pgheadroom.plan.session import writing_session
from pgheadroom.plan.text import CLAIMED, shown_amount
from pgheadroom.plan.values import Plan
from pgheadroom.servers import Cluster
from pgheadroom.sources.session import read_only_session
from pgheadroom.types import Interval
from pgheadroom.verify.claims import verify_remedies
from pgheadroom.verify.values import ClaimOutcome

DAY_S = 86_400.0
QUIET = {
    "autovacuum": "off",
    "fsync": "off",
    "full_page_writes": "off",
    "jit": "off",
    "checkpoint_timeout": "1d",
    "max_wal_size": "64MB",
    "min_wal_size": "32MB",
    "wal_level": "replica",
    "shared_buffers": "128MB",
}
"""Nothing that logs or vacuums comes by itself."""
SETTINGS = QUIET | {"autovacuum": "on", "autovacuum_naptime": "2147483"}
"""Autovacuum is on, and comes when it is told to."""
_INSERTS = "INSERT INTO t SELECT nextval('s'), nextval('s') FROM generate_series(1, 60000) i;\n"
_TABLE = "CREATE SEQUENCE s CACHE 1000;\nCREATE TABLE t (v int8 NOT NULL, w int8 NOT NULL);\n"
_GONE = "DELETE FROM t WHERE id % 5 < 3;\nVACUUM t;\nANALYZE t;\n"
_LOG = (
    "SELECT count(pg_logical_emit_message(false, 'doctor', repeat('x', 1048576)))"
    " FROM generate_series(1, {}) i;\n"
)
_OFTEN = (_LOG.format(20) + "CHECKPOINT;\n") * 5


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedCase:
    """
    A finding that becomes a step.

    Attributes:
        rule: Its rule.
        what: The case, in words.
        make: Statements, each ended by `;` and a line break.
        before: Done in the interval that the doctor watches; None: it watches none.
        after: Done in the interval that `verify` watches.
        until: A query that gives true once what the server does by itself is done.
        ahead_s: By how much the doctor's clock is ahead.
        rewrite: How tables are rewritten.
    """

    rule: str
    what: str
    make: str
    before: str | None = None
    after: str = ""
    until: str | None = None
    ahead_s: float = 7200.0
    rewrite: str = "vacuum-full"


def _entries(rule: str, what: str, make: str, ahead_s: float = 7200.0) -> PlannedCase:
    return PlannedCase(
        rule=rule, what=what, make=make, before=_INSERTS, after=_INSERTS, ahead_s=ahead_s
    )


CASES = (
    PlannedCase(
        rule="bloated-table",
        what="rows of one length, three fifths deleted",
        make="CREATE TABLE t (id int8 NOT NULL, v char(500) NOT NULL);\n"
        "INSERT INTO t SELECT i, 'v' FROM generate_series(1, 50000) i;\n" + _GONE,
    ),
    PlannedCase(
        rule="bloated-table",
        what="texts of 10 to 250 bytes, three fifths deleted",
        make="CREATE TABLE t (id int8 NOT NULL, v text NOT NULL, w numeric);\n"
        "INSERT INTO t SELECT i, repeat('v', 10 + i * 7919 % 241), i FROM "
        "generate_series(1, 150000) i;\n" + _GONE,
    ),
    PlannedCase(
        rule="bloated-table",
        what="values of 100 kB out of line, three fifths deleted",
        make="CREATE TABLE t (id int8 PRIMARY KEY, v text NOT NULL);\n"
        "ALTER TABLE t ALTER COLUMN v SET STORAGE EXTERNAL;\n"
        "INSERT INTO t SELECT i, repeat(md5(i::text), 3120) FROM generate_series(1, 250) i;\n"
        + _GONE,
    ),
    PlannedCase(
        rule="bloated-index",
        what="keys of 192 bytes, three fifths deleted",
        make="CREATE TABLE t (id int8 NOT NULL, v text NOT NULL);\n"
        "INSERT INTO t SELECT i, repeat(md5(i::text), 6) FROM generate_series(1, 90000) i;\n"
        "CREATE INDEX t_v ON t (v);\n" + _GONE,
    ),
    _entries(
        "unused-index",
        "an index that nobody reads",
        _TABLE + _INSERTS + "CREATE INDEX t_v ON t (v);\nSELECT pg_stat_reset();\n",
        31 * DAY_S,
    ),
    _entries(
        "duplicate-index",
        "an index that is there twice",
        _TABLE + _INSERTS + "CREATE INDEX t_v ON t (v);\nCREATE INDEX t_v_again ON t (v);\n",
    ),
    _entries(
        "overlapping-index",
        "an index with which another one begins",
        _TABLE + _INSERTS + "CREATE INDEX t_v ON t (v);\nCREATE INDEX t_vw ON t (v, w);\n",
    ),
    _entries(
        "invalid-index",
        "a leftover of REINDEX CONCURRENTLY, which is written",
        _TABLE + _INSERTS + "CREATE INDEX t_v ON t (v);\nCREATE INDEX t_v_ccnew ON t (v);\n"
        "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 't_v_ccnew'::regclass;\n",
    ),
    PlannedCase(
        rule="invalid-index",
        what="an index whose build failed, built again",
        make=_TABLE + _INSERTS + "CREATE INDEX t_v ON t (v);\n"
        "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 't_v'::regclass;\n",
    ),
    PlannedCase(
        rule="foreign-key-without-index",
        what="5 deletes of a parent whose children nothing indexes",
        make="CREATE TABLE parent (id int PRIMARY KEY);\n"
        "INSERT INTO parent SELECT i FROM generate_series(1, 100) i;\n"
        "CREATE TABLE child (id int, parent int REFERENCES parent);\n"
        "INSERT INTO child SELECT i, 1 FROM generate_series(1, 60000) i;\nVACUUM ANALYZE child;\n",
        after="DELETE FROM parent WHERE id IN (SELECT max(id) FROM parent);\n" * 5,
    ),
    PlannedCase(
        rule="autovacuum-off",
        what="a table that autovacuum leaves alone; it comes once it may",
        make="CREATE TABLE t (id int, v text);\nINSERT INTO t SELECT i, repeat('x', 400)"
        " FROM generate_series(1, 40000) i;\nVACUUM ANALYZE t;\n"
        "ALTER TABLE t SET (autovacuum_enabled = off);\nDELETE FROM t WHERE id % 10 > 0;\n",
        after="ALTER SYSTEM SET autovacuum_naptime = '1s';\nSELECT pg_reload_conf();\n",
        until="SELECT pg_stat_get_autovacuum_count('t'::regclass) > 0",
    ),
    PlannedCase(
        rule="autovacuum-late",
        what="five times the dead rows that autovacuum waits for",
        make="CREATE TABLE t (id int, v text);\nINSERT INTO t SELECT i, repeat('x', 400)"
        " FROM generate_series(1, 40000) i;\nVACUUM ANALYZE t;\nDELETE FROM t WHERE id % 10 > 0;\n",
        ahead_s=31 * DAY_S,  # beyond autovacuum_naptime: nobody is late just after a VACUUM
    ),
    PlannedCase(
        rule="checkpoints-by-wal",
        what="checkpoints each 20 MiB of WAL; then 150 MiB are written",
        make=_OFTEN,
        after=_LOG.format(150),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedOutcome:
    """What came of a case: the step's title, and its claims as `verify` judged them."""

    case: PlannedCase
    title: str
    claims: tuple[ClaimOutcome, ...]

    @property
    def is_right(self) -> bool:
        """All claims hold, and there is one."""
        return bool(self.claims) and all(one.verdict == "held" for one in self.claims)


def planned(cluster: Cluster, case: PlannedCase) -> PlannedOutcome:
    """
    Plan, apply and verify a case in a database of its own.

    Args:
        cluster: A running server of ours, with `SETTINGS`.
        case: What.
    """
    with _database(cluster) as target:
        with cluster.connect("held", prepare_threshold=None) as session:
            _run(session, case.make)
        plan = _plan(cluster, target, case)
        assert len(plan.work) == 1, (case.what, plan.notes)
        record = _applied(target, plan)
        with read_only_session(target, {}) as connection:
            found = verify_remedies(
                plan, record, connection, 1.0, sleep=lambda _: _work(cluster, case)
            )
        (step,) = plan.remedies or ()
        return PlannedOutcome(case=case, title=step.title, claims=found.claims or ())


@contextmanager
def _database(cluster: Cluster) -> Iterator[str]:
    with cluster.connect() as admin:
        admin.execute("CREATE DATABASE held TEMPLATE template0")
    env = cluster.client_env()
    try:
        yield f"host={env['PGHOST']} port={env['PGPORT']} user=postgres dbname=held"
    finally:
        with cluster.connect() as admin:
            admin.execute("DROP DATABASE held WITH (FORCE)")
            admin.execute("ALTER SYSTEM RESET ALL")
            admin.execute("SELECT pg_reload_conf()")


def _plan(cluster: Cluster, target: str, case: PlannedCase) -> Plan:
    def before(_: float) -> None:
        with cluster.connect("held", prepare_threshold=None) as session:
            _run(session, case.before or "")

    _, plan = examine_and_plan(
        target,
        {},
        PlanWish(rewrite=case.rewrite, settings=True),
        rules=[rule_named(case.rule)],
        interval_s=None if case.before is None else 1.0,
        sleep=before,
        ahead_s=case.ahead_s,
    )
    assert plan is not None, case.what
    return plan


def _applied(target: str, plan: Plan) -> AppliedRecord:
    with writing_session(target, {}) as connection:
        call = ApplyCall(
            plan=plan,
            record=new_record(plan),
            connection=connection,
            keep=lambda _: None,
            say=lambda _: None,
        )
        applier = applier_of(call)
        outcome = applier.run(applier.prepare(undo=False), undo=False)
        assert outcome.stopped is None, outcome
        return applier.record


def _work(cluster: Cluster, case: PlannedCase) -> None:
    with cluster.connect("held", prepare_threshold=None) as session:
        _run(session, case.after)
        while case.until is not None:
            row = session.execute(case.until.encode()).fetchone()
            if row is not None and row[0]:
                break
            session.execute("SELECT pg_sleep(0.1)")


def _run(session: psycopg.Connection[Any], statements: str) -> None:
    for statement in filter(str.strip, statements.split(";\n")):
        session.execute(statement.encode())
        session.execute("SELECT pg_stat_force_next_flush()")


def page_lines(found: Sequence[PlannedOutcome]) -> list[str]:
    """Of the page: a line a claim."""
    right = sum(each.is_right for each in found)
    lines = [
        f"{right} of {len(found)} findings hold all they claim.",
        "",
        "| rule | case | claim | foreseen | measured | verdict |",
        "|---|---|---|---|---|---|",
    ]
    for each in found:
        rule = f"[`{each.case.rule}`](../doctor.md#{each.case.rule})"
        for claim in each.claims:
            cells = [
                rule,
                each.case.what,
                CLAIMED[claim.measure],
                _shown(claim.foreseen, claim.unit),
                _shown(claim.now, claim.unit),
                claim.verdict if claim.verdict == "held" else f"**{claim.verdict}**",
            ]
            lines.append(f"| {' | '.join(cells)} |")
    return [*lines, ""]


def _shown(value: Value, unit: str) -> str:
    if value is None:
        return "not measured"
    if not isinstance(value, Interval):
        return shown_amount(value, unit)
    low, high = shown_amount(value.low, unit), shown_amount(value.high, unit)
    return low if low == high else f"{low} to {high}"
