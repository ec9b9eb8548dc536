"""
What a migration makes beside tables and their indexes: foreign keys, domains.
"""

from __future__ import annotations

from collections.abc import Callable

from pgheadroom.migration import actions
from pgheadroom.migration.actions import Address
from pgheadroom.migration.foreign_keys import Key
from pgheadroom.migration.index_name import chosen_key_name
from pgheadroom.migration.names import NamesNow
from pgheadroom.migration.shape import Altered


def new_key(names: NamesNow, of_key: Callable[[str], Altered], action: actions.Work) -> None:
    """
    Later statements find a foreign key that this one makes.

    Args:
        names: As the statement finds them; the key is added.
        of_key: A table by its name in the profile.
        action: ADD FOREIGN KEY, of a new table or column too.
    """
    if action.table is None or action.other is None:
        return
    place, other = names.place_of(action.table), names.place_of(action.other)
    if place is None or other is None:
        return
    taken = {key.name for key in names.keys.of_table(place) if key.table == place}
    name = action.name or chosen_key_name(place[1], action.columns, taken.__contains__)
    own = _altered(names, of_key, place)
    columns = action.columns
    if own is not None:
        columns = tuple(own.names.get(column, column) for column in columns)
    referenced, index = _referenced(_altered(names, of_key, other), action.referenced)
    names.keys.add(
        Key(
            name=name,
            table=place,
            columns=columns,
            references=other,
            referenced=referenced,
            index=index,
        )
    )


def _altered(names: NamesNow, of_key: Callable[[str], Altered], place: Address) -> Altered | None:
    """An observed table, or the first of a partitioned one's; None: the migration has made it."""
    found = names.tables.get(place, ())
    return of_key(found[0]) if found else None


def _referenced(
    altered: Altered | None, columns: tuple[str, ...]
) -> tuple[tuple[str, ...], str | None]:
    """The columns that a key refers to, as observed, and the unique index behind them."""
    if altered is None or altered.table.observed is None:
        return columns, None
    wanted = tuple(altered.names.get(column, column) for column in columns)
    for index in altered.table.observed.indexes:
        is_it = set(index.columns) == set(wanted) if wanted else index.is_primary
        if is_it and index.is_unique and index.name in altered.indexes:
            return wanted or index.columns, index.name
    return wanted, None


def constrain_domain(names: NamesNow, action: actions.Domain) -> None:
    """A domain that is new, or has constraints from here on."""
    target = action.domain
    place = (target.schema or "public", target.name)
    known = [found for found in names.domains if found[1] == target.name]
    if target.schema is None and not action.is_new and known:
        place = known[0]
    is_over = action.over is not None and names.is_constrained(action.over)
    if action.is_constrained or is_over or place not in names.domains:
        names.domains[place] = action.is_constrained or bool(is_over)
