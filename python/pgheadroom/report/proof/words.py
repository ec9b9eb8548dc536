"""
How figures, errors and cells of a proof are called and written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pgheadroom.lab import reading
from pgheadroom.lab.result import CellValue
from pgheadroom.outcome import SHARES, Value, middle
from pgheadroom.predict import PredictedCell
from pgheadroom.predict.fillfactors import fillfactor_label, told_apart
from pgheadroom.report.proof import variant_tables
from pgheadroom.report.table import Column
from pgheadroom.types import Taken

if TYPE_CHECKING:
    from pgheadroom.accuracy import Miss
    from pgheadroom.prove import ProofCell

    EitherCell = ProofCell | PredictedCell
    Placed = EitherCell | Miss

TITLES: Mapping[str, str] = {
    "hot_frac": "HOT updates",
    "newpage_frac": "new-page updates",
    "heap_pages": "heap",
    "index_pages": "indexes",
    "wal_bytes_per_update": "all WAL per update",
    "wal_nonfpi_bytes_per_update": "of it without images",
    "wal_bytes": "WAL",
    "pages_modified": "modified",
}


def column_of(key: str, *, title: str | None = None, group: str | None = None) -> Column:
    """How a figure is written, with its unit."""
    share = key in SHARES
    unit = "%" if share else unit_of(key)
    return Column(
        key=key,
        title=title or TITLES.get(key, key),
        unit=unit,
        style="share" if share else "number",
        digits=2 if share else None,
        group=group,
    )


def lines_of(taken: Taken) -> tuple[Taken, ...]:
    """What is taken for granted, line by line."""
    return taken if isinstance(taken, tuple) else (taken,)


def unit_of(key: str) -> str | None:
    """The unit of a figure; None for plain counts."""
    if key.endswith("_pages") or key == "pages_modified":
        return "pages"
    if key.endswith("_bytes") or key.endswith("_bytes_per_update"):
        return "bytes"
    return {"wal_records": "records", "wal_fpi": "images"}.get(key, "rows")


def error_text(key: str, found: Value) -> str:
    """An error for people: points of a share, else per cent; `0` only when it is none."""
    number = middle(found)
    if number is None:
        return "-"
    if number == 0:
        return "0"
    shown = f"{number * 100:+.2f}" if abs(number) >= 0.00005 else f"{number * 100:+.0e}"
    return f"{shown} {'points' if key in SHARES else '%'}"


def cell_label(cell: Placed) -> str:
    """A cell's fillfactor and its variant."""
    return fillfactor_label(cell.fillfactor) + variant_tables.suffix(cell)


def from_fillfactor(cell: EitherCell) -> int | None:
    """At which the tables were loaded, where a prediction alters them when the run begins."""
    return cell.from_fillfactor if isinstance(cell, PredictedCell) else None


def varied(cells: Sequence[EitherCell]) -> list[CellValue]:
    """What tells the cells apart but for variants: a number each, else words."""
    before = from_fillfactor(cells[0]) if cells else None
    return [*told_apart([cell.fillfactor for cell in cells], before)]


def labels(cells: Sequence[EitherCell]) -> list[CellValue]:
    """What tells the cells apart, variants too."""
    places = varied(cells)
    if not variant_tables.has_variants(cells):
        return places
    pairs = zip(places, cells, strict=True)
    return [f"{reading.label(place)}{variant_tables.suffix(cell)}" for place, cell in pairs]
