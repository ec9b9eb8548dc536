"""
What `index-walkthrough` shows: blocks of each step, measured beside predicted.
"""

from __future__ import annotations

from pgheadroom.lab import presentation as forms
from pgheadroom.lab.base.answers import as_predicted
from pgheadroom.lab.reading import Result

COUNTED = ("buffers", "heap_pages", "index_pages")

TABLES: tuple[forms.TableForm, ...] = (
    forms.PairedTable(title="Blocks, measured beside predicted", measures=COUNTED),
)

# Measured only: predicted are the same points.
FIGURES: tuple[forms.FigureForm, ...] = (
    forms.Against(
        title="Blocks that each step touches",
        across="step",
        measures=("buffers",),
        only_with="buffers",
        key=True,
    ),
)


def answer(result: Result) -> str | None:
    """How many block counts are those of the arithmetic, one by one."""
    return as_predicted(result, "block counts")
