"""
What the twin predicts of `update-cost`: pages, WAL records and WAL bytes of the Update node.

The statement updates every thousandth row, so that no two rows share a heap page or an index leaf;
the twin plays as many updates by key, a thousand rows apart, which touch the same pages in the same
order. What differs is added here:

- A profile's update adds 1, the statement what it drew. On the same page a record holds only what
  changed, so its length follows from the value; the values are those of `random` after `setseed`.
- EXPLAIN counts pages that became dirty: those of the visibility map too, which no record names
  before 17.11 and 18.6, and those of the free space map, which none names without checksums.

Without images a table of 100,000 rows stands for larger ones: each updated row costs the same, and
the pages that new versions fill are counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from pgheadroom import _core
from pgheadroom.lab import driver, predicted
from pgheadroom.lab.design import Request, Trial, TrialCell
from pgheadroom.lab.record import TrialSample
from pgheadroom.outcome import Outcome, Value, shifted
from pgheadroom.profile.change import Change
from pgheadroom.profile.model import (
    CHECKSUMS_FROM_MAJOR,
    SCHEMA_VERSION,
    ProfileFile,
    ServerSettings,
)
from pgheadroom.profile.tables import ColumnProfile, IndexProfile, TableProfile, Values
from pgheadroom.profile.workload import Operation, Pick, Run
from pgheadroom.servers import is_connection
from pgheadroom.types import PgVersion

PREDICTED = ("pages_dirtied", "wal_records", "wal_bytes")
"""Measures that have a predicted counterpart."""

TABLE = "t"
ROWS_PER_SCALE = 100_000
ROWS_PER_UPDATED_ROW = 1000
CHANGE_SPAN = 5000

_VM_PAGE_HEAP_PAGES = (8192 - 24) * 4
"""Heap pages of a page of the visibility map (HEAPBLOCKS_PER_PAGE, visibilitymap.c)."""

_FSM_SLOTS = 4069
"""Heap pages of a lowest page of the free space map (SlotsPerFSMPage, fsm_internals.h)."""

_VM_IS_LOGGED = {17: 11, 18: 6, 19: 0}
"""Minors from which on the record of an update names the page of the visibility map."""

_MASK = 2**64 - 1


@dataclass(frozen=True, slots=True)
class _Counts:
    """What one UPDATE costs, before what it drew is known."""

    pages: int
    records: int
    wal_bytes: Value
    updates: int
    depends_on_values: bool


def fill(
    request: Request,
    version: PgVersion,
    samples: Sequence[TrialSample],
    cells: list[dict[str, Any]],
) -> list[str]:
    """Add the predictions to the cells; returns why cells have none, if some have none."""
    reasons: list[str] = []
    for cell in cells:
        levels: TrialCell = {name: cell[name] for name in request.levels}
        why_not = _why_not(request, version, levels)
        counts = None if why_not else _counts(request, version, levels)
        if counts is None:
            reasons.append(why_not or "the twin cannot play this table")
            for name in PREDICTED:
                predicted.put(cell, name, None)
            continue
        predicted.put(cell, "pages_dirtied", counts.pages)
        predicted.put(cell, "wal_records", counts.records)
        more = [
            _more_bytes(request, version, levels, sample, counts.updates)
            if counts.depends_on_values
            else 0
            for sample in samples
            if sample.arm == "measured" and sample.cell == levels
        ]
        values = [shifted(counts.wal_bytes, each) for each in more]
        predicted.put(cell, "wal_bytes", predicted.middle(values))
    return list(dict.fromkeys(reasons))


def _why_not(request: Request, version: PgVersion, cell: TrialCell) -> str | None:
    if is_connection(request.server):
        return "a borrowed server has settings of its own"
    column, change = cell.get("indexed_column", "none"), request.options["change"]
    if column == "abalance" and (change == "random" or int(change) <= 0):
        return "an index on abalance gets its new values in random order"
    if _indexes_bid(cell) and request.scale > 1:
        return "the index on bid has several values from scale 2 on, which no profile describes"
    large = cell.get("full_page_writes", "off") == "on" or column != "none"
    rows = request.scale * ROWS_PER_SCALE if large else ROWS_PER_SCALE
    return predicted.why_not(version, rows=rows)


def _indexes_bid(cell: TrialCell) -> bool:
    """Whether an index on bid gets entries: its column changes, or rows leave their page."""
    moves = _core.spare_versions(row_bytes(cell), int(cell["fillfactor"])) == 0
    return cell.get("indexed_column") == "bid" and (bool(cell["update_bid"]) or moves)


def row_bytes(cell: TrialCell) -> int:
    """Heap tuple length of a row (int, int, char(filler_length), int), header included."""
    filler = ("bpchar", int(cell["filler_length"]))
    return _core.heap_tuple_bytes([("int4", 4), ("int4", 4), filler, ("int4", 4)])


def _counts(request: Request, version: PgVersion, cell: TrialCell) -> _Counts | None:
    """The twin's counts, of the table itself or of one that stands for it."""
    rows = request.scale * ROWS_PER_SCALE
    images = cell.get("full_page_writes", "off") == "on"
    whole = images or cell.get("indexed_column", "none") != "none"
    played = rows if whole else ROWS_PER_SCALE
    profile = profile_of(version, cell, played)
    runs = predicted.runs_of(profile, version, [1])
    if not runs:
        return None
    part = runs[0].outcome.by_table[TABLE]
    moved, updates = _whole(part.n_tup_newpage_upd), rows // ROWS_PER_UPDATED_ROW
    records, wal_bytes = _whole(part.wal_records), part.wal_bytes
    named = part
    if version.major < CHECKSUMS_FROM_MAJOR:
        # Only with checksums do records name the pages of the free space map.
        checked = replace(profile, server=replace(profile.server, data_checksums=True))
        (run,) = predicted.runs_of(checked, version, [1])
        named = run.outcome.by_table[TABLE]
    pages = _whole(named.pages_modified)
    if version.minor >= _VM_IS_LOGGED.get(version.major, version.minor + 1):
        pages -= _map_pages(cell, played)
    if played < rows:
        larger = _enlarged(cell, part, named, pages, rows)
        if larger is None:
            return None
        pages, records, wal_bytes = larger
    pages += _map_pages(cell, rows)
    return _Counts(pages, records, wal_bytes, updates, depends_on_values=not (moved or images))


def _map_pages(cell: TrialCell, rows: int) -> int:
    """Pages of the visibility map, all of which lose bits."""
    heap = _core.heap_pages(rows, row_bytes(cell), int(cell["fillfactor"]))
    return -(-heap // _VM_PAGE_HEAP_PAGES)


def _enlarged(
    cell: TrialCell, part: Outcome, named: Outcome, pages: int, rows: int
) -> tuple[int, int, int] | None:
    """
    Pages, records and bytes of a larger table, out of those of the one that was played.

    Each updated row costs the same; once come the pages that new versions fill, the pages of the
    free space map, and the records of their hints. None where rows do not cost the same.

    Args:
        cell: The cell.
        part: What was played.
        named: The same with checksums, so that records name the pages of the free space map.
        pages: Its pages, without those of the visibility map.
        rows: Of the larger table.
    """
    played, updates = ROWS_PER_SCALE // ROWS_PER_UPDATED_ROW, rows // ROWS_PER_UPDATED_ROW
    records, wal_bytes = _whole(part.wal_records), _whole(part.wal_bytes)
    hints, once = records % played, _whole(named.wal_records) % played
    moves = bool(part.n_tup_newpage_upd)
    filled = _filled_pages(cell, ROWS_PER_SCALE, played) if moves else 0
    there = _filled_pages(cell, rows, updates) if moves else 0
    of_rows, of_hints = pages - once - filled, _HINT_BYTES * hints
    first = _core.heap_pages(rows, row_bytes(cell), int(cell["fillfactor"])) - 1
    one_map_page = first // _FSM_SLOTS == (first + there) // _FSM_SLOTS
    if of_rows % played or (wal_bytes - of_hints) % played or not one_map_page:
        return None
    factor = updates // played
    return (
        of_rows * factor + once + there,
        (records - hints) * factor + hints,
        (wal_bytes - of_hints) * factor + of_hints,
    )


_HINT_BYTES = 44
"""An XLOG/FPI_FOR_HINT record without its image."""


def _filled_pages(cell: TrialCell, rows: int, versions: int) -> int:
    """Pages that take new versions: the last one while it has room, then further ones."""
    each_bytes, fillfactor = row_bytes(cell), int(cell["fillfactor"])
    per_page = _core.rows_per_page(each_bytes, fillfactor)
    pages = _core.heap_pages(rows, each_bytes, fillfactor)
    room = per_page - (rows - (pages - 1) * per_page)
    return (1 if room else 0) + -(-max(versions - room, 0) // per_page)


def _whole(value: Value) -> int:
    assert isinstance(value, float | int), f"{value} is not exact"
    return int(value)


def profile_of(version: PgVersion, cell: TrialCell, rows: int) -> ProfileFile:
    """The statement as single updates by key."""
    indexes = [IndexProfile(name="pkey", columns=("aid",), unique=True)]
    for n in range(1, int(cell.get("indexes", 0)) + 1):
        indexes.append(IndexProfile(name=f"aid_{n}", columns=("aid",)))
    column = str(cell.get("indexed_column", "none"))
    if column != "none":
        indexes.append(IndexProfile(name="changed", columns=(column,)))
    # What no server has is refused with the profile.
    compression: Any = str(cell.get("wal_compression", "off"))
    server = ServerSettings(
        version=str(version),
        full_page_writes=cell.get("full_page_writes", "off") == "on",
        wal_compression=compression,
    )
    filler = f"bpchar({int(cell['filler_length'])})"
    table = TableProfile(
        name=TABLE,
        rows=rows,
        fillfactor=int(cell["fillfactor"]),
        columns=(
            ColumnProfile(name="aid", type="int4", values=Values(kind="serial")),
            ColumnProfile(name="bid", type="int4"),
            ColumnProfile(name="filler", type=filler),
            ColumnProfile(name="abalance", type="int4"),
        ),
        indexes=tuple(indexes),
    )
    changed = ("bid", "abalance") if cell["update_bid"] else ("abalance",)
    update = Operation(
        table=TABLE,
        kind="update",
        sets=tuple(Change(column=name) for name in changed),
        pick=Pick(distribution="stride", n=ROWS_PER_UPDATED_ROW),
    )
    return ProfileFile(
        schema_version=SCHEMA_VERSION,
        server=server,
        tables=(table,),
        operations=(update,),
        run=Run(operations=rows // ROWS_PER_UPDATED_ROW),
    )


def setseed_of(request: Request, trial: Trial | TrialSample) -> float:
    """The argument of `setseed` before a trial's UPDATE, or that of one which has run."""
    return driver.seed_of(request, trial) % 1_000_003 / 1_000_003


def _more_bytes(
    request: Request, version: PgVersion, cell: TrialCell, sample: TrialSample, updates: int
) -> int:
    """By how many bytes the drawn values lengthen the records of updates that add 1."""
    data_bytes = row_bytes(cell) - _HEADER_BYTES
    bid = int(cell["update_bid"])
    change = request.options["change"]
    if change == "random":
        seed = setseed_of(request, sample)
        values: Sequence[int] = drawn(seed, updates, from_ranges=version.major >= 17)
    else:
        values = [int(change)] * updates
    one = _logged_bytes(data_bytes, bid, 1)
    return sum(
        count * (_logged_bytes(data_bytes, bid, value) - one)
        for value, count in Counter(values).items()
    )


_HEADER_BYTES = 24
"""A heap tuple's header without NULLs, aligned."""

_SHARED_BYTES_MIN = 3
"""Shared beginnings and ends that are shorter are logged (log_heap_update, heapam.c)."""


def _logged_bytes(data_bytes: int, bid: int, abalance: int) -> int:
    """Bytes of a row's data that an update on its page logs, with the lengths of what is shared."""
    words = (4, bid), (data_bytes - 4, abalance)
    # The version before has zeros in both columns.
    changed = [
        place + n
        for place, value in words
        for n, byte in enumerate(value.to_bytes(4, "little", signed=True))
        if byte
    ]
    start, end = data_bytes, 0
    if changed:
        start, end = min(changed), data_bytes - 1 - max(changed)
    shared = [length for length in (start, end) if length >= _SHARED_BYTES_MIN]
    return data_bytes - sum(shared) + 2 * len(shared)


@lru_cache(maxsize=64)
def drawn(seed: float, count: int, *, from_ranges: bool) -> Sequence[int]:
    """
    What `random(-5000, 5000)` gives after `setseed`, row after row, from 15 on.

    Args:
        seed: The argument of `setseed`, -1 to 1.
        count: How many.
        from_ranges: As `random(min, max)` of 17 and later; else from `random()`.

    Source: xoroshiro128**, seeded by splitmix64, as in src/common/pg_prng.c.
    """
    numbers = _xoroshiro(int(((1 << 52) - 1) * seed) & _MASK)
    width = 2 * CHANGE_SPAN + 1
    if not from_ranges:
        return [int((next(numbers) >> 12) * 2.0**-52 * width) - CHANGE_SPAN for _ in range(count)]
    shift = 64 - (width - 1).bit_length()
    found: list[int] = []
    while len(found) < count:
        number = next(numbers) >> shift
        if number < width:  # others are drawn again, so that all are equally likely
            found.append(number - CHANGE_SPAN)
    return found


def _xoroshiro(seed: int) -> Iterator[int]:
    """Numbers of 64 bits."""
    state = []
    for n in (1, 2):
        mixed = (seed + n * 0x9E3779B97F4A7C15) & _MASK
        mixed = ((mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9) & _MASK
        mixed = ((mixed ^ mixed >> 27) * 0x94D049BB133111EB) & _MASK
        state.append(mixed ^ mixed >> 31)
    first, second = state
    while True:
        yield (_turned(first * 5 & _MASK, 7) * 9) & _MASK
        second ^= first
        first = _turned(first, 24) ^ second ^ (second << 16 & _MASK)
        second = _turned(second, 37)


def _turned(number: int, bits: int) -> int:
    return (number << bits | number >> 64 - bits) & _MASK
