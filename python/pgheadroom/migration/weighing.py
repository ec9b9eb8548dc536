"""
Which observed tables an action touches, and what it locks, rewrites and scans there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from pgheadroom.migration import actions
from pgheadroom.migration.actions import (
    Action,
    Address,
    NamedRelation,
    Remarkable,
    Work,
)
from pgheadroom.migration.effect import Effect
from pgheadroom.migration.foreign_keys import Key, OtherEnd
from pgheadroom.migration.names import NamesNow
from pgheadroom.migration.partitions import is_lone_default
from pgheadroom.migration.shape import Altered
from pgheadroom.migration.work import domain_checked, effect_of, of_domain

_WHOLE_DATABASE = ("vacuum full", "cluster", "reindex")
# `ATPrepCmd` (tablecmds.c) does not recurse for these: of a partitioned table itself.
_OF_PARENT_ALONE = frozenset(
    {
        "attach partition",
        "detach partition",
        "set owner",
        "set row security",
        "replica identity",
        "rule",
        "policy",
        "comment",
        "statistics",
        "storage parameter",
        "publication",
        "inherited",
        "new partition",
        "set access method",
        "set tablespace",
    }
)

_OF_HEIRS = frozenset(
    {
        "set not null",
        "drop not null",
        "set default",
        "set statistics",
        "set storage",
        "add check",
        "add not null",
        "truncate",
        "lock",
    }
)


def weighed(
    action: Action,
    names: NamesNow,
    tables_of: Callable[[NamedRelation], Sequence[Altered]],
    everything: Sequence[Altered],
    *,
    is_empty: bool,
) -> Iterator[tuple[Altered, Effect]]:
    """
    What an action does to each observed table that it touches.

    Args:
        action: Of a statement.
        names: Before it.
        tables_of: The tables behind a name.
        everything: All tables, for what goes over a whole database.
        is_empty: It is a foreign key of a column that is new and NULL, and has nothing to validate
            (`transformFKConstraints`, src/backend/parser/parse_utilcmd.c).
    """
    for altered, is_other in _touched(action, names, tables_of, everything):
        old_type = None
        if isinstance(action, actions.SetColumn):
            identity = altered.names.get(action.name)
            old_type = None if identity is None else altered.types.get(identity)
        effect = effect_of(action, old_type=old_type, is_partition=is_other)
        if isinstance(action, actions.Domain):
            effect = domain_checked(action)
        if effect is None:
            continue
        if isinstance(action, actions.SetColumn) and action.is_new:
            effect = of_domain(effect, action.type, names.is_constrained(action.type))
        if isinstance(action, Work):
            effect = _known(effect, action, altered, names, is_empty=is_empty)
        if effect.waits_for is not None:
            effect = replace(effect, read_bytes=size_of(tables_of(effect.waits_for)))
        yield altered, effect


def goes_on_to_heirs(action: Action) -> bool:
    """Whether ALTER TABLE, TRUNCATE or LOCK does the same to tables that inherit (`ATPrepCmd`)."""
    if isinstance(action, Work):
        return action.kind in _OF_HEIRS
    if isinstance(action, actions.Rename):
        return action.column is not None
    return isinstance(action, actions.SetColumn | actions.SetExpression | actions.DropColumn)


def _known(
    effect: Effect, action: Work, altered: Altered, names: NamesNow, *, is_empty: bool
) -> Effect:
    """With what the profile and the statements before tell."""
    if action.kind == "add foreign key" and (
        is_empty or (action.table is not None and names.is_new(action.table))
    ):
        return replace(effect, effort="nothing", waits_for=None)
    if action.kind == "attach partition" and is_lone_default(action, names):
        return replace(effect, effort="nothing", unless=None)
    if action.kind == "primary key using index" and action.index is not None:
        return _not_null(effect, action.index, altered, names)
    if action.kind == "cluster" and action.index is None and not altered.clustered:
        unless = "none of its indexes is marked, as when it was observed: then it is refused"
        return replace(effect, unless=unless)
    return effect


def size_of(tables: Sequence[Altered]) -> int | None:
    """Of a table, or of the partitions of one, together."""
    seen = [altered.table.observed for altered in tables]
    found = [None if observed is None else observed.main_bytes for observed in seen]
    if not found or None in found:
        return None
    return sum(int(size) for size in found if size is not None)


def _not_null(effect: Effect, index: NamedRelation, altered: Altered, names: NamesNow) -> Effect:
    """A primary key reads the table where one of its columns can be NULL, to see that none is."""
    for one in names.indexes_of(index):
        found = altered.indexes.get(one.identity)
        if one.table == altered.table.name and found is not None:
            nullable = [altered.nullable.get(column) for column in found.keys]
            if all(known is False for known in nullable):
                return replace(effect, effort="nothing", unless=None, shares_pass=False)
            if any(nullable):
                return replace(effect, what=f"{effect.what}, SET NOT NULL", unless=None)
    return effect


def _touched(
    action: Action,
    names: NamesNow,
    tables_of: Callable[[NamedRelation], Sequence[Altered]],
    everything: Sequence[Altered],
) -> Iterator[tuple[Altered, bool]]:
    """The tables, and whether they are the statement's second one."""
    named: list[tuple[NamedRelation, bool]] = []
    if isinstance(action, Work):
        if action.index is not None and action.table is None:
            yield from ((altered, False) for altered in _with_index(action.index, names, tables_of))
            return
        if action.table is None:
            yield from ((altered, False) for altered in everything if _is_meant(altered, action))
            return
        if not (names.is_partitioned(action.table) and action.kind in _OF_PARENT_ALONE):
            named.append((action.table, False))
        if action.other is not None and names.table(action.other) != names.table(action.table):
            named.append((action.other, True))
    elif isinstance(action, actions.DropIndex):
        found = _with_index(constraint_index(action, names), names, tables_of)
        if found:
            yield from ((altered, False) for altered in found)
            return
        named = [] if action.table is None else [(action.table, False)]
    elif isinstance(action, actions.Rename):
        of_parent = action.column is None and names.is_partitioned(action.old)
        named = [] if action.what == "index" or of_parent else [(action.old, False)]
    elif isinstance(action, actions.Domain):
        checked = everything if action.is_checked else ()
        yield from ((found, False) for found in checked if _has_domain(found, action.domain))
        return
    elif isinstance(action, actions.AddIndex):
        # ON ONLY a partitioned table builds nothing: it has no rows.
        is_empty = action.only and names.is_partitioned(action.table)
        named = [] if is_empty else [(action.table, False)]
    elif not isinstance(action, actions.Remarkable):
        named = [(action.table, False)]
    for target, is_other in named:
        yield from ((altered, is_other) for altered in tables_of(target))


def _has_domain(altered: Altered, domain: NamedRelation) -> bool:
    """Whether a column of the table is of a domain, by what it was declared as."""
    observed = altered.table.observed
    declared = {} if observed is None else {c.name: c.declared for c in observed.columns}
    there = set(altered.names.values())
    spelled = {declared.get(identity) or altered.types.get(identity) for identity in there}
    for found in spelled - {None}:
        *before, name = (part.strip('"') for part in str(found).split("."))
        if name == domain.name and (not before or domain.schema in (None, before[0])):
            return True
    return False


def _is_meant(altered: Altered, action: Work) -> bool:
    """Of a statement over a database or a schema."""
    if action.kind not in _WHOLE_DATABASE:
        return False
    if action.kind == "cluster":
        return altered.clustered
    observed = altered.table.observed
    assert observed is not None, "the caller has checked that tables are observed"
    return action.schema is None or action.schema == observed.schema


def _with_index(
    index: NamedRelation, names: NamesNow, tables_of: Callable[[NamedRelation], Sequence[Altered]]
) -> list[Altered]:
    """The tables that have it."""
    found: list[Altered] = []
    for one in names.indexes_of(index):
        place = names.called(one.table)
        if place is not None:
            found += tables_of(NamedRelation(schema=place[0], name=place[1]))
    return found


def constraint_index(action: actions.DropIndex, names: NamesNow) -> NamedRelation:
    """The index behind it: a constraint's has its name and the table's schema."""
    if action.table is None:
        return action.index
    place = names.table(action.table)
    return action.index if place is None else NamedRelation(schema=place[0], name=action.index.name)


def other_ends(
    action: Action, names: NamesNow, own: Sequence[tuple[Altered, Effect]]
) -> list[OtherEnd]:
    """
    What an action locks at the other end of observed foreign keys.

    Args:
        action: Of a statement.
        names: Before it.
        own: What it does to its own tables.
    """
    effect = own[0][1] if own else None
    found: list[OtherEnd] = []
    for place, columns in _ends(action, names, own):
        found += names.keys.locked(action, place, columns, effect)
    return found


def keys_gone(action: Action, names: NamesNow, own: Sequence[tuple[Altered, Effect]]) -> list[Key]:
    """Foreign keys that go with an action, from the same."""
    return [
        key
        for place, columns in _ends(action, names, own)
        for key in names.keys.going(action, place, columns)
    ]


def unknown_key(
    action: Action, names: NamesNow, own: Sequence[tuple[Altered, Effect]]
) -> str | None:
    """What is said of another table where keys were not observed; None: nothing can have one."""
    if not own:
        return None
    unseen = "the profile was made before foreign keys were observed"
    if isinstance(action, actions.SetColumn) and not action.is_new:
        text = f"a foreign key of {action.name} or to it, if there is one, locks its other table"
        if own[0][1].effort == "rewrite":
            return f"{text} with ACCESS EXCLUSIVE for as long, and is checked anew: {unseen}"
        return f"{text} with ACCESS EXCLUSIVE too: {unseen}"
    if isinstance(action, actions.DropColumn):
        what = f"a foreign key of {action.name} or to it, if there is one,"
    elif isinstance(action, actions.DropIndex) and action.table is not None:
        if names.indexes_of(constraint_index(action, names)):
            return None
        what = f"{action.index.name}, if it is a foreign key,"
    else:
        return None
    return f"{what} locks its other table with ACCESS EXCLUSIVE too: {unseen}"


def _ends(
    action: Action, names: NamesNow, own: Sequence[tuple[Altered, Effect]]
) -> Iterator[tuple[Address, frozenset[str]]]:
    """Places of an action's own table, with the column that it is about, as observed."""
    column: str | None = None
    target: NamedRelation | None = None
    if isinstance(action, actions.SetColumn | actions.DropColumn):
        target, column = action.table, action.name
    elif isinstance(action, actions.DropIndex):
        target = action.table
        if target is None:
            places = {names.called(one.table) for one in names.indexes_of(action.index)}
            yield from ((place, frozenset()) for place in places if place is not None)
            return
    elif isinstance(action, Remarkable):
        target = action.table if action.kind == "dropped" else None
    elif isinstance(action, Work):
        target = action.table
    place = None if target is None else names.place_of(target)
    if place is not None:
        columns = {altered.names.get(column, column) for altered, _ in own} if column else set()
        yield place, frozenset(columns or ([column] if column else []))
