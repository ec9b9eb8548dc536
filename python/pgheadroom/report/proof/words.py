"""
How figures, errors and cells of a proof are called and written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pgheadroom.lab import reading
from pgheadroom.outcome import SHARES, Value, middle
from pgheadroom.predict import PredictedCell
from pgheadroom.predict.cells import Fillfactor
from pgheadroom.report.proof import variant_tables
from pgheadroom.report.table import Column

if TYPE_CHECKING:
    from pgheadroom.prove import ProofCell

    Cell = ProofCell | PredictedCell

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


def fillfactor_label(found: Fillfactor) -> str:
    """A cell's fillfactor: the number, or by table."""
    if isinstance(found, Mapping):
        return ", ".join(f"{reading.printable(name)} {number}" for name, number in found.items())
    return reading.label(found)


def cell_label(cell: Cell) -> str:
    """A cell's fillfactor and its variant."""
    return fillfactor_label(cell.fillfactor) + variant_tables.suffix(cell)


def from_fillfactor(cell: Cell) -> int | None:
    """At which the tables were loaded, where a prediction alters them when the run begins."""
    return cell.from_fillfactor if isinstance(cell, PredictedCell) else None


def varied(cells: Sequence[Cell]) -> list[object]:
    """
    What tells the cells apart: one number each, where one fillfactor was varied.

    A cell has a number for all tables or numbers by table; the tables that do not change from
    cell to cell are left out.
    """
    found = [cell.fillfactor for cell in cells]
    names = {name for item in found if isinstance(item, Mapping) for name in item}
    if not names:
        return list(found)
    spread = [item if isinstance(item, Mapping) else dict.fromkeys(names, item) for item in found]
    changing = [name for name in spread[0] if len({item.get(name) for item in spread}) > 1]
    before = from_fillfactor(cells[0])
    if not changing and before is not None:  # one cell: the tables that were altered
        changing = [name for name, number in spread[0].items() if number != before]
    labels: list[object] = []
    for item in spread:
        numbers = {item.get(name) for name in changing or spread[0]}
        labels.append(numbers.pop() if len(numbers) == 1 else fillfactor_label(item))
    return labels


def labels(cells: Sequence[Cell]) -> list[object]:
    """What tells the cells apart, variants too."""
    places = varied(cells)
    if not variant_tables.has_variants(cells):
        return places
    pairs = zip(places, cells, strict=True)
    return [f"{reading.label(place)}{variant_tables.suffix(cell)}" for place, cell in pairs]
