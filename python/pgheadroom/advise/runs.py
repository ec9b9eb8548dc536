"""
Runs of the twin for an advice: several side by side, and their figures over a part of the run.

The budget is processor time, of this process with all its threads and of workers elsewhere: what
others do on the machine makes an advice later, and takes nothing away from it. Items that are
played side by side end with it: a run that is under way is cut off. One of them may have a part of
it while others wait, or a table of slow runs would leave nothing to any other.
"""

from __future__ import annotations

import json
import math
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Executor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TypeVar

from pgheadroom import _core
from pgheadroom.advise.scenario import Scenario, longer
from pgheadroom.errors import TwinError
from pgheadroom.outcome import SUMMED, Outcome, of_sums
from pgheadroom.predict.carried import fit_to_travel
from pgheadroom.predict.memory import check_memory
from pgheadroom.profile import to_json
from pgheadroom.schedule import run_pieces
from pgheadroom.units import percent

_SIZES = ("heap_pages", "index_pages")
_COLUMNS = (*SUMMED, "wal_update_bytes", "old_page_upd", "old_page_hot_upd")

ItemT = TypeVar("ItemT")
DoneT = TypeVar("DoneT")


ITEM_PART = 1 / 3
"""Of the budget, that one of several items may spend while others wait to be begun; arbitrary."""


class BudgetSpent(Exception):  # noqa: N818 - reads as what happened
    """
    What was being played side by side is cut off, and has no result.

    Attributes:
        part: Of the budget that is spent: the whole, or `ITEM_PART` on this one while others wait.
    """

    def __init__(self, part: float) -> None:
        self.part = part
        super().__init__(f"{percent(part)} of the budget is spent")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioPiece:
    """
    One run: a scenario, loaded at a fillfactor, and altered if `later` is set.

    `later_at_frac` says when, as a part of the run; 0: when it begins.
    """

    scenario: Scenario
    version: str
    fillfactor: int
    seed: int
    later: int | None = None
    later_at_frac: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PieceFigures:
    """
    Sums over some windows of one run, sizes at their end; of the sample, not of the whole.

    Names are those of an outcome, and further ones: `wal_update_bytes` is what the statements that
    update rows have logged, images apart; `old_page_upd` are updates of versions on pages that
    were there when the fillfactor was set, `old_page_hot_upd` the HOT ones of them; `vacuum_pages`
    are those that vacuums looked at.
    """

    n_tup_ins: float
    n_tup_upd: float
    n_tup_del: float
    n_tup_hot_upd: float
    n_tup_newpage_upd: float
    heap_pages: float
    index_pages: float
    wal_records: float
    wal_bytes: float
    wal_fpi_bytes: float
    wal_fpi: float
    pages_modified: float
    wal_update_bytes: float
    old_page_upd: float
    old_page_hot_upd: float
    vacuum_pages: int

    def outcome(self) -> Outcome:
        """Those that a prediction has, with their quotients."""
        return of_sums({key: getattr(self, key) for key in SUMMED})

    def blown_up(self, share: float) -> Outcome:
        """The same of the whole table, of which so much was played."""
        return of_sums({key: getattr(self, key) / share for key in SUMMED})


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayedPiece:
    """
    The figures of one run.

    Attributes:
        piece: What was played.
        columns: By name: each window's own counts; sizes at its end.
        vacuum_pages: Pages that vacuums looked at, by window of their beginning.
        cpu_s: Processor time that it took.
    """

    piece: ScenarioPiece
    columns: Mapping[str, tuple[int, ...]]
    vacuum_pages: tuple[int, ...]
    simulated: _core.Simulated
    cpu_s: float

    def figures(self, first: int | None = None, last: int | None = None) -> PieceFigures:
        """
        What it did in some windows.

        Over the steady state sizes are those at the moment that the scenario names.

        Args:
            first: The first window, from 0; None: where the steady state begins.
            last: The window after the last one; None: the run's end.
        """
        first = self.piece.scenario.steady_from if first is None else first
        sized = self.piece.scenario.sized_at if last is None else last
        last = self.piece.scenario.windows if last is None else last
        sums: dict[str, float] = {}
        for name in _COLUMNS:
            values = self.columns[name]
            sums[name] = values[sized - 1] if name in _SIZES else math.fsum(values[first:last])
        return PieceFigures(**sums, vacuum_pages=sum(self.vacuum_pages[first:last]))

    def outcome(self, first: int | None = None, last: int | None = None) -> Outcome:
        """The same of those figures that a prediction has, of the one table."""
        return self.figures(first, last).outcome()


class Runner:
    """
    Plays pieces side by side and keeps what was played, so that nothing is played twice.

    Leaving the block by an exception ends the runs that are under way.

    Args:
        executor: Where to run; a thread a core when None.
        budget_s: Seconds of processor time after which nothing is begun that can be left out, and
            after which all that is played side by side is cut off.
        clock: Processor time of this process and all its threads, in seconds.
    """

    def __init__(
        self,
        executor: Executor | None = None,
        budget_s: float = math.inf,
        clock: Callable[[], float] = time.process_time,
    ) -> None:
        self._clock = clock
        self._began_s = clock()
        self._elsewhere_s = 0.0
        self._budget_s = budget_s
        self._cores = len(os.sched_getaffinity(0))
        self._own = ThreadPoolExecutor(self._cores) if executor is None else None
        self._executor = executor or self._own
        self._known: dict[_Key, PlayedPiece] = {}
        self._longer: dict[int, Scenario | None] = {}
        self._kept: list[Scenario] = []
        self._progress: dict[_Key, _core.Progress] = {}
        self._is_cancelled = False
        self._is_limited = False
        self._waiting = 0  # items that are not yet begun
        self._item = threading.local()

    @property
    def spent_s(self) -> float:
        """Seconds of processor time since this was made, here and where pieces were run."""
        return self._clock() - self._began_s + self._elsewhere_s

    @property
    def in_time(self) -> bool:
        """Whether the budget is not yet spent."""
        return self.spent_s < self._budget_s

    def has_left(self, cpu_s: float, part: float) -> bool:
        """Whether so much processor time is no more than a part of what is left of the budget."""
        return cpu_s <= part * (self._budget_s - self.spent_s)

    def longer(self, scenario: Scenario) -> Scenario | None:
        """The scenario for twice as long, the same one each time; None where it cannot go on."""
        if id(scenario) not in self._longer:
            self._kept.append(scenario)
            self._longer[id(scenario)] = longer(scenario)
        return self._longer[id(scenario)]

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self._cancel()
        if self._own is not None:
            self._own.shutdown(wait=True, cancel_futures=True)

    def _cancel(self) -> None:
        self._is_cancelled = True
        self._cut_off(tuple(self._progress))

    def _cut_off(self, keys: Iterable[_Key]) -> None:
        """End these runs, as far as they are under way here."""
        for key in keys:
            progress = self._progress.get(key)
            if progress is not None:
                progress.cancel()

    def side_by_side(
        self, function: Callable[[ItemT], DoneT], items: Sequence[ItemT]
    ) -> Iterator[tuple[ItemT, DoneT]]:
        """
        Do something that plays pieces for several items at once, while there is budget.

        Items are begun in the order given, as many at once as there are cores. With the end of the
        budget, or of an item's part of it, `play` raises `BudgetSpent` in those that are begun,
        which the function turns into a result. With an executor from elsewhere one at a time, and
        single runs there come to their end.

        Yields:
            Each item that was begun with its result, as they end.
        """
        self._is_limited = True
        self._waiting = len(items)

        def do(item: ItemT) -> DoneT:
            self._item.spent_s = 0.0
            return function(item)

        if self._own is None:
            yield from run_pieces(do, self._begun(items))
            return
        with ThreadPoolExecutor(self._cores) as threads:
            try:
                yield from run_pieces(
                    do, self._begun(items), executor=threads, in_flight=self._cores
                )
            except BaseException:
                self._cancel()  # or leaving this block would wait for whole tables
                raise

    def play(self, pieces: Iterable[ScenarioPiece]) -> list[PlayedPiece]:
        """
        The figures of each piece, in the order given.

        Raises:
            TwinError: The twin cannot play the table; the message names the field.
            BudgetSpent: Inside `side_by_side`, where one of them was not played before its end.
        """
        asked = list(pieces)
        new = {key: piece for piece in asked if (key := _key(piece)) not in self._known}
        if self._is_cancelled:
            raise CancelledError
        function = self._play if self._own is not None else _play_elsewhere
        try:
            for piece, (played, pid, cpu_s) in run_pieces(
                function,
                self._within_budget(new.values()),
                executor=self._executor,
                in_flight=self._cores,
                tick=self._watch_budget,
            ):
                self._known[_key(piece)] = played
                self._kept.append(piece.scenario)  # keys are identities: what they name must stay
                self._item.spent_s = self._item_spent_s + cpu_s
                if pid != os.getpid():
                    self._elsewhere_s += cpu_s
        except TwinError as error:
            self._cut_off(new)
            if self._is_over:  # it was cut off, which is no fault of the table's
                raise BudgetSpent(1.0) from error
            raise
        except BudgetSpent:
            self._cut_off(new)
            raise
        return [self._known[_key(piece)] for piece in asked]

    @property
    def _is_over(self) -> bool:
        return self._is_limited and not self.in_time

    @property
    def _item_spent_s(self) -> float:
        """Processor time of ended runs of what the calling thread plays."""
        return float(getattr(self._item, "spent_s", 0.0))

    def _begun(self, items: Sequence[ItemT]) -> Iterator[ItemT]:
        for item in items:
            if not self.in_time:
                return
            self._waiting -= 1
            yield item

    def _within_budget(self, pieces: Iterable[ScenarioPiece]) -> Iterator[ScenarioPiece]:
        for piece in pieces:
            if self._is_over:
                raise BudgetSpent(1.0)
            if self._waiting > 0 and self._item_spent_s > ITEM_PART * self._budget_s:
                raise BudgetSpent(ITEM_PART)
            yield piece

    def _watch_budget(self) -> None:
        if self._is_over:
            self._cut_off(tuple(self._progress))

    def _play(self, piece: ScenarioPiece) -> tuple[PlayedPiece, int, float]:
        progress = self._progress[_key(piece)] = _core.Progress()
        if self._is_cancelled or self._is_over:
            progress.cancel()
        try:
            played = _play(piece, progress)
            return played, os.getpid(), played.cpu_s
        finally:
            del self._progress[_key(piece)]


_Key = tuple[int, int, int, int | None, float]


def _key(piece: ScenarioPiece) -> _Key:
    return (id(piece.scenario), piece.fillfactor, piece.seed, piece.later, piece.later_at_frac)


def _play_elsewhere(piece: ScenarioPiece) -> tuple[PlayedPiece, int, float]:
    """With the process that played it, and what it took of a processor there."""
    began_s = time.process_time()
    played = _play(piece, None)
    carried = replace(played, simulated=fit_to_travel(played.simulated))
    return carried, os.getpid(), time.process_time() - began_s


def _play(piece: ScenarioPiece, progress: _core.Progress | None) -> PlayedPiece:
    scenario = piece.scenario
    table = replace(scenario.table, fillfactor=piece.fillfactor)
    workload = scenario.profile.workload
    profile = replace(
        scenario.profile,
        tables=(table,),
        workload=replace(workload, run=replace(workload.run, seed=1 + piece.seed)),
    )
    profile_json = json.dumps(to_json(profile))
    check_memory([_core.needed_bytes(profile_json)], [profile], 1)  # others hold theirs by now
    found = _core.simulate(
        profile_json,
        piece.version,
        interleaving=piece.seed,
        pace=("even", scenario.per_s),
        windows=scenario.windows,
        fillfactors_at=(
            [] if piece.later is None else [(table.name, piece.later, piece.later_at_frac)]
        ),
        progress=progress,
    )
    cumulative = found.series["tables"][table.name]
    columns = {
        name: tuple(cumulative[name])
        if name in _SIZES or name == "pages_modified"
        else _steps(cumulative[name])
        for name in _COLUMNS
    }
    vacuum_pages = [0] * scenario.windows
    for kind, _, _, began_s, _, pages in found.happened:
        if kind == "autovacuum":
            place = int(scenario.windows * began_s / scenario.duration_s)
            vacuum_pages[min(place, scenario.windows - 1)] += pages
    return PlayedPiece(
        piece=piece,
        columns=columns,
        vacuum_pages=tuple(vacuum_pages),
        simulated=found,
        cpu_s=found.cpu_s,
    )


def _steps(sums: Sequence[int]) -> tuple[int, ...]:
    return tuple(after - before for before, after in zip((0, *sums), sums, strict=False))
