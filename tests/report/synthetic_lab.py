"""
Made-up results of the experiments that go by rounds, windows, steps and clients.

As in `synthetic`, no number was measured; the shapes are those of real results.
"""

from __future__ import annotations

from typing import Any

import synthetic
from synthetic import interval, measure


def result(name: str, factors: dict[str, list[Any]], **parts: Any) -> dict[str, Any]:
    """A made-up result of any experiment, with the factors' levels."""
    base = synthetic.unknown()
    return base | {
        "name": name,
        "title": f"{name} (synthetic)",
        "question": "Does the answer hold?",
        "command": f"pgheadroom lab run {name} --seed 1",
        "factors": [
            {"name": factor, "description": factor, "unit": None, "levels": levels}
            for factor, levels in factors.items()
        ],
        **parts,
    }


def comparison(
    name: str,
    cell: dict[str, Any],
    against: dict[str, Any],
    ends: tuple[float, float, float] | None,
    verdict: str,
    *,
    pairs: int = 5,
    reason: str = "",
) -> dict[str, Any]:
    """One entry of `comparisons`; `cell` only names what differs from `against`."""
    ratio = None
    if ends is not None:
        low, mid, high = ends
        ratio = {"low": low, "mid": mid, "high": high, "level": 0.95}
    return {
        "measure": name,
        "cell": against | cell,
        "against": against,
        "ratio": ratio,
        "pairs": pairs,
        "verdict": verdict,
        "reason": reason,
    }


def _with_intervals(values: dict[str, float], spread: float = 0.01) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    for name, value in values.items():
        shown |= {name: value, f"{name}_interval": interval(value, spread, 0.9375)}
    return shown


def cluster_decay(*, repetitions: int = 5, rounds: int = 4) -> dict[str, Any]:
    """Pages of a range grow from 50 by 40 a round in a heap, by 20 with sorted inserts."""
    cells = []
    for engine, growth in (("sorted", 20), ("heap", 40)):
        for number in range(rounds + 1):
            place = {"engine": engine, "fillfactor": 100, "churn_pct": 2, "index": "btree"}
            pages = 50.0 + growth * number
            cells.append(
                {**place, "round": number, **_with_intervals({"pages_per_range": pages}),
                 "heap_pages": 5000, "index_pages": 280, "recluster_ms": 700.0,
                 "repetitions": repetitions}
            )  # fmt: skip
    last = {name: cells[-1][name] for name in ("engine", "fillfactor", "churn_pct", "index")}
    return result(
        "cluster-decay",
        {"engine": ["heap", "sorted"], "fillfactor": [100], "churn_pct": [2], "index": ["btree"],
         "round": list(range(rounds + 1))},
        options={"queries_per_round": 100},
        measures=[measure("pages_per_range", "pages", "lower", "pages of a range")],
        cells=cells,
        comparisons=[
            comparison("pages_per_range", {"engine": "sorted"}, last | {"round": rounds},
                       (0.60, 0.62, 0.64), "lower", pairs=repetitions)
        ],
    )  # fmt: skip


def fpi_sawtooth(*, repetitions: int = 5) -> dict[str, Any]:
    """8,000 bytes an update after each of two checkpoints, 200 far from them."""
    cells = [
        {"fillfactor": fillfactor, "full_page_writes": "on", "wal_compression": "off",
         "window": window,
         **_with_intervals({"wal_bytes_per_update": 8000 / (1 + 13 * ((window - 1) % 4)),
                            "wal_fpi_per_update": 1 / (1 + 13 * ((window - 1) % 4))}),
         "repetitions": repetitions}
        for fillfactor in (100, 80) for window in range(1, 9)
    ]  # fmt: skip
    return result(
        "fpi-sawtooth",
        {"fillfactor": [100, 80], "full_page_writes": ["on"], "wal_compression": ["off"],
         "window": list(range(1, 9))},
        options={"updates": 0},
        measures=[measure("wal_bytes_per_update", "bytes", "lower", "WAL of an update"),
                  measure("wal_fpi_per_update", None, "lower", "images of an update")],
        cells=cells,
    )  # fmt: skip


def long_transaction(*, repetitions: int = 5) -> dict[str, Any]:
    """HOT is 100 % but in windows 3 to 5, in which a snapshot is held."""
    cells = [
        {"snapshot": snapshot, "fillfactor": 80, "window": window,
         **_with_intervals({"hot_frac": 0.2 if snapshot == "held" and 3 <= window < 6 else 0.99,
                            "heap_pages": 2000.0 if window < 3 else 3500.0}, 0.005),
         "repetitions": repetitions}
        for snapshot in ("none", "held") for window in range(1, 8)
    ]  # fmt: skip
    return result(
        "long-transaction",
        {"snapshot": ["none", "held"], "fillfactor": [80], "window": list(range(1, 8))},
        options={"open": 3, "close": 6},
        measures=[measure("hot_frac", None, "higher", "HOT share"),
                  measure("heap_pages", "pages", "lower", "size")],
        cells=cells,
    )  # fmt: skip


def index_walkthrough(*, wrong: int = 0) -> dict[str, Any]:
    """Six steps, of which the first `wrong` are one block off."""
    cells = [
        {"step": f"step {number}", "buffers": 40 + number + (number < wrong),
         "buffers_interval": None, "predicted_buffers": 40 + number, "repetitions": 1}
        for number in range(6)
    ]  # fmt: skip
    return result(
        "index-walkthrough",
        {"step": [cell["step"] for cell in cells]},
        measures=[measure("buffers", "pages", None, "blocks"),
                  measure("predicted_buffers", "pages", None, "by arithmetic")],
        cells=cells,
    )  # fmt: skip


def clients_scale() -> dict[str, Any]:
    """Four clients do more than one where the data fit, and nothing is known where they do not."""
    cells = [
        {"data_scale": scale, "clients": clients,
         **_with_intervals({"tps": 1000.0 * clients / scale}), "repetitions": 5}
        for scale in (1, 8) for clients in (1, 2, 4)
    ]  # fmt: skip
    compared = [
        comparison("tps", {"clients": clients}, {"data_scale": scale, "clients": 1},
                   (clients * 0.9, float(clients), clients * 1.1) if scale == 1
                   else (0.9, 1.02, 1.2), "higher" if scale == 1 else "no difference shown")
        for scale in (1, 8) for clients in (2, 4)
    ]  # fmt: skip
    return result(
        "clients-scale",
        {"data_scale": [1, 8], "clients": [1, 2, 4]},
        measures=[measure("tps", "1/s", "higher", "transactions per second")],
        cells=cells,
        comparisons=compared,
    )


def update_cost(*, pairs: int = 5) -> dict[str, Any]:
    """`synthetic.update_cost` with the comparisons of its counters."""
    base = synthetic.update_cost()
    against = {"filler_length": 64, "fillfactor": 100, "update_bid": 0}
    return base | {
        "comparisons": [
            comparison("wal_bytes", {"fillfactor": 80}, against, (0.26, 0.264, 0.27), "lower",
                       pairs=pairs),
            comparison("pages_dirtied", {"fillfactor": 80}, against, (0.49, 0.5, 0.51), "lower",
                       pairs=pairs),
        ]
    }  # fmt: skip
