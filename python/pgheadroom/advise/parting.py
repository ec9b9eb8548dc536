"""
Ways of picking rows that all repeat an interval, held against each other in the long run.

Which rows are updated may be open (`picks.py`), and more than one pick may repeat what was
measured: an interval shows a table at one age. Each is followed to its long run, at the setting in
force and at the one that was compared with it. Where they stay together it makes no difference
which is so. Where they part, each is asked for its own answer: the same answer is given with
intervals that reach over all of them, and different ones are no answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from pgheadroom.advise.calibrate import Fits
from pgheadroom.advise.curve import Costed
from pgheadroom.advise.decide import Decision, abstain
from pgheadroom.advise.foreseen import Point
from pgheadroom.advise.shares import AGREES_WITHIN
from pgheadroom.outcome import Value, as_interval, ends, mid
from pgheadroom.units import show_shares

CostedCurve = tuple[Costed, ...]

_LEVEL = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighing:
    """
    How a pick of rows comes to its answer.

    Attributes:
        play: Some fillfactors of a pick.
        whole: The whole curve of a pick.
        decide: An answer by a curve.
        against: The answer by a curve where a fillfactor is held against that in force.
    """

    play: Callable[[Fits, Sequence[int]], CostedCurve]
    whole: Callable[[Fits], CostedCurve]
    decide: Callable[[CostedCurve], Decision]
    against: Callable[[CostedCurve, int], Decision]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a pick of rows leads to."""

    told: str
    curve: CostedCurve
    decision: Decision


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighed:
    """
    The answer that holds for all picks, the curve as wide as these are, and what is said.

    `apart` is by how much their HOT shares differ at most, in the long run.
    """

    decision: Decision
    curve: CostedCurve
    said: str = ""
    apart: float = 0.0


def weigh_others(
    told: str,
    fillfactor: int,
    curve: CostedCurve,
    decision: Decision,
    others: Sequence[Fits],
    by: Weighing,
) -> Weighed:
    """
    Hold other picks that agree with the interval against the one that was followed.

    Args:
        told: How the one that was followed picks rows.
        fillfactor: In force.
        curve: Of the one that was followed.
        decision: By that curve.
        others: Picks that agree as well.
        by: How each comes to its answer.
    """
    if not others or decision.verdict == "ABSTAIN":
        return Weighed(decision=decision, curve=curve)
    known = {found.point.fillfactor: found.point for found in curve}
    settings = [one for one in dict.fromkeys((fillfactor, decision.compared)) if one in known]
    seen = [(other, by.play(other, settings)) for other in others]
    parted = [
        (mid(points[0].point.hot_frac), n)
        for n, (_, points) in enumerate(seen)
        if any(parts(known[found.point.fillfactor], found.point) for found in points)
    ]
    # Whatever else agrees lies between the two that are farthest apart.
    rivals = [seen[n][0] for n in sorted({min(parted)[1], max(parted)[1]} if parted else ())]
    answers = [Answer(told=told, curve=curve, decision=decision)]
    for rival in rivals:
        found = by.whole(rival)
        answers.append(Answer(told=rival.reading.told, curve=found, decision=by.decide(found)))
    said = ""
    if rivals:
        said = f"which rows are updated was not seen, and {_told(fillfactor, answers)}"
        if len({(one.decision.verdict, one.decision.fillfactor) for one in answers}) > 1:
            common = _common(answers, by)
            if common is None:
                return Weighed(decision=_no_answer(said), curve=curve)
            answers = [replace(one, decision=by.against(one.curve, common)) for one in answers]
    decision = replace(
        answers[0].decision, gain_frac=_over([one.decision.gain_frac for one in answers])
    )
    apart = 0.0
    for points in (*(points for _, points in seen), *(one.curve for one in answers[1:])):
        curve = reaching(curve, points)
        apart = max(
            [
                apart,
                *(
                    abs(mid(known[one.point.fillfactor].hot_frac) - mid(one.point.hot_frac))
                    for one in points
                    if one.point.fillfactor in known
                ),
            ]
        )
    return Weighed(decision=decision, curve=curve, said=said, apart=apart)


def parts(one: Point, other: Point) -> bool:
    """Whether two HOT shares are farther apart than the interval of the first and two points."""
    low, _, high = ends(one.hot_frac if one.hot_frac is not None else 0.0)
    found = mid(other.hot_frac)
    return not low - AGREES_WITHIN <= found <= high + AGREES_WITHIN


def reaching(curve: CostedCurve, other: CostedCurve) -> CostedCurve:
    """The first curve, its HOT shares as wide as to reach over those of the other."""
    points = {found.point.fillfactor: found.point for found in other}
    return tuple(
        replace(found, point=replace(found.point, hot_frac=_over([found.point.hot_frac, one])))
        for found in curve
        for one in [points.get(found.point.fillfactor, found.point).hot_frac]
    )


def _over(values: Sequence[Value]) -> Value:
    """The first value with an interval that reaches over all."""
    known = [wide for value in values if (wide := as_interval(value, level=_LEVEL)) is not None]
    if len(known) < 2 or values[0] is None:
        return values[0]
    return replace(known[0], low=min(one.low for one in known), high=max(one.high for one in known))


def _common(answers: Sequence[Answer], by: Weighing) -> int | None:
    """The highest of the settings advised that is a change for the better whatever is so."""
    if any(one.decision.verdict != "CHANGE" for one in answers):
        return None
    advised = {one.decision.fillfactor for one in answers if one.decision.fillfactor is not None}
    for fillfactor in sorted(advised, reverse=True):
        if all(by.against(one.curve, fillfactor).verdict == "CHANGE" for one in answers):
            return fillfactor
    return None


def _told(fillfactor: int, answers: Sequence[Answer]) -> str:
    """What repeats the interval, and where it leads: shares at the setting in force, answers."""
    shares = [
        mid(found.point.hot_frac)
        for one in answers
        for found in one.curve
        if found.point.fillfactor == fillfactor
    ]
    said = [
        f"{one.told} ({share} HOT in the long run at {fillfactor}: {_short(one.decision)})"
        for one, share in zip(answers, show_shares(*shares), strict=True)
    ]
    return f"{'; '.join(said[:-1])} and {said[-1]} repeat the interval alike"


def _short(decision: Decision) -> str:
    if decision.verdict == "CHANGE":
        return f"then {decision.fillfactor} saves"
    return "then it stays" if decision.verdict == "KEEP" else "then nothing can be said"


def _no_answer(said: str) -> Decision:
    return abstain(
        said,
        settled_by="observe for longer, with a sample of its rows, in which the ages of more "
        "updated rows tell them apart",
    )
