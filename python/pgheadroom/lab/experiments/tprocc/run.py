"""
Running the five transactions by pgbench in the standard's mix, and reading what its log tells.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pgheadroom.lab import driver

if TYPE_CHECKING:
    from pgheadroom.lab.place import Running
    from pgheadroom.servers.pgbench import PgbenchReport, TransactionLog

_HERE = Path(__file__).parent

MIX: Mapping[str, int] = {
    "new_order": 45,
    "payment": 43,
    "delivery": 4,
    "order_status": 4,
    "stock_level": 4,
}
"""Share of each transaction in percent, in the order of pgbench's script numbers."""


BEYOND_MIN = 5
"""Transactions beyond a percentile for it to be one, not the largest value (arbitrary)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Users:
    """Who drives: how many, and whether each stays at the warehouse of its own number."""

    count: int
    at_home: bool
    warehouses: int


def run(server: Running, users: Users, *, seed: int, length: Sequence[str]) -> PgbenchReport:
    """
    Run the mix.

    Args:
        server: With the nine tables and the procedures.
        users: pgbench's clients.
        seed: Of its random numbers.
        length: pgbench's `-t N` (each user) or `-T seconds`, and what else it shall do.

    Raises:
        LabError: pgbench failed.
        MeasurementInvalid: A transaction failed; one that the standard wants rolled back does not.
    """
    scripts = [f"{_script(server, name)}@{weight}" for name, weight in MIX.items()]
    return driver.run_pgbench(
        server,
        [
            *("-M", "prepared"),
            *("-s", str(users.warehouses)),
            *("-D", f"fixed_home={int(users.at_home)}"),
            *length,
            *(part for script in scripts for part in ("-f", script)),
        ],
        clients=users.count,
        seed=seed,
    )


def _script(server: Running, name: str) -> Path:
    """A copy of a script where pgbench, run by another user, can read it."""
    path = server.scratch / f"{name}.pgbench"
    path.write_text((_HERE / path.name).read_text(encoding="utf-8"), encoding="utf-8")
    path.chmod(0o644)
    return path


def latencies(log: TransactionLog) -> dict[str, float | None]:
    """
    Percentiles of each transaction's latency, in milliseconds, by `<transaction>_ms_p50` and so on.

    A percentile beyond which fewer than `BEYOND_MIN` transactions lie is None.
    """
    import numpy as np  # noqa: PLC0415 - slow to import; only a run needs it

    found: dict[str, float | None] = {}
    for number, name in enumerate(MIX):
        mine = log.latency_ms[log.script == number]
        for percent in (50, 90, 99):
            found[f"{name}_ms_p{percent}"] = (
                float(np.percentile(mine, percent))
                if len(mine) * (100 - percent) >= 100 * BEYOND_MIN
                else None
            )
    return found
