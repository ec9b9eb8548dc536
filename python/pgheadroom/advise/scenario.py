"""
One observed table as a run of the twin: alone, shrunk to a sample, long enough to be steady.

Tables of a database share nothing that decides where row versions go but the cleanup horizon and
the clock of checkpoints, so each is played by itself, with both as they were observed. A page's
life depends on its own rows, so a share of the rows with the same share of the operations has the
same HOT share, the same part of its pages modified between two checkpoints, and WAL and size in
proportion.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated

from pgheadroom.advise.filling import filled, filled_keys
from pgheadroom.advise.row import rows_per_page
from pgheadroom.advise.surroundings import SNAPSHOTS_MAX, server_of, snapshots_of
from pgheadroom.advise.younger import of_each, younger
from pgheadroom.forms import between
from pgheadroom.profile import Change, Operation, Profile, Run, ServerSettings, Snapshot
from pgheadroom.profile.tables import TableProfile
from pgheadroom.profile.workload import Pick, Workload, by_transaction
from pgheadroom.units import PAGE_BYTES

SAMPLE_PAGES = 500
"""Heap pages that are simulated of a table: shares are then good to a few tenths of a point."""

_ROWS_MIN = 1000
UPDATES_PER_ROW = 4.0
"""How long a run is, where nothing asks for more: after the first round of updates a page that was
full has room from the second on."""

_OPERATIONS_MAX = 120_000  # half a second of the twin's time, where it does not have to search
_OPERATIONS_FEW = 40_000  # of a table with few rows, each of which is updated all the time
_NAPTIMES_FEW = 3
_NAPTIMES_MIN = 6
_CHECKPOINTS_MIN = 4
HORIZON_S = 30 * 86_400.0
"""What comes later than in a month is no reason for a change now."""

_GROWTH_MAX = 1.0  # rows inserted over rows at the start: then it is another table
_DELETED_MAX = 0.5  # rows deleted over rows at the start, where operations know no later rows
_CLIENTS_MAX = 8  # more pages that are filled at a time make no difference; arbitrary
_AGE_PAGES = 10  # of rows between an insert and its update stay so many; arbitrary
_TURNOVERS = 4.0  # how often rows are replaced in a run, where operations follow them
_THRESHOLDS = ("autovacuum_vacuum_threshold", "autovacuum_analyze_threshold")
_THRESHOLD = 50
_INSERT_THRESHOLD = 1000
_SNAPSHOTS_LONGER_MAX = 4 * SNAPSHOTS_MAX
_LONGER_MIN = 1.25  # times as long: less shows nothing
_CYCLES_SHOWN_MAX = 40  # with more, where in a cycle a window ends makes no difference
_WINDOWS, _WINDOWS_MAX = 16, 120
_WINDOW_UPDATES = 0.2  # updates a row in a window, no more where that is possible


@dataclass(frozen=True, slots=True, kw_only=True)
class Knobs:
    """
    Named physical inputs that an observation leaves open, and that a calibration may set.

    Attributes:
        changed_frac: By column: in which part of the updates that assign it its value changes.
        also_changes: A column and in which part of all updates its value changes, for updates that
            no known statement explains; None: none.
        grows_bytes: By column: by how many bytes its strings grow at most, from 1 on.
        pick: How updates pick rows; None: as observed.
        held_s: For how long a transaction holds the cleanup horizon, one after another; 0: each
            for its own time only.
        scattered: Whether the rows of one statement lie anywhere, each as if updated by itself;
            else they are neighbours.
    """

    changed_frac: Mapping[str, Annotated[float, between(0, 1)]] = field(default_factory=dict)
    also_changes: tuple[str, Annotated[float, between(0, 1)]] | None = None
    grows_bytes: Mapping[str, Annotated[int, between(1, PAGE_BYTES)]] = field(default_factory=dict)
    pick: Pick | None = None
    held_s: Annotated[float, between(0, HORIZON_S)] | None = None
    scattered: bool = False

    @property
    def columns(self) -> frozenset[str]:
        """Those that are named, of the profile."""
        also = () if self.also_changes is None else (self.also_changes[0],)
        return frozenset((*self.changed_frac, *self.grows_bytes, *also))


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """
    With what a calibration has come nearest to an observation: the scenario is made of it again.

    `off` is by how much the HOT share, or that of new pages, is missed with it; 0 where they agree.
    """

    knobs: Knobs
    off: Annotated[float, between(0, 1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """
    A run of the twin that stands for a table.

    Attributes:
        profile: Of this table alone, without what was observed.
        share: Its rows over those of the table.
        per_s: Transactions a second in the run.
        duration_s: Of the run, on the twin's clock.
        updates_per_row: In the whole run.
        longest_s: Beyond which the run says nothing: the table would be another one, or it is
            farther than anybody looks.
        sized_s: When sizes are taken, of a table that grows: longer runs have the same moment.
        windows: Parts of the run whose figures are kept.
        steady_from: The first of those that count as the steady state, about the later half.
        assumed: What is not as observed, in sentences.
    """

    profile: Profile
    share: float
    per_s: float
    duration_s: float
    updates_per_row: float
    windows: int
    steady_from: int
    assumed: tuple[str, ...]
    longest_s: float = math.inf
    sized_s: float | None = None

    @property
    def sized_at(self) -> int:
        """The window at whose end sizes are taken."""
        if self.sized_s is None:
            return self.windows
        return max(1, min(self.windows, round(self.sized_s / self.duration_s * self.windows)))

    @property
    def table(self) -> TableProfile:
        """The table."""
        return self.profile.tables[0]


def writes(profile: Profile, table: str) -> tuple[Operation, ...]:
    """Operations on a table that change it."""
    return tuple(
        operation
        for operation in profile.workload.operations
        if operation.table == table and operation.kind not in ("select", "lock")
    )


def follows_rows(operations: Sequence[Operation]) -> bool:
    """Whether all that updates and deletes rows of a table follows those that are there."""
    picked = [o for o in operations if o.kind in ("update", "delete")]
    return bool(picked) and all(o.is_living or o.is_head for o in picked)


def transactions_weight(operations: Sequence[Operation]) -> int:
    """Of all transactions; each has the weight of its first operation."""
    return sum(found[0].weight for found in by_transaction(operations))


def make_scenario(
    profile: Profile, table: TableProfile, knobs: Knobs, *, sample_pages: int = SAMPLE_PAGES
) -> Scenario | None:
    """
    The run for a table; None where nothing writes to it.

    Args:
        profile: The observed profile.
        table: One of its tables.
        knobs: What the observation leaves open.
        sample_pages: Heap pages that are simulated, about; fewer where much happens to each.
    """
    assert profile.server.observed is not None, "an observed profile"
    operations = writes(profile, table.name)
    if knobs.scattered:
        operations = tuple(map(_scattered, operations))
    if not operations or table.rows < 1:
        return None
    assumed: list[str] = []
    fills = filled(table, operations)
    if fills is not None:
        table, operations = fills.table, fills.operations
        assumed.append(fills.text)
    clients = 1 if fills is None else _clients(table)
    if clients > 1:
        assumed.append(f"{clients} sessions insert, by the pages of the newest rows")
    table, said = filled_keys(table, operations)
    assumed += said
    server = server_of(profile.server, assumed)
    work = _Work.of(operations, table.rows, float(profile.server.observed.interval_s))
    duration_s = work.duration_s(server)
    wanted = max(_ROWS_MIN, sample_pages * rows_per_page(table, 100))
    most = _operations_max(table, work, server)
    by_work = most / (duration_s * work.per_s) * table.rows
    rows = max(1, min(table.rows, wanted, max(_ROWS_MIN, round(by_work))))
    rows = max(1, rows // clients) * clients
    share = rows / table.rows
    per_s = work.per_s * share
    count = max(100, min(round(duration_s * per_s), most)) // clients * clients
    duration_s = count / per_s
    updates_per_row = count * work.updates_frac / rows
    windows, steady_from = _windows(duration_s, server, updates_per_row)
    run = Run(
        operations=count,
        duration_s=None,
        rate_per_s=None,
        clients=clients,
        seed=1,
        snapshots=snapshots_of(profile, knobs.held_s, duration_s, assumed),
    )
    workload = Workload(
        operations=of_each(
            younger(
                tuple(_turned(operation, knobs) for operation in operations),
                rows,
                share,
                kept_rows=_AGE_PAGES * clients * rows_per_page(table, 100),
            ),
            clients,
        ),
        builtin=None,
        run=run,
    )
    return Scenario(
        profile=Profile(
            server=server,
            tables=(_shrunk(table, rows, share, profile.server),),
            workload=workload,
        ),
        share=share,
        per_s=per_s,
        duration_s=duration_s,
        updates_per_row=updates_per_row,
        windows=windows,
        steady_from=steady_from,
        assumed=tuple(assumed),
        longest_s=work.longest_s(server),
        sized_s=duration_s if work.growth_frac else None,
    )


def _clients(table: TableProfile) -> int:
    """
    Sessions that insert, where it counts: rows are updated while their page is being filled.

    Each has a page of its own (`RelationGetTargetBlock`), which so many times more rows of all pass
    by before it is full.
    """
    updates = None if table.observed is None else table.observed.updates
    if updates is None or not updates.fills or updates.inserting is None:
        return 1
    clients = min(updates.inserting, _CLIENTS_MAX, table.rows)
    youngest = min(fill.rows[0] for fill in updates.fills)
    return clients if youngest < clients * rows_per_page(table, 100) * _AGE_PAGES else 1


def longer(scenario: Scenario) -> Scenario | None:
    """
    The same run for twice as long; None where it cannot go on.

    It begins as the shorter one does, and ends in the middle between two checkpoints.
    """
    server, run = scenario.profile.server, scenario.profile.workload.run
    distance = server.checkpoint_interval_s
    assert distance is not None, "set for every scenario"
    assert run.operations is not None, "set for every scenario"
    wanted = min(2 * scenario.duration_s, scenario.longest_s)
    cycles = round(wanted / distance)
    duration_s = distance * (cycles + 0.5) if cycles else wanted
    ratio = duration_s / scenario.duration_s
    if ratio < _LONGER_MIN or len(run.snapshots) * ratio > _SNAPSHOTS_LONGER_MAX:
        return None
    updates_per_row = scenario.updates_per_row * ratio
    windows, steady_from = _windows(duration_s, server, updates_per_row)
    run = replace(
        run, operations=round(run.operations * ratio), snapshots=tiled(scenario, duration_s)
    )
    workload = replace(scenario.profile.workload, run=run)
    return replace(
        scenario,
        profile=replace(scenario.profile, workload=workload),
        duration_s=duration_s,
        updates_per_row=updates_per_row,
        windows=windows,
        steady_from=steady_from,
    )


def tiled(scenario: Scenario, duration_s: float) -> tuple[Snapshot, ...]:
    """Snapshots as often and as long as the scenario has them, over a run of another length."""
    ratio = scenario.duration_s / duration_s
    return tuple(
        Snapshot(
            start_frac=start,
            length_frac=max(0.0, min(one.length_frac * ratio, 1 - start) - 1e-9),
        )
        for turn in range(math.ceil(1 / ratio))
        for one in scenario.profile.workload.run.snapshots
        if (start := (one.start_frac + turn) * ratio) < 1
    )


def _operations_max(table: TableProfile, work: _Work, server: ServerSettings) -> int:
    """
    Operations of a run at most.

    A table with few rows cannot be shrunk, and is steady soon: some naptimes of autovacuum do.
    """
    if table.rows > _ROWS_MIN:
        return _OPERATIONS_MAX
    naptimes = _NAPTIMES_FEW * (server.autovacuum_naptime_s or 60.0) * work.per_s
    return round(min(max(naptimes, _OPERATIONS_FEW), _OPERATIONS_MAX))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Work:
    """
    What is done to a table: transactions a second; by transaction updates, more rows, deletes.

    `is_followed`: who updates and deletes follows the rows that are there.
    """

    rows: int
    per_s: float
    updates_frac: float
    growth_frac: float
    deletes_frac: float
    is_followed: bool

    @classmethod
    def of(cls, operations: Sequence[Operation], rows: int, interval_s: float) -> _Work:
        weight = transactions_weight(operations)

        def touched(kind: str) -> float:
            weights = {id(o): t[0].weight for t in by_transaction(operations) for o in t}
            found = (weights[id(o)] * o.rows_mean for o in operations if o.kind == kind)
            return sum(found) / weight

        return cls(
            rows=rows,
            per_s=weight / interval_s,
            updates_frac=touched("update"),
            growth_frac=max(0.0, touched("insert") - touched("delete")),
            deletes_frac=touched("delete"),
            is_followed=follows_rows(operations),
        )

    def duration_s(self, server: ServerSettings) -> float:
        """Of a run: enough for a steady state, and no more than is worth waiting for."""
        wanted = UPDATES_PER_ROW / self.updates_frac if self.updates_frac else 1.0
        found = wanted * self.rows / self.per_s
        if self.is_followed and self.deletes_frac:
            found = max(found, _TURNOVERS * self.rows / (self.deletes_frac * self.per_s))
        at_least = 0.0
        if server.autovacuum:
            at_least = _NAPTIMES_MIN * (server.autovacuum_naptime_s or 60.0)
        distance = server.checkpoint_interval_s
        assert distance is not None, "set for every scenario"
        at_least = max(at_least, _CHECKPOINTS_MIN * distance)
        found = min(max(found, at_least), max(HORIZON_S, at_least), self._another_table_s())
        # Checkpoints begin at multiples of their distance; the run ends between two of them.
        return distance * (max(1, round(found / distance)) + 0.5)

    def longest_s(self, server: ServerSettings) -> float:
        """Of any run."""
        return max(self.duration_s(server), min(HORIZON_S, self._another_table_s()))

    def _another_table_s(self) -> float:
        """Until so many rows have come or gone that it is another table."""
        found = math.inf
        if self.growth_frac:
            found = _GROWTH_MAX * self.rows / self.growth_frac / self.per_s
        if self.deletes_frac and not self.is_followed:
            found = min(found, _DELETED_MAX * self.rows / self.deletes_frac / self.per_s)
        return found


def _windows(duration_s: float, server: ServerSettings, updates_per_row: float) -> tuple[int, int]:
    """
    Windows of a run, and the first that counts as steady.

    Half a checkpoint's distance each, begun in the middle between two checkpoints: then chance does
    not decide whether the images of a checkpoint fall into what is looked at. Where rows are
    updated often meanwhile, windows are shorter, so that the table's age can be found.
    """
    wanted = min(_WINDOWS_MAX, updates_per_row / _WINDOW_UPDATES)
    distance = server.checkpoint_interval_s
    assert distance is not None, "set for every scenario"
    cycles = int(duration_s / distance)
    if not 1 <= cycles <= _CYCLES_SHOWN_MAX:
        windows = max(_WINDOWS, math.ceil(wanted))
        return windows, windows // 2
    parts = max(1, math.ceil(wanted / (2 * cycles + 1)))
    return parts * (2 * cycles + 1), parts * (2 * (cycles // 2) + 1)


def _shrunk(table: TableProfile, rows: int, share: float, server: ServerSettings) -> TableProfile:
    columns = tuple(
        column
        if column.values.ndistinct is None
        # As many rows of one value as in the whole, so that posting lists are as long.
        else replace(
            column,
            values=replace(column.values, ndistinct=max(1, round(column.values.ndistinct * share))),
        )
        for column in table.columns
    )
    options = dict(table.reloptions)
    for name, default in (
        *((name, _THRESHOLD) for name in _THRESHOLDS),
        ("autovacuum_vacuum_insert_threshold", _INSERT_THRESHOLD),
    ):
        # Thresholds beside the scale factors are numbers of rows, which shrink as rows do.
        whole = float(options.get(name, server.settings.get(name, default)))
        if whole >= 0 and share < 1:
            options[name] = str(round(whole * share))
    return replace(table, rows=rows, columns=columns, reloptions=options, observed=None)


def _scattered(operation: Operation) -> Operation:
    if operation.kind != "update" or operation.rows_mean <= 1:
        return operation
    weight = max(1, round(operation.weight * operation.rows_mean))
    return replace(operation, weight=weight, rows_per_statement=1)


def _turned(operation: Operation, knobs: Knobs) -> Operation:
    """The operation as the knobs have it."""
    if operation.kind != "update":
        return operation
    sets = tuple(_change(change, knobs) for change in operation.sets)
    if knobs.also_changes is not None:
        column, frac = knobs.also_changes
        if all(change.column != column for change in sets):
            sets += (Change(column=column, changed_frac=frac),)
    pick = operation.pick if knobs.pick is None else knobs.pick
    return replace(operation, sets=sets, pick=pick)


def _change(change: Change, knobs: Knobs) -> Change:
    frac = knobs.changed_frac.get(change.column)
    if frac is not None and change.changed_frac > 0:
        change = replace(change, changed_frac=frac)
    grows = knobs.grows_bytes.get(change.column)
    if grows:
        change = replace(change, grows_min_bytes=1, grows_max_bytes=grows)
    return change
