"""
What the twin says of the workload: sizes after loading, HOT and WAL of the counter window.

It plays what a trial does: the warehouses are loaded and aged, a checkpoint follows, and then the
window's transactions, by as many users. Of many warehouses it plays a few, with their share of the
transactions: shares and bytes per transaction are about the same for any number of them, and sizes
are multiplied.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pgheadroom.lab.experiments.tprocc.schedules import UPDATED, fillfactors
from pgheadroom.units import PAGE_BYTES

if TYPE_CHECKING:
    from pgheadroom import _core
    from pgheadroom.predict import Storage

SEEDS = 2
"""Orders of the users' statements, of which the mean is taken: they hardly differ with so many
transactions."""

WAREHOUSES_MAX = 4
"""How many are played: each takes some 150 MB of memory at fillfactor 100."""

AGING_USERS = 2
"""Who ages the database before any window; one, where there is but one warehouse."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedLoad:
    """
    What decides a prediction; `level` is one fillfactor, or a schedule of them.

    `age` is of each warehouse, `transactions` are those of the window, all users together; `seed`
    is of the draws.
    """

    version: str
    level: str | int
    warehouses: int
    users: int
    at_home: bool
    age: int
    transactions: int
    seed: int


def figures(workload: PredictedLoad) -> dict[str, float | None]:
    """
    Predicted measures by their names in a result.

    Raises:
        TwinError: The twin reached one of its limits.
    """
    played = _plays(workload)
    runs = [run for run, _ in played]
    found: dict[str, float | None] = {
        "predicted_data_bytes": _data_bytes(played[0][1], workload.warehouses)
    }
    for table in UPDATED:
        outcomes = [each for run in runs for each in run.tables if each.name == table]
        updated = sum(each.n_tup_upd for each in outcomes)
        hot = sum(each.n_tup_hot_upd for each in outcomes)
        found[f"predicted_{table}_hot_frac"] = hot / updated if updated else None
    images = sum(each.wal_fpi_bytes for run in runs for each in run.tables)
    transactions = sum(run.transactions for run in runs)
    found["predicted_wal_bytes_per_tx"] = _wal_bytes(runs) / transactions
    found["predicted_wal_nonfpi_bytes_per_tx"] = (_wal_bytes(runs) - images) / transactions
    logged, _ = _play(workload, 0, "log-structured")
    found["predicted_log_bytes_per_tx"] = _wal_bytes([logged]) / logged.transactions
    return found


def _wal_bytes(runs: Sequence[_core.Simulated]) -> int:
    tables = sum(each.wal_bytes for run in runs for each in run.tables)
    return tables + sum(run.transaction_bytes for run in runs)


def _data_bytes(pages: dict[str, int], warehouses: int) -> float:
    """Tables and indexes of so many warehouses; items are the same for all."""
    each = (sum(pages.values()) - pages["item"]) / min(warehouses, WAREHOUSES_MAX)
    return (each * warehouses + pages["item"]) * PAGE_BYTES


def _plays(workload: PredictedLoad) -> list[tuple[_core.Simulated, dict[str, int]]]:
    """All seeds side by side: the twin runs beside other threads."""
    with ThreadPoolExecutor(max_workers=SEEDS) as executor:
        return list(executor.map(functools.partial(_play, workload), range(SEEDS)))


@functools.lru_cache(maxsize=64)
def _play(
    workload: PredictedLoad, interleaving: int, storage: Storage = "local"
) -> tuple[_core.Simulated, dict[str, int]]:
    from pgheadroom import _core  # noqa: PLC0415 - slow

    warehouses = min(workload.warehouses, WAREHOUSES_MAX)
    transactions = workload.transactions * warehouses // workload.warehouses
    aging = min(AGING_USERS, warehouses)
    spec = {
        "server": {
            "version": workload.version,
            "shared_buffers": "1GB",
            "full_page_writes": True,
            "wal_level": "replica",
            "wal_compression": "off",
            "wal_log_hints": False,
            "data_checksums": None,
            "autovacuum": False,
            "autovacuum_naptime_s": None,
            "checkpoint_interval_s": None,
            "max_wal_size": None,
        },
        "warehouses": warehouses,
        "fillfactor": fillfactors(workload.level),
        "at_home": workload.at_home,
        "age": {
            "clients": aging,
            "transactions": workload.age * warehouses // aging,
            "seed": workload.seed,
        },
        "window": {
            "clients": workload.users,
            "transactions": max(transactions // workload.users, 1),
            "seed": workload.seed + 1,
        },
    }
    return _core.simulate_tprocc(
        json.dumps(spec), workload.version, interleaving=interleaving, storage=storage
    )
