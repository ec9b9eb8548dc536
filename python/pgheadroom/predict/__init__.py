"""
Predicting what a profile would do, by the page-level twin alone: no server takes part.

    cells.py    a profile at other fillfactors
    fillfactors.py  what tells cells apart
    variants.py a profile with other indexes
    order.py    how well tables lie in key order
    version.py  which minor version the twin follows
    planning.py what is asked, decided once: cells, clock, samples, rewrites
    run_plan.py what is played: the runs of each cell with each seed
    twin.py     runs of the twin side by side, with progress and a clean stop
    clock.py    how fast a run goes, and what the server does by itself meanwhile
    chance.py   what chance makes of runs: Student's t, counts, means
    spread.py   several runs of a statistical cell become intervals
    contended.py, uncertain_rows.py     counts that are no numbers, though all runs agree
    series.py   the figures of each window of simulated time
    rewriting.py    tables that are rewritten in the middle of a run
    growth.py   whether a table has found its size by the end of a run
    convergence.py  when a new fillfactor has taken effect on old pages
    answer.py   which of several fillfactors is enough, in a sentence
    values.py   the prediction: cells, answer, what it rests on
    run.py      profile and fillfactors -> Prediction

What a real server does with the same profile is `play`; `prove` sets both beside each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pgheadroom.on_demand import on_demand

if TYPE_CHECKING:
    from pgheadroom.predict.cells import Cell, loaded_anew, make_cells
    from pgheadroom.predict.rewriting import RewriteAsked
    from pgheadroom.predict.run import predict
    from pgheadroom.predict.run_plan import Engine, Given, RunPlan, Storage, Timing
    from pgheadroom.predict.twin import predict_cells
    from pgheadroom.predict.values import PredictedCell, Prediction
    from pgheadroom.predict.variants import IndexChange
    from pgheadroom.predict.version import minor_version

__all__ = [
    "Cell",
    "Engine",
    "Given",
    "IndexChange",
    "PredictedCell",
    "Prediction",
    "RewriteAsked",
    "RunPlan",
    "Storage",
    "Timing",
    "loaded_anew",
    "make_cells",
    "minor_version",
    "predict",
    "predict_cells",
]

_HOMES = {
    "Cell": "cells",
    "loaded_anew": "cells",
    "make_cells": "cells",
    "RewriteAsked": "rewriting",
    "PredictedCell": "values",
    "Prediction": "values",
    "predict": "run",
    "Engine": "run_plan",
    "Given": "run_plan",
    "RunPlan": "run_plan",
    "Storage": "run_plan",
    "Timing": "run_plan",
    "predict_cells": "twin",
    "IndexChange": "variants",
    "minor_version": "version",
}

__getattr__ = on_demand(__name__, _HOMES)
