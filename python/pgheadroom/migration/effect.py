"""
What a statement does to one table: the lock that it takes, and what it does under it.

ALTER TABLE takes the strictest lock that one of its parts needs, and takes it first, on each table
that they touch; what rewrites the table and what reads every row for a check goes in one pass
(`AlterTableGetLockLevel`, `ATRewriteTables`, tablecmds.c). Indexes that a rewriting statement adds
are built with the new heap (`ATExecAddIndex`).

Only what grows with the table's size under a lock that stops writers is a finding; a lock that is
held for an instant is named, no more. A lock stays until its transaction ends: what a later
statement of the transaction does to the table is done under it (`kept`). How long a statement waits
for its lock is not judged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from pgheadroom.migration.actions import NamedRelation

Lock = Literal[
    "ACCESS SHARE",
    "ROW SHARE",
    "ROW EXCLUSIVE",
    "SHARE UPDATE EXCLUSIVE",
    "SHARE",
    "SHARE ROW EXCLUSIVE",
    "EXCLUSIVE",
    "ACCESS EXCLUSIVE",
]
LOCKS: tuple[Lock, ...] = get_args(Lock)
"""From the weakest."""

Effort = Literal["nothing", "wait", "probe", "scan", "fill", "build", "rewrite"]

DOES: dict[Effort, str] = {
    "nothing": "takes a lock for an instant",
    "wait": "stays locked",
    "probe": "is looked up by its key",
    "scan": "reads all of it",
    "fill": "writes its rows",
    "build": "builds an index",
    "rewrite": "rewrites it",
}
STOPS_WRITERS = frozenset({"SHARE", "SHARE ROW EXCLUSIVE", "EXCLUSIVE", "ACCESS EXCLUSIVE"})
"""Locks that conflict with ROW EXCLUSIVE (`LockConflicts`, src/backend/storage/lmgr/lock.c)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """
    What a statement does to one table while it runs.

    Attributes:
        lock: The strongest that it takes on the table.
        effort: What takes the longer the bigger the table is.
        what: The part of the statement, for people.
        unless: What would make it otherwise, where that is not known.
        does: The effort, for people; None: in general words.
        shares_pass: A scan that goes along with a rewrite by the same statement, and with others.
        beside: What else waits, for people.
        waits_for: The table that is read meanwhile and whose size decides how long it takes; None:
            its own. `read_bytes` is that size, None where it is not known.
        lock_since: The line of an earlier statement of the transaction whose lock it is; None: it
            takes the lock itself.
        called: What the table is called when the statement runs, where that is not as observed.
    """

    lock: Lock
    effort: Effort
    what: str
    unless: str | None = None
    does: str | None = None
    shares_pass: bool = False
    beside: str | None = None
    waits_for: NamedRelation | None = None
    read_bytes: int | None = None
    lock_since: int | None = None
    called: NamedRelation | None = None

    @property
    def stops_writers(self) -> bool:
        """Whether nobody can write meanwhile."""
        return self.lock in STOPS_WRITERS

    @property
    def is_long(self) -> bool:
        """Whether writers wait for as long as the table is big."""
        return self.stops_writers and self.effort != "nothing"


def joined(effects: Sequence[Effect]) -> tuple[Effect, ...]:
    """
    What one statement does to one table, from what its parts would do alone.

    Args:
        effects: Of the parts, at least one.
    """
    lock = max((effect.lock for effect in effects), key=LOCKS.index)
    raised = [replace(effect, lock=lock) for effect in effects]
    rewrites = [effect for effect in raised if effect.effort == "rewrite"]
    if any(effect.unless is None for effect in rewrites):
        along = [e for e in raised if e.shares_pass or e.effort in ("rewrite", "build")]
    else:
        along = rewrites
    made = [_one(along)] if along else []
    raised = [effect for effect in raised if effect not in along]
    scans = [effect for effect in raised if effect.shares_pass and effect.effort == "scan"]
    made += [_one(scans)] if scans else []
    return tuple(made + [effect for effect in raised if effect not in scans])


def kept(effects: Sequence[Effect], held: tuple[Lock, int] | None) -> tuple[Effect, ...]:
    """
    What a statement does to a table of which its transaction has a lock already.

    Args:
        effects: Of the statement, with its own lock.
        held: The strongest lock so far, with its line; None: there is none.
    """
    if held is None:
        return tuple(effects)
    lock, line = held
    return tuple(
        replace(effect, lock=lock, lock_since=line)
        if LOCKS.index(effect.lock) < LOCKS.index(lock)
        else effect
        for effect in effects
    )


def _one(effects: Sequence[Effect]) -> Effect:
    """Several efforts in one pass, as strong as the strongest of them."""
    if len(effects) == 1:
        return effects[0]
    efforts = tuple(DOES)
    strongest = max(effects, key=lambda effect: efforts.index(effect.effort))
    deciding = [effect for effect in effects if effect.effort == strongest.effort]
    unless = None
    if all(effect.unless is not None for effect in deciding):
        unless = " and ".join(dict.fromkeys(str(effect.unless) for effect in deciding))
    return replace(
        strongest,
        what=", ".join(dict.fromkeys(effect.what for effect in effects)),
        unless=unless,
        does=f"{DOES[strongest.effort]} once",
    )
