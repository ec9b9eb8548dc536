"""
What an answer may say: comparisons with their verdicts, and figures with their intervals.

First module of the answers. A verdict is believed only as far as its own numbers bear it out:
fewer than `PAIRS_MIN` pairs, an A/A control that excludes 1, or an interval that contradicts the
verdict make it undecided here, whatever the file says.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pgheadroom.lab import ratio_words, reading
from pgheadroom.lab.measure_titles import title
from pgheadroom.lab.reading import Result
from pgheadroom.lab.result import ComparedCells
from pgheadroom.stats import PAIRS_MIN, ComparisonVerdict
from pgheadroom.types import Interval

SaidCell = Mapping[str, Any]
"""A cell of a result, of which a sentence takes what it knows to be numbers."""

_COUNTS_DIGITS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One comparison of a result: measure, both cells, ratio, and the verdict that it allows."""

    measure: str
    cell: SaidCell
    against: SaidCell
    ratio: Interval | None
    verdict: ComparisonVerdict
    reason: str

    @property
    def changed(self) -> tuple[str, ...]:
        """The factors in which the two cells differ."""
        return tuple(
            name for name in self.cell if self.cell[name] != self.against.get(name, self.cell[name])
        )

    @property
    def distance(self) -> float:
        """How far the nearer end of the interval lies from 1, on the logarithmic scale."""
        if self.ratio is None or self.verdict not in (
            ComparisonVerdict.HIGHER,
            ComparisonVerdict.LOWER,
        ):
            return 0.0
        end = self.ratio.low if self.verdict is ComparisonVerdict.HIGHER else self.ratio.high
        return abs(math.log(end)) if end > 0 else math.inf

    def differs_at(self, result: Result) -> str:
        """What else says which comparison it is: the factors that vary but not between the two."""
        names = [factor.name for factor in reading.varying(result)]
        return reading.at(self.cell, [name for name in names if name not in self.changed])


def comparisons(result: Result, measure: str | None = None) -> list[Compared]:
    """The comparisons of a result, those of one measure if it is named, in the file's order."""
    found = []
    for item in result.comparisons:
        if measure not in (None, item.measure):
            continue
        verdict, reason = _verdict(item, result)
        found.append(
            Compared(
                measure=item.measure,
                cell=item.cell,
                against=item.against,
                ratio=item.ratio,
                verdict=verdict,
                reason=reason,
            )
        )
    return found


def _verdict(item: ComparedCells, result: Result) -> tuple[ComparisonVerdict, str]:
    """The verdict that a comparison's own numbers allow, and why it is undecided if it is."""
    pairs, stated, ratio = item.pairs or 0, item.verdict, item.ratio
    if pairs < PAIRS_MIN:
        return ComparisonVerdict.UNDECIDED, too_few(pairs, "interleaved pair")
    control = _control(item, result)
    if control is not None and control.excludes(1):
        return ComparisonVerdict.UNDECIDED, (
            f"the A/A control shows {control.low:.3f} to {control.high:.3f} where 1 is the truth"
        )
    if stated == ComparisonVerdict.EQUAL:
        return ComparisonVerdict.EQUAL, f"equal in all {pairs} pairs"
    if ratio is not None and stated == ComparisonVerdict.HIGHER and ratio.low > 1:
        return ComparisonVerdict.HIGHER, ""
    if ratio is not None and stated == ComparisonVerdict.LOWER and ratio.high < 1:
        return ComparisonVerdict.LOWER, ""
    if ratio is not None and stated == ComparisonVerdict.NOT_SHOWN:
        return ComparisonVerdict.NOT_SHOWN, ""
    if stated in (ComparisonVerdict.HIGHER, ComparisonVerdict.LOWER, ComparisonVerdict.NOT_SHOWN):
        return ComparisonVerdict.UNDECIDED, "its interval does not bear its verdict out"
    return ComparisonVerdict.UNDECIDED, (
        reading.text(item.reason) or "the result states no verdict"
    )


def _control(item: ComparedCells, result: Result) -> Interval | None:
    """The A/A control of a comparison: the same measure in the cell that it is compared with."""
    for control in result.controls:
        if control.measure == item.measure and control.cell == item.against:
            return control.ratio
    return None


def too_few(count: int, what: str) -> str:
    """Why so few give no verdict: `"4 interleaved pairs; a verdict needs at least 5"`."""
    return f"{count} {what}{'' if count == 1 else 's'}; a verdict needs at least {PAIRS_MIN}"


def few_repetitions(cells: Sequence[SaidCell]) -> str | None:
    """Why figures of these cells give no verdict; None when each has repetitions enough."""
    counts = [reading.number(cell.get("repetitions")) for cell in cells]
    known = [int(count) for count in counts if count is not None]
    if not known or len(known) < len(counts):
        return f"repetitions are not stated; a verdict needs at least {PAIRS_MIN}"
    return too_few(min(known), "repetition") if min(known) < PAIRS_MIN else None


def cell_of(result: Result, wanted: SaidCell) -> SaidCell | None:
    """The cell of a result that has these levels, which may hold more than its factors."""
    for cell in reading.cells(result):
        if all(name in cell and cell[name] == level for name, level in wanted.items()):
            return cell
    return None


def tally(items: Sequence[Compared]) -> str:
    """How many comparisons came out how: `"4 are lower, 1 is higher, 2 are undecided"`."""
    words = {
        ComparisonVerdict.LOWER: "lower",
        ComparisonVerdict.HIGHER: "higher",
        ComparisonVerdict.EQUAL: "equal",
        ComparisonVerdict.NOT_SHOWN: "not shown to differ",
        ComparisonVerdict.UNDECIDED: "undecided",
    }
    counts = {verdict: sum(item.verdict is verdict for item in items) for verdict in words}
    return ", ".join(
        f"{count} {'is' if count == 1 else 'are'} {words[verdict]}"
        for verdict, count in counts.items()
        if count
    )


def named(result: Result, item: Compared) -> str:
    """A comparison without its outcome: `"tps at clients 4 against clients 1 (scale 2)"`."""
    sides = [reading.at(cell, item.changed) for cell in (item.cell, item.against)]
    between = f" at {sides[0]} against {sides[1]}" if all(sides) else ""
    where = item.differs_at(result)
    return f"{title(item.measure)}{between}{f' ({where})' if where else ''}"


class Sentence:
    """Writes the figures of one sentence, and says at its end what their intervals cover."""

    def __init__(self) -> None:
        self._levels: list[float] = []

    def ratio(self, ratio: Interval, *, of_share: bool = False) -> str:
        """How much higher or lower: `"7.0 % lower [4.0, 9.9]"`."""
        self._levels.append(ratio.level)
        return ratio_words.changed(ratio, of_share=of_share)

    def range(self, ratio: Interval) -> str:
        """The ends of a ratio alone: `"[-12 %, +4 %]"`."""
        self._levels.append(ratio.level)
        return ratio_words.ends(ratio)

    def compared(self, item: Compared) -> str:
        """A comparison after "is": times, equal, not shown to differ, or undecided and why."""
        if (
            item.verdict in (ComparisonVerdict.HIGHER, ComparisonVerdict.LOWER)
            and item.ratio is not None
        ):
            return self.ratio(item.ratio, of_share=item.measure.endswith("_frac"))
        if item.verdict is ComparisonVerdict.NOT_SHOWN and item.ratio is not None:
            return f"not shown to differ {self.range(item.ratio)}"
        return (
            item.reason if item.verdict is ComparisonVerdict.EQUAL else f"undecided ({item.reason})"
        )

    def figure(self, cell: SaidCell, measure: str) -> str | None:
        """A cell's measure with its interval; None when the cell has no number there."""
        value = reading.value(cell, measure)
        scale = 100 if measure.endswith("_frac") else 1
        if isinstance(value, Interval) and value.low < value.high:
            self._levels.append(value.level)
            parts = [part * scale for part in (value.mid, value.low, value.high)]
            mid, low, high = (f"{part:,.{_decimals(parts)}f}" for part in parts)
            ends = "" if mid == low == high else f" [{low}, {high}]"
            return f"{mid}{ends}{' %' if scale == 100 else ''}"
        found = reading.middle(value)
        if found is None:
            return None
        shown = f"{found * scale:,.{_decimals([found * scale])}f}"
        return f"{shown} %" if scale == 100 else shown

    def ended(self, text: str) -> str:
        """The sentence with its first letter large, the intervals' coverage, and a full stop."""
        shown = list(dict.fromkeys(f"{level * 100:.3g}" for level in sorted(self._levels)))
        covered = ""
        if shown:
            span = shown[0] if len(shown) == 1 else f"{shown[0]} to {shown[-1]}"
            covered = f" ({span} % interval{'s' if len(self._levels) > 1 else ''})"
        # A measure without a title begins with its name, whose letters stay as they are.
        begun = text if "_" in text.split(" ", maxsplit=1)[0] else f"{text[:1].upper()}{text[1:]}"
        return f"{begun}{covered}."


def undecided(reason: str | None, text: str) -> str:
    """The text behind the reason why it decides nothing, if there is one."""
    return text if reason is None else f"undecided ({reason}); measured: {text}"


def changes(first: SaidCell, last: SaidCell, measure: str) -> bool:
    """
    Whether a measure of two cells may be said to differ: repetitions enough, intervals disjoint.

    Stricter than a test at the intervals' level, since both may be off; a cell's interval is all
    that a result holds of what was not compared in pairs.
    """
    one, other = (reading.value(cell, measure) for cell in (first, last))
    if not isinstance(one, Interval) or not isinstance(other, Interval):
        return False
    return few_repetitions([first, last]) is None and (one.high < other.low or other.high < one.low)


def _decimals(parts: Sequence[float]) -> int:
    """Decimals so that about four digits count; fewer where the rest would be zeros."""
    largest = abs(parts[0]) or max(map(abs, parts))
    if largest == 0 or not math.isfinite(largest):
        return 0
    most = min(6, max(0, _COUNTS_DIGITS - 1 - math.floor(math.log10(largest))))
    rounded = [round(part, most) for part in parts]
    return next(d for d in range(most + 1) if [round(part, d) for part in rounded] == rounded)
