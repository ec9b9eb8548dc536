"""
Whose tables the statements of a migration are, and what each of them does there.

Statements are followed in order: a table, column or index that was renamed is found by its new
name from there on, and one that the migration makes or drops is known to later statements.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from pgheadroom.advise.row import index_label
from pgheadroom.migration import actions
from pgheadroom.migration.actions import Action, Remarkable, Rename, Statement, Target, Work
from pgheadroom.migration.added_index import hot_index, keys_of, of_row, stand_in_of
from pgheadroom.migration.columns import new_column, set_expression
from pgheadroom.migration.conditional import Conditions
from pgheadroom.migration.index_name import chosen_name
from pgheadroom.migration.names import IndexAt, Names
from pgheadroom.migration.new_key import constrain_domain, new_key
from pgheadroom.migration.nulls import not_null_already, refused_nulls, take_nulls, take_writes
from pgheadroom.migration.shape import (
    Altered,
    ColumnSet,
    FillfactorSet,
    IndexAdded,
    IndexDropped,
    Note,
    altered_of,
    stand_in,
)
from pgheadroom.migration.transaction import Held, Later, refused
from pgheadroom.migration.weighing import (
    constraint_index,
    goes_on_to_heirs,
    keys_gone,
    other_ends,
    parents_locked,
    size_of,
    unknown_key,
    weighed,
)
from pgheadroom.migration.work import Effect, fill, joined, kept
from pgheadroom.profile import Profile
from pgheadroom.types import PgVersion

_DEFAULT_FILLFACTOR = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class _State:
    """What a transaction, or a savepoint, began with."""

    names: Names
    altered: dict[str, Altered]
    notes: list[Note]
    held: Held


class Catalog:
    """The profile's tables by the names that they have while the migration goes on."""

    def __init__(self, profile: Profile) -> None:
        self.notes: list[Note] = []
        self.altered: dict[str, Altered] = {}
        self.names = Names(profile)
        self._blind: int | None = None
        self._profile = profile
        self._major = PgVersion.parse(profile.server.version).major
        self._taken = {t.name for t in profile.tables} | {
            index.name for table in profile.tables for index in table.indexes
        }

    def follow(self, statements: Sequence[Statement]) -> None:
        """Take all actions in, statement by statement."""
        held = Held()
        begun: int | None = None
        saved: dict[str, _State] = {}
        keeps = any(statement.takes_back is not None for statement in statements)
        for statement in statements:
            if statement.is_command and statement.connects is None:
                continue
            if statement.transaction is None or statement.transaction != begun:
                self._end(held)
                held, saved = Held(), {}
                if keeps and statement.transaction is not None:
                    saved[""] = self._state(held)
            begun = statement.transaction
            if begun is not None and statement.takes_back in saved:
                self._end(held)
                held = self._take_back(statement.line, saved[statement.takes_back])
                continue
            if keeps and begun is not None and statement.savepoint is not None:
                saved[statement.savepoint] = self._state(held)
            self._follow(statement, held)
        self._end(held)
        for altered in self.altered.values():
            self._compare_names(statements[-1].line, altered)

    def _follow(self, statement: Statement, held: Held) -> None:
        """One statement."""
        for text in refused(statement):
            self._note(statement.line, None, text)
        for since, text in statement.newer:
            if self._major < since:
                said = f"PostgreSQL {self._major} refuses {text}, which came with {since}"
                self._note(statement.line, None, said)
        # Rows that are there already have NULL in such a column, which refers to nothing.
        empty = {
            action.name
            for action in statement.actions
            if isinstance(action, actions.SetColumn) and action.is_new and action.default == "none"
        }
        found: dict[str, list[Effect]] = {}
        for target, text in parents_locked(statement, self.names):
            self._note(statement.line, target, text, is_judged=True)
        conditions = self._conditions(statement.line)
        for written in statement.actions:
            action = conditions.kept(written)
            if action is None:
                continue
            is_empty = isinstance(action, Work) and action.column in empty
            own = [
                (altered, not_null_already(effect, action, altered, self._blind))
                for altered, effect in self._weigh(statement.line, action, is_empty=is_empty)
            ]
            unless = conditions.unless(action)
            for altered, effect in own:
                made_so = effect.unless or (unless if effect.effort != "nothing" else None)
                found.setdefault(altered.table.name, []).append(replace(effect, unless=made_so))
            for key, effect in self._other_ends(statement.line, action, own):
                found.setdefault(key, []).append(effect)
            gone = keys_gone(action, self.names, own)
            of_table = self._of_table(statement.line, action)
            self._note_refused(statement.line, action, of_table)
            self._take(statement.line, action)
            for altered in of_table:
                take_nulls(action, altered, self.names)
            self.names.keys.drop(gone)
        self._take_writes(statement)
        made = {key: kept(joined(effects), held.locks.get(key)) for key, effects in found.items()}
        for key, whole in made.items():
            self.of_key(key).effects += [(statement.line, effect) for effect in whole]
        long = {
            key: self._later(statement.line, key)
            for key, whole in made.items()
            if any(effect.effort in ("scan", "build", "rewrite") for effect in whole)
        }
        long |= dict(self._filled(statement, held))
        held.take(statement.line, made, long)
        if statement.problem is not None and self._blind is None:
            self._blind = statement.line

    def _of_table(self, line: int, action: Action) -> list[Altered]:
        """The observed tables that an action changes, by the name of its table."""
        table = getattr(action, "table", None)
        if not isinstance(table, Target) or self.names.table(table) is None:
            return []
        return self._reached(table, line, action)

    def _note_refused(self, line: int, action: Action, tables: Sequence[Altered]) -> None:
        """What PostgreSQL refuses for the rows that are there; after a DO nobody knows them."""
        text = refused_nulls(action, tables, self.names) if self._blind is None else None
        if text is not None:
            self._note(line, getattr(action, "table", None), text)

    def _take_writes(self, statement: Statement) -> None:
        for found in statement.fills:
            for key in self.names.tables_of(found.table):
                take_writes(found, self.of_key(key))

    def _conditions(self, line: int) -> Conditions:
        def say(table: Target, text: str, *, is_judged: bool) -> None:
            self._note(line, table, text, is_judged=is_judged)

        def leave_open(tables: Sequence[Altered], text: str) -> None:
            for altered in tables:
                if (line, text) not in altered.open:
                    altered.open.append((line, text))

        return Conditions(
            self.names, lambda target: self._of(target, line), say, leave_open, self._blind
        )

    def _other_ends(
        self, line: int, action: Action, own: Sequence[tuple[Altered, Effect]]
    ) -> Iterator[tuple[str, Effect]]:
        """What is done to the tables at the other end of foreign keys."""
        if not self.names.keys.is_known:
            text = unknown_key(action, self.names, own)
            if text is not None:
                self._note(line, getattr(action, "table", None), text, is_judged=True)
            return
        for end in other_ends(action, self.names, own):
            tables = self.names.tables.get(end.place, ())
            for key in tables:
                effect = end.effect
                if effect.waits_for is not None:
                    read = size_of(self._of(effect.waits_for, line))
                    effect = replace(effect, read_bytes=read)
                yield key, effect
            target = Target(schema=end.place[0], name=end.place[1])
            is_new = not tables and self.names.is_new_place(target) is not None
            if (not tables and not is_new) or end.place in self.names.partitioned:
                text = (
                    f"{end.effect.what}: locked with {end.effect.lock} until its transaction ends"
                )
                self._note(line, target, text, is_judged=True)

    def _filled(self, statement: Statement, held: Held) -> Iterator[tuple[str, Later]]:
        """Tables whose rows are written while others wait for the transaction's locks."""
        for found in statement.fills if held.stopped else ():
            for key in self.names.tables_of(found.table):
                yield key, self._later(statement.line, key)
                if key in held.stopped:
                    effect = fill(found, held.stopped[key])
                    self.of_key(key).effects.append((statement.line, effect))

    def _later(self, line: int, key: str) -> Later:
        observed = self._profile.table(key).observed
        assert observed is not None, "the caller has checked that tables are observed"
        place = self.names.called(key) or (observed.schema, observed.name)
        schema = None if place[0] == "public" else place[0]
        size = observed.main_bytes
        return Later(
            line=line,
            table=Target(schema=schema, name=place[1]),
            size_bytes=None if size is None else int(size),
        )

    def _end(self, held: Held) -> None:
        """Locks go: what has waited for other tables is told."""
        for key, line, effect in held.waiting():
            self.of_key(key).effects.append((line, effect))

    def _state(self, held: Held) -> _State:
        return _State(
            names=self.names.copied(),
            altered={key: altered.copied() for key, altered in self.altered.items()},
            notes=list(self.notes),
            held=held.copied(),
        )

    def _take_back(self, line: int, state: _State) -> Held:
        """As it was then; what statements have locked, rewritten and read meanwhile they have."""
        worked = {key: altered.effects for key, altered in self.altered.items()}
        self.names = state.names.copied()
        self.altered = {key: altered.copied() for key, altered in state.altered.items()}
        self.notes[:] = state.notes
        for key, effects in worked.items():
            if effects:
                self.of_key(key).effects = effects
        self._note(line, None, "what came before it in its transaction is undone", is_judged=True)
        held = state.held.copied()
        held.waited = {}
        return held

    def _weigh(
        self, line: int, action: Action, *, is_empty: bool
    ) -> Iterator[tuple[Altered, Effect]]:
        yield from weighed(
            action,
            self.names,
            lambda target: self._reached(target, line, action),
            [self.of_key(table.name) for table in self._profile.tables]
            if isinstance(action, actions.Domain)
            or (isinstance(action, Work) and action.table is None and action.index is None)
            else [],
            is_empty=is_empty,
        )
        if isinstance(action, Work) and action.kind == "cluster":
            self._cluster(line, action)

    def _cluster(self, line: int, action: Work) -> None:
        """An index is marked by CLUSTER USING; CLUSTER alone goes by such marks."""
        if action.table is None:
            if not any(altered.clustered for altered in self.altered.values()):
                text = (
                    "CLUSTER without a table goes over those that were clustered before: no table "
                    "of the profile was"
                )
                self._note(line, None, text, is_judged=True)
            return
        for altered in self._of(action.table, line):
            altered.clustered |= action.index is not None

    def _compare_names(self, line: int, altered: Altered) -> None:
        """
        Columns whose name another one has in the end: statements name columns, so they assign it.

        A column keeps its name in the profile as its identity.
        """
        observed = altered.table.observed
        classes = () if observed is None else observed.updates.classes
        assigned = {name for one in classes for name in one.columns}
        for name in sorted(assigned):
            if altered.names.get(name, name) != name:
                text = f"{name} is another column than the one that was observed to be assigned"
                altered.open.append((line, text))

    def _compare_places(self, line: int, place: tuple[str | None, str]) -> None:
        """A new table under an observed one's name gets its updates: nothing is known of it."""
        schema, name = place
        for (of, observed), keys in self.names.observed.items():
            if name == observed and schema in (None, of):
                text = "another table takes its name, of which nothing was observed"
                for key in keys:
                    self.of_key(key).open.append((line, text))
                if not keys:
                    self._note(line, Target(schema=schema, name=name), text)

    def _take(self, line: int, action: Action) -> None:
        if isinstance(action, Rename):
            self._rename(line, action)
        elif isinstance(action, actions.DropIndex):
            self._drop_index(line, action)
        elif isinstance(action, Remarkable):
            self._remark(line, action)
        elif isinstance(action, Work):
            self._constrain(line, action)
            if action.kind == "add foreign key":
                new_key(self.names, self.of_key, action)
        elif isinstance(action, actions.Domain):
            constrain_domain(self.names, action)
        else:
            self._alter(line, action)

    def _constrain(self, line: int, action: Work) -> None:
        """Which columns can be NULL from here on."""
        if action.table is None or action.column is None:
            return
        known = {"set not null": False, "add not null": False, "drop not null": True}
        if action.kind in known and not action.not_valid:
            for altered in self._reached(action.table, line, action):
                identity = altered.names.get(action.column)
                if identity is not None:
                    altered.nullable[identity] = known[action.kind]

    def _note(self, line: int, table: object, text: str, *, is_judged: bool = False) -> None:
        name = None if table is None else str(table)
        note = Note(line=line, table=name, text=text, is_judged=is_judged)
        if note not in self.notes:
            self.notes.append(note)

    def _of(self, target: Target, line: int) -> list[Altered]:
        """The observed tables behind a name; none for one that is not known, which is noted."""
        place = self.names.table(target)
        if place is None:
            if not self.names.is_new(target) and not self.names.is_gone(target):
                self._note(line, target, "not in the profile: nothing is known of its updates")
            return []
        return [self.of_key(key) for key in self.names.tables[place]]

    def _reached(self, target: Target, line: int, action: Action) -> list[Altered]:
        """Those of `_of`, and their heirs where an action goes on to these."""
        found = self._of(target, line)
        if not goes_on_to_heirs(action) or getattr(action, "table", target) != target:
            return found
        heirs = self.names.heirs_of([altered.table.name for altered in found])
        return [*found, *(self.of_key(key) for key in heirs)]

    def of_key(self, key: str) -> Altered:
        """A table by its name in the profile."""
        if key not in self.altered:
            self.altered[key] = altered_of(self._profile.table(key), self._major)
        return self.altered[key]

    def _exists(self, action: actions.AddIndex) -> bool:
        """Whether IF NOT EXISTS makes nothing of it."""
        if not action.if_not_exists or action.name is None:
            return False
        table = self.names.table(action.table)
        schema = action.table.schema if table is None else table[0]
        return (schema, action.name) in self.names.indexes

    def _remark(self, line: int, action: Remarkable) -> None:
        place = self.names.table(action.table)
        if action.kind == "new":
            self.names.made.add((action.table.schema, action.table.name))
            self._note(line, action.table, action.text, is_judged=True)
            self._compare_places(line, (action.table.schema, action.table.name))
            return
        if action.kind == "dropped":
            self._note(line, action.table, action.text, is_judged=True)
            self.names.drop_table(action.table)
            return
        if self.names.is_new(action.table) and place is None:
            return
        if place is None:
            self._note(line, action.table, action.text)
        for key in () if place is None else self.names.tables[place]:
            self.of_key(key).open.append((line, action.text))

    def _rename(self, line: int, action: Rename) -> None:
        names = self.names
        place = names.table(action.old)
        index = names.index(action.old)
        # ALTER TABLE renames indexes too.
        if index is not None and (
            action.what == "index"
            or (place is None and action.column is None and action.schema is None)
        ):
            for one in names.indexes[index]:
                self.of_key(one.table).rename_index(one.identity, action.new)
            names.rename_index(index, action.new)
        elif action.what == "index":
            names.keys.rename(action.old, action.new)
        elif place is None:
            made = names.is_new_place(action.old)
            if made is not None and action.column is None:
                moved = (action.schema or made[0], action.new)
                names.made.add(moved)
                names.keys.move(made, moved)
                self._compare_places(line, moved)
            elif made is not None and action.column is not None:
                names.keys.rename_column(made, action.column, action.new)
        elif action.column is not None:
            for key in (*names.tables[place], *names.heirs_of(names.tables[place])):
                columns = self.of_key(key).names
                if action.column in columns:
                    columns[action.new] = columns.pop(action.column)
        else:
            names.move_table(place, (action.schema or place[0], action.new))

    def _drop_index(self, line: int, action: actions.DropIndex) -> None:
        target = constraint_index(action, self.names)
        found = self.names.indexes_of(target)
        if not found:
            if action.table is None:
                text = f"index {action.index} is not in the profile"
                if self.names.partitioned:
                    text += ": one of a partitioned table takes those of its partitions with it"
                self._note(line, None, text, is_judged=not self.names.partitioned)
            elif self.names.is_partitioned(action.table):
                text = (
                    f"constraint {action.index.name} goes: indexes of its partitions are not "
                    "followed"
                )
                self._note(line, action.table, text)
            return
        for one in found:
            self._drop(line, self.of_key(one.table), one.identity)

    def _drop(
        self, line: int, altered: Altered, identity: str, *, column: str | None = None
    ) -> None:
        self.names.drop_index(altered.table.name, identity)
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
        altered.edits.append(IndexDropped(line=line, name=index.name, label=label, column=column))

    def _alter(self, line: int, action: actions.OfTable) -> None:
        if self.names.is_partitioned(action.table):
            if isinstance(action, actions.SetFillfactor):
                text = "a partitioned table has no fillfactor: set it on the partitions"
                self._note(line, action.table, text, is_judged=True)
                return
            if isinstance(action, actions.AddIndex) and not action.only:
                if not self._exists(action):
                    self._add_to_partitions(line, action)
                return
            if isinstance(action, actions.AddIndex):
                text = "an index ON ONLY the partitioned table: those of partitions come later"
                self._note(line, action.table, text, is_judged=True)
                return
        for altered in self._reached(action.table, line, action):
            if isinstance(action, actions.AddIndex):
                self._add_index(line, altered, action)
            elif isinstance(action, actions.SetColumn):
                self._set_column(line, altered, action)
            elif isinstance(action, actions.SetExpression):
                set_expression(line, altered, action)
            elif isinstance(action, actions.SetFillfactor):
                altered.edits.append(
                    FillfactorSet(line=line, fillfactor=action.fillfactor or _DEFAULT_FILLFACTOR)
                )
            else:
                self._drop_column(line, altered, action)

    def _drop_column(self, line: int, altered: Altered, action: actions.DropColumn) -> None:
        """It takes with it the generated columns that read it, and all indexes over any of them."""
        identity = altered.names.pop(action.name, None)
        if identity is None:
            return
        gone = {identity} | {g for g, reads in altered.generated.items() if identity in reads}
        altered.names = {n: i for n, i in altered.names.items() if i not in gone}
        altered.generated = {g: r for g, r in altered.generated.items() if g not in gone}
        for key, index in list(altered.indexes.items()):
            if index.columns & gone:
                self._drop(line, altered, key, column=action.name)

    def _add_index(self, line: int, altered: Altered, action: actions.AddIndex) -> None:
        if self._exists(action):
            return
        names = altered.names
        action = of_row(action, names)
        unknown = [name for name in action.depends if name not in names]
        if unknown or not (action.depends or action.whole_row):
            said = ", ".join(unknown) or "no column"
            text = f"an index over {said}, which the profile does not have"
            altered.open.append((line, text))
        virtual = [n for n in action.depends if names.get(n) in altered.virtual]
        if virtual:
            text = (
                f"PostgreSQL {self._major} refuses an index over {', '.join(virtual)}, a virtual "
                "generated column"
            )
            altered.open.append((line, text))
            return
        if len(unknown) == len(action.depends) and not action.whole_row:
            return
        schema, table = self.names.called(altered.table.name) or ("public", altered.table.name)
        is_part = self.names.is_partitioned(action.table)
        # Each partition's index has a name of its own.
        own = action.name if action.name is not None and not is_part else None
        chosen = own or chosen_name(table, action, lambda n: self.names.is_taken(schema, n))
        name = action.name or (self._parent_name(action) if is_part else chosen)
        hot = hot_index(altered, action, name)
        identity = chosen
        while identity in altered.indexes:
            identity += "+"
        altered.indexes[identity] = hot
        at = IndexAt(table=altered.table.name, identity=identity)
        self.names.indexes[schema, chosen] = [at]
        altered.edits.append(
            IndexAdded(
                line=line,
                name=name,
                identity=identity,
                columns=tuple(n for n in action.depends if n in names),
                keys=tuple(n for n in keys_of(action) if n in names),
                include=tuple(n for n in action.include if n in names),
                predicate=tuple(n for n in action.predicate_columns if n in names),
                hot=hot,
                index=stand_in_of(altered, action, name, self._taken),
                kind=action.kind if action.kind != "index" else f"index ({action.method})",
            )
        )

    def _add_to_partitions(self, line: int, action: actions.AddIndex) -> None:
        """The partitioned table's index has a name, behind which those of its partitions are."""
        place = self.names.table(action.table)
        assert place is not None, "a table that is partitioned is known"
        name = self._parent_name(action)
        before = {key: set(self.of_key(key).indexes) for key in self.names.tables[place]}
        for key in before:
            self._add_index(line, self.of_key(key), action)
        self.names.indexes[place[0], name] = [
            IndexAt(table=key, identity=identity)
            for key, had in before.items()
            for identity in self.of_key(key).indexes
            if identity not in had
        ]

    def _parent_name(self, action: actions.AddIndex) -> str:
        place = self.names.table(action.table)
        assert place is not None, "a table that is partitioned is known"
        return action.name or chosen_name(
            place[1], action, lambda n: self.names.is_taken(place[0], n)
        )

    def _set_column(self, line: int, altered: Altered, action: actions.SetColumn) -> None:
        table = altered.table
        identity = altered.names.get(action.name)
        if action.is_new:
            if identity is not None and action.if_not_exists:
                return
            identity = new_column(altered, action)
        elif identity is None:
            text = f"column {action.name} is not in the profile"
            self._note(line, action.table, text, is_judged=True)
            return
        altered.types[identity] = action.type
        label = altered.labels.get(identity)
        if label is None or action.generated == "virtual":
            return
        column, assumed = stand_in(label, action.type, called=action.name)
        if table.key is not None and table.key.name == label:
            column, assumed = None, None  # type: ignore[assignment]
        altered.edits.append(
            ColumnSet(
                line=line,
                name=action.name,
                column=column,
                is_new=action.is_new,
                is_null=action.default == "none" and action.generated is None,
                assumed=assumed,
            )
        )
