"""
What `fpi-sawtooth` shows: WAL by window since the checkpoint.
"""

from __future__ import annotations

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

_CYCLES = 2
"""Checkpoint cycles that are played."""

FIGURES: tuple[forms.FigureForm, ...] = (
    forms.Course(
        title="WAL per update since the checkpoint",
        along="window",
        measures=("wal_bytes_per_update", "wal_fpi_per_update"),
        key=True,
    ),
    forms.Course(
        title="What a checkpoint distance costs",
        along="window",
        measures=("mean_wal_bytes_per_update", "distance_bytes"),
    ),
)


def answer(result: Result) -> str | None:
    """An update's WAL right after a checkpoint and at the end of the same cycle."""
    measure = "wal_bytes_per_update"
    group = in_order(result, {"full_page_writes": "on"}, "window")
    if not group:
        group = in_order(result, {}, "window")
    most = max((cell["window"] for cell in group), default=0)
    first_cycle = [
        cell
        for cell in group
        if cell["window"] <= -(-most // _CYCLES) and reading.number(cell.get(measure)) is not None
    ]
    if len(first_cycle) < 2:
        return None
    said = Sentence()
    near, far = first_cycle[0], first_cycle[-1]
    where = reading.at(near, ("fillfactor", "full_page_writes", "wal_compression"))
    text = (
        f"with {where} an update writes {said.figure(near, measure)} bytes of WAL in window "
        f"{reading.label(near['window'])} after a checkpoint and {said.figure(far, measure)} in "
        f"window {reading.label(far['window'])}"
    )
    images = [said.figure(cell, "wal_fpi_per_update") for cell in (near, far)]
    if None not in images:
        text += f", with {images[0]} and {images[1]} full-page images"
    reason = few_repetitions([near, far])
    if reason is None and not changes(near, far, measure):
        text += "; the intervals show no change"
    return said.ended(undecided(reason, text))
