"""
The part of a proof or prediction that is about variants: other indexes, another storage.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from pgheadroom.lab import reading
from pgheadroom.lab.result import CellValue
from pgheadroom.outcome import SHARES, Value, middle
from pgheadroom.predict import PredictedCell, Prediction
from pgheadroom.report.table import Column, Table

if TYPE_CHECKING:
    from pgheadroom.accuracy import Miss
    from pgheadroom.prove import ProofCell

    Cell = ProofCell | PredictedCell
    Placed = Cell | Miss

TITLES: Mapping[str, tuple[str, str]] = {
    "hot_frac": ("HOT updates", "points"),
    "index_pages": ("indexes", "pages"),
    "wal_bytes_per_update": ("all WAL per update", "bytes"),
}
"""Title and unit of each figure that a variant is compared by."""

_MODELS: Mapping[str, str] = {
    "log-structured": "Storage log-structured, a model: no page is written, so there are no "
    "checkpoints and no images that repair pages; the pages are the same.",
    "clustered": "Engine clustered, a model: inserts go to the page of the previous key, all else "
    "is heap.",
    "undo": "Engine undo, a model: updates in place, which tell no index and are not HOT; old "
    "values in undo pages. Five constants from published figures of one statement.",
}


def has_variants(cells: Sequence[Cell]) -> bool:
    """Whether variants stand beside the unchanged profile."""
    return any(cell.variant is not None for cell in cells)


def label(cell: Placed) -> str:
    """A cell's variant; empty where none was asked for."""
    return "" if cell.variant is None else reading.printable(cell.variant)


def suffix(cell: Placed) -> str:
    """The same, to put behind a cell's fillfactor."""
    name = label(cell)
    return f", {name}" if name else ""


def models(result: Prediction) -> list[str]:
    """What of the result is no PostgreSQL that can be asked, in sentences."""
    return [_MODELS[name] for name in (result.storage, result.engine) if name in _MODELS]


def sentences(cells: Sequence[Cell]) -> list[str]:
    """What the variant changes, a sentence at the first and the last fillfactor."""
    said: list[str] = []
    for before, cell in pairwise(cells):
        if cell.difference is None:
            continue
        found = cell.difference.predicted
        parts = []
        for key, (title, unit) in TITLES.items():
            change = middle(found.get(key))
            if change is None:
                continue
            now = _written(key, cell.predicted.value(key))
            was = _written(key, before.predicted.value(key))
            parts.append(
                f"{title} {was} to {now} {unit if key not in SHARES else '%'}"
                if change
                else f"{title} unchanged at {now} {unit if key not in SHARES else '%'}"
            )
        at = f" (fillfactor {cell.fillfactor})" if isinstance(cell.fillfactor, int) else ""
        said.append(f"{label(cell)}{at}: {'; '.join(parts)}.")
    return said if len(said) < 2 else [said[0], said[-1]]


def _written(key: str, found: Value) -> str:
    share = key in SHARES
    column = Column(key=key, title=key, style="share" if share else "number", digits=None)
    return str(column.write(found))


def table(cells: Sequence[Cell], places: Sequence[CellValue]) -> Table | None:
    """
    Each variant's difference to the unchanged profile; None without variants.

    Args:
        cells: Of the result.
        places: What tells their fillfactors apart, one each.
    """
    rows: list[tuple[CellValue, ...]] = []
    proof = not all(isinstance(cell, PredictedCell) for cell in cells)
    for place, cell in zip(places, cells, strict=True):
        if cell.difference is None:
            continue
        sides = [cell.difference.predicted]
        if proof:
            sides.append(cell.difference.measured or {})
        row: list[CellValue] = [place, label(cell)]
        for key in TITLES:
            row += [_signed(key, side.get(key)) for side in sides]
        rows.append(tuple(row))
    if not rows:
        return None
    if len({str(place) for place in places}) == 1:
        rows = [row[1:] for row in rows]
    columns = [
        Column(key="fillfactor", title="fillfactor", unit="%", lead=True),
        Column(key="variant", title="variant", style="words", lead=True),
    ]
    for key, (title, unit) in TITLES.items():
        for side in ("predicted", "measured") if proof else ("predicted",):
            group = title if proof else None
            name = side if proof else title
            columns.append(
                Column(key=f"{key} {side}", title=name, unit=unit, style="text", group=group)
            )
    return Table(
        title="What the variant changes, against the unchanged profile",
        columns=tuple(columns[-len(rows[0]) :]),
        rows=tuple(rows),
        note="BRIN pages are not among those of indexes.",
    )


def order_table(cells: Sequence[Cell], places: Sequence[CellValue]) -> Table | None:
    """The order of each table before the run and after it; None where nobody asked for it."""
    rows: list[tuple[CellValue, ...]] = []
    keys = ("pages_per_range_start", "pages_per_range", "correlation_start", "correlation")
    variants = has_variants(cells)
    for place, cell in zip(places, cells, strict=True):
        if not isinstance(cell, PredictedCell):
            continue
        for name, found in (cell.order or {}).items():
            own = cell.fillfactor
            own_place = place if isinstance(own, int) else own.get(name, place)
            lead = [own_place, label(cell) or "as it is"] if variants else [own_place]
            numbers = (
                found.pages_per_range_start,
                found.pages_per_range,
                found.correlation_start,
                found.correlation,
            )
            rows.append((*lead, reading.printable(name), *numbers))
    if not rows:
        return None
    lead_columns = [Column(key="fillfactor", title="fillfactor", unit="%", lead=True)]
    if variants:
        lead_columns.append(Column(key="variant", title="variant", style="words", lead=True))
    pages, correlation = "pages of 1,000 keys", "correlation"
    columns = (
        *lead_columns,
        Column(key="table", title="table", style="words", lead=True),
        Column(key=keys[0], title="loaded", unit="pages", digits=1, group=pages),
        Column(key=keys[1], title="at the end", unit="pages", digits=1, group=pages),
        Column(key=keys[2], title="loaded", digits=3, group=correlation),
        Column(key=keys[3], title="at the end", digits=3, group=correlation),
    )
    return Table(title="Order of rows by key", columns=columns, rows=tuple(rows))


def _signed(key: str, found: Value) -> str:
    number = middle(found)
    if number is None:
        return "-"
    if number == 0:
        return "0"
    if key in SHARES:
        return f"{100 * number:+.2f}"
    return f"{number:+,.0f}" if key.endswith("_pages") else f"{number:+,.1f}"
