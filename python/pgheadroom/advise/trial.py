"""
One setting of what an observation leaves open, played: how near it comes, and at what age.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from pgheadroom.advise.guard import Twins
from pgheadroom.advise.knobs import Knobs
from pgheadroom.advise.own_wal import own_wal
from pgheadroom.advise.runs import PlayedPiece
from pgheadroom.advise.scenario import Scenario
from pgheadroom.advise.shares import AGREES_WITHIN, Observed
from pgheadroom.outcome import Value
from pgheadroom.predict.without_row import turns_of, worst_of
from pgheadroom.profile.unpriced import left_out
from pgheadroom.types import Interval
from pgheadroom.units import PAGE_BYTES


class KnobTrial:
    """One setting of the knobs, played."""

    def __init__(
        self,
        scenario: Scenario,
        knobs: Knobs,
        played: Sequence[PlayedPiece],
        *,
        lived: float | None,
        seen: float,
    ) -> None:
        self.scenario = scenario
        self.knobs = knobs
        self.played = played
        per_window = scenario.updates_per_row / scenario.windows
        self._span = max(1, round(seen / per_window)) if per_window > 0 else 1
        self._span = min(self._span, scenario.windows)
        self.first, self.last = self._window(lived)
        self.is_moved = False

    def _window(self, lived: float | None) -> tuple[int, int]:
        """The windows that show the table as old as it is; the steady half if nobody knows."""
        whole = self.scenario.updates_per_row
        if lived is None or whole <= 0 or lived >= whole / 2:
            return self.scenario.steady_from, self.scenario.windows
        last = max(1, math.ceil(lived / whole * self.scenario.windows))
        return self._until(last)

    def _until(self, last: int) -> tuple[int, int]:
        """As many windows as the interval had updates a row, up to this one."""
        last = min(self.scenario.windows, max(last, self._span))
        return last - self._span, last

    @property
    def updates_until(self) -> float:
        """Updates a row until the middle of the windows that are compared."""
        middle = (self.first + self.last) / 2
        return self.scenario.updates_per_row * middle / self.scenario.windows

    def shares(self, first: int | None = None, last: int | None = None) -> tuple[float, float]:
        """HOT and new-page share over windows, the mean of the runs."""
        first = self.first if first is None else first
        last = self.last if last is None else last
        found = [run.figures(first, last) for run in self.played]
        updates = math.fsum(run.n_tup_upd for run in found)
        if not updates:
            return 0.0, 0.0
        return (
            math.fsum(run.n_tup_hot_upd for run in found) / updates,
            math.fsum(run.n_tup_newpage_upd for run in found) / updates,
        )

    def distance(self, observed: Observed, place: int | None = None) -> float:
        """How far from the observation, in shares of the updates; at another moment if named."""
        first, last = (None, None) if place is None else self._until(place)
        hot, newpage = self.shares(first, last)
        if observed.newpage is None:
            return abs(hot - observed.hot)
        return max(abs(hot - observed.hot), abs(newpage - observed.newpage))

    def agrees(self, observed: Observed) -> bool:
        """Whether chance explains what is between them, or it is too little to matter."""
        return self.distance(observed) <= max(AGREES_WITHIN, observed.error(observed.hot))

    def is_beyond(self, observed: Observed) -> bool:
        """Whether fewer updates are HOT than observed: more of the same would only be farther."""
        hot, _ = self.shares()
        return hot < observed.hot - max(AGREES_WITHIN, observed.error(observed.hot))

    def settle(self, observed: Observed) -> bool:
        """Compare at the moment that looks most as observed, if one does."""
        places = range(self._span, self.scenario.windows + 1)
        near = min(places, key=lambda place: self.distance(observed, place))
        if self.distance(observed, near) > max(AGREES_WITHIN, observed.error(observed.hot)):
            return False
        self.first, self.last = self._until(near)
        self.is_moved = True
        return True


def twins_of(best: KnobTrial) -> Twins:
    """What the twin has in the state that the table is taken to be in."""
    scenario, runs = best.scenario, best.played
    pages = math.fsum(_pages(run, "heap_pages", best) for run in runs) / len(runs)
    asked = scenario.updates_per_row * scenario.table.rows
    done = math.fsum(sum(run.columns["n_tup_upd"]) for run in runs) / len(runs)
    steady = 1 - scenario.steady_from / scenario.windows
    last = math.fsum(run.figures().n_tup_upd for run in runs) / len(runs)
    return Twins(
        wal_bytes_per_update=own_wal(runs, best.first, best.last, share=scenario.share),
        heap_bytes=pages * PAGE_BYTES / scenario.share,
        index_bytes=_between(
            [_pages(run, "index_pages", best) * PAGE_BYTES / scenario.share for run in runs]
        ),
        done_frac=min(1.0, done / asked, last / (asked * steady)) if asked else 1.0,
        left_out=left_out(scenario.table),
        without_row=worst_of(scenario.profile, turns_of([run.simulated for run in runs])),
    )


def _pages(run: PlayedPiece, of: str, best: KnobTrial) -> float:
    """
    Pages that the run has then, of as many rows as were observed.

    A run goes on for several updates a row, and a table that takes rows in has grown by then; what
    was measured is the table before that. One that loses rows keeps its pages.
    """
    loaded = best.scenario.table.rows
    came = sum(run.columns["n_tup_ins"][: best.last]) - sum(run.columns["n_tup_del"][: best.last])
    found: float = run.columns[of][best.last - 1] * loaded / (loaded + max(came, 0))
    return found


def _between(found: Sequence[float]) -> Value:
    """The mean of runs, from the least to the most."""
    mid = math.fsum(found) / len(found)
    return Interval.reaching(found, mid=mid, level=0.9)
