"""Charts of `tprocc`: throughput and HOT against users by fillfactor; forecast beside outcome."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pgheadroom.report import reading
from pgheadroom.report.charts import (
    Chart,
    Panel,
    Row,
    alternative,
    group_label,
    intervals_sentence,
    panel_title,
    row,
    stacked,
)
from pgheadroom.report.reading import Measure, Result, Value
from pgheadroom.report.view_common import by_name, has_value, measure_column
from pgheadroom.report.view_tprocc import TABLES


def charts(result: Result) -> list[Chart]:
    """First throughput and processors, as the document draws them; then HOT, then the twin."""
    hot = tuple(f"{table}_hot_frac" for table in TABLES)
    found = [
        _by_level(result, "Throughput and processors", ("nopm", "tpm", "cpu_frac"), "key"),
        _by_level(result, "HOT share of each table", hot, "results", height=110),
        _predicted(result, "HOT share of each table, predicted beside measured", hot),
        _predicted(
            result,
            "Size and WAL, predicted beside measured",
            ("data_bytes", "wal_nonfpi_bytes_per_tx"),
        ),
    ]
    return [chart for chart in found if chart is not None]


def _by_level(
    result: Result,
    title: str,
    names: Sequence[str],
    section: Literal["key", "results"],
    *,
    height: int = 170,
) -> Chart | None:
    """Users across, a line for each fillfactor; fillfactors across where users do not vary."""
    varying = {factor.name: factor for factor in reading.varying(result)}
    across = "users" if "users" in varying or "fillfactor" not in varying else "fillfactor"
    order = None
    if across == "fillfactor":
        order = [reading.label(level) for level in reading.present(result, varying[across])]
    others = [name for name in varying if name != across]
    panels, values = [], list[Value]()
    for measure in _known(result, names):
        rows: list[Row] = []
        for cell in reading.cells(result):
            value = reading.value(cell, measure.name)
            place = cell.get(across)
            made = row(
                reading.number(place) if order is None else reading.label(place),
                value,
                group=group_label(cell, others),
                where=reading.at(cell, [across, *others]),
                column=measure_column(measure),
            )
            if made is not None:
                rows.append(made)
                values.append(value)
        form: Literal["line", "bar"] = "line" if order is None else "bar"
        panels.append(_panel(measure, rows, height=height, x_title=across, order=order, form=form))
    return _chart(f"{title} by {across}", panels, values, section)


def _predicted(result: Result, title: str, names: Sequence[str]) -> Chart | None:
    """Fillfactors across; bars of what was measured beside what the twin said."""
    factor = next((each for each in reading.factors(result) if each.name == "fillfactor"), None)
    predicted = [name for name in names if has_value(result, f"predicted_{name}")]
    known = _known(result, predicted)
    if factor is None or not known:
        return None
    levels = [reading.label(level) for level in reading.present(result, factor)]
    cells = _one_of_each(result)
    panels, values = [], list[Value]()
    for measure in known:
        rows = []
        for cell in cells:
            for group, prefix in (("measured", ""), ("predicted", "predicted_")):
                value = reading.value(cell, f"{prefix}{measure.name}")
                made = row(
                    reading.label(cell.get("fillfactor")),
                    value if group == "measured" else reading.middle(value),
                    group=group,
                    where=f"{reading.at(cell, ['fillfactor', 'users'])}, {group}",
                    column=measure_column(measure),
                )
                if made is not None:
                    rows.append(made)
                    values.append(value)
        panels.append(
            _panel(measure, rows, height=110, x_title="fillfactor", order=levels, form="bar")
        )
    return _chart(title, panels, values, "results")


def _one_of_each(result: Result) -> list[Mapping[str, Any]]:
    """The cells of the fewest users: the twin plays one."""
    by_users = [(reading.number(cell.get("users")), cell) for cell in reading.cells(result)]
    fewest = min((users for users, _ in by_users if users is not None), default=None)
    return [cell for users, cell in by_users if users is not None and users == fewest]


def _known(result: Result, names: Sequence[str]) -> list[Measure]:
    found = by_name(result)
    return [found.get(name, Measure(name=name)) for name in names if has_value(result, name)]


def _panel(
    measure: Measure,
    rows: Sequence[Row],
    *,
    height: int,
    x_title: str,
    order: Sequence[str] | None = None,
    form: Literal["line", "bar"] = "line",
) -> Panel:
    return Panel(
        title=panel_title(measure),
        rows=rows,
        form=form,
        order=order,
        x_title=x_title,
        share=measure_column(measure).style == "share",
        height=height,
    )


def _chart(
    title: str, panels: Sequence[Panel], values: Sequence[Value], section: Literal["key", "results"]
) -> Chart | None:
    if not panels:
        return None
    caption = f"{intervals_sentence(values, 'measured')} Every axis of values begins at 0."
    return Chart(title, caption, stacked(panels), alternative(title, panels), section)
