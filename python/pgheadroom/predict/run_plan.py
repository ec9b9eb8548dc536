"""
What the twin plays, decided once: cells, clock, samples and seeds become the runs of a plan.

Whoever plays a plan asks it for each cell's run with each seed, and whether the first run of a cell
says all.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Literal

from pgheadroom import _core
from pgheadroom.defaults import SEEDS_DEFAULT
from pgheadroom.errors import InputError, ParameterError
from pgheadroom.predict.cells import Cell
from pgheadroom.predict.clock import Clock, Pace, has_clockwork
from pgheadroom.predict.memory import check_memory
from pgheadroom.predict.sampling import PageSample
from pgheadroom.profile import MachineTimes, Profile, Snapshot, to_json
from pgheadroom.profile.settings import check_values
from pgheadroom.types import PgVersion, Span

# A server that is late at the end of a run at a rate has not begun the last transactions. Six runs
# on 18.4 and 16.14 beside other work were late by a few ms with one client and by up to 40 ms
# with four.
_LATE_MOST_S = 0.04
_LATE_FIRST = 0.2

Storage = Literal["local", "log-structured"]
"""
Where pages are kept: PostgreSQL's files; or a log that the storage itself turns into pages, so that
the server writes no page, has no checkpoint and logs no image that would repair one.
"""

Engine = Literal["heap", "clustered", "undo"]
"""
How rows are stored: PostgreSQL's heap; heap whose inserts go beside the previous key; updates in
place with undo pages. The latter two are models.
"""

TwinEvent = tuple[float, str, str | None]
"""When (0 to 1 of the run), what (`checkpoint_starting`, `autovacuum`, ...), which table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """
    What a server's run tells the twin, where a prediction alone cannot know it.

    `operations` are those of a run that is given by its duration, `duration_s` is how long it took.
    `events` are None when nobody looked, and empty when nothing happened. `snapshots` are those
    that were held, from and to which share of the run; None: as the profile wants them.
    `maintained` has from when to when each command of maintenance ran, where transactions are not
    counted; empty where they are. `holds` are
    further ones whose beginning and end are known to lie within a range each, as those of
    `vacuums` do, autovacuum's of a table, which are no `events` then. `standing` is what
    share of several clients' transactions stood still, for how many of another client's each of
    them did, and which part of these times, at least and at most, lay within statements;
    `course` the transactions of each client by stretch of the run; `machine` has the times of their
    sessions, and `processors` how many these and the clients may use, instead of the profile's;
    `at_work` is how many sessions are at work at a time, in the mean.
    """

    operations: int | None = None
    duration_s: float | None = None
    events: tuple[TwinEvent, ...] | None = None
    snapshots: tuple[tuple[float, float], ...] | None = None
    maintained: tuple[Span, ...] = ()
    holds: tuple[tuple[Span, Span], ...] = ()
    vacuums: tuple[tuple[Span, Span, str], ...] = ()
    standing: tuple[float, tuple[float, ...], Span | None] | None = None
    course: tuple[tuple[int, ...], ...] = ()
    machine: MachineTimes | None = None
    processors: int | None = None
    at_work: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """
    What is not as a server of ours has it, where something is.

    Attributes:
        storage: Where pages are kept.
        engine: How rows are stored once they are loaded.
        order: Whether the order of the tables is measured.
    """

    storage: Storage = "local"
    engine: Engine = "heap"
    order: bool = False


SERVER = Model()
"""Everything as servers have it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """
    What is asked of the twin's clock in a prediction.

    `tps` are transactions a second of all clients (None: assumed), `windows` those of a series.
    """

    tps: float | None = None
    windows: int = 0


@dataclass(frozen=True, slots=True)
class Piece:
    """One run of the twin."""

    cell: int
    profile_json: str
    version: str
    interleaving: int
    events: tuple[TwinEvent, ...] | None
    transactions: int | None
    model: Model = SERVER
    pace: Pace | None = None
    windows: int = 0
    later: tuple[tuple[str, int], ...] = ()
    rewrites: tuple[tuple[str, float, float | None], ...] = ()
    duration_s: float | None = None
    standing: tuple[float, tuple[float, ...], Span | None] | None = None
    course: tuple[tuple[int, ...], ...] = ()
    at_work: float | None = None
    is_maintained: bool = False
    is_maintenance_measured: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlan:
    """
    The runs of some cells.

    Attributes:
        cells: The profile at each fillfactor.
        version: The minor that the twin follows.
        given: What a server's run of each cell tells; None for a prediction.
        samples: What stands for each cell's profile; None: it is simulated whole.
        model: Another storage or engine.
        clock: By which the server does what it does by itself, where no run tells.
        windows: Of a series; none without a clock.
        seeds: Orders of the clients' transactions that are tried in a statistical cell, at least 2.
        drawn: pgbench's seeds that the runs of a cell take in turn, instead of the profile's: what
            is foreseen is a run whose seed is not known, and every cell is statistical.
    """

    cells: Sequence[Cell]
    version: PgVersion
    given: Sequence[Given] | None = None
    samples: Sequence[PageSample] | None = None
    model: Model = SERVER
    clock: Clock | None = None
    windows: int = 0
    seeds: int = SEEDS_DEFAULT
    drawn: Sequence[int] | None = None
    _texts: dict[int, str] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """
        Refuse what no run can have.

        Raises:
            ParameterError: Fewer than two seeds.
            InputError: A setting that this version does not take.
        """
        if self.seeds < 2:
            raise ParameterError(
                "seeds", f"{self.seeds}: expected at least 2, one run shows no spread"
            )
        for cell in self.cells:
            check_values(cell.profile, self.version)

    @property
    def is_drawn(self) -> bool:
        """Whether every cell is statistical, for its runs draw what the profile's would not."""
        return self.samples is not None or self.drawn is not None

    def piece(self, cell: int, seed: int) -> Piece:
        """
        The run of a cell with a seed.

        Raises:
            InputError: A run whose length nobody knows.
        """
        asked = self.cells[cell]
        profile = asked.profile
        if self.samples is not None:
            profile = self.samples[cell].with_seed(seed)
        elif self.drawn is not None:
            profile = _with_seed(profile, self.drawn[seed % len(self.drawn)])
        given = self.told(cell)
        profile = as_given(profile, given, seed)
        sampled = None if self.samples is None else self.samples[cell].twin_json(seed)
        clock = self._clock_of(asked)
        return Piece(
            cell,
            sampled or self._text_of(cell, profile),
            str(self.version),
            interleaving_of(seed, self.seeds),
            events_of(given, seed),
            transactions_of(profile, given, seed, self.seeds, self.clock),
            model=self.model,
            pace=None if clock is None else clock.pace,
            windows=0 if clock is None else self.windows,
            later=tuple(asked.later.items()),
            rewrites=asked.rewrites,
            duration_s=given.duration_s,
            standing=given.standing,
            course=given.course,
            at_work=given.at_work,
            is_maintained=bool(profile.workload.run.maintenance),
            is_maintenance_measured=bool(given.maintained),
        )

    def _text_of(self, cell: int, profile: Profile) -> str:
        """A run's profile as the twin reads it; a cell's own is written once for all seeds."""
        if profile is not self.cells[cell].profile:
            return json.dumps(to_json(profile))
        if cell not in self._texts:
            self._texts[cell] = json.dumps(to_json(profile))
        return self._texts[cell]

    def _clock_of(self, cell: Cell) -> Clock | None:
        """The clock, where something of a cell goes by it."""
        return self.clock if self.windows or has_clockwork(cell.profile) else None

    def told(self, cell: int) -> Given:
        """What a server's run of a cell tells."""
        return Given() if self.given is None else self.given[cell]

    def check_memory(self, first: Sequence[Piece]) -> None:
        """
        Refuse what does not fit into the machine's memory.

        Args:
            first: The first run of each cell.

        Raises:
            TwinError: It does not.
        """
        repeated = self.is_drawn or any(
            cell.profile.workload.run.clients > 1 for cell in self.cells
        )
        check_memory(
            [needed_bytes(piece) for piece in first],
            [item.profile for item in self.samples or self.cells],
            len(self.cells) * (self.seeds if repeated else 1),
            may_sample=self.given is None and all(map(self._can_be_sampled, self.cells)),
        )

    def _can_be_sampled(self, cell: Cell) -> bool:
        """Whether what is asked for is something that a sample can give."""
        maintenance = cell.profile.workload.run.maintenance
        return not (self.windows or self.model.order or cell.later or cell.rewrites or maintenance)

    def says_all(self, cell: int, first: _core.Simulated) -> bool:
        """Whether another run would give the same, but for the sizes of compressed images."""
        return not self.is_drawn and (
            _is_exact(self.cells[cell], first) or self.images_only(cell, first)
        )

    def is_repeated(self, cell: int) -> bool:
        """
        Whether one run of a cell surely does not say all, before any is played.

        Some that are not have to be repeated as well: what a run approximates it says itself.
        """
        asked = self.cells[cell].profile
        run = asked.workload.run
        return (
            self.is_drawn
            or run.clients > 1
            or run.duration_s is not None
            or bool(run.snapshots)
            or has_clockwork(asked)
        )

    def draws_only(self, cell: int, first: _core.Simulated) -> bool:
        """Whether all that is not exact is drawn: eager scans of VACUUM; ANALYZE's rows, OIDs."""
        if self.is_drawn or self.samples is not None:
            return False
        return first.only_draws and _is_alone(self.cells[cell], self.told(cell), first)

    def images_only(self, cell: int, first: _core.Simulated) -> bool:
        """Whether the sizes of compressed images are all that is not exact."""
        if self.is_drawn or self.model.storage != "local":
            return False
        return _images_only(self.cells[cell], self.told(cell), first)


_OF_FOUR = (0, 1, 8, 36)
"""
Interleavings whose four machines reach from a quiet one to a busy one.

The core spreads the places of consecutive numbers evenly, but the first four leave out the busiest
quarter (`run/machine.rs`).
"""


def interleaving_of(seed: int, seeds: int) -> int:
    """The number by which the core draws the machine of a run: by its place, from 0, among all."""
    return _OF_FOUR[seed] if seeds == len(_OF_FOUR) else seed


def needed_bytes(piece: Piece) -> int:
    """Memory of a run."""
    needed = _core.needed_bytes(piece.profile_json, piece.transactions)
    makes_copies = piece.rewrites or piece.is_maintained
    return 2 * needed if makes_copies else needed


def _with_seed(profile: Profile, seed: int) -> Profile:
    run = replace(profile.workload.run, seed=seed)
    return replace(profile, workload=replace(profile.workload, run=run))


def _is_exact(cell: Cell, run: _core.Simulated) -> bool:
    """Whether another run gives the same: nothing was drawn, and nothing waits for a clock."""
    return not run.approximations and cell.profile.workload.run.duration_s is None


def _images_only(cell: Cell, given: Given, run: _core.Simulated) -> bool:
    """Whether the sizes of compressed images are all that is not exact."""
    server = cell.profile.server
    compresses = server.full_page_writes and server.wal_compression != "off"
    return compresses and _is_alone(cell, given, run)


def _is_alone(cell: Cell, given: Given, run: _core.Simulated) -> bool:
    """Whether there is one approximation, and nothing that several clients or a clock decide."""
    asked = cell.profile.workload.run
    held = asked.snapshots or given.holds or given.maintained
    several = asked.clients > 1 or asked.duration_s is not None
    return not (several or held or given.events or given.vacuums) and len(run.approximations) == 1


def as_given(profile: Profile, given: Given, seed: int = 0) -> Profile:
    """
    The profile with machine, snapshots and maintenance as they were, where a server's run tells.

    Each seed draws moments within what is known of them, evenly; one that ends a snapshot and
    begins the next is one moment.
    """
    run = profile.workload.run
    if given.machine is not None:
        # Means are not all: where clients come to be in step, which hangs on how even their pauses
        # are, servers lie outside what one machine's runs differ by. So every other run draws it.
        known = given.machine if seed % 2 == 0 else MachineTimes()
        run = replace(run, machine=known)
    if given.processors is not None:
        machine = run.machine or MachineTimes()
        run = replace(run, machine=replace(machine, processors=given.processors))
    if run is not profile.workload.run:
        profile = replace(profile, workload=replace(profile.workload, run=run))
    if given.maintained:
        # In the order in which the session runs them, which those have that are due at one moment.
        commands = sorted(
            zip(run.maintenance, given.maintained, strict=True), key=lambda one: one[0].at_frac or 0
        )
        moments = _in_turn([span for _, span in commands], seed)
        placed = zip(commands, moments, strict=True)
        maintenance = tuple(replace(command, at_frac=at) for (command, _), at in placed)
        run = replace(run, maintenance=maintenance)
        profile = replace(profile, workload=replace(profile.workload, run=run))
    if given.snapshots is None and not given.holds:
        return profile
    held = run.snapshots if given.snapshots is None else _snapshots(given.snapshots)
    drawn = [(_drawn(began, seed), _drawn(ended, seed)) for began, ended in given.holds]
    run = replace(run, snapshots=(*held, *_snapshots(drawn)))
    return replace(profile, workload=replace(profile.workload, run=run))


def events_of(given: Given, seed: int = 0) -> tuple[TwinEvent, ...] | None:
    """
    What the server did by itself, in order; each seed draws when vacuums began and ended.

    Whether a transaction ends while an index is vacuumed decides whether its deleted pages can be
    used at once, and one that makes the table grow keeps it from being cut off. How much of its
    time a vacuum sleeps, and how much an index takes of it, no log tells: one seed has it evenly
    over its pages, the next at once.
    """
    if not given.vacuums:
        return given.events
    events = list(given.events or ())
    for began, ended, table in given.vacuums:
        at = _drawn(began, seed)
        until = at if seed % 2 else max(at, _drawn(ended, seed))
        events.append((at, "autovacuum_starting", table))
        events.append((until, "autovacuum", table))
    return in_order(events)


def in_order(events: Iterable[TwinEvent]) -> tuple[TwinEvent, ...]:
    """By their time; of one moment a vacuum ends last."""
    return tuple(sorted(events, key=lambda event: (event[0], event[1] == "autovacuum")))


def _in_turn(spans: Sequence[Span], seed: int) -> list[float]:
    """A moment of each; one session runs the commands, so they keep their order."""
    found = [0.0] * len(spans)
    last = 0.0
    for n in sorted(range(len(spans)), key=lambda n: spans[n]):
        last = found[n] = max(last, _drawn(spans[n], seed))
    return found


def _snapshots(held: Iterable[tuple[float, float]]) -> tuple[Snapshot, ...]:
    return tuple(
        Snapshot(start_frac=began, length_frac=ended - began)
        for began, ended in held
        if began < ended
    )


def _drawn(moment: Span, seed: int) -> float:
    low, high = moment
    drawn = random.Random(f"{seed} {low!r} {high!r}")  # noqa: S311 - a draw, not a secret
    return drawn.uniform(low, high)


@lru_cache(maxsize=1024)
def _arrived(seed: int, clients: int, rate_per_s: float, within_s: float) -> int:
    """Drawn one by one, and the same in every cell of a sweep."""
    return _core.arrivals_at_rate(seed, clients, rate_per_s, within_s)


def transactions_of(
    profile: Profile, given: Given, seed: int, seeds: int, clock: Clock | None = None
) -> int | None:
    """
    How many transactions a duration is; None where the profile says it.

    As many as a server's run had. Else at a rate as many as pgbench's throttle makes of the seed,
    but those that a server which is late at the end does not begin: the runs of a cell are late by
    evenly spread times. Else as many as the clock has.

    Raises:
        InputError: A duration without a rate, and neither a clock nor a server's run tells the
            number.
    """
    run = profile.workload.run
    if run.duration_s is None:
        return None
    if given.operations is not None:
        return given.operations
    if run.rate_per_s is not None:
        place = _LATE_FIRST if seed == 0 else (seed - 0.5) / (seeds - 1)
        begun_s = max(run.duration_s - place * _LATE_MOST_S, 0.0)
        return max(1, _arrived(run.seed, run.clients, run.rate_per_s, begun_s))
    if clock is None:
        raise InputError(
            "run.duration_s: how many transactions that is depends on the machine; a prediction "
            "needs run.operations, or run.rate_per_s beside it"
        )
    return max(run.clients, round(clock.per_s * run.duration_s))
