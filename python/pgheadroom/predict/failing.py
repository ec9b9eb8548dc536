"""
Transactions that fail because of others: in a deadlock, or at a row that another has changed.

pgbench counts such a transaction, rolls it back and goes on with its next (--max-tries=1), and the
twin does as much. What it has changed before stays on the pages until it is removed, and its
statements are in no counter of rows that were changed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from pgheadroom import _core
from pgheadroom.outcome import KEYS, SHARES, Outcome, Value, mid, outcome_of
from pgheadroom.predict.chance import counted
from pgheadroom.predict.least_pages import LeastPages, together
from pgheadroom.types import Interval
from pgheadroom.units import percent

SAID_FROM_FRAC = 0.01
"""More than this share of the transactions is said before the figures."""
# Servers' failures to serialize in those of the twin's mean, in proofs of 2 to 8 clients on two
# cores with other work (18.4, 16.14): docs/method/clients.md. Why they are fewer is not known.
_OF_A_SERVER = (0.2, 1.25)
# A figure depends on the failures if these make so much of its runs' variance.
_FOLLOWS = 0.5


@dataclass(frozen=True, slots=True)
class Failures:
    """
    Failed transactions of a cell.

    Attributes:
        numbers: By run of the twin, of the whole.
        value: How many, of all.
        reaches: Whether servers have others than the twin's runs, so that what follows from them
            has to reach as far.
    """

    numbers: tuple[int, ...]
    value: Value
    reaches: bool

    @classmethod
    def of(
        cls, runs: Sequence[_core.Simulated], share: float, half: float, isolation: str
    ) -> Failures:
        """
        Of several seeds.

        Args:
            runs: The twin's runs of one cell.
            share: Of the whole in each.
            half: By how much that is uncertain (`failed_half`).
            isolation: `"read committed"` or `"repeatable read"`.
        """
        numbers = tuple(round(run.failed_transactions / share) for run in runs)
        value = counted(numbers, half)
        if isolation != "repeatable read" or not isinstance(value, Interval):
            return cls(numbers, value, reaches=False)
        least, most = (value.mid * times for times in _OF_A_SERVER)
        value = replace(value, low=min(value.low, least), high=max(value.high, most))
        return cls(numbers, value, reaches=True)

    def within(
        self,
        outcome: Outcome,
        runs: Sequence[Outcome],
        least: Mapping[str, LeastPages] = MappingProxyType({}),
    ) -> Outcome:
        """
        The outcome whose intervals reach as far as what follows from more or fewer failures.

        What one more makes of a figure is taken from the runs, by least squares.

        Args:
            outcome: Of all runs.
            runs: Of each, in the order of `numbers`.
            least: Pages that tables have for certain (`least_pages_of`).
        """
        if not self.reaches:
            return outcome
        tables = {
            name: outcome_of(
                self._reaching(table, [run.by_table[name] for run in runs], least.get(name, {}))
            )
            for name, table in outcome.by_table.items()
        }
        return outcome_of(self._reaching(outcome, runs, together(least)), tables)

    def _reaching(
        self, part: Outcome, runs: Sequence[Outcome], least: LeastPages
    ) -> dict[str, Value]:
        """A whole's figures, or a table's."""
        return {key: self._reach(key, part, runs, least.get(key, 0)) for key in KEYS}

    def _reach(self, key: str, part: Outcome, runs: Sequence[Outcome], least: float) -> Value:
        found, failed = part.value(key), self.value
        if not (isinstance(found, Interval) and isinstance(failed, Interval)):
            return found
        of_one = _slope(self.numbers, [mid(run.value(key)) for run in runs])
        ends = [found.mid + of_one * (end - failed.mid) for end in (failed.low, failed.high)]
        high = max(found.high, *ends)
        return replace(
            found,
            low=min(found.low, max(least, min(ends))),
            high=min(1.0, high) if key in SHARES else high,
        )


def _slope(numbers: Sequence[int], values: Sequence[float]) -> float:
    """What one more makes of a value; 0 where it does not follow them."""
    mean, mean_value = (math.fsum(of) / len(of) for of in (numbers, values))
    pairs = [(n - mean, value - mean_value) for n, value in zip(numbers, values, strict=True)]
    own = math.fsum(n * n for n, _ in pairs)
    others = math.fsum(value * value for _, value in pairs)
    both = math.fsum(n * value for n, value in pairs)
    if own == 0 or others == 0 or both * both < _FOLLOWS * own * others:
        return 0.0
    return both / own


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
