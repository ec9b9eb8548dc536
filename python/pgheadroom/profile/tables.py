"""
The tables of a profile: columns and their values, indexes, keys, as they are loaded.

Frozen, with units in the names. What a file may say of each is declared beside it, and read and
written by that (`pgheadroom.forms`); what has to fit together is in `completing.py` and `check.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Annotated, Literal

from pgheadroom.forms import Expected, GapList, NameList, Stored, Text, between, in_file
from pgheadroom.profile.column_types import FORMS, ColumnForm, Kind, base_of, length_of
from pgheadroom.profile.elements import Elements, mean_payload
from pgheadroom.profile.observed import ObservedTable
from pgheadroom.profile.spelling import Label, Name, Words, type_name

Compression = Literal["pglz", "lz4"]
ColumnStorage = Literal["external", "extended", "main"]
ValuesKind = Literal["serial", "constant", "random", "parent"]

ROWS_MAX = 2**40  # far beyond what one machine loads
ROWS_PER_PAGE_MAX = 291  # MaxHeapTuplesPerPage, src/include/access/htup_details.h
STRING_BYTES_MAX = 1024**2  # made of hashes row by row; longer ones would take for ever; arbitrary
INTEGER_MAX = {"int2": 2**15 - 1, "int4": 2**31 - 1, "int8": 2**63 - 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class Width:
    """Payload bytes of a string, uniform between the two."""

    min_bytes: Annotated[int, between(0, STRING_BYTES_MAX)]
    max_bytes: Annotated[int, between(0, STRING_BYTES_MAX)]


def _width(found: int | Width) -> Width:
    """A number is a width that all values have."""
    return Width(min_bytes=found, max_bytes=found) if isinstance(found, int) else found


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """
    How a column's values are made.

    `ndistinct` is set for random ones, and for keys of a parent, of which it is the loaded rows;
    `pick` says that a run's inserts take the parent's key that their client inserted last.
    `ordered` says that uuids and strings are in the order of their numbers. Of an enum `shares` are
    those of its labels, and `new` is the label of rows that a run inserts; else their labels are
    made as those of loaded rows.
    """

    kind: ValuesKind
    ndistinct: Annotated[int, between(1, 2**62)] | None = None
    pick: Literal["newest"] | None = None
    ordered: bool = field(default=False, metadata=in_file(unless_empty=True))
    shares: Annotated[
        tuple[Annotated[float, between(0, 1)], ...], Expected("a list of numbers from 0 to 1")
    ] = field(default=(), metadata=in_file(unless_empty=True))
    new: Text | None = field(default=None, metadata=in_file(unless_none=True))


StatedWidth = Annotated[
    Width,
    Stored(Annotated[int, between(0, STRING_BYTES_MAX)] | Width, _width),
    Expected("bytes, or { min_bytes, max_bytes }"),
]
"""How long values are, as a profile may say it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnProfile:
    """
    A column; `type` is canonical (`int4`, `bpchar(84)`), `width` where that leaves it open.

    An enum has `labels`, in their order; `elements` says what values of several elements are, and
    `width` follows from it. `compression` is its own; without it the server's default compresses.
    `storage` is its own; without it the type's. `stands_for` names a type that profiles do not
    have, of whose stored form this one is.
    """

    name: Name
    type: Annotated[str, Stored(Text, type_name)]
    values: Values = Values(kind="constant")
    width: StatedWidth | None = None
    null_frac: Annotated[float, between(0, 1)] = 0.0
    labels: Annotated[tuple[Label, ...], Expected("a list of labels", whole=True)] = field(
        default=(), metadata=in_file(unless_empty=True)
    )
    elements: Elements | None = field(default=None, metadata=in_file(unless_none=True))
    compression: Compression | None = field(default=None, metadata=in_file(unless_none=True))
    storage: ColumnStorage | None = field(default=None, metadata=in_file(unless_none=True))
    stands_for: Text | None = field(default=None, metadata=in_file(unless_none=True))

    @property
    def kind(self) -> Kind:
        """What its values are."""
        return self.form.kind

    @property
    def form(self) -> ColumnForm:
        """What is known of its type."""
        return FORMS[self.base_type]

    @property
    def base_type(self) -> str:
        """The type without its modifier."""
        return base_of(self.type)

    @property
    def type_length(self) -> int | None:
        """The n of `bpchar(n)`, `varchar(n)` or `bit(n)`."""
        return length_of(self.type)

    @property
    def mean_width_bytes(self) -> float | None:
        """Of its mean value; None of a type that has no width."""
        if self.elements is not None:
            return mean_payload(self.elements, self.base_type)
        if self.width is None:
            return None
        return (self.width.min_bytes + self.width.max_bytes) / 2


FoundValues = Annotated[
    tuple[tuple[str, ...], ...], Expected("a list of lists of strings", whole=True)
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated:
    """
    What the values of an index's expression or predicate are, where the twin cannot evaluate it.

    `columns` are those that it reads. `true_frac` is the share of rows that fulfil a predicate;
    `changed_frac` how many of the updates that change one of its columns change its value.
    `assumed` says that nobody stated it, so that figures go from the least to the most it may be.
    `true_for` and `false_for` are values of `columns`, each as the twin has it in COPY's text
    (NULL as there), for which a server has found a predicate true, and false or NULL.
    """

    expression: Text
    type: Annotated[str, Stored(Text, type_name)] = "text"
    width: StatedWidth | None = None
    ndistinct: Annotated[int, between(1, 2**62)] | None = None
    null_frac: Annotated[float, between(0, 1)] = 0.0
    true_frac: Annotated[float, between(0, 1)] | None = None
    changed_frac: Annotated[float, between(0, 1)] = 1.0
    columns: NameList = ()
    assumed: bool = False
    elements: Elements | None = field(default=None, metadata=in_file(unless_none=True))
    true_for: FoundValues = field(default=(), metadata=in_file(unless_empty=True))
    false_for: FoundValues = field(default=(), metadata=in_file(unless_empty=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexProfile:
    """
    An index over columns, expressions, or both, the columns first.

    `order` and `opclass` are those of the key columns, as CREATE INDEX has them; empty: default.
    """

    name: Name
    columns: NameList = field(default=(), metadata=in_file(unless_empty=True))
    expressions: NameList = field(default=(), metadata=in_file(unless_empty=True))
    unique: bool = False
    method: Literal["btree", "brin", "hash", "gin", "gist", "spgist"] = "btree"
    include: NameList = field(default=(), metadata=in_file(unless_empty=True))
    where: Text | None = None
    fillfactor: Annotated[int, between(10, 100)] | None = None
    deduplicate_items: bool | None = None
    order: GapList = field(default=(), metadata=in_file(unless_empty=True))
    opclass: GapList = field(default=(), metadata=in_file(unless_empty=True))
    nulls_not_distinct: bool = field(default=False, metadata=in_file(unless_empty=True))
    pages_per_range: Annotated[int, between(1, 131_072)] | None = field(
        default=None, metadata=in_file(unless_none=True)
    )
    fastupdate: bool | None = field(default=None, metadata=in_file(unless_none=True))
    gin_pending_list_limit: Annotated[int, between(64, 2_147_483_647)] | None = field(
        default=None, metadata=in_file(unless_none=True)
    )
    stated: Annotated[tuple[Stated, ...], Expected("a list of expressions and their values")] = (
        field(default=(), metadata=in_file(unless_empty=True))
    )

    @property
    def is_key(self) -> bool:
        """Whether rows may be found by it: unique, over columns, with all rows."""
        return self.unique and not self.expressions and self.where is None


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignKey:
    """A column that refers to the key of another table."""

    columns: NameList
    references: Text

    @property
    def column(self) -> str:
        """The column, for there is one."""
        return self.columns[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class PageKind:
    """
    Pages that have equally many rows: their share of a table's pages, and the rows of one.

    `redirects` of the rows are behind a redirected line pointer, as HOT updates leave them.
    `unused` line pointers before the last row are of nothing, where they are more than fillers
    leave, as VACUUM makes them of dead ones.
    """

    pages_frac: Annotated[float, between(0, 1)]
    rows: Annotated[int, between(0, ROWS_PER_PAGE_MAX)]
    redirects: Annotated[int, between(0, ROWS_PER_PAGE_MAX)] = field(
        default=0, metadata=in_file(only=lambda it: it.redirects > 0)
    )
    unused: Annotated[int, between(0, ROWS_PER_PAGE_MAX)] = field(
        default=0, metadata=in_file(only=lambda it: it.unused > 0)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TableProfile:
    """
    A table as it is loaded; `fillfactor` in percent.

    `pages` are kinds of pages by how full they are, of `rows_per_page` rows that a load puts on
    one; without them all are full.
    """

    name: Name
    rows: Annotated[int, between(0, ROWS_MAX)]
    unlogged: bool = field(default=False, metadata=in_file(only=lambda it: it.unlogged))
    fillfactor: Annotated[int, between(10, 100)] = 100
    pages: Annotated[tuple[PageKind, ...], Expected("a list of kinds of pages")] = field(
        default=(), metadata=in_file(unless_empty=True)
    )
    rows_per_page: Annotated[int, between(1, ROWS_PER_PAGE_MAX)] | None = field(
        default=None, metadata=in_file(unless_none=True)
    )
    reloptions: Words = field(default_factory=dict)
    columns: Annotated[tuple[ColumnProfile, ...], Expected("a list of columns")]
    indexes: Annotated[tuple[IndexProfile, ...], Expected("a list of indexes")] = ()
    foreign_keys: Annotated[tuple[ForeignKey, ...], Expected("a list of foreign keys")] = field(
        default=(), metadata=in_file(unless_empty=True)
    )
    observed: ObservedTable | None = None

    def column(self, name: str) -> ColumnProfile:
        """The column of that name, which must exist."""
        return next(column for column in self.columns if column.name == name)

    def loaded_at(self, fillfactor: int) -> TableProfile:
        """The same at a fillfactor; where that is another one, all pages are as a load leaves."""
        if fillfactor == self.fillfactor:
            return self
        return replace(self, fillfactor=fillfactor, pages=(), rows_per_page=None)

    @property
    def key_index(self) -> IndexProfile | None:
        """The first unique index over columns of all rows, by which rows are found."""
        return next((index for index in self.indexes if index.is_key), None)

    @property
    def key_columns(self) -> tuple[ColumnProfile, ...]:
        """
        The columns by which a statement names a row, the key last; none without a unique index.

        The key is the first column of the first unique index that counts the rows; those before
        it follow from the number of the row too.
        """
        index = self.key_index
        if index is None:
            return ()
        columns = [self.column(name) for name in index.columns]
        serial = (n for n, column in enumerate(columns) if column.values.kind == "serial")
        return tuple(columns[: next(serial, 0) + 1])

    @property
    def key(self) -> ColumnProfile | None:
        """The column that counts the rows in the first unique index; None without such an index."""
        columns = self.key_columns
        return columns[-1] if columns else None

    @property
    def has_ordered_keys(self) -> bool:
        """Whether the order of keys is that of their numbers, so that ranges of them exist."""
        columns = self.key_columns
        if len(columns) != 1:
            return False
        key = columns[0]
        counts = key.kind in (Kind.INTEGER, Kind.NUMBER, Kind.TIMESTAMP) or key.base_type == "date"
        return counts or key.values.ordered
