"""Rows of the table: what was measured, beside the bound that it is to keep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pgheadroom.stats import median_interval

MIN_PAIRS = 20


@dataclass(frozen=True, kw_only=True)
class Row:
    """A figure with its bound; `low` and `high` are the interval's ends, of a count the same."""

    workload: str
    figure: str
    bound: float | None
    mid: float
    low: float
    high: float
    pairs: int
    is_end_bound: bool = False

    @property
    def verdict(self) -> str:
        """Whether the bound is kept: by the median, or by the interval's upper end."""
        if self.bound is None:
            return ""
        held = (self.high if self.is_end_bound else self.mid) <= self.bound
        few = "" if not self.pairs or self.pairs >= MIN_PAIRS else f", of {self.pairs} pairs only"
        return ("yes" if held else "no") + few


def ratio(
    workload: str,
    figure: str,
    bound: float | None,
    times: Sequence[float],
    heap: Sequence[float],
    *,
    is_end_bound: bool = False,
) -> Row:
    """The median of paired ratios, with its distribution-free interval of 95 %."""
    found = median_interval([one / other for one, other in zip(times, heap, strict=True)])
    assert found is not None, "one pair says nothing"
    return Row(
        workload=workload,
        figure=figure,
        bound=bound,
        mid=found.mid,
        low=found.low,
        high=found.high,
        pairs=len(times),
        is_end_bound=is_end_bound,
    )


def counted(workload: str, figure: str, bound: float | None, value: float) -> Row:
    """A count, which repeats from run to run."""
    return Row(
        workload=workload, figure=figure, bound=bound, mid=value, low=value, high=value, pairs=0
    )


def table(rows: Sequence[Row]) -> str:
    """As Markdown."""
    lines = [
        "| workload | figure | bound | measured | 95 % interval | pairs | kept |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        bound = "" if row.bound is None else f"{row.bound:g}"
        if row.is_end_bound:
            bound += " (upper end)"
        interval = f"{row.low:.2f} to {row.high:.2f}" if row.pairs else "counted"
        lines.append(
            f"| {row.workload} | {row.figure} | {bound} | {row.mid:.2f} | {interval} | "
            f"{row.pairs or ''} | {row.verdict} |"
        )
    return "\n".join(lines)
