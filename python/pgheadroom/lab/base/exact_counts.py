"""
Measures that arithmetic predicts to the unit: `predicted_NAME` beside `NAME`, and how they compare.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from pgheadroom.lab.design import Measure

_MOST_MISSES = 8
"""More sentences than these say no more than the tables do (arbitrary)."""


def beside(*measures: Measure, names: Collection[str]) -> Iterator[Measure]:
    """The measures, each of those named followed by its prediction."""
    for measure in measures:
        yield measure
        if measure.name in names:
            yield Measure(
                name=f"predicted_{measure.name}",
                description=f"{measure.name} by arithmetic",
                unit=measure.unit,
                evidence="predicted",
            )


def counts_as_predicted(
    cells: Sequence[Mapping[str, Any]],
    names: Sequence[str],
    label: Callable[[dict[str, Any]], str],
) -> list[str]:
    """
    How many counts are exactly as predicted, and which are not.

    Args:
        cells: A result's cells.
        names: Measures that are predicted.
        label: A cell in words.
    """
    pairs = [
        (cell, name)
        for cell in cells
        for name in names
        if cell.get(name) is not None and cell.get(f"predicted_{name}") is not None
    ]
    if not pairs:
        return []
    wrong = [
        f"Not as predicted: {name} {cell[name]:,} measured, {cell[f'predicted_{name}']:,} "
        f"predicted ({label(dict(cell))})."
        for cell, name in pairs
        if cell[name] != cell[f"predicted_{name}"]
    ]
    said = [f"{len(pairs) - len(wrong)} of {len(pairs)} counts are exactly as predicted."]
    said += wrong[:_MOST_MISSES]
    if len(wrong) > _MOST_MISSES:
        said.append(f"So are {len(wrong) - _MOST_MISSES} further counts not; the tables have them.")
    return said
