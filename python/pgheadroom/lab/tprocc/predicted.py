"""
What the twin says of the workload: sizes after loading, HOT and WAL of a number of transactions.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

from pgheadroom.lab.tprocc.schedules import TABLES, UPDATED
from pgheadroom.lab.tprocc.twin import profile_of
from pgheadroom.outcome import Outcome
from pgheadroom.predict import Storage, predict_cells
from pgheadroom.predict.cells import make_cells
from pgheadroom.predict.twin import Model
from pgheadroom.types import Interval, PgVersion

SEEDS = 3
"""Runs of the twin for each interval: fewer than elsewhere, since the tables are large."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """What decides a prediction; `level` is one fillfactor, or the name of a schedule."""

    version: str
    warehouses: int
    level: str | int
    users: int
    transactions: int
    shared_buffers_bytes: int


def figures(workload: Workload) -> dict[str, float | None]:
    """
    Predicted measures by their names in a result.

    Raises:
        TwinError: The twin reached one of its limits.
    """
    loaded, run, logged = _outcomes(workload)
    found: dict[str, float | None] = {
        "predicted_data_bytes": sum(
            (_mid(each.heap_pages) + _mid(each.index_pages)) * 8192
            for each in (loaded.by_table[table] for table in TABLES)
        ),
        "predicted_wal_bytes_per_tx": _mid(run.wal_bytes) / workload.transactions,
        "predicted_log_bytes_per_tx": _mid(logged.wal_bytes) / workload.transactions,
    }
    for table in UPDATED:
        share = run.by_table[table].hot_frac
        found[f"predicted_{table}_hot_frac"] = None if share is None else _mid(share)
        if isinstance(share, Interval):
            found[f"predicted_{table}_hot_frac_low"] = share.low
            found[f"predicted_{table}_hot_frac_high"] = share.high
    return found


@functools.lru_cache(maxsize=64)
def _outcomes(workload: Workload) -> tuple[Outcome, Outcome, Outcome]:
    """As loaded; the run; the run on a storage that needs no images. Once for each workload."""
    return (
        _play(workload, as_loaded=True),
        _play(workload),
        _play(workload, storage="log-structured"),
    )


def _play(workload: Workload, *, as_loaded: bool = False, storage: Storage = "local") -> Outcome:
    profile = profile_of(
        version=workload.version,
        warehouses=workload.warehouses,
        level=workload.level,
        users=workload.users,
        transactions=workload.transactions,
        shared_buffers_bytes=workload.shared_buffers_bytes,
        seed=1,
        as_loaded=as_loaded,
    )
    simulated = predict_cells(
        make_cells(profile),
        PgVersion.parse(workload.version),
        model=Model(storage=storage),
        seeds=2 if as_loaded or storage != "local" else SEEDS,
    )
    return simulated[0].outcome


def _mid(value: object) -> float:
    """A figure, or the middle of its interval."""
    if isinstance(value, Interval):
        return value.mid
    assert isinstance(value, int | float), "the twin counts these"
    return value
