"""
The doctor's prices, held against what following its findings gives.

    python tools/doctor_applied.py --server 18 --server 16

Each case makes a database, lets the doctor look, carries out the remedy that the finding prints
(where it prints none, what its text says), and measures what that gave: bytes of files, of the
write-ahead log, of reads. The page is docs/accuracy/doctor.md; 1 where a price does not hold.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import doctor_planned
import psycopg
from doctor_planned import DAY_S, QUIET, PlannedOutcome, page_lines, planned

from pgheadroom.doctor import Diagnosis, Examination, Finding, rule_named
from pgheadroom.servers import Cluster, Host, ServerPrograms, find_programs
from pgheadroom.sources.session import read_only_session
from pgheadroom.units import show_bytes

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "accuracy" / "doctor.md"
Claim = Literal["exact", "at least", "at most", "interval"]
Session = psycopg.Connection[Any]
Measure = Callable[[Session], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """
    A finding, what it foresees, and what is measured.

    Attributes:
        rule: Its rule.
        what: The case, in words.
        make: Statements, each ended by `;` and a line break.
        work: Done before the doctor looks, and once more behind the remedy; what it costs is
            measured both times. None: sizes are measured.
        measure: A number before and after; the remedy gives their difference.
        claim: What the price says of the difference.
        within: By which share of the price the difference may be off where it claims to be exact.
        remedy: Where the finding prints no statement; `;` and a line break end each.
        ahead_s: By how much the clock is ahead.
        a_day: The price is a rate: of the time that the statistics reach back.
    """

    rule: str
    what: str
    make: str
    measure: Measure
    claim: Claim
    within: float = 0.0
    work: str | None = None
    remedy: str | None = None
    ahead_s: float = 7200.0
    a_day: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What came of a case: bytes foreseen (from, middle, to) and measured."""

    case: Case
    about: str
    foreseen: tuple[float, float, float]
    measured: float

    @property
    def is_right(self) -> bool:
        """The price holds, as it claims to."""
        low, middle, high = self.foreseen
        if self.case.claim == "interval":
            return low <= self.measured <= high
        if self.case.claim == "at least":
            return self.measured >= middle
        if self.case.claim == "at most":
            return self.measured <= middle
        return abs(self.measured - middle) <= self.case.within * middle


def _size(name: str) -> Measure:
    return lambda session: _one(session, f"SELECT pg_relation_size('{name}')")


def _table_and_toast(session: Session) -> float:
    return _one(session, "SELECT pg_relation_size(reltoastrelid) FROM pg_class WHERE relname = 't'")


def _index_there(name: str) -> Measure:
    return lambda session: _one(
        session, f"SELECT coalesce(pg_relation_size(to_regclass('{name}')), 0)"
    )


def _wal(session: Session) -> float:
    return _one(session, "SELECT pg_current_wal_insert_lsn() - '0/0'")


def _read_of_children(session: Session) -> float:
    """Pages of the child that were asked for, of memory or disk, by sequential scans."""
    session.execute("SELECT pg_stat_force_next_flush()")
    return 8192 * _one(
        session,
        "SELECT heap_blks_read + heap_blks_hit FROM pg_statio_user_tables WHERE relname = 'child'",
    )


def _read_of_table(session: Session) -> float:
    """Pages of the table that were not in shared buffers."""
    session.execute("SELECT pg_stat_force_next_flush()")
    query = "SELECT heap_blks_read FROM pg_statio_user_tables WHERE relname = 't'"
    return 8192 * _one(session, query)


def _wal_kept(session: Session) -> float:
    """Segments before the one that is written; those after it are empty and wait for use."""
    session.execute("CHECKPOINT")
    return _one(
        session,
        "SELECT coalesce(sum(size), 0) FROM pg_ls_waldir()"
        " WHERE name ~ '^[0-9A-F]{24}$' AND name < pg_walfile_name(pg_current_wal_insert_lsn())",
    )


def _one(session: Session, query: str) -> float:
    row = session.execute(query.encode()).fetchone()
    assert row is not None
    return float(row[0])


_INSERTS = "INSERT INTO t SELECT nextval('s'), nextval('s') FROM generate_series(1, 60000) i;\n"
_TABLE = "CREATE SEQUENCE s CACHE 1000;\nCREATE TABLE t (v int8 NOT NULL, w int8 NOT NULL);\n"
_GONE = "DELETE FROM t WHERE id % 5 < 3;\nVACUUM t;\nANALYZE t;\n"
_LOG = (
    "SELECT count(pg_logical_emit_message(false, 'doctor', repeat('x', 1048576)))"
    " FROM generate_series(1, 200) i;\n"
)
CASES = (
    Case(
        rule="bloated-table",
        what="rows of one length, three fifths deleted",
        make="CREATE TABLE t (id int8 NOT NULL, v char(500) NOT NULL);\n"
        "INSERT INTO t SELECT i, 'v' FROM generate_series(1, 50000) i;\n" + _GONE,
        measure=_size("t"),
        claim="interval",
    ),
    Case(
        rule="bloated-table",
        what="texts of 10 to 250 bytes, three fifths deleted",
        make="CREATE TABLE t (id int8 NOT NULL, v text NOT NULL, w numeric);\n"
        "INSERT INTO t SELECT i, repeat('v', 10 + i * 7919 % 241), i FROM "
        "generate_series(1, 150000) i;\n" + _GONE,
        measure=_size("t"),
        claim="interval",
    ),
    Case(
        rule="bloated-table",
        what="values of 100 kB out of line, three fifths deleted",
        make="CREATE TABLE t (id int8 PRIMARY KEY, v text NOT NULL);\n"
        "ALTER TABLE t ALTER COLUMN v SET STORAGE EXTERNAL;\n"
        "INSERT INTO t SELECT i, repeat(md5(i::text), 3120) FROM generate_series(1, 250) i;\n"
        + _GONE,
        measure=_table_and_toast,
        claim="interval",
    ),
    Case(
        rule="bloated-index",
        what="keys of 192 bytes, three fifths deleted",
        make="CREATE TABLE t (id int8 NOT NULL, v text NOT NULL);\n"
        "INSERT INTO t SELECT i, repeat(md5(i::text), 6) FROM generate_series(1, 90000) i;\n"
        "CREATE INDEX t_v ON t (v);\n" + _GONE,
        measure=_size("t_v"),
        claim="interval",
    ),
    Case(
        rule="unused-index",
        what="the log of an index that nobody reads, 60,000 inserts",
        make=_TABLE + _INSERTS + "CREATE INDEX t_v ON t (v);\nSELECT pg_stat_reset();\n",
        work=_INSERTS,
        measure=_wal,
        claim="exact",
        within=0.1,
        ahead_s=31 * DAY_S,
        a_day=True,
    ),
    Case(
        rule="duplicate-index",
        what="the log of an index that is there twice, 60,000 inserts",
        make=_TABLE + "CREATE INDEX t_v ON t (v);\nCREATE INDEX t_v_again ON t (v);\n",
        work=_INSERTS,
        measure=_wal,
        claim="exact",
        within=0.1,
        a_day=True,
    ),
    Case(
        rule="overlapping-index",
        what="the log of an index with which another one begins, 60,000 inserts",
        make=_TABLE + "CREATE INDEX t_v ON t (v);\nCREATE INDEX t_vw ON t (v, w);\n",
        work=_INSERTS,
        measure=_wal,
        claim="exact",
        within=0.1,
        a_day=True,
    ),
    Case(
        rule="invalid-index",
        what="the log of an index whose build failed, 60,000 inserts; dropped",
        make=_TABLE + "CREATE INDEX t_v ON t (v);\n"
        "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 't_v'::regclass;\n",
        work=_INSERTS,
        measure=_wal,
        claim="exact",
        within=0.1,
        remedy="DROP INDEX CONCURRENTLY t_v;\n",
        a_day=True,
    ),
    Case(
        rule="index-ends-hot",
        what="the log of 20,000 updates that an index keeps from being HOT; it is dropped",
        make="CREATE TABLE t (id int PRIMARY KEY, v int NOT NULL) WITH (fillfactor = 30);\n"
        "INSERT INTO t SELECT i, i FROM generate_series(1, 20000) i;\n"
        "CREATE INDEX t_v ON t (v);\nVACUUM ANALYZE t;\nSELECT pg_stat_reset();\n",
        work="UPDATE t SET v = v + 1;\n",
        remedy="DROP INDEX t_v;\nVACUUM t;\n",
        measure=_wal,
        claim="at least",
        a_day=True,
    ),
    Case(
        rule="column-padding",
        what="six columns in an order that needs padding; copied in the order that is told",
        make="CREATE TABLE t (a bool, b int8, c bool, d int8, e bool, f int8);\n"
        "INSERT INTO t SELECT true, i, true, i, true, i FROM generate_series(1, 150000) i;\n"
        "ANALYZE t;\n",
        remedy="CREATE TABLE n AS SELECT {best_order} FROM t;\nDROP TABLE t;\n"
        "ALTER TABLE n RENAME TO t;\nVACUUM FULL t;\n",
        measure=_size("t"),
        claim="exact",
        within=0.02,
    ),
    Case(
        rule="foreign-key-without-index",
        what="what 5 deletes of a parent read of its children",
        make="CREATE TABLE parent (id int PRIMARY KEY);\n"
        "INSERT INTO parent SELECT i FROM generate_series(1, 100) i;\n"
        "CREATE TABLE child (id int, parent int REFERENCES parent);\n"
        "INSERT INTO child SELECT i, 1 FROM generate_series(1, 60000) i;\nVACUUM ANALYZE child;\n",
        work="DELETE FROM parent WHERE id IN (SELECT max(id) FROM parent);\n" * 5,
        measure=_read_of_children,
        claim="exact",
        within=0.02,
        a_day=True,
    ),
    Case(
        rule="rows-out-of-order",
        what="what 40 ranges of 1,000 rows read of a table five times its cache",
        make="CREATE TABLE t (k int, v text);\nINSERT INTO t SELECT i, repeat('x', 350)"
        " FROM generate_series(1, 200000) i ORDER BY hashint4(i);\n"
        "CREATE INDEX t_k ON t (k);\nVACUUM ANALYZE t;\nSET enable_seqscan = off;\n"
        "SELECT pg_stat_reset();\n",
        work="".join(
            f"SELECT sum(length(v)) FROM t WHERE k BETWEEN {begin} AND {begin + 999};\n"
            for begin in range(1, 200_000, 5_000)
        ),
        measure=_read_of_table,
        claim="exact",
        within=0.1,
        a_day=True,
    ),
    Case(
        rule="autovacuum-off",
        what="pages that dead rows take, of rows of one length; vacuumed and rewritten",
        make="CREATE TABLE t (id int, v text);\nINSERT INTO t SELECT i, repeat('x', 400)"
        " FROM generate_series(1, 40000) i;\nVACUUM ANALYZE t;\n"
        "ALTER TABLE t SET (autovacuum_enabled = off);\n"
        "DELETE FROM t WHERE id % 10 > 0;\n",
        remedy="VACUUM FULL t;\n",
        measure=_size("t"),
        claim="exact",
        within=0.01,
    ),
    Case(
        rule="slot-keeps-wal",
        what="segments that a slot keeps which nobody uses; it is dropped",
        make="SELECT pg_create_physical_replication_slot('kept', true);\n" + _LOG,
        # Nothing is printed to be run: whether its consumer comes back nobody can see.
        remedy="SELECT pg_drop_replication_slot('kept');\n",
        measure=_wal_kept,
        claim="exact",
        within=0.1,
    ),
)


def _run(session: Session, statements: str) -> None:
    for statement in filter(str.strip, statements.split(";\n")):
        session.execute(statement.encode())
        session.execute("SELECT pg_stat_force_next_flush()")


def held(cluster: Cluster, case: Case) -> Held:
    """
    Play a case.

    Args:
        cluster: A running server of ours.
        case: What.
    """
    with cluster.connect() as admin:
        admin.execute("CREATE DATABASE held TEMPLATE template0")
    try:
        with cluster.connect("held", prepare_threshold=None) as session:
            _run(session, case.make)
            before, costs = _costs(session, case)
            diagnosis = _examined(cluster, case)
            found = [one for one in diagnosis.findings if one.rule == case.rule]
            assert len(found) == 1, (case.what, found, diagnosis.blind)
            _run(session, _remedy(case, found[0]))
            after, again = _costs(session, case)
            gave = before - after if case.work is None else costs - again
            return Held(
                case=case,
                about=found[0].object,
                foreseen=_foreseen(case, found[0], diagnosis),
                measured=gave,
            )
    finally:
        with cluster.connect() as admin:
            admin.execute("DROP DATABASE held WITH (FORCE)")


def _costs(session: Session, case: Case) -> tuple[float, float]:
    """The number now, and what the work has added to it."""
    before = case.measure(session)
    if case.work is None:
        return before, 0.0
    _run(session, case.work)
    return before, case.measure(session) - before


def _examined(cluster: Cluster, case: Case) -> Diagnosis:
    env = cluster.client_env()
    target = f"host={env['PGHOST']} port={env['PGPORT']} user=postgres dbname=held"
    with read_only_session(target, {}) as connection:
        return Examination(connection, [rule_named(case.rule)], ahead_s=case.ahead_s).end()


def _remedy(case: Case, finding: Finding) -> str:
    if case.remedy is None:
        assert finding.remedy.sql, finding
        return "".join(f"{statement};\n" for statement in finding.remedy.sql)
    return case.remedy.format(**finding.numbers)


def _foreseen(case: Case, finding: Finding, diagnosis: Diagnosis) -> tuple[float, float, float]:
    amount = finding.price.amount
    assert amount is not None
    if case.claim == "interval":
        ends = (finding.numbers[f"given_back_bytes_{end}"] for end in ("low", "high"))
        low, high = (float(end) for end in ends if isinstance(end, int))
        return low, float(amount), high
    if case.a_day:
        assert diagnosis.examined.statistics_since is not None
        at, since = (
            datetime.fromisoformat(text.replace("Z", "+00:00"))
            for text in (diagnosis.examined.at, diagnosis.examined.statistics_since)
        )
        amount *= (at - since).total_seconds() / DAY_S
    return (float(amount),) * 3


Run = tuple[str, Sequence[Held], Sequence[PlannedOutcome]]
"""A server's version, what its cases gave, and what came of its plans."""


def page(runs: Sequence[Run]) -> str:
    """The page's text."""
    lines = [
        "# The doctor's prices, held against what its remedies give",
        "",
        "Each line is a database in which the doctor finds one thing, and what following the "
        "finding gave.",
        "It is written by `python tools/doctor_applied.py`, from real runs.",
        "",
        "- `foreseen` is the finding's price; where it is a rate, of the time that it was counted "
        "over, with the work that was done in it.",
        "- `measured` is what the remedy gave: bytes of files that are no longer there, or what "
        "the same work writes or reads less than before. Full-page images are off.",
        "- `exact`: the price is to be met, within the share that is said. `interval`: it is to be "
        "inside. `at least`: the finding says so itself.",
        "- The log of an index is priced by its entries, and splits of its pages write more; a "
        "slot keeps whole segments of 16 MiB. So 10 % are allowed there.",
        "- Dead rows that the twin foresees have a page of their own: "
        "[doctor-foreseen.md](doctor-foreseen.md).",
        "",
    ]
    for server, found, _ in runs:
        right = sum(each.is_right for each in found)
        lines += [
            f"## {server}",
            "",
            f"{right} of {len(found)} prices hold.",
            "",
            "| rule | case | claim | foreseen | measured | off |",
            "|---|---|---|---|---|---|",
            *map(_line, found),
            "",
        ]
    lines += [
        "## Findings carried out by a plan",
        "",
        "Here nothing is done by hand: `doctor --plan` made the plan, `apply` carried it out, and "
        "`verify` judged each claim ([plan.md](../plan.md)).",
        "",
        "- Bytes given back are a file just before the step less the file just after it.",
        "- WAL of an entry is told by the log of the whole server for each changed row, in an "
        "interval before and one afterwards; its interval has a share for what else is logged.",
        "- Dead rows have to be at most those at which autovacuum comes.",
        "",
    ]
    for server, _, outcomes in runs:
        lines += [f"### By plan, {server}", "", *page_lines(outcomes)]
    return "\n".join(lines)


def _line(found: Held) -> str:
    low, middle, high = found.foreseen
    claim = found.case.claim
    shown = show_bytes(middle)
    if claim == "interval" and low < high:
        shown = f"{show_bytes(low)} to {show_bytes(high)}"
    claim_shown = f"exact, {100 * found.case.within:.0f} %" if claim == "exact" else claim
    off = f"{100 * (found.measured / middle - 1):+.1f} %".replace("-0.0 %", "0.0 %")
    rule = f"[`{found.case.rule}`](../doctor.md#{found.case.rule})"
    cells = [rule, found.case.what, claim_shown, shown, show_bytes(found.measured), off]
    mark = "" if found.is_right else " **not held**"
    return f"| {' | '.join(cells)}{mark} |"


def run_on(programs: ServerPrograms) -> Run:
    """All cases on throw-away servers."""
    found = []
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start(QUIET | {"shared_buffers": "16MB"})
        for case in CASES:
            if case.rule == "index-ends-hot" and programs.version.major < 16:
                continue  # 15 does not count updates that found no room
            each = held(cluster, case)
            found.append(each)
            print(
                f"{programs.version} {'ok' if each.is_right else 'NO'} {case.rule}: "
                f"{each.foreseen} {each.measured}",
                file=sys.stderr,
            )
    return str(programs.version), found, run_plans(programs)


def run_plans(programs: ServerPrograms) -> list[PlannedOutcome]:
    """All plans on a throw-away server."""
    found = []
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start(doctor_planned.SETTINGS)
        for case in doctor_planned.CASES:
            each = planned(cluster, case)
            found.append(each)
            for claim in each.claims:
                print(
                    f"{programs.version} plan {claim.verdict} {case.rule}: {claim.measure} "
                    f"{claim.foreseen} {claim.now} {claim.note}",
                    file=sys.stderr,
                )
    return found


def main() -> int:
    """Measure and write the page; 1 where a price does not hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", action="append", required=True)
    parser.add_argument("--check", action="store_true", help="write nothing")
    options = parser.parse_args()
    place = "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108 - where there is room
    with TemporaryDirectory(prefix="pgh-held-", dir=place) as folder:
        Path(folder).chmod(0o755)
        os.environ.setdefault("PGHEADROOM_TMPDIR", folder)
        runs = [run_on(find_programs(spec)) for spec in options.server]
    if not options.check:
        PAGE.write_text(page(runs), encoding="utf-8")
    are_right = [each.is_right for _, found, _ in runs for each in found]
    are_right += [each.is_right for _, _, plans in runs for each in plans]
    return int(not all(are_right))


if __name__ == "__main__":
    sys.exit(main())
