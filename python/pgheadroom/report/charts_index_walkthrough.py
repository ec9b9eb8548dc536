"""Charts of `index-walkthrough`: the blocks of each step, by index."""

from __future__ import annotations

from pgheadroom.report import charts_generic, reading
from pgheadroom.report.charts import Chart
from pgheadroom.report.reading import Measure, Result
from pgheadroom.report.view_common import by_name, has_value


def charts(result: Result) -> list[Chart]:
    """Blocks by step, one colour an index; measured only, since predicted are the same points."""
    across = next((item for item in reading.factors(result) if item.name == "step"), None)
    if across is None or not has_value(result, "buffers"):
        return []
    cells = [cell for cell in reading.cells(result) if cell.get("buffers") is not None]
    measure = by_name(result).get("buffers", Measure(name="buffers"))
    chart = charts_generic.against(
        result, across, [measure], title="Blocks that each step touches", cells=cells,
        section_key=True,
    )  # fmt: skip
    return [] if chart is None else [chart]
