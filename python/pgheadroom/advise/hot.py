"""
Which updates can be HOT, by rule: nothing is played or estimated here.

An update can be HOT if it changes no column that an index reads. `heap_update` (heapam.c) compares
old and new value, byte by byte, of every such column (`HeapDetermineColumnsInfo`); which columns
these are, `RelationGetIndexAttrBitmap` (relcache.c) says:

    key columns and INCLUDE columns      all of pg_index.indkey
    expressions and the predicate        every column that they name (`pull_varattnos`)
    the row itself inside one of them    always counts as changed: no update is HOT any more
    invalid indexes                      count as long as they are live (`RelationGetIndexList`)

On 15 every index counts (`INDEX_ATTR_BITMAP_ALL`), from 16 on those whose method is not summarizing
(`INDEX_ATTR_BITMAP_HOT_BLOCKING`; of PostgreSQL's own methods BRIN alone is). A stored generated
column is computed anew when its expression reads an assigned column (`ExecComputeStoredGenerated`,
nodeModifyTable.c), so it counts as assigned then. Virtual ones (18) cannot be indexed.

Read in REL_15_STABLE, REL_16_STABLE and REL_18_STABLE. Room on the page is another matter: what can
be HOT still needs some.

What is assigned need not change. The columns that a class of statements assigns are a bound; where
counters show HOT updates of a class that assigns indexed columns, that part of it has left them as
they were (`Part.steady`), and only a column of which nothing is known is taken to change.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from pgheadroom.advise.updates import Updates
from pgheadroom.profile import TableProfile
from pgheadroom.profile.observed import ObservedIndex
from pgheadroom.sources.statements import NotParsed, expression_reads

SUMMARIZING = frozenset({"brin"})
"""Methods that set `amsummarizing` (src/backend/access/brin/brin.c); no other of core does."""

SUMMARIZING_KEEP_HOT_FROM = 16
"""The first version in which they end no HOT."""

ReadAs = Literal["key", "INCLUDE", "expression", "predicate", "whole row"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HotIndex:
    """
    What an index reads of a row, by columns.

    Attributes:
        name: For people.
        method: Of access.
        keys: Its plain key columns.
        expressions: Columns that its expressions name.
        include: Columns that it only carries.
        predicate: Columns that its predicate names.
        whole_row: An expression or the predicate names the row itself.
        is_summarizing: Of a method that is not PostgreSQL's own; None: as the method's name says.
    """

    name: str
    method: str = "btree"
    keys: frozenset[str] = frozenset()
    expressions: frozenset[str] = frozenset()
    include: frozenset[str] = frozenset()
    predicate: frozenset[str] = frozenset()
    whole_row: bool = False
    is_summarizing: bool | None = None

    @property
    def columns(self) -> frozenset[str]:
        """All that it reads."""
        return self.keys | self.expressions | self.include | self.predicate

    def ends_hot(self, major: int) -> bool:
        """Whether a change of what it reads ends HOT."""
        summarizing = self.method in SUMMARIZING
        if self.is_summarizing is not None:
            summarizing = self.is_summarizing
        return not summarizing or major < SUMMARIZING_KEEP_HOT_FROM

    def reads(self, column: str) -> ReadAs | None:
        """As what it reads a column; None: it does not."""
        found: tuple[tuple[ReadAs, frozenset[str]], ...] = (
            ("key", self.keys),
            ("expression", self.expressions),
            ("predicate", self.predicate),
            ("INCLUDE", self.include),
        )
        return next((what for what, columns in found if column in columns), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class HotShape:
    """
    What of a table decides which updates can be HOT.

    Attributes:
        major: Of the server.
        indexes: All that are live, valid or not.
        generated: By stored generated column: the columns that its expression reads.
    """

    major: int
    indexes: tuple[HotIndex, ...] = ()
    generated: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @property
    def blocking(self) -> frozenset[str]:
        """Columns whose change ends HOT."""
        found = (index.columns for index in self.indexes if index.ends_hot(self.major))
        return frozenset().union(*found)

    def computed(self, assigned: Iterable[str]) -> dict[str, str]:
        """Generated columns that an update of these computes anew, each with one that it reads."""
        given = frozenset(assigned)
        return {name: min(given & reads) for name, reads in self.generated.items() if given & reads}


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocker:
    """Why an update cannot be HOT: an index, what it reads, and by which assigned column."""

    index: str
    column: str
    reads: ReadAs
    assigned: str

    def __str__(self) -> str:
        """For people."""
        text = f"{self.index} by {self.column}"
        if self.reads != "key":
            text += f" ({self.reads})"
        return text if self.assigned == self.column else f"{text}, generated from {self.assigned}"


def blockers(
    shape: HotShape, assigned: Iterable[str], steady: Iterable[str] = ()
) -> tuple[Blocker, ...]:
    """
    What ends HOT for an update; none: it can be HOT.

    Args:
        shape: Of the table.
        assigned: Columns that the update assigns.
        steady: Columns that keep their value, though assigned or computed anew.
    """
    given = frozenset(assigned)
    kept = frozenset(steady)
    changes = {name: name for name in given} | shape.computed(given - kept)
    found = []
    for index in shape.indexes:
        if not index.ends_hot(shape.major):
            continue
        if index.whole_row:
            found.append(Blocker(index=index.name, column="*", reads="whole row", assigned="*"))
        for column in sorted((index.columns & set(changes)) - kept):
            what = index.reads(column)
            assert what is not None, "one of its columns"
            found.append(
                Blocker(index=index.name, column=column, reads=what, assigned=changes[column])
            )
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """
    Updates of one class that change the same columns, as far as anything shows it.

    Attributes:
        assigned: Columns that they assign.
        steady: Those of them, and of what is computed from them, that keep their value.
        frac: Of all updates.
        hidden: They change one of these besides, though no statement assigns it.
    """

    assigned: frozenset[str]
    steady: frozenset[str] = frozenset()
    frac: float
    hidden: frozenset[str] = frozenset()


def can_be_hot(shape: HotShape, part: Part) -> bool:
    """Whether these updates can be HOT in a table of that shape."""
    # Which hidden column changes is not known: it may be any that an index still reads.
    return not part.hidden & shape.blocking and not blockers(shape, part.assigned, part.steady)


def parts_of(updates: Updates, shape: HotShape) -> tuple[Part, ...]:
    """
    The interval's updates as parts: classes of statements, divided by what counters show.

    From 16 on an update that stayed on its page and was not HOT has changed an indexed column; on
    15 every update that was not HOT may have. Statements that assign indexed columns share these
    in proportion; what is beyond them was changed by something else, a trigger say.

    Args:
        updates: Of the table.
        shape: While they were observed.
    """
    assigning = [found for found in updates.classes if blockers(shape, found.columns)]
    share = min(sum(found.rows for found in assigning) / updates.count, 1.0)
    changing = _changing(updates)
    changed = min(changing / share, 1.0) if share else 1.0
    beyond = 0.0
    stayed_cold = updates.same_page_cold
    if stayed_cold is not None and changing > share and share < 1:
        # Where statements account for all updates, those that assign an indexed column may have
        # stayed on their page more often than others; only more than all of them prove another.
        proven = not updates.is_explained or stayed_cold > share * updates.count
        beyond = (changing - share) / (1 - share) if proven else 0.0
    made: list[Part] = []
    for found in updates.classes:
        # Statements assign no generated column: what computes it now, need not later.
        given = found.columns - set(shape.generated)
        frac = min(found.rows / updates.count, 1.0)
        if found in assigning:
            steady = (given | set(shape.computed(given))) & shape.blocking
            made.append(Part(assigned=given, frac=frac * changed))
            made.append(Part(assigned=given, steady=steady, frac=frac * (1 - changed)))
        else:
            made.append(Part(assigned=given, frac=frac * beyond, hidden=shape.blocking))
            made.append(Part(assigned=given, frac=frac * (1 - beyond)))
    return tuple(part for part in made if part.frac > 0)


def _changing(updates: Updates) -> float:
    """The share of updates that changed an indexed column; on 15 not more than this."""
    if updates.same_page_cold is None:
        return 1 - updates.hot / updates.count
    stayed = updates.hot + updates.same_page_cold
    # Where none stayed on its page nothing is shown: what is assigned is taken to change.
    return updates.same_page_cold / stayed if stayed else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HotChange:
    """
    What becomes of the set of updates that can be HOT.

    Attributes:
        before, after: Shares of all updates that can be HOT.
        lost: Parts that can no more, each with what ends it.
        gained: Parts that can from now on.
    """

    before: float
    after: float
    lost: tuple[tuple[Part, tuple[Blocker, ...]], ...]
    gained: tuple[Part, ...]

    @property
    def lost_frac(self) -> float:
        """Of all updates."""
        return sum(part.frac for part, _ in self.lost)

    @property
    def gained_frac(self) -> float:
        """Of all updates."""
        return sum(part.frac for part in self.gained)


def outcome(parts: Sequence[Part], before: HotShape, after: HotShape) -> HotChange:
    """The rule, applied to a table before and after something is done to it."""
    lost, gained = [], []
    held, holds = 0.0, 0.0
    for part in parts:
        was, is_ = can_be_hot(before, part), can_be_hot(after, part)
        held += part.frac if was else 0.0
        holds += part.frac if is_ else 0.0
        if was and not is_:
            lost.append((part, blockers(after, part.assigned, part.steady)))
        elif is_ and not was:
            gained.append(part)
    return HotChange(before=held, after=holds, lost=tuple(lost), gained=tuple(gained))


def shape_of(table: TableProfile, major: int) -> HotShape:
    """
    The shape of an observed table, with the catalog's names.

    Args:
        table: With `observed`.
        major: Of the server.
    """
    observed = table.observed
    if observed is None:
        return HotShape(major=major, indexes=(), generated={})
    indexes = (_index(found) for found in observed.indexes if found.is_live is not False)
    generated = {
        column.name: frozenset(column.generated_from or ())
        for column in observed.columns
        if column.generated == "stored"
    }
    return HotShape(major=major, indexes=tuple(indexes), generated=generated)


def _index(found: ObservedIndex) -> HotIndex:
    """
    An observed index.

    The catalogs say on which columns expressions and predicate depend, not on which of the two:
    the predicate's text tells, where it can be read.
    """
    keys = frozenset(found.columns) - {"(expression)"}
    include = frozenset(found.include or ())
    rest = frozenset(found.ends_hot_by_columns) - keys - include
    has_predicate, has_expressions = found.predicate is not None, found.expressions is not None
    predicate = rest if has_predicate and not has_expressions else frozenset()
    if has_predicate and has_expressions:
        # A text that nobody may read, or that this grammar does not know, tells nothing.
        with contextlib.suppress(NotParsed):
            predicate = rest & set(expression_reads(str(found.predicate), "").columns)
    return HotIndex(
        name=found.name,
        method=found.method,
        keys=keys,
        expressions=rest - predicate,
        include=include,
        predicate=predicate,
        is_summarizing=found.is_summarizing,
    )
