"""
Whether what a run ends with is the long run: consecutive windows agree, or it goes on.

A table without room moves rows in waves: first one of each full page, later more, when line
pointers have grown; rows that are seldom updated come last. What fills the later half of a run may
be such a wave. So that half is held against the quarter before it, and a run that still moves goes
on for twice as long, while there is budget. Waves may be so long that neighbouring windows look
alike; then the heap still grows, by more than the rows that come.

A run that may not go on, or whose budget is spent, has not settled, and says between what it moved.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pgheadroom.advise.runs import PlayedPiece, Runner, ScenarioPiece
from pgheadroom.advise.scenario import Scenario
from pgheadroom.predict.chance import students_t
from pgheadroom.types import Interval

SETTLED_WITHIN = 0.005
"""Shares of updates in consecutive windows that differ by less are the same: half a point."""

GROWS_WITHIN = 0.01
"""By which part the heap may grow in the last half, beside the rows that come: as `predict` has
it."""

LONGER_MAX = 3
"""How often a run is doubled: to 32 updates a row from four."""

_BUDGET_PART = 0.25  # of the time that is left, for one longer run of one table's fillfactors


@dataclass(frozen=True, slots=True, kw_only=True)
class LongRun:
    """
    The runs that stand for a fillfactor's long run.

    Attributes:
        scenario: Theirs.
        runs: With the same seeds, in order.
        seen: HOT share of the windows that still differ, from the least to the most; None where
            it has settled.
    """

    scenario: Scenario
    runs: tuple[PlayedPiece, ...]
    seen: Interval | None

    @property
    def is_settled(self) -> bool:
        """Whether the last window is as the one before it."""
        return self.seen is None


def long_runs(
    scenario: Scenario, fillfactors: Sequence[int], version: str, runner: Runner, *, seeds: int
) -> Mapping[int, LongRun]:
    """
    Play each fillfactor until it has settled.

    Args:
        scenario: That repeats the observation.
        fillfactors: Percent.
        version: The minor version that the twin follows.
        runner: Plays.
        seeds: Runs of each.
    """
    found: dict[int, LongRun] = {}
    left = tuple(dict.fromkeys(fillfactors))
    for turn in range(1 + LONGER_MAX):
        played = runner.play(
            ScenarioPiece(scenario=scenario, version=version, fillfactor=fillfactor, seed=seed)
            for fillfactor in left
            for seed in range(seeds)
        )
        for n, fillfactor in enumerate(left):
            runs = tuple(played[n * seeds : (n + 1) * seeds])
            found[fillfactor] = LongRun(scenario=scenario, runs=runs, seen=moved(runs))
        left = tuple(one for one in left if not found[one].is_settled)
        cost_s = 2 * math.fsum(run.cpu_s for one in left for run in found[one].runs)
        if not left or turn == LONGER_MAX or not runner.has_left(cost_s, _BUDGET_PART):
            break
        next_one = runner.longer(scenario)
        if next_one is None:
            break
        scenario = next_one
    return found


def moved(runs: Sequence[PlayedPiece]) -> Interval | None:
    """
    Between what the HOT share still moves at the end of runs; None where it has settled.

    Args:
        runs: Of one scenario and fillfactor, with different seeds.
    """
    scenario = runs[0].piece.scenario
    half, quarter = scenario.steady_from, scenario.steady_from // 2
    if half - quarter < 1:
        return None
    before = [_shares(run, quarter, half) for run in runs]
    after = [_shares(run, half, scenario.windows) for run in runs]
    if not differs(before, after) and grows_frac(runs) <= GROWS_WITHIN:
        return None
    ends = [math.fsum(hot for hot, _ in found) / len(found) for found in (before, after)]
    return Interval(low=min(ends), mid=ends[1], high=max(ends), level=1.0)


def grows_frac(runs: Sequence[PlayedPiece]) -> float:
    """By which part heaps grow in the last half of runs, beyond the rows that come in it."""
    scenario = runs[0].piece.scenario
    half, rows = scenario.steady_from, scenario.table.rows
    found = []
    for run in runs:
        pages, come, go = (run.columns[n] for n in ("heap_pages", "n_tup_ins", "n_tup_del"))
        then = max(rows + sum(come[:half]) - sum(go[:half]), 1)
        more = max(0, sum(come[half:]) - sum(go[half:])) / then
        found.append(pages[-1] / max(pages[half - 1], 1) - 1 - more)
    return math.fsum(found) / len(found)


def differs(before: Sequence[tuple[float, float]], after: Sequence[tuple[float, float]]) -> bool:
    """
    Whether shares have moved from one window to the next, by more than chance does.

    Args:
        before: By run, its shares of updates in a window.
        after: The same runs in the window after it.
    """
    for steps in zip(
        *(
            [new - old for old, new in zip(first, last, strict=True)]
            for first, last in zip(before, after, strict=True)
        ),
        strict=True,
    ):
        mean = math.fsum(steps) / len(steps)
        chance = 0.0
        if len(steps) > 1:
            variance = math.fsum((step - mean) ** 2 for step in steps) / (len(steps) - 1)
            chance = students_t(len(steps) - 1) * math.sqrt(variance / len(steps))
        if abs(mean) > max(SETTLED_WITHIN, chance):
            return True
    return False


def _shares(run: PlayedPiece, first: int, last: int) -> tuple[float, float]:
    """HOT and new-page share of some windows."""
    updates = sum(run.columns["n_tup_upd"][first:last])
    if not updates:
        return 0.0, 0.0
    return (
        sum(run.columns["n_tup_hot_upd"][first:last]) / updates,
        sum(run.columns["n_tup_newpage_upd"][first:last]) / updates,
    )
