"""
What `observe` wrote beside a profile's tables, typed and checked where it is read.

`[table.observed]`, as `[server.observed]` (`observed_server.py`), stands in a file that anybody may
have edited or cut. What advice, check, plan and verification read of them is declared, so that they
may rely on it; what they do not read may be as it is, and is written again as it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, Literal

from pgheadroom.forms import Expected, Kept, between, in_file, kept
from pgheadroom.types import NUMBER_MAX, AnyCount, ByteCount, ObservedSample

_OID_MAX = 2**32 - 1
SECONDS_MAX = 1e9  # thirty years
_PAGES_MAX = 2**32  # MaxBlockNumber and one

Whole = Annotated[int, between(0, 2**63 - 1)]
Oid = Annotated[int, between(0, _OID_MAX)]
Pages = Annotated[int, between(0, _PAGES_MAX)]
Frac = Annotated[float, between(0, 1)]
Seconds = Annotated[float, between(0, SECONDS_MAX)]
Counts = Mapping[str, AnyCount | None]
Texts = tuple[str, ...]
ReplicaIdentity = Literal["default", "nothing", "full", "index"]
UNLESS_NONE = in_file(unless_none=True)
_WITH_STATISTICS = in_file(only=lambda it: it.avg_width is not None)
SettingValue = Annotated[
    str | bool | int | float, Expected("a setting: a text or a number", whole=True)
]


@kept
class TableCounters(Kept):
    """Of pg_stat_user_tables and pg_statio_user_tables, those that are read here."""

    n_tup_ins: Whole | None = None
    n_tup_upd: Whole | None = None
    n_tup_del: Whole | None = None
    n_tup_hot_upd: Whole | None = None
    n_tup_newpage_upd: Whole | None = None
    seq_scan: Whole | None = None
    heap_blks_read: Whole | None = None
    heap_blks_hit: Whole | None = None
    vacuum_count: Whole | None = None
    autovacuum_count: Whole | None = None


@kept
class TableRates(Kept):
    """The same, a second."""

    n_tup_upd: AnyCount | None = None


@kept
class IndexCounters(Kept):
    """Of pg_stat_user_indexes."""

    idx_scan: Whole | None = None
    idx_tup_read: Whole | None = None
    idx_tup_fetch: Whole | None = None


@kept
class ObservedIndex(Kept):
    """
    An index; HOT ends with it or not, and by which columns.

    `is_nullable`: it is unique, and a column of its key may be NULL. `parent`: the partitioned
    table's index that it is a part of; it cannot be dropped without it.
    """

    schema: str
    name: str
    oid: Oid | None = None
    method: str
    is_unique: bool
    is_primary: bool
    is_summarizing: bool
    columns: Texts
    reloptions: Mapping[str, SettingValue] | None = None
    ends_hot: bool
    ends_hot_by_columns: Texts
    include: Texts | None = field(default=None, metadata=UNLESS_NONE)
    is_exclusion: bool | None = field(default=None, metadata=UNLESS_NONE)
    is_clustered: bool | None = field(default=None, metadata=UNLESS_NONE)
    is_replica_identity: bool | None = field(default=None, metadata=UNLESS_NONE)
    is_deferrable: bool | None = field(default=None, metadata=UNLESS_NONE)
    is_nullable: bool | None = field(default=None, metadata=UNLESS_NONE)
    parent: str | None = field(default=None, metadata=UNLESS_NONE)
    is_valid: bool | None = field(default=None, metadata=UNLESS_NONE)
    is_ready: bool | None = field(default=None, metadata=UNLESS_NONE)
    is_live: bool | None = field(default=None, metadata=UNLESS_NONE)
    expressions: Annotated[str | Texts, Expected("a list of texts, or a text")] | None = field(
        default=None, metadata=UNLESS_NONE
    )
    predicate: str | None = field(default=None, metadata=UNLESS_NONE)
    main_bytes: Whole | None = None
    counters: IndexCounters | None = None
    totals: IndexCounters | None = None


@kept
class ObservedColumn(Kept):
    """A column as pg_stats and the sample have it."""

    name: str
    type: str
    storage: str | None = None
    compression: str | None = field(default=None, metadata=UNLESS_NONE)
    declared: str | None = None
    typlen: Annotated[int, between(-2, 2**15 - 1)] | None = None
    typalign: str | None = None
    is_user_type: bool | None = None
    null_frac: Frac | None = None
    null_frac_evidence: str | None = None
    avg_width: AnyCount | None = field(default=None, metadata=UNLESS_NONE)
    n_distinct: Annotated[float, between(-1, NUMBER_MAX)] | None = field(
        default=None, metadata=_WITH_STATISTICS
    )
    correlation: float | None = field(default=None, metadata=_WITH_STATISTICS)
    stored_bytes: ByteCount | None = field(default=None, metadata=UNLESS_NONE)
    stored_bytes_deviation: ByteCount | None = field(default=None, metadata=UNLESS_NONE)
    stored_bytes_evidence: str | None = field(default=None, metadata=UNLESS_NONE)
    substituted: str | None = field(default=None, metadata=UNLESS_NONE)
    key_order: str | None = field(default=None, metadata=UNLESS_NONE)
    elements: str | None = field(default=None, metadata=UNLESS_NONE)
    generated: str | None = field(default=None, metadata=UNLESS_NONE)
    generated_from: Texts | None = field(default=None, metadata=UNLESS_NONE)


@kept
class UpdateClass(Kept):
    """Updates that assign the same columns; `unchanged`: those whose values stay as they were."""

    kind: str
    columns: Texts
    attnums: tuple[Annotated[int, between(0, 1600)], ...] | None = None
    calls: Whole
    rows: Whole | None
    wal_bytes: AnyCount | None = None
    wal_fpi: AnyCount | None = None
    frac: Frac | None
    rows_per_statement: AnyCount | None = field(default=None, metadata=UNLESS_NONE)
    same: Texts | None = field(default=None, metadata=UNLESS_NONE)
    appended: Texts | None = field(default=None, metadata=UNLESS_NONE)
    by_trigger: Texts | None = field(default=None, metadata=UNLESS_NONE)
    unchanged: Texts | None = field(default=None, metadata=UNLESS_NONE)


@kept
class ObservedTrigger(Kept):
    """A trigger that runs before an update writes its row; `assigns` None: not known what."""

    name: str
    function: str | None = None
    of_columns: Texts | None = None
    assigns: Texts | None


@kept
class ObservedPick(Kept):
    """By what it is known which rows are updated."""

    evidence: str
    why: str | None = None


@kept
class ObservedAges(Kept):
    """
    At what age rows are updated: `rows` inserted meanwhile, as quantiles 5, 25, 50, 75, 95 %.

    Of `updates` that a sample shows; `gone_frac` of all were soon followed by the row's deletion.
    """

    evidence: str
    why: str | None = field(default=None, metadata=UNLESS_NONE)
    attnum: Annotated[int, between(1, 1600)] | None = field(default=None, metadata=UNLESS_NONE)
    gone_frac: Frac | None = field(default=None, metadata=UNLESS_NONE)
    updates: Whole | None = field(default=None, metadata=UNLESS_NONE)
    rows: tuple[Whole, ...] | None = field(default=None, metadata=UNLESS_NONE)
    beside: AnyCount | None = field(default=None, metadata=UNLESS_NONE)


@kept
class ObservedFill(Kept):
    """
    Columns that one update of a row gives a value.

    `rows` inserted since the row was, as quantiles 5, 50, 95 %; `ever_frac` of the rows have it at
    some age; `aligned_bytes`: how long they are before and after, to MAXALIGN, None: not known.
    """

    columns: Texts
    rows: tuple[Whole, Whole, Whole]
    ever_frac: Frac
    aligned_bytes: tuple[ByteCount, ByteCount] | None = field(default=None, metadata=UNLESS_NONE)


@kept
class ObservedValues(Kept):
    """Rows read before and after the interval, those written in it, and columns that differ."""

    rows: Whole
    written: Whole
    changed: Mapping[str, Whole]


@kept
class ObservedUpdates(Kept):
    """
    A table's updates by class, and the part of them that no class explains.

    `unattributed_hint`: where these may be, if there is much of it and something speaks for it.
    `inserting`: sessions that insert, by the pages on which the newest rows are.
    """

    source: str | None = None
    classes: tuple[UpdateClass, ...]
    unattributed_frac: Frac | None = None
    unattributed_resolution: Frac | None = None
    pick: ObservedPick
    read_twice: ObservedValues | None = field(default=None, metadata=UNLESS_NONE)
    unattributed_why: str | None = field(default=None, metadata=UNLESS_NONE)
    unattributed_hint: str | None = field(default=None, metadata=UNLESS_NONE)
    ages: ObservedAges | None = field(default=None, metadata=UNLESS_NONE)
    fills: tuple[ObservedFill, ...] | None = field(default=None, metadata=UNLESS_NONE)
    inserting: Annotated[int, between(1, 2**15 - 1)] | None = field(
        default=None, metadata=in_file(only=lambda it: it.fills is not None)
    )
    assumed: Texts | None = None


@kept
class FreeSpace(Kept):
    """Pages by the class of their free bytes: [class, pages]."""

    source: str | None = None
    evidence: str | None = None
    pages: Pages
    table_pages: Pages | None = None
    class_bytes: Annotated[int, between(1, 8192)]
    classes: tuple[tuple[Annotated[int, between(0, 8192)], Pages], ...]


@kept
class ObservedToast(Kept):
    """A table's TOAST relation."""

    main_bytes: Whole | None = None
    counters: Counts | None = None


@kept
class WalCount(Kept):
    """Records and bytes of a cause."""

    records: Whole
    bytes: Whole


@kept
class TableWal(Kept):
    """
    What the log has of a table, its indexes and its TOAST table (`observe --wal`).

    `index_bytes` and `toast_bytes` are parts of `bytes`; `by_cause` is over all of it, images under
    their reasons.
    """

    records: Whole
    bytes: Whole
    fpi: Whole
    fpi_bytes: Whole
    index_bytes: Whole
    toast_bytes: Whole
    by_cause: Mapping[str, WalCount]


@kept
class ObservedTable(Kept):
    """`[table.observed]`."""

    schema: str
    name: str
    oid: Oid
    relfilenode: Oid
    relpages: Whole | None = None
    relallvisible: Whole | None = None
    reloptions: Mapping[str, str] | None = None
    main_bytes: Whole | None
    persistence: str | None = None
    replica_identity: ReplicaIdentity | None = field(default=None, metadata=UNLESS_NONE)
    pages: Pages | None = None
    rows_evidence: str | None = None
    pages_evidence: str | None = field(default=None, metadata=UNLESS_NONE)
    counters: TableCounters
    totals: TableCounters | None = None
    state: Mapping[str, float | None] | None = None
    per_s: TableRates
    columns: tuple[ObservedColumn, ...]
    dropped_columns: Whole = 0
    added_columns: tuple[str, ...] = ()
    indexes: tuple[ObservedIndex, ...]
    differs: Mapping[str, str] | None = None
    toast: ObservedToast | None = None
    sample: ObservedSample | None = None
    free_space: tuple[FreeSpace, ...] | None = None
    updates: ObservedUpdates
    triggers: tuple[ObservedTrigger, ...] | None = None
    parent: str | None = field(default=None, metadata=UNLESS_NONE)
    wal: TableWal | None = field(default=None, metadata=UNLESS_NONE)
