"""
A row of an observed table: its length, its columns by the catalog, the WAL of an update of it.

Record sizes are those of physics: docs/method/causes.md, "Causes". Full-page images are left out:
they depend on checkpoints, not on why an update was HOT or not.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pgheadroom import _core
from pgheadroom.errors import InputError
from pgheadroom.layout import profile_columns
from pgheadroom.observe.naming import profile_name
from pgheadroom.profile import TableProfile
from pgheadroom.profile.observed_server import ObservedServer
from pgheadroom.units import PAGE_BYTES

_TUPLE_BYTES_MAX = 8160  # MaxHeapTupleSize, src/include/access/htup_details.h
_HEADER_BYTES = 23  # SizeofHeapTupleHeader, src/include/access/htup_details.h
_RECORD_BYTES = 24  # SizeOfXLogRecord, src/include/access/xlogrecord.h
_BLOCK_BYTES = 20  # a block reference that names its relation
_NEXT_BLOCK_BYTES = 8  # one of the same relation
_UPDATE_BYTES = _RECORD_BYTES + _BLOCK_BYTES + 16 + 5  # xl_heap_update, xl_heap_header
_LOCK_BYTES = _RECORD_BYTES + _BLOCK_BYTES + 10
_LEAF_BYTES = _RECORD_BYTES + _BLOCK_BYTES + 4  # without the entry
_HASH_BYTES = _LEAF_BYTES + _NEXT_BLOCK_BYTES + 16  # with the metapage, which counts, and the code
_PRUNE_BYTES = 57  # of one version; 56 before 16 and from 17 on
_BOTH_ENDS_BYTES = 4  # lengths of what the old and the new row share at both ends


@dataclass(frozen=True, slots=True, kw_only=True)
class Bytes:
    """At least, likely, at most."""

    low: float
    mid: float
    high: float

    def __add__(self, other: Bytes) -> Bytes:
        return Bytes(
            low=self.low + other.low, mid=self.mid + other.mid, high=self.high + other.high
        )


def tuple_bytes_of(table: TableProfile) -> float:
    """Mean length of a row: of a sample, else of the layout."""
    if table.observed is not None and table.observed.sample is not None:
        return float(table.observed.sample.tuple_bytes.mean)
    return float(_core.RowLayout(profile_columns(table)).tuple_bytes)


def labels_of(table: TableProfile) -> dict[str, str]:
    """Names of columns in the profile by their names in the catalog."""
    made: dict[str, str] = {}
    left = [column.name for column in table.columns]
    for found in () if table.observed is None else table.observed.columns:
        if not left:
            break
        made[found.name] = left.pop(0)
        # A key that is longer than an integer is two columns of the profile.
        if left and "which is a part of the key" in (found.substituted or ""):
            left.pop(0)
    return made


def index_label(table: TableProfile, name: str) -> str | None:
    """
    An index's name in the profile, by its name in the catalog; None where the profile has none.

    The profile writes the schema before names outside of `public`, and changes what it cannot hold.
    """
    schema = None if table.observed is None else table.observed.schema
    full = name if schema == "public" else f"{schema}.{name}"
    for index in table.indexes:
        if index.name in (full, profile_name(full, set())):
            return index.name
    return None


def same_page_bytes(table: TableProfile, columns: Iterable[str], *, wal_level: str) -> Bytes:
    """
    WAL of the heap for an update that stays on its page.

    The record leaves out what the old and the new row share before the first and after the last
    byte that changed: at least nothing is logged, likely the columns that are assigned and what
    lies between them, at most the whole row (and so with `wal_level = logical`).
    """
    length = tuple_bytes_of(table)
    row = _core.RowLayout(profile_columns(table))
    fixed = _UPDATE_BYTES + row.hoff_bytes - _HEADER_BYTES
    whole = max(length - row.hoff_bytes, 0.0)
    if wal_level == "logical":
        return Bytes(low=fixed + whole, mid=fixed + whole, high=fixed + whole)
    labels = labels_of(table)
    wanted = {labels[name] for name in columns if name in labels}
    spans = [
        (laid.offset_bytes, laid.offset_bytes + laid.header_bytes + laid.payload_bytes)
        for laid in row.columns
        if laid.column.name in wanted
    ]
    changed = whole / 2
    if spans:
        changed = float(max(end for _, end in spans) - min(start for start, _ in spans))
    least = fixed + _BOTH_ENDS_BYTES
    most = fixed + _BOTH_ENDS_BYTES + whole
    return Bytes(low=least, mid=min(max(least, least + changed), most), high=most)


def new_page_bytes(table: TableProfile) -> Bytes:
    """WAL of the heap for an update that goes to another page: a lock, and the whole row."""
    length = max(tuple_bytes_of(table), _HEADER_BYTES)
    exact = _LOCK_BYTES + _UPDATE_BYTES + _NEXT_BLOCK_BYTES + length - _HEADER_BYTES
    return Bytes(low=exact, mid=exact, high=exact)


def index_bytes(table: TableProfile) -> Bytes:
    """
    WAL of the indexes for one update that is not HOT: an entry in each of them, changed or not.

    A partial index takes one only for rows in it, and none where it never had one. Splits and
    deduplication come on top, and of hash indexes overflow pages.
    """
    columns = {column.name: column for column in profile_columns(table)}
    empty = _never_entered(table)
    total = Bytes(low=0, mid=0, high=0)
    for index in table.indexes:
        if index.name in empty:
            continue
        if index.method == "hash":
            size = float(_HASH_BYTES)
        elif index.method == "btree":
            listed = [columns[name] for name in (*index.columns, *index.include)]
            entry = 16
            if listed and not index.expressions:
                try:
                    entry = _core.index_tuple_bytes(listed)
                except InputError:
                    entry = 16  # too wide as a whole: its entries are compressed values
            size = float(_LEAF_BYTES + entry)
        else:
            continue
        partial = index.where is not None
        total += Bytes(low=0 if partial else size, mid=size / 2 if partial else size, high=size)
    return total


def _never_entered(table: TableProfile) -> frozenset[str]:
    """
    Partial indexes of one page: a B-tree without a root never had an entry.

    Source: `_bt_getroot`, src/backend/access/nbtree/nbtpage.c (REL_18_STABLE): the first insert
    makes the root, and VACUUM leaves it.
    """
    if table.observed is None:
        return frozenset()
    labels = (
        index_label(table, found.name)
        for found in table.observed.indexes
        if found.method == "btree"
        and found.predicate is not None
        and found.main_bytes == PAGE_BYTES
    )
    return frozenset(label for label in labels if label is not None)


def prune_bytes() -> Bytes:
    """
    WAL of the pruning that one update makes necessary.

    Likely one record: a page that an update has left with less room than pruning begins at
    (`heap_page_prune_opt`: fillfactor's reserve, or a tenth) is pruned at its next visit.
    """
    return Bytes(low=0, mid=_PRUNE_BYTES, high=_PRUNE_BYTES)


def wal_level_of(server: ObservedServer | None) -> str:
    """The setting that was observed; `replica` where nobody did."""
    settings = None if server is None else server.settings
    found = (settings or {}).get("wal_level")
    return "replica" if found is None else str(found.setting)


def rows_per_page(table: TableProfile, fillfactor: int) -> int:
    """Rows that loading puts on a page at a fillfactor, at least one."""
    length = min(round(tuple_bytes_of(table)), _TUPLE_BYTES_MAX)
    return max(1, _core.rows_per_page(length, fillfactor))
