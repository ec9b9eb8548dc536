"""The chart of many proofs: every figure as a point, predicted against measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import altair as alt

from pgheadroom.lab.reading import printable
from pgheadroom.outcome import middle
from pgheadroom.report.charts import MOST_GROUPS, PALETTE, SHAPES, Canvas, Chart, ChartRow, layered
from pgheadroom.report.proof.words import error_text

if TYPE_CHECKING:
    from pgheadroom.prove import Proof

_KEYS = (
    ("heap_pages", "heap pages"),
    ("index_pages", "index pages"),
    ("n_tup_hot_upd", "HOT updates"),
    ("wal_records", "WAL records"),
    ("wal_bytes", "WAL bytes"),
    ("wal_fpi", "images"),
    ("pages_modified", "pages modified"),
)


def scatter(proofs: Mapping[str, Proof]) -> Chart:
    """
    Predicted against measured on logarithmic axes, all tables of each cell together.

    Args:
        proofs: Proofs by what a reader calls them.
    """
    rows = [row for name, proof in proofs.items() for row in _rows(name, proof)]
    canvas = Canvas()
    spec = canvas.finish([_view(canvas, rows)])
    title = "Predicted against measured"
    said = f"{title}: {len(rows)} figures of {len(proofs)} proofs; on the line they are equal."
    return Chart(title, said, spec, said)


def _rows(name: str, proof: Proof) -> list[ChartRow]:
    """The figures of a proof above 0, which a logarithm needs."""
    titles = dict(_KEYS)
    found = []
    for cell in proof.cells:
        for figure in cell.figures:
            predicted, measured = middle(figure.predicted), middle(figure.measured)
            if figure.table is None and figure.key in titles and predicted and measured:
                where = f"{printable(name)}, {titles[figure.key]}"
                found.append(
                    {
                        "x": measured,
                        "mid": predicted,
                        "group": titles[figure.key],
                        "where": where,
                        "said": error_text(figure.key, figure.error),
                    }
                )
    return found


def _view(canvas: Canvas, rows: Sequence[ChartRow]) -> dict[str, Any]:
    groups = [title for _, title in _KEYS][:MOST_GROUPS]
    values = [float(row[side]) for row in rows for side in ("x", "mid")] or [1.0]
    ends = [{"x": end, "mid": end} for end in (min(values), max(values))]
    scale = alt.Scale(type="log")

    def axis(title: str) -> alt.Axis:
        return alt.Axis(title=title, format="~s", tickCount=6)

    across = alt.X("x:Q", scale=scale, axis=axis("measured"))
    upwards = alt.Y("mid:Q", scale=scale, axis=axis("predicted"))
    line = alt.Chart(canvas.data(ends)).mark_line(color="var(--muted)", strokeWidth=1)
    points = alt.Chart(canvas.data(rows)).mark_point(size=46, strokeWidth=1.4, opacity=1)
    legend = alt.Legend(title=None)
    encoded = points.encode(
        x=across,
        y=upwards,
        color=alt.Color(
            "group:N",
            scale=alt.Scale(domain=groups, range=list(PALETTE[: len(groups)])),
            legend=legend,
        ),
        shape=alt.Shape(
            "group:N",
            scale=alt.Scale(domain=groups, range=list(SHAPES[: len(groups)])),
            legend=legend,
        ),
    )
    return layered([line.encode(x=across, y=upwards), encoded], "On the line both are equal", 420)
