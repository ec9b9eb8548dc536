"""
What `commit-cost` shows: commits a second by clients, and how many share a sync.
"""

from __future__ import annotations

from pgheadroom.lab import presentation as forms
from pgheadroom.lab.answer_words import (
    Sentence,
    cell_of,
    comparisons,
    named,
)
from pgheadroom.lab.base.answers import most_of
from pgheadroom.lab.reading import Result

FIGURES: tuple[forms.FigureForm, ...] = (
    forms.Against(
        title="Commits a second, and how many share a sync",
        across="clients",
        measures=("tps", "latency_ms_p50", "wal_syncs_per_commit"),
        evenly=True,
        logarithmic=("tps", "latency_ms_p50"),
        key=True,
    ),
)


def answer(result: Result) -> str | None:
    """Commits a second of the most clients against the fewest, and without waiting for them."""
    every = comparisons(result, "tps")
    clients = [item for item in every if item.changed == ("clients",)]
    waiting = [item for item in every if item.changed == ("synchronous_commit",)]
    picked = [*([most_of(clients, "clients")] if clients else []), *waiting[:1]]
    if not picked:
        return None
    said = Sentence()
    parts = [f"{named(result, item)} is {said.compared(item)}" for item in picked]
    group = cell_of(result, picked[0].cell) if clients else None
    if group is not None and (size := said.figure(group, "commits_per_sync")):
        parts.insert(1, f"{size} commits share a sync there")
    return said.ended("; ".join(parts))
