"""
Whose tables the statements of a migration are, and what each of them does there.

Statements are followed in order: a table, column or index that was renamed is found by its new
name from there on, and one that the migration makes or drops is known to later statements.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from pgheadroom.advise.hot import HotIndex
from pgheadroom.advise.row import index_label
from pgheadroom.migration.actions import (
    Action,
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
from pgheadroom.migration.shape import (
    Altered,
    ColumnSet,
    ExpressionSet,
    FillfactorSet,
    IndexAdded,
    IndexDropped,
    Note,
    altered_of,
    stand_in,
)
from pgheadroom.migration.work import effect_of
from pgheadroom.observe.naming import profile_name
from pgheadroom.profile import IndexProfile, Profile
from pgheadroom.types import PgVersion

_DEFAULT_FILLFACTOR = 100
_WHOLE_DATABASE = ("vacuum full", "cluster", "reindex")


class Catalog:
    """The profile's tables by the names that they have while the migration goes on."""

    def __init__(self, profile: Profile) -> None:
        self.notes: list[Note] = []
        self.altered: dict[str, Altered] = {}
        self._profile = profile
        self._major = PgVersion.parse(profile.server.version).major
        self._tables: dict[tuple[str, str], list[str]] = {}
        self._indexes: dict[tuple[str, str], tuple[str, str]] = {}
        self._new: set[tuple[str | None, str]] = set()
        self._gone: set[Target] = set()
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
        self._observed = frozenset(self._tables)

    def follow(self, statements: Sequence[Statement]) -> None:
        """Take all actions in, statement by statement."""
        for statement in statements:
            # Rows that are there already have NULL in such a column, which refers to nothing.
            empty = {
                action.name
                for action in statement.actions
                if isinstance(action, SetColumn) and action.is_new and action.default == "none"
            }
            for action in statement.actions:
                is_empty = isinstance(action, Work) and action.column in empty
                self._weigh(statement.line, action, is_empty=is_empty)
                self._take(statement.line, action)
        for altered in self.altered.values():
            self._compare_names(statements[-1].line, altered)

    def _compare_names(self, line: int, altered: Altered) -> None:
        """
        Columns whose name another one has in the end: statements name columns, so they assign it.

        A column keeps its name in the profile as its identity.
        """
        updates = (altered.table.observed or {}).get("updates") or {}
        classes = updates.get("classes") or ()
        assigned = {name for one in classes for name in one.get("columns") or ()}
        for name in sorted(assigned):
            if altered.names.get(name, name) != name:
                text = f"{name} is another column than the one that was observed to be assigned"
                altered.open.append((line, text))

    def _compare_places(self, line: int, place: tuple[str | None, str]) -> None:
        """A new table under an observed one's name gets its updates: nothing is known of it."""
        schema, name = place
        if any(name == n and schema in (None, s) for s, n in self._observed):
            text = "it takes the place of a table whose updates were observed, and is not judged"
            self._note(line, Target(schema=schema, name=name), text)

    def _take(self, line: int, action: Action) -> None:
        if isinstance(action, Rename):
            self._rename(line, action)
        elif isinstance(action, DropIndex):
            self._drop_index(line, action)
        elif isinstance(action, Remarkable):
            self._remark(line, action)
        elif not isinstance(action, Work):
            self._alter(line, action)

    def _note(self, line: int, table: object, text: str, *, is_judged: bool = False) -> None:
        name = None if table is None else str(table)
        note = Note(line=line, table=name, text=text, is_judged=is_judged)
        if note not in self.notes:
            self.notes.append(note)

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

    def _is_new(self, target: Target) -> bool:
        """Whether the migration has made it; an unqualified name may be that of any schema."""
        if target.schema is None:
            return any(name == target.name for _, name in self._new)
        return any(
            name == target.name and schema in (None, target.schema) for schema, name in self._new
        )

    def _is_gone(self, target: Target) -> bool:
        """Whether the migration has dropped it."""
        return any(
            found.name == target.name and target.schema in (None, found.schema)
            for found in self._gone
        )

    def _of(self, target: Target, line: int) -> list[Altered]:
        """The observed tables behind a name; none for one that is not known, which is noted."""
        place = self._place(target, self._tables)
        if place is None:
            if not self._is_new(target) and not self._is_gone(target):
                self._note(line, target, "not in the profile: nothing is known of its updates")
            return []
        return [self._altered(key) for key in self._tables[place]]

    def _altered(self, key: str) -> Altered:
        if key not in self.altered:
            self.altered[key] = altered_of(self._profile.table(key), self._major)
        return self.altered[key]

    def tables_of(self, target: Target) -> tuple[str, ...]:
        """Names in the profile of a table, or of the partitions of one; none where it has none."""
        place = self._place(target, self._tables)
        return () if place is None else tuple(self._tables[place])

    def _is_partitioned(self, target: Target) -> bool:
        return self._place(target, self._tables) in self._partitioned

    def _weigh(self, line: int, action: Action, *, is_empty: bool) -> None:
        """
        What the action locks, rewrites and scans, of tables that were observed.

        A foreign key of a column that is new and NULL (`is_empty`) has nothing to validate
        (`transformFKConstraints`, src/backend/parser/parse_utilcmd.c).
        """
        if isinstance(action, AddIndex) and self._exists(action):
            return
        for altered, is_other in self._touched(line, action):
            old_type = None
            if isinstance(action, SetColumn):
                identity = altered.names.get(action.name)
                old_type = None if identity is None else altered.types.get(identity)
                if action.is_new and identity is not None:  # IF NOT EXISTS
                    continue
            effect = effect_of(action, old_type=old_type, is_partition=is_other)
            is_key = isinstance(action, Work) and action.kind == "add foreign key"
            if effect is not None and is_empty and is_key:
                effect = replace(effect, effort="nothing")
            if effect is not None:
                altered.effects.append((line, effect))

    def _touched(self, line: int, action: Action) -> list[tuple[Altered, bool]]:
        named: list[tuple[Target, bool]] = []
        if isinstance(action, Work):
            both = ((action.table, False), (action.other, True))
            named = [(target, other) for target, other in both if target is not None]
            if action.table is None and action.index is not None:
                place = self._place(action.index, self._indexes)
                return [] if place is None else [(self._altered(self._indexes[place][0]), False)]
            if action.table is None and action.kind in _WHOLE_DATABASE:
                return [(self._altered(table.name), False) for table in self._profile.tables]
        elif isinstance(action, DropIndex):
            place = self._place(self._constraint(action), self._indexes)
            if place is not None:
                return [(self._altered(self._indexes[place][0]), False)]
            named = [] if action.table is None else [(action.table, False)]
        elif isinstance(action, Rename):
            named = [] if action.what == "index" else [(action.old, False)]
        elif not isinstance(action, Remarkable):
            named = [(action.table, False)]
        return [(found, other) for t, other in named for found in self._of(t, line)]

    def _exists(self, action: AddIndex) -> bool:
        """Whether IF NOT EXISTS makes nothing of it."""
        if not action.if_not_exists or action.name is None:
            return False
        table = self._place(action.table, self._tables)
        schema = action.table.schema if table is None else table[0]
        return (schema, action.name) in self._indexes

    def _remark(self, line: int, action: Remarkable) -> None:
        if action.kind == "new":
            if self._place(action.table, self._tables) is None:
                self._new.add((action.table.schema, action.table.name))
                self._note(line, action.table, action.text, is_judged=True)
                self._compare_places(line, (action.table.schema, action.table.name))
            return
        place = self._place(action.table, self._tables)
        if action.kind == "dropped":
            self._new = {found for found in self._new if found[1] != action.table.name}
            self._note(line, action.table, action.text, is_judged=True)
            self._gone.add(action.table)
            if place is not None:
                self._gone.add(Target(schema=place[0], name=place[1]))
                gone = self._tables.pop(place)
                self._indexes = {k: v for k, v in self._indexes.items() if v[0] not in gone}
            return
        if self._is_new(action.table) and place is None:
            return
        self._note(line, action.table, action.text)
        for key in () if place is None else self._tables[place]:
            self._altered(key).open.append((line, action.text))

    def _rename(self, line: int, action: Rename) -> None:
        if action.what == "index":
            place = self._place(action.old, self._indexes)
            if place is not None:
                self._indexes[place[0], action.new] = self._indexes.pop(place)
            return
        place = self._place(action.old, self._tables)
        if place is None and action.column is None and action.schema is None:
            index = self._place(action.old, self._indexes)
            if index is not None:  # ALTER TABLE renames indexes too
                self._indexes[index[0], action.new] = self._indexes.pop(index)
                return
        if place is None:
            known = {(schema or "public", name) for schema, name in self._new}
            made = self._place(action.old, known)
            if made is not None and action.column is None:
                self._new.add((action.schema or made[0], action.new))
                self._compare_places(line, (action.schema or made[0], action.new))
            return
        if action.column is not None:
            for key in self._tables[place]:
                names = self._altered(key).names
                if action.column in names:
                    names[action.new] = names.pop(action.column)
            return
        moved = (action.schema or place[0], action.new)
        self._tables[moved] = self._tables.pop(place)
        if place in self._partitioned:
            self._partitioned.remove(place)
            self._partitioned.add(moved)
        if action.schema is not None:  # its indexes move along
            keys = self._tables[moved]
            self._indexes = {
                (moved[0] if found[0] in keys else schema, name): found
                for (schema, name), found in self._indexes.items()
            }

    def _constraint(self, action: DropIndex) -> Target:
        """The index behind it: a constraint's has its name and the table's schema."""
        if action.table is None:
            return action.index
        place = self._place(action.table, self._tables)
        return action.index if place is None else Target(schema=place[0], name=action.index.name)

    def _drop_index(self, line: int, action: DropIndex) -> None:
        place = self._place(self._constraint(action), self._indexes)
        if place is None:
            if action.table is None:
                text = f"index {action.index} is not in the profile"
                self._note(line, None, text, is_judged=True)
            elif self._is_partitioned(action.table):
                text = (
                    f"constraint {action.index.name} goes: indexes of its partitions are not "
                    "followed"
                )
                self._note(line, action.table, text)
            return
        key, identity = self._indexes.pop(place)
        self._drop(line, self._altered(key), identity)

    def _drop(self, line: int, altered: Altered, identity: str) -> None:
        index = altered.indexes.pop(identity, None)
        if index is None:
            return
        for edit in altered.edits:
            if isinstance(edit, IndexAdded) and edit.identity == identity:
                altered.edits.remove(edit)
                return
        table = altered.table
        label = index_label(table, identity)
        if table.key_index is not None and table.key_index.name == label:
            label = None  # the profile finds rows by it
        altered.edits.append(IndexDropped(line=line, name=index.name, label=label))

    def _alter(
        self,
        line: int,
        action: AddIndex | SetColumn | SetExpression | DropColumn | SetFillfactor,
    ) -> None:
        if self._is_partitioned(action.table):
            if isinstance(action, SetFillfactor):
                text = "a partitioned table has no fillfactor: set it on the partitions"
                self._note(line, action.table, text, is_judged=True)
                return
            if isinstance(action, AddIndex) and action.only:
                text = "an index ON ONLY the partitioned table: those of partitions come later"
                self._note(line, action.table, text, is_judged=True)
                return
        for altered in self._of(action.table, line):
            if isinstance(action, AddIndex):
                self._add_index(line, altered, action)
            elif isinstance(action, SetColumn):
                self._set_column(line, altered, action)
            elif isinstance(action, SetExpression):
                _set_expression(line, altered, action)
            elif isinstance(action, SetFillfactor):
                altered.edits.append(
                    FillfactorSet(line=line, fillfactor=action.fillfactor or _DEFAULT_FILLFACTOR)
                )
            else:
                self._drop_column(line, altered, action)

    def _drop_column(self, line: int, altered: Altered, action: DropColumn) -> None:
        """It takes with it the generated columns that read it, and all indexes over any of them."""
        identity = altered.names.pop(action.name, None)
        if identity is None:
            return
        gone = {identity} | {g for g, reads in altered.generated.items() if identity in reads}
        altered.names = {n: i for n, i in altered.names.items() if i not in gone}
        altered.generated = {g: r for g, r in altered.generated.items() if g not in gone}
        for key, index in list(altered.indexes.items()):
            if index.columns & gone:
                self._indexes = {
                    place: found
                    for place, found in self._indexes.items()
                    if found != (altered.table.name, key)
                }
                self._drop(line, altered, key)

    def _add_index(self, line: int, altered: Altered, action: AddIndex) -> None:
        if self._exists(action):
            return
        names = altered.names
        unknown = [name for name in action.depends if name not in names]
        if unknown or not (action.depends or action.whole_row):
            said = ", ".join(unknown) or "no column"
            text = f"an index over {said}, which the profile does not have"
            self._note(line, altered.table.name, text)
            altered.open.append((line, text))
        virtual = [n for n in action.depends if names.get(n) in altered.virtual]
        if virtual:
            text = f"{', '.join(virtual)} is a virtual generated column, which no index can have"
            altered.open.append((line, text))
        if len(unknown) == len(action.depends) and not action.whole_row:
            return
        name = action.name or _chosen_name(str((altered.table.observed or {})["name"]), action)
        hot = _hot_index(altered, action, name)
        schema = str((altered.table.observed or {})["schema"])
        identity = name
        while identity in altered.indexes:
            identity += "+"
        altered.indexes[identity] = hot
        self._indexes[schema, name] = altered.table.name, identity
        altered.edits.append(
            IndexAdded(
                line=line,
                name=name,
                identity=identity,
                columns=tuple(n for n in action.depends if n in names),
                hot=hot,
                index=self._stand_in(altered, action, name),
                kind=action.kind if action.kind != "index" else f"index ({action.method})",
            )
        )

    def _stand_in(self, altered: Altered, action: AddIndex, name: str) -> IndexProfile | None:
        """An index of a profile that ends HOT for the same columns."""

        def labels(names: Iterable[str]) -> list[str]:
            found = (altered.names.get(name, "") for name in names)
            return [altered.labels[name] for name in found if name in altered.labels]

        depends = labels(action.depends)
        if action.whole_row:
            depends = [column.name for column in altered.table.columns][:32]
        if not depends:
            return None
        is_plain = action.method in ("btree", "brin") and not action.has_expressions
        columns = labels(action.columns) if is_plain and not action.whole_row else depends
        include = [] if action.method == "brin" else [n for n in depends if n not in columns]
        is_btree = action.method != "brin"
        return IndexProfile(
            name=profile_name(name, self._taken),
            columns=tuple(columns or depends),
            expressions=(),
            unique=False,
            method="btree" if is_btree else "brin",
            # Columns of a predicate end HOT as well; all rows are taken to be in the index.
            include=tuple(include) if columns else (),
            where=None,
            fillfactor=action.fillfactor if action.method == "btree" else None,
            deduplicate_items=None,
        )

    def _set_column(self, line: int, altered: Altered, action: SetColumn) -> None:
        table = altered.table
        identity = altered.names.get(action.name)
        if action.is_new:
            if identity is not None:  # IF NOT EXISTS
                return
            identity = self._new_column(altered, action)
        elif identity is None:
            text = f"column {action.name} is not in the profile"
            self._note(line, table.name, text, is_judged=True)
            return
        altered.types[identity] = action.type
        label = altered.labels.get(identity)
        if label is None or action.generated == "virtual":
            return
        column, assumed = stand_in(label, action.type)
        if table.key is not None and table.key.name == label:
            column, assumed = None, None  # type: ignore[assignment]
        altered.edits.append(
            ColumnSet(
                line=line,
                name=action.name,
                column=column,
                is_new=action.is_new,
                assumed=assumed,
            )
        )

    def _new_column(self, altered: Altered, action: SetColumn) -> str:
        identity = action.name
        known = {*altered.types, *altered.labels, *altered.names.values()}
        while identity in known:
            identity += "+"
        taken = {column.name for column in altered.table.columns} | set(altered.labels.values())
        altered.labels[identity] = profile_name(action.name, taken)
        altered.names[action.name] = identity
        if action.generated == "stored":
            altered.generated[identity] = altered.identities(action.reads)
        elif action.generated == "virtual":
            altered.virtual.add(identity)
        return identity


def _set_expression(line: int, altered: Altered, action: SetExpression) -> None:
    identity = altered.names.get(action.name)
    if identity is None or identity in altered.virtual:
        return
    if action.reads is None:
        altered.generated.pop(identity, None)
    else:
        altered.generated.pop(identity, None)
        altered.generated[altered.forget(identity)] = altered.identities(action.reads)
    altered.edits.append(ExpressionSet(line=line, name=action.name, reads=action.reads))


def _hot_index(altered: Altered, action: AddIndex, name: str) -> HotIndex:
    """What it reads; parts that a parser does not tell apart count as expressions."""
    keys, include = altered.identities(action.columns), altered.identities(action.include)
    predicate = altered.identities(action.predicate_columns)
    rest = altered.identities(action.depends) - keys - include - predicate
    return HotIndex(
        name=name,
        method=action.method,
        keys=keys,
        expressions=rest | altered.identities(action.expression_columns),
        include=include,
        predicate=predicate,
        whole_row=action.whole_row,
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
