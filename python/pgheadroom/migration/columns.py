"""
Columns that a migration makes or computes anew, in the table that they are of.
"""

from __future__ import annotations

from pgheadroom.migration import actions
from pgheadroom.migration.shape import Altered, ExpressionSet
from pgheadroom.observe.naming import profile_name


def new_column(altered: Altered, action: actions.SetColumn) -> str:
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
