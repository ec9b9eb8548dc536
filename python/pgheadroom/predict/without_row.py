"""
Turns in which an operation finds no row: a queue that has run empty, a row that was rolled back.

Such a statement counts as an operation and moves no counter, so that figures per update look as if
there had been fewer updates. Where it is more than a little, every result says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from pgheadroom import _core
from pgheadroom.outcome import Value, ends, middle
from pgheadroom.predict.chance import counted
from pgheadroom.profile import Profile
from pgheadroom.types import Interval
from pgheadroom.units import percent

SAID_FROM_FRAC = 0.01
"""More than this share of an operation's turns without a row is said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turns:
    """
    How often an operation had its turn in a run, on average, and how often without a row.

    `are_equal` says whether each run had as many turns.
    """

    turns: float
    without_row: Value
    are_equal: bool = True

    @property
    def frac(self) -> float:
        """The share without a row."""
        count = middle(self.without_row) or 0
        return count / self.turns if self.turns else 0.0

    @property
    def written(self) -> str:
        """Of how many turns it found none in how many: from the least to the most where drawn."""
        turns = f"{'' if self.are_equal else 'about '}{round(self.turns):,} turns"
        low, mid, high = ends(self.without_row or 0)
        count = f"{round(low):,} to {round(high):,}" if low < high else f"{round(mid):,}"
        return f"{count} of {turns} ({100 * self.frac:.1f} %)"

    @property
    def is_said(self) -> bool:
        """Whether it is more than a little."""
        return self.frac > SAID_FROM_FRAC


def turns_of(
    runs: Sequence[_core.Simulated],
    share: float = 1.0,
    halves: Mapping[int, float] | None = None,
) -> dict[str, Turns]:
    """
    The turns of each operation, by its number in the profile.

    Args:
        runs: The twin's runs of one cell.
        share: Of the whole in each.
        halves: By how much turns without a row are uncertain, by the operation's number
            (`turn_halves`).
    """
    halves = halves or {}
    found = {}
    for n, of_operation in enumerate(zip(*(run.turns for run in runs), strict=True)):
        without = [round(without / share) for _, without in of_operation]
        count = counted(without, halves.get(n, 0.0))
        if n in halves and isinstance(count, Interval):
            most = max(turns for turns, _ in of_operation) / share
            count = replace(count, high=max(count.mid, min(count.high, most)))
        counts = [turns for turns, _ in of_operation]
        found[str(n)] = Turns(
            turns=fmean(counts) / share,
            without_row=count,
            are_equal=len(set(counts)) == 1 and share == 1,
        )
    return found


def said_of(turns: Mapping[str, Turns]) -> dict[str, Value]:
    """Of which operations it is said, and how many turns."""
    return {n: one.without_row for n, one in turns.items() if one.is_said}


def worst_of(profile: Profile, turns: Mapping[str, Turns]) -> str | None:
    """The operation that finds no row in the most of its turns, if that has to be said."""
    found = max(turns, key=lambda number: turns[number].frac, default=None)
    if found is None or not turns[found].is_said:
        return None
    operation = profile.workload.operations[int(found)]
    pick = "" if operation.pick is None else f" by {operation.pick.distribution}"
    return f"{operation.kind}{pick} finds no row in {percent(turns[found].frac, 1)} of its turns"


def sentences(profile: Profile, cells: Sequence[Mapping[str, Turns]]) -> tuple[str, ...]:
    """What a reader has to know before the figures: a sentence for each such operation."""
    worst: dict[int, Turns] = {}
    for turns in cells:
        for name, one in turns.items():
            number = int(name)
            if one.is_said and (number not in worst or one.frac > worst[number].frac):
                worst[number] = one
    said = []
    for n, one in sorted(worst.items()):
        operation = profile.workload.operations[n]
        pick = "" if operation.pick is None else f" by {operation.pick.distribution}"
        said.append(
            f"operation[{n}], {operation.kind} on {operation.table}{pick}, found no row in "
            f"{one.written}: the figures are those of the other turns."
        )
    return tuple(said)
