"""
Columns with NULLs in rows that are there: what wants them NOT NULL is refused.

`ATExecAddColumn` and `ATExecSetNotNull` leave it to `ATRewriteTable` to look at each row, and
`index_check_primary_key` makes a primary key's columns NOT NULL first (tablecmds.c, index.c;
REL_15, 16 and 18_STABLE). What the rows hold is known from the profile, and from the statements
before: a new column without a default is NULL in all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pgheadroom.migration import actions
from pgheadroom.migration.actions import Action
from pgheadroom.migration.effect import Effect
from pgheadroom.migration.names import NamesNow
from pgheadroom.migration.shape import Altered
from pgheadroom.migration.work import is_known_type

_NULLABLE: dict[actions.WorkKind, bool] = {
    "set not null": False,
    "add not null": False,
    "drop not null": True,
}


def refused_nulls(action: Action, tables: Sequence[Altered], names: NamesNow) -> str | None:
    """
    Why PostgreSQL refuses an action on tables as they are before it; None: it does not.

    Nothing is said where it is not known whether there are rows, or NULLs in them.

    Args:
        action: Of the statement.
        tables: Those that it reaches.
        names: Of the catalog, for its domains, which can have a default.
    """
    tables = [altered for altered in tables if altered.has_rows]
    if not tables:
        return None
    if isinstance(action, actions.SetColumn):
        rows = sum(altered.table.rows for altered in tables)
        is_bare = action.is_new and action.default == "none" and action.generated is None
        if not (is_bare and action.not_null) or may_have_default(action.type, names):
            return None
        return (
            f"PostgreSQL refuses column {action.name}, NOT NULL without a default, in a table "
            f"that has rows: {rows:,} when it was observed"
        )
    said, columns = "", tuple[str, ...]()
    if isinstance(action, actions.Work) and action.kind in ("set not null", "add not null"):
        if action.column is not None and not action.not_valid:
            said, columns = f"NOT NULL of {action.column}", (action.column,)
    elif isinstance(action, actions.AddIndex) and action.kind == "primary key":
        said, columns = f"a primary key over {', '.join(action.columns)}", action.columns
    for altered in tables:
        for name in columns:
            why = altered.nulls.get(altered.names.get(name, ""))
            if why is not None:
                return f"PostgreSQL refuses {said}, which has NULLs: {why}"
    return None


def not_null_already(effect: Effect, action: Action, altered: Altered, blind: int | None) -> Effect:
    """
    SET NOT NULL of a column that is so already reads nothing (`ATExecSetNotNull`, tablecmds.c).

    Args:
        effect: Of the action on the table, by the rule alone.
        action: Of the statement.
        altered: The table before it.
        blind: The line of an earlier statement that is not understood and may have changed that.
    """
    if not isinstance(action, actions.Work) or action.kind != "set not null":
        return effect
    if altered.nullable.get(altered.names.get(action.column or "", "")) is not False:
        return effect
    if blind is not None:
        return replace(effect, unless=f"it is so already, which line {blind} may have changed")
    return replace(effect, effort="nothing", unless=None, shares_pass=False)


def may_have_default(spelled: str, names: NamesNow) -> bool:
    """Whether a type is a domain, or may be one: these can have a default of their own."""
    if names.is_domain(spelled):
        return True
    return not names.knows_domains and not is_known_type(spelled)


def take_nulls(action: Action, altered: Altered, names: NamesNow) -> None:
    """What an action makes of the NULLs of a table, and of who can have some; after it."""
    if isinstance(action, actions.Work):
        if action.kind == "truncate":
            altered.has_rows = False
        elif action.column is not None:
            identity = altered.names.get(action.column, "")
            altered.nulls.pop(identity, None)
            if identity and action.kind in _NULLABLE and not action.not_valid:
                altered.nullable[identity] = _NULLABLE[action.kind]
    elif isinstance(action, actions.SetColumn):
        identity = altered.names.get(action.name, "")
        altered.nulls.pop(identity, None)  # USING may give any value
        is_bare = action.is_new and action.default == "none" and action.generated is None
        if is_bare and not may_have_default(action.type, names):
            altered.nulls[identity] = "it is new, and has no default"


def take_writes(written: actions.RowChange, altered: Altered) -> None:
    """Rows were updated or deleted: nobody knows which columns still have NULLs, or which rows."""
    altered.nulls.clear()
    if written.kind == "DELETE":
        altered.has_rows = False
