"""
WAL that the statements that update rows write, of runs of the twin: one meaning, wherever shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pgheadroom.advise.runs import PlayedPiece
from pgheadroom.outcome import Value
from pgheadroom.predict.spread import OfSamples, spread
from pgheadroom.types import PgVersion


def own_wal(
    runs: Sequence[PlayedPiece], first: int | None = None, last: int | None = None, *, share: float
) -> Value:
    """
    WAL that the statements that update rows write, over the rows, images apart.

    Args:
        runs: Of one scenario and fillfactor; at least two.
        first: The first window, from 0; None: where the steady state begins.
        last: The window after the last one; None: the run's end.
        share: Of the table's rows that each run has.
    """
    figures = [run.figures(first, last) for run in runs]
    if not all(found.n_tup_upd for found in figures):
        return None
    wholes = [
        replace(found.outcome(), wal_bytes_per_update=found.wal_update_bytes / found.n_tup_upd)
        for found in figures
    ]
    major = PgVersion.parse(runs[0].piece.version).major
    outcome = spread(wholes, clients=1, major=major, samples=OfSamples(share=share), by_clock=True)
    return outcome.wal_bytes_per_update
