"""
The statements of a migration in order: what each does to the tables, and what holds in its wake.

A table, column or index that was renamed is found by its new name from there on, and one that the
migration makes or drops is known to later statements. Locks stay until the transaction ends; what
was undone by ROLLBACK was locked, rewritten and read all the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from pgheadroom.migration import actions
from pgheadroom.migration.actions import Action, MigrationStatement, NamedRelation, Work
from pgheadroom.migration.altering import take
from pgheadroom.migration.catalog import NamedTables
from pgheadroom.migration.conditional import Conditions
from pgheadroom.migration.effect import Effect, joined, kept
from pgheadroom.migration.indexes import refused_of_partitions
from pgheadroom.migration.names import NamesNow
from pgheadroom.migration.nulls import not_null_already, refused_nulls, take_nulls, take_writes
from pgheadroom.migration.partitions import (
    default_locked,
    parent_locked,
    refused_beside_default,
)
from pgheadroom.migration.shape import Altered, Note
from pgheadroom.migration.transaction import Held, Later, refused
from pgheadroom.migration.weighing import (
    keys_gone,
    other_ends,
    size_of,
    unknown_key,
    weighed,
)
from pgheadroom.migration.work import fill


@dataclass(frozen=True, slots=True, kw_only=True)
class _State:
    """What a transaction, or a savepoint, began with."""

    names: NamesNow
    altered: dict[str, Altered]
    notes: list[Note]
    held: Held


def follow(catalog: NamedTables, statements: Sequence[MigrationStatement]) -> None:
    """Take all actions in, statement by statement."""
    held = Held()
    begun: int | None = None
    saved: dict[str, _State] = {}
    keeps = any(statement.takes_back is not None for statement in statements)
    for statement in statements:
        if statement.is_command and statement.connects is None:
            continue
        if statement.transaction is None or statement.transaction != begun:
            _end(catalog, held)
            held, saved = Held(), {}
            if keeps and statement.transaction is not None:
                saved[""] = _state(catalog, held)
        begun = statement.transaction
        if begun is not None and statement.takes_back in saved:
            _end(catalog, held)
            held = _take_back(catalog, statement.line, saved[statement.takes_back])
            continue
        if keeps and begun is not None and statement.savepoint is not None:
            saved[statement.savepoint] = _state(catalog, held)
        _take_in(catalog, statement, held)
    _end(catalog, held)
    for altered in catalog.altered.values():
        _compare_names(statements[-1].line, altered)


def _called_now(catalog: NamedTables, altered: Altered) -> NamedRelation | None:
    """What a table is called by now; None: as observed, or it is gone."""
    observed, place = altered.table.observed, catalog.names.called(altered.table.name)
    if observed is None or place is None or place == (observed.schema, observed.name):
        return None
    return NamedRelation(schema=place[0], name=place[1])


def _take_in(catalog: NamedTables, statement: MigrationStatement, held: Held) -> None:
    """One statement."""
    for text in refused(statement):
        catalog.note(statement.line, None, text)
    for since, text in statement.newer:
        if catalog.major < since:
            said = f"PostgreSQL {catalog.major} refuses {text}, which came with {since}"
            catalog.note(statement.line, None, said)
    # Rows that are there already have NULL in such a column, which refers to nothing.
    empty = {
        action.name
        for action in statement.actions
        if isinstance(action, actions.SetColumn) and action.is_new and action.default == "none"
    }
    found: dict[str, list[Effect]] = {}
    conditions = _conditions(catalog, statement.line)
    for written in statement.actions:
        action = conditions.kept(written)
        if action is None or not _may_be(catalog, statement.line, action):
            continue
        above = parent_locked(action, catalog.names)
        if above is not None:
            catalog.note(statement.line, *above, is_judged=True)
        is_empty = isinstance(action, Work) and action.column in empty
        own = [
            (altered, not_null_already(effect, action, altered, catalog.blind))
            for altered, effect in _weigh(catalog, statement.line, action, is_empty=is_empty)
        ]
        unless = conditions.unless(action)
        for altered, effect in own:
            made_so = effect.unless or (unless if effect.effort != "nothing" else None)
            called = _called_now(catalog, altered)
            told = replace(effect, unless=made_so, called=called)
            found.setdefault(altered.table.name, []).append(told)
        for key, effect in (
            *_other_ends(catalog, statement.line, action, own),
            *_default(catalog, statement.line, action),
        ):
            told = replace(effect, called=_called_now(catalog, catalog.of_key(key)))
            found.setdefault(key, []).append(told)
        gone = keys_gone(action, catalog.names, own)
        of_table = _of_table(catalog, statement.line, action)
        _note_refused(catalog, statement.line, action, of_table)
        take(catalog, statement.line, action)
        for altered in of_table:
            take_nulls(action, altered, catalog.names)
        catalog.names.keys.drop(gone)
    _take_writes(catalog, statement)
    made = {key: kept(joined(effects), held.locks.get(key)) for key, effects in found.items()}
    for key, whole in made.items():
        catalog.of_key(key).effects += [(statement.line, effect) for effect in whole]
    long = {
        key: _later(catalog, statement.line, key)
        for key, whole in made.items()
        if any(effect.effort in ("scan", "build", "rewrite") for effect in whole)
    }
    long |= dict(_filled(catalog, statement, held))
    held.take(statement.line, made, long)
    catalog.take_absent(statement)
    if statement.problem is not None and catalog.blind is None:
        catalog.blind = statement.line


def _may_be(catalog: NamedTables, line: int, action: Action) -> bool:
    """
    Whether there is something to follow: nothing goes that PostgreSQL refuses to drop.

    What a refused index would do to updates is told all the same; its building is not weighed.
    """
    text = refused_beside_default(action, catalog.names)
    if text is not None:
        catalog.note(line, getattr(action, "table", None), text)
        return False
    text = refused_of_partitions(action, catalog.names)
    if text is not None:
        catalog.note(line, getattr(action, "table", None), text)
    return text is None or not isinstance(action, actions.DropIndex)


def _weigh(
    catalog: NamedTables, line: int, action: Action, *, is_empty: bool
) -> Iterator[tuple[Altered, Effect]]:
    if refused_of_partitions(action, catalog.names) is not None:
        return
    yield from weighed(
        action,
        catalog.names,
        lambda target: catalog.reached(target, line, action),
        [catalog.of_key(table.name) for table in catalog.profile.tables]
        if isinstance(action, actions.Domain)
        or (isinstance(action, Work) and action.table is None and action.index is None)
        else [],
        is_empty=is_empty,
    )
    if isinstance(action, Work) and action.kind == "cluster":
        _cluster(catalog, line, action)


def _cluster(catalog: NamedTables, line: int, action: Work) -> None:
    """An index is marked by CLUSTER USING; CLUSTER alone goes by such marks."""
    if action.table is None:
        if not any(altered.clustered for altered in catalog.altered.values()):
            text = (
                "CLUSTER without a table goes over those that were clustered before: no table "
                "of the profile was"
            )
            catalog.note(line, None, text, is_judged=True)
        return
    for altered in catalog.of(action.table, line):
        altered.clustered |= action.index is not None


def _other_ends(
    catalog: NamedTables, line: int, action: Action, own: Sequence[tuple[Altered, Effect]]
) -> Iterator[tuple[str, Effect]]:
    """What is done to the tables at the other end of foreign keys."""
    if not catalog.names.keys.is_known:
        text = unknown_key(action, catalog.names, own)
        if text is not None:
            catalog.note(line, getattr(action, "table", None), text, is_judged=True)
        return
    for end in other_ends(action, catalog.names, own):
        tables = catalog.names.tables.get(end.place, ())
        for key in tables:
            effect = end.effect
            if effect.waits_for is not None:
                read = size_of(catalog.of(effect.waits_for, line))
                effect = replace(effect, read_bytes=read)
            yield key, effect
        target = NamedRelation(schema=end.place[0], name=end.place[1])
        is_new = not tables and catalog.names.is_new_place(target) is not None
        if (not tables and not is_new) or end.place in catalog.names.partitioned:
            text = f"{end.effect.what}: locked with {end.effect.lock} until its transaction ends"
            catalog.note(line, target, text, is_judged=True)


def _default(catalog: NamedTables, line: int, action: Action) -> Iterator[tuple[str, Effect]]:
    """What is done to the default partition where another one comes or goes."""
    found = default_locked(action, catalog.names)
    if found is None:
        return
    place, effect = found
    if place in catalog.names.partitioned:
        target = NamedRelation(schema=None if place[0] == "public" else place[0], name=place[1])
        text = f"{effect.what}: locks it with {effect.lock} until its transaction ends"
        catalog.note(line, target, text, is_judged=True)
        if effect.effort == "nothing":
            return  # its partitions are left alone
    for key in catalog.names.tables.get(place, ()):
        yield key, effect


def _filled(
    catalog: NamedTables, statement: MigrationStatement, held: Held
) -> Iterator[tuple[str, Later]]:
    """Tables whose rows are written while others wait for the transaction's locks."""
    for found in statement.fills if held.stopped else ():
        for key in catalog.names.tables_of(found.table):
            yield key, _later(catalog, statement.line, key)
            if key in held.stopped:
                effect = fill(found, held.stopped[key])
                catalog.of_key(key).effects.append((statement.line, effect))


def _later(catalog: NamedTables, line: int, key: str) -> Later:
    observed = catalog.profile.table(key).observed
    assert observed is not None, "the caller has checked that tables are observed"
    place = catalog.names.called(key) or (observed.schema, observed.name)
    schema = None if place[0] == "public" else place[0]
    size = observed.main_bytes
    return Later(
        line=line,
        table=NamedRelation(schema=schema, name=place[1]),
        size_bytes=None if size is None else int(size),
    )


def _end(catalog: NamedTables, held: Held) -> None:
    """Locks go: what has waited for other tables is told."""
    for key, line, effect in held.waiting():
        catalog.of_key(key).effects.append((line, effect))


def _take_writes(catalog: NamedTables, statement: MigrationStatement) -> None:
    for found in statement.fills:
        for key in catalog.names.tables_of(found.table):
            take_writes(found, catalog.of_key(key))


def _conditions(catalog: NamedTables, line: int) -> Conditions:
    def say(table: NamedRelation, text: str, *, is_judged: bool) -> None:
        catalog.note(line, table, text, is_judged=is_judged)

    def leave_open(tables: Sequence[Altered], text: str) -> None:
        for altered in tables:
            if (line, text) not in altered.open:
                altered.open.append((line, text))

    return Conditions(
        catalog.names,
        lambda target: catalog.of(target, line),
        say,
        leave_open,
        catalog.blind,
        catalog.absent,
    )


def _of_table(catalog: NamedTables, line: int, action: Action) -> list[Altered]:
    """The observed tables that an action changes, by the name of its table."""
    table = getattr(action, "table", None)
    if not isinstance(table, NamedRelation) or catalog.names.table(table) is None:
        return []
    return catalog.reached(table, line, action)


def _note_refused(
    catalog: NamedTables, line: int, action: Action, tables: Sequence[Altered]
) -> None:
    """What PostgreSQL refuses for the rows that are there; after a DO nobody knows them."""
    text = refused_nulls(action, tables, catalog.names) if catalog.blind is None else None
    if text is not None:
        catalog.note(line, getattr(action, "table", None), text)


def _compare_names(line: int, altered: Altered) -> None:
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


def _state(catalog: NamedTables, held: Held) -> _State:
    return _State(
        names=catalog.names.copied(),
        altered={key: altered.copied() for key, altered in catalog.altered.items()},
        notes=list(catalog.notes),
        held=held.copied(),
    )


def _take_back(catalog: NamedTables, line: int, state: _State) -> Held:
    """As it was then; what statements have locked, rewritten and read meanwhile they have."""
    worked = {key: altered.effects for key, altered in catalog.altered.items()}
    catalog.names = state.names.copied()
    catalog.altered = {key: altered.copied() for key, altered in state.altered.items()}
    catalog.notes[:] = state.notes
    for key, effects in worked.items():
        if effects:
            catalog.of_key(key).effects = effects
    catalog.note(line, None, "what came before it in its transaction is undone", is_judged=True)
    held = state.held.copied()
    held.waited = {}
    return held
