"""
The settings of a prediction, for its answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pgheadroom.lab import reading
from pgheadroom.predict import answer
from pgheadroom.predict.answer import Setting

if TYPE_CHECKING:
    from pgheadroom.report.proof.words import Cell


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
        figures = cell.predicted
        found.append(
            Setting(
                fillfactor=fillfactor,
                hot=figures.hot_frac,
                wal=figures.wal_bytes_per_update,
                heap=figures.heap_pages,
            )
        )
    return sorted(found, key=lambda setting: -setting.fillfactor)
