"""
What is known of a relation, and what a rewrite of it would give back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from pgheadroom import _core
from pgheadroom.types import Interval
from pgheadroom.units import PAGE_BYTES

WIDTH_MAX = 0.10
"""An estimate is one up to ten points between its ends; a wider one is told with its reasons."""
LEVEL = 0.99
"""Of what is sampled, three deviations are allowed for; the rest are bounds."""
SAMPLED_ROWS_PER_TARGET = 300
"""Rows that ANALYZE reads for each unit of a statistics target (`std_typanalyze`, analyze.c)."""

TOLD_FROM = 0.01
"""Of the rows: what is less is no reason why an estimate is wide."""

RelationKind = Literal["heap", "btree", "toast"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowCount:
    """
    How many rows there are, and how far statistics are behind.

    Attributes:
        rows: Live ones, now.
        changed: Inserted, updated or deleted since ANALYZE took the statistics; None: the counters
            do not say it.
        analyzed: How many ANALYZE read at most.
        rows_off: By how many the rows may be off.
        counts: At least and at most, where counters and the last VACUUM or ANALYZE differ.
    """

    rows: float
    changed: float | None
    analyzed: int
    rows_off: float = 0.0
    counts: tuple[float, float] = (0.0, 0.0)

    @property
    def changed_frac(self) -> float:
        """Share of the rows of which the statistics know nothing, at most."""
        if self.changed is None or self.rows <= 0:
            return 1.0
        return min(self.changed / self.rows, 1.0)

    @property
    def unsure(self) -> str | None:
        """Why it is not known how many there are; None where it hardly matters."""
        low, high = self.counts
        if high - low <= TOLD_FROM * high:
            return None
        return counted_apart("rows", low, high, "ANALYZE")


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnFacts:
    """
    A column and what its statistics say.

    Attributes:
        name: The column, or the expression of an index.
        core: It, as the layout has it, without a width: with the one of a fixed length, else any.
        typlen: Bytes of every value, -1 of variable length, -2 of a `cstring`.
        is_always_null: It was dropped, or is virtual: a bit of the bitmap of NULLs.
        null_frac: Share of NULLs; None: there are no statistics, or the role may not see them.
        avg_width: Whole bytes of a value in the mean, its length header included; the rest is cut.
        n_distinct: As pg_stats has it; None likewise, and where somebody has set it by hand.
        widths: Bytes of values without their header, with the share of the rows that are so; None
            where the statistics have no values.
        sampled: The share of rows, NULLs apart, whose widths are from a sample, the histogram's
            bounds, and how many bounds there are.
        common_fracs: Shares of the most common values.
        attnum: Its number in the table; 0 for an expression.
        has_missing: It was added with a default, which older rows do not have in them.
        is_nullable: It may be NULL.
    """

    name: str
    core: _core.Column
    typlen: int
    is_always_null: bool = False
    null_frac: float | None = None
    avg_width: int | None = None
    n_distinct: float | None = None
    widths: tuple[tuple[int, float], ...] | None = None
    sampled: tuple[float, int] = (1.0, 1)
    common_fracs: tuple[float, ...] = ()
    attnum: int = 0
    has_missing: bool = False
    is_nullable: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFacts:
    """A table: `fillfactor` in percent, columns as they lie, dropped ones among them."""

    pages: int
    count: RowCount
    fillfactor: int
    columns: tuple[ColumnFacts, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexFacts:
    """
    A B-tree.

    Attributes:
        pages: It has now.
        count: Of the rows that it has entries for.
        fillfactor: Of its leaves, percent.
        columns: Of its entries, in their order, INCLUDE columns last.
        key_count: How many are keys.
        is_unique: It enforces it: then a build makes no posting lists.
        deduplicates: Its types and options allow posting lists.
        distinct: How many different keys extended statistics say; as n_distinct has it.
    """

    pages: int
    count: RowCount
    fillfactor: int
    columns: tuple[ColumnFacts, ...]
    key_count: int
    is_unique: bool
    deduplicates: bool
    distinct: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """
    What a rewrite would leave of a relation.

    Attributes:
        kind: What it is.
        pages: It has now.
        rewritten_pages: It would have.
        reasons: What makes the interval wide, in words; said where it is wider than `WIDTH_MAX`.
    """

    kind: RelationKind
    pages: int
    rewritten_pages: Interval
    reasons: tuple[str, ...] = ()

    @property
    def given_back_frac(self) -> Interval:
        """Of its pages; below 0 where a rewrite would make it larger."""
        pages = max(self.pages, 1)
        new = self.rewritten_pages
        return Interval(
            low=1 - new.high / pages,
            mid=1 - new.mid / pages,
            high=1 - new.low / pages,
            level=new.level,
        )

    @property
    def given_back_bytes(self) -> Interval:
        """The same in bytes."""
        new, now = self.rewritten_pages, self.pages
        return Interval(
            low=(now - new.high) * PAGE_BYTES,
            mid=(now - new.mid) * PAGE_BYTES,
            high=(now - new.low) * PAGE_BYTES,
            level=new.level,
        )

    @property
    def is_narrow(self) -> bool:
        """Whether it is at most ten points wide."""
        found = self.given_back_frac
        return round(found.high - found.low, 9) <= WIDTH_MAX


def counted_apart(what: str, low: float, high: float, remedy: str) -> str:
    """How many there are, where two counts differ."""
    return (
        f"it has {low:,.0f} to {high:,.0f} {what}: what changed close to its last VACUUM or "
        f"ANALYZE may be counted twice, which no statistics tell: {remedy}"
    )


_OTHERWISE = "mean widths are known to a byte, and how wide values are of a sample alone"


def estimate_of(
    kind: RelationKind, pages: int, low: float, mid: float, high: float, reasons: Sequence[str]
) -> Estimate:
    """An estimate; its reasons are kept where it is wide."""
    new = Interval.within(low, high, mid=mid, level=LEVEL)
    found = Estimate(kind=kind, pages=pages, rewritten_pages=new, reasons=tuple(reasons))
    if not found.is_narrow:
        return found if reasons else replace(found, reasons=(_OTHERWISE,))
    return Estimate(kind=kind, pages=pages, rewritten_pages=new)
