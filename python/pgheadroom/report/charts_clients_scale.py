"""Charts of `clients-scale`: throughput against data over shared_buffers, and against clients."""

from __future__ import annotations

from collections.abc import Sequence

from pgheadroom.report import charts_generic, reading
from pgheadroom.report.charts import Chart
from pgheadroom.report.reading import Factor, Measure, Result
from pgheadroom.report.view_common import by_name, has_value


def charts(result: Result) -> list[Chart]:
    """First the knee: data over shared_buffers across, one line for each number of clients."""
    known = {factor.name: factor for factor in reading.factors(result)}
    if "clients" not in known:
        return []
    found = []
    if has_value(result, "data_frac"):
        levels = tuple(
            dict.fromkeys(
                value
                for cell in reading.cells(result)
                if (value := reading.number(cell.get("data_frac"))) is not None
            )
        )
        # Data over shared_buffers stands for the scale, so the scale is no colour beside it.
        clients = [
            item for item in reading.mappings(result.get("factors")) if item["name"] == "clients"
        ]
        found.append(
            charts_generic.against(
                {**result, "factors": clients},
                Factor(name="data over shared_buffers", levels=levels),
                _shown(result, ("tps", "buffer_hit_frac")),
                title="The knees: where data exceed shared_buffers, and memory",
                section_key=True,
                cells=[
                    {**cell, "data over shared_buffers": cell.get("data_frac")}
                    for cell in reading.cells(result)
                ],
                marks=_knees(result, max(levels)),
            )
        )
    found.append(
        charts_generic.against(
            result,
            known["clients"],
            _shown(result, ("tps", "latency_ms_p50", "latency_ms_p99")),
            title="Throughput and latency by clients",
            section_key=not found,
        )
    )
    return [chart for chart in found if chart is not None]


def _knees(result: Result, largest: float) -> list[tuple[float, str]]:
    """Where data are as large as a cache, on the axis of data over shared_buffers."""
    found = [(1.0, "shared_buffers")]
    for cell in reading.cells(result):
        data, memory = (reading.number(cell.get(name)) for name in ("data_frac", "memory_frac"))
        if data and memory:
            found.append((data / memory, "memory"))
            break
    # One far beyond the grid would press the curve together; a finding names it.
    return [(at, name) for at, name in found if at <= largest]


def _shown(result: Result, names: Sequence[str]) -> list[Measure]:
    known = by_name(result)
    return [known.get(name, Measure(name=name)) for name in names if has_value(result, name)]
