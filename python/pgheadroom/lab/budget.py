"""
Further blocks within a time budget: which cells they repeat, and when to stop.

The planned blocks are the pilot. Each further block repeats the comparisons whose intervals are
widest: always both cells and, with its control arm, the cell whose A/A control decides, so that its
pairs are interleaved as the pilot's are. It ends when every comparison is answered
(`stats.is_answered`) or the time is spent.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pgheadroom.lab.design import Request, Trial, interleave
from pgheadroom.lab.result import ComparedCells
from pgheadroom.stats import PAIRS_MIN, ComparisonVerdict, half_width, is_answered

WIDEST_SHARE = 0.5
"""Comparisons at least so wide as the widest are repeated with it (arbitrary)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Open:
    """
    A comparison that is not answered yet; `half_width` is logarithmic, infinite if unknown.

    `control` is the cell whose A/A control decides; `reason` is why nothing is decided although the
    interval is narrow enough, which is that control, and None where the width is what lacks.
    """

    cell: Mapping[str, Any]
    against: Mapping[str, Any]
    control: Mapping[str, Any]
    measure: str
    half_width: float
    pairs: int
    reason: str | None = None


def unanswered(comparisons: Sequence[ComparedCells]) -> list[Open]:
    """
    The comparisons that more blocks could still sharpen, the widest first.

    Args:
        comparisons: Of a result.
    """
    found = []
    for item in comparisons:
        pairs, ratio = item.pairs or 0, item.ratio
        if item.verdict == ComparisonVerdict.EQUAL:
            continue
        narrow = ratio is not None and is_answered(ratio, pairs)
        if pairs >= PAIRS_MIN:
            if ratio is None:
                continue  # values that are not above 0 have no ratio, however many there are
            if narrow and item.verdict != ComparisonVerdict.UNDECIDED:
                continue
        found.append(
            Open(
                cell=item.cell,
                against=item.against,
                control=item.against if item.control is None else item.control,
                measure=item.measure,
                half_width=math.inf if ratio is None else half_width(ratio),
                pairs=pairs,
                reason=item.reason if narrow else None,
            )
        )
    return sorted(found, key=lambda each: -each.half_width)


def next_block(request: Request, pilot: Sequence[Trial], open_: Sequence[Open]) -> list[Trial]:
    """
    The block after those that have run: the cells of the widest comparisons and their controls.

    Args:
        request: What was asked; its seed orders the block, every second one reversed.
        pilot: The trials of one whole block, numbered as the block that is wanted.
        open_: What is not answered, the widest first; not empty.
    """
    widest = [each for each in open_ if each.half_width >= WIDEST_SHARE * open_[0].half_width]
    wanted = [side for each in widest for side in (each.cell, each.against, each.control)]
    chosen = [trial for trial in pilot if any(_plays(trial, side) for side in wanted)]
    # Only controls, or something that no single trial plays: the whole block then.
    only_controls = all(each.cell == each.against for each in open_)
    block = list(pilot) if only_controls or not chosen else chosen
    number = block[0].repetition
    ordered = interleave([block], seed=request.seed * 1000 + number // 2)
    return ordered if number % 2 else ordered[::-1]


def _plays(trial: Trial, side: Mapping[str, Any]) -> bool:
    """Whether a trial measures a compared cell, which may have a round that the trial has not."""
    return all(side.get(name) == level for name, level in trial.cell.items())


def blocks_needed(open_: Open, target: float) -> int | None:
    """
    About how many blocks would bring an interval to a half width, from its width so far.

    Half widths shrink with the square root of the pairs; None when nothing is known yet.
    """
    if not math.isfinite(open_.half_width) or open_.pairs < PAIRS_MIN:
        return None
    return math.ceil(open_.pairs * (open_.half_width / target) ** 2)
