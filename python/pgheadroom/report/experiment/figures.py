"""
The figures of an experiment's result, by the forms that its presentation declares.

The only module of the tables and figures that imports the chart library.
"""

from __future__ import annotations

from collections.abc import Sequence

from pgheadroom.lab import presentation as forms
from pgheadroom.lab.presentation import FigureForm, Presentation
from pgheadroom.lab.reading import Result
from pgheadroom.lab.record import SecondsSeries
from pgheadroom.report.charts import Chart
from pgheadroom.report.experiment import against, bars, courses, levels, paired, series


def charts(
    result: Result, declared: Presentation, over_time: Sequence[SecondsSeries]
) -> list[Chart]:
    """The declared figures that can be drawn, then those over time."""
    found: list[Chart] = []
    has_key = False
    for form in declared.figures:
        is_key = form.key and not has_key
        drawn = _drawn(result, form, is_key=is_key)
        has_key = has_key or (is_key and bool(drawn))
        found += drawn
    return found + series.charts(result, over_time, declared.series_by)


def _drawn(result: Result, form: FigureForm, *, is_key: bool) -> list[Chart]:
    chart: Chart | None
    match form:
        case forms.Overview():
            return against.overview(result, is_key=is_key)
        case forms.Against():
            chart = against.drawn(result, form, is_key=is_key)
        case forms.Course():
            chart = courses.course(result, form, is_key=is_key)
        case forms.ByEither():
            chart = courses.by_either(result, form, is_key=is_key)
        case forms.Curves():
            chart = courses.curves(form, is_key=is_key)
        case forms.Ratios():
            chart = levels.ratios(result, form, is_key=is_key)
        case forms.Levels():
            chart = levels.levels(result, form, is_key=is_key)
        case forms.Percentiles():
            chart = levels.percentiles(result, form, is_key=is_key)
        case forms.PairedPoints():
            chart = paired.drawn_points(result, form)
        case forms.PairedBars():
            chart = paired.drawn_bars(result, form)
        case forms.CellBars():
            chart = bars.drawn(result, form, is_key=is_key)
    return [] if chart is None else [chart]
