"""
By which index a table is clustered: where ranges lie on many more pages, and where that pays.
"""

from __future__ import annotations

from pgheadroom.order.values import IndexOrder, TableOrder

TIMES_FROM = 1.5
"""Pages of a range by those of a freshly clustered table, from which on order is lost."""
_NAMED_MAX = 3
BACK_DAYS_MAX = 30.0
"""Clustering pays where it pays back within a month. Arbitrary."""


def chosen(table: TableOrder, *, is_named: bool) -> IndexOrder | str:
    """
    The index by which a table is clustered; or why it is by none.

    Args:
        table: It, with its indexes.
        is_named: It was named, so that prices do not decide.
    """
    lost = [
        index
        for index in table.indexes
        if index.evidence == "sampled"
        and index.pages_per_range.low >= TIMES_FROM * index.pages_fresh.high
    ]
    if not lost:
        return _why_none(table)
    marked = [index for index in table.indexes if index.is_marked]
    if marked and marked[0] not in lost and marked[0].evidence == "sampled":
        return f"it lies in the order of {marked[0].name}, by which it is clustered"
    if marked and marked[0] in lost:
        lost = marked
    if is_named:
        return max(lost, key=_saved_s)
    paying = [
        index
        for index in lost
        if index.pay is not None
        and index.pay.pays_back_days is not None
        and index.pay.pays_back_days.mid <= BACK_DAYS_MAX
    ]
    if not paying:
        return (
            f"by its prices clustering does not pay back within {BACK_DAYS_MAX:g} days, the order "
            "is lost before, or nothing says how often ranges are read; name the table to have a "
            "step all the same"
        )
    return max(paying, key=_saved_s)


def _why_none(table: TableOrder) -> str:
    """Why no index is known to have lost its order."""
    read = [index for index in table.indexes if index.evidence == "sampled"]
    if not read:
        return "no range of it was read"
    most = max(read, key=lambda index: index.times_fresh.mid)
    now = most.pages_per_range
    if now.mid >= TIMES_FROM * most.pages_fresh.high:
        return (
            f"too little of it was read to tell: a range by {most.name} lies on {now.low:.0f} to "
            f"{now.high:.0f} pages, of a clustered table on {most.pages_fresh.mid:.0f}; let more "
            "of its pages be read"
        )
    unread = [
        f"{index.name}: {index.not_sampled}"
        for index in table.indexes
        if index.evidence != "sampled"
    ]
    left = f"; not read were {'; '.join(unread[:_NAMED_MAX])}" if unread else ""
    if len(unread) > _NAMED_MAX:
        left += f" and {len(unread) - _NAMED_MAX} more"
    return f"no range lies on {TIMES_FROM:g} times the pages of a clustered one{left}"


def _saved_s(index: IndexOrder) -> float:
    return 0.0 if index.pay is None else index.pay.saved_s_a_day.mid
