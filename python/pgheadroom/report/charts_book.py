"""
Charts of the experiments that a book's chapters ask for: each its measure, its factor, its cells.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pgheadroom.report import charts_generic, reading
from pgheadroom.report.charts import Chart
from pgheadroom.report.reading import Measure, Result
from pgheadroom.report.view_common import by_name, has_value


@dataclass(frozen=True, slots=True, kw_only=True)
class _Figure:
    """
    Measures against a factor, of those cells that have these levels.

    With `evenly` the factor's numbers stand at equal distances, as words do: for levels that grow
    tenfold.
    """

    title: str
    across: str
    measures: Sequence[str]
    only: Mapping[str, str] = field(default_factory=dict)
    evenly: bool = False
    logarithmic: Sequence[str] = ()


_FIGURES: Mapping[str, Sequence[_Figure]] = {
    "commit-cost": (
        _Figure(
            title="Commits a second, and how many share a sync",
            across="clients",
            measures=("tps", "latency_ms_p50", "wal_syncs_per_commit"),
            evenly=True,
            logarithmic=("tps", "latency_ms_p50"),
        ),
    ),
    "read-writes": (
        _Figure(
            title="What the first read writes",
            across="method",
            measures=("wal_bytes", "pages_dirtied"),
            only={"step": "first-read"},
        ),
    ),
    "insert-rate": (
        _Figure(
            title="Rows per statement",
            across="rows",
            measures=("rows_per_s", "wal_bytes_per_row", "latency_ms_p50"),
            evenly=True,
            logarithmic=("rows_per_s",),
        ),
    ),
    "load-methods": (
        _Figure(
            title="What each load costs",
            across="method",
            measures=("wal_bytes_per_row", "step_ms", "index_pages"),
            only={"step": "load"},
            logarithmic=("step_ms",),
        ),
        _Figure(
            title="What it leaves to the first VACUUM",
            across="method",
            measures=("wal_bytes_per_row", "heap_pages"),
            only={"step": "vacuum"},
        ),
    ),
}


def charts(result: Result) -> list[Chart]:
    """The experiment's figures, the one that answers its question first."""
    figures = _FIGURES.get(str(result.get("name")), ())
    found: list[Chart] = []
    for figure in figures:
        chart = _drawn(result, figure, is_key=not found)
        if chart is not None:
            found.append(chart)
    return found


def _drawn(result: Result, figure: _Figure, *, is_key: bool) -> Chart | None:
    across = next((item for item in reading.factors(result) if item.name == figure.across), None)
    shown = [
        by_name(result).get(name, Measure(name=name))
        for name in figure.measures
        if has_value(result, name)
    ]
    cells = [
        cell
        for cell in reading.cells(result)
        if all(cell.get(name) == wanted for name, wanted in figure.only.items())
    ]
    if across is None or not shown or not cells:
        return None
    if figure.evenly:
        across = replace(across, levels=tuple(reading.label(item) for item in across.levels))
    return charts_generic.against(
        result,
        across,
        shown,
        title=figure.title,
        cells=cells,
        section_key=is_key,
        logarithmic=figure.logarithmic,
    )
