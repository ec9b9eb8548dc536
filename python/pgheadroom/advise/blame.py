"""
Which indexes have taken HOT away: the updates that changed an indexed column, shared out.

A share is certain where no other index can have done it: what the other classes, and the updates
that no statement accounts for, can have changed at most does not reach the number counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pgheadroom.advise.cold_updates import Blamed
from pgheadroom.advise.updates import Index, Updates
from pgheadroom.outcome import Value, mid
from pgheadroom.types import Interval

LEVEL = 0.9
"""Of the intervals: they are bounds out of counters, which statements' counts blur a little."""


def within(low: float, mid: float, high: float) -> Value:
    """A number where the bounds meet, an interval where they do not."""
    if low == high:
        return mid
    return Interval.reaching((low, high), mid=mid, level=LEVEL)


def shared_out(total: int, weights: Sequence[float]) -> list[int]:
    """A number by weights, in whole parts whose sum is the number."""
    whole = sum(weights)
    if whole <= 0:
        return [0] * len(weights)
    exact = [total * weight / whole for weight in weights]
    parts = [int(part) for part in exact]
    by_rest = sorted(range(len(parts)), key=lambda n: (parts[n] - exact[n], n))
    for n in by_rest[: total - sum(parts)]:
        parts[n] += 1
    return parts


def blame(updates: Updates, indexed: tuple[int, int, int], counted: int | None) -> list[Blamed]:
    """
    Share the updates that changed an indexed column out among the indexes.

    Args:
        updates: Of the table.
        indexed: At least, likely and at most so many.
        counted: Those among them that the counters prove; None on 15.

    Returns:
        By falling updates; their likely numbers add up to the likely total.
    """
    low, likely, high = indexed
    if high <= 0 or not updates.indexes:
        return []
    by_index, assigned = _weights(updates, likely)
    chosen = [index for index in updates.indexes if by_index.get(index.name)]
    if not chosen:  # nothing is likely, yet not impossible either
        return []
    parts = shared_out(likely, [by_index[index.name] for index in chosen])
    made = []
    for index, part in zip(chosen, parts, strict=True):
        least = 0 if counted is None else max(counted - round(_others(updates, index)), 0)
        most = min(high, round(_reach(updates, index)))
        certain = least > 0
        if len(chosen) == 1:
            least, most = (max(least, low) if certain else 0), high
        columns = assigned.get(index.name) or index.columns
        made.append(
            Blamed(
                name=index.name,
                columns=tuple(sorted(columns)),
                # A share of what several indexes did together is not bounded by each one's own.
                updates=within(min(least, part), part, max(most, part)),
                certainty="certain" if certain else "possible",
                scans=index.scans,
                total_scans=index.total_scans,
                unique=index.is_unique,
            )
        )
    return sorted(made, key=lambda blamed: (-mid(blamed.updates), blamed.name))


def _weights(updates: Updates, total: int) -> tuple[dict[str, float], Mapping[str, set[str]]]:
    """Likely updates by index: of the classes first, what is beyond them of unknown statements."""
    weights: dict[str, float] = {}
    assigned: dict[str, set[str]] = {}
    known = 0.0
    for found in updates.assigning(indexed=True):
        hit = [index for index in updates.indexes if index.columns & found.columns]
        # A primary key is set to its own value far more often than it changes.
        hit = [index for index in hit if not index.is_key] or hit
        known += found.rows
        for index in hit:
            weights[index.name] = weights.get(index.name, 0.0) + found.rows / len(hit)
            assigned.setdefault(index.name, set()).update(index.columns & found.columns)
    beyond = max(total - known, 0.0)
    if weights:  # where statements are known, no more is another's than none of them accounts for
        beyond = min(beyond, updates.unknown_high)
    if beyond > 0:
        others = [index for index in updates.indexes if not index.is_key] or list(updates.indexes)
        for index in others:
            weights[index.name] = weights.get(index.name, 0.0) + beyond / len(others)
    return weights, assigned


def _others(updates: Updates, index: Index) -> float:
    """Updates that can have changed an indexed column without one of this index."""
    blocking = updates.blocking
    classes = [
        c for c in updates.assigning(indexed=True) if not c.columns & blocking <= index.columns
    ]
    unknown = 0.0 if blocking <= index.columns else updates.unknown_high
    return sum(c.rows_high for c in classes) + unknown


def _reach(updates: Updates, index: Index) -> float:
    """Updates that can have changed a column of this index."""
    classes = [c for c in updates.classes if c.columns & index.columns]
    return sum(c.rows_high for c in classes) + updates.unknown_high
