"""
Cells against the cell they are compared with, each measure with its A/A control.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pgheadroom.lab.design import Request, Trial, TrialCell, interleave
from pgheadroom.lab.experiment import compare_cells, compared_cells
from pgheadroom.lab.record import TrialSample
from pgheadroom.lab.result import ComparedCells
from pgheadroom.stats import ComparisonVerdict

CONTROL_ARMS = ("control", "measured")

NO_CONTROL = "no A/A control"
"""Why a time is undecided whose record has no arm that says how much equal settings differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrasts:
    """Entries of a result's `comparisons` and `controls`, by measure."""

    comparisons: list[ComparedCells] = field(default_factory=list)
    controls: list[ComparedCells] = field(default_factory=list)


def contrast(
    samples: Sequence[TrialSample],
    pairs: Iterable[tuple[TrialCell, TrialCell]],
    measures: Sequence[str],
    *,
    control: Callable[[TrialCell], TrialCell] | None = None,
    clocks: Collection[str] = (),
) -> Contrasts:
    """
    Compare cells by pairs of the same block.

    Args:
        samples: All samples of a record.
        pairs: Each a cell and the one that it is compared with; a cell beside itself stands for
            its control alone.
        measures: What is compared.
        control: The cell whose A/A control decides for a pair, given the pair's second cell;
            that cell itself when None.
        clocks: Those of the measures that are times and may stand in a record without a control
            arm: they are then undecided, while counters keep their verdict.

    Returns:
        What at least one block has both sides of; a control that differs makes its comparisons
        undecided (`stats.compare`). A comparison names the control's cell where it is another
        than its second one.
    """
    found = Contrasts()
    listed = list(pairs)
    for measure in measures:
        seen: list[TrialCell] = []
        for cell, against in listed:
            alike = against if control is None else control(against)
            aa = compare_cells(
                samples, cell=alike, against=alike, measure=measure, arms=CONTROL_ARMS
            )
            if alike not in seen and aa.pairs:
                found.controls.append(
                    compared_cells(aa, measure=measure, cell=alike, against=alike)
                )
            seen.append(alike)
            if cell == against:
                continue
            compared = compare_cells(samples, cell=cell, against=against, measure=measure, aa=aa)
            if (
                measure in clocks
                and not aa.pairs
                and compared.verdict != ComparisonVerdict.UNDECIDED
            ):
                compared = replace(compared, verdict=ComparisonVerdict.UNDECIDED, reason=NO_CONTROL)
            if compared.pairs:
                elsewhere = alike if aa.pairs and alike != against else None
                found.comparisons.append(
                    compared_cells(
                        compared, measure=measure, cell=cell, against=against, control=elsewhere
                    )
                )
    return found


def blocks(
    request: Request,
    controlled: Callable[[TrialCell], bool] | None = None,
    *,
    cells: Sequence[TrialCell] | None = None,
) -> list[Trial]:
    """
    Interleaved blocks of all cells, with a second, control arm of some of them.

    Args:
        request: Its repetitions and seed.
        controlled: Whether a cell has a control arm; none has when None.
        cells: What a trial plays each of; the request's cells when None.
    """
    listed = [
        [
            Trial(cell=cell, repetition=repetition, arm=arm)
            for cell in (request.cells() if cells is None else cells)
            for arm in ("measured", "control")
            if arm == "measured" or (controlled is not None and controlled(cell))
        ]
        for repetition in range(1, request.repetitions + 1)
    ]
    return interleave(listed, seed=request.seed)


def ratio_words(comparison: ComparedCells) -> str:
    """A comparison's outcome in words: a ratio with its interval and verdict, or why undecided."""
    ratio = comparison.ratio
    if comparison.verdict == ComparisonVerdict.EQUAL:
        return "equal"
    if comparison.verdict == ComparisonVerdict.UNDECIDED or ratio is None:
        return f"undecided ({comparison.reason})"
    return f"{ratio.mid:.3f} times [{ratio.low:.3f}, {ratio.high:.3f}], {comparison.verdict}"


def differences(
    comparisons: Sequence[ComparedCells], what: str, label: Callable[[Mapping[str, Any]], str]
) -> list[str]:
    """
    A sentence for each comparison that shows a difference, and how many show none.

    Args:
        comparisons: Entries of a result's `comparisons`, all of one measure.
        what: That measure in words, beginning with a capital letter.
        label: A cell in words.
    """
    decided = [item for item in comparisons if item.verdict != ComparisonVerdict.UNDECIDED]
    shown = [
        item
        for item in decided
        if item.verdict in (ComparisonVerdict.HIGHER, ComparisonVerdict.LOWER)
    ]
    said = [
        f"({label(item.cell)}) {what} against {label(item.against)}: {ratio_words(item)}."
        for item in shown
    ]
    if len(decided) > len(shown):
        said.append(
            f"{what}: {len(decided) - len(shown)} of {len(decided)} comparisons show no difference."
        )
    return said
