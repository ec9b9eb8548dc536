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
from dataclasses import dataclass, replace

from pgheadroom.advise.duration import ROWS_MIN, WorkRate, operations_max, windows_of
from pgheadroom.advise.filling import filled, filled_keys
from pgheadroom.advise.knobs import Knobs, scattered, turned
from pgheadroom.advise.row import rows_per_page
from pgheadroom.advise.surroundings import SNAPSHOTS_MAX, server_of, snapshots_of
from pgheadroom.advise.younger import of_each, younger
from pgheadroom.profile import Operation, Profile, Run, ServerSettings, Snapshot
from pgheadroom.profile.elements import Elements
from pgheadroom.profile.foreign_keys import without_foreign_keys
from pgheadroom.profile.tables import ColumnProfile, IndexProfile, TableProfile
from pgheadroom.profile.workload import Workload
from pgheadroom.units import parse_setting_kb

SAMPLE_PAGES = 500
"""Heap pages that are simulated of a table: shares are then good to a few tenths of a point."""
_CLIENTS_MAX = 8  # more pages that are filled at a time make no difference; arbitrary
_AGE_PAGES = 10  # of rows between an insert and its update stay so many; arbitrary
_THRESHOLDS = ("autovacuum_vacuum_threshold", "autovacuum_analyze_threshold")
_THRESHOLD = 50
_INSERT_THRESHOLD = 1000
_PENDING_LIST_KB = 4096  # PostgreSQL's default
_PENDING_LIST_KB_MIN = 64
_SNAPSHOTS_LONGER_MAX = 4 * SNAPSHOTS_MAX
_LONGER_MIN = 1.25  # times as long: less shows nothing


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


def make_scenario(
    profile: Profile,
    table: TableProfile,
    knobs: Knobs,
    *,
    sample_pages: int = SAMPLE_PAGES,
    operations_most: int | None = None,
) -> Scenario | None:
    """
    The run for a table; None where nothing writes to it.

    Args:
        profile: The observed profile.
        table: One of its tables.
        knobs: What the observation leaves open.
        sample_pages: Heap pages that are simulated, about; fewer where much happens to each.
        operations_most: Of the run; None: as many as a fillfactor's run needs.
    """
    assert profile.server.observed is not None, "an observed profile"
    operations = writes(profile, table.name)
    if knobs.scattered:
        operations = tuple(map(scattered, operations))
    if not operations or table.rows < 1:
        return None
    assumed: list[str] = []
    fills = filled(table, operations)
    if fills is not None:
        table, operations = fills.table, fills.operations
        assumed.append(fills.text)
    # What each of several clients takes from a queue is not its own row, which its deletes are.
    is_queue = any(operation.is_head for operation in operations)
    clients = 1 if fills is None or is_queue else _clients(table)
    if clients > 1:
        assumed.append(f"{clients} sessions insert, by the pages of the newest rows")
    table, said = filled_keys(table, operations)
    server, checkpoints = server_of(profile.server)
    assumed += (*said, checkpoints)
    work = WorkRate.of(operations, table.rows, float(profile.server.observed.interval_s))
    duration_s = work.duration_s(server)
    most = operations_most or operations_max(table, work, server)
    by_work = most / (duration_s * work.per_s) * table.rows
    wanted = max(ROWS_MIN, min(sample_pages * rows_per_page(table, 100), round(by_work)))
    rows = max(1, min(table.rows, wanted) // clients) * clients
    share = rows / table.rows
    per_s = work.per_s * share
    count = max(100, min(round(duration_s * per_s), most)) // clients * clients
    duration_s = count / per_s
    updates_per_row = count * work.updates_frac / rows
    windows, steady_from = windows_of(duration_s, server, updates_per_row)
    snapshots, held = snapshots_of(profile, knobs.held_s, duration_s)
    run = Run(
        operations=count,
        duration_s=None,
        rate_per_s=None,
        clients=clients,
        seed=1,
        snapshots=snapshots,
    )
    kept_rows = _AGE_PAGES * clients * rows_per_page(table, 100)
    changed = tuple(turned(operation, knobs) for operation in operations)
    played = of_each(younger(changed, rows, share, kept_rows=kept_rows), clients)
    workload = Workload(operations=played, builtin=None, run=run)
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
        assumed=(*assumed, *held),
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
    windows, steady_from = windows_of(duration_s, server, updates_per_row)
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


def _shrunk(table: TableProfile, rows: int, share: float, server: ServerSettings) -> TableProfile:
    table = without_foreign_keys(table, table.foreign_keys)
    columns = tuple(_shrunk_column(column, share) for column in table.columns)
    options = dict(table.reloptions)
    for name, default in (
        *((name, _THRESHOLD) for name in _THRESHOLDS),
        ("autovacuum_vacuum_insert_threshold", _INSERT_THRESHOLD),
    ):
        # Thresholds beside the scale factors are numbers of rows, which shrink as rows do.
        whole = float(options.get(name, server.settings.get(name, default)))
        if whole >= 0 and share < 1:
            options[name] = str(round(whole * share))
    return replace(
        table,
        rows=rows,
        columns=columns,
        indexes=tuple(_shrunk_gin(index, share, server) for index in table.indexes),
        reloptions=options,
        observed=None,
    )


def _shrunk_column(column: ColumnProfile, share: float) -> ColumnProfile:
    """As many rows of one value as in the whole, so that posting lists are as long."""
    if column.elements is not None:
        column = replace(column, elements=_fewer(column.elements, share))
    if column.values.ndistinct is None:
        return column
    ndistinct = max(1, round(column.values.ndistinct * share))
    return replace(column, values=replace(column.values, ndistinct=ndistinct))


def _shrunk_gin(index: IndexProfile, share: float, server: ServerSettings) -> IndexProfile:
    """
    A GIN of as much fewer keys, whose pending list is as much shorter.

    So a key has as many rows, and as many of them are added to it at a time.
    """
    if index.method != "gin" or share >= 1:
        return index
    limit_kb = index.gin_pending_list_limit
    if limit_kb is None:
        whole = server.settings.get("gin_pending_list_limit")
        limit_kb = _PENDING_LIST_KB if whole is None else parse_setting_kb(whole)
    stated = tuple(
        one if one.elements is None else replace(one, elements=_fewer(one.elements, share))
        for one in index.stated
    )
    return replace(
        index,
        stated=stated,
        gin_pending_list_limit=max(round(limit_kb * share), _PENDING_LIST_KB_MIN),
    )


def _fewer(elements: Elements, share: float) -> Elements:
    ndistinct = max(1, round(elements.ndistinct * share))
    alike = None if elements.alike is None else min(elements.alike, ndistinct)
    return replace(elements, ndistinct=ndistinct, alike=alike)
