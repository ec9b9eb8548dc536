"""
The view of a proof, and of a prediction, which is a proof without a server's side.

The curve over fillfactors stands in one table; every figure of each cell, by table, in others.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from pgheadroom.accuracy import Figure, Tally, figures
from pgheadroom.forms import read
from pgheadroom.lab import reading
from pgheadroom.outcome import KEYS, Outcome
from pgheadroom.report import csv_file
from pgheadroom.report.proof import answer as prediction_answer
from pgheadroom.report.proof import time_tables, variant_tables
from pgheadroom.report.proof.words import (
    TITLES,
    Cell,
    cell_label,
    column_of,
    error_text,
    labels,
    varied,
)
from pgheadroom.report.table import Column, Table
from pgheadroom.types import Interval

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

_MOST_SENTENCES = 4
_MOST_DIFFERING = 24
"""Rows of differences that a terminal shows."""


def described(result: Mapping[str, Any], *, command: str | None = None) -> dict[str, Any]:
    """The result with what a page needs: a title, what it says, how to repeat it."""
    proof = result["kind"] == "proof"
    return {
        **result,
        "name": result["kind"],
        "title": "The twin beside a real server" if proof else "What the twin predicts",
        "question": (
            "Does the twin do what PostgreSQL does with this profile?"
            if proof
            else time_tables.question(result["cells"])
        ),
        "findings": findings(result),
        "warnings": list(reading.texts(result.get("warnings"))),
        "command": command,
    }


def findings(result: Mapping[str, Any]) -> list[str]:
    """What the result says, in sentences with numbers."""
    cells: Sequence[Cell] = result["cells"]
    said = variant_tables.models(result)
    if result["kind"] == "proof":
        return said + _proven(cells) + variant_tables.sentences(cells)
    over_time = time_tables.findings(cells, labels(cells))
    if time_tables.is_change(cells):  # the curve is that of old pages, which answers nothing
        return said + over_time
    unchanged = [cell for cell in cells if cell.get("variant") in (None, variant_tables.UNCHANGED)]
    answer = prediction_answer.sentence(unchanged, varied(unchanged))
    return said + variant_tables.sentences(cells) + ([answer] if answer else []) + over_time


def _proven(cells: Sequence[Cell]) -> list[str]:
    found = [(cell, figure) for cell in cells for figure in _told(figures_of(cell))]
    tally = Tally.of(figure for _, figure in found)
    where = f" in {len(cells)} cells" if len(cells) > 1 else ""
    said = [
        f"All {tally.equal} figures{where} are equal."
        if tally.equal == tally.compared
        else f"{tally.equal} of {tally.compared} figures{where} are equal."
    ]
    if tally.intervals:
        said.append(
            f"{tally.held} of {tally.intervals} intervals hold what was measured "
            f"({100 * tally.held / tally.intervals:.0f} %; 90 % is what they state)."
        )
    missed: dict[tuple[str | None, str], list[tuple[Cell, Figure]]] = {}
    for cell, figure in found:
        if figure.missed:
            missed.setdefault((figure.table, figure.key), []).append((cell, figure))
    worst = sorted(missed.values(), key=lambda items: -max(map(_size, items)))
    said += [_missed(items, len(cells)) for items in worst[:_MOST_SENTENCES]]
    if len(worst) > _MOST_SENTENCES:
        said.append(f"{len(worst) - _MOST_SENTENCES} further figures differ.")
    return said


def _size(item: tuple[Cell, Figure]) -> float:
    """How large a miss is; without end where there is no error to state."""
    number = reading.middle(item[1].error)
    return math.inf if number is None else abs(number)


def _missed(items: Sequence[tuple[Cell, Figure]], cells: int) -> str:
    """One figure that is beyond its bound, in one or several cells."""
    cell, figure = max(items, key=_size)
    column = column_of(figure.key)
    name = f"{figure.key}{f' of {reading.printable(figure.table)}' if figure.table else ''}"
    where = f" at fillfactor {cell_label(cell)}" if cells > 1 else ""
    often = f" in {len(items)} cells, most{where}" if len(items) > 1 else where
    how = "differs" if figure.verdict == "differs" else "is beyond its bound"
    return (
        f"{name} {how}{often}: predicted {column.write(figure.predicted).main}, "
        f"measured {column.write(figure.measured).main}{_with_error(figure)}."
    )


def _with_error(figure: Figure) -> str:
    return "" if figure.error is None else f" ({error_text(figure.key, figure.error)})"


def tables(result: Mapping[str, Any], *, brief: bool = False) -> list[Table]:
    """
    All tables of the result, in the order in which they are read.

    Args:
        result: Of kind "proof" or "prediction".
        brief: For a terminal: with several cells only the curve, and the figures that differ.
    """
    cells: Sequence[Cell] = result["cells"]
    found = [_curve(result)] if len(cells) > 1 else []
    if (variants := variant_tables.table(cells, varied(cells))) is not None:
        found.append(variants)
    if (order := variant_tables.order_table(cells, varied(cells))) is not None:
        found.append(order)
    found += time_tables.tables(cells, labels(cells), brief=brief)
    if not brief or len(cells) == 1:
        found += [_details(cell) for cell in cells]
    elif result["kind"] == "proof" and (differing := _differing(cells)) is not None:
        found.append(differing)
    if not brief:
        found.append(_assumed(result))
    return [table for table in found if table.rows]


def figures_of(cell: Cell) -> list[Figure]:
    """Every figure of a proof's cell."""
    predicted = read(Outcome, cell["predicted"], exact=True)
    measured = read(Outcome, cell["measured"], exact=True)
    return list(figures(predicted, measured))


def _has(cells: Sequence[Cell], key: str) -> bool:
    """Whether a figure is worth a column: any cell has it, and not 0 everywhere."""
    values = [
        reading.middle(reading.figure(cell.get(side, {}).get(key)))
        for cell in cells
        for side in ("predicted", "measured")
    ]
    return any(values)


def _same(cell: Cell, key: str) -> bool:
    """Whether both players have the same exact number."""
    predicted = reading.figure(cell["predicted"][key])
    return not isinstance(predicted, Interval) and predicted == reading.figure(
        cell["measured"][key]
    )


def _curve(result: Mapping[str, Any]) -> Table:
    cells: Sequence[Cell] = result["cells"]
    proof = result["kind"] == "proof"
    places = varied(cells)
    alone = variant_tables.has_variants(cells) and len({str(place) for place in places}) == 1
    lead = Column(key="fillfactor", title="fillfactor", unit="%", lead=True)
    columns = [] if alone else [lead]
    changed = time_tables.is_change(cells)
    rows: list[list[object]] = [[] if alone else [place] for place in places]
    if variant_tables.has_variants(cells):
        columns.append(
            Column(key="variant", title="variant", align="left", style="text", lead=True)
        )
        for row, cell in zip(rows, cells, strict=True):
            row.append(variant_tables.label(cell))
    keys = CURVE if _has(cells, "n_tup_upd") else (*CURVE, "wal_bytes")
    for key in (key for key in keys if _has(cells, key)):
        name = TITLES.get(key, key)
        if not proof:
            columns.append(column_of(key))
            for row, cell in zip(rows, cells, strict=True):
                row.append(reading.figure(cell["predicted"][key]))
            continue
        if all(_same(cell, key) for cell in cells):
            columns.append(column_of(key, title="both", group=name))
            for row, cell in zip(rows, cells, strict=True):
                row.append(reading.figure(cell["measured"][key]))
            continue
        columns.append(column_of(key, title="predicted", group=name))
        columns.append(column_of(key, title="measured", group=name))
        columns.append(Column(key=f"{key} error", title="error", style="text", group=name))
        for row, cell in zip(rows, cells, strict=True):
            row.append(reading.figure(cell["predicted"][key]))
            row.append(reading.figure(cell["measured"][key]))
            row.append(error_text(key, reading.figure(cell["error"][key])))
    over = "Beside the variant" if alone else "Over fillfactors"
    return Table(
        title=f"{over}, all tables together{', altered only' if changed else ''}",
        columns=tuple(columns),
        rows=tuple(map(tuple, rows)),
        note=_kept_note(cells),
    )


def _kept_note(cells: Sequence[Cell]) -> str | None:
    """The fillfactors that stay the same in every cell."""
    found = [cell["fillfactor"] for cell in cells]
    tables = next((item for item in found if isinstance(item, Mapping)), None)
    if tables is None:
        return None
    kept = [
        f"{reading.printable(name)} {number}"
        for name, number in tables.items()
        if all((i.get(name) if isinstance(i, Mapping) else i) == number for i in found)
    ]
    return f"The same in every cell: fillfactor of {', '.join(kept)}." if kept else None


def _details(cell: Cell) -> Table:
    """Every figure of one cell: the whole, then each table."""
    title = f"Every figure at fillfactor {cell_label(cell)}"
    if "measured" in cell:
        return _figure_table(title, [(None, figure) for figure in _told(figures_of(cell))])
    return _predicted_details(cell, title)


def _told(found: Sequence[Figure]) -> list[Figure]:
    """The whole; and the tables when there are several."""
    names = {figure.table for figure in found if figure.table is not None}
    return [figure for figure in found if figure.table is None or len(names) > 1]


def _figure_columns() -> tuple[Column, ...]:
    return (
        Column(key="table", title="table", align="left", style="text", lead=True),
        Column(key="figure", title="figure", align="left", style="text", lead=True),
        Column(key="unit", title="unit", align="left", style="text"),
        Column(key="predicted", title="predicted", style="text"),
        Column(key="measured", title="measured", style="text"),
        Column(key="error", title="error", style="text"),
        Column(key="verdict", title="verdict", align="left", style="text"),
    )


def _figure_table(
    title: str, found: Sequence[tuple[str | None, Figure]], *, most: int | None = None
) -> Table:
    """
    Figures with both sides; verdicts too, unless all are equal, which a 0 says as well.

    Args:
        title: The table's title.
        found: Each figure with its heading; None: the figure's table.
        most: Rows to show at most.
    """
    verdicts = any(figure.verdict not in ("exact", "not compared") for _, figure in found)
    rows = [_figure_row(figure, heading) for heading, figure in found]
    columns = _figure_columns()
    if not verdicts:
        columns, rows = columns[:-1], [row[:-1] for row in rows]
    left = 0 if most is None else max(0, len(rows) - most)
    return Table(
        title=title,
        columns=columns,
        rows=tuple(rows[:most]),
        note=f"{left} more; --format json has all." if left else None,
        headed=True,
    )


def _figure_row(figure: Figure, heading: str | None) -> tuple[object, ...]:
    column = column_of(figure.key)
    return (
        heading or figure.table or "all tables",
        figure.key,
        column.unit,
        str(column.write(figure.predicted)),
        str(column.write(figure.measured)),
        error_text(figure.key, figure.error),
        None if figure.verdict == "not compared" else figure.verdict,
    )


def _predicted_details(cell: Cell, title: str) -> Table:
    predicted = cell["predicted"]
    parts = {"all tables": predicted}
    if len(predicted["by_table"]) > 1:
        parts |= predicted["by_table"]
    rows = []
    for name, part in parts.items():
        for key in KEYS:
            column = column_of(key)
            rows.append((name, key, column.unit, str(column.write(reading.figure(part[key])))))
    columns = _figure_columns()[:4]
    return Table(title=title, columns=columns, rows=tuple(rows), headed=True)


def _differing(cells: Sequence[Cell]) -> Table | None:
    found: list[tuple[str | None, Figure]] = [
        (
            f"fillfactor {label}{variant_tables.suffix(cell)}, {figure.table or 'all tables'}",
            figure,
        )
        for label, cell in zip(varied(cells), cells, strict=True)
        for figure in _told(figures_of(cell))
        if figure.missed
    ]
    return _figure_table("What differs", found, most=_MOST_DIFFERING) if found else None


def _assumed(result: Mapping[str, Any]) -> Table:
    rows = []
    for name, found in reading.mapping(result.get("assumed")).items():
        lines = found if isinstance(found, list) else [found]
        rows.append((reading.printable(name), "; ".join(reading.label(line) for line in lines)))
    columns = (
        Column(key="name", title="what", align="left", style="text", lead=True),
        Column(key="value", title="taken as", align="left", style="text"),
    )
    return Table(title="Assumed", columns=columns, rows=tuple(rows), section="assumed")


def as_csv(result: Mapping[str, Any]) -> str:
    """One row a figure: cell, table (empty for all together), both sides, the error."""
    rows = []
    proof = result["kind"] == "proof"
    ends = ("predicted_low", "predicted_high", "predicted_level")
    measured = ("measured", "error") if proof else ()
    variants = variant_tables.has_variants(result["cells"])
    leads = ("fillfactor", "variant") if variants else ("fillfactor",)
    for cell in result["cells"]:
        fillfactor = cell["fillfactor"]
        label = json.dumps(fillfactor) if isinstance(fillfactor, Mapping) else fillfactor
        for name in ("", *cell["predicted"]["by_table"]):
            sides = {
                side: cell[side]["by_table"][name] if name else cell[side]
                for side in ("predicted", "measured", "error")
                if side in cell
            }
            for key in KEYS:
                found = reading.figure(sides["predicted"][key])
                spread: tuple[object, ...] = ("", "", "")
                if isinstance(found, Interval):
                    spread, found = (found.low, found.high, found.level), found.mid
                variant = [str(cell["variant"])] if variants else []
                row = [label, *variant, name, key, found, *spread]
                rows.append([*row, *(sides[side][key] for side in measured)])
    return csv_file.written((*leads, "table", "figure", "predicted", *ends, *measured), rows)
