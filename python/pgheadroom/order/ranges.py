"""
Ranges of a table, read in the order of an index: on which pages rows lie, and how old they are.

    a random page -> one of its rows -> 1,000 rows from its key on, in the index's order

Each row that there is begins a range with the same probability: pages are drawn evenly, and a range
counts as many times as its page has rows. Where keys are equal it begins at the first of them, and
one that is drawn again is not read again. What is read is bounded by distinct pages, a statement
timeout and a time for all. A plan that is no plain scan of an index in order is not run.

A SELECT may prune pages, set hint bits and mark entries of the index as dead, as any other does.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pgheadroom.order.values import RANGE_ROWS
from pgheadroom.quoting import identifier, literal
from pgheadroom.sources.session import set_for_session

if TYPE_CHECKING:
    import psycopg

_SESSION = {
    "statement_timeout": "2s",
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "enable_sort": "off",
    "enable_incremental_sort": "off",
    "enable_indexscan": "on",
    "enable_tidscan": "on",
    "max_parallel_workers_per_gather": "0",
    "jit": "off",
    "DateStyle": "ISO",
    "IntervalStyle": "postgres",
    "extra_float_digits": "1",
    "client_encoding": "UTF8",
}
"""Only plans that read the rows in the index's order, and values whose text is the same value."""
_FETCHED = 100  # rows at a time; at the budget's end no more than there may be new pages
_RANGES_MAX = 40
"""Ranges of an index; their mean is then known to a sixth of how far they differ."""
_TRIES_MAX = 20
"""Pages that are drawn for one that has rows: enough where three quarters have none."""
METHODS = ("heap", "clustered_heap")
"""Access methods whose pages are heap's."""
_NOT_FITTING = "the planner takes another way than the index alone"


# Told apart by identity: what is kept of each would else hash its thousand rows at every look.
@dataclass(frozen=True, slots=True, eq=False)
class ReadRange:
    """
    A range.

    Attributes:
        blocks: Of its rows, in the index's order.
        ages: Of their xmin, in transactions, likewise.
        weight: Rows of the page that it was drawn by.
        is_cut: The budget of pages ended in it.
    """

    blocks: tuple[int, ...]
    ages: tuple[int, ...]
    weight: int
    is_cut: bool = False

    @property
    def pages(self) -> int:
        """Distinct ones."""
        return len(set(self.blocks))


@dataclass(slots=True)
class SampleBudget:
    """
    What may still be read of a table.

    Attributes:
        pages: Distinct ones of a range, and those by which ranges are drawn.
        until_s: By `time.monotonic`.
    """

    pages: int
    until_s: float

    @property
    def is_over(self) -> bool:
        """No time is left."""
        return time.monotonic() >= self.until_s


@dataclass(frozen=True, slots=True)
class Ranges:
    """Those that were read of an index, and why there are no more; None: there are enough."""

    read: tuple[ReadRange, ...]
    why_not: str | None = None


def why_unreadable(row: Mapping[str, Any]) -> str | None:
    """
    Why no range of an index can be read; None where one can.

    Args:
        row: Of `INDEXES_SQL`.
    """
    if not row["is_readable"]:
        return "the role may not SELECT from the table"
    if row["has_row_security"]:
        return "row security hides rows of the table from the role"
    if row["table_method"] not in METHODS:
        return f"the table's access method is {row['table_method']}"
    if row["is_partial"]:
        return "the index is partial"
    if not _leading(row):
        return _first_fault(row)
    return None


def _first_fault(row: Mapping[str, Any]) -> str:
    first = row["keys"][0]
    if not first["is_column"]:
        return "the index begins with an expression"
    if not first["is_known"]:
        return f"its key is of type {first['type']}, whose operators are not PostgreSQL's own"
    if not first["is_default"]:
        return "the index has an operator class that is not the default of its type"
    if not first["is_own_collation"]:
        return "the index has another collation than its column"
    return "the index puts NULLs where an ORDER BY of its direction does not"


def _leading(row: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Key columns that a comparison of rows takes in one go: of one direction, as it is usual."""
    keys: list[Mapping[str, Any]] = []
    for key in row["keys"]:
        # INDOPTION_DESC is 1, INDOPTION_NULLS_FIRST 2: 0 and 3 are an order and its reverse.
        fits = all(key[f"is_{what}"] for what in ("column", "known", "default", "own_collation"))
        if not fits or key["option"] not in (0, 3) or (keys and key["option"] != keys[0]["option"]):
            break
        keys.append(key)
    return keys


@dataclass(slots=True)
class RangeReader:
    """
    Reads ranges of the indexes of one table.

    Args:
        connection: From `read_only_session`.
        schema: Of the table.
        table: Its name.
        pages: Of its heap.
        seed: Of what is drawn.
    """

    connection: psycopg.Connection[Any]
    schema: str
    table: str
    pages: int
    seed: int
    touched: set[int] = field(default_factory=set)

    def ranges(self, row: Mapping[str, Any], budget: SampleBudget) -> Ranges:
        """
        Read ranges of an index until enough are there or the budget ends.

        Args:
            row: Of `INDEXES_SQL`; `why_unreadable` has said nothing about it.
            budget: What is left; what is read is taken from it.
        """
        import psycopg  # noqa: PLC0415 - loads libpq, which most commands do not need

        keys = _leading(row)
        draws = random.Random(f"{self.seed} {row['oid']}")  # noqa: S311
        read: list[ReadRange] = []
        begun: dict[tuple[str, ...], int] = {}
        short = 0
        try:
            while len(read) < _RANGES_MAX and short < _RANGES_MAX:
                why = _why_end(read, budget)
                if why is not None:
                    return Ranges(tuple(read), why)
                drawn = self._start(keys, draws, budget)
                if drawn is None:
                    return Ranges(tuple(read), "too many of the pages that were drawn have no row")
                start, weight = drawn
                again = begun.get(tuple(start))
                if again is not None:
                    # Rows of equal keys: the same range, which tells nothing of the others.
                    read[again] = replace(read[again], weight=read[again].weight + weight)
                    short += 1
                    continue
                found = self._range(keys, start, weight, budget)
                if isinstance(found, str):
                    return Ranges(tuple(read), found)
                if found.is_cut or len(found.blocks) == RANGE_ROWS:
                    begun[tuple(start)] = len(read)
                    read.append(found)
                else:
                    short += 1  # it began at the last rows of the index
        except psycopg.errors.QueryCanceled:
            return Ranges(tuple(read), "a range took longer than 2 s")
        except psycopg.errors.LockNotAvailable:
            return Ranges(tuple(read), "somebody holds the table")
        except psycopg.OperationalError:
            raise
        except psycopg.Error as error:
            said = error.diag.message_primary or str(error).strip()
            return Ranges(tuple(read), f"the server refused it: {said}")
        return Ranges(tuple(read))

    def _start(
        self, keys: Sequence[Mapping[str, Any]], draws: random.Random, budget: SampleBudget
    ) -> tuple[list[str], int] | None:
        """A row's key as text, and how many rows its page has."""
        listed = ", ".join(f"{identifier(key['name'])}::text" for key in keys)
        for _ in range(_TRIES_MAX):
            block = draws.randrange(max(self.pages, 1))
            self._touch([block], budget)
            # From 14 on a scan of that page alone.
            query = (
                f"SELECT {listed} FROM ONLY {identifier(self.schema)}.{identifier(self.table)} "
                f"WHERE ctid >= '({block},0)' AND ctid < '({block + 1},0)'"
            )
            rows = self.connection.execute(query.encode("utf-8", "surrogateescape")).fetchall()
            whole = [list(row) for row in rows if None not in row]
            if whole:
                return draws.choice(whole), len(whole)
        return None

    def _range(
        self,
        keys: Sequence[Mapping[str, Any]],
        start: Sequence[str],
        weight: int,
        budget: SampleBudget,
    ) -> ReadRange | str:
        """The rows from a key on; or why they are not read."""
        query = self._query(keys, start)
        blocks: list[int] = []
        ages: list[int] = []
        seen: set[int] = set()
        is_cut = False
        with self.connection.transaction():
            if not self._is_plain(query):
                return _NOT_FITTING
            self._run(f"DECLARE pgheadroom_order NO SCROLL CURSOR FOR {query}")
            while len(blocks) < RANGE_ROWS:
                wanted = min(_FETCHED, budget.pages - len(seen - self.touched))
                is_cut = wanted <= 0
                if is_cut:
                    break
                rows = self._run(f"FETCH FORWARD {wanted} FROM pgheadroom_order").fetchall()
                for block, age in rows:
                    blocks.append(int(block))
                    ages.append(int(age))
                    seen.add(int(block))
                if len(rows) < wanted:
                    break
            self._run("CLOSE pgheadroom_order")
        self._touch(seen, budget)
        return ReadRange(tuple(blocks), tuple(ages), weight, is_cut)

    def _query(self, keys: Sequence[Mapping[str, Any]], start: Sequence[str]) -> str:
        names = [identifier(key["name"]) for key in keys]
        values = [
            f"{literal(value)}::{key['type']}" for key, value in zip(keys, start, strict=True)
        ]
        left, right = ", ".join(names), ", ".join(values)
        if len(names) > 1:
            left, right = f"ROW({left})", f"ROW({right})"
        return (
            "SELECT ((ctid::text::point)[0])::int8, age(xmin) "
            f"FROM ONLY {identifier(self.schema)}.{identifier(self.table)} "
            f"WHERE {left} >= {right} ORDER BY {', '.join(names)} LIMIT {RANGE_ROWS}"
        )

    def _is_plain(self, query: str) -> bool:
        """Whether it is read by a scan of an index, from the key on, and nothing is thrown away."""
        row = self._run(f"EXPLAIN (FORMAT JSON) {query}").fetchone()
        assert row is not None, "EXPLAIN gives a row"
        node = row[0][0]["Plan"]
        while node["Node Type"] in ("Limit", "Result", "Subquery Scan") and node.get("Plans"):
            node = node["Plans"][0]
        return (
            node["Node Type"] == "Index Scan"
            and "Index Cond" in node
            and "Filter" not in node
            and not node.get("Plans")
        )

    def _run(self, query: str) -> psycopg.Cursor[Any]:
        return self.connection.execute(query.encode("utf-8", "surrogateescape"))

    def _touch(self, blocks: Sequence[int] | set[int], budget: SampleBudget) -> None:
        new = set(blocks) - self.touched
        self.touched |= new
        budget.pages -= len(new)


def ready(connection: psycopg.Connection[Any]) -> None:
    """
    Have a session read ranges and nothing else.

    Where the role may say so its reads are not counted: scans of an index that nobody else reads
    by ranges would make it worth to be clustered by, in the next look.
    """
    for name, value in _settings(connection).items():
        set_for_session(connection, name, value)


def _settings(connection: psycopg.Connection[Any]) -> Mapping[str, str]:
    row = connection.execute("SELECT has_parameter_privilege('track_counts', 'SET')").fetchone()
    return _SESSION | {"track_counts": "off"} if row == (True,) else _SESSION


@contextmanager
def kept_settings(connection: psycopg.Connection[Any]) -> Iterator[None]:
    """Give a session the settings again that it had before ranges were read."""
    names = tuple(_settings(connection))
    listed = ", ".join(f"current_setting({literal(name)})" for name in names)
    row = connection.execute(f"SELECT {listed}".encode()).fetchone()
    assert row is not None, "a query without FROM gives a row"
    try:
        yield
    finally:
        if not connection.closed:
            for name, value in zip(names, row, strict=True):
                set_for_session(connection, name, str(value))


def _why_end(read: Sequence[ReadRange], budget: SampleBudget) -> str | None:
    """Why no further range is begun; None: one is."""
    if budget.is_over:
        return "the time was over"
    if read and read[-1].is_cut:
        return "the budget of pages was over"
    expected = sum(one.pages for one in read) / len(read) if read else 2 * _FETCHED
    return None if budget.pages > 1.2 * expected else "the budget of pages was over"
