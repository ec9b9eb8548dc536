"""
The claims of a doctor's plan beside what is measured: each inside its interval or outside it.

Sizes are those that `apply` measured just before a step and just after it, so that what has come
since does not blur them. What an index wrote is told by the write-ahead log of the whole server for
each changed row, in the interval that the doctor watched and in one of now; only where the rows
that change are of the same kinds can these be compared.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pgheadroom
from pgheadroom.errors import InputError
from pgheadroom.outcome import Value
from pgheadroom.plan.marks import read_catalog
from pgheadroom.plan.record import AppliedRecord, StepRecord
from pgheadroom.plan.remedies import Claim, RemedyStep, WalWindow
from pgheadroom.plan.remedy_look import Seen, as_number, look
from pgheadroom.plan.statements import one_line
from pgheadroom.plan.values import Plan, now_text
from pgheadroom.plan.wal_window import read_wal, window_of
from pgheadroom.progress import Say
from pgheadroom.types import Interval
from pgheadroom.units import show_bytes
from pgheadroom.verify.comparing import ForecastVerdict
from pgheadroom.verify.of_server import VacuumReading, judge_images, judge_vacuums, read_vacuums
from pgheadroom.verify.values import ClaimOutcome, Verification
from pgheadroom.verify.wal_saved import judge_wal

if TYPE_CHECKING:
    import psycopg

    from pgheadroom.order.values import IndexOrder

_DONE = ("done", "undoing")
_NAPTIMES = 2.0
"""Autovacuum looks at a database once in each autovacuum_naptime; after two it has looked."""
_DISTANCES_MIN = 5
"""Old distances of WAL, in which as many checkpoints had been requested: by fewer, one more or less
hides whether there are half as many."""
_DEAD = """
SELECT pg_stat_get_dead_tuples(r.oid) AS dead,
       pg_stat_get_vacuum_count(r.oid) + pg_stat_get_autovacuum_count(r.oid) AS vacuums,
       pg_stat_get_tuples_updated(r.oid) + pg_stat_get_tuples_deleted(r.oid) AS died,
       current_setting('autovacuum_naptime')::interval AS naptime,
       pg_stat_get_mod_since_analyze(r.oid) AS changed
FROM pg_class c
CROSS JOIN LATERAL (SELECT CASE WHEN %(is_toast)s THEN nullif(c.reltoastrelid, 0)
                                ELSE c.oid END AS oid) r
WHERE c.oid = %(oid)s::oid
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadSeen:
    """
    A table at a moment.

    Attributes:
        dead: Its dead rows.
        vacuums: Of it, by hand or not.
        died: Rows that have died in all.
        naptime_s: Of autovacuum.
        changed: Rows that changed since ANALYZE.
    """

    dead: int
    vacuums: int
    died: int
    naptime_s: float
    changed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSeen:
    """The log as it was watched for the plan and now, and autovacuum at both ends of now."""

    before: WalWindow | None
    now: WalWindow | None
    begin: VacuumReading
    end: VacuumReading


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimCase:
    """
    What one claim is judged by.

    Attributes:
        step: It is of.
        known: What `apply` did; None where it was not applied from here.
        seen: What the step acts on, now.
        begin: Dead rows when the interval began, of the table and of its TOAST table; None where
            there is none.
        end: The same at its end.
        server: What was seen of the whole server.
        order: How the table lies by the step's index; None: it is no step for that, or it could
            not be looked at.
    """

    step: RemedyStep
    known: StepRecord | None
    seen: Seen
    begin: tuple[DeadSeen | None, DeadSeen | None]
    end: tuple[DeadSeen | None, DeadSeen | None]
    server: ServerSeen | None = None
    order: IndexOrder | None = None


ClaimJudged = tuple[Value, ForecastVerdict, str]


def verify_remedies(
    plan: Plan,
    record: AppliedRecord | None,
    connection: psycopg.Connection[Any],
    length_s: float,
    *,
    say: Say = lambda _: None,
    sleep: Callable[[float], None] = time.sleep,
) -> Verification:
    """
    Watch for a while and hold the claims of a doctor's plan against what is measured.

    Args:
        plan: With its claims.
        record: Of `apply`; None where it was not applied from here.
        connection: From `read_only_session`.
        length_s: How long to watch.
        say: Told what takes a while.
        sleep: Waits.

    Raises:
        InputError: Another database than the plan's.
        SourceError: What a step acts on could not be looked at.
    """
    catalog = read_catalog(connection)
    different = plan.target.differs(catalog.target)
    if different:
        raise InputError(
            f"the plan is for another database ({'; '.join(map(one_line, different))}): expected "
            "the one that the doctor looked at"
        )
    steps = plan.remedies or ()
    begin_wal = read_wal(connection)
    begin = {step.number: _dead(connection, step) for step in steps}
    begin_vacuums = read_vacuums(connection)
    say(f"watching for {length_s:g} s")
    sleep(length_s)
    end_wal = read_wal(connection)
    window = window_of(begin_wal, end_wal)
    of_server = ServerSeen(
        before=plan.wal, now=window, begin=begin_vacuums, end=read_vacuums(connection)
    )
    outcomes: list[ClaimOutcome] = []
    for step in steps:
        known = None if record is None else record.step(step.number)
        case = ClaimCase(
            step=step,
            known=known,
            seen=look(connection, step),
            begin=begin[step.number],
            end=_dead(connection, step),
            server=of_server,
            order=_order(connection, step),
        )
        outcomes += [
            _outcome(case, claim) for claim in step.claims if claim.measure != "wal_bytes_per_entry"
        ]
    outcomes += _of_the_log(plan, record, window)
    notes = []
    if record is None and steps:
        notes.append(
            "no record of pgheadroom apply beside the plan: what it was before the steps, and "
            "whether they were carried out, is not known"
        )
    return Verification(
        tool_version=pgheadroom.__version__,
        server_version=str(catalog.target.server_version),
        database=plan.target.database,
        planned_at=plan.created_at,
        observed_at=now_text(),
        interval_s=length_s,
        tables=(),
        notes=tuple(notes),
        claims=tuple(sorted(outcomes, key=lambda one: one.step)),
    )


def _dead(
    connection: psycopg.Connection[Any], step: RemedyStep
) -> tuple[DeadSeen | None, DeadSeen | None]:
    """Of the step's table, and of its TOAST table."""
    return _dead_of(connection, step, is_toast=False), _dead_of(connection, step, is_toast=True)


def _dead_of(
    connection: psycopg.Connection[Any], step: RemedyStep, *, is_toast: bool
) -> DeadSeen | None:
    if step.table is None:
        return None
    values = {"oid": step.table.oid, "is_toast": is_toast}
    row = connection.execute(_DEAD.encode(), values).fetchone()
    if row is None or row[0] is None:
        return None
    return DeadSeen(
        dead=int(row[0]),
        vacuums=int(row[1]),
        died=int(row[2]),
        naptime_s=row[3].total_seconds(),
        changed=int(row[4]),
    )


def _order(connection: psycopg.Connection[Any], step: RemedyStep) -> IndexOrder | None:
    if step.kind != "cluster_table":
        return None
    assert step.table is not None, "a table is clustered"
    assert step.index is not None, "by an index"
    from pgheadroom.order.live import order_by  # noqa: PLC0415 - few plans need it

    return order_by(connection, step.table.schema, step.table.name, step.index.relation.name)


def _outcome(case: ClaimCase, claim: Claim) -> ClaimOutcome:
    now, verdict, note = judged(case, claim)
    return outcome_of(case.step, claim, now, verdict, note)


def outcome_of(
    step: RemedyStep, claim: Claim, now: Value, verdict: ForecastVerdict, note: str
) -> ClaimOutcome:
    """A claim with what was measured of it."""
    return ClaimOutcome(
        step=step.number,
        rule=step.rule,
        object=step.about,
        measure=claim.measure,
        unit=claim.unit,
        before=claim.before,
        foreseen=claim.foreseen,
        now=now,
        verdict=verdict,
        note=note,
    )


def why_not_in_force(known: StepRecord | None) -> str | None:
    """Why a step's claims cannot be judged: it was not carried out; None where it was."""
    if known is None:
        return "whether it was carried out is not known: there is no record of apply"
    if known.state not in _DONE:
        return f"it was not carried out: the record has it as {known.state}"
    return None


def judged(case: ClaimCase, claim: Claim) -> ClaimJudged:
    """
    What a claim comes to: what was measured, the verdict, and what to know of it.

    Args:
        case: What it is judged by.
        claim: Any but that of the log.
    """
    why = why_not_in_force(case.known)
    if why is not None:
        return None, "not comparable", why
    judge = _JUDGES[claim.measure]
    return judge(case, claim)


def inside(now: float, claim: Claim, note: str = "") -> ClaimJudged:
    """Held where the number is inside the claim's interval."""
    held = claim.foreseen.low <= now <= claim.foreseen.high
    return now, "held" if held else "failed", note


def _given_back(case: ClaimCase, claim: Claim) -> ClaimJudged:
    known = case.known
    assert known is not None, "seen by the caller"
    is_toast = claim.measure == "toast_given_back_bytes"
    before, after = known.found_before, known.found_after
    was = None if before is None else before.toast_bytes if is_toast else before.size_bytes
    state = case.seen.state
    current = state.toast_bytes if is_toast else state.size_bytes
    if was is None:
        return None, "not comparable", "apply has not measured it before the step"
    if case.step.kind == "drop_index":
        if state.oid is not None:
            return None, "not comparable", "an index of that name is there again"
        if was > claim.foreseen.high:  # it was written between plan and step
            return float(was), "held", "it had grown since it was planned"
        return inside(float(was), claim)
    left = None if after is None else after.toast_bytes if is_toast else after.size_bytes
    if left is None:
        left = current
    if left is None:
        return None, "not comparable", "it is gone"
    note = ""
    if current is not None and current > 1.1 * left:
        note = f"it has grown from {show_bytes(left)} to {show_bytes(current)} since"
    return inside(float(was - left), claim, note)


def _dead_rows(case: ClaimCase, claim: Claim) -> ClaimJudged:
    is_toast = claim.measure == "toast_n_dead_tup"
    begin, end, known = case.begin[is_toast], case.end[is_toast], case.known
    if begin is None or end is None:
        return None, "not comparable", "its table is gone"
    assert known is not None, "seen by the caller"
    now, died = float(end.dead), max(end.died - begin.died, 0)
    if case.step.options is not None and case.seen.state.options != case.step.options:
        return now, "not comparable", "the setting is another one by now"
    then = known.found_before
    vacuums = None if then is None else then.toast_vacuums if is_toast else then.vacuums
    if claim.foreseen.high >= now:
        return now, "held", ""
    if claim.foreseen.high >= now - died:  # autovacuum may be about to come for them
        return now, "undecided", f"{died:,} rows died in the interval, and may be those"
    if vacuums is not None and end.vacuums <= vacuums:
        age_s = _age_s(known)
        if age_s is None or age_s < _NAPTIMES * end.naptime_s:
            return now, "undecided", "autovacuum has not looked since: wait autovacuum_naptime"
        return now, "failed", "no VACUUM has come since"
    return now, "failed", "a VACUUM has come, and has not removed them"


def _changed_rows(case: ClaimCase, claim: Claim) -> ClaimJudged:
    begin, end = case.begin[0], case.end[0]
    if begin is None or end is None:
        return None, "not comparable", "its table is gone"
    now, came = float(end.changed), max(end.changed - begin.changed, 0)
    if claim.foreseen.high >= now:
        return now, "held", ""
    if claim.foreseen.high >= now - came:
        return now, "undecided", f"{came:,} rows changed in the interval, and may be those"
    return now, "failed", "so many changed since"


def _analyzed(case: ClaimCase, claim: Claim) -> ClaimJudged:
    known, now = case.known, case.seen.state.analyzes
    then = None if known is None else known.found_before
    if then is None or then.analyzes is None or now is None:
        return None, "not comparable", "the counters at the step are not known"
    if now < then.analyzes:
        return None, "not comparable", "statistics were reset since"
    return inside(float(now > then.analyzes), claim, f"{now - then.analyzes:,} times since")


def _age_s(known: StepRecord) -> float | None:
    from pgheadroom.verify.state import seconds_since  # noqa: PLC0415 - loads the twin

    return None if known.finished_at is None else seconds_since(known.finished_at)


def _checkpoints(case: ClaimCase, claim: Claim) -> ClaimJudged:
    known, now = case.known, case.seen.state
    then = None if known is None else known.found_after
    if then is None or then.checkpoints is None or now.checkpoints is None:
        return None, "not comparable", "the counters at the step are not known"
    assert then.wal_bytes is not None, "counted with the checkpoints"
    assert now.wal_bytes is not None, "counted with the checkpoints"
    requested, wal = now.checkpoints - then.checkpoints, now.wal_bytes - then.wal_bytes
    if requested < 0:
        return None, "not comparable", "statistics were reset since"
    distances = wal / claim.of["distance_bytes"]
    note = f"{requested:,} requested in {show_bytes(wal)} of WAL since"
    if distances < _DISTANCES_MIN:
        return None, "undecided", f"{note}: {_DISTANCES_MIN} times the old distance is needed"
    # One may have been on its way when the setting came.
    low, high = max(requested - 1, 0) / distances, requested / distances
    now_share = Interval(low=low, mid=high, high=high, level=1.0)
    return now_share, "held" if low <= claim.foreseen.high else "failed", note


def _setting(case: ClaimCase, claim: Claim) -> ClaimJudged:
    found = case.seen.state
    now = as_number(found.setting)
    if now is None:
        return None, "not comparable", "the server has no such setting"
    if found.is_pending:
        return now, "undecided", "it waits for a restart"
    return inside(now, claim)


def _validity(case: ClaimCase, claim: Claim) -> ClaimJudged:
    found = case.seen.state
    if found.oid is None:
        return None, "not comparable", "it is gone"
    return inside(float(bool(found.is_valid)), claim)


def _lookups(case: ClaimCase, claim: Claim) -> ClaimJudged:
    known, now = case.known, case.seen.state
    then = None if known is None else known.found_after
    if then is None or then.deletes is None or then.idx_scan is None or now.deletes is None:
        return None, "not comparable", "the counters at the step are not known"
    if now.idx_scan is None:
        return None, "not comparable", "the index is gone"
    deletes, scans = now.deletes - then.deletes, now.idx_scan - then.idx_scan
    if deletes < 0 or scans < 0:
        return None, "not comparable", "statistics were reset since"
    note = f"{scans:,} reads of the index for {deletes:,} deleted rows"
    if not deletes:
        return None, "undecided", "no row of the parent was deleted since"
    return inside(min(scans / deletes, 1.0), claim, note)


def _images(case: ClaimCase, claim: Claim) -> ClaimJudged:
    assert case.server is not None, "of a setting the server was seen"
    seen = case.server
    return judge_images(seen.before, seen.now, case.known, case.seen.state, claim)


def _vacuums(case: ClaimCase, claim: Claim) -> ClaimJudged:
    assert case.server is not None, "of a setting the server was seen"
    return judge_vacuums(case.server.begin, case.server.end, claim)


def _order_kept(case: ClaimCase, claim: Claim) -> ClaimJudged:
    if case.order is None or case.order.evidence != "sampled":
        why = None if case.order is None else case.order.not_sampled
        return None, "not comparable", why or "the table or its index is gone, or not to be read"
    now = case.order.pages_per_range
    note = f"{case.order.ranges:,} ranges read"
    if now.low > claim.foreseen.high:
        return now, "failed", f"{note}; rows that were written since may lie elsewhere"
    if now.high > claim.foreseen.high:
        return now, "undecided", f"{note}: more of them would tell"
    return now, "held", note


_JUDGES: dict[str, Callable[[ClaimCase, Claim], ClaimJudged]] = {
    "given_back_bytes": _given_back,
    "toast_given_back_bytes": _given_back,
    "n_dead_tup": _dead_rows,
    "toast_n_dead_tup": _dead_rows,
    "n_mod_since_analyze": _changed_rows,
    "is_analyzed": _analyzed,
    "checkpoints_by_wal": _checkpoints,
    "setting": _setting,
    "is_valid": _validity,
    "pages_per_range": _order_kept,
    "deletes_by_index_frac": _lookups,
    "images_frac": _images,
    "vacuums_frac": _vacuums,
}


def _of_the_log(
    plan: Plan, record: AppliedRecord | None, window: WalWindow | None
) -> list[ClaimOutcome]:
    """What dropped indexes wrote: all of them together, for the log is one."""
    of = [
        (step, claim)
        for step in plan.remedies or ()
        for claim in step.claims
        if claim.measure == "wal_bytes_per_entry"
    ]
    done, found = [], []
    for step, claim in of:
        why = why_not_in_force(None if record is None else record.step(step.number))
        if why is None:
            done.append((step, claim))
        else:
            found.append(outcome_of(step, claim, None, "not comparable", why))
    if not done:
        return found
    per_entry, verdict, note = judge_wal(plan, done, window)
    for step, claim in done:
        now: Value = None
        if per_entry is not None:
            now = Interval(
                low=claim.foreseen.mid * per_entry.low,
                mid=claim.foreseen.mid * per_entry.mid,
                high=claim.foreseen.mid * per_entry.high,
                level=per_entry.level,
            )
        found.append(outcome_of(step, claim, now, verdict, note))
    return found
