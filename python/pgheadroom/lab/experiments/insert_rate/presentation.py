"""
What `insert-rate` shows: rows a second and WAL a row, by rows a statement.
"""

from __future__ import annotations

from pgheadroom.lab import presentation as forms
from pgheadroom.lab import reading
from pgheadroom.lab.answer_words import (
    SaidCell,
    Sentence,
    cell_of,
    comparisons,
    few_repetitions,
    named,
    tally,
    undecided,
)
from pgheadroom.lab.base.answers import most_of
from pgheadroom.lab.reading import Result

FIGURES: tuple[forms.FigureForm, ...] = (
    forms.Against(
        title="Rows per statement",
        across="rows",
        measures=("rows_per_s", "wal_bytes_per_row", "latency_ms_p50"),
        evenly=True,
        logarithmic=("rows_per_s",),
        key=True,
    ),
)


def answer(result: Result) -> str | None:
    """Rows a second, and WAL a row, of the most rows a statement against the fewest."""
    said = Sentence()
    parts = []
    every = [item for item in comparisons(result, "rows_per_s") if item.changed == ("rows",)]
    if every:
        most = most_of(every, "rows")
        text = f"{named(result, most)} is {said.compared(most)}"
        if len(every) > 1:
            text += f" (of all {len(every)} such comparisons {tally(every)})"
        parts.append(text)
        ends: list[SaidCell | None] = [cell_of(result, cell) for cell in (most.cell, most.against)]
    else:
        ends = _ends(result, "rows", "wal_bytes_per_row")
    many, few = (*ends, None, None)[:2]
    if many is not None and few is not None:
        figures = [said.figure(cell, "wal_bytes_per_row") for cell in (many, few)]
        if None not in figures:
            reason = few_repetitions([many, few])
            wal = (
                f"a row writes {figures[0]} bytes of WAL at {reading.at(many, ('rows',))} and "
                f"{figures[1]} at {reading.at(few, ('rows',))}"
            )
            parts.append(wal if every else undecided(reason, wal))
    return said.ended("; ".join(parts)) if parts else None


def _ends(result: Result, factor: str, measure: str) -> list[SaidCell | None]:
    """The cells with the most and the least of a factor, at the first level of all others."""
    known = [
        cell for cell in reading.cells(result) if reading.number(cell.get(measure)) is not None
    ]
    others = [item.name for item in reading.factors(result) if item.name != factor]
    same = [cell for cell in known if all(cell.get(n) == known[0].get(n) for n in others)]
    ordered = sorted(same, key=lambda cell: reading.number(cell.get(factor)) or 0)
    return [ordered[-1], ordered[0]] if len(ordered) > 1 else []
