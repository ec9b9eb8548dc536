"""
Runs of the twin for an advice: several side by side, and their figures over a part of the run.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from pgheadroom import _core
from pgheadroom.advise.scenario import Scenario
from pgheadroom.outcome import SUMMED, with_quotients
from pgheadroom.profile import to_json
from pgheadroom.schedule import run_pieces

_SIZES = ("heap_pages", "index_pages")


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """
    One run: a scenario, loaded at a fillfactor, and altered when the run begins if `later` is set.
    """

    scenario: Scenario
    version: str
    fillfactor: int
    seed: int
    later: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """
    The figures of one run.

    Attributes:
        piece: What was played.
        columns: By name: each window's own counts; sizes at its end.
        vacuum_pages: Pages that vacuums looked at, by window of their beginning.
    """

    piece: Piece
    columns: Mapping[str, tuple[int, ...]]
    vacuum_pages: tuple[int, ...]
    simulated: _core.Simulated

    def figures(self, first: int | None = None, last: int | None = None) -> dict[str, Any]:
        """
        Sums and quotients over some windows, sizes at their end; of the sample, not of the whole.

        Args:
            first: The first window, from 0; None: where the steady state begins.
            last: The window after the last one; None: the run's end.
        """
        first = self.piece.scenario.steady_from if first is None else first
        last = self.piece.scenario.windows if last is None else last
        sums: dict[str, float | None] = {}
        for name in SUMMED:
            values = self.columns[name]
            sums[name] = values[last - 1] if name in _SIZES else math.fsum(values[first:last])
        found = with_quotients(sums)
        found["vacuum_pages"] = sum(self.vacuum_pages[first:last])
        return found


class Runner:
    """
    Plays pieces side by side and keeps what was played, so that nothing is played twice.

    Leaving the block by an exception ends the runs that are under way.

    Args:
        executor: Where to run; a thread a core when None.
        budget_s: Seconds after which nothing is begun that can be left out.
    """

    def __init__(self, executor: Executor | None = None, budget_s: float = math.inf) -> None:
        self._ends = time.monotonic() + budget_s
        self._cores = len(os.sched_getaffinity(0))
        self._own = ThreadPoolExecutor(self._cores) if executor is None else None
        self._executor = executor or self._own
        self._known: dict[tuple[int, int, int, int | None], Played] = {}
        self._kept: list[Scenario] = []
        self._progress: list[_core.Progress] = []

    @property
    def in_time(self) -> bool:
        """Whether the budget is not yet spent."""
        return time.monotonic() < self._ends

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            for progress in self._progress:
                progress.cancel()
        if self._own is not None:
            self._own.shutdown(wait=True, cancel_futures=True)

    def play(self, pieces: Iterable[Piece]) -> list[Played]:
        """
        The figures of each piece, in the order given.

        Raises:
            TwinError: The twin cannot play the table; the message names the field.
        """
        asked = list(pieces)
        new = [piece for piece in asked if _key(piece) not in self._known]
        function = self._play if self._own is not None else _play_elsewhere
        for piece, played in run_pieces(
            function, new, executor=self._executor, in_flight=self._cores
        ):
            self._known[_key(piece)] = played
            self._kept.append(piece.scenario)  # keys are identities: what they name must stay
        return [self._known[_key(piece)] for piece in asked]

    def _play(self, piece: Piece) -> Played:
        progress = _core.Progress()
        self._progress.append(progress)
        try:
            return _play(piece, progress)
        finally:
            self._progress.remove(progress)


def _key(piece: Piece) -> tuple[int, int, int, int | None]:
    return (id(piece.scenario), piece.fillfactor, piece.seed, piece.later)


def _play_elsewhere(piece: Piece) -> Played:
    return _play(piece, None)


def _play(piece: Piece, progress: _core.Progress | None) -> Played:
    scenario = piece.scenario
    table = replace(scenario.table, fillfactor=piece.fillfactor)
    workload = scenario.profile.workload
    profile = replace(
        scenario.profile,
        tables=(table,),
        workload=replace(workload, run=replace(workload.run, seed=1 + piece.seed)),
    )
    found = _core.simulate(
        json.dumps(to_json(profile)),
        piece.version,
        interleaving=piece.seed,
        pace=("even", scenario.per_s),
        windows=scenario.windows,
        fillfactors_later=[] if piece.later is None else [(table.name, piece.later)],
        progress=progress,
    )
    cumulative = found.series["tables"][table.name]
    columns = {
        name: tuple(cumulative[name])
        if name in _SIZES or name == "pages_modified"
        else _steps(cumulative[name])
        for name in SUMMED
    }
    vacuum_pages = [0] * scenario.windows
    for kind, _, _, began_s, _, pages in found.happened:
        if kind == "autovacuum":
            place = int(scenario.windows * began_s / scenario.duration_s)
            vacuum_pages[min(place, scenario.windows - 1)] += pages
    return Played(piece=piece, columns=columns, vacuum_pages=tuple(vacuum_pages), simulated=found)


def _steps(sums: Sequence[int]) -> tuple[int, ...]:
    return tuple(after - before for before, after in zip((0, *sums), sums, strict=False))
