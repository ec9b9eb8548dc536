"""
Counts of rows that the order of several clients decides, where no lock of maintenance is in play.

The twin's runs have other orders. Where they agree on such a count they do so by chance, and it is
no certain one.

    client 1:  DELETE the head: rows 1, 2            INSERT
    client 2:               DELETE the head: none            <- two rows, had it come later
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import combinations

from pgheadroom.predict.chance import chance_half
from pgheadroom.predict.uncertain_rows import beside_maintenance, deadlocked_of
from pgheadroom.profile import Operation, Profile, RowRange, TableProfile

_LOCKING = frozenset({"update", "delete", "upsert", "lock"})
# What statements count.
_COUNTS = {
    "insert": ("n_tup_ins",),
    "update": ("n_tup_upd",),
    "delete": ("n_tup_del",),
    "upsert": ("n_tup_ins", "n_tup_upd"),
}


def contended_of(profile: Profile) -> Mapping[str, Mapping[str, int]]:
    """
    Of each table the counts that several clients' order decides, and the rows of a statement.

    Whose turn a script is decides the order, where there are several: then a client's own keys and
    draws are others, and certain is only what has its rows in every turn. So it is where time
    decides how many turns each client has. Of one script and so many turns each client's are the
    same in every order; what they find may be what others have left.
    """
    found: dict[str, dict[str, int]] = {}
    for number in sorted(contended_turns_of(profile)):
        operation = profile.workload.operations[number]
        for key in _COUNTS.get(operation.kind, ()):
            rows = found.setdefault(operation.table, {})
            rows[key] = max(rows.get(key, 0), operation.rows_max)
    return found


def contended_turns_of(profile: Profile) -> frozenset[int]:
    """Operations, by number, of whose turns the clients' order decides how many rows they find."""
    workload = profile.workload
    if workload.run.clients == 1:
        return frozenset()
    failing = _failing(profile)
    by_time = workload.run.duration_s is not None
    is_dealt = by_time or len(workload.transactions()) > 1 or bool(failing)
    turns = {table.name: _Turns.of(profile, table, failing) for table in profile.tables}
    return frozenset(
        number
        for number, operation in enumerate(workload.operations)
        if not turns[operation.table].are_full(operation)
        and (is_dealt or not turns[operation.table].are_apart(operation))
    )


def turn_halves(profile: Profile, share: float = 1.0) -> dict[int, float]:
    """
    By how much an operation's turns without a row are uncertain, by its number; not where certain.

    Args:
        profile: The profile.
        share: Of the whole in each run of the twin.
    """
    halves = dict.fromkeys(sorted(contended_turns_of(profile)), chance_half(share))
    beside = beside_maintenance(profile)
    for number, operation in enumerate(profile.workload.operations):
        if rows := beside.get(operation.table, 0.0):
            halves[number] = math.hypot(halves.get(number, 0.0), rows)
    return halves


def failed_half(profile: Profile, share: float = 1.0) -> float:
    """
    By how much the number of failed transactions is uncertain; 0 where none can fail.

    A REINDEX may end one of each client's in a deadlock.

    Args:
        profile: The profile.
        share: Of the whole in each run of the twin.
    """
    clients = profile.workload.run.clients
    half = chance_half(share) if may_fail(profile) else 0.0
    return math.hypot(half, clients) if deadlocked_of(profile) else half


def may_fail(profile: Profile) -> bool:
    """Whether a server may roll back a transaction because of others, but for maintenance."""
    return profile.workload.run.clients > 1 and bool(_failing(profile))


@dataclass(frozen=True, slots=True)
class _Turns:
    """What operations of a table may find in their turns, with several clients."""

    writing: tuple[Operation, ...]
    failing: tuple[Operation, ...]  # of transactions that may be rolled back in the middle
    loaded_rows_per_client: int
    has_inserts: bool
    has_deletes: bool
    has_holes: bool  # keys that were counted and have no row

    @classmethod
    def of(
        cls, profile: Profile, table: TableProfile, failing: Collection[tuple[Operation, ...]]
    ) -> _Turns:
        of_table = [
            (operation, transaction[0].abort_frac > 0 or transaction in failing)
            for transaction in profile.workload.transactions()
            for operation in transaction
            if operation.table == table.name
        ]
        inserting = [(one, may_abort) for one, may_abort in of_table if one.kind == "insert"]
        return cls(
            writing=tuple(one for one, _ in of_table if one.kind in _COUNTS),
            failing=tuple(one for transaction in failing for one in transaction),
            loaded_rows_per_client=table.rows // profile.workload.run.clients,
            has_inserts=bool(inserting),
            has_deletes=any(one.kind == "delete" for one, _ in of_table),
            has_holes=any(
                may_abort or isinstance(one.rows_per_statement, RowRange)
                for one, may_abort in inserting
            ),
        )

    def are_full(self, operation: Operation) -> bool:
        """Whether each turn has as many rows as any other, whoever comes first."""
        if isinstance(operation.rows_per_statement, RowRange) or operation in self.failing:
            return False
        if operation.kind == "insert":
            return True
        if self.has_deletes or operation.rows_max > 1 or operation.is_head:
            return False
        if not (operation.is_living or _is_newest(operation)):
            return True
        pick = operation.pick
        assert pick is not None, "what is no insert picks its rows"
        if self.has_holes:
            return False
        return self.loaded_rows_per_client > (pick.max_age_rows or 0)

    def are_apart(self, operation: Operation) -> bool:
        """Whether what a turn finds is up to the client alone, by what it did before."""
        if operation.kind == "insert":
            return True
        if operation.is_head:
            return False
        if self.has_deletes:
            others = [one for one in self.writing if one.kind != "insert"]
            return all(_has_own_rows(one) for one in (operation, *others))
        return operation.rows_max == 1 or not self.has_inserts


def _failing(profile: Profile) -> frozenset[tuple[Operation, ...]]:
    """
    Transactions that a server may roll back in the middle.

    For a deadlock two have to lock rows in another order: a transaction comes to a table, then to
    one from which others, or itself, come back to the first. With REPEATABLE READ whoever meets a
    row that was changed since its snapshot fails.
    """
    transactions = profile.workload.transactions()
    if profile.workload.run.isolation == "repeatable read":

        def meets_a_change(one: Operation) -> bool:
            return one.is_head or _may_wait(one) or bool(_parents(profile, one))

        return frozenset(each for each in transactions if any(map(meets_a_change, each)))
    steps = [
        [
            (first.held, held)
            for first, then in combinations(_locks_of(profile, each), 2)
            for held in then.waits_for
        ]
        + [
            (lock.held, lock.held)
            for one in each
            if _may_wait(one) and one.rows_max > 1 and one.find != "index"
            for lock in [_Lock.of(one)]
        ]
        for each in transactions
    ]
    reached = _reached({step for each in steps for step in each})
    return frozenset(
        each
        for each, of_each in zip(transactions, steps, strict=True)
        if any((then, first) in reached for first, then in of_each)
    )


_Held = tuple[str, str]
"""Rows of a table, and how somebody has locked them."""

# Which locks a lock waits for: of a foreign key's row, of an UPDATE's, and FOR UPDATE or to delete.
# Source: `tupleLockExtraInfo` and section "Row-Level Locks", doc/src/sgml/mvcc.sgml.
_WAITS_FOR = {
    "key share": ("update",),
    "no key update": ("no key update", "update"),
    "update": ("key share", "no key update", "update"),
}


@dataclass(frozen=True, slots=True)
class _Lock:
    """Rows of a table that a statement locks, and whether another client may have them."""

    table: str
    mode: str
    may_wait: bool = True

    @classmethod
    def of(cls, operation: Operation) -> _Lock:
        mode = "update" if operation.kind in ("delete", "lock") else "no key update"
        return cls(operation.table, mode, _may_wait(operation))

    @property
    def held(self) -> _Held:
        return self.table, self.mode

    @property
    def waits_for(self) -> list[_Held]:
        modes = _WAITS_FOR[self.mode] if self.may_wait else ()
        return [(self.table, mode) for mode in modes]


def _locks_of(profile: Profile, transaction: tuple[Operation, ...]) -> list[_Lock]:
    """What a transaction locks, in order: each statement's rows, then those that they refer to."""
    found = []
    for operation in transaction:
        if operation.kind in _LOCKING:
            found.append(_Lock.of(operation))
        found += [_Lock(parent, "key share") for parent in _parents(profile, operation)]
    return found


def _parents(profile: Profile, operation: Operation) -> list[str]:
    """Tables whose rows a statement's foreign keys look for."""
    if operation.kind not in ("insert", "upsert", "update"):
        return []
    keys = profile.table(operation.table).foreign_keys
    changed = {change.column for change in operation.sets}
    inserts = operation.kind != "update"
    return [key.references for key in keys if inserts or key.column in changed]


def _may_wait(operation: Operation) -> bool:
    """Whether another client's statement may have the rows that it locks."""
    return operation.kind in _LOCKING and not (_has_own_rows(operation) or operation.is_head)


def _reached(steps: set[tuple[_Held, _Held]]) -> set[tuple[_Held, _Held]]:
    """Pairs of which the second is reached from the first in any number of steps."""
    found = set(steps)
    while True:
        further = {(one, other) for one, via in found for then, other in steps if then == via}
        if further <= found:
            return found
        found |= further


def _is_newest(operation: Operation) -> bool:
    return operation.pick is not None and operation.pick.distribution == "newest"


def _has_own_rows(operation: Operation) -> bool:
    """Whether a client's turns are at rows that no other client's are at."""
    if operation.is_head or operation.rows_max > 1:
        return False
    return operation.is_living or _is_newest(operation)
