"""
What has happened to a table since its plan, by the counters: record, plan's profile, and now.
"""

from __future__ import annotations

import calendar
import time
from typing import Self

from pgheadroom.advise.runs import Runner
from pgheadroom.errors import InputError
from pgheadroom.forms import FieldError
from pgheadroom.plan.measured import MeasuredInterval
from pgheadroom.plan.record import StepRecord
from pgheadroom.plan.statements import name_of
from pgheadroom.plan.values import Forecast, Plan
from pgheadroom.profile import Profile
from pgheadroom.profile.observed import TableCounters
from pgheadroom.profile.tables import TableProfile
from pgheadroom.progress import Say
from pgheadroom.verify.foreseeing import BUDGET_S, Again, foresee
from pgheadroom.verify.since import Since, Unforeseen

UPDATES_MIN = 100
"""Fewer updates in the window say nothing (arbitrary)."""

_NOT_COUNTED_FRAC = 0.1  # of the rows: more than aborted inserts and lost reports; arbitrary


def seconds_since(moment: str | None) -> float | None:
    """Since a time of a record or a plan; None where it is not understood."""
    if moment is None:
        return None
    try:
        began = calendar.timegm(time.strptime(moment[:19], "%Y-%m-%dT%H:%M:%S"))
    except ValueError:
        return None
    return max(0.0, time.time() - began)


def since_of(
    forecast: Forecast,
    planned: TableProfile,
    applied: StepRecord | None,
    now: MeasuredInterval,
    table: TableProfile,
    observed_at: str | None,
) -> Since:
    """
    What has happened since the setting was applied; of a table that stays, since the observation.

    Args:
        forecast: Of the plan.
        planned: The table in the plan's profile.
        applied: The record of its last step that was carried out.
        now: Measured.
        table: The table now, with its counters' totals.
        observed_at: When the plan's facts were taken.

    Raises:
        Unforeseen: It is not known: no record, other statistics, a rewrite of others.
    """
    assert planned.observed is not None, "a plan's profile was observed"
    assert table.observed is not None, "verify has observed it"
    then, last = (_totals(one.observed.totals) for one in (planned, table) if one.observed)
    base, heap_bytes, moment = then, planned.observed.main_bytes, observed_at
    vacuums = _vacuums(planned.observed.totals)
    fillfactor_before = forecast.measured.fillfactor
    relfilenode = forecast.table.relfilenode
    is_new = False
    if forecast.verdict == "CHANGE":
        effect = None if applied is None else applied.after
        if applied is None or effect is None or None in (effect.inserts, effect.deletes):
            raise Unforeseen("when the setting was applied is not known")
        base = (effect.inserts or 0, effect.updates or 0, effect.deletes or 0)
        heap_bytes, moment = effect.heap_bytes, applied.finished_at
        vacuums = effect.vacuums
        if effect.relfilenode != relfilenode:
            relfilenode, fillfactor_before = effect.relfilenode, forecast.fillfactor
            is_new = True
    if table.observed.relfilenode != relfilenode:
        raise Unforeseen("it was rewritten by others, nobody knows when")
    length_s = seconds_since(moment)
    if length_s is None:
        raise Unforeseen("since when is not known")
    if then is None or base is None or last is None:
        raise Unforeseen("its rows were not counted")
    inserts, updates, deletes = (after - before for before, after in zip(base, last, strict=True))
    rows = forecast.measured.rows + (base[0] - then[0]) - (base[2] - then[2])
    if min(inserts, updates, deletes, base[0] - then[0], base[2] - then[2]) < 0 or rows < 1:
        raise Unforeseen("statistics were reset meanwhile")
    return Since(
        rows=rows,
        heap_bytes=heap_bytes,
        inserts=inserts,
        updates=updates,
        deletes=deletes,
        window_updates=min(now.updates or 0, updates),
        length_s=max(length_s, now.interval_s),
        fillfactor_before=fillfactor_before,
        fillfactor=forecast.fillfactor,
        lives=(0,) if is_new else _lives(forecast, base, rows),
        vacuums=_more(vacuums, _vacuums(table.observed.totals)),
    )


def _lives(forecast: Forecast, counted: tuple[int, int, int], rows: int) -> tuple[int | None, ...]:
    """
    Updates that a table's pages have seen, each number that may be.

    Where its rows are those that were inserted and not deleted, its statistics began with it; else
    it is older than they are. A table whose file is not its first was rewritten at some time.
    """
    inserts, updates, deletes = counted
    is_whole = abs(inserts - deletes - rows) <= _NOT_COUNTED_FRAC * rows
    was_rewritten = forecast.table.relfilenode != forecast.table.oid
    least = 0 if was_rewritten else updates
    most = updates if is_whole else None
    return tuple(dict.fromkeys((least, most)))


def _vacuums(found: TableCounters | None) -> int | None:
    """Of the table since its statistics began, by hand or not."""
    if found is None or found.vacuum_count is None or found.autovacuum_count is None:
        return None
    return found.vacuum_count + found.autovacuum_count


def _more(before: int | None, now: int | None) -> int | None:
    return None if before is None or now is None else now - before


def _totals(found: TableCounters | None) -> tuple[int, int, int] | None:
    if found is None or None in (found.n_tup_ins, found.n_tup_upd, found.n_tup_del):
        return None
    return found.n_tup_ins or 0, found.n_tup_upd or 0, found.n_tup_del or 0


class Foreseer:
    """Foresees again what a plan's profile lets foresee; a block, which an exception ends early."""

    def __init__(self, plan: Plan, say: Say) -> None:
        self._plan = plan
        self._say = say
        self._runner = Runner(budget_s=BUDGET_S)
        self._profile: Profile | None = None
        if plan.profile is not None:
            try:
                self._profile = plan.profile.read()
            except FieldError as error:
                raise InputError(f"plan: profile: {error}") from None

    def __enter__(self) -> Self:
        self._runner.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        self._runner.__exit__(kind, *rest)

    def updates_then(self, forecast: Forecast) -> int | None:
        """The table's updates until it was planned, since its statistics began."""
        planned = self._planned(forecast)
        observed = None if planned is None else planned.observed
        return None if observed is None or observed.totals is None else observed.totals.n_tup_upd

    def _planned(self, forecast: Forecast) -> TableProfile | None:
        """As it was when the plan was made."""
        return next(
            (
                found
                for found in (self._profile.tables if self._profile is not None else ())
                if found.observed is not None and found.observed.oid == forecast.table.oid
            ),
            None,
        )

    def foresee(
        self,
        forecast: Forecast,
        applied: StepRecord | None,
        now: MeasuredInterval,
        table: TableProfile,
    ) -> tuple[Since, Again]:
        """
        For the rows and updates that have come since.

        Raises:
            Unforeseen: With the reason.
        """
        planned = self._planned(forecast)
        if self._profile is None or planned is None:
            raise Unforeseen("the plan has no profile of it")
        since = since_of(forecast, planned, applied, now, table, self._plan.observed_at)
        if since.updates < UPDATES_MIN or not now.updates:
            raise Unforeseen("too few updates since")
        self._say(f"foreseeing {name_of(forecast.table)} again, for its rows and updates since")
        return since, foresee(self._profile, planned, since, self._runner, fit=forecast.fit)
