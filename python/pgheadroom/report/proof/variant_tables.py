"""
The part of a proof or prediction that is about variants: other indexes, another storage.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from pgheadroom.lab import reading
from pgheadroom.outcome import SHARES
from pgheadroom.report.table import Column, Table

UNCHANGED = "unchanged"
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

Cell = Mapping[str, Any]


def has_variants(cells: Sequence[Cell]) -> bool:
    """Whether variants stand beside the unchanged profile."""
    return any(cell.get("variant") is not None for cell in cells)


def label(cell: Cell) -> str:
    """A cell's variant; empty where none was asked for."""
    found = cell.get("variant")
    return "" if found is None else reading.printable(str(found))


def suffix(cell: Cell) -> str:
    """The same, to put behind a cell's fillfactor."""
    name = label(cell)
    return f", {name}" if name else ""


def models(result: Mapping[str, Any]) -> list[str]:
    """What of the result is no PostgreSQL that can be asked, in sentences."""
    asked = (str(result.get(name)) for name in ("storage", "engine"))
    return [_MODELS[name] for name in asked if name in _MODELS]


def sentences(cells: Sequence[Cell]) -> list[str]:
    """What the variant changes, a sentence at the first and the last fillfactor."""
    said: list[str] = []
    for before, cell in pairwise(cells):
        found = reading.mapping(reading.mapping(cell.get("difference")).get("predicted"))
        if not found:
            continue
        parts = []
        for key, (title, unit) in TITLES.items():
            change = reading.middle(reading.number(found.get(key)))
            if change is None:
                continue
            now = _written(key, cell["predicted"].get(key))
            was = _written(key, before["predicted"].get(key))
            parts.append(
                f"{title} {was} to {now} {unit if key not in SHARES else '%'}"
                if change
                else f"{title} unchanged at {now} {unit if key not in SHARES else '%'}"
            )
        where = reading.label(cell["fillfactor"])
        at = f" (fillfactor {where})" if isinstance(cell["fillfactor"], int) else ""
        said.append(f"{label(cell)}{at}: {'; '.join(parts)}.")
    return said if len(said) < 2 else [said[0], said[-1]]


def _written(key: str, found: object) -> str:
    share = key in SHARES
    column = Column(key=key, title=key, style="share" if share else "number", digits=None)
    return str(column.write(reading.figure(found)))


def table(cells: Sequence[Cell], places: Sequence[object]) -> Table | None:
    """
    Each variant's difference to the unchanged profile; None without variants.

    Args:
        cells: Of the result.
        places: What tells their fillfactors apart, one each.
    """
    rows: list[tuple[object, ...]] = []
    proof = any("measured" in cell for cell in cells)
    sides = ("predicted", "measured") if proof else ("predicted",)
    for place, cell in zip(places, cells, strict=True):
        difference = reading.mapping(cell.get("difference"))
        if not difference:
            continue
        row: list[object] = [place, label(cell)]
        for key in TITLES:
            for side in sides:
                row.append(_signed(key, reading.mapping(difference.get(side)).get(key)))
        rows.append(tuple(row))
    if not rows:
        return None
    if len({str(place) for place in places}) == 1:
        rows = [row[1:] for row in rows]
    columns = [
        Column(key="fillfactor", title="fillfactor", unit="%", lead=True),
        Column(key="variant", title="variant", align="left", style="text", lead=True),
    ]
    for key, (title, unit) in TITLES.items():
        for side in sides:
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


def order_table(cells: Sequence[Cell], places: Sequence[object]) -> Table | None:
    """The order of each table before the run and after it; None where nobody asked for it."""
    rows: list[tuple[object, ...]] = []
    keys = ("pages_per_range_start", "pages_per_range", "correlation_start", "correlation")
    variants = has_variants(cells)
    for place, cell in zip(places, cells, strict=True):
        for name, found in reading.mapping(cell.get("order")).items():
            own = reading.mapping(cell["fillfactor"]).get(name, place)
            lead = [own, label(cell)] if variants else [own]
            numbers = [reading.number(reading.mapping(found).get(key)) for key in keys]
            rows.append((*lead, reading.printable(name), *numbers))
    if not rows:
        return None
    lead_columns = [Column(key="fillfactor", title="fillfactor", unit="%", lead=True)]
    if variants:
        lead_columns.append(
            Column(key="variant", title="variant", align="left", style="text", lead=True)
        )
    pages, correlation = "pages of 1,000 keys", "correlation"
    columns = (
        *lead_columns,
        Column(key="table", title="table", align="left", style="text", lead=True),
        Column(key=keys[0], title="loaded", unit="pages", digits=1, group=pages),
        Column(key=keys[1], title="at the end", unit="pages", digits=1, group=pages),
        Column(key=keys[2], title="loaded", digits=3, group=correlation),
        Column(key=keys[3], title="at the end", digits=3, group=correlation),
    )
    return Table(title="Order of rows by key", columns=columns, rows=tuple(rows))


def _signed(key: str, found: object) -> str:
    number = reading.middle(reading.figure(found))
    if number is None:
        return "-"
    if number == 0:
        return "0"
    if key in SHARES:
        return f"{100 * number:+.2f}"
    return f"{number:+,.0f}" if key.endswith("_pages") else f"{number:+,.1f}"
