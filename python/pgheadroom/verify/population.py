"""
Rows of a table that are played together until now, and the arithmetic of their intervals.

Old rows and new ones may be two populations. Each has every life before that may have been, and
what is said of it holds whichever it was.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from pgheadroom.advise.runs import PlayedPiece, Runner, ScenarioPiece
from pgheadroom.advise.scenario import Scenario
from pgheadroom.outcome import as_interval
from pgheadroom.predict.spread import OfSamples, spread
from pgheadroom.types import Interval, PgVersion
from pgheadroom.units import PAGE_BYTES
from pgheadroom.verify.room import free_bytes
from pgheadroom.verify.since import Since, until_now

_SEEDS = 3


class Population:
    """Rows that are played together, with what happens to them since, for each life before."""

    def __init__(
        self,
        scenario: Scenario,
        since: Since,
        version: str,
        runner: Runner,
        *,
        is_new: bool = False,
    ) -> None:
        changes = since.fillfactor_before != since.fillfactor
        self._first = since.fillfactor_before
        self._later = since.fillfactor if changes else None
        self._version = version
        self._runner = runner
        self.is_new = is_new
        self._lives = [until_now(scenario, since, life)[:2] for life in since.lives]
        self._played = [
            self._play(life, alter_at, self._first, self._later) for life, alter_at in self._lives
        ]
        self._outcomes = [
            spread(
                [run.outcome() for run in runs],
                clients=1,
                major=PgVersion.parse(version).major,
                samples=OfSamples(share=life.share),
                by_clock=True,
            )
            for runs, (life, _) in zip(self._played, self._lives, strict=True)
        ]

    def _play(
        self, life: Scenario, alter_at: int, fillfactor: int, later: int | None
    ) -> list[PlayedPiece]:
        return self._runner.play(
            ScenarioPiece(
                scenario=life,
                version=self._version,
                fillfactor=fillfactor,
                seed=seed,
                later=later,
                later_at_frac=alter_at / life.windows,
            )
            for seed in range(_SEEDS)
        )

    @property
    def runs(self) -> list[PlayedPiece]:
        """Of all lives."""
        return [run for runs in self._played for run in runs]

    def share(self, name: str) -> Interval:
        """Of the updates of the window, whichever life it had."""
        return _any_of(
            [
                as_interval(outcome.value(name), level=0.9) or exactly(0.0)
                for outcome in self._outcomes
            ]
        )

    def grown_bytes(self) -> Interval:
        """Pages that came since the setting; of rows that came since, all."""
        return _any_of(
            [
                self._grown(runs, life.share, alter_at)
                for runs, (life, alter_at) in zip(self._played, self._lives, strict=True)
            ]
        )

    def free_bytes(self, row_bytes: float) -> float:
        """What pages had free or dead when it began, the least of all runs."""
        return min(
            free_bytes(
                run.columns["heap_pages"][alter_at - 1] * PAGE_BYTES / life.share,
                (life.table.rows + self._came(run, alter_at)) / life.share,
                row_bytes,
                self._first,
            )
            for run, life, alter_at in self._each()
        )

    @property
    def moved(self) -> float:
        """Versions that went to another page since."""
        return self._mean(
            sum(run.columns["n_tup_newpage_upd"][self._start(alter_at) :]) / life.share
            for run, life, alter_at in self._each()
        )

    @property
    def vacuums(self) -> float:
        """Autovacuums since."""
        return self._mean(
            sum(
                kind == "autovacuum" and began_s >= life.duration_s * alter_at / life.windows
                for kind, _, is_toast, began_s, *_ in run.simulated.happened
                if not is_toast
            )
            for run, life, alter_at in self._each()
        )

    def _each(self) -> Iterator[tuple[PlayedPiece, Scenario, int]]:
        for runs, (life, alter_at) in zip(self._played, self._lives, strict=True):
            for run in runs:
                yield run, life, alter_at

    def _start(self, alter_at: int) -> int:
        return 0 if self.is_new else alter_at

    @staticmethod
    def _came(run: PlayedPiece, alter_at: int) -> int:
        columns = run.columns
        return sum(columns["n_tup_ins"][:alter_at]) - sum(columns["n_tup_del"][:alter_at])

    @staticmethod
    def _mean(found: Iterable[float]) -> float:
        values = list(found)
        return math.fsum(values) / len(values)

    def _grown(self, runs: Sequence[PlayedPiece], share: float, alter_at: int) -> Interval:
        found = []
        for run in runs:
            pages = run.columns["heap_pages"]
            first = 0 if self.is_new else pages[alter_at - 1]
            found.append((pages[-1] - first) * PAGE_BYTES / share)
        mid = math.fsum(found) / len(found)  # of equal numbers it may be off in its last digit
        return Interval.reaching(found, mid=mid, level=0.9)


def exactly(value: float) -> Interval:
    """A number that is certain, where others are intervals."""
    return Interval.exactly(value, level=0.9)


def _any_of(found: Sequence[Interval]) -> Interval:
    """What holds each of them."""
    low, high = min(one.low for one in found), max(one.high for one in found)
    mid = math.fsum(one.mid for one in found) / len(found)
    return Interval.within(low, high, mid=mid, level=0.9)


def added(parts: Sequence[Interval], doubt: float) -> Interval:
    """A sum, each of whose parts may be off by itself, and by something else."""
    return Interval.summed(parts, doubt=doubt, level=0.9).clipped(0.0, math.inf)


def mixed(parts: Sequence[tuple[float, Interval]], off: float) -> Interval:
    """A mean of shares by their weights, wider where the calibration missed what was observed."""
    return added([found.scaled(weight) for weight, found in parts], off).clipped(0.0, 1.0)
