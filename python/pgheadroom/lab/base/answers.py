"""
Answers, and parts of them, that several experiments share.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pgheadroom.lab import reading
from pgheadroom.lab.answer_words import Compared, SaidCell, Sentence, comparisons, named, tally
from pgheadroom.lab.reading import Result


def told_of(*measures: str) -> Callable[[Result], str | None]:
    """
    An answer that tells of the first comparison of each measure, in the experiment's order.

    Args:
        measures: The measures that the experiment's question asks for, the main one first; one
            that was not compared is left out.
    """

    def answer(result: Result) -> str | None:
        said = Sentence()
        parts = []
        for measure in measures:
            every = comparisons(result, measure)
            if every:
                text = f"{named(result, every[0])} is {said.compared(every[0])}"
                if len(every) > 1:
                    text += f" (of all {len(every)} such comparisons {tally(every)})"
                parts.append(text)
        return said.ended("; ".join(parts)) if parts else None

    return answer


def as_predicted(result: Result, what: str) -> str | None:
    """
    How many counts are exactly as predicted, one by one.

    Args:
        result: Whose measures have `predicted_` ones beside them.
        what: The counts, in the plural.

    Returns:
        None where nothing is predicted.
    """
    exact, count = 0, 0
    seen = []
    names = [measure.name for measure in reading.measures(result)]
    for cell in reading.cells(result):
        for name in names:
            foreseen = reading.middle(reading.value(cell, f"predicted_{name}"))
            found = reading.middle(reading.value(cell, name))
            if foreseen is None or found is None:
                continue
            spread = reading.spread_of(cell, name)
            count += 1
            seen.append(cell)
            exact += found == foreseen and (spread is None or spread.low == spread.high)
    if not count:
        return None
    known = sorted({found for cell in seen if (found := reading.number(cell.get("repetitions")))})
    ends = " to ".join(reading.label(number) for number in (*known[:1], *known[1:][-1:]))
    runs = f", in {ends} repetition{'' if known == [1] else 's'}" if known else ""
    if exact == count:
        return f"All {count} {what} are exactly as predicted{runs}."
    return f"{exact} of {count} {what} are exactly as predicted and {count - exact} are not{runs}."


def in_order(result: Result, wanted: SaidCell, across: str) -> list[SaidCell]:
    """
    The cells that go by rounds or windows, in their order, for the first level of all else.

    Args:
        result: Of kind "experiment".
        wanted: Levels that a cell must have.
        across: The factor that counts; cells where it is no number are left out.
    """
    fitting = [
        cell
        for cell in reading.cells(result)
        if reading.number(cell.get(across)) is not None
        and all(cell.get(name) == level for name, level in wanted.items())
    ]
    if not fitting:
        return []
    others = [factor.name for factor in reading.factors(result) if factor.name != across]
    same = [
        cell for cell in fitting if all(cell.get(name) == fitting[0].get(name) for name in others)
    ]
    return sorted(same, key=lambda cell: cell[across])


def most_of(items: Sequence[Compared], factor: str) -> Compared:
    """The first of those with the highest level, within the first level of all else."""
    return max(items, key=lambda item: reading.number(item.cell.get(factor)) or 0)
