"""
The compiled core: arithmetic of PostgreSQL's on-disk format.

Sizes are bytes. A row or an index entry is given as columns in their physical order, each a
`Column` or a pair of a type's name and the payload of its value in bytes (None for NULL). All
functions raise `pgheadroom.errors.InputError` for what PostgreSQL could not store, and for types
that are not built in. Numbers hold for PostgreSQL 15 to 18.
"""

from collections.abc import Sequence
from typing import final

__all__ = [
    "Column",
    "ColumnLayout",
    "RowLayout",
    "__version__",
    "btree_build_pages",
    "heap_pages",
    "heap_tuple_bytes",
    "index_tuple_bytes",
    "rows_per_page",
    "spare_versions",
    "type_names",
]

__version__: str

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

def type_names() -> list[str]:
    """Names of the column types that are known, without modifiers."""
