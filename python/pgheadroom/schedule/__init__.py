"""
The one seam for parallel work: independent pieces go through a `concurrent.futures.Executor`.

    pieces.py     pieces and what runs them: this thread, a pool, several executors side by side
    scheduler.py  the executors of a Dask cluster, one for each label of its workers
"""

from __future__ import annotations

from pgheadroom.schedule.pieces import (
    DistantExecutor,
    InlineExecutor,
    Lane,
    run_lanes,
    run_pieces,
)

__all__ = ["DistantExecutor", "InlineExecutor", "Lane", "run_lanes", "run_pieces"]
