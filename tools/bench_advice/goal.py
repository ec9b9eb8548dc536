"""
What is compared, and when to stop; fixed before any advice was given.

`experiments/advice/README.md` says the same in words.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bench_advice.workloads import CYCLE_S, Workload
from pgheadroom.advise.advice import Prices
from pgheadroom.advise.policy import DAY_S, cost_a_day, make_policy

FILLFACTORS = (100, 90, 80, 70, 95, 85, 60, 50, 75)
"""Measured for every workload, beside the current one and what any rule or advice names."""

TIE_FRAC = 0.005
"""Costs this close to the least count as the least, where the best fillfactor is named."""

LOSS_FRAC = 0.02
"""Advice that costs this much more than leaving the setting has done harm."""

_PAGE_BYTES = 8192


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """Prices under a name, and the options with which `advise` is told them."""

    name: str
    prices: Prices
    options: tuple[str, ...]
    about: str


def _goal(name: str, about: str, **prices: float) -> Goal:
    options = tuple(text for key, price in prices.items() for text in ("--price", f"{key}={price}"))
    found = make_policy("balanced", prices).prices
    return Goal(name=name, prices=found, options=options, about=about)


GOALS = (
    _goal("balanced", "the default prices of `advise`"),
    _goal(
        "large",
        "each table stands for one 10,000 times as large at the same rate: a GB kept costs "
        "10,000 times as much",
        kept_gb=10_000.0,
    ),
)
"""The first is the goal; the others tell how far results depend on it."""


def cost_of(measured: Mapping[str, Any], prices: Prices) -> float:
    """
    What a day would cost that goes on like the window, one checkpoint cycle.

    Nothing is read from disk: the tables fit shared buffers, and no scan is sequential.

    Args:
        measured: A cell's figures.
        prices: In force.
    """
    cycles = DAY_S / CYCLE_S
    pages = (
        measured["heap_pages_begin"]
        + measured["index_pages_begin"]
        + measured["heap_pages"]
        + measured["index_pages"]
    ) / 2
    return cost_a_day(
        prices,
        kept_bytes=pages * _PAGE_BYTES,
        wal_bytes_a_day=measured["wal_bytes"] * cycles,
        pages_written_a_day=measured["pages_modified"] * cycles,
        pages_read_a_day=0.0,
    )


def candidates(workload: Workload) -> tuple[int, ...]:
    """Fillfactors that are measured whatever any rule says, the current one first."""
    rest = [fillfactor for fillfactor in FILLFACTORS if fillfactor != workload.fillfactor]
    return (workload.fillfactor, *rest)
