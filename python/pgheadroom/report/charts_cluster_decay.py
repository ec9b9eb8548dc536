"""Charts of `cluster-decay`: the order by round, and its cost beside the document's two runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pgheadroom.report import charts_generic, reading
from pgheadroom.report.charts import (
    Chart,
    Panel,
    Row,
    alternative,
    group_label,
    legend_title,
    row,
    stacked,
)
from pgheadroom.report.reading import Measure, Result
from pgheadroom.report.table import Column
from pgheadroom.report.view_cluster_decay import STEPS
from pgheadroom.report.view_common import by_name, has_value

_BASE_ROUND = 2
"""The document's first range SELECT is a start-up transient: its second is the first that counts"""

_RATIO = Column("ratio", "ratio", style="ratio")


def charts(result: Result) -> list[Chart]:
    """Pages and correlation first, then the document's figures beside ours, then the steps."""
    known = by_name(result)
    across = next((item for item in reading.factors(result) if item.name == "round"), None)
    if across is None:
        return []

    def shown(names: Sequence[str]) -> list[Measure]:
        return [known.get(name, Measure(name=name)) for name in names if has_value(result, name)]

    found = [
        charts_generic.against(
            result,
            across,
            shown(
                (
                    "pages_per_range",
                    "predicted_pages_per_range",
                    "clustered_pages_per_range",
                    "buffers_per_range",
                    "correlation",
                )
            ),
            title="How the order decays",
            section_key=True,
        ),
        _beside_document(result),
        charts_generic.against(result, across, shown(("range_ms", *STEPS)), title="Times by round"),
        charts_generic.against(
            result,
            across,
            shown(("insert_wal_bytes", "wal_bytes", "heap_pages")),
            title="WAL and size by round",
        ),
    ]
    return [chart for chart in found if chart is not None]


def _beside_document(result: Result) -> Chart | None:
    """Growth of the range SELECT since round 2: ours in time and pages, the document's in time."""
    names = [factor.name for factor in reading.varying(result) if factor.name != "round"]
    ours_ms, ours_pages = _own(result, names, "range_ms"), _own(result, names, "pages_per_range")
    theirs = _document(result)
    if not ours_ms or not theirs:
        return None
    panels = [
        Panel(title=heading, rows=rows, form="line", x_title="round", level=1.0)
        for heading, rows in (
            ("Range SELECT time over that of round 2", [*ours_ms, *theirs]),
            ("Pages of a range over those of round 2", ours_pages),
        )
    ]
    title = "Beside the document's two runs"
    caption = (
        "Each line is divided by its own value after round 2, since the document's first range "
        "SELECT is a start-up transient; its machine of 2007 and ours compare in shape only. "
        "Every axis of values begins at 0."
    )
    spec = stacked([panel for panel in panels if panel.rows], legend=legend_title(names))
    return Chart(title, caption, spec, alternative(title, panels))


def _own(result: Result, names: Sequence[str], measure: str) -> list[Row]:
    """Our lines, each divided by its value at the base round."""
    groups: dict[str, dict[float, float]] = {}
    for cell in reading.cells(result):
        number = reading.number(cell.get("round"))
        value = reading.number(cell.get(measure))
        if number is not None and value is not None:
            groups.setdefault(group_label(cell, names) or "ours", {})[number] = float(value)
    return [found for group, values in groups.items() for found in _relative(values, group)]


def _document(result: Result) -> list[Row]:
    found: list[Row] = []
    for reference in reading.mappings(result.get("references")):
        columns = reading.texts(reference.get("columns"))
        if "round" not in columns or "range SELECT ms" not in columns:
            continue
        place = columns.index("range SELECT ms")
        values = {
            float(number): float(value)
            for item in reference.get("rows") or ()
            if (number := reading.number(item[columns.index("round")])) is not None
            and (value := reading.number(item[place])) is not None
        }
        patched = "patch" in (reading.text(reference.get("title")) or "")
        found += _relative(values, "document, patch" if patched else "document, as it was")
    return found


def _relative(values: Mapping[float, float], group: str) -> list[Row]:
    base = values.get(_BASE_ROUND)
    if not base:
        return []
    made: list[Any] = [
        row(number, value / base, group=group, where=f"{group}, round {number:g}", column=_RATIO)
        for number, value in sorted(values.items())
        if number >= _BASE_ROUND
    ]
    return [item for item in made if item is not None]
