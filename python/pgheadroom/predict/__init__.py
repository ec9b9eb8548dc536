"""
Predicting what a profile would do, by the page-level twin alone: no server takes part.

    cells.py    a profile at other fillfactors
    variants.py a profile with other indexes
    version.py  which minor version the twin follows
    twin.py     runs of the twin side by side, with progress and a clean stop
    spread.py   several runs of a statistical cell become intervals
    run.py      profile and fillfactors -> Prediction

What a real server does with the same profile is `play`; `prove` sets both beside each other.
"""

from __future__ import annotations

from pgheadroom.predict.cells import Cell, make_cells
from pgheadroom.predict.run import PredictedCell, Prediction, predict
from pgheadroom.predict.twin import Given, Storage, predict_cells
from pgheadroom.predict.variants import IndexChange
from pgheadroom.predict.version import minor_version

__all__ = [
    "Cell",
    "Given",
    "IndexChange",
    "PredictedCell",
    "Prediction",
    "Storage",
    "make_cells",
    "minor_version",
    "predict",
    "predict_cells",
]
