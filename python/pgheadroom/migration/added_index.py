"""
An index that a migration makes: which columns it reads, and what stands for it in a profile.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from pgheadroom.advise.hot import HotIndex
from pgheadroom.migration import actions
from pgheadroom.migration.shape import Altered
from pgheadroom.observe.naming import profile_name
from pgheadroom.profile import IndexProfile


def hot_index(altered: Altered, action: actions.AddIndex, name: str) -> HotIndex:
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


def keys_of(action: actions.AddIndex) -> tuple[str, ...]:
    """Columns of the key and its expressions; what the parser tells of no part is taken there."""
    own = {*action.columns, *action.expression_columns}
    beside = {*action.include, *action.predicate_columns}
    return tuple(name for name in action.depends if name in own or name not in beside)


def of_row(action: actions.AddIndex, names: Iterable[str]) -> actions.AddIndex:
    """Of a name that may be the row's or a column's: the one that it is."""
    row = action.table.name
    if not action.may_be_row or row in names:
        return action

    def without(columns: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(name for name in columns if name != row)

    return replace(
        action,
        whole_row=True,
        depends=without(action.depends),
        expression_columns=without(action.expression_columns),
        predicate_columns=without(action.predicate_columns),
    )


def stand_in_of(
    altered: Altered, action: actions.AddIndex, name: str, taken: set[str]
) -> IndexProfile | None:
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
        name=profile_name(name, taken),
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
