"""
What `load-methods` shows: what each load costs, and what it leaves to VACUUM.
"""

from __future__ import annotations

from pgheadroom.lab import presentation as forms
from pgheadroom.lab.base.answers import told_of

FIGURES: tuple[forms.FigureForm, ...] = (
    forms.Against(
        title="What each load costs",
        across="method",
        measures=("wal_bytes_per_row", "step_ms", "index_pages"),
        only={"step": "load"},
        logarithmic=("step_ms",),
        key=True,
    ),
    forms.Against(
        title="What it leaves to the first VACUUM",
        across="method",
        measures=("wal_bytes_per_row", "heap_pages"),
        only={"step": "vacuum"},
        key=True,
    ),
)

answer = told_of("step_ms")
