"""
A layout as a value: tables, their columns, what fillfactors leave, index entries.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from pgheadroom.forms import Filed, in_file
from pgheadroom.sources.columns import ColumnAccess
from pgheadroom.tabular import Row, Tabular
from pgheadroom.types import TupleBytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnLayout:
    """
    A column in the usual row.

    Attributes:
        name: The column.
        type: As the server spells it.
        stored_like: The type whose layout it has, where that is another; else None.
        null_frac: Share of the rows in which it is NULL.
        is_null: Whether it is NULL in the row that is laid out.
        offset_bytes: From the tuple's beginning.
        padding_bytes: Before it, for its alignment.
        header_bytes: Of a value of variable length.
        payload_bytes: The value itself.
    """

    name: str
    type: str
    stored_like: str | None
    null_frac: float
    is_null: bool
    offset_bytes: int
    padding_bytes: int
    header_bytes: int
    payload_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """What a fillfactor (percent) leaves for the mean row; `heap_pages` None of unknown rows."""

    fillfactor: int
    rows_per_page: int
    spare_versions: int
    heap_pages: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexLayout:
    """A B-tree's entry; bytes are None where an expression's width, or one too wide, decides."""

    name: str
    columns: tuple[str, ...]
    tuple_bytes: int | None
    page_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Computed:
    """The mean row, over which columns are NULL: itself, and on a page with its line pointer."""

    tuple_bytes: float
    page_bytes: float
    with_nulls_frac: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRows:
    """
    What the table's rows and pages say.

    `tuple_bytes` has mean, deviation and percentiles of a sample, and is None without one; `rows`
    and `pages` are those of the sample, else of the table.
    """

    tuple_bytes: TupleBytes | None
    page_bytes: float | None
    rows: int
    pages: int
    rows_per_page: float
    evidence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TableLayout:
    """
    A table: the usual row, the mean row, the shortest order, the room that fillfactors leave.

    `tuple_bytes` is the usual row with its header of `hoff_bytes`; `page_bytes` has its line
    pointer too. `best_order` names all columns. A dropped column is NULL in every row that is
    written since: the usual row and the mean row have its bit in their header, the best order,
    which only a new table has, does not. Rows from before `added_columns` were added are shorter
    than said here until they are updated.
    """

    name: str
    rows: int | None
    fillfactor: int
    tuple_bytes: int
    hoff_bytes: int
    null_bitmap_bytes: int
    page_bytes: int
    inner_padding_bytes: int
    tail_padding_bytes: int
    needs_toast: bool
    computed: Computed
    measured: MeasuredRows | None
    best_order: tuple[str, ...]
    best_order_tuple_bytes: int
    best_order_page_bytes: int
    columns: tuple[ColumnLayout, ...]
    fillfactors: tuple[Room, ...]
    indexes: tuple[IndexLayout, ...]
    dropped_columns: int = field(default=0, metadata=in_file(added_later=True))
    added_columns: tuple[str, ...] = field(default=(), metadata=in_file(added_later=True))

    @property
    def padding_bytes(self) -> int:
        """Of the usual row, between values and at its end."""
        return self.inner_padding_bytes + self.tail_padding_bytes

    @property
    def saved_bytes(self) -> int:
        """What the shortest order saves of a row on its page."""
        return self.page_bytes - self.best_order_page_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout(Tabular, Filed):
    """
    Tables laid out.

    `assumed` has what was not known, by `table.column`; `access` and `server` are None for a
    profile.
    """

    KIND = "layout"

    tool_version: str
    assumed: Mapping[str, str]
    tables: tuple[TableLayout, ...]
    access: ColumnAccess | None = field(default=None, metadata=in_file(unless_none=True))
    server: str | None = field(default=None, metadata=in_file(unless_none=True))

    def rows(self) -> list[Row]:
        """One row a column of each table."""
        return [{"table": t.name, **asdict(column)} for t in self.tables for column in t.columns]

    def summary(self) -> str:
        """The tables and the length of their usual rows."""
        return "Layout: " + ", ".join(f"{t.name} {t.tuple_bytes} bytes a row" for t in self.tables)
