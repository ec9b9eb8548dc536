"""
What `long-transaction` shows: HOT and size, window by window.
"""

from __future__ import annotations

from collections.abc import Sequence

from pgheadroom.lab import presentation as forms
from pgheadroom.lab import reading
from pgheadroom.lab.answer_words import (
    Sentence,
    changes,
    few_repetitions,
    undecided,
)
from pgheadroom.lab.base.answers import in_order
from pgheadroom.lab.reading import Result

FIGURES: tuple[forms.FigureForm, ...] = (
    forms.Course(
        title="HOT and size, window by window",
        along="window",
        measures=("hot_frac", "heap_pages", "index_pages"),
        key=True,
    ),
    forms.Course(
        title="What an update costs",
        along="window",
        measures=("wal_bytes_per_update", "buffers_per_update"),
    ),
)


def answer(result: Result) -> str | None:
    """HOT before a snapshot is held, while it is, and after; and how the table grew."""
    opens, closes = (reading.number(result.options.get(name)) for name in ("open", "close"))
    group = in_order(result, {"snapshot": "held"}, "window")
    group = [cell for cell in group if reading.number(cell.get("hot_frac")) is not None]
    if opens is None or closes is None:
        return None
    before = [cell for cell in group if cell["window"] < opens]
    during = [cell for cell in group if opens <= cell["window"] < closes]
    after = [cell for cell in group if cell["window"] >= closes]
    if not before or not during:
        return None
    said = Sentence()
    last, worst = before[-1], during[-1]
    shown = [last, worst, *after[-1:]]
    parts = [
        f"{said.figure(last, 'hot_frac')} before a snapshot is held",
        f"{said.figure(worst, 'hot_frac')} in the last window under it",
        *(f"{said.figure(cell, 'hot_frac')} at the end, after it" for cell in after[-1:]),
    ]
    text = f"at {reading.at(last, ('fillfactor',))} the HOT share of updates is {_listed(parts)}"
    sizes = [size for cell in shown if (size := said.figure(cell, "heap_pages"))]
    if len(sizes) == len(shown):
        text += f", and the table has {_listed(sizes)} pages"
    reason = few_repetitions(shown)
    if reason is None and not changes(last, worst, "hot_frac"):
        text += "; the intervals show no change of the share under the snapshot"
    return said.ended(undecided(reason, text))


def _listed(parts: Sequence[str]) -> str:
    """`"a, b and c"`."""
    return " and ".join(filter(None, [", ".join(parts[:-1]), *parts[-1:]]))
