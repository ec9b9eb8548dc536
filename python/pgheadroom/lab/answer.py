"""
The answer of an experiment in one sentence, made from its result alone.

The experiment's own sentence, or a generic one. An answer never claims more than the verdicts
allow: what is undecided is said to be, with its reason.
"""

from __future__ import annotations

from collections.abc import Callable

from pgheadroom.lab import reading
from pgheadroom.lab.answer_words import (
    Sentence,
    comparisons,
    few_repetitions,
    named,
    tally,
    undecided,
)
from pgheadroom.lab.measure_titles import title
from pgheadroom.lab.reading import Result
from pgheadroom.stats import ComparisonVerdict

AnswerOf = Callable[[Result], str | None]


def sentence(result: Result, own: AnswerOf | None = None) -> str | None:
    """
    The answer to a result's question, with its interval, in one sentence.

    Args:
        result: Of kind "experiment"; what it lacks is left out.
        own: The experiment's sentence; where it gives None, the generic one is said.

    Returns:
        Printable text; None for a result without any number.
    """
    said = (own(result) if own is not None else None) or _generic(result)
    if said is not None and not result.complete:
        return f"So far, with the run not complete: {said}"
    return said


def _generic(result: Result) -> str | None:
    every = comparisons(result)
    if not every:
        return _range(result)
    # The clearest of many is a choice that the figures made; the count beside it says of how many.
    clearest = max(every, key=lambda item: item.distance)
    said = Sentence()
    if clearest.distance > 0:
        text = f"{named(result, clearest)} is {said.compared(clearest)}"
        if len(every) == 1:
            return said.ended(text)
        return said.ended(
            f"the clearest of {len(every)} comparisons: {text}; of all {len(every)}, {tally(every)}"
        )
    decided = [item for item in every if item.verdict is not ComparisonVerdict.UNDECIDED]
    if not decided:
        more = "" if len(every) == 1 else f", as are all {len(every)} comparisons"
        first = every[0]
        return said.ended(f"undecided ({first.reason}): {named(result, first)}{more}")
    first = decided[0]
    if len(every) == 1:
        return said.ended(f"{named(result, first)} is {said.compared(first)}")
    return said.ended(
        f"none of {len(every)} comparisons shows a difference ({tally(every)}): "
        f"{named(result, first)} is {said.compared(first)}"
    )


def _range(result: Result) -> str | None:
    """Where nothing was compared: from where to where the first measure goes."""
    names = [factor.name for factor in reading.varying(result)]
    for measure in reading.measures(result):
        known = [
            (found, cell)
            for cell in reading.cells(result)
            if (found := reading.middle(reading.value(cell, measure.name))) is not None
        ]
        if not known:
            continue
        said = Sentence()
        ends = [pick(known, key=lambda item: item[0])[1] for pick in (min, max)]
        name = title(measure.name)
        unit = f" {reading.printable(measure.unit)}" if measure.unit else ""
        low, high = (
            f"{said.figure(cell, measure.name)}{unit}{f' ({place})' if place else ''}"
            for cell in ends
            for place in (reading.at(cell, names),)
        )
        text = (
            f"{name} is {low}, and nothing was compared with it"
            if len(known) == 1
            else f"{name} is from {low} to {high}; nothing was compared"
        )
        reason = few_repetitions(ends)
        return said.ended(undecided(reason, text))
    return None
