"""
What part of a table's updates each class is.

By rows where they are counted, by statements where only these are; what no class explains is told
apart from what counters err by.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pgheadroom.observe.classes import CountedUpdates

# A busy session reports its table counters once a second (PGSTAT_MIN_INTERVAL,
# src/backend/utils/activity/pgstat.c), pg_stat_statements at once; both ends of the interval err.
COUNTERS_LAG_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """
    A table's updates by class, as they are shown.

    Attributes:
        updates: As counted.
        fracs: Of each class; None where there is none of any.
        per_statement: Rows of a statement of each class; None where nothing says it.
        unattributed: Of the updates, what no class explains; None where that is not known.
        resolution: Less than this is what counters err by.
    """

    updates: int
    fracs: tuple[float | None, ...]
    per_statement: tuple[float | None, ...]
    unattributed: float | None
    resolution: float


def make_shares(
    classes: Sequence[CountedUpdates],
    updates: int,
    *,
    shared: bool,
    interval_s: float,
    inserts: int = 0,
) -> Shares:
    """
    What part of a table's updates each class is.

    Args:
        classes: Of the table and of those above it, all from one source.
        updates: Of the table, by its counter.
        shared: Some classes' rows lie in other tables too: `routed` says how many in this one.
        interval_s: Length of the interval.
        inserts: Of the table, by its counter.
    """
    resolution = min(COUNTERS_LAG_S / interval_s, 0.5)
    counted = all(found.rows is not None for found in classes) and bool(classes) and not shared
    upserted = None if shared else _upserted(classes, inserts, resolution)
    amounts = _amounts(classes, updates, shared=shared, upserted=upserted)
    is_left_known = not shared and (_is_left_known(classes) or upserted is not None)
    total = sum(amounts)
    unattributed: float | None = 1.0 if updates and not classes else None
    if counted and updates and is_pure(classes):
        unattributed = max(0.0, 1 - sum(found.rows or 0 for found in classes) / updates)
    each = [
        _rows_per_statement(found, amount, is_left_known=is_left_known)
        for found, amount in zip(classes, amounts, strict=True)
    ]
    return Shares(
        updates=updates,
        fracs=tuple(round(amount / total, 6) if total else None for amount in amounts),
        per_statement=tuple(None if rows is None else round(rows, 3) for rows in each),
        unattributed=unattributed,
        resolution=resolution,
    )


def is_pure(classes: Sequence[CountedUpdates]) -> bool:
    """Whether rows of the classes are updated ones: of an upsert or MERGE some may be inserted."""
    return all(found.kind == "update" for found in classes)


def counts_all(classes: Sequence[CountedUpdates]) -> bool:
    """Whether the source counts every execution of a statement."""
    return bool(classes) and classes[0].source == "pg_stat_statements"


def _upserted(classes: Sequence[CountedUpdates], inserts: int, resolution: float) -> float | None:
    """
    Rows that upserts updated beside UPDATEs that have no count, which have the others.

    Those that the table's inserts leave of theirs: a table that each row comes to by an upsert has
    none, however many its updates are. None where upserts have no count either, or there are none.
    """
    mixed = [found.rows for found in classes if found.kind != "update"]
    uncounted = any(found.rows is None for found in classes)
    if not uncounted or not mixed or not counts_all(classes):
        return None
    rows = sum(number or 0 for number in mixed)
    if any(number is None for number in mixed) or not rows:
        return None
    left = max(rows - inserts, 0)
    return float(left) if left > resolution * rows else 0.0


def _amounts(
    classes: Sequence[CountedUpdates], updates: int, *, shared: bool, upserted: float | None
) -> list[float]:
    """
    Rows of each class where all are counted, else statements.

    Where only UPDATEs that stand in a WITH have no count, they share the table's updates that are
    left. Upserts and MERGE share what UPDATEs leave, for their rows may be inserts: a table that
    each row comes to by an upsert has as many of them as it has inserts, and no update by them.
    With both, upserts have what the table's inserts leave of their rows (`upserted`).
    Of classes that several tables share, those that are taken to be this one's. Statements that
    found no row are no updates, however often they ran, unless no class has any:
    counters come late, and what there is goes by statements then.
    """
    if shared and any(found.routed for found in classes):
        return [found.routed or 0.0 for found in classes]
    uncounted = [found for found in classes if found.rows is None]
    if uncounted and (shared or not (_is_left_known(classes) or upserted is not None)):
        return [0.0 if found.rows == 0 else float(found.calls) for found in classes]
    mixed = sum(found.rows or 0 for found in classes if found.kind != "update")
    left = float(max(updates - sum(found.rows or 0 for found in classes) + mixed, 0))
    by_upserts = min(left, mixed) if upserted is None else min(left, upserted)
    left = left if upserted is None else left - by_upserts
    calls = sum(found.calls for found in uncounted)
    is_told = counts_all(classes) and not shared and mixed > 0

    def rows_of(found: CountedUpdates) -> float:
        if found.rows is None:
            return left * found.calls / calls
        if found.kind != "update" and is_told:
            return by_upserts / mixed * found.rows
        return float(found.rows)

    rows = [rows_of(found) for found in classes]
    return rows if any(rows) else [float(found.calls) for found in classes]


def _is_left_known(classes: Sequence[CountedUpdates]) -> bool:
    """Whether the classes are all that updates the table, and its counter has no other rows."""
    return counts_all(classes) and is_pure(classes)


def _rows_per_statement(
    found: CountedUpdates, amount: float, *, is_left_known: bool
) -> float | None:
    """As counted, or as the table's counter has it; None where neither says it."""
    if found.kind != "update" or not found.calls:
        return None
    if found.rows is not None:
        return found.rows / found.calls
    return max(1.0, amount / found.calls) if is_left_known else None
