"""
What a migration makes of observed tables: names become tables, actions become edits of a profile.

An edit can be made to a table and to a sample of it alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from pgheadroom import _core
from pgheadroom.advise.row import index_label, labels_of
from pgheadroom.errors import InputError
from pgheadroom.migration.actions import (
    AddIndex,
    DropColumn,
    DropIndex,
    Remarkable,
    Rename,
    SetColumn,
    SetExpression,
    SetFillfactor,
    Statement,
    Target,
    Work,
)
from pgheadroom.observe.naming import profile_name
from pgheadroom.profile import ColumnProfile, IndexProfile, Profile, TableProfile, Values, Width
from pgheadroom.profile.model import KINDS

_UNKNOWN_WIDTH_BYTES = 32  # what PostgreSQL's planner assumes (get_typavgwidth, lsyscache.c)
_FIXED = {1: "bool", 2: "int2", 4: "int4", 8: "int8"}
_SERIAL = {"smallserial": "int2", "serial": "int4", "bigserial": "int8"}
_DEFAULT_FILLFACTOR = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexAdded:
    """A new index; `columns` are the catalog's names of all that it depends on."""

    line: int
    name: str
    columns: tuple[str, ...]
    index: IndexProfile
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexDropped:
    """An index goes."""

    line: int
    name: str
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnSet:
    """A column is new, or has another type; `assumed` says what is taken to be its width."""

    line: int
    name: str
    column: ColumnProfile
    is_new: bool
    assumed: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FillfactorSet:
    """Another fillfactor for new pages."""

    line: int
    fillfactor: int


Edit = IndexAdded | IndexDropped | ColumnSet | FillfactorSet


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """What concerns a table and cannot be judged, with the line that says it."""

    line: int
    table: str | None
    text: str


@dataclass(slots=True)
class Altered:
    """A table of the profile with what is done to it, in order."""

    table: TableProfile
    labels: dict[str, str]
    edits: list[Edit] = field(default_factory=list)


def edited(table: TableProfile, edits: Iterable[Edit]) -> TableProfile:
    """The table after the edits; of a sample of it as well."""
    for edit in edits:
        if isinstance(edit, IndexAdded):
            table = replace(table, indexes=(*table.indexes, edit.index))
        elif isinstance(edit, IndexDropped):
            left = tuple(index for index in table.indexes if index.name != edit.label)
            table = replace(table, indexes=left)
        elif isinstance(edit, FillfactorSet):
            table = replace(table, fillfactor=edit.fillfactor)
        elif edit.is_new:
            table = replace(table, columns=(*table.columns, edit.column))
        else:
            columns = tuple(
                edit.column if column.name == edit.column.name else column
                for column in table.columns
            )
            table = replace(table, columns=columns)
    return table


class Catalog:
    """The profile's tables by the names that they have while the migration goes on."""

    def __init__(self, profile: Profile) -> None:
        self.notes: list[Note] = []
        self.altered: dict[str, Altered] = {}
        self._profile = profile
        self._tables: dict[tuple[str, str], list[str]] = {}
        self._columns: dict[tuple[str, str], str] = {}
        self._indexes: dict[tuple[str, str], tuple[str, str]] = {}
        self._new: set[tuple[str | None, str]] = set()
        self._taken = {t.name for t in profile.tables} | {
            index.name for table in profile.tables for index in table.indexes
        }
        self._partitioned: set[tuple[str, str]] = set()
        leaves: dict[str, list[str]] = {}
        for table in profile.tables:
            observed = table.observed or {}
            self._tables[str(observed["schema"]), str(observed["name"])] = [table.name]
            if observed.get("parent"):
                leaves.setdefault(str(observed["parent"]), []).append(table.name)
            for index in observed["indexes"]:
                place = str(index["schema"]), str(index["name"])
                self._indexes[place] = table.name, str(index["name"])
        parents = (profile.server.observed or {}).get("partitioned") or ()
        full = {_full(found["schema"], found["name"]): found for found in parents}
        for name, found in full.items():
            below = [n for n, other in full.items() if other.get("parent") == name]
            members = [leaf for n in (name, *below) for leaf in leaves.get(n, ())]
            place = str(found["schema"]), str(found["name"])
            self._tables[place] = members
            self._partitioned.add(place)

    def follow(self, statements: Sequence[Statement]) -> None:
        """Take all actions in, statement by statement."""
        for statement in statements:
            for action in statement.actions:
                if isinstance(action, Rename):
                    self._rename(action)
                elif isinstance(action, DropIndex):
                    self._drop_index(statement.line, action)
                elif isinstance(action, Remarkable):
                    self._remark(statement.line, action)
                elif not isinstance(action, SetExpression | Work):
                    self._alter(statement.line, action)

    def _note(self, line: int, table: object, text: str) -> None:
        self.notes.append(Note(line=line, table=None if table is None else str(table), text=text))

    def _place(self, target: Target, known: Iterable[tuple[str, str]]) -> tuple[str, str] | None:
        """Schema and name; an unqualified name is the one in `public`, else the only one."""
        if target.schema is not None:
            place = (target.schema, target.name)
            return place if place in set(known) else None
        found = [place for place in known if place[1] == target.name]
        public = [place for place in found if place[0] == "public"]
        if public:
            return public[0]
        return found[0] if len(found) == 1 else None

    def _of(self, target: Target, line: int) -> list[Altered]:
        """The observed tables behind a name; none for one that is not known, which is noted."""
        if (target.schema, target.name) in self._new:
            return []
        place = self._place(target, self._tables)
        if place is None:
            self._note(line, target, "not in the profile: nothing is known of its updates")
            return []
        return [self._altered(key) for key in self._tables[place]]

    def _altered(self, key: str) -> Altered:
        if key not in self.altered:
            table = self._profile.table(key)
            self.altered[key] = Altered(table=table, labels=labels_of(table))
        return self.altered[key]

    def _is_partitioned(self, target: Target) -> bool:
        return self._place(target, self._tables) in self._partitioned

    def _remark(self, line: int, action: Remarkable) -> None:
        if action.kind == "new":
            self._new.add((action.table.schema, action.table.name))
        self._note(line, action.table, action.text)

    def _rename(self, action: Rename) -> None:
        if action.what == "index":
            place = self._place(action.old, self._indexes)
            if place is not None:
                self._indexes[place[0], action.new] = self._indexes.pop(place)
            return
        place = self._place(action.old, self._tables)
        if place is None:
            return
        if action.column is not None:
            for key in self._tables[place]:
                old = self._columns.pop((key, action.column), action.column)
                self._columns[key, action.new] = old
            return
        moved = (action.schema or place[0], action.new)
        self._tables[moved] = self._tables.pop(place)
        if place in self._partitioned:
            self._partitioned.add(moved)

    def _catalog_name(self, key: str, column: str) -> str:
        """A column's name when it was observed."""
        return self._columns.get((key, column), column)

    def _drop_index(self, line: int, action: DropIndex) -> None:
        wanted = action.index
        if action.table is not None:  # a constraint; its index has its name and the table's schema
            place = self._place(action.table, self._tables)
            if place is not None:
                wanted = Target(schema=place[0], name=wanted.name)
        place = self._place(wanted, self._indexes)
        if place is None:
            added = self._added(wanted.name)
            if added is not None:
                altered, edit = added
                altered.edits.remove(edit)
            elif action.table is None:
                self._note(line, None, f"index {wanted} is not in the profile")
            elif self._is_partitioned(action.table):
                text = f"constraint {wanted.name} goes: indexes of its partitions are not followed"
                self._note(line, action.table, text)
            return
        key, name = self._indexes.pop(place)
        self._drop(line, self._altered(key), name)

    def _added(self, name: str) -> tuple[Altered, IndexAdded] | None:
        for altered in self.altered.values():
            for edit in altered.edits:
                if isinstance(edit, IndexAdded) and edit.name == name:
                    return altered, edit
        return None

    def _drop(self, line: int, altered: Altered, name: str) -> None:
        table = altered.table
        label = index_label(table, name)
        if label is None:
            return
        if table.key_index is not None and table.key_index.name == label:
            self._note(
                line,
                table.name,
                f"{name} goes, by which the profile finds rows: judged as if it stayed",
            )
            return
        altered.edits.append(IndexDropped(line=line, name=name, label=label))

    def _alter(self, line: int, action: AddIndex | SetColumn | DropColumn | SetFillfactor) -> None:
        if self._is_partitioned(action.table):
            if isinstance(action, SetFillfactor):
                text = "a partitioned table has no fillfactor: set it on the partitions"
                self._note(line, action.table, text)
                return
            if isinstance(action, AddIndex) and action.only:
                text = "an index ON ONLY the partitioned table: those of partitions come later"
                self._note(line, action.table, text)
                return
        for altered in self._of(action.table, line):
            if isinstance(action, AddIndex):
                self._add_index(line, altered, action)
            elif isinstance(action, SetColumn):
                self._set_column(line, altered, action)
            elif isinstance(action, SetFillfactor):
                altered.edits.append(
                    FillfactorSet(line=line, fillfactor=action.fillfactor or _DEFAULT_FILLFACTOR)
                )
            else:
                self._drop_column(line, altered, action)

    def _drop_column(self, line: int, altered: Altered, action: DropColumn) -> None:
        column = self._catalog_name(altered.table.name, action.name)
        for index in (altered.table.observed or {})["indexes"]:
            if column in index["ends_hot_by_columns"]:
                self._drop(line, altered, str(index["name"]))

    def _add_index(self, line: int, altered: Altered, action: AddIndex) -> None:
        key = altered.table.name

        def labels(names: Iterable[str]) -> list[str]:
            found = (self._catalog_name(key, name) for name in names)
            return [altered.labels[name] for name in found if name in altered.labels]

        unknown = [
            name for name in action.depends if self._catalog_name(key, name) not in altered.labels
        ]
        if unknown or not action.depends:
            said = ", ".join(unknown) or "no column"
            self._note(line, key, f"an index over {said}, which the profile does not have")
        if not labels(action.depends):
            return
        depends = labels(action.depends)
        is_plain = action.method in ("btree", "brin") and not action.has_expressions
        columns = labels(action.columns) if is_plain else depends
        include = [] if action.method == "brin" else [n for n in depends if n not in columns]
        name = action.name or _chosen_name(str((altered.table.observed or {})["name"]), action)
        label = profile_name(name, self._taken)
        is_btree = action.method != "brin"
        made = IndexProfile(
            name=label,
            columns=tuple(columns),
            expressions=(),
            unique=False,
            method="btree" if is_btree else "brin",
            # Columns of a predicate end HOT as well; all rows are taken to be in the index.
            include=tuple(include),
            where=None,
            fillfactor=action.fillfactor if action.method == "btree" else None,
            deduplicate_items=None,
        )
        altered.edits.append(
            IndexAdded(
                line=line,
                name=name,
                columns=tuple(self._catalog_name(key, name) for name in action.depends),
                index=made,
                kind=action.kind if action.kind != "index" else f"index ({action.method})",
            )
        )

    def _set_column(self, line: int, altered: Altered, action: SetColumn) -> None:
        table = altered.table
        name = self._catalog_name(table.name, action.name)
        label = altered.labels.get(name)
        if action.is_new:
            if label is not None:  # IF NOT EXISTS
                return
            taken = {column.name for column in table.columns} | set(altered.labels.values())
            label = profile_name(name, taken)
            altered.labels[name] = label
        elif label is None:
            self._note(line, table.name, f"column {name} is not in the profile")
            return
        elif table.key is not None and table.key.name == label:
            self._note(
                line, table.name, f"{name} is the key of the profile: judged with its old type"
            )
            return
        column, assumed = stand_in(label, action.type)
        altered.edits.append(
            ColumnSet(line=line, name=name, column=column, is_new=action.is_new, assumed=assumed)
        )


def _chosen_name(table: str, action: AddIndex) -> str:
    """As PostgreSQL does (`ChooseIndexName`, src/backend/commands/indexcmds.c), if it is short."""
    if action.kind == "primary key":
        return f"{table}_pkey"
    endings = {"unique constraint": "key", "exclusion constraint": "excl", "index": "idx"}
    columns = (*action.columns, *(["expr"] if action.has_expressions else []))
    return "_".join((table, *columns, endings[action.kind]))


def _full(schema: str, name: str) -> str:
    return name if schema == "public" else f"{schema}.{name}"


def stand_in(name: str, spelled: str) -> tuple[ColumnProfile, str | None]:
    """
    A column of some type as a profile can have it, filled; and what is assumed of its width.

    Args:
        name: In the profile.
        spelled: The type as a statement names it.
    """
    spelled = _SERIAL.get(spelled.lower(), spelled)
    constant = Values(kind="constant")
    try:
        known = _core.Column(spelled, is_null=True)
    except InputError:
        known = None
    if known is not None:
        base = known.type_name.partition("(")[0]
        if base in KINDS and base not in ("text", "varchar", "bpchar", "numeric"):
            return ColumnProfile(name=name, type=known.type_name, values=constant), None
        if base == "numeric" or (base == "bpchar" and "(" in known.type_name):
            kind = known.type_name if base == "bpchar" else "numeric"
            return ColumnProfile(name=name, type=kind, values=constant), None
        if known.typlen in _FIXED and not known.type_name.endswith("]"):
            return ColumnProfile(name=name, type=_FIXED[known.typlen], values=constant), None
    length, assumed = _UNKNOWN_WIDTH_BYTES, f"{name}: {_UNKNOWN_WIDTH_BYTES} bytes a value"
    if known is not None and known.typlen > 0:
        length, assumed = known.typlen, ""
    elif known is not None and known.type_name.startswith("varchar("):
        limit = int(known.type_name.removeprefix("varchar(").rstrip(")"))
        length = min(limit, _UNKNOWN_WIDTH_BYTES)
        assumed = f"{name}: {length} bytes a value"
    column = ColumnProfile(
        name=name,
        type="text",
        values=Values(kind="random", ndistinct=1),
        width=Width(min_bytes=length, max_bytes=length),
    )
    return column, assumed or None
