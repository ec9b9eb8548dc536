"""
What `clients-scale` shows: throughput against data over shared_buffers and against clients.
"""

from __future__ import annotations

from collections.abc import Sequence

from pgheadroom.lab import presentation as forms
from pgheadroom.lab import reading
from pgheadroom.lab.answer_words import (
    Compared,
    Sentence,
    comparisons,
    tally,
)
from pgheadroom.lab.reading import Result


def figures(result: Result) -> tuple[forms.FigureForm, ...]:
    """First the knees: data over shared_buffers across, one line for each number of clients."""
    by_clients = forms.Against(
        title="Throughput and latency by clients",
        across="clients",
        measures=("tps", "latency_ms_p50", "latency_ms_p99"),
        key=True,
    )
    sizes = [
        value
        for cell in reading.cells(result)
        if (value := reading.number(cell.get("data_frac"))) is not None
    ]
    if not sizes:
        return (by_clients,)
    knees = forms.Against(
        title="The knees: where data exceed shared_buffers, and memory",
        across="data_frac",
        # Data over shared_buffers stands for the scale, so the scale is no colour beside it.
        axis="data over shared_buffers",
        factors=("clients",),
        measures=("tps", "buffer_hit_frac"),
        marks=_knees(result, max(sizes)),
        key=True,
    )
    return (knees, by_clients)


def _knees(result: Result, largest: float) -> tuple[forms.Mark, ...]:
    """Where data are as large as a cache, on the axis of data over shared_buffers."""
    found = [forms.Mark(at=1.0, name="shared_buffers")]
    for cell in reading.cells(result):
        data, memory = (reading.number(cell.get(name)) for name in ("data_frac", "memory_frac"))
        if data and memory:
            found.append(forms.Mark(at=data / memory, name="memory"))
            break
    # One far beyond the grid would press the curve together; a finding names it.
    return tuple(mark for mark in found if mark.at <= largest)


def answer(result: Result) -> str | None:
    """Throughput of the most clients against the fewest, at each size of the data; the peak."""
    every = [item for item in comparisons(result, "tps") if item.changed == ("clients",)]
    counts = [reading.number(item.cell.get("clients")) for item in every]
    known = [count for count in counts if count is not None]
    if not known:
        return None
    said = Sentence()
    most = [item for item, count in zip(every, counts, strict=True) if count == max(known)]
    shown = [
        f"{said.compared(item)} at data_scale {reading.label(item.cell.get('data_scale'))}"
        for item in _ends(most)
    ]
    fewest = reading.label(most[0].against.get("clients"))
    text = f"throughput with {max(known):g} clients against {fewest} is {', '.join(shown)}"
    if len(every) > len(shown):
        text += f"; of all {len(every)} such comparisons {tally(every)}"
    timed = [cell for cell in reading.cells(result) if reading.number(cell.get("tps")) is not None]
    if timed:
        best = max(timed, key=lambda cell: reading.number(cell.get("tps")) or 0)
        where = reading.at(best, ("clients", "data_scale"))
        text += f"; the highest median is {said.figure(best, 'tps')} a second ({where})"
    return said.ended(text)


def _ends(items: Sequence[Compared]) -> list[Compared]:
    """The first and the last, which are the smallest data and the largest."""
    return [*items[:1], *items[1:][-1:]]
