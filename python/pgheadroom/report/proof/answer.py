"""
The settings of a prediction as the file has them, for its answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pgheadroom.lab import reading
from pgheadroom.predict import answer
from pgheadroom.predict.answer import Setting

Cell = Mapping[str, Any]


def sentence(cells: Sequence[Cell], labels: Sequence[object]) -> str | None:
    """The answer of cells without variants, by their fillfactors; None where there is none."""
    return answer.sentence(settings(cells, labels))


def settings(cells: Sequence[Cell], labels: Sequence[object]) -> list[Setting]:
    """Cells that are told apart by one number, the highest first; nothing when some are not."""
    found = []
    for cell, label in zip(cells, labels, strict=True):
        fillfactor = reading.number(label)
        if fillfactor is None:
            return []
        figures = reading.mapping(cell.get("predicted"))
        found.append(
            Setting(
                fillfactor=fillfactor,
                hot=reading.figure(figures.get("hot_frac")),
                wal=reading.figure(figures.get("wal_bytes_per_update")),
                heap=reading.figure(figures.get("heap_pages")),
            )
        )
    return sorted(found, key=lambda setting: -setting.fillfactor)
