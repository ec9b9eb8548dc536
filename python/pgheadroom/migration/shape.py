"""
What a migration makes of an observed table: edits of its profile, and what decides HOT.

Each column has an identity that renames do not change, and that a later column of the same name
does not share. An edit can be made to a table and to a sample of it alike; what decides which
updates can be HOT is kept beside, as a `HotShape` before and after.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from pgheadroom import _core
from pgheadroom.advise.hot import Blocker, HotIndex, HotShape, shape_of
from pgheadroom.advise.row import labels_of
from pgheadroom.errors import InputError
from pgheadroom.migration.effect import Effect
from pgheadroom.profile import ColumnProfile, IndexProfile, TableProfile, Values, Width
from pgheadroom.profile.column_types import FORMS, UNKNOWN_WIDTH_BYTES, base_of

_FIXED = {1: "bool", 2: "int2", 4: "int4", 8: "int8"}
_SERIAL = {"smallserial": "int2", "serial": "int4", "bigserial": "int8"}


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexAdded:
    """
    A new index.

    `columns` are the names, as statements have them at that line, of all that it depends on;
    `hot` is what it reads, by identities of columns; `identity` is its own. `index` stands for it
    in a profile; None where the profile has none of its columns. `keys`, `include` and `predicate`
    are those of the columns that the key and its expressions, INCLUDE and the predicate name.
    """

    line: int
    name: str
    identity: str
    columns: tuple[str, ...]
    hot: HotIndex
    index: IndexProfile | None
    kind: str
    keys: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    predicate: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexDropped:
    """
    An index goes; `label` is its name in the profile, None where that keeps it.

    `column`: it goes with this column.
    """

    line: int
    name: str
    label: str | None
    column: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnSet:
    """
    A column is new, or has another type; `assumed` says what is taken to be its width.

    `is_null`: a new one has no default, so that it is NULL until a statement assigns it.
    `column` is None where the profile finds rows by it, and keeps it as it is.
    """

    line: int
    name: str
    column: ColumnProfile | None
    is_new: bool
    assumed: str | None
    is_null: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpressionSet:
    """A generated column reads other columns, or is none any more."""

    line: int
    name: str
    reads: tuple[str, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FillfactorSet:
    """Another fillfactor for new pages."""

    line: int
    fillfactor: int


Edit = IndexAdded | IndexDropped | ColumnSet | ExpressionSet | FillfactorSet


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """What concerns a table, with the line that says it; `is_judged`: nothing is left open."""

    line: int
    table: str | None
    text: str
    is_judged: bool = False


@dataclass(slots=True)
class Altered:
    """
    A table of the profile with what is done to it, in order.

    Attributes:
        table: As observed.
        labels: Names of columns in the profile, by identity.
        names: Identities by the names that columns have now.
        types: As PostgreSQL spells them, by identity.
        before: What decided which updates could be HOT.
        indexes: What does now, by the index's identity.
        generated: Stored generated columns now.
        virtual: Virtual ones.
        edits: What is done.
        effects: What that locks, rewrites and scans, each with its line.
        open: What cannot be judged of it, each with its line.
        called: Names that identities once had, where those are none.
        clustered: An index of it is marked by CLUSTER.
        nullable: Whether a column can be NULL, by identity, where that is known.
        nulls: Columns that have NULLs now, by identity, with how that is known.
        has_rows: It has rows now, as when it was observed; what a DELETE leaves is not known.
    """

    table: TableProfile
    labels: dict[str, str]
    names: dict[str, str]
    types: dict[str, str]
    before: HotShape
    indexes: dict[str, HotIndex]
    generated: dict[str, frozenset[str]]
    virtual: set[str]
    edits: list[Edit] = field(default_factory=list)
    effects: list[tuple[int, Effect]] = field(default_factory=list)
    open: list[tuple[int, str]] = field(default_factory=list)
    called: dict[str, str] = field(default_factory=dict)
    clustered: bool = False
    nullable: dict[str, bool] = field(default_factory=dict)
    nulls: dict[str, str] = field(default_factory=dict)
    has_rows: bool = False

    @property
    def after(self) -> HotShape:
        """What decides which updates can be HOT from here on."""
        return HotShape(
            major=self.before.major,
            indexes=tuple(self.indexes.values()),
            generated=dict(self.generated),
        )

    def copied(self) -> Altered:
        """The same, which what comes later leaves alone."""
        return replace(
            self,
            labels=dict(self.labels),
            names=dict(self.names),
            types=dict(self.types),
            indexes=dict(self.indexes),
            generated=dict(self.generated),
            virtual=set(self.virtual),
            edits=list(self.edits),
            effects=list(self.effects),
            open=list(self.open),
            called=dict(self.called),
            nullable=dict(self.nullable),
            nulls=dict(self.nulls),
        )

    def identities(self, names: Iterable[str]) -> frozenset[str]:
        """Of columns that the table has now."""
        return frozenset(self.names[name] for name in names if name in self.names)

    def spelled(self, identity: str) -> str:
        """The name that a column has now, or had last; never an identity that is no name."""
        last = self.called.get(identity, identity)
        return next((now for now, found in self.names.items() if found == identity), last)

    def named(self, blocker: Blocker) -> Blocker:
        """What ends HOT, by the names that columns have now."""
        return replace(
            blocker,
            column=self.spelled(blocker.column),
            assigned=self.spelled(blocker.assigned),
        )

    def rename_index(self, identity: str, new: str) -> None:
        """It is called otherwise from here on."""
        if identity in self.indexes:
            self.indexes[identity] = replace(self.indexes[identity], name=new)

    def forget(self, identity: str) -> str:
        """A generated column is computed otherwise: what was known of its values is void."""
        fresh = f"{identity}*"
        self.called[fresh] = self.called.get(identity, identity)
        self.names = {n: fresh if i == identity else i for n, i in self.names.items()}
        for book in (self.labels, self.types):
            if identity in book:
                book[fresh] = book.pop(identity)

        def renamed(columns: frozenset[str]) -> frozenset[str]:
            return frozenset(fresh if name == identity else name for name in columns)

        self.indexes = {
            key: replace(
                index,
                keys=renamed(index.keys),
                expressions=renamed(index.expressions),
                include=renamed(index.include),
                predicate=renamed(index.predicate),
            )
            for key, index in self.indexes.items()
        }
        return fresh


def altered_of(table: TableProfile, major: int) -> Altered:
    """The table before anything is done to it."""
    shape = shape_of(table, major)
    columns = () if table.observed is None else table.observed.columns
    indexes = () if table.observed is None else table.observed.indexes
    names = [column.name for column in columns]
    return Altered(
        table=table,
        labels=labels_of(table),
        names={name: name for name in names},
        types={column.name: column.type for column in columns},
        before=shape,
        indexes={index.name: index for index in shape.indexes},
        generated=dict(shape.generated),
        virtual={c.name for c in columns if c.generated == "virtual"},
        nullable={
            # What was measured is NOT NULL: other shares come from samples and ANALYZE.
            str(c["name"]): c["null_frac_evidence"] != "measured"
            for c in columns
            if "null_frac_evidence" in c
        },
        nulls={
            column.name: f"{100 * column.null_frac:.3g} % of its values when it was observed"
            for column in columns
            if column.null_frac
        },
        has_rows=table.rows > 0,
        clustered=any(index.is_clustered for index in indexes),
    )


def edited(table: TableProfile, edits: Iterable[Edit]) -> TableProfile:
    """The table after the edits; of a sample of it as well."""
    for edit in edits:
        if isinstance(edit, IndexAdded):
            if edit.index is not None:
                table = replace(table, indexes=(*table.indexes, edit.index))
        elif isinstance(edit, IndexDropped):
            left = tuple(index for index in table.indexes if index.name != edit.label)
            table = replace(table, indexes=left)
        elif isinstance(edit, FillfactorSet):
            table = replace(table, fillfactor=edit.fillfactor)
        elif isinstance(edit, ColumnSet) and edit.column is not None:
            if edit.is_new:
                table = replace(table, columns=(*table.columns, edit.column))
                continue
            columns = tuple(
                edit.column if column.name == edit.column.name else column
                for column in table.columns
            )
            table = replace(table, columns=columns)
    return table


def stand_in(
    name: str, spelled: str, *, called: str | None = None
) -> tuple[ColumnProfile, str | None]:
    """
    A column of some type as a profile can have it, filled; and what is assumed of its width.

    Args:
        name: In the profile.
        spelled: The type as a statement names it.
        called: The column's own name; None: the same.
    """
    shown = called or name
    spelled = _SERIAL.get(spelled.lower(), spelled)
    constant = Values(kind="constant")
    try:
        known = _core.Column(spelled, is_null=True)
    except InputError:
        known = None
    if known is not None:
        base = base_of(known.type_name)
        form = FORMS.get(base)
        by_itself = form is not None and not form.width and base not in ("bpchar", "numeric")
        if by_itself:
            return ColumnProfile(name=name, type=known.type_name, values=constant), None
        if base == "numeric" or (base == "bpchar" and "(" in known.type_name):
            kind = known.type_name if base == "bpchar" else "numeric"
            return ColumnProfile(name=name, type=kind, values=constant), None
        if known.typlen in _FIXED and not known.type_name.endswith("]"):
            return ColumnProfile(name=name, type=_FIXED[known.typlen], values=constant), None
    length, assumed = UNKNOWN_WIDTH_BYTES, f"{shown}: {UNKNOWN_WIDTH_BYTES} bytes a value"
    if known is not None and known.typlen > 0:
        length, assumed = known.typlen, ""
    elif known is not None and known.type_name.startswith("varchar("):
        limit = int(known.type_name.removeprefix("varchar(").rstrip(")"))
        length = min(limit, UNKNOWN_WIDTH_BYTES)
        assumed = f"{shown}: {length} bytes a value"
    column = ColumnProfile(
        name=name,
        type="text",
        values=Values(kind="random", ndistinct=1),
        width=Width(min_bytes=length, max_bytes=length),
    )
    return column, assumed or None
