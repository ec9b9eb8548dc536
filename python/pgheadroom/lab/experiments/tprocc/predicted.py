"""
What the twin says of the workload: sizes after loading, HOT and WAL of a number of transactions.

It plays one warehouse with its share of the transactions: shares and bytes per transaction are the
same for any number of them, apart from waiting, which the twin does not know. Sizes are multiplied.
What happened before the window is played too, once without and once with the window, and the
window is the difference; the checkpoint between them is played, too.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pgheadroom.lab.experiments.tprocc.schedules import TABLES, UPDATED
from pgheadroom.lab.experiments.tprocc.twin import profile_of
from pgheadroom.outcome import Outcome, Value, middle
from pgheadroom.types import PgVersion
from pgheadroom.units import PAGE_BYTES

if TYPE_CHECKING:
    from pgheadroom.predict import Storage
    from pgheadroom.predict.run_plan import TwinEvent

SEEDS = 2
"""Runs of the twin, of which the mean is taken: they hardly differ with so many transactions."""

_WINDOW = ("n_tup_upd", "n_tup_hot_upd")


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """
    What decides a prediction; `level` is one fillfactor, or a schedule of them.

    `age` and `transactions` are those before the window and in it, of one warehouse.
    """

    version: str
    level: str | int
    age: int
    transactions: int


def figures(workload: Workload, warehouses: int) -> dict[str, float | None]:
    """
    Predicted measures by their names in a result.

    Raises:
        TwinError: The twin reached one of its limits.
    """
    found: dict[str, float | None] = {
        "predicted_data_bytes": _data_bytes(_play(workload, 1, as_loaded=True), warehouses)
    }
    whole = workload.age + workload.transactions
    run = [_play(workload, count) for count in (workload.age, whole) if count]
    logged = [
        _play(workload, count, storage="log-structured") for count in (workload.age, whole) if count
    ]
    for table in UPDATED:
        updated, hot = (
            _window([outcome.by_table[table].value(name) for outcome in run]) for name in _WINDOW
        )
        found[f"predicted_{table}_hot_frac"] = hot / updated if updated else None
    wal = {
        name: _window([outcome.value(name) for outcome in run]) / workload.transactions
        for name in ("wal_bytes", "wal_fpi_bytes")
    }
    found["predicted_wal_bytes_per_tx"] = wal["wal_bytes"]
    found["predicted_wal_nonfpi_bytes_per_tx"] = wal["wal_bytes"] - wal["wal_fpi_bytes"]
    found["predicted_log_bytes_per_tx"] = (
        _window([outcome.wal_bytes for outcome in logged]) / workload.transactions
    )
    return found


def _window(values: list[Value]) -> float:
    """What the window adds to what was before it, if anything was."""
    last = _mid(values[-1])
    return last if len(values) == 1 else last - _mid(values[0])


def _data_bytes(loaded: Outcome, warehouses: int) -> float:
    """Tables and indexes of so many warehouses; items are the same for all."""
    pages = {
        table: _mid(loaded.by_table[table].heap_pages) + _mid(loaded.by_table[table].index_pages)
        for table in TABLES
    }
    return ((sum(pages.values()) - pages["item"]) * warehouses + pages["item"]) * PAGE_BYTES


@functools.lru_cache(maxsize=64)
def _play(
    workload: Workload, transactions: int, *, as_loaded: bool = False, storage: Storage = "local"
) -> Outcome:
    from pgheadroom.predict import Given, predict_cells  # noqa: PLC0415 - slow
    from pgheadroom.predict.cells import make_cells  # noqa: PLC0415 - slow
    from pgheadroom.predict.run_plan import Model, RunPlan  # noqa: PLC0415 - slow

    profile = profile_of(
        version=workload.version,
        level=workload.level,
        transactions=transactions,
        as_loaded=as_loaded,
    )
    # A record with an image leaves out the row, so images have to be where the server has them.
    begins: tuple[TwinEvent, ...] = ()
    if workload.age and transactions > workload.age and storage == "local":
        begins = ((workload.age / transactions, "checkpoint_starting", None),)
    plan = RunPlan(
        cells=make_cells(profile),
        version=PgVersion.parse(workload.version),
        given=[Given(events=begins)],
        model=Model(storage=storage),
        seeds=SEEDS,
    )
    return predict_cells(plan)[0].outcome


def _mid(value: Value) -> float:
    """A figure, or the middle of its interval."""
    found = middle(value)
    assert found is not None, "the twin counts these"
    return found
