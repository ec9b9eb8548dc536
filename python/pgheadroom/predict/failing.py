"""
Transactions that fail because of others: in a deadlock, or at a row that another has changed.

pgbench counts such a transaction, rolls it back and goes on with its next (--max-tries=1), and the
twin does as much. What it has changed before stays on the pages until it is removed, and its
statements are in no counter of rows that were changed.
"""

from __future__ import annotations

from collections.abc import Sequence

from pgheadroom import _core
from pgheadroom.outcome import Value
from pgheadroom.predict.chance import counted
from pgheadroom.units import percent

SAID_FROM_FRAC = 0.01
"""More than this share of the transactions is said before the figures."""


def failed_of(runs: Sequence[_core.Simulated], share: float, half: float) -> Value:
    """
    Failed transactions of a cell, of all.

    Args:
        runs: The twin's runs of it.
        share: Of the whole in each.
        half: By how much that is uncertain (`failed_half`).
    """
    return counted([round(run.failed_transactions / share) for run in runs], half)


def failed_frac(runs: Sequence[_core.Simulated]) -> float:
    """The share of a cell's transactions that failed, on average."""
    transactions = sum(run.transactions for run in runs)
    return sum(run.failed_transactions for run in runs) / max(1, transactions)


def sentences(shares: Sequence[float]) -> tuple[str, ...]:
    """What a reader has to know before the figures, of the cell in which the most failed."""
    worst = max(shares, default=0.0)
    if worst <= SAID_FROM_FRAC:
        return ()
    return (
        f"{percent(worst, 1)} of the transactions fail because of others and are rolled back, as "
        "pgbench "
        "does that tries none again: what they changed is in the figures, what they would have "
        "changed is not.",
    )
