"""
The locks that a transaction of a migration has, and what has to wait for them.

A lock stays until its transaction ends (src/backend/storage/lmgr/README): a table whose writers are
stopped waits for whatever the transaction does afterwards, to other tables too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from pgheadroom.migration.actions import MigrationStatement, NamedRelation, Work
from pgheadroom.migration.effect import LOCKS, STOPS_WRITERS, Effect, Lock
from pgheadroom.units import show_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Later:
    """Something long that a transaction does: its line, the table that it concerns, its size."""

    line: int
    table: NamedRelation
    size_bytes: int | None


@dataclass(slots=True)
class Held:
    """
    What a transaction has locked so far.

    Attributes:
        locks: The strongest by table of the profile, with the line that took it.
        stopped: Since which line writers wait, with the lock, by table.
        waited: What was done to other tables since then, by table.
    """

    locks: dict[str, tuple[Lock, int]] = field(default_factory=dict)
    stopped: dict[str, tuple[Lock, int]] = field(default_factory=dict)
    waited: dict[str, list[Later]] = field(default_factory=dict)

    def copied(self) -> Held:
        """The same, which what comes later leaves alone."""
        waited = {table: list(found) for table, found in self.waited.items()}
        return Held(locks=dict(self.locks), stopped=dict(self.stopped), waited=waited)

    def take(
        self, line: int, effects: Mapping[str, Iterable[Effect]], long: Mapping[str, Later]
    ) -> None:
        """
        One statement.

        Args:
            line: Of it.
            effects: What it does, by table.
            long: Tables on which it works for as long as they are big.
        """
        for table in self.stopped:
            others = [later for name, later in long.items() if name != table]
            if others and table not in long:
                self.waited.setdefault(table, []).append(max(others, key=_size))
        for table, found in effects.items():
            strongest = max((effect.lock for effect in found), key=LOCKS.index)
            if table not in self.locks or self.locks[table][0] != strongest:
                self.locks[table] = strongest, line
            if strongest in STOPS_WRITERS:
                self.stopped.setdefault(table, (strongest, line))

    def waiting(self) -> Iterator[tuple[str, int, Effect]]:
        """Tables that have waited for others, once each: the line that took longest, and what."""
        for table, found in self.waited.items():
            longest = max(found, key=_size)
            known = [later.size_bytes for later in found if later.size_bytes is not None]
            size = sum(known) if known else None
            lock, line = self.stopped[table]
            named = ", ".join(dict.fromkeys(str(later.table) for later in found))
            shown = "unknown size" if size is None else show_bytes(size)
            how = "one statement works" if len(found) == 1 else f"{len(found)} statements work"
            effect = Effect(
                lock=lock,
                effort="wait",
                what="its transaction goes on",
                does=f"stays locked while {how} on {named} ({shown}),",
                waits_for=longest.table,
                read_bytes=size,
                lock_since=line,
            )
            yield table, longest.line, effect


def refused(statement: MigrationStatement) -> Iterator[str]:
    """What PostgreSQL refuses after BEGIN (`PreventInTransactionBlock`)."""
    for action in statement.actions if statement.transaction is not None else ():
        is_refresh = isinstance(action, Work) and action.kind == "refresh"
        if getattr(action, "concurrently", False) and not is_refresh:
            yield (
                "PostgreSQL refuses CONCURRENTLY inside a transaction, and line "
                f"{statement.transaction} has begun one"
            )


def _size(later: Later) -> int:
    return later.size_bytes or 0
