"""
Foreseen again, for what has happened since: a table that grows is no longer the one of the plan.

A forecast says what a table does after so many rows and updates. What came since is counted, so
the plan's own profile is played once more until there:

    loaded at the old setting |-- it lives --|-- altered, then what was counted since --|
                                                                         [ as now ]

Pages that were there keep their fill, new ones have room; the part of the run that stands for the
window of the measurement is what is foreseen for now, and the pages that came after the setting are
foreseen by themselves.

How long it lived decides what room its pages have for the next rows, so it is as long as the
counters say; where they do not reach back so far, every life that may have been is played.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pgheadroom.advise.calibrate import calibrate
from pgheadroom.advise.duration import follows_rows
from pgheadroom.advise.knobs import Fit
from pgheadroom.advise.row import tuple_bytes_of
from pgheadroom.advise.runs import Runner
from pgheadroom.advise.scenario import SAMPLE_PAGES, Scenario, make_scenario
from pgheadroom.advise.shares import observed_shares
from pgheadroom.advise.width import width_of
from pgheadroom.errors import TwinError
from pgheadroom.predict import minor_version
from pgheadroom.profile import Profile
from pgheadroom.profile.tables import TableProfile
from pgheadroom.profile.unpriced import as_they_are
from pgheadroom.types import Interval
from pgheadroom.verify.population import Population, added, exactly, mixed
from pgheadroom.verify.room import LINE_POINTER_BYTES, Came, Old, with_unknown_room
from pgheadroom.verify.since import Since, Unforeseen
from pgheadroom.verify.values import ByPage

BUDGET_S = 30.0
"""Seconds of all tables after which the calibration tries no further explanations."""

_DELETED_FRAC = 0.02  # of what came, for rows of any age to be two tables


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """
    What is foreseen for now.

    Attributes:
        hot_frac: HOT updates over updates of the window, old and new pages together.
        newpage_frac: Updates that went to another page, likewise.
        grown_bytes: What the heap has grown by since then, with what nobody knows of the room that
            its pages had.
        heap_bytes: The heap now; None where its size then is not known.
        new_rows_frac: Part of the rows that came since.
        by_page: Old pages and new ones by themselves; None where nothing was altered, so that all
            are filled alike.
    """

    hot_frac: Interval
    newpage_frac: Interval
    grown_bytes: Interval
    heap_bytes: Interval | None
    new_rows_frac: float
    by_page: ByPage | None


def foresee(
    profile: Profile,
    table: TableProfile,
    since: Since,
    runner: Runner,
    *,
    fit: Fit | None = None,
) -> Again:
    """
    Play a plan's profile until the state of now.

    Args:
        profile: That the plan was made of, its tables.
        table: One of them, with updates.
        since: What has happened to it.
        runner: Plays.
        fit: Of the plan's calibration; None: it is calibrated anew.

    Raises:
        Unforeseen: The twin cannot play it, or what happened since is of another kind.
    """
    version = str(minor_version(profile).version)
    try:
        scenario, off = (
            _calibrated(profile, table, version, runner)
            if fit is None
            else (_made_again(profile, table, fit), fit.off)
        )
        return play_until_now(
            scenario,
            since,
            version,
            runner,
            off=math.hypot(off, width_of(profile, table).half),
            row_bytes=tuple_bytes_of(table) + LINE_POINTER_BYTES,
        )
    except TwinError as error:
        raise Unforeseen(f"the twin cannot play it: {error}") from None


def _calibrated(
    profile: Profile, table: TableProfile, version: str, runner: Runner
) -> tuple[Scenario, float]:
    """What repeats the plan's observation, of a plan that does not say it; and by how much not."""
    observed = observed_shares(table)
    if observed is None:
        raise Unforeseen("the plan's observation has no updates of it")
    fitted = calibrate(profile, table, observed, version, runner, sample_pages=SAMPLE_PAGES)
    if fitted is None:
        raise Unforeseen("no operation of it could be made out")
    return fitted.scenario, fitted.off


def _made_again(profile: Profile, table: TableProfile, fit: Fit) -> Scenario:
    """The scenario of the plan's calibration."""
    unknown = fit.knobs.columns - {column.name for column in table.columns}
    if unknown:
        raise Unforeseen(f"the plan names column {sorted(unknown)[0]}, which it does not have")
    scenario = make_scenario(profile, as_they_are(table), fit.knobs, sample_pages=SAMPLE_PAGES)
    if scenario is None:
        raise Unforeseen("no operation of it could be made out")
    return scenario


def play_until_now(
    scenario: Scenario,
    since: Since,
    version: str,
    runner: Runner,
    *,
    off: float = 0.0,
    row_bytes: float,
) -> Again:
    """
    Play a scenario that repeats the plan's observation until the state of now.

    Args:
        scenario: Of the calibration.
        since: What has happened.
        version: The minor version that the twin follows.
        runner: Plays.
        off: By how much the calibration missed the observed HOT share, and by how much the twin
            may be off for what it does not play; it widens all intervals.
        row_bytes: Of a version on its page.

    Raises:
        Unforeseen: What happened since is of another kind, or too much.
        TwinError: The twin cannot play it.
    """
    picks = [
        operation.pick.distribution
        for operation in scenario.profile.workload.operations
        if operation.is_update and operation.pick is not None
    ]
    # Picks range over loaded rows or over the last ones, so that rows of any age are two tables;
    # those that follow the rows meet all of them.
    followed = follows_rows(scenario.profile.workload.operations)
    joint = followed or "newest" in picks or since.deletes > _DELETED_FRAC * since.inserts
    if joint or not since.inserts:
        found = Population(scenario, since, version, runner)
        parts = [(1.0, found)]
    else:
        old, new, new_frac = _apart(scenario, since, version, runner)
        parts = [(1 - new_frac, old), (new_frac, new)]
    # Each update that goes to a new page takes room there, and as many as may have been missed.
    doubt = off * since.updates * row_bytes
    growth = added([population.grown_bytes() for _, population in parts], doubt)
    growth = _with_unknown_room(
        growth, [population for _, population in parts], scenario, since, row_bytes
    )
    heap = since.heap_bytes
    return Again(
        hot_frac=mixed([(part, p.share("hot_frac")) for part, p in parts], off),
        newpage_frac=mixed([(part, p.share("newpage_frac")) for part, p in parts], off),
        grown_bytes=growth,
        heap_bytes=None if heap is None else added([exactly(heap), growth], 0.0),
        new_rows_frac=since.inserts / max(since.rows + since.inserts, 1),
        by_page=None if since.fillfactor_before == since.fillfactor else _by_page(parts),
    )


def _by_page(populations: Sequence[tuple[float, Population]]) -> ByPage:
    """Old pages and new ones; a population's updates count by its weight."""
    old = hot_old = hot_new = 0.0
    for weight, population in populations:
        found = [run.figures() for run in population.runs]
        updates = math.fsum(one.n_tup_upd for one in found)
        if not updates:
            continue
        on_old = math.fsum(one.old_page_upd for one in found) / updates
        hot_there = math.fsum(one.old_page_hot_upd for one in found) / updates
        old += weight * on_old
        hot_old += weight * hot_there
        hot_new += weight * (math.fsum(one.n_tup_hot_upd for one in found) / updates - hot_there)
    old = min(old, 1.0)
    return ByPage(
        old_pages_frac=old,
        hot_old_frac=min(hot_old / old, 1.0) if old > 0 else None,
        hot_new_frac=min(hot_new / (1 - old), 1.0) if old < 1 else None,
    )


def _with_unknown_room(
    growth: Interval,
    populations: Sequence[Population],
    scenario: Scenario,
    since: Since,
    row_bytes: float,
) -> Interval:
    """Growth as played, with what the run cannot know."""
    enabled = str(scenario.table.reloptions.get("autovacuum_enabled", "true")).lower()
    is_off = enabled in ("off", "false", "no", "0")
    old = Old(
        heap_bytes=since.heap_bytes,
        rows=since.rows,
        fillfactor=since.fillfactor_before,
        played_free_bytes=min(
            (one.free_bytes(row_bytes) for one in populations if not one.is_new), default=0.0
        ),
    )
    came = Came(
        inserts=since.inserts,
        deletes=since.deletes,
        moved=math.fsum(one.moved for one in populations),
        played_vacuums=max(one.vacuums for one in populations),
        vacuums=since.vacuums,
        is_vacuumed=scenario.profile.server.autovacuum and not is_off,
        fillfactor=since.fillfactor,
    )
    return with_unknown_room(growth, old, came, row_bytes)


def _apart(
    scenario: Scenario, since: Since, version: str, runner: Runner
) -> tuple[Population, Population, float]:
    """Rows that were there and rows that came, updated alike; and these' part of the updates."""
    ratio = since.inserts / since.rows
    now_frac = ratio / (1 + ratio)
    # Over the whole time, while their number rose evenly.
    frac = 1 - math.log1p(ratio) / ratio
    alone = replace(since, inserts=0, deletes=0)
    old = replace(
        alone,
        updates=round(since.updates * (1 - frac)),
        window_updates=round(since.window_updates * (1 - now_frac)),
    )
    new = replace(
        alone,
        rows=since.inserts,
        updates=max(1, round(since.updates * frac)),
        window_updates=max(1, round(since.window_updates * now_frac)),
        fillfactor_before=since.fillfactor,
        lives=(0,),  # it has no life before
    )
    return (
        Population(scenario, old, version, runner),
        Population(scenario, new, version, runner, is_new=True),
        now_frac,
    )
