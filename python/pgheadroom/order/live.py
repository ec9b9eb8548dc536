"""
The order of a live database's tables, only reading.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pgheadroom
from pgheadroom.bloat.reading import Estimated, estimated_tables, heap_rows
from pgheadroom.errors import InputError
from pgheadroom.order import asking
from pgheadroom.order.counted import CountedTime
from pgheadroom.order.indexing import OrderedTable, index_order
from pgheadroom.order.ranges import (
    METHODS,
    RangeReader,
    Ranges,
    SampleBudget,
    kept_settings,
    ready,
    why_unreadable,
)
from pgheadroom.order.statements import ReadStatement, batch_rows, of_index, understood
from pgheadroom.order.values import IndexOrder, OrderPrices, OrderReport, TableOrder
from pgheadroom.progress import Say
from pgheadroom.quoting import called
from pgheadroom.sources.session import read_only_session
from pgheadroom.sources.statements_at import STATEMENTS_AT_SQL
from pgheadroom.units import show_count, show_duration

if TYPE_CHECKING:
    import psycopg

APPLICATION_NAME = "pgheadroom order"
PAGES_MIN = 128
"""Tables from 1 MiB on: of smaller ones all pages are in memory as soon as one is read twice."""
SAMPLE_PAGES = 1000
TABLES_MAX = 50
_TABLE_S = 10.0  # of one table, so that a large database ends
_ALL_S = 120.0

AnsweredRow = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderWish:
    """
    What is looked at.

    Attributes:
        tables: Only these, as `name` or `schema.name`; none: the largest ones.
        samples: Read ranges.
        pages: Of each table, at most.
        interval_s: Between two readings of counters; None: what statistics have.
        seed: Of what is drawn.
        prices: Of pages and locks.
        pages_min: Of a table; None: of those that are named any number, else 1 MiB.
        index: Only ranges of the index of this name; None: of all.
    """

    tables: tuple[str, ...] = ()
    samples: bool = True
    pages: int = SAMPLE_PAGES
    interval_s: float | None = None
    seed: int = 1
    prices: OrderPrices = field(default_factory=OrderPrices)
    pages_min: int | None = None
    index: str | None = None


def order_live(
    target: str,
    parameters: Mapping[str, str],
    wish: OrderWish,
    *,
    say: Say = lambda _: None,
    sleep: Callable[[float], None] = time.sleep,
) -> OrderReport:
    """
    Say how well the rows of tables lie in the order of their B-trees.

    Args:
        target: A connection, as libpq takes it.
        parameters: Of the connection, beside it.
        wish: What is looked at.
        say: Told what happens, for people.
        sleep: Waits.

    Raises:
        ConnectionFailed: No server answers.
        SourceError: A query failed.
        InputError: A table that is not there.
    """
    named = {"application_name": APPLICATION_NAME, **parameters}
    with read_only_session(target, named) as connection:
        return OrderAsking(connection, wish, say).report(sleep)


def order_by(
    connection: psycopg.Connection[Any], schema: str, table: str, index: str
) -> IndexOrder | None:
    """
    How a table lies by one index; None where it is not there, or could not be looked at.

    Args:
        connection: From `read_only_session`; it has its settings again afterwards.
        schema: Of the table.
        table: Its name.
        index: Its name.
    """
    with kept_settings(connection):
        try:
            wish = OrderWish(tables=(f"{schema}.{table}",), index=index)
            report = OrderAsking(connection, wish).report()
        except InputError:
            return None
    return next(
        (
            one
            for found in report.tables
            if found.schema == schema
            for one in found.indexes
            if one.name == index
        ),
        None,
    )


def table_order(
    connection: psycopg.Connection[Any], wish: OrderWish, counted: CountedTime
) -> TableOrder | str:
    """
    How one table lies, with counters that were read already; or why that is not known.

    Args:
        connection: From `read_only_session`; it has its settings again afterwards.
        wish: Names the table as `schema.name`.
        counted: Of it, its indexes, and statements.
    """
    with kept_settings(connection):
        try:
            report = OrderAsking(connection, wish).report(counted=counted)
        except InputError as error:
            return str(error)
    schema = wish.tables[0].partition(".")[0]
    found = next((table for table in report.tables if table.schema == schema), None)
    return found or next(iter(report.missing), f"{wish.tables[0]} was not seen")


class OrderAsking:
    """
    One database that is asked.

    Args:
        connection: From `read_only_session`.
        wish: What is looked at.
        say: Told what happens.
    """

    def __init__(
        self, connection: psycopg.Connection[Any], wish: OrderWish, say: Say = lambda _: None
    ) -> None:
        connection.prepare_threshold = None  # a pooler's server connection is not ours alone
        self._connection = connection
        self._wish = wish
        self._say = say
        self._major = connection.info.server_version // 10000
        ready(connection)
        self._moment = self._rows(asking.MOMENT_SQL)[0]
        self._missing: list[str] = []
        self._would_help: list[str] = []
        self._statements: list[ReadStatement] = []
        self._namesakes: dict[str, int] = {}

    def report(
        self,
        sleep: Callable[[float], None] = time.sleep,
        *,
        counted: CountedTime | None = None,
    ) -> OrderReport:
        """
        Look at all that is asked for.

        Args:
            sleep: Waits.
            counted: Counters that were read already; None: they are read.
        """
        indexes = self._chosen(self._rows(asking.INDEXES_SQL.format(pages_min=self._pages_min)))
        if counted is None:
            counted = self._counted([index for each in indexes.values() for index in each], sleep)
        self._statements, failed = understood(counted.statements)
        if failed:
            self._missing.append(
                f"{show_count(failed, 'statement')} whose text was hidden or not understood"
            )
        namesakes = self._rows(asking.NAMESAKES_SQL)
        self._namesakes = {str(row["name"]): int(row["tables"]) for row in namesakes}
        estimates = self._estimates(indexes)
        began_s = time.monotonic()
        tables = []
        for number, (oid, rows) in enumerate(indexes.items(), 1):
            self._say(f"{called(rows[0]['schema'], rows[0]['table'])} ({number}/{len(indexes)})")
            left_s = began_s + _ALL_S - time.monotonic()
            table = self._table(oid, rows, estimates.get(oid), counted, left_s)
            if table is not None:
                tables.append(table)
        self._see(indexes)
        left = self._rows(asking.LEFT_SQL.format(pages_min=PAGES_MIN))[0]
        if left["unknown"]:
            self._missing.append(
                f"{show_count(int(left['unknown']), 'table')} with rows that nobody has vacuumed "
                "or analyzed, so that nothing says how large: ANALYZE"
            )
        return OrderReport(
            tool_version=pgheadroom.__version__,
            server=str(self._moment["server_version"]).split()[0],
            database=str(self._moment["database"]),
            at=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self._moment["now_s"])),
            interval_s=self._wish.interval_s,
            prices=self._wish.prices,
            tables=tuple(tables),
            small_tables=0 if self._wish.tables else int(left["small"]),
            missing=tuple(self._missing),
            would_help=tuple(dict.fromkeys(self._would_help)),
        )

    @property
    def _pages_min(self) -> int:
        if self._wish.pages_min is not None:
            return self._wish.pages_min
        return 0 if self._wish.tables else PAGES_MIN

    def _rows(self, query: str) -> list[AnsweredRow]:
        from psycopg.rows import dict_row  # noqa: PLC0415 - loads libpq

        with self._connection.cursor(row_factory=dict_row) as cursor:
            return list(cursor.execute(query.encode("utf-8", "surrogateescape")).fetchall())

    def _chosen(self, rows: Sequence[AnsweredRow]) -> dict[int, list[AnsweredRow]]:
        """The B-trees of each table that is looked at."""
        found: dict[int, list[AnsweredRow]] = {}
        wanted = set(self._wish.tables)
        met = set()
        for row in rows:
            names = {str(row["table"]), f"{row['schema']}.{row['table']}"}
            if wanted and not names & wanted:
                continue
            met |= names & wanted
            found.setdefault(int(row["table_oid"]), []).append(row)
        gone = sorted(wanted - met)
        if gone:
            raise InputError(
                f"no table {gone[0]!r} with a valid B-tree in database "
                f"{self._moment['database']}: expected name or schema.name of one"
            )
        left = len(found) - TABLES_MAX
        if left > 0 and not wanted:
            self._missing.append(
                f"{left:,} smaller tables beyond the {TABLES_MAX} largest, unless they are named"
            )
            found = dict(list(found.items())[:TABLES_MAX])
        return found

    def _estimates(
        self, indexes: Mapping[int, Sequence[AnsweredRow]]
    ) -> dict[int, tuple[Estimated, int]]:
        """What CLUSTER would leave of each table, and its rows."""
        made = {}
        for row in heap_rows(self._rows, self._pages_min, METHODS):
            oid = int(row["oid"])
            if oid not in indexes:
                continue
            rows = float(row["n_live_tup"] or 0) or max(float(row["reltuples"]), 0.0)
            # Only the width of rows counts here: those that changed are taken to be as wide, and
            # pages are of the same number of rows (`_between`, bloat/reading.py).
            counted = {**row, "n_live_tup": rows, "reltuples": rows, "n_mod_since_analyze": 0}
            (estimated,) = estimated_tables(self._rows, [counted], toast=False)
            made[oid] = (estimated, round(rows))
        return made

    def _counted(self, rows: Sequence[AnsweredRow], sleep: Callable[[float], None]) -> CountedTime:
        tables = sorted({int(row["table_oid"]) for row in rows})
        indexes = [int(row["oid"]) for row in rows]
        schema = next((str(row["schema"]) for row in self._rows(STATEMENTS_AT_SQL)), None)
        if schema is None:
            self._missing.append(
                "pg_stat_statements is not installed, not loaded, or not for this role: which "
                "statements read ranges"
            )
        elif not self._moment["monitors"]:
            self._missing.append("without pg_monitor: texts of other users' statements")
            self._would_help.append(f"GRANT pg_monitor TO {self._moment['role']};")

        def reading() -> CountedTime:
            return CountedTime(
                tables=self._by_oid(asking.counters_sql(tables, self._major)) if tables else {},
                indexes=self._by_oid(asking.index_counters_sql(indexes)) if indexes else {},
                statements=[] if schema is None else self._rows(asking.statements_sql(schema)),
                over_s=None,
            )

        first = reading()
        interval_s = self._wish.interval_s
        if interval_s is None:
            since_s = self._moment["since_epoch_s"]
            over_s = None if since_s is None else max(float(self._moment["now_s"] - since_s), 0.0)
            return first.lasting(over_s)
        self._say(f"watching for {show_duration(interval_s)}")
        sleep(interval_s)
        return reading().since(first).lasting(interval_s)

    def _by_oid(self, query: str) -> dict[int, AnsweredRow]:
        return {int(row["oid"]): row for row in self._rows(query)}

    def _table(
        self,
        oid: int,
        rows: Sequence[AnsweredRow],
        estimate: tuple[Estimated, int] | None,
        counted: CountedTime,
        left_s: float,
    ) -> TableOrder | None:
        schema, name = str(rows[0]["schema"]), str(rows[0]["table"])
        about = called(schema, name)
        if estimate is None:
            self._missing.append(f"{about}: its access method is {rows[0]['table_method']}")
            return None
        found, live = estimate
        if found.estimate is None:
            self._missing.append(f"{about}: somebody holds it")
            return None
        pages = found.estimate.pages
        if not live:
            self._missing.append(f"{about}: nothing says how many rows it has: ANALYZE")
            return None
        reader = RangeReader(
            self._connection,
            schema=schema,
            table=name,
            pages=pages,
            seed=zlib.crc32(f"{self._wish.seed} {oid}".encode()),
        )
        budget = SampleBudget(
            pages=self._wish.pages, until_s=time.monotonic() + min(_TABLE_S, max(left_s, 0.0))
        )
        changes = counted.changes(oid)
        fresh = found.estimate.rewritten_pages.mid
        table = OrderedTable(
            rows=live,
            pages=pages,
            estimate=found.estimate,
            changes=changes,
            batch_rows=batch_rows(counted.statements, schema, name, self._namesakes.get(name, 1)),
            written_pages=fresh + sum(int(row["pages"]) for row in rows),
        )
        made = []
        for row in sorted(rows, key=lambda row: _place(row, counted)):
            columns = tuple(str(key["name"]) for key in row["keys"])
            statements = of_index(
                self._statements, schema, name, columns, self._namesakes.get(name, 1)
            )
            ranges = self._ranges(reader, row, budget)
            scans = counted.scans(int(row["oid"]))
            made.append(index_order(row, table, ranges, scans, statements, self._wish.prices))
        return TableOrder(
            schema=schema,
            name=name,
            pages=pages,
            rows=live,
            pages_read=len(reader.touched),
            changes=changes,
            indexes=tuple(made),
        )

    def _ranges(self, reader: RangeReader, row: AnsweredRow, budget: SampleBudget) -> Ranges:
        if not self._wish.samples:
            return Ranges((), "samples were switched off")
        if self._wish.index not in (None, row["name"]):
            return Ranges((), "another index was asked for")
        why = why_unreadable(row)
        if why is None and self._moment["in_recovery"] and row["persistence"] == "u":
            why = "an unlogged table is not readable on a standby"
        return Ranges((), why) if why is not None else reader.ranges(row, budget)

    def _see(self, indexes: Mapping[int, Sequence[AnsweredRow]]) -> None:
        """Name what the role could not see."""
        rows = [each[0] for each in indexes.values()]
        hidden = [row for row in rows if not row["is_readable"]]
        if hidden:
            self._missing.append(
                f"{len(hidden)} of {len(rows)} tables without SELECT: their order is not sampled, "
                "and pg_stats says nothing of them"
            )
            self._would_help.append(f"GRANT pg_read_all_data TO {self._moment['role']};")
        if not self._wish.samples:
            self._missing.append("samples were switched off: pages of a range are bounds")


def _place(row: AnsweredRow, counted: CountedTime) -> tuple[bool, float, bool, str]:
    """First the index that the table is clustered by, then those that most rows are read by."""
    scans, entries = counted.scans(int(row["oid"]))
    by_ranges = max(entries - scans, 0)
    return not row["is_marked"], -by_ranges, not row["is_primary"], str(row["name"])
