"""
Statements of a table whose rows lie in others: partitions, and tables that inherit.

A statement names the partitioned table; counters are those of the partitions. Which of them had how
many of its rows nobody counts. Each partition has the updates that its own counter has: those of
statements that name it are known, and the rest is shared out over the statements of the tables
above it as these have rows in all. Where the partition's HOT counters say that more of its updates
must have changed an indexed column, or fewer can have, the shares follow them, those of statements
that name it too.

A row that an UPDATE moves to another partition is one of the statement's rows, and of the counters
one delete and one insert (`ExecCrossPartitionUpdate`, nodeModifyTable.c): where all statements are
counted, what their rows have beyond the partitions' updates was moved.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pgheadroom.observe.answers import Answers
from pgheadroom.observe.classes import Classes, CountedUpdates
from pgheadroom.observe.counters import differences
from pgheadroom.observe.shares import COUNTERS_LAG_S, is_pure
from pgheadroom.sources.recording import Recording

UPDATE_COUNTERS = ("n_tup_upd", "n_tup_hot_upd", "n_tup_newpage_upd")
_SAME_PAGE_FROM = 16
"""The first version that counts updates that went to another page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Routed:
    """
    Classes of a table.

    `is_shared`: some are of a table above it, or of the table with its heirs: how many of their
    rows are this table's is not counted, and each class has `routed`.
    """

    classes: tuple[CountedUpdates, ...]
    is_shared: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Passing:
    """
    Partitions, by OID, that are no tables of the profile, for they were made or dropped meanwhile.

    `updates`: of these, and of those that were there at neither end; None: nothing tells.
    """

    came: tuple[int, ...]
    went: tuple[int, ...]
    updates: int | None


class Routes:
    """Where the rows of statements lie."""

    def __init__(self, recording: Recording, classes: Classes, answers: Answers) -> None:
        seen = {row["oid"]: row for row in recording.rows("tables", "shape")}
        # What was made inside the interval has updates of the tables above it too.
        ends = {row["oid"]: row for row in recording.rows("tables", "end")}
        self._rows = ends | seen
        self._seen, self._left = set(seen), set(ends) or set(seen)  # no answer: none is known gone
        self._classes = classes.by_table
        self._answers = answers
        self._children: dict[int, list[int]] = {}
        for row in self._rows.values():
            if row["parent_oid"] is not None:
                self._children.setdefault(row["parent_oid"], []).append(row["oid"])
        self._names: dict[int, dict[int, str]] = {}
        for oid, columns in answers.columns.items():
            self._names[oid] = {c["attnum"]: c["name"] for c in columns if not c["is_dropped"]}
        self._moved: dict[int, int | None] = {}

    def classes_of(self, oid: int) -> Routed:
        """
        Classes of a table that has rows, by its own attribute numbers.

        Args:
            oid: Of the table.
        """
        own = self._classes.get(oid, ())
        has_heirs = oid in self._children
        mine = tuple(one for one in own if one.only or not has_heirs)
        whole = [one for one in own if not (one.only or not has_heirs)]
        above = [self._renumbered(one, oid) for one in self._above(oid) if not one.only]
        others = [*whole, *above]
        updates = self._updates(oid) or 0
        if not others or (mine and _explain(mine, updates, self._answers.interval_s)):
            return Routed(classes=mine, is_shared=False)
        source = min((one.source for one in (*mine, *others)), key=_order)
        mine = tuple(one for one in mine if one.source == source)
        others = [one for one in others if one.source == source]
        if not others:
            return Routed(classes=mine, is_shared=False)
        if self._is_alone(oid):
            return Routed(classes=(*mine, *others), is_shared=False)
        return Routed(classes=tuple(_routed(mine, others, updates)), is_shared=True)

    def _is_alone(self, oid: int) -> bool:
        """Whether all that statements wrote to the family was written to this table."""
        root = self._root(oid)
        leaves = [
            one
            for one in (root, *self._below(root))
            if one != oid and self._rows[one].get("relkind") == "r"
        ]
        if not {oid, *leaves} <= self._seen & self._left:
            return False  # one came or went, and its counters with it
        return all(
            self._counter(one, name) == 0 for one in leaves for name in ("n_tup_ins", "n_tup_upd")
        )

    def moved(self, oid: int) -> int | None:
        """
        Rows that UPDATEs of a partitioned table moved to another partition.

        Fewer than counters may err by are not told from none. None where not all statements that
        were seen have their rows counted.
        """
        root = self._root(oid)
        if root not in self._moved:
            self._moved[root] = self._counted_moved(root)
        return self._moved[root]

    def passing(self, oid: int) -> Passing:
        """
        Partitions of a partitioned table, of all levels, that came and went inside the interval.

        Counters of one that went are gone with it. What the statements of the table have beyond the
        counters of the partitions that stayed was in the others, where all its statements are
        counted, none may move rows, and none of a table above it reaches them too.
        """
        leaves = [leaf for leaf in self._below(oid) if self._rows[leaf].get("relkind") == "r"]
        came = tuple(leaf for leaf in leaves if leaf not in self._seen)
        went = tuple(leaf for leaf in leaves if leaf not in self._left)
        stayed = [self._updates(leaf) for leaf in leaves if leaf not in (*came, *went)]
        beyond = self._beyond(oid, stayed)
        counted = [self._updates(leaf) for leaf in came]
        found = None if went or None in counted else sum(n or 0 for n in counted)
        if beyond is not None:
            found = max(beyond, sum(n or 0 for n in counted))
        if leaves and not (came or went or found):
            found = None
        return Passing(came=came, went=went, updates=found)

    def _beyond(self, oid: int, stayed: Sequence[int | None]) -> int | None:
        """Rows that statements have beyond these counters; None where they do not tell."""
        listed = [one for each in (oid, *self._below(oid)) for one in self._classes.get(each, ())]
        if not listed or not is_pure(listed) or any(self._above(oid)) or None in stayed:
            return None
        if any(one.source != "pg_stat_statements" or one.rows is None for one in listed):
            return None
        if self._movers(oid, self._key_names(self._root(oid))):
            return None
        counted = sum(n or 0 for n in stayed)
        beyond = sum(one.rows or 0 for one in listed) - counted
        noise = min(COUNTERS_LAG_S / self._answers.interval_s, 0.5) * counted
        if beyond < -noise:
            return None  # the counters have updates of which the statements tell nothing
        return beyond if beyond > noise else 0

    def _above(self, oid: int) -> Iterator[CountedUpdates]:
        """Classes of the tables above, and how many of their rows were not moved."""
        parent = (self._rows.get(oid) or {}).get("parent_oid")
        while parent is not None:
            yield from self._staying(parent)
            parent = (self._rows.get(parent) or {}).get("parent_oid")

    def _staying(self, oid: int) -> Iterator[CountedUpdates]:
        """Classes of a table with heirs, and how many of their rows were not moved."""
        found = self._classes.get(oid, ())
        moved = self.moved(oid) or 0
        keys = self._key_names(self._root(oid)) if moved else frozenset()
        movers = self._movers(self._root(oid), keys) if moved else []
        rows = sum(one.rows or 0 for one in movers)
        for one in found:
            if not rows or not self._assigns(one, keys):
                yield one
                continue
            left = round((one.rows or 0) * max(rows - moved, 0) / rows)
            yield replace(one, stayed=left)

    def _movers(self, root: int, keys: frozenset[str]) -> list[CountedUpdates]:
        """Classes that may move rows: an UPDATE of a partition itself has to leave them there."""
        family = [root, *self._below(root)]
        parted = [oid for oid in family if (self._rows.get(oid) or {}).get("relkind") == "p"]
        found = [one for oid in parted for one in self._classes.get(oid, ())]
        return [one for one in found if self._assigns(one, keys)]

    def _assigns(self, one: CountedUpdates, keys: frozenset[str]) -> bool:
        names = self._names.get(one.table_oid, {})
        return any(names.get(n) in keys for n in one.attnums if n not in one.same)

    def _counted_moved(self, root: int) -> int | None:
        """What statements' rows have beyond the counters, where statements may move rows."""
        if (self._rows.get(root) or {}).get("relkind") != "p":
            return None
        family = [root, *self._below(root)]
        listed = [one for oid in family for one in self._classes.get(oid, ())]
        movers = self._movers(root, self._key_names(root))
        if not listed or not is_pure(listed):
            return None
        if any(one.source != "pg_stat_statements" or one.rows is None for one in listed):
            return None
        leaves = [oid for oid in family if (self._rows.get(oid) or {}).get("relkind") == "r"]
        updates = [self._updates(oid) for oid in leaves]
        deletes = [self._counter(oid, "n_tup_del") for oid in leaves]
        counted = [n for n in updates if n is not None]
        gone = [n for n in deletes if n is not None]
        if len(counted) < len(leaves) or len(gone) < len(leaves):
            return None  # one was dropped meanwhile
        beyond = sum(one.rows or 0 for one in listed) - sum(counted)
        noise = min(COUNTERS_LAG_S / self._answers.interval_s, 0.5)
        if not movers or beyond <= noise * sum(counted):
            return 0
        return min(beyond, sum(gone), sum(one.rows or 0 for one in movers))

    def _key_names(self, root: int) -> frozenset[str]:
        """Columns of the partition keys of all levels."""
        found: set[str] = set()
        for oid in (root, *self._below(root)):
            names = self._names.get(oid, {})
            numbers = (self._rows.get(oid) or {}).get("partition_attnums") or ()
            found |= {names[n] for n in numbers if n in names}
        return frozenset(found)

    def _below(self, oid: int) -> Iterator[int]:
        for child in self._children.get(oid, ()):
            yield child
            yield from self._below(child)

    def _root(self, oid: int) -> int:
        while True:
            parent = (self._rows.get(oid) or {}).get("parent_oid")
            if parent is None or parent not in self._rows:
                return oid
            oid = parent

    def _updates(self, oid: int) -> int | None:
        return self._counter(oid, "n_tup_upd")

    def _counter(self, oid: int, name: str) -> int | None:
        before, after = self._answers.before.get(oid), self._answers.after.get(oid)
        found = differences(before, after, (name,)).get(name)
        return None if found is None else int(found)

    def _renumbered(self, one: CountedUpdates, own: int) -> CountedUpdates:
        """Under the attribute numbers of the table itself: columns pair by name."""
        numbers = {name: number for number, name in self._names.get(own, {}).items()}
        names = self._names.get(one.table_oid, {})
        places: Mapping[int, int] = {n: numbers[x] for n, x in names.items() if x in numbers}

        def moved(attnums: tuple[int, ...]) -> tuple[int, ...]:
            return tuple(places[n] for n in attnums if n in places)

        return replace(
            one,
            attnums=moved(one.attnums),
            same=moved(one.same),
            appended=moved(one.appended),
            taken=one.taken if all(old == new for old, new in places.items()) else None,
        )


def follow_counters(
    classes: Sequence[CountedUpdates],
    counters: Mapping[str, int | float | None],
    ending_hot: frozenset[int],
    *,
    major: int,
) -> tuple[CountedUpdates, ...]:
    """
    Shared classes, with as many updates of indexed columns as the table's counters allow.

    An update that stayed on its page and was not HOT has changed one of these, and a HOT one none.

    Args:
        classes: With `routed`; triggers' columns are among theirs.
        counters: Of the table.
        ending_hot: Columns, by attribute number.
        major: Of the server.
    """
    updates, hot = counters.get("n_tup_upd"), counters.get("n_tup_hot_upd")
    total = math.fsum(one.routed or 0.0 for one in classes)
    is_indexed = [not ending_hot.isdisjoint({*one.attnums} - {*one.same}) for one in classes]
    indexed = math.fsum(
        one.routed or 0.0 for one, among in zip(classes, is_indexed, strict=True) if among
    )
    if not updates or hot is None or not 0 < indexed < total:
        return tuple(classes)
    newpage = counters.get("n_tup_newpage_upd") if major >= _SAME_PAGE_FROM else None
    least = 0.0 if newpage is None else max(updates - hot - newpage, 0) / updates
    most = max(updates - hot, 0) / updates
    share = min(max(indexed / total, least), most)
    if newpage is None and share != indexed / total:
        # On 15 an update that is not HOT may have lacked room.
        return tuple(classes)
    inside, outside = share * total / indexed, (1 - share) * total / (total - indexed)
    return tuple(
        replace(one, routed=(one.routed or 0.0) * (inside if among else outside))
        for one, among in zip(classes, is_indexed, strict=True)
    )


def _order(source: str) -> int:
    return ("pg_stat_statements", "log", "statements", "pg_stat_activity").index(source)


def _explain(classes: Sequence[CountedUpdates], updates: int, interval_s: float) -> bool:
    """Whether statements that name the table itself are all of its updates, lag apart."""
    if any(one.rows is None for one in classes):
        return False
    rows = sum(one.rows or 0 for one in classes)
    return updates - rows <= min(COUNTERS_LAG_S / interval_s, 0.5) * updates


def _routed(
    own: Sequence[CountedUpdates], others: Sequence[CountedUpdates], updates: int
) -> Iterator[CountedUpdates]:
    """The table's updates: those of its own statements, and the others' as these have rows."""
    by_rows = all(one.rows is not None for one in (*own, *others))

    def weight(one: CountedUpdates) -> float:
        if one.stayed is not None:
            return float(one.stayed)
        return float(one.rows or 0) if by_rows else float(one.calls) * (one.rows != 0)

    of_own, of_others = math.fsum(map(weight, own)), math.fsum(map(weight, others))
    if by_rows and of_others:
        # Rows of its own statements are known: the others have what is left.
        each_own = min(1.0, updates / of_own) if of_own else 0.0
        each_other = max(updates - of_own, 0.0) / of_others
    else:
        each_own = each_other = updates / max(of_own + of_others, 1.0)
    for one in own:
        yield replace(one, routed=weight(one) * each_own, wal_bytes=None, wal_fpi=None)
    for one in others:
        # What they wrote is of all partitions, some of which may be HOT and others not.
        yield replace(one, routed=weight(one) * each_other, wal_bytes=None, wal_fpi=None)
