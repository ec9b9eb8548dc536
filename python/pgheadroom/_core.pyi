"""
The compiled core: PostgreSQL's on-disk format as arithmetic and as bytes, and the twin.

Sizes are bytes. A row or an index entry is given as columns in their physical order, each a
`Column` or a pair of a type's name and the payload of its value in bytes (None for NULL). All
functions raise `pgheadroom.errors.InputError` for what PostgreSQL could not store, and for types
that are not built in. Bytes that are no page of the kind asked for raise
`pgheadroom.errors.SourceError` with the page, the byte, what was found and what was expected.
Numbers hold for PostgreSQL 15 to 18, and for 19 as its release candidate 1 is.
"""

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Literal, final

__all__ = [
    "BtreeItem",
    "BtreePage",
    "Column",
    "ColumnLayout",
    "HeapLinePointer",
    "LogFound",
    "LogScan",
    "PageHeader",
    "Progress",
    "RowLayout",
    "Simulated",
    "TableOutcome",
    "WalCourses",
    "WalPacked",
    "WalSums",
    "__version__",
    "arrivals_at_rate",
    "btree_build_pages",
    "cluster_decay",
    "decode_btree_page",
    "decode_fsm_page",
    "decode_heap_page",
    "decode_visibility_page",
    "drawn_keys",
    "expression_reads",
    "grammar_major",
    "hash_buckets",
    "heap_pages",
    "heap_tuple_bytes",
    "index_tuple_bytes",
    "knows_gin_keys",
    "loading_waves",
    "log_prefix_has",
    "log_time_ms",
    "may_wake_autovacuum",
    "needed_bytes",
    "normalized_statements",
    "not_evaluated",
    "not_immutable",
    "places_digest",
    "redirect_rounds",
    "relation_places",
    "rows_per_page",
    "setting_becomes",
    "setting_expected",
    "setting_names",
    "simulate",
    "simulate_tprocc",
    "spare_versions",
    "split_statements",
    "statement_facts",
    "statement_heads",
    "statement_reads",
    "statement_writes",
    "trigger_assigns",
    "type_names",
    "unused_max",
    "wal_courses",
    "wal_kinds",
    "wal_packed",
    "wal_pages",
    "wal_sums",
]

__version__: str

@final
class LogFound:
    """
    What a `LogScan` has found; numbers are of entries that hold an executed statement.

    `elsewhere` are of other databases, `outside` before or after the interval, `untimed` selected
    although their time is not known, `not_kept` too long, or one too many of different texts, and
    `cut` selected without the text's end.
    """

    @property
    def counts(self) -> list[tuple[bytes, int]]:
        """Each statement without its literals with its number, by text."""

    @property
    def executed(self) -> int:
        """All of them, selected or not."""

    @property
    def selected(self) -> int: ...
    @property
    def cut(self) -> int: ...
    @property
    def not_kept(self) -> int: ...
    @property
    def elsewhere(self) -> int: ...
    @property
    def outside(self) -> int: ...
    @property
    def untimed(self) -> int: ...
    @property
    def unprefixed(self) -> int:
        """Lines that seem to hold a statement and do not begin with the prefix."""

    @property
    def unreadable(self) -> int:
        """Rows or lines that are not of the format."""

@final
class LogScan:
    """
    A scan of a server log; its files are fed one after the other, in pieces of any size.

    Args:
        form: `csvlog`, `jsonlog` or `stderr`.
        prefix: `log_line_prefix`, for `stderr`.
        database: Count only statements of this database, where the log names it.
        interval_ms: And of this interval in milliseconds since 1970, where the log has times.
        zones: Seconds east of UTC by the abbreviation of the log's zone; UTC, GMT and numeric
            abbreviations are known.
        zone_offset_s: The same for all others; None: their lines have no time.

    Raises:
        InputError: Another form.
    """

    def __new__(
        cls,
        form: str,
        *,
        prefix: bytes | None = None,
        database: bytes | None = None,
        interval_ms: tuple[int, int] | None = None,
        zones: Sequence[tuple[bytes, int]] | None = None,
        zone_offset_s: int | None = None,
    ) -> LogScan: ...
    def feed(self, chunk: bytes) -> None:
        """Read on; entries may lie across pieces."""

    def end_file(self) -> None:
        """The file ends here; what is left is its last entry."""

    def found(self) -> LogFound:
        """What was found so far."""

@final
class Column:
    """
    A column and the value it holds in the row at hand; frozen, comparable, hashable.

    Args:
        type_name: A built-in type as PostgreSQL spells it: `int4`, `bigint`, `char(84)`,
            `timestamp(3) with time zone`, `text[]`. A B-tree keeps a `name` as `cstring`.
        payload_bytes: Bytes of the value without its length header. May be left out when the type
            decides it: fixed lengths, `bit(n)`, and `char(n)` (one byte a character is assumed).
        is_null: Whether the value is NULL.
        name: The column's name, for display.

    Raises:
        InputError: Unknown type, invalid modifier, or a width that the type cannot have.
    """

    def __new__(
        cls,
        type_name: str,
        *,
        payload_bytes: int | None = None,
        is_null: bool = False,
        name: str = "",
    ) -> Column: ...
    @property
    def name(self) -> str: ...
    @property
    def type_name(self) -> str:
        """The type's canonical name: `pg_type.typname`, its modifier, `[]` for arrays."""

    @property
    def typlen(self) -> int:
        """Bytes of every value, -1 for variable length, -2 for `cstring`."""

    @property
    def typalign(self) -> str:
        """`c`, `s`, `i` or `d`: alignment 1, 2, 4 or 8."""

    @property
    def typstorage(self) -> str:
        """`p`, `e`, `m` or `x`: plain, external, main, extended."""

    @property
    def is_null(self) -> bool: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...

@final
class ColumnLayout:
    """Where one column's value lies in the tuple; comes out of `RowLayout.columns`."""

    @property
    def column(self) -> Column: ...
    @property
    def offset_bytes(self) -> int:
        """Distance of the value, its length header included, from the start of the tuple."""

    @property
    def padding_bytes(self) -> int:
        """Bytes lost before the value, to reach its alignment."""

    @property
    def header_bytes(self) -> int:
        """Length header: 0 (fixed length), 1 (up to 126 bytes) or 4."""

    @property
    def payload_bytes(self) -> int:
        """The value itself; 0 for NULL."""

    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...

@final
class RowLayout:
    """
    A heap tuple laid out column by column; frozen, comparable, hashable.

    Raises:
        InputError: More than 1600 columns, a column that is invalid, or a row above 1 GB. A row
            longer than a page (8160 bytes) is laid out; the page functions refuse it.
    """

    def __new__(cls, columns: Sequence[Column | tuple[str, int | None]]) -> RowLayout: ...
    @property
    def columns(self) -> list[ColumnLayout]: ...
    @property
    def tuple_bytes(self) -> int:
        """`lp_len`: header, values and the padding between them, not rounded."""

    @property
    def hoff_bytes(self) -> int:
        """`t_hoff`: where the values start."""

    @property
    def null_bitmap_bytes(self) -> int: ...
    @property
    def inner_padding_bytes(self) -> int:
        """Bytes lost between the values."""

    @property
    def tail_padding_bytes(self) -> int:
        """Bytes lost after the last value, to the next multiple of 8."""

    @property
    def page_bytes(self) -> int:
        """What the row costs on a page: the length rounded to 8, and 4 for the line pointer."""

    @property
    def needs_toast(self) -> bool:
        """Whether PostgreSQL would compress values or move them out of line (above 2032 bytes)."""

    def best_order(self) -> list[int]:
        """
        Positions (from 0) of the columns in the order that loses least padding.

        Optimal for all usual rows; the row never gets longer than it is. Among equally short
        orders: strict alignments first, fixed lengths before variable ones, else as they stood.
        """

    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...

def heap_tuple_bytes(columns: Sequence[Column | tuple[str, int | None]]) -> int:
    """Length of a heap tuple (`lp_len`, not rounded) that holds these values."""

def rows_per_page(tuple_bytes: int, fillfactor: int) -> int:
    """Rows of equal length that a page holds after loading with INSERT."""

def log_prefix_has(prefix: bytes) -> tuple[bool, bool]:
    """What lines of a `log_line_prefix` say: whether their time, whether their database."""

def log_time_ms(
    text: bytes,
    *,
    zones: Sequence[tuple[bytes, int]] | None = None,
    zone_offset_s: int | None = None,
) -> int | None:
    """The time at a text's start, as logs write it, in milliseconds since 1970; None without."""

def heap_pages(rows: int, tuple_bytes: int, fillfactor: int) -> int:
    """Pages of a table after loading rows of equal length with INSERT, from one session."""

def spare_versions(tuple_bytes: int, fillfactor: int) -> int:
    """
    Further versions of a row that fit the room left on a freshly loaded, full page.

    An update stays on its page while the new version fits, whatever the fillfactor; so this many
    updates the page takes, pruning aside, before a row has to leave it.
    """

def index_tuple_bytes(columns: Sequence[Column | tuple[str, int | None]]) -> int:
    """
    Size of a B-tree's leaf tuple that holds these values; its line pointer takes 4 more.

    A `name` is kept as a `cstring` of its own length and has to be given as one.
    """

def hash_buckets(rows: int, fillfactor: int = 75) -> int:
    """Buckets that CREATE INDEX makes in a hash index for so many rows."""

def btree_build_pages(
    rows: int,
    index_tuple_bytes: int,
    fillfactor: int = 90,
    *,
    pivot_tuple_bytes: int | None = None,
) -> int:
    """
    Pages of a B-tree, metapage included, that CREATE INDEX builds on distinct keys.

    Args:
        rows: Entries.
        index_tuple_bytes: Size of a leaf tuple, a multiple of 8 (see `index_tuple_bytes`).
        fillfactor: The index's option, 10 to 100.
        pivot_tuple_bytes: Size of an entry of an inner page; as a leaf tuple without the columns
            that are not needed to tell neighbours apart. Default: as wide as a leaf tuple.
    """

def setting_names(*, storage_parameters: bool = False) -> list[str]:
    """Every setting, or every storage parameter of tables, of the versions that are known."""

def setting_becomes(
    name: str, value: str, *, storage_parameter: bool = False
) -> tuple[Literal["modelled", "no effect on pages", "refused", "unknown"], str]:
    """What becomes of a setting or storage parameter in a profile, and why if it is refused."""

def may_wake_autovacuum(
    settings: dict[str, str], transactions: int | None, clients: int, last_vacuum: int | None, /
) -> bool:
    """
    Whether a run with these settings may wake autovacuum's launcher while it is off.

    It does by the age of its tables; without a number of transactions where that is not known. The
    last VACUUM that is not at the end comes after so many of them.
    """

def setting_expected(
    name: str, value: str, version: str, /, *, storage_parameter: bool = False
) -> str | None:
    """
    What a server of the version takes instead of this value.

    None where it takes it, or does not have the name.

    Raises:
        InputError: A version that is not known.
    """

def type_names() -> list[str]:
    """Names of the column types that are known, without modifiers."""

@final
class Progress:
    """
    How far a simulation has come; may be read and cancelled from any thread.

    One serves one simulation: a cancelled one stays cancelled.
    """

    def __new__(cls) -> Progress: ...
    @property
    def done(self) -> int:
        """Rows loaded so far, then transactions ended, together."""

    @property
    def total(self) -> int:
        """What `done` reaches at the end; 0 until the simulation has begun."""

    def cancel(self) -> None:
        """Ask the simulation to stop: it soon raises `TwinError`."""

@final
class TableOutcome:
    """
    What a run did to one table, under the keys of a proof; frozen, comparable, hashable.

    Counters are those of pg_stat_all_tables over the run, pages those at its end, WAL the records
    that reference a page of the table, its indexes or its TOAST relations, in any fork.
    """

    @property
    def name(self) -> str: ...
    @property
    def n_tup_ins(self) -> int: ...
    @property
    def n_tup_upd(self) -> int: ...
    @property
    def n_tup_del(self) -> int: ...
    @property
    def n_tup_hot_upd(self) -> int: ...
    @property
    def n_tup_newpage_upd(self) -> int:
        """Updates whose new version went to another page, on 15 too, which does not show them."""

    @property
    def heap_pages(self) -> int:
        """Pages of the table's main fork."""

    @property
    def index_pages(self) -> int:
        """Pages of the main forks of all its B-trees, metapages included."""

    @property
    def wal_records(self) -> int: ...
    @property
    def wal_bytes(self) -> int:
        """Length of the records, full-page images included."""

    @property
    def wal_fpi(self) -> int:
        """Full-page images among them."""

    @property
    def wal_fpi_bytes(self) -> int: ...
    @property
    def doubtful_header_bytes(self) -> int:
        """Headers of images at the border of what is stored compressed."""

    @property
    def doubtful_image_bytes(self) -> int:
        """What compression would save of these images, or saves of them."""

    @property
    def pages_modified(self) -> int:
        """Distinct pages, of any fork, that the records reference."""

    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...

@final
class Simulated:
    """What a run does as the twin predicts it; frozen; comes out of `simulate`."""

    @property
    def server(self) -> str:
        """The minor version that was followed."""

    @property
    def cpu_s(self) -> float:
        """Seconds of a processor that the run took; where nobody counts these, that passed."""

    @property
    def transactions(self) -> int:
        """Transactions that ended, rolled back ones too."""

    @property
    def operations(self) -> int:
        """Statements of the profile's operations."""

    @property
    def turns(self) -> list[tuple[int, int]]:
        """
        Of each of a profile's operations: its turns, and how many of them found no row.

        Empty for pgbench's own scripts.
        """

    @property
    def failed_transactions(self) -> int:
        """Transactions of several clients that failed to serialize, or in a deadlock."""

    @property
    def worked(self) -> float:
        """Of several clients: means of statements' and COMMITs' times, in those of an UPDATE."""

    @property
    def pauses(self) -> float:
        """How many pauses several clients had within their transactions."""

    @property
    def tables(self) -> list[TableOutcome]:
        """In the profile's order; pgbench's: accounts, branches, tellers, history."""

    @property
    def transaction_records(self) -> int:
        """Records that end transactions; they belong to no table and have no images."""

    @property
    def transaction_bytes(self) -> int: ...
    @property
    def by_record(self) -> dict[str, tuple[int, int, int]]:
        """
        Records by type under pg_waldump's names, such as `Heap/HOT_UPDATE`.

        Each with their number, their bytes (images included), and the bytes of their images.
        """

    @property
    def is_exact(self) -> bool:
        """Whether a server gives these very numbers; otherwise they are one sample of many."""

    @property
    def approximations(self) -> list[str]:
        """What was not played as a server would, in sentences; empty when exact."""

    @property
    def only_draws(self) -> bool:
        """Whether all that was not played so is drawn, by the twin as by a server."""

    @property
    def samples_drawn(self) -> int:
        """ANALYZEs that read values out of line of rows that are drawn."""

    @property
    def pointers_in_doubt(self) -> int:
        """Values out of line whose pointers may share other bytes with those they replaced."""

    @property
    def duration_s(self) -> float | None:
        """Seconds of the run on its clock; None without one."""

    @property
    def happened(
        self,
    ) -> list[
        tuple[
            Literal["autovacuum", "autoanalyze", "checkpoint"],
            str | None,
            bool,
            float,
            float | None,
            int,
        ]
    ]:
        """
        What the server did by its clock, by the time when it began.

        Kind, table, whether its TOAST table is meant, from and to which second (None: after the
        run), and pages: looked at, or for a checkpoint to be written.
        """

    @property
    def rewrites(self) -> list[dict[str, Any]]:
        """
        Tables that were rewritten in the middle of the run, in the order of the end.

        `table`, `is_online`, `transactions` (after how many it began and ended), `heap_pages` and
        `index_pages` (before and after), `versions` that were copied, `recently_dead` among them,
        `wal_records` and `wal_bytes` of the table's pages.
        """

    @property
    def series(self) -> dict[str, Any]:
        """
        The windows as columns.

        `t_s` and `transactions` at the end of each, `transaction_records` and
        `transaction_bytes`, and under `tables` each table's, under the names of `TableOutcome`:
        sums since the start, sizes, `n_dead_tup` as it is then, and for `pages_modified` the
        window's own number.
        """

    @property
    def model(self) -> str | None:
        """What of it is a model, in a sentence, if the engine is no server's."""

    @property
    def order(self) -> dict[str, tuple[tuple[float, float | None], tuple[float, float | None]]]:
        """
        Where `order` asked for it: each table's order before the run and after it.

        Of each the distinct heap pages of a range of 1,000 keys, on average, and the correlation
        of key and place; tables without an integer key or without rows are left out.
        """

    @property
    def page_life_json(self) -> str | None:
        """
        What happened to the page that `watch` named, as JSON; None without one.

        An object of `block`, `events`, `first_count`, `left_out` and `prune_below_bytes`; read by
        `pgheadroom.page_life.read_life`, where each field is documented.
        """

def drawn_keys(
    profile_json: str, server_version: str, transactions: int
) -> list[list[tuple[int, int]]]:
    """
    The first and last key of each statement that a profile's clients draw, by transaction.

    Args:
        profile_json: As in `simulate`.
        server_version: As in `simulate`.
        transactions: Of each client; the clients take turns.

    Raises:
        InputError: The text is not the JSON of a profile.
        TwinError: The twin cannot play it.
    """

def arrivals_at_rate(seed: int, clients: int, rate_per_s: float, duration_s: float) -> int:
    """
    How many transactions pgbench begins at a rate (`--rate`) within a duration.

    Args:
        seed: Of `--random-seed`.
        clients: Its clients, in one thread.
        rate_per_s: Above 0, of all of them.
        duration_s: From its first look at the time on.

    Source: `getPoissonRand`, src/bin/pgbench/pgbench.c (REL_18_STABLE).
    """

def redirect_rounds(
    of_load: tuple[int, int, int], rows: int, redirects: int, unused: int = 0
) -> list[int]:
    """
    By row of a page: the round of HOT updates that puts it behind a redirect, from 1; 0 none.

    Tuples are taken to be as long as so many on a page let them be, and each round makes half of
    the versions for which there is room beside, since rows may have several lengths.

    Args:
        of_load: Rows that a load puts on a page, the fillfactor in percent, the table's columns.
        rows: On the page.
        redirects: Of them, at most `rows`.
        unused: Line pointers that are to be unused in the end.

    Source: `PageGetHeapFreeSpace`, src/backend/storage/page/bufpage.c (REL_18_STABLE).
    """

def loading_waves(
    of_load: tuple[int, int, int], rows: int, redirects: int, unused: int
) -> list[list[tuple[int, int]]]:
    """
    What is loaded on a page, at each position of two waves, between which narrow rows go.

    Args:
        of_load: As in `redirect_rounds`.
        rows: On the page.
        redirects: Of them, behind a redirect.
        unused: Line pointers that are to be unused in the end.

    Returns:
        Of each wave, of which the second may be empty: what it is (0 a filler, 1 a row, 2 a narrow
        row, of NULLs), and the row's number on the page, from 1, or that of the row before it.
    """

def unused_max(of_load: tuple[int, int, int], rows: int, redirects: int) -> int:
    """The most unused line pointers that a page may have; the arguments as in `loading_waves`."""

def needed_bytes(profile_json: str, transactions: int | None = None) -> int:
    """
    Memory that a run of a profile takes, in bytes: an upper figure from its shape, at once.

    Args:
        profile_json: As in `simulate`.
        transactions: As in `simulate`.

    Raises:
        InputError: The text is not the JSON of a profile.
    """

def simulate(
    profile_json: str,
    server_version: str,
    *,
    interleaving: int = 0,
    events: Sequence[tuple[float, str, str | None]] | None = None,
    transactions: int | None = None,
    pace: tuple[str, float] | None = None,
    windows: int = 0,
    fillfactors_later: Sequence[tuple[str, int]] | None = None,
    fillfactors_at: Sequence[tuple[str, int, float]] | None = None,
    rewrites: Sequence[tuple[str, float, float | None]] | None = None,
    watch: tuple[str, int] | None = None,
    storage: str = "local",
    engine: str = "heap",
    order: bool = False,
    duration_s: float | None = None,
    standing: tuple[float, Sequence[float], tuple[float, float] | None] | None = None,
    course: Sequence[Sequence[int]] | None = None,
    at_work: float | None = None,
    is_maintenance_measured: bool = False,
    progress: Progress | None = None,
) -> Simulated:
    """
    Play a profile in the twin: load its tables, run its operations, sum up what that did.

    Without the GIL; equal arguments give equal results. KeyboardInterrupt ends it (main thread).

    Args:
        profile_json: The profile as `pgheadroom.profile.to_json` saves it, as JSON text.
        server_version: The minor version to follow: `18.4`.
        interleaving: Seed of the order in which several clients' transactions run.
        events: What the server did by itself: at which fraction of the run, kind (`EventKind` of
            the twin), table. With autovacuum or checkpoints it needs them, or a pace.
        transactions: How many a run did that is given by its duration.
        pace: `("even", N)`: N transactions a second; `("arrivals", S)`: at random within S
            seconds. With it and without events, autovacuum and checkpoints go by this clock.
        windows: Windows of the series, which need a pace; 0: none.
        fillfactors_later: In percent, of tables once loaded: pages stay as they are.
        fillfactors_at: The same in the middle of the run: which, percent, at which fraction of it.
        rewrites: Tables rewritten beside clients: which, from, until; without an end, VACUUM FULL.
        watch: A page whose life is wanted: its table's name and its number, from 0.
        storage: `local`, or `log-structured`: no checkpoints and no images that repair pages.
        engine: How rows are stored once they are loaded: `heap`, `clustered` or `undo`.
        order: Whether the order of the tables is measured, before the run and after it.
        duration_s: How long the run takes, where somebody has measured it.
        standing: What share of clients' transactions stood still, and for how many of another's.
        course: Transactions of each client by stretch of a server's run; clients keep to it.
        at_work: How many sessions are at work at a time, where somebody has measured it.
        is_maintenance_measured: Commands are where a server's run had them, each over by the next.
        progress: Tells other threads how far it has come.

    Raises:
        InputError: The text is no profile, or the version none that is known.
        TwinError: The twin does not play it (the message names the field), nor could a server, it
            was cancelled, or the twin found itself at fault.
    """

def simulate_tprocc(
    spec_json: str,
    server_version: str,
    *,
    interleaving: int = 0,
    storage: str = "local",
    progress: Progress | None = None,
) -> tuple[Simulated, dict[str, int]]:
    """
    Play the laboratory's TPC-C-derived workload in the twin: it is loaded, aged and run.

    Args:
        spec_json: `server` as in a profile's canonical form, `warehouses`, `fillfactor` by table in
            percent, `at_home` (whether each client stays at a warehouse), and `age` and `window`,
            each with `clients`, `transactions` of each of them, and pgbench's `seed`.
        server_version: The minor version to follow.
        interleaving: Seed of the order in which several clients' statements run.
        storage: `local`, or `log-structured`: no images that repair pages.
        progress: Tells other threads how far it has come.

    Returns:
        What the window did, and by table its pages as loaded, those of indexes included.

    Raises:
        InputError: The text is no such workload, or the version none that is known.
        TwinError: A table that cannot grow, no such storage, or it was cancelled.
    """

def cluster_decay(
    profile_json: str,
    server_version: str,
    starts: Sequence[int],
    rounds: Sequence[tuple[float, float, Sequence[int]]],
    *,
    range_span: int,
    churn_frac: float,
    engine: str = "heap",
    is_sorted: bool = False,
    progress: Progress | None = None,
) -> list[tuple[float | None, float | None, int, int, int]]:
    """
    Play a churn program in the twin: its rounds replace rows of a table loaded in key order.

    With a server's seeds the heap is that server's, row by row, from 15 on.

    Args:
        profile_json: The server's settings and one table, in canonical form; its key is the first
            column of its index.
        server_version: The minor version to follow.
        starts: First keys of the ranges that are looked at before the first round.
        rounds: Of each round the arguments of `setseed` before DELETE and INSERT, and the first
            keys of the ranges that are looked at afterwards.
        range_span: Keys of a range beyond its first.
        churn_frac: Share of the rows that a round deletes; so many are inserted.
        engine: How rows are stored: `heap`, `clustered` or `undo`.
        is_sorted: Whether each INSERT's rows come in key order.
        progress: Tells other threads how far it has come.

    Returns:
        The state before the first round and after each: distinct heap pages of a range on average
        (None without ranges), correlation of key and place, pages of the heap and of its index,
        live rows.

    Raises:
        InputError: No such version, or a field of the profile is wrong.
        TwinError: No such engine, not one table with a key of integers, a table that cannot grow,
            or it was cancelled.
    """

@final
class PageHeader:
    """The header of a page, under PostgreSQL's names (src/include/storage/bufpage.h)."""

    @property
    def pd_lsn(self) -> int: ...
    @property
    def pd_checksum(self) -> int: ...
    @property
    def pd_flags(self) -> int: ...
    @property
    def pd_lower(self) -> int: ...
    @property
    def pd_upper(self) -> int: ...
    @property
    def pd_special(self) -> int: ...
    @property
    def pd_prune_xid(self) -> int: ...

@final
class HeapLinePointer:
    """
    A line pointer of a heap page; what only tuples have is None otherwise.

    `lp_flags` is 0 unused, 1 normal, 2 redirect (to the line pointer `redirect`), 3 dead.
    """

    @property
    def lp_flags(self) -> int: ...
    @property
    def redirect(self) -> int | None: ...
    @property
    def lp_len(self) -> int | None: ...
    @property
    def xmin(self) -> int | None: ...
    @property
    def xmax(self) -> int | None: ...
    @property
    def ctid(self) -> tuple[int, int] | None: ...
    @property
    def infomask2(self) -> int | None: ...
    @property
    def infomask(self) -> int | None: ...
    @property
    def hoff(self) -> int | None: ...

@final
class BtreeItem:
    """
    An item of a B-tree page, without its key.

    `kind` is "high key", "downlink", "tuple" or "posting"; `child` and `natts` (key columns kept,
    None if never truncated) are those of the first two.
    """

    @property
    def kind(self) -> str: ...
    @property
    def lp_len(self) -> int: ...
    @property
    def is_dead(self) -> bool: ...
    @property
    def child(self) -> int | None: ...
    @property
    def natts(self) -> int | None: ...
    @property
    def tids(self) -> list[tuple[int, int]]: ...

@final
class BtreePage:
    """A page of a B-tree; `flags` is `btpo_flags`, 0 stands for no sibling."""

    @property
    def header(self) -> PageHeader: ...
    @property
    def prev(self) -> int: ...
    @property
    def next(self) -> int: ...
    @property
    def level(self) -> int: ...
    @property
    def flags(self) -> int: ...
    @property
    def items(self) -> list[BtreeItem]: ...

def decode_heap_page(
    page: bytes, blkno: int = 0
) -> tuple[PageHeader | None, list[HeapLinePointer]]:
    """Header and line pointers of a heap page; no header if it was never initialised."""

def decode_btree_page(page: bytes, blkno: int = 0) -> BtreePage | None:
    """A B-tree page; None for the metapage and for a page of zeros."""

def decode_fsm_page(page: bytes, blkno: int = 0) -> tuple[list[int], int]:
    """The nodes of a free space map's page, and where its next search begins."""

def decode_visibility_page(page: bytes, blkno: int = 0) -> list[tuple[bool, bool]]:
    """The bits of heap pages on a page of the visibility map: (all visible, all frozen)."""

def relation_places(kind: str, file: bytes, *, key_columns: int = 1) -> list[str]:
    """
    The places of everything in a relation's fork, one text a page, as the twin tells them too.

    Args:
        kind: "heap", "btree", "fsm" or "vm".
        file: The fork's content, all segments.
        key_columns: Key columns of a B-tree.
    """

def places_digest(text: str) -> str:
    """A digest of a text of places: 16 hexadecimal digits (FNV-1a)."""

def grammar_major() -> int:
    """The major version of PostgreSQL whose grammar reads statements."""

def split_statements(text: str, /, *, psql: bool = True) -> list[tuple[int, str, str | None]]:
    """Statements of a text with their lines; `sources.statements.located` says the rest."""

def normalized_statements(text: str, /, *, variables: bool = False) -> list[str] | None:
    """The statements of a text without their constants; None if a literal does not end."""

def statement_writes(statement: str, /) -> str:
    """JSON: `{"writes": [...]}`, the fields of `Write`, or `{"reason": ..., "message": ...}`."""

def trigger_assigns(source: str, /) -> list[str] | None:
    """Columns that a trigger's PL/pgSQL may assign to the row; None: not known."""

def statement_facts(statement: str, /) -> str:
    """JSON: `{"facts": [...]}`, migration's actions, or `{"reason": ..., "message": ...}`."""

def statement_heads(statement: str, /) -> str:
    """JSON: `{"heads": [...]}`, the fields of `Head`, or `{"reason": ..., "message": ...}`."""

def statement_reads(statement: str, /) -> str:
    """JSON: `tables`, `ranges`, `equals`, `ordered`, `has_limit`, or `reason`, ..."""

def not_evaluated(
    expression: str,
    columns: Sequence[tuple[str, str, Sequence[str]]],
    /,
    *,
    is_condition: bool = False,
) -> str | None:
    """Why the twin cannot evaluate an expression over columns of these names, types and labels."""

def not_immutable(expression: str, columns: Sequence[tuple[str, str]], /) -> str | None:
    """What of an expression no index may have, as not immutable; None: nothing is known of it."""

def knows_gin_keys(type_name: str, opclass: str, /) -> bool:
    """Whether the twin knows the keys that an operator class (empty: the default) makes."""

def expression_reads(expression: str, /, *, table: str) -> str:
    """JSON: `columns`, `whole_row`, `may_be_row`, `functions`, `text`, or `reason`, ..."""

@final
class WalSums:
    """What a range of WAL adds up to. Positions are numbers; `bytes` are `xl_tot_len`."""

    @property
    def major(self) -> int:
        """PostgreSQL's major version, by the pages' magic."""
    @property
    def system_identifier(self) -> int:
        """As `pg_control_system()` has it."""
    @property
    def timeline(self) -> int:
        """The timeline that the files lead to."""
    @property
    def segment_bytes(self) -> int:
        """`wal_segment_size`."""
    @property
    def history_missing(self) -> bool:
        """Whether timelines were joined without the file that says where."""
    @property
    def files(self) -> int:
        """Files that were read."""
    @property
    def not_yet_written(self) -> list[Path]:
        """Segments that were made ready under a later name, and hold nothing of it yet."""
    @property
    def other_timelines(self) -> list[Path]:
        """Files that were left out: of other timelines, or replaced by a newer one's."""
    @property
    def total(self) -> tuple[int, int, int, int]:
        """Records, bytes, images, bytes of images."""
    @property
    def overhead_bytes(self) -> int:
        """Page headers, padding and rests of switched segments, outside the total."""
    @property
    def spans(self) -> list[tuple[int, int]]:
        """Ranges whose records are counted, without gaps in each."""
    @property
    def ended_us(self) -> tuple[int, int] | None:
        """Earliest and latest end of a transaction, microseconds since 2000-01-01 UTC."""
    @property
    def relations(self) -> list[tuple[tuple[int, int, int] | None, int, int, int, int]]:
        """Tablespace, database and relfilenode, or None; records, bytes, images, their bytes."""
    @property
    def causes(self) -> list[tuple[int, str, int, int]]:
        """The relation's place in `relations`, the cause, records, bytes."""
    @property
    def record_types(self) -> list[tuple[str, str, int, int, int]]:
        """Resource manager, type, records, bytes, bytes of images, as pg_waldump names them."""
    @property
    def memo(self) -> list[tuple[str, int]]:
        """Bytes of interest beside their cause."""
    @property
    def redo_points(self) -> list[int]:
        """Where checkpoints begin, as their records say, in the order of these."""
    @property
    def slices(self) -> list[tuple[int, int]]:
        """The record with which a slice of time begins, and the slice's number."""
    @property
    def stretches(self) -> list[tuple[int, int, int]]:
        """Records, bytes and bytes of images before the first cut, between, and after the last."""
    @property
    def transactions(self) -> list[tuple[int, int, str, int | None, int, int, int]]:
        """The largest: number, begin, `commit`, `abort` or `open`, time, records, bytes, images."""
    @property
    def gaps(self) -> list[tuple[int, int, str, str]]:
        """What could not be read: from, to, file, why."""
    @property
    def end(self) -> tuple[int, str] | None:
        """Where the log ends and what is there; None where the input or the range ends."""

def wal_sums(
    paths: Sequence[str | PathLike[str]],
    *,
    timeline: int | None = None,
    from_lsn: int | None = None,
    to_lsn: int | None = None,
    times_us: tuple[int, int] | None = None,
    cuts: Sequence[int] | None = None,
    slice_us: int | None = None,
    transactions: bool = False,
    threads: int = 1,
    open_end: bool = False,
) -> WalSums:
    """
    Read WAL and sum it by relation and cause.

    Args:
        paths: Files and folders; `-` alone is standard input.
        timeline: The timeline to follow; None: the newest.
        from_lsn: Records that begin here or later.
        to_lsn: Records that end here or before.
        times_us: And of this time, microseconds since 2000-01-01 UTC.
        cuts: Positions at which stretches begin, in order.
        slice_us: Width of slices of time whose begins are noted, in microseconds.
        transactions: Whether transactions are told apart; then one thread reads.
        threads: How many read side by side.
        open_end: Whether a pipe ends where the log does, in a segment's middle too; else that is a
            gap, as a file is that ends within its segment.

    Raises:
        WalCorrupt: A file that is no WAL, or cannot be read.
        WalIncomplete: No WAL there.
        WalUnsupported: Another version's, or several servers'.
    """

def wal_kinds(major: int) -> list[tuple[str, str, str, str, str]]:
    """
    What records count under, by version; nothing of a version that is not read.

    Returns:
        Resource manager and record type as pg_waldump names them; the cause, of an UPDATE that
        stays on its page; the cause of images, of blocks with an id below 3 and of one with id 3.
    """

def wal_pages(
    paths: Sequence[str | PathLike[str]],
    *,
    timeline: int | None = None,
    from_lsn: int | None = None,
    to_lsn: int | None = None,
    most: int = 1000,
) -> list[tuple[int, tuple[int, int, int], int, int, bytes | None]]:
    """
    Pages out of the full-page images of a range, in the order of the log.

    Returns:
        The record's position; tablespace, database and relfilenode; fork (0 main, 1 free space
        map, 2 visibility map, 3 init), block number, and the page; None instead of one that its
        image does not give.

    Raises:
        WalCorrupt, WalIncomplete, WalUnsupported: As `wal_sums`.
    """

@final
class WalCourses:
    """The log under other checkpoints. Positions are numbers."""

    @property
    def gaps(self) -> list[tuple[int, int, str, str]]:
        """What of the range could not be read: from, to, the file, what is wrong there."""
    @property
    def start_lsn(self) -> int:
        """Where all courses begin with a checkpoint."""
    @property
    def hints_logged(self) -> bool:
        """Whether changes of hint bits have images, as far as the log shows."""
    @property
    def length_us(self) -> int:
        """From the first end of a transaction to the last, microseconds."""
    @property
    def checkpoints(self) -> int:
        """Redo points in the log behind the first."""
    @property
    def one_in(self) -> int:
        """One of so many blocks was followed."""
    @property
    def fit(self) -> tuple[int, int, int, int]:
        """Images by rule or log, those by one alone; estimated image bytes, sum of errors."""
    @property
    def courses(
        self,
    ) -> list[
        tuple[int, int, int, list[tuple[tuple[int, int, int], int, int, int, int, int, int]]]
    ]:
        """
        One a trigger: its timeout and distance, checkpoints, and what changes by relation.

        Of a relation: its numbers; images that go, their bytes, bytes of log that go; images that
        come, their bytes, bytes of log that come.
        """

@final
class WalPacked:
    """The images of the log under each compression; of the sample, but for the first four."""

    @property
    def gaps(self) -> list[tuple[int, int, str, str]]:
        """What of the range could not be read: from, to, the file, what is wrong there."""
    @property
    def images(self) -> int:
        """Images, all."""
    @property
    def logged_bytes(self) -> int:
        """Their bytes in the log."""
    @property
    def unpacked_bytes(self) -> int:
        """Their bytes without compression and without holes."""
    @property
    def with_length(self) -> int:
        """Of them those that are compressed and say how long their hole is."""
    @property
    def sampled(self) -> int:
        """Images of the sample."""
    @property
    def sampled_bytes(self) -> int:
        """Their bytes without compression and without holes."""
    @property
    def broken(self) -> int:
        """Images of the sample that do not unpack."""
    @property
    def methods(self) -> list[tuple[str, int, int, int]]:
        """Method, bytes of images, images that say their hole's length, processor nanoseconds."""

def wal_courses(
    paths: Sequence[str | PathLike[str]],
    *,
    start_lsn: int,
    to_lsn: int,
    triggers: Sequence[tuple[int, int]],
    timeline: int | None = None,
    blocks_most: int | None = None,
) -> WalCourses:
    """
    Replay the log from a redo point on with checkpoints at other distances.

    Args:
        paths: Files and folders.
        start_lsn: The redo point.
        to_lsn: Where the last record ends.
        triggers: Timeouts in microseconds and distances in bytes.
        timeline: The timeline to follow; None: the newest.
        blocks_most: Blocks that are followed, 1.8 million unless said; of more a half, and so on.

    Raises:
        WalCorrupt, WalIncomplete, WalUnsupported: As `wal_sums`.
    """

def wal_packed(
    paths: Sequence[str | PathLike[str]],
    *,
    from_lsn: int,
    to_lsn: int,
    every: int,
    timeline: int | None = None,
) -> WalPacked:
    """
    Compress images of a range anew, every n-th of them.

    Raises:
        WalCorrupt, WalIncomplete, WalUnsupported: As `wal_sums`.
    """
