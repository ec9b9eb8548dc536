"""
How a result is shown: as it says itself, else as its experiment has it.

Results from before they kept their presentation have none; neither has one of two records side by
side. One of an experiment that is not known here is shown in full, without figures of its own.
"""

from __future__ import annotations

from pgheadroom.lab.answer import sentence
from pgheadroom.lab.presentation import Presentation
from pgheadroom.lab.reading import Result


def presented(result: Result) -> Presentation:
    """
    The presentation of a result of kind "experiment".

    Raises:
        InputError: It keeps one that this version cannot read.
    """
    if result.presentation:
        return Presentation.from_json(result.presentation)
    from pgheadroom.lab import experiments  # noqa: PLC0415 - slow to import, and seldom asked

    known = next((each for each in experiments.ALL if each.name == result.name), None)
    return Presentation(answer=sentence(result)) if known is None else known.presentation(result)
