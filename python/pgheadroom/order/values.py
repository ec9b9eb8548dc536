"""
What is said about the order of tables, as values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pgheadroom.forms import Filed
from pgheadroom.quoting import called, printable
from pgheadroom.tabular import Row, Tabular, columns
from pgheadroom.types import Interval
from pgheadroom.units import show_count

RANGE_ROWS = 1000
"""Rows of a range: those that stand together in the index."""

OrderEvidence = Literal["sampled", "bounds"]
"""Ranges were read, or nothing but what is possible is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeStatement:
    """
    A statement that reads ranges of a table, as pg_stat_statements counts it.

    Attributes:
        queryid: Of pg_stat_statements.
        text: Normalised.
        reads_by: Columns of the index by which it looks for ranges or puts rows in order.
        calls: In the time.
        rows_per_call: That it returned or changed.
        blocks_per_call: Of shared buffers, hit or read, of all tables and indexes that it reads.
        read_blocks_per_call: Of these, those that were not in shared buffers.
        unknown: What is not known of it.
    """

    queryid: int
    text: str
    reads_by: tuple[str, ...]
    calls: int
    rows_per_call: float
    blocks_per_call: float
    read_blocks_per_call: float
    unknown: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderPrices:
    """
    What pages and locks cost.

    Attributes:
        page_read_ms: Of a page that is not in shared buffers.
        page_hit_ms: Of one that is.
        page_write_ms: Of one that a rewrite writes, its log among it.
        lock_cost: Seconds of work that a second counts for in which the table is locked.
        is_assumed: Names of those that nobody gave.
    """

    page_read_ms: float = 0.1
    page_hit_ms: float = 0.0005
    page_write_ms: float = 0.05
    lock_cost: float = 10.0
    is_assumed: tuple[str, ...] = ("page_read_ms", "page_hit_ms", "page_write_ms", "lock_cost")


@dataclass(frozen=True, slots=True, kw_only=True)
class ForecastPoint:
    """Pages of a range of 1,000 rows after a time, in days."""

    after_days: float
    pages_per_range: Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderForecast:
    """
    How the order goes on, if rows change as they did.

    Attributes:
        points: Over time.
        pages_per_new_row: Pages that a row which is written elsewhere adds to a range: 1 at random,
            one of the rows of a page in order; None: not known.
        is_place_known: Whether ranges tell where new rows go; else the ends are both of these.
        assumed: What is taken for granted.
    """

    points: tuple[ForecastPoint, ...]
    pages_per_new_row: float | None
    is_place_known: bool
    assumed: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterPay:
    """
    What clustering by an index saves, and when it pays.

    Attributes:
        scans_a_day: Of the index.
        rows_per_scan: Entries of one.
        read_frac: Share of the table's pages that were not in shared buffers.
        saved_pages_per_scan: After clustering.
        saved_s_a_day: By the prices.
        work_s: Of clustering.
        cost_s: The same with the price of its lock.
        pays_back_days: The cost by what it saves a day at first; None: it may save nothing, or the
            order is lost again before.
        every_days: The time between two of the least mean cost; None: there is none, or it is not
            known.
        why: The reason where there is none.
    """

    scans_a_day: float
    rows_per_scan: float
    read_frac: float
    saved_pages_per_scan: Interval
    saved_s_a_day: Interval
    work_s: float
    cost_s: float
    pays_back_days: Interval | None
    every_days: Interval | None
    why: str


RemedyWay = Literal["sorted_insert", "covering_index", "brin", "partitions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderRemedy:
    """
    Something cheaper than CLUSTER.

    Attributes:
        kind: What it is.
        pages_per_range: Foreseen, of a range of 1,000 rows; None where it gives nothing, or what it
            gives is not known.
        size_bytes: Of what it adds; None: nothing that counts.
        text: What to do, and on what the figures rest.
    """

    kind: RemedyWay
    pages_per_range: Interval | None
    size_bytes: int | None
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexOrder:
    """
    How a table's rows lie in the order of one B-tree.

    Attributes:
        name: Of the index.
        columns: Its key, with expressions as `(expression)`.
        is_marked: CLUSTER without a name takes this one (`indisclustered`).
        is_unique: It enforces it.
        pages: Of the index, at the last VACUUM or ANALYZE.
        correlation: Of its first column (pg_stats); None: not known.
        scans: Of the index in the time that counters have.
        rows_per_scan: Entries that a scan gave on average; None without scans.
        evidence: Where `pages_per_range` comes from.
        pages_per_range: Distinct pages that a range of 1,000 rows lies on now.
        pages_fresh: The same after CLUSTER, by the layout of rows.
        pages_random: The same if the rows lay at random on the pages that there are.
        ranges: That were read.
        unseen_frac: A part of the table so large would have been hit by one of the ranges, with
            90 % confidence; smaller ones may lie otherwise. None without ranges.
        not_sampled: Why no range, or no more than these, was read; None: the budget was enough.
        statements: Which read ranges of it, the dearest first.
        forecast: How it goes on; None without three ranges, or where nothing says how often rows
            change.
        pay: What clustering by it saves; None where scans read no ranges, or likewise.
        cheaper: What else there is where ranges lie on 1.5 times the pages of a freshly clustered
            table, or more.
    """

    name: str
    columns: tuple[str, ...]
    is_marked: bool
    is_unique: bool
    pages: int
    correlation: float | None
    scans: int
    rows_per_scan: float | None
    evidence: OrderEvidence
    pages_per_range: Interval
    pages_fresh: Interval
    pages_random: float
    ranges: int
    unseen_frac: float | None
    not_sampled: str | None
    statements: tuple[RangeStatement, ...]
    forecast: OrderForecast | None
    pay: ClusterPay | None
    cheaper: tuple[OrderRemedy, ...]

    @property
    def times_fresh(self) -> Interval:
        """How many times the pages of a freshly clustered table a range reads."""
        now, fresh = self.pages_per_range, self.pages_fresh
        return Interval(
            low=now.low / fresh.high,
            mid=now.mid / fresh.mid,
            high=now.high / fresh.low,
            level=min(now.level, fresh.level),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TableChanges:
    """
    Rows that were changed in a time.

    Attributes:
        over_s: How long it is; None: nothing says it.
        is_watched: It was watched; else it is since statistics began.
        inserts: Rows inserted.
        updates: Rows updated.
        hot_updates: Of these, HOT ones.
        newpage_updates: Of these, those whose new version went to another page; None before 16,
            where it is not counted.
        deletes: Rows deleted.
        blocks_hit: Pages of the table found in shared buffers.
        blocks_read: Pages of it that were not.
    """

    over_s: float | None
    is_watched: bool
    inserts: int
    updates: int
    hot_updates: int
    newpage_updates: int | None
    deletes: int
    blocks_hit: int
    blocks_read: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOrder:
    """
    A table and its B-trees, those first whose order matters most.

    Attributes:
        schema: Of it.
        name: Of it.
        pages: Of its heap.
        rows: Live ones, estimated.
        pages_read: Distinct pages that ranges of it were read from, and where they began.
        changes: Since statistics began, or in the interval.
        indexes: Its B-trees.
    """

    schema: str
    name: str
    pages: int
    rows: int
    pages_read: int
    changes: TableChanges
    indexes: tuple[IndexOrder, ...]

    @property
    def called(self) -> str:
        """For people, on one line."""
        return printable(called(self.schema, self.name))


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderReport(Filed, Tabular):
    """
    The order of a database's tables.

    Attributes:
        tool_version: Of ours.
        server: Its version.
        database: Its name.
        at: UTC.
        interval_s: Between two readings of counters; None: since statistics began.
        prices: Of pages and locks.
        tables: The largest first.
        small_tables: How many were left out for their size.
        missing: What could not be seen.
        would_help: Statements that would show more.
    """

    KIND = "order"

    tool_version: str
    server: str
    database: str
    at: str
    interval_s: float | None
    prices: OrderPrices
    tables: tuple[TableOrder, ...]
    small_tables: int
    missing: tuple[str, ...]
    would_help: tuple[str, ...]

    def rows(self) -> list[Row]:
        """A row an index."""
        return [
            {
                "schema": table.schema,
                "table": table.name,
                "index": index.name,
                "columns": ", ".join(index.columns),
                "is_marked": index.is_marked,
                "table_pages": table.pages,
                "table_rows": table.rows,
                "correlation": index.correlation,
                "scans": index.scans,
                "rows_per_scan": index.rows_per_scan,
                "evidence": index.evidence,
                **columns("pages_per_range", index.pages_per_range),
                **columns("pages_fresh", index.pages_fresh),
                "pages_random": index.pages_random,
                "ranges": index.ranges,
                "not_sampled": index.not_sampled,
            }
            for table in self.tables
            for index in table.indexes
        ]

    def summary(self) -> str:
        """What was looked at."""
        indexes = sum(len(table.indexes) for table in self.tables)
        return (
            f"Order of {show_count(len(self.tables), 'table')} by "
            f"{indexes:,} B-tree{'' if indexes == 1 else 's'}, database "
            f"{printable(self.database)}, PostgreSQL {self.server}"
        )
