"""
Indexes that a migration makes and drops: what a new one reads, and what stands for it in a profile.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Literal

from pgheadroom import _core
from pgheadroom.advise.hot import HotIndex
from pgheadroom.advise.row import index_label
from pgheadroom.migration import actions
from pgheadroom.migration.catalog import NamedTables
from pgheadroom.migration.index_name import chosen_name
from pgheadroom.migration.names import IndexAt, NamesNow
from pgheadroom.migration.shape import Altered, IndexAdded, IndexDropped
from pgheadroom.migration.weighing import constraint_index
from pgheadroom.observe.naming import profile_name
from pgheadroom.profile import IndexProfile
from pgheadroom.profile.unpriced import PRICED
from pgheadroom.quoting import called


def add_index(catalog: NamedTables, line: int, altered: Altered, action: actions.AddIndex) -> None:
    """An index of one table, by the name that it has or that PostgreSQL chooses."""
    if _exists(catalog, action):
        return
    names = altered.names
    action = _of_row(action, names)
    unknown = [name for name in action.depends if name not in names]
    if unknown or not (action.depends or action.whole_row):
        said = ", ".join(unknown) or "no column"
        text = f"an index over {said}, which the profile does not have"
        altered.open.append((line, text))
    virtual = [n for n in action.depends if names.get(n) in altered.virtual]
    if virtual:
        text = (
            f"PostgreSQL {catalog.major} refuses an index over {', '.join(virtual)}, a virtual "
            "generated column"
        )
        altered.open.append((line, text))
        return
    if len(unknown) == len(action.depends) and not action.whole_row:
        return
    schema, table = catalog.names.called(altered.table.name) or ("public", altered.table.name)
    is_part = catalog.names.is_partitioned(action.table)
    # Each partition's index has a name of its own.
    own = action.name if action.name is not None and not is_part else None
    chosen = own or chosen_name(table, action, lambda n: catalog.names.is_taken(schema, n))
    name = action.name or (_parent_name(catalog, action) if is_part else chosen)
    hot = _hot_index(altered, action, name)
    identity = chosen
    while identity in altered.indexes:
        identity += "+"
    altered.indexes[identity] = hot
    at = IndexAt(table=altered.table.name, identity=identity)
    catalog.names.indexes[schema, chosen] = [at]
    altered.edits.append(
        IndexAdded(
            line=line,
            name=name,
            identity=identity,
            columns=tuple(n for n in action.depends if n in names),
            keys=tuple(n for n in _keys_of(action) if n in names),
            include=tuple(n for n in action.include if n in names),
            predicate=tuple(n for n in action.predicate_columns if n in names),
            hot=hot,
            index=_stand_in_of(altered, action, name, catalog.taken),
            kind=action.kind if action.kind != "index" else f"index ({action.method})",
        )
    )


def add_to_partitions(catalog: NamedTables, line: int, action: actions.AddIndex) -> None:
    """The partitioned table's index has a name, behind which those of its partitions are."""
    if _exists(catalog, action):
        return
    place = catalog.names.table(action.table)
    assert place is not None, "a table that is partitioned is known"
    name = _parent_name(catalog, action)
    before = {key: set(catalog.of_key(key).indexes) for key in catalog.names.tables[place]}
    for key in before:
        add_index(catalog, line, catalog.of_key(key), action)
    catalog.names.indexes[place[0], name] = [
        IndexAt(table=key, identity=identity)
        for key, had in before.items()
        for identity in catalog.of_key(key).indexes
        if identity not in had
    ]


def drop_index(catalog: NamedTables, line: int, action: actions.DropIndex) -> None:
    """What is behind a name goes: an index, or a constraint that has one."""
    target = constraint_index(action, catalog.names)
    found = catalog.names.indexes_of(target)
    if not found:
        if action.table is None:
            text = f"index {action.index} is not in the profile"
            if catalog.names.partitioned:
                text += ": one of a partitioned table takes those of its partitions with it"
            catalog.note(line, None, text, is_judged=not catalog.names.partitioned)
        elif catalog.names.is_partitioned(action.table):
            text = (
                f"constraint {action.index.name} goes: indexes of its partitions are not followed"
            )
            catalog.note(line, action.table, text)
        return
    for one in found:
        drop_one(catalog, line, catalog.of_key(one.table), one.identity)


def drop_one(
    catalog: NamedTables, line: int, altered: Altered, identity: str, *, column: str | None = None
) -> None:
    """One table's index goes; `column`: it goes with this one."""
    catalog.names.drop_index(altered.table.name, identity)
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


def refused_of_partitions(action: object, names: NamesNow) -> str | None:
    """
    What PostgreSQL refuses of indexes for partitions; None: nothing.

    Source: `DefineIndex`, src/backend/commands/indexcmds.c, `RemoveRelations`,
    src/backend/commands/tablecmds.c, `findDependentObjects`, src/backend/catalog/dependency.c
    (REL_18_STABLE).
    """
    if isinstance(action, actions.AddIndex):
        if not (action.concurrently and names.is_partitioned(action.table)):
            return None
        return (
            "PostgreSQL refuses CREATE INDEX CONCURRENTLY on a partitioned table: make it ON ONLY "
            "that, then CONCURRENTLY on each partition, and ALTER INDEX ... ATTACH PARTITION"
        )
    if not isinstance(action, actions.DropIndex):
        return None
    place = names.index(constraint_index(action, names))
    if place is None:
        return None
    whole = names.part_of.get(place)
    if whole is not None:
        return (
            f"PostgreSQL refuses to drop {place[1]} alone: it is a partition's part of "
            f"{called(*whole)}, which goes of all partitions together"
        )
    if action.concurrently and place in names.part_of.values():
        return f"PostgreSQL refuses DROP INDEX CONCURRENTLY of {place[1]}, a partitioned table's"
    return None


def _exists(catalog: NamedTables, action: actions.AddIndex) -> bool:
    """Whether IF NOT EXISTS makes nothing of it."""
    if not action.if_not_exists or action.name is None:
        return False
    table = catalog.names.table(action.table)
    schema = action.table.schema if table is None else table[0]
    return (schema, action.name) in catalog.names.indexes


def _parent_name(catalog: NamedTables, action: actions.AddIndex) -> str:
    place = catalog.names.table(action.table)
    assert place is not None, "a table that is partitioned is known"
    return action.name or chosen_name(
        place[1], action, lambda n: catalog.names.is_taken(place[0], n)
    )


def _hot_index(altered: Altered, action: actions.AddIndex, name: str) -> HotIndex:
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


def _keys_of(action: actions.AddIndex) -> tuple[str, ...]:
    """Columns of the key and its expressions; what the parser tells of no part is taken there."""
    own = {*action.columns, *action.expression_columns}
    beside = {*action.include, *action.predicate_columns}
    return tuple(name for name in action.depends if name in own or name not in beside)


def _of_row(action: actions.AddIndex, names: Iterable[str]) -> actions.AddIndex:
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


def _stand_in_of(
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
    gin = _gin_of(altered, action, labels(action.columns))
    if gin is not None:
        return replace(gin, name=profile_name(name, taken))
    is_plain = action.method in PRICED and not action.has_expressions
    columns = labels(action.columns) if is_plain and not action.whole_row else depends
    is_hash = action.method == "hash" and len(columns) == 1 and len(depends) == 1
    method: Literal["btree", "brin", "hash"] = "hash" if is_hash else "btree"
    if action.method == "brin":
        method = "brin"
    include = [n for n in depends if n not in columns] if method == "btree" else []
    return IndexProfile(
        name=profile_name(name, taken),
        columns=tuple(columns or depends),
        expressions=(),
        unique=False,
        method=method,
        # Columns of a predicate end HOT as well; all rows are taken to be in the index.
        include=tuple(include) if columns else (),
        where=None,
        fillfactor=action.fillfactor if action.method in ("btree", "hash") else None,
        deduplicate_items=None,
    )


def _gin_of(altered: Altered, action: actions.AddIndex, columns: list[str]) -> IndexProfile | None:
    """A GIN as what it is; None where nobody has counted the keys of a column's values."""
    if action.method != "gin" or action.whole_row or action.has_predicate:
        return None
    if action.has_expressions or len(columns) != len(action.columns):
        return None
    known = {column.name: column for column in altered.table.columns}
    opclasses = action.opclasses or ("",) * len(columns)
    for name, opclass in zip(columns, opclasses, strict=True):
        column = known.get(name)
        if column is None or not _core.knows_gin_keys(column.type, opclass):
            return None
        # Of a column without elements the profile's values have one key, whatever its own have.
        if column.elements is None and opclass != "gin_trgm_ops":
            return None
    return IndexProfile(
        name="",
        method="gin",
        columns=tuple(columns),
        opclass=action.opclasses,
        fastupdate=action.fastupdate,
    )
