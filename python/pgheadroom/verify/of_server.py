"""
Claims about settings of the server that show in its counters: images of pages, runs of autovacuum.

    images a changed row since the step  /  images a changed row in the interval before it
    autovacuum's runs in the interval    /  times that its triggers' worth of rows died in it

A page is logged whole at its first change behind a checkpoint. Rarer checkpoints log at most as
many for the same work, and where the same pages change again and again so many fewer as they are
rarer.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pgheadroom.outcome import Value
from pgheadroom.plan.record import StepRecord
from pgheadroom.plan.remedies import Claim, RemedyState, WalWindow
from pgheadroom.settings import arithmetic
from pgheadroom.settings.measured import DYING_SQL
from pgheadroom.units import percent, show_duration
from pgheadroom.verify.comparing import ForecastVerdict
from pgheadroom.verify.wal_saved import mixed_frac

if TYPE_CHECKING:
    import psycopg

_ROWS_MIN = 1000
_TIMEOUTS_MIN = 2.0
"""Checkpoints by the new time that have to be over, so that one more or less hides nothing."""
_MIXED_MAX = 0.25
"""Another quarter of the rows is other work, which changes other pages."""
_DUE_MIN = 3.0
"""Times that autovacuum had to come: by fewer, one more or less hides whether it does."""
ServerJudged = tuple[Value, ForecastVerdict, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class DyingSeen:
    """Of a table: rows that have died in all, autovacuum's runs, and rows at which it comes."""

    dead: int
    runs: int
    trigger_rows: float


@dataclass(frozen=True, slots=True, kw_only=True)
class VacuumReading:
    """Tables to which autovacuum may come, at a moment; `at_s` by our own clock."""

    at_s: float
    naptime_s: float
    tables: Mapping[int, DyingSeen]


def read_vacuums(connection: psycopg.Connection[Any]) -> VacuumReading:
    """
    Read them now.

    Raises:
        psycopg.Error: A query failed.
    """
    from psycopg.rows import dict_row  # noqa: PLC0415 - loads libpq

    major = connection.info.server_version // 10000
    query = DYING_SQL[max(since for since in DYING_SQL if since <= major)]
    settings = {
        str(name): str(value)
        for name, value in connection.execute("SELECT name, setting FROM pg_settings").fetchall()
    }
    with connection.cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute(query.encode()).fetchall()
    runs = {
        int(oid): int(count)
        for oid, count in connection.execute(
            "SELECT c.oid::int8, pg_stat_get_autovacuum_count(c.oid) FROM pg_class c"
            " WHERE c.relkind IN ('r', 'm', 't')"
        ).fetchall()
    }
    return VacuumReading(
        at_s=time.monotonic(),
        naptime_s=float(settings["autovacuum_naptime"]),
        tables={
            row["oid"]: DyingSeen(
                dead=int(row["dead"]),
                runs=runs.get(row["oid"], 0),
                trigger_rows=max(arithmetic.trigger_rows(settings, row), 1.0),
            )
            for row in rows
            if not arithmetic.is_switched_off(settings, row)
        },
    )


def judge_vacuums(begin: VacuumReading, end: VacuumReading, claim: Claim) -> ServerJudged:
    """
    Whether autovacuum comes as often as rows die for it.

    It looks at a database once in each autovacuum_naptime, so it has to come to a table no oftener.

    Args:
        begin: When the interval began.
        end: At its end.
        claim: The share of its runs that has to come.
    """
    looks = (end.at_s - begin.at_s) / end.naptime_s
    due = runs = 0.0
    for oid, now in end.tables.items():
        was = begin.tables.get(oid)
        if was is None or now.dead < was.dead or now.runs < was.runs:
            continue
        of_one = min((now.dead - was.dead) / now.trigger_rows, looks)
        due += of_one
        runs += min(float(now.runs - was.runs), max(of_one, 1.0) if of_one else 0.0)
    if due < _DUE_MIN:
        return None, "undecided", f"it was due {due:,.1f} times: {_DUE_MIN:.0f} are needed"
    share = min(runs / due, 1.0)
    held = claim.foreseen.low <= share <= claim.foreseen.high
    note = f"{runs:,.0f} runs where {due:,.1f} were due by the rows that died"
    return share, "held" if held else "failed", note


def judge_images(
    before: WalWindow | None,
    now: WalWindow | None,
    known: StepRecord | None,
    state: RemedyState,
    claim: Claim,
) -> ServerJudged:
    """
    Full-page images a changed row since the step, by those before it.

    Args:
        before: What was watched for the plan.
        now: What was watched for `verify`, to see whether it is the same work.
        known: What `apply` did.
        state: Counters now.
        claim: With the times of checkpoints before (`before_s`) and after (`after_s`).
    """
    if before is None:
        return None, "not comparable", "the plan was made without an interval"
    then = None if known is None else known.found_after
    if known is None or then is None or then.images is None or then.rows is None:
        return None, "not comparable", "the counters at the step are not known"
    assert state.images is not None, "read with a setting"
    assert state.rows is not None, "read with a setting"
    images, rows = state.images - then.images, state.rows - then.rows
    if now is None or images < 0 or rows < 0:
        return None, "not comparable", "statistics were reset since, or tables are gone"
    if not before.images:
        return None, "not comparable", "no image was logged in the interval before"
    why = _too_early(before, now, rows, known, claim)
    if why is not None:
        return None, "undecided", why
    mixed = mixed_frac(before, now)
    if mixed > _MIXED_MAX:
        other = f"{percent(mixed)} of the changed rows are of other tables or kinds than before"
        return None, "not comparable", other
    share = (images / rows) / (before.images / before.rows)
    note = f"{images:,} images for {rows:,} changed rows since"
    held = claim.foreseen.low <= share <= claim.foreseen.high
    return share, "held" if held else "failed", note


def _too_early(
    before: WalWindow, now: WalWindow, rows: int, known: StepRecord, claim: Claim
) -> str | None:
    """Why nothing can be said yet; None where it can."""
    from pgheadroom.verify.state import seconds_since  # noqa: PLC0415 - loads the twin

    was_s, is_s = claim.of["before_s"], claim.of["after_s"]
    if before.interval_s < was_s:
        return (
            f"the interval before was {show_duration(before.interval_s)}, less than a "
            f"checkpoint_timeout of then ({show_duration(was_s)})"
        )
    age_s = None if known.finished_at is None else seconds_since(known.finished_at)
    if age_s is None or age_s < _TIMEOUTS_MIN * is_s:
        return f"{_TIMEOUTS_MIN:.0f} times checkpoint_timeout ({show_duration(is_s)}) are needed"
    few = min(before.rows, now.rows, rows)
    if few < _ROWS_MIN:
        return f"{few:,} rows changed: {_ROWS_MIN:,} are needed before, since and in the interval"
    return None
