"""
When a new fillfactor has taken effect on a table that is not rewritten.

A setting concerns new pages and pruning; pages that are there stay as full as they are. So the
share of HOT updates moves from that of the old setting to that of the new one while rows move, or
it does not. What a table does that is rewritten at once stands beside it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pgheadroom.predict.series import Series

WITHIN = 0.01
"""A window's share of HOT updates has arrived when it is this near to its final value."""
GROWS_FRAC = 0.01
"""A table still grows when the last quarter of the run adds more than this part of its pages, rows
that were added aside."""
_LAST = 0.25
_ERRORS = 2.0  # standard errors that a window's share may be off by chance

EffectVerdict = Literal["at once", "converges", "does not converge", "no updates"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TakesEffect:
    """
    How long a change of fillfactor takes to show.

    Attributes:
        verdict: `at once`: from the first window on; `converges`: after `after_s`; `does not
            converge`: the share still moves in the last quarter; `no updates`: nothing to see.
        still_grows: Whether the last quarter added more than `GROWS_FRAC` of the table's pages.
        after_s: The beginning of the first window from which on the share stays within a point of
            its final value (or within two standard errors of a window's own number of updates).
        after_updates_per_row: Updates until then, by the number of rows: no pace changes it.
        final_hot_frac: The share over the last quarter.
        rewritten_hot_frac: The same of the table rewritten at the start.
        pages_added_frac: Pages that the last quarter added, less the rows', as a part of the table.
        within: How near to its final value a share has arrived.
        grows_above_frac: What of it is growth.
    """

    verdict: EffectVerdict
    still_grows: bool
    after_s: float | None
    after_updates_per_row: float | None
    final_hot_frac: float | None
    rewritten_hot_frac: float | None
    pages_added_frac: float
    within: float = WITHIN
    grows_above_frac: float = GROWS_FRAC


def takes_effect(altered: Series, rewritten: Series | None, rows: int) -> TakesEffect:
    """
    Judge a run whose fillfactor was changed at its start.

    Args:
        altered: The table as it was loaded, with the new setting.
        rewritten: The table rewritten with it at the start.
        rows: Rows that all tables have at the start.
    """
    updates = altered.numbers("n_tup_upd")
    hot = altered.numbers("n_tup_hot_upd")
    final = _final_share(hot, updates)
    other = None
    if rewritten is not None:
        other = _final_share(rewritten.numbers("n_tup_hot_upd"), rewritten.numbers("n_tup_upd"))
    added = _pages_added(altered, rows)
    settled = None if final is None else _settled(hot, updates, final)
    verdict: EffectVerdict
    if final is None:
        verdict = "no updates"
    elif settled is None or settled >= math.ceil(len(updates) * (1 - _LAST)):
        verdict = "does not converge"
    elif settled == 0:
        verdict = "at once"
    else:
        verdict = "converges"
    first = settled if verdict in ("at once", "converges") else None
    return TakesEffect(
        verdict=verdict,
        still_grows=added > GROWS_FRAC,
        after_s=None if first is None else (altered.t_s[first - 1] if first else 0.0),
        after_updates_per_row=None if first is None else math.fsum(updates[:first]) / max(1, rows),
        final_hot_frac=final,
        rewritten_hot_frac=other,
        pages_added_frac=added,
    )


def _final_share(hot: Sequence[float], updates: Sequence[float]) -> float | None:
    """Over the last quarter of the windows."""
    first = math.floor(len(updates) * (1 - _LAST))
    total = math.fsum(updates[first:])
    return math.fsum(hot[first:]) / total if total else None


def _settled(hot: Sequence[float], updates: Sequence[float], final: float) -> int | None:
    """The first window from which on all are near the final share; None when the last is not."""
    first = None
    for n in reversed(range(len(updates))):
        if updates[n]:
            chance = _ERRORS * math.sqrt(final * (1 - final) / updates[n])
            if abs(hot[n] / updates[n] - final) > max(WITHIN, chance):
                return first
        first = n
    return first


def _pages_added(series: Series, rows: int) -> float:
    """Growth of the heap over the last quarter that rows do not explain, as a part of it."""
    pages = series.numbers("heap_pages")
    net = [
        inserted - deleted
        for inserted, deleted in zip(
            series.numbers("n_tup_ins"), series.numbers("n_tup_del"), strict=True
        )
    ]
    first = math.floor(len(pages) * (1 - _LAST)) - 1
    if first < 0 or not pages[first]:
        return 0.0
    before = rows + math.fsum(net[: first + 1])
    after = rows + math.fsum(net)
    by_rows = max(0.0, after / before - 1.0) if before > 0 else 0.0
    return pages[-1] / pages[first] - 1.0 - by_rows
