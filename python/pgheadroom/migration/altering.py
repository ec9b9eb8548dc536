"""
What an action makes of the observed tables: their names, columns, indexes and settings.
"""

from __future__ import annotations

from pgheadroom.migration import actions
from pgheadroom.migration.actions import Action, NamedRelation, Remarkable, Rename, Work
from pgheadroom.migration.catalog import NamedTables
from pgheadroom.migration.columns import drop_column, set_column, set_expression
from pgheadroom.migration.indexes import add_index, add_to_partitions, drop_index
from pgheadroom.migration.new_key import constrain_domain, new_key
from pgheadroom.migration.shape import FillfactorSet

_DEFAULT_FILLFACTOR = 100


def take(catalog: NamedTables, line: int, action: Action) -> None:
    """Have an action of the statement at a line done to the tables."""
    if isinstance(action, Rename):
        _rename(catalog, line, action)
    elif isinstance(action, actions.DropIndex):
        drop_index(catalog, line, action)
    elif isinstance(action, Remarkable):
        _remark(catalog, line, action)
    elif isinstance(action, Work):
        if action.kind == "add foreign key":
            new_key(catalog.names, catalog.of_key, action)
        elif action.kind == "detach partition" and action.other is not None:
            catalog.names.detach(action.other)
        elif action.kind in ("attach partition", "new partition") and action.other is not None:
            catalog.names.attach(action.other, action.table, is_default=action.is_default)
    elif isinstance(action, actions.Domain):
        constrain_domain(catalog.names, action)
    else:
        _alter(catalog, line, action)


def _alter(catalog: NamedTables, line: int, action: actions.OfTable) -> None:
    if catalog.names.is_partitioned(action.table):
        if isinstance(action, actions.SetFillfactor):
            text = "PostgreSQL refuses a fillfactor of a partitioned table: set its partitions'"
            catalog.note(line, action.table, text, is_judged=True)
            return
        if isinstance(action, actions.AddIndex) and not action.only:
            add_to_partitions(catalog, line, action)
            return
        if isinstance(action, actions.AddIndex):
            text = "an index ON ONLY the partitioned table: those of partitions come later"
            catalog.note(line, action.table, text, is_judged=True)
            return
    for altered in catalog.reached(action.table, line, action):
        if isinstance(action, actions.AddIndex):
            add_index(catalog, line, altered, action)
        elif isinstance(action, actions.SetColumn):
            set_column(catalog, line, altered, action)
        elif isinstance(action, actions.SetExpression):
            set_expression(line, altered, action)
        elif isinstance(action, actions.SetFillfactor):
            altered.edits.append(
                FillfactorSet(line=line, fillfactor=action.fillfactor or _DEFAULT_FILLFACTOR)
            )
        else:
            drop_column(catalog, line, altered, action)


def _rename(catalog: NamedTables, line: int, action: Rename) -> None:
    names = catalog.names
    place = names.table(action.old)
    index = names.index(action.old)
    # ALTER TABLE renames indexes too.
    if index is not None and (
        action.what == "index"
        or (place is None and action.column is None and action.schema is None)
    ):
        for one in names.indexes[index]:
            catalog.of_key(one.table).rename_index(one.identity, action.new)
        names.rename_index(index, action.new)
    elif action.what == "index":
        names.keys.rename(action.old, action.new)
    elif place is None:
        made = names.is_new_place(action.old)
        if made is not None and action.column is None:
            moved = (action.schema or made[0], action.new)
            names.made.add(moved)
            names.keys.move(made, moved)
            names.partitions.move(made, moved)
            _compare_places(catalog, line, moved)
        elif made is not None and action.column is not None:
            names.keys.rename_column(made, action.column, action.new)
    elif action.column is not None:
        for key in (*names.tables[place], *names.heirs_of(names.tables[place])):
            columns = catalog.of_key(key).names
            if action.column in columns:
                columns[action.new] = columns.pop(action.column)
    else:
        names.move_table(place, (action.schema or place[0], action.new))


def _remark(catalog: NamedTables, line: int, action: Remarkable) -> None:
    place = catalog.names.table(action.table)
    if action.kind == "new":
        catalog.names.made.add((action.table.schema, action.table.name))
        catalog.note(line, action.table, action.text, is_judged=True)
        _compare_places(catalog, line, (action.table.schema, action.table.name))
        return
    if action.kind == "dropped":
        catalog.note(line, action.table, action.text, is_judged=True)
        catalog.names.drop_table(action.table)
        return
    if catalog.names.is_new(action.table) and place is None:
        return
    if place is None:
        catalog.note(line, action.table, action.text)
    for key in () if place is None else catalog.names.tables[place]:
        catalog.of_key(key).open.append((line, action.text))


def _compare_places(catalog: NamedTables, line: int, place: tuple[str | None, str]) -> None:
    """A new table under an observed one's name gets its updates: nothing is known of it."""
    schema, name = place
    for (of, observed), keys in catalog.names.observed.items():
        if name == observed and schema in (None, of):
            text = "another table takes its name, of which nothing was observed"
            for key in keys:
                catalog.of_key(key).open.append((line, text))
            if not keys:
                catalog.note(line, NamedRelation(schema=schema, name=name), text)
