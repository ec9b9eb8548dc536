"""The chart of regrets: how much more than the best each rule's settings cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from pgheadroom.lab.reading import printable
from pgheadroom.report.charts import MOST_GROUPS, PALETTE, Canvas, Chart, ChartRow, layered

_LEAST = 1e-3
"""Regrets below 0.1 % are drawn there: a logarithm needs a least value."""


def regrets(by_rule: Mapping[str, Sequence[float]]) -> Chart:
    """
    Each rule's regrets in rising order, on a logarithmic axis.

    Args:
        by_rule: Regrets of each rule on the same workloads, as shares; at most as many rules as
            the palette has colours.
    """
    rows = [row for rule, found in by_rule.items() for row in _rows(rule, found)]
    canvas = Canvas()
    spec = canvas.finish([_view(canvas, rows, [printable(rule) for rule in by_rule])])
    count = max(map(len, by_rule.values()), default=0)
    title = "Regret of each rule"
    said = f"{title} on {count} workloads, each rule's in rising order; lower is better."
    return Chart(title, said, spec, said)


def _rows(rule: str, found: Sequence[float]) -> list[ChartRow]:
    ordered = sorted(found)
    return [
        {
            "x": 100 * (place + 1) / len(ordered),
            "mid": 100 * max(value, _LEAST),
            "group": printable(rule),
            "said": f"{100 * value:.2f} %",
        }
        for place, value in enumerate(ordered)
    ]


def _view(canvas: Canvas, rows: Sequence[ChartRow], groups: Sequence[str]) -> dict[str, Any]:
    shown = list(groups[:MOST_GROUPS])
    across = alt.X("x:Q", axis=alt.Axis(title="share of the workloads, %", tickCount=6))
    upwards = alt.Y(
        "mid:Q",
        scale=alt.Scale(type="log"),
        axis=alt.Axis(title="regret at most, %", format="~g", tickCount=6),
    )
    line = alt.Chart(canvas.data(rows)).mark_line(interpolate="step-before", strokeWidth=1.6)
    encoded = line.encode(
        x=across,
        y=upwards,
        color=alt.Color(
            "group:N",
            scale=alt.Scale(domain=shown, range=list(PALETTE[: len(shown)])),
            legend=alt.Legend(title=None),
        ),
    )
    return layered([encoded], "Cost over the least measured, 0.1 % and less at the bottom", 320)
