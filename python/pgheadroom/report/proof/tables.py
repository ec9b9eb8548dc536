"""
The view of a proof, and of a prediction, which is a proof without a server's side.

The curve over fillfactors stands in one table; every figure of each cell, by table, in others.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pgheadroom.accuracy import Agreement, Figure, told
from pgheadroom.lab import reading
from pgheadroom.lab.result import CellValue
from pgheadroom.outcome import KEYS, Outcome, middle
from pgheadroom.predict import PredictedCell, Prediction
from pgheadroom.report import csv_file
from pgheadroom.report.proof import time_tables, variant_tables
from pgheadroom.report.proof.words import (
    TITLES,
    cell_label,
    column_of,
    error_text,
    labels,
    lines_of,
    varied,
)
from pgheadroom.report.table import Column, Table
from pgheadroom.types import Interval

if TYPE_CHECKING:
    from pgheadroom.prove import Proof, ProofCell
    from pgheadroom.report.proof.words import EitherCell

CURVE = (
    "hot_frac",
    "newpage_frac",
    "heap_pages",
    "index_pages",
    "wal_bytes_per_update",
    "wal_nonfpi_bytes_per_update",
    "pages_modified",
)
"""What a curve over fillfactors is read for."""

_VERDICTS: Mapping[Agreement, str | None] = {
    "exact": "equal",
    "differs": "differs",
    "within": "within",
    "beyond": "beyond",
    "no bound": "none",
    "not compared": None,
}
_LEGEND = (
    "Interval: whether it holds what was measured. Bound: what its middle may miss by, which some "
    "figures of all tables together have; a number has to be equal."
)

_MOST_DIFFERING = 24
"""Rows of differences that a terminal shows."""


def tables(result: Proof | Prediction, *, brief: bool = False) -> list[Table]:
    """
    All tables of the result, in the order in which they are read.

    Args:
        result: What was proved or predicted.
        brief: For a terminal: with several cells only the curve, and the figures that differ.
    """
    cells = result.cells
    found = [_curve(result)] if len(cells) > 1 else []
    if (variants := variant_tables.table(cells, varied(cells))) is not None:
        found.append(variants)
    if (order := variant_tables.order_table(cells, varied(cells))) is not None:
        found.append(order)
    if isinstance(result, Prediction):
        found += time_tables.tables(result.cells, labels(result.cells), brief=brief)
    if not brief or len(cells) == 1:
        found += [replace(_details(cell), folded=len(cells) > 1) for cell in cells]
    elif not isinstance(result, Prediction) and (differing := _differing(result.cells)) is not None:
        found.append(differing)
    if not brief:
        found.append(_assumed(result))
    return [table for table in found if table.rows]


def _sides(cell: EitherCell) -> list[Outcome]:
    """What is predicted and, in a proof, what was measured."""
    return [cell.predicted] if isinstance(cell, PredictedCell) else [cell.predicted, cell.measured]


def _has(cells: Sequence[EitherCell], key: str) -> bool:
    """Whether a figure is worth a column: any cell has it, and not 0 everywhere."""
    return any(middle(side.value(key)) for cell in cells for side in _sides(cell))


def _same(cell: ProofCell, key: str) -> bool:
    """Whether both players have the same exact number."""
    predicted = cell.predicted.value(key)
    return not isinstance(predicted, Interval) and predicted == cell.measured.value(key)


def _curve(result: Proof | Prediction) -> Table:
    cells: Sequence[EitherCell] = result.cells
    places = varied(cells)
    alone = variant_tables.has_variants(cells) and len({str(place) for place in places}) == 1
    lead = Column(key="fillfactor", title="fillfactor", unit="%", lead=True)
    columns = [] if alone else [lead]
    changed = isinstance(result, Prediction) and time_tables.is_change(result.cells)
    rows: list[list[CellValue]] = [[] if alone else [place] for place in places]
    if variant_tables.has_variants(cells):
        columns.append(Column(key="variant", title="variant", style="words", lead=True))
        for row, cell in zip(rows, cells, strict=True):
            row.append(variant_tables.label(cell) or "as it is")
    keys = CURVE if _has(cells, "n_tup_upd") else (*CURVE, "wal_bytes")
    for key in (key for key in keys if _has(cells, key)):
        name = TITLES.get(key, key)
        if isinstance(result, Prediction):
            columns.append(column_of(key))
            for row, cell in zip(rows, cells, strict=True):
                row.append(cell.predicted.value(key))
            continue
        if all(_same(cell, key) for cell in result.cells):
            columns.append(column_of(key, title="both", group=name))
            for row, proven in zip(rows, result.cells, strict=True):
                row.append(proven.measured.value(key))
            continue
        columns.append(column_of(key, title="predicted", group=name))
        columns.append(column_of(key, title="measured", group=name))
        columns.append(Column(key=f"{key} error", title="error", style="text", group=name))
        for row, proven in zip(rows, result.cells, strict=True):
            row.append(proven.predicted.value(key))
            row.append(proven.measured.value(key))
            row.append(error_text(key, proven.error.value(key)))
    over = "Beside the variant" if alone else "Over fillfactors"
    return Table(
        title=f"{over}, all tables together{', altered only' if changed else ''}",
        columns=tuple(columns),
        rows=tuple(map(tuple, rows)),
        note=_kept_note(cells),
    )


def _kept_note(cells: Sequence[EitherCell]) -> str | None:
    """The fillfactors that stay the same in every cell."""
    found = [cell.fillfactor for cell in cells]
    tables = next((item for item in found if isinstance(item, Mapping)), None)
    if tables is None:
        return None
    kept = [
        f"{reading.printable(name)} {number}"
        for name, number in tables.items()
        if all((i.get(name) if isinstance(i, Mapping) else i) == number for i in found)
    ]
    return f"The same in every cell: fillfactor of {', '.join(kept)}." if kept else None


def _details(cell: EitherCell) -> Table:
    """Every figure of one cell: the whole, then each table."""
    title = f"Every figure at fillfactor {cell_label(cell)}"
    if isinstance(cell, PredictedCell):
        return _predicted_details(cell, title)
    return _figure_table(title, [(None, figure) for figure in told(cell.figures)])


def _figure_columns(last: str = "verdict") -> tuple[Column, ...]:
    return (
        Column(key="table", title="table", style="words", lead=True),
        Column(key="figure", title="figure", style="words", lead=True),
        Column(key="unit", title="unit", style="words"),
        Column(key="predicted", title="predicted", style="text"),
        Column(key="measured", title="measured", style="text"),
        Column(key="error", title="error", style="text"),
        Column(key="holds", title="interval", style="words"),
        Column(key="verdict", title=last, style="words"),
    )


def _figure_table(
    title: str, found: Sequence[tuple[str | None, Figure]], *, most: int | None = None
) -> Table:
    """
    Figures with both sides; unless all are equal, which a 0 says as well, with verdicts too.

    Args:
        title: The table's title.
        found: Each figure with its heading; None: the figure's table.
        most: Rows to show at most.
    """
    intervals = any(figure.holds is not None for _, figure in found)
    verdicts = any(figure.verdict not in ("exact", "not compared") for _, figure in found)
    without = {"holds"} if not intervals else set()
    if not (intervals or verdicts):
        without.add("verdict")
    columns = _figure_columns(last="bound" if intervals else "verdict")
    shown = [place for place, column in enumerate(columns) if column.key not in without]
    rows = [_figure_row(figure, heading) for heading, figure in found]
    notes = [_LEGEND] if intervals else []
    if most is not None and len(rows) > most:
        notes.append(f"{len(rows) - most} more; --format json has all.")
    return Table(
        title=title,
        columns=tuple(columns[place] for place in shown),
        rows=tuple(tuple(row[place] for place in shown) for row in rows[:most]),
        note=" ".join(notes) or None,
        headed=True,
    )


def _figure_row(figure: Figure, heading: str | None) -> tuple[CellValue, ...]:
    column = column_of(figure.key)
    return (
        heading or figure.table or "all tables",
        figure.key,
        column.unit,
        str(column.write(figure.predicted)),
        str(column.write(figure.measured)),
        error_text(figure.key, figure.error),
        None if figure.holds is None else "holds" if figure.holds else "misses",
        _VERDICTS[figure.verdict],
    )


def _predicted_details(cell: PredictedCell, title: str) -> Table:
    parts = {"all tables": cell.predicted}
    if len(cell.predicted.by_table) > 1:
        parts |= cell.predicted.by_table
    rows = []
    for name, part in parts.items():
        for key in KEYS:
            column = column_of(key)
            rows.append((name, key, column.unit, str(column.write(part.value(key)))))
    columns = _figure_columns()[:4]
    return Table(title=title, columns=columns, rows=tuple(rows), headed=True)


def _differing(cells: Sequence[ProofCell]) -> Table | None:
    found: list[tuple[str | None, Figure]] = [
        (
            f"fillfactor {label}{variant_tables.suffix(cell)}, {figure.table or 'all tables'}",
            figure,
        )
        for label, cell in zip(varied(cells), cells, strict=True)
        for figure in told(cell.figures)
        if figure.missed
    ]
    return _figure_table("What differs", found, most=_MOST_DIFFERING) if found else None


def _assumed(result: Proof | Prediction) -> Table:
    rows = []
    for name, found in result.assumed.items():
        said = "; ".join(reading.label(line) for line in lines_of(found))
        rows.append((reading.printable(name), said))
    columns = (
        Column(key="name", title="what", style="words", lead=True),
        Column(key="value", title="taken as", style="words"),
    )
    return Table(title="Assumed", columns=columns, rows=tuple(rows), section="assumed")


def as_csv(result: Proof | Prediction) -> str:
    """One row a figure: cell, table (empty for all together), both sides, the error."""
    rows = []
    ends = ("predicted_low", "predicted_high", "predicted_level")
    measured = () if isinstance(result, Prediction) else ("measured", "error")
    variants = variant_tables.has_variants(result.cells)
    leads = ("fillfactor", "variant") if variants else ("fillfactor",)
    for cell in result.cells:
        fillfactor = cell.fillfactor
        label = json.dumps(fillfactor) if isinstance(fillfactor, Mapping) else fillfactor
        further = () if isinstance(cell, PredictedCell) else (cell.measured, cell.error)
        for name, part in cell.predicted.parts():
            others = [side if name is None else side.by_table[name] for side in further]
            for key in KEYS:
                found = part.value(key)
                spread: tuple[CellValue, ...] = ("", "", "")
                if isinstance(found, Interval):
                    spread, found = (found.low, found.high, found.level), found.mid
                variant = [str(cell.variant)] if variants else []
                row = [label, *variant, name or "", key, found, *spread]
                rows.append([*row, *(side.value(key) for side in others)])
    return csv_file.written((*leads, "table", "figure", "predicted", *ends, *measured), rows)
