"""
Foreign keys that were observed, and what statements lock at their other end.

A key that goes, or is made anew for another type, takes its triggers on both tables with it: the
other one is locked with ACCESS EXCLUSIVE as the statement's own table is (`ATExecDropConstraint`,
`ATPostAlterTypeCleanup`, tablecmds.c; `RemoveTriggerById`, trigger.c), and stays so until the
transaction ends. A partition that comes or goes has a key of its own from then on, made under SHARE
ROW EXCLUSIVE. TRUNCATE ... CASCADE takes the tables that refer to its own along
(`heap_truncate_find_FKs`, heap.c). Keys that the migration itself makes are not followed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from pgheadroom.migration import actions
from pgheadroom.migration.actions import Action, Address, NamedRelation, Remarkable, Work
from pgheadroom.migration.effect import Effect, Lock
from pgheadroom.profile.observed_server import ObservedForeignKey
from pgheadroom.quoting import called


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """
    A foreign key between two tables by the names that they have now.

    `columns` and `referenced` are names as observed; `index` is the unique index behind the
    referenced columns, None where it is not known.
    """

    name: str
    table: Address
    columns: tuple[str, ...]
    references: Address
    referenced: tuple[str, ...]
    index: str | None

    @property
    def is_own(self) -> bool:
        """Both ends are one table."""
        return self.table == self.references


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherEnd:
    """What a statement does to the table at a key's other end."""

    place: Address
    effect: Effect


class ForeignKeys:
    """
    Those of a database, while a migration renames and drops what they are of.

    `is_known` is False where none were read: nothing is said of other tables then.
    """

    def __init__(self, observed: Iterable[ObservedForeignKey] | None) -> None:
        self.is_known = observed is not None
        self._keys = [
            Key(
                name=found.name,
                table=(found.schema, found.table),
                columns=found.columns,
                references=(found.references_schema, found.references),
                referenced=found.references_columns,
                index=found.references_index,
            )
            for found in observed or ()
        ]

    def copied(self) -> ForeignKeys:
        """The same, which what comes later leaves alone."""
        made = ForeignKeys(None)
        made.is_known, made._keys = self.is_known, list(self._keys)
        return made

    def move(self, place: Address, moved: Address) -> None:
        """A table has another name or schema."""
        self._keys = [
            replace(
                key,
                table=moved if key.table == place else key.table,
                references=moved if key.references == place else key.references,
            )
            for key in self._keys
        ]

    def rename(self, old: NamedRelation, new: str) -> None:
        """A constraint is called otherwise: the only key of that name."""
        named = [
            key for key in self._keys if key.name == old.name and old.schema in (None, key.table[0])
        ]
        if len(named) == 1:
            self._keys = [replace(k, name=new) if k in named else k for k in self._keys]

    def drop(self, gone: Iterable[Key]) -> None:
        """They are no more."""
        out = set(gone)
        self._keys = [key for key in self._keys if key not in out]

    def add(self, key: Key) -> None:
        """A new one."""
        self._keys.append(key)

    def rename_column(self, place: Address, old: str, new: str) -> None:
        """Of a table that the migration has made; observed columns keep their names as observed."""

        def renamed(columns: tuple[str, ...], at: Address) -> tuple[str, ...]:
            return tuple(new if name == old and at == place else name for name in columns)

        self._keys = [
            replace(
                key,
                columns=renamed(key.columns, key.table),
                referenced=renamed(key.referenced, key.references),
            )
            for key in self._keys
        ]

    def of_table(self, place: Address) -> list[Key]:
        """Keys with an end there."""
        return [key for key in self._keys if place in (key.table, key.references)]

    def going(self, action: Action, place: Address, columns: frozenset[str]) -> list[Key]:
        """
        Keys that go with an action.

        Args:
            action: Of a statement.
            place: Of its table.
            columns: The column that it drops, as observed.
        """
        found = self.of_table(place)
        if isinstance(action, actions.DropIndex):
            name = action.index.name
            return [
                key
                for key in found
                if (key.table == place and key.name == name and action.table is not None)
                or (key.references == place and key.index == name)
            ]
        if isinstance(action, actions.DropColumn):
            return [key for key in found if _has(key, place, columns)]
        if isinstance(action, Remarkable) and action.kind == "dropped":
            return found
        return []

    def locked(
        self, action: Action, place: Address, columns: frozenset[str], own: Effect | None
    ) -> Iterator[OtherEnd]:
        """
        Other tables that an action locks.

        Args:
            action: Of a statement.
            place: Of its table.
            columns: The column that it drops or gives another type, as observed.
            own: What it does to its own table.
        """
        for key in self.going(action, place, columns):
            if not key.is_own:
                yield _gone(key, place, action)
        if isinstance(action, actions.SetColumn) and not action.is_new:
            yield from (
                _made_anew(key, place, own)
                for key in self.of_table(place)
                if not key.is_own and _has(key, place, columns)
            )
        if isinstance(action, Work) and action.kind == "truncate":
            yield from self._truncated(place)
        if isinstance(action, Work) and action.kind in _OF_PARTITIONS:
            yield from (
                _of_partition(key, action) for key in self.of_table(place) if key.table == place
            )

    def _truncated(self, place: Address) -> Iterator[OtherEnd]:
        """Tables that refer to it, and those that refer to these."""
        seen, left = {place}, [place]
        while left:
            referenced = left.pop()
            for key in self.of_table(referenced):
                if key.references == referenced and key.table not in seen:
                    seen.add(key.table)
                    left.append(key.table)
                    what = (
                        f"truncated with {called(*place)} by CASCADE, for {key.name} refers to it"
                    )
                    yield _end(key.table, "ACCESS EXCLUSIVE", what)


_OF_PARTITIONS = ("attach partition", "detach partition", "new partition")


def _has(key: Key, place: Address, columns: frozenset[str]) -> bool:
    """Whether one of the columns is at its end there."""
    here = key.columns if key.table == place else ()
    there = key.referenced if key.references == place else ()
    return not columns.isdisjoint((*here, *there))


def _gone(key: Key, place: Address, action: Action) -> OtherEnd:
    if key.table == place:
        return _end(key.references, "ACCESS EXCLUSIVE", f"referenced by {_said(key)}, which goes")
    with_ = action.index.name if isinstance(action, actions.DropIndex) else called(*place)
    if isinstance(action, actions.DropColumn):
        with_ = f"column {action.name} of {called(*place)}"
    what = f"its foreign key {key.name} goes with {with_} by CASCADE"
    return _end(key.table, "ACCESS EXCLUSIVE", what)


def _made_anew(key: Key, place: Address, own: Effect | None) -> OtherEnd:
    """The key is dropped and made again, and checked where values were (`TryReuseForeignKey`)."""
    is_checked = own is not None and own.effort == "rewrite"
    unless = own.unless if own is not None and is_checked else None
    if key.table == place:
        what = f"referenced by {_said(key)}, which is made anew"
        waits = NamedRelation(schema=place[0], name=place[1]) if is_checked else None
        effect = Effect(
            lock="ACCESS EXCLUSIVE",
            effort="probe" if is_checked else "nothing",
            what=what,
            waits_for=waits,
            unless=unless,
        )
        return OtherEnd(place=key.references, effect=effect)
    effect = Effect(
        lock="ACCESS EXCLUSIVE",
        effort="scan" if is_checked else "nothing",
        what=f"its foreign key {key.name} to {called(*place)} is made anew",
        unless=unless,
    )
    return OtherEnd(place=key.table, effect=effect)


def _of_partition(key: Key, action: Work) -> OtherEnd:
    what = f"referenced by {_said(key)}, of which a partition has its own"
    end = _end(key.references, "SHARE ROW EXCLUSIVE", what)
    if action.kind == "attach partition":
        effect = replace(end.effect, effort="probe", waits_for=action.other)
        return replace(end, effect=effect)
    return end


def _end(place: Address, lock: Lock, what: str) -> OtherEnd:
    return OtherEnd(place=place, effect=Effect(lock=lock, effort="nothing", what=what))


def _said(key: Key) -> str:
    return f"foreign key {key.name} of {called(*key.table)}"
