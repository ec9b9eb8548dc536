"""
What a statement locks when a partition comes or goes, beside the partition: its table, the default.

A partitioned table has no rows of its own, so its lock is a note. Its default partition may have no
row that belongs to another one: it is locked with ACCESS EXCLUSIVE by whatever makes or takes away
a partition, and read where one comes, to see that it has none (`DefineRelation`,
`ATExecAttachPartition`, `ATExecDetachPartition`, `RangeVarCallbackForDropRelation`, tablecmds.c;
`check_default_partition_contents`, partbounds.c; `heap_drop_with_catalog`, heap.c; REL_15_STABLE
and REL_18_STABLE).
"""

from __future__ import annotations

from pgheadroom.migration.actions import Action, Address, NamedRelation, Remarkable, Work
from pgheadroom.migration.effect import STOPS_WRITERS, Effect
from pgheadroom.migration.names import NamesNow
from pgheadroom.migration.work import of_parent
from pgheadroom.quoting import called

_COMES = ("new partition", "attach partition")


def parent_locked(action: Action, names: NamesNow) -> tuple[NamedRelation, str] | None:
    """
    The partitioned table that an action locks, and how, as a note; None: none.

    Args:
        action: Of a statement.
        names: Before it.
    """
    if isinstance(action, Remarkable) and action.kind == "dropped":
        parent = _parent_of(action.table, names)
        if parent is None:
            return None
        said, lock = f"DROP TABLE {action.table}", "ACCESS EXCLUSIVE"
        target = NamedRelation(schema=None if parent[0] == "public" else parent[0], name=parent[1])
    else:
        if not isinstance(action, Work) or action.table is None:
            return None
        found = of_parent(action) if names.is_partitioned(action.table) else None
        if found is None:
            return None
        (said, lock), target = found, action.table
    waits = "DDL and vacuums of it wait"
    if lock in STOPS_WRITERS:
        waits = "every query that goes through it waits"
    return target, f"{said} locks it with {lock} until its transaction ends: {waits}"


def default_locked(action: Action, names: NamesNow) -> tuple[Address, Effect] | None:
    """
    The default partition beside the partition that an action is about, and what is done to it.

    Args:
        action: Of a statement.
        names: Before it.
    """
    parent, part = _family(action, names)
    default = None if parent is None else names.partitions.defaults.get(parent)
    if parent is None or default is None or default == part:
        return None
    table = called(*parent)
    if isinstance(action, Work) and action.kind in _COMES:
        effect = Effect(
            lock="ACCESS EXCLUSIVE",
            effort="scan",
            what=f"the default partition of {table}, which may have no row of the new one",
            unless="a valid CHECK constraint shows that it has none",
        )
        return default, effect
    what = f"the default partition of {table}, from which another one goes"
    return default, Effect(lock="ACCESS EXCLUSIVE", effort="nothing", what=what)


def is_lone_default(action: Work, names: NamesNow) -> bool:
    """
    Whether a default partition is attached that may have any row, so that none has to be read.

    It may where there is no other partition, and its table is none itself (`get_qual_for_list`,
    `get_qual_for_range`, partbounds.c).
    """
    parent = None if action.table is None else names.place_of(action.table)
    parents = names.partitions.parents
    return action.is_default and parent not in parents and parent not in parents.values()


def refused_beside_default(action: Action, names: NamesNow) -> str | None:
    """What PostgreSQL refuses because there is a default partition; None: nothing."""
    if not (isinstance(action, Work) and action.kind == "detach partition" and action.concurrently):
        return None
    parent, _ = _family(action, names)
    default = None if parent is None else names.partitions.defaults.get(parent)
    if default is None:
        return None
    return (
        "PostgreSQL refuses DETACH PARTITION CONCURRENTLY of a table with a default partition, "
        f"which is {called(*default)}"
    )


def _family(action: Action, names: NamesNow) -> tuple[Address | None, Address | None]:
    """The partitioned table that gets or loses a partition, and this, where it is known."""
    if isinstance(action, Remarkable) and action.kind == "dropped":
        return _parent_of(action.table, names), names.place_of(action.table)
    if not isinstance(action, Work) or action.table is None:
        return None, None
    if action.kind not in (*_COMES, "detach partition"):
        return None, None
    part = None if action.other is None else names.place_of(action.other)
    return names.place_of(action.table), part


def _parent_of(target: NamedRelation, names: NamesNow) -> Address | None:
    place = names.place_of(target)
    return None if place is None else names.partitions.parents.get(place)
