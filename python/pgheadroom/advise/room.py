"""
Why there was no room on the page: what fillfactor keeps, what is left of it, who holds it.

Sizes are those of sampled rows where there is a sample, else of the columns' layout.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from pgheadroom import _core
from pgheadroom.advise.row import tuple_bytes_of
from pgheadroom.advise.updates import Updates
from pgheadroom.profile import TableProfile
from pgheadroom.profile.observed import ObservedTable
from pgheadroom.profile.observed_server import ObservedServer
from pgheadroom.types import ObservedSample
from pgheadroom.units import PAGE_BYTES, percent

ReasonKind = Literal["never_reserved", "too_wide", "horizon", "statement", "filled", "drawn_down"]
_TUPLE_BYTES_MAX = 8160  # MaxHeapTupleSize, src/include/access/htup_details.h
_HELD_FRAC_MIN = 0.1  # a horizon that is held for less is the work's own; arbitrary
_FULL_FRAC_MIN = 0.5  # most pages; arbitrary
_GROWN_MIN_BYTES = 4.0  # a shorter difference of means is padding; arbitrary


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRoom:
    """
    The room of a table's pages.

    Attributes:
        tuple_bytes: Mean length of a row.
        reserve_bytes: What fillfactor keeps of a page.
        spare_versions: Versions of a row that fit a page that was just filled to fillfactor.
        full_frac: Pages that have no room for a version now; None where nobody looked.
        held_frac: Part of the interval in which the cleanup horizon stood still.
        rows_at_once: Rows of one page that the widest statement updates; None where unknown.
    """

    tuple_bytes: float
    fillfactor: int
    reserve_bytes: int
    spare_versions: int
    full_frac: float | None
    held_frac: float
    rows_at_once: float | None

    @property
    def reason(self) -> ReasonKind:
        """The first that explains why an update found no room."""
        if self.spare_versions < 1:
            return "too_wide" if self.fillfactor < 100 else "never_reserved"
        if self.held_frac >= _HELD_FRAC_MIN:
            return "horizon"
        if self.rows_at_once is not None and self.rows_at_once > self.spare_versions:
            return "statement"
        if self.full_frac is not None and self.full_frac >= _FULL_FRAC_MIN:
            return "filled"
        return "drawn_down"

    @property
    def text(self) -> str:
        """The reason as a sentence."""
        row, kept = f"{self.tuple_bytes:,.0f} bytes", f"fillfactor {self.fillfactor} keeps"
        plural = "s" if self.spare_versions > 1 else ""
        versions = f"{kept} room for {self.spare_versions} more version{plural} on a page"
        if self.reason == "never_reserved":
            return (
                f"{kept} no room: pages are full since rows were inserted, and a version of {row} "
                "has to go elsewhere until pruning makes room."
            )
        if self.reason == "too_wide":
            return (
                f"{kept} {self.reserve_bytes:,} bytes a page, less than one more version of {row} "
                "takes."
            )
        if self.reason == "horizon":
            return (
                f"{versions}, but the cleanup horizon stood still for {percent(self.held_frac)} "
                "of the interval: versions that nobody needs keep the room."
            )
        if self.reason == "statement":
            return (
                f"{versions}, but one statement updates about {self.rows_at_once:.0f} rows of a "
                "page, and pruning cannot free what its own transaction left."
            )
        if self.reason == "filled" and self.full_frac is not None:
            return (
                f"{versions}, but {percent(self.full_frac)} of the pages have none now: written "
                "before the setting, or used up since."
            )
        return f"{versions}, and updates used it up before pruning freed it."


def room_of(table: TableProfile, updates: Updates, server: ObservedServer | None) -> PageRoom:
    """
    Read the room of an observed table.

    Args:
        table: With `observed`.
        updates: Of the table.
        server: `[server.observed]`, for the horizon.
    """
    fits = fitting_bytes(table)
    return PageRoom(
        tuple_bytes=tuple_bytes_of(table),
        fillfactor=table.fillfactor,
        reserve_bytes=PAGE_BYTES * (100 - table.fillfactor) // 100,
        spare_versions=_core.spare_versions(fits, table.fillfactor),
        full_frac=_full_frac(table.observed, _aligned(fits) + 4),
        held_frac=held_frac(server),
        rows_at_once=_rows_at_once(table, updates, fits),
    )


def fitting_bytes(table: TableProfile) -> int:
    """The mean length of a row, as long as one that a page can hold."""
    return min(max(math.ceil(tuple_bytes_of(table)), 24), _TUPLE_BYTES_MAX)


def held_frac(server: ObservedServer | None) -> float:
    """Part of the interval in which the horizon stood still, or was older than all of it."""
    still = 0.0 if server is None else sum(p.length_frac for p in server.horizon.stood_still)
    return min(still, 1.0)


def _aligned(length: int) -> int:
    return (length + 7) // 8 * 8


def _full_frac(observed: ObservedTable | None, needed_bytes: int) -> float | None:
    """
    Pages whose class of free bytes ends below what a version needs.

    Dead rows count as free where rows were sampled: there it is a lower bound.
    """
    for found in (observed.free_space if observed is not None else None) or ():
        if not found.pages:
            continue
        width = found.class_bytes
        full = sum(pages for k, pages in found.classes if (k + 1) * width <= needed_bytes)
        return float(full / max(sum(pages for _, pages in found.classes), 1))
    return None


def _rows_at_once(table: TableProfile, updates: Updates, fits: int) -> float | None:
    """Rows of one page in the statements that update most rows, as if they lay together."""
    amounts = [c.rows_per_statement for c in updates.classes if c.rows_per_statement]
    if not amounts:
        return None
    share = max(amounts) / max(table.rows, 1)
    per_page = _core.rows_per_page(fits, table.fillfactor)
    # Rows of a statement lie anywhere: so many of each page if it takes this share of the table.
    return min(share, 1.0) * per_page


@dataclass(frozen=True, slots=True, kw_only=True)
class RowGrowth:
    """
    Signs that updates make rows longer.

    Attributes:
        appended_frac: Of the updates: their statements append to a column.
        grown_bytes: Mean length of rows written in the interval above that of the older ones;
            None where a sample does not tell.
    """

    appended_frac: float
    grown_bytes: float | None

    @property
    def frac(self) -> float:
        """Of the updates that may have grown their row."""
        if self.appended_frac > 0:
            return min(self.appended_frac, 1.0)
        return 1.0 if self.grown_bytes else 0.0

    @property
    def text(self) -> str:
        """What the signs are; empty without any."""
        signs = []
        if self.appended_frac > 0:
            signs.append(
                f"statements of {percent(self.appended_frac)} of the updates append to a column"
            )
        if self.grown_bytes:
            signs.append(
                f"rows written in the interval are {self.grown_bytes:,.0f} bytes longer than the "
                "older ones"
            )
        return " and ".join(signs)


def growth_of(table: TableProfile, updates: Updates) -> RowGrowth:
    """Read the signs of growth from classes of statements and from the sample."""
    appended = sum(c.rows for c in updates.classes if c.appended) / updates.count
    observed = table.observed
    columns = () if observed is None else observed.columns
    variable = {column.name for column in columns if column.stored_bytes is not None}
    assigned = frozenset().union(*(c.columns for c in updates.classes))
    can_grow = bool(variable & assigned) if updates.classes else bool(variable)
    # Young rows are updated ones only where few are inserted.
    inserts = None if observed is None else observed.counters.n_tup_ins
    few_inserts = (inserts or 0) <= updates.count / 10
    grown = (
        _grown_bytes(None if observed is None else observed.sample)
        if can_grow and few_inserts
        else None
    )
    return RowGrowth(appended_frac=appended, grown_bytes=grown)


def _grown_bytes(sample: ObservedSample | None) -> float | None:
    """Mean of the rows younger than the interval minus that of the older, where it is clear."""
    if sample is None or not sample.ages or not sample.since_xids:
        return None
    since = sample.since_xids
    young = [(n, b) for k, n, b in sample.ages if 2 ** (k + 1) <= since + 1]
    older = [(n, b) for k, n, b in sample.ages if 2**k > since]
    young_rows, older_rows = sum(n for n, _ in young), sum(n for n, _ in older)
    if young_rows < 30 or older_rows < 30:  # means of fewer rows are noise; arbitrary
        return None
    difference = sum(b for _, b in young) / young_rows - sum(b for _, b in older) / older_rows
    deviation = sample.tuple_bytes.deviation
    error = deviation * math.sqrt(1 / young_rows + 1 / older_rows)
    return float(difference) if difference > max(3 * error, _GROWN_MIN_BYTES) else None
