"""
Columns that a migration makes, changes, computes anew and drops, in the table that they are of.
"""

from __future__ import annotations

from pgheadroom.migration import actions
from pgheadroom.migration.catalog import NamedTables
from pgheadroom.migration.indexes import drop_one
from pgheadroom.migration.shape import Altered, ColumnSet, ExpressionSet, stand_in
from pgheadroom.observe.naming import profile_name


def set_column(
    catalog: NamedTables, line: int, altered: Altered, action: actions.SetColumn
) -> None:
    """A column that comes, or has another type from here on."""
    table = altered.table
    identity = altered.names.get(action.name)
    if action.is_new:
        if identity is not None and action.if_not_exists:
            return
        identity = _new_column(altered, action)
    elif identity is None:
        text = f"column {action.name} is not in the profile"
        catalog.note(line, action.table, text, is_judged=True)
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


def drop_column(
    catalog: NamedTables, line: int, altered: Altered, action: actions.DropColumn
) -> None:
    """It takes with it the generated columns that read it, and all indexes over any of them."""
    identity = altered.names.pop(action.name, None)
    if identity is None:
        return
    gone = {identity} | {g for g, reads in altered.generated.items() if identity in reads}
    altered.names = {n: i for n, i in altered.names.items() if i not in gone}
    altered.generated = {g: r for g, r in altered.generated.items() if g not in gone}
    for key, index in list(altered.indexes.items()):
        if index.columns & gone:
            drop_one(catalog, line, altered, key, column=action.name)


def _new_column(altered: Altered, action: actions.SetColumn) -> str:
    """A column that comes; its identity."""
    identity = action.name
    known = {*altered.types, *altered.labels, *altered.names.values()}
    while identity in known:
        identity += "+"
    taken = {column.name for column in altered.table.columns} | set(altered.labels.values())
    altered.labels[identity] = profile_name(action.name, taken)
    altered.names[action.name] = identity
    altered.called[identity] = action.name
    altered.nullable[identity] = not action.not_null
    if action.generated == "stored":
        altered.generated[identity] = altered.identities(action.reads)
    elif action.generated == "virtual":
        altered.virtual.add(identity)
    return identity


def set_expression(line: int, altered: Altered, action: actions.SetExpression) -> None:
    """A generated column is filled anew, from other columns."""
    identity = altered.names.get(action.name)
    if identity is None or identity in altered.virtual:
        return
    altered.generated.pop(identity, None)
    if action.reads is not None:
        altered.generated[altered.forget(identity)] = altered.identities(action.reads)
    altered.edits.append(ExpressionSet(line=line, name=action.name, reads=action.reads))
