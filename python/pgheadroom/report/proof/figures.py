"""Charts of a proof or a prediction: the twin's curve, the server's points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import altair as alt

from pgheadroom.lab import reading
from pgheadroom.lab.result import CellValue
from pgheadroom.outcome import middle
from pgheadroom.predict import PredictedCell, Prediction
from pgheadroom.report.charts import (
    MOST_GROUPS,
    PALETTE,
    TOLD,
    Canvas,
    Chart,
    ChartRow,
    Panel,
    View,
    alternative,
    axis_format,
    layered,
    row,
    share_format,
)
from pgheadroom.report.proof import time_figures, time_tables, variant_tables
from pgheadroom.report.proof.words import column_of, varied

if TYPE_CHECKING:
    from pgheadroom.prove import Proof
    from pgheadroom.report.proof.words import EitherCell

_CHARTS: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = (
    (
        "Where the new row versions went",
        (
            ("hot_frac", "HOT updates, share of all updates"),
            ("newpage_frac", "updates that went to another page"),
        ),
    ),
    (
        "All WAL per update",
        (
            ("wal_bytes_per_update", "all WAL per update, bytes, full-page images included"),
            ("wal_nonfpi_bytes_per_update", "of it without images, bytes"),
        ),
    ),
    ("Size at the end", (("heap_pages", "heap, pages"), ("index_pages", "indexes, pages"))),
    ("Pages modified", (("pages_modified", "pages named by the window's WAL"),)),
)
_MOST_TICKS = 15
_WHOLE = "all tables"
_SIDES = ("predicted", "measured")


def all_charts(result: Proof | Prediction) -> list[Chart]:
    """The curves, and what is over simulated time."""
    if not isinstance(result, Prediction):
        return charts(result)
    if time_tables.is_change(result.cells):
        return time_figures.charts(result, section="key")
    curves = charts(result)
    return curves + time_figures.charts(result, section="time" if curves else "key")


def charts(result: Proof | Prediction) -> list[Chart]:
    """HOT share, WAL, size and modified pages against fillfactor; none for a single cell."""
    cells = result.cells
    places = varied(cells)
    if len(cells) < 2 or not all(isinstance(place, int) for place in places):
        return []
    if len(set(places)) < 2:
        return []
    found = [_chart(title, keys, cells, places) for title, keys in _CHARTS]
    return [
        Chart(item.title, item.caption, item.spec, item.alt, "results" if n else "key")
        for n, item in enumerate(chart for chart in found if chart is not None)
    ]


def _names(cells: Sequence[EitherCell]) -> list[str]:
    """All tables together; and each that has updates, or each variant, when there are several."""
    if variant_tables.has_variants(cells):
        return list(dict.fromkeys(variant_tables.label(cell) for cell in cells))
    updated = [
        name
        for name in cells[0].predicted.by_table
        if any(middle(cell.predicted.by_table[name].n_tup_upd) for cell in cells)
    ]
    return [_WHOLE, *updated][:MOST_GROUPS] if len(updated) > 1 else [_WHOLE]


def _chart(
    title: str,
    keys: Sequence[tuple[str, str]],
    cells: Sequence[EitherCell],
    places: Sequence[CellValue],
) -> Chart | None:
    names = _names(cells)
    proof = not isinstance(cells[0], PredictedCell)
    canvas, views, panels = Canvas(), [], []
    for key, heading in keys:
        rows = [item for name in names for item in _rows(cells, places, name, key)]
        if not any(item["mid"] for item in rows):
            continue
        last = key == keys[-1][0]
        views.append(_panel(canvas, rows, names, heading, key, titled=last))
        panels.append(Panel(title=heading, rows=rows))
    if not panels:
        return None
    marks = "Line: the twin. Points: the server." if proof else "Predicted by the twin."
    if any("low" in item for panel in panels for item in panel.rows):
        marks += " Band: the twin's 90 % interval."
    if variant_tables.has_variants(cells):
        marks += f" {_WHOLE.capitalize()} together, as they are and in the variant."
    elif len(names) > 1:
        marks += f" {_WHOLE.capitalize()} together, and each that has updates."
    return Chart(title, marks, canvas.finish(views, spacing=16), alternative(title, panels))


def _rows(
    cells: Sequence[EitherCell], places: Sequence[CellValue], name: str, key: str
) -> list[ChartRow]:
    found = []
    variants = variant_tables.has_variants(cells)
    for place, cell in zip(places, cells, strict=True):
        if variants and variant_tables.label(cell) != name:
            continue
        sides = {"predicted": cell.predicted}
        if not isinstance(cell, PredictedCell):
            sides["measured"] = cell.measured
        for side, whole in sides.items():
            part = whole if name == _WHOLE or variants else whole.by_table[name]
            where = f"fillfactor {place}, {reading.printable(name)}, {side}"
            item = row(
                place,
                part.value(key),
                group=reading.printable(name),
                where=where,
                column=column_of(key),
            )
            if item is not None:
                found.append(item | {"side": side})
    return found


def _panel(
    canvas: Canvas,
    rows: Sequence[ChartRow],
    names: Sequence[str],
    heading: str,
    key: str,
    *,
    titled: bool,
) -> View:
    """A band, a line and points; colours tell the sides apart, or the tables when several."""
    sides = len(names) == 1
    field = "side" if sides else "group"
    groups = [side for side in _SIDES if any(item["side"] == side for item in rows)]
    groups = groups if sides else [reading.printable(name) for name in names]
    scale = alt.Scale(domain=groups, range=list(PALETTE[: len(groups)]))
    legend = alt.Legend(title=None, symbolOpacity=1) if len(groups) > 1 else None
    colour = alt.Color(f"{field}:N", scale=scale, legend=legend)
    share = key.endswith("_frac")
    largest = max(float(item["high"] if "high" in item else item["mid"]) for item in rows)
    whole = key == "hot_frac"
    vertical = alt.Scale(domain=[0, 1]) if whole else alt.Scale(zero=True, nice=True)
    form = share_format(1 if whole else largest) if share else axis_format(largest)
    axis = alt.Axis(title=None, format=form, tickCount=5)
    places = sorted({item["x"] for item in rows})
    ticks = {"values": places} if len(places) <= _MOST_TICKS else {"tickMinStep": 1}
    across = alt.X(
        "x:Q",
        axis=alt.Axis(
            title="fillfactor, %" if titled else None,
            grid=False,
            format="d",
            labelOverlap=True,
            **ticks,
        ),
        scale=alt.Scale(zero=False, nice=False, padding=16),
    )
    middle = alt.Y("mid:Q", scale=vertical, axis=axis)
    shared: dict[str, Any] = {"x": across, "color": colour}
    predicted = [item for item in rows if item["side"] == "predicted"]
    measured = [item for item in rows if item["side"] == "measured"]
    layers: list[alt.Chart] = []
    spread = [_banded(item) for item in predicted]
    if any(item["low"] != item["high"] for item in spread):
        band = alt.Chart(canvas.data(spread)).mark_area(opacity=0.18)
        low = alt.Y("low:Q", scale=vertical, axis=axis)
        layers.append(band.encode(y=low, y2=alt.Y2("high"), **shared))
    if predicted:
        base = alt.Chart(canvas.data(predicted))
        layers.append(base.mark_line(strokeWidth=1.6).encode(y=middle, **shared))
        layers.append(
            base.mark_point(size=14, filled=True, opacity=1).encode(
                y=middle, description=TOLD, **shared
            )
        )
    if measured:
        points = alt.Chart(canvas.data(measured)).mark_point(size=64, strokeWidth=1.8, opacity=1)
        layers.append(points.encode(y=middle, description=TOLD, **shared))
    return layered(layers, heading, 170)


def _banded(item: ChartRow) -> ChartRow:
    """A row whose band has no height where the value is exact."""
    return {"low": item["mid"], "high": item["mid"], **item}
