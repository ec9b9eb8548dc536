"""
A table over fillfactors: the steady state of each, what it costs, and the way there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pgheadroom.advise.foreseen import Point, Transition
from pgheadroom.advise.own_wal import own_wal
from pgheadroom.advise.policy import DAY_S, Policy, cost_a_day, with_cost
from pgheadroom.advise.row import rows_per_page
from pgheadroom.advise.runs import PlayedPiece, Runner, ScenarioPiece
from pgheadroom.advise.scenario import Scenario
from pgheadroom.advise.settling import LongRun, long_runs
from pgheadroom.advise.unplayed import with_unplayed
from pgheadroom.outcome import Outcome, Value, as_interval, middle, scaled
from pgheadroom.predict.convergence import takes_effect
from pgheadroom.predict.series import series_of
from pgheadroom.predict.spread import OfSamples, spread
from pgheadroom.profile.tables import TableProfile
from pgheadroom.types import Interval, PgVersion
from pgheadroom.units import PAGE_BYTES

SEEDS = 3
"""Runs of each point: enough for a spread."""

SEEDS_NEAR = 8
"""Of two points between which chance decides: when a vacuum falls between two checkpoints, its
pages are logged once more, and three runs see a few of these."""

FILLFACTORS = (100, 90, 80, 70, 60, 50)
"""Where a curve begins; around the best of them it is looked at by fives."""

_STEP = 5
_WIDE_ROWS_PER_PAGE = 12  # fewer than this: a step of five per cent may not be a row's room
_LOWEST = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Costed:
    """
    A point and, run by run, what it costs a day: runs with the same seed are comparable.

    `images_cost` is what images and pages written are of that, the mean of the runs; `scenario` is
    that of the runs, None for points that were made otherwise.
    """

    point: Point
    costs: tuple[float, ...]
    scenario: Scenario | None = None
    images_cost: float = 0.0


def candidates(table: TableProfile) -> tuple[int, ...]:
    """
    Fillfactors that are tried first: by tens; for wide rows the highest for each number a page too.

    The setting in force is among them.
    """
    found = {table.fillfactor, *FILLFACTORS}
    if not _is_narrow(table):
        highest: dict[int, int] = {}
        for percent in range(_LOWEST, 101):
            highest[rows_per_page(table, percent)] = percent
        found.update(highest.values())
    return tuple(sorted(found, reverse=True))


def beside(curve: Sequence[Costed]) -> tuple[int, ...]:
    """Fillfactors beside the best of a curve that are worth a look too."""
    best = min(curve, key=lambda found: sum(found.costs)).point.fillfactor
    known = {found.point.fillfactor for found in curve}
    near = {best - _STEP, best + _STEP} - known
    return tuple(sorted((f for f in near if FILLFACTORS[-1] <= f <= 100), reverse=True))


def _is_narrow(table: TableProfile) -> bool:
    return rows_per_page(table, 100) >= _WIDE_ROWS_PER_PAGE


def curve_of(
    table: TableProfile,
    scenario: Scenario,
    fillfactors: Sequence[int],
    version: str,
    policy: Policy,
    runner: Runner,
    *,
    off: float,
    width: float = 0.0,
    unplayed: Interval | None = None,
) -> tuple[Costed, ...]:
    """
    Play each fillfactor until it has settled.

    Args:
        table: As observed.
        scenario: That repeats the observation.
        fillfactors: By falling fillfactor.
        version: The minor version that the twin follows.
        policy: What things cost.
        runner: Plays.
        off: By how much the calibration missed the observed HOT share; it widens all intervals.
        width: By how much less sure HOT is, for what the twin does not play.
        unplayed: Bytes that indexes write, with each update that is not HOT, beside the twin's.

    Raises:
        TwinError: The twin cannot play the table.
    """
    played = long_runs(scenario, fillfactors, version, runner, seeds=SEEDS)
    found = []
    for fillfactor in fillfactors:
        long_run = played[fillfactor]
        point = _point(table, long_run, fillfactor, math.hypot(off, width), unplayed)
        found.append(_costed(point, long_run.runs, table, long_run.scenario, policy, unplayed))
    return tuple(found)


def with_more_runs(
    found: Costed,
    table: TableProfile,
    version: str,
    policy: Policy,
    runner: Runner,
    *,
    unplayed: Interval | None = None,
) -> Costed:
    """
    The same point, its cost from `SEEDS_NEAR` runs.

    Args:
        found: As it was made.
        table: As observed.
        version: The minor version that the twin follows.
        policy: What things cost.
        runner: Plays.
        unplayed: As for `curve_of`.
    """
    if found.scenario is None:
        return found
    runs = runner.play(
        ScenarioPiece(
            scenario=found.scenario,
            version=version,
            fillfactor=found.point.fillfactor,
            seed=seed,
        )
        for seed in range(SEEDS_NEAR)
    )
    again = _costed(found.point, runs, table, found.scenario, policy, unplayed)
    return replace(found, costs=again.costs, images_cost=again.images_cost)


def _point(
    table: TableProfile,
    long_run: LongRun,
    fillfactor: int,
    off: float,
    unplayed: Interval | None,
) -> Point:
    scenario, runs = long_run.scenario, long_run.runs
    figures = [run.figures() for run in runs]
    major = PgVersion.parse(runs[0].piece.version).major
    outcome = spread(
        [found.outcome() for found in figures],
        clients=1,
        major=major,
        samples=OfSamples(share=scenario.share),
        by_clock=True,
    )
    updates = math.fsum(found.n_tup_upd for found in figures) / len(figures)
    inserts = math.fsum(found.n_tup_ins for found in figures) / len(figures)
    heap_bytes = scaled(outcome.heap_pages, PAGE_BYTES / scenario.share)
    hot = _reaching(_widened(outcome.hot_frac, off), long_run.seen)
    return Point(
        fillfactor=fillfactor,
        hot_frac=hot,
        newpage_frac=_widened(outcome.newpage_frac, off),
        heap_bytes=heap_bytes,
        index_bytes=scaled(outcome.index_pages, PAGE_BYTES / scenario.share),
        wal_bytes_per_update=with_unplayed(own_wal(runs, share=scenario.share), hot, unplayed),
        all_wal_bytes_per_update=with_unplayed(
            outcome.wal_bytes_per_update, hot, unplayed, inserts=inserts / updates if updates else 0
        ),
        pages_modified_per_update=(
            scaled(_written(outcome, scenario), 1 / updates) if updates else None
        ),
        seq_scan_pages=scaled(outcome.heap_pages, 1 / scenario.share),
        misses_per_update=misses(table, middle(heap_bytes)),
        vacuum_pages_per_update=(
            math.fsum(found.vacuum_pages for found in figures) / len(figures) / updates
            if updates and scenario.profile.server.autovacuum
            else None
        ),
        is_settled=long_run.is_settled,
        hot_frac_seen=long_run.seen,
        updates_per_row=scenario.updates_per_row,
    )


def _reaching(found: Value, seen: Interval | None) -> Value:
    """A share as wide as what was seen of it while it moved."""
    wide = as_interval(found, level=0.9)
    if wide is None or seen is None:
        return found
    return replace(wide, low=min(wide.low, seen.low), high=max(wide.high, seen.high))


def _written(outcome: Outcome, scenario: Scenario) -> Value:
    """
    Pages that checkpoints write.

    A page's first change after a checkpoint has its image in the WAL, so images count pages by
    checkpoint distance; without images, distinct pages by window do, which is a little more.
    """
    images: Value = outcome.wal_fpi
    modified: Value = outcome.pages_modified
    return images if scenario.profile.server.full_page_writes else modified


def _costed(
    point: Point,
    runs: Sequence[PlayedPiece],
    table: TableProfile,
    scenario: Scenario,
    policy: Policy,
    unplayed: Interval | None,
) -> Costed:
    assert table.observed is not None, "an observed profile"
    per_s = scenario.updates_per_row * table.rows / scenario.duration_s
    rates = {"updates_per_s": per_s, "seq_scans_per_s": seq_scans_per_s(table)}
    entry_bytes = 0.0 if unplayed is None else unplayed.mid
    costs, images = [], []
    for run in runs:
        found = run.figures()
        updates = found.n_tup_upd
        entered = updates - found.n_tup_hot_upd + found.n_tup_ins
        has_images = scenario.profile.server.full_page_writes
        written = found.wal_fpi if has_images else found.pages_modified
        single = replace(
            point,
            heap_bytes=found.heap_pages * PAGE_BYTES / scenario.share,
            index_bytes=found.index_pages * PAGE_BYTES / scenario.share,
            all_wal_bytes_per_update=(
                (found.wal_bytes + entry_bytes * entered) / updates if updates else 0.0
            ),
            pages_modified_per_update=written / updates if updates else 0.0,
            seq_scan_pages=found.heap_pages / scenario.share,
        )
        cost = with_cost(single, policy.prices, **rates).cost
        assert isinstance(cost, float), "every part is a number"
        costs.append(cost)
        images.append(
            cost_a_day(
                policy.prices,
                kept_bytes=0.0,
                wal_bytes_a_day=found.wal_fpi_bytes / updates * per_s * DAY_S if updates else 0,
                pages_written_a_day=written / updates * per_s * DAY_S if updates else 0,
                pages_read_a_day=0.0,
            )
        )
    return Costed(
        point=with_cost(point, policy.prices, **rates),
        costs=tuple(costs),
        scenario=scenario,
        images_cost=math.fsum(images) / len(images),
    )


def seq_scans_per_s(table: TableProfile) -> float:
    """Sequential scans of the table a second, as observed."""
    assert table.observed is not None, "an observed profile"
    counters, rates = table.observed.counters, table.observed.per_s
    updates, per_s = counters.n_tup_upd, rates.n_tup_upd
    scans = counters.seq_scan
    if not scans or not updates or not per_s:
        return 0.0
    return float(scans) * float(per_s) / float(updates)


def misses(table: TableProfile, heap_bytes: float | None) -> float | None:
    """
    Pages an update does not find in shared buffers, if the heap had this size.

    With as much of the heap in memory as now: what is cached of S bytes at a miss share m is
    (1 - m) S, and stays. Estimated; None where nothing was counted.
    """
    assert table.observed is not None, "an observed profile"
    counters = table.observed.counters
    read, hit = counters.heap_blks_read, counters.heap_blks_hit
    updates = counters.n_tup_upd
    now = table.observed.main_bytes
    if read is None or hit is None or not updates or not read + hit or not now or not heap_bytes:
        return None
    cached = (1 - read / (read + hit)) * now
    share = max(0.0, 1 - cached / heap_bytes) if read else 0.0
    return float(share * (read + hit) / updates)


def transition_of(
    table: TableProfile,
    scenario: Scenario,
    fillfactor: int,
    version: str,
    runner: Runner,
) -> Transition:
    """
    The way to a new fillfactor without a rewrite.

    Args:
        table: As observed, with the setting in force.
        scenario: That repeats the observation.
        fillfactor: That is set.
        version: The minor version that the twin follows.
        runner: Plays.
    """
    altered = runner.play(
        [
            ScenarioPiece(
                scenario=scenario,
                version=version,
                fillfactor=table.fillfactor,
                seed=seed,
                later=fillfactor,
            )
            for seed in range(2)
        ],
    )
    rewritten = runner.play(
        [
            ScenarioPiece(scenario=scenario, version=version, fillfactor=fillfactor, seed=seed)
            for seed in range(2)
        ],
    )
    major = PgVersion.parse(version).major
    series = series_of([run.simulated for run in altered], clients=1, major=major)
    other = series_of([run.simulated for run in rewritten], clients=1, major=major)
    assert series is not None, "runs of an advice have windows"
    effect = takes_effect(series, other, scenario.table.rows)
    pages = math.fsum(run.columns["heap_pages"][-1] for run in altered) / len(altered)
    return Transition(
        verdict=effect.verdict,
        after_s=effect.after_s,
        after_updates_per_row=effect.after_updates_per_row,
        final_hot_frac=effect.final_hot_frac,
        rewritten_hot_frac=effect.rewritten_hot_frac,
        final_heap_bytes=pages * PAGE_BYTES / scenario.share,
    )


def without_indexes(scenario: Scenario, names: Sequence[str]) -> Scenario | None:
    """The same run without some of its indexes; None where one cannot go, or is not played."""
    table = scenario.table
    if table.key_index is None:
        return None
    left = tuple(i for i in table.indexes if not {i.name, i.name.rpartition(".")[2]} & {*names})
    if len(left) != len(table.indexes) - len(names) or table.key_index not in left:
        return None
    return replace(
        scenario, profile=replace(scenario.profile, tables=(replace(table, indexes=left),))
    )


def _widened(value: Value, off: float) -> Value:
    wide = as_interval(value, level=0.9)
    if wide is None or not off:
        return value
    return Interval.summed([wide], doubt=off, level=wide.level).clipped(0.0, 1.0)
