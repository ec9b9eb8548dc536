"""
A table as the template wants it: heading groups, column widths, cells with tag, class and text.

An interval takes two cells, so that the values and the ranges each stand in line.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from markupsafe import Markup, escape

from pgheadroom.lab.reading import printable
from pgheadroom.report.table import NOTHING, VERDICTS, Column, Table, Written, range_note, tone

_FOLD_FROM = 40
"""Rows from which a table is folded away (arbitrary)."""

_LONG_FROM = 30
"""Characters from which a heading may break."""

_STACKED_FROM = 48
"""Characters of a value from which a table's rows are laid out below each other on a phone."""

_GROUP_FROM = 5
"""Digits from which thousands are set apart."""


def laid(table: Table, ident: str) -> dict[str, Any]:
    """The parts of a table for the template."""
    rows = table.written()
    columns = table.columns[1:] if table.headed else table.columns
    body_rows = [row[1:] for row in rows] if table.headed else rows
    ranged = [any(row[place].spread for row in body_rows) for place in range(len(columns))]
    heads = [_head(column, ranged=wide) for column, wide in zip(columns, ranged, strict=True)]
    cells = [
        [cell for written, column, wide in zip(row, columns, ranged, strict=True)
         for cell in _cells(written, column, ranged=wide)]
        for row in body_rows
    ]  # fmt: skip
    headings = [row[0].main for row in rows] if table.headed else [None] * len(rows)
    return {
        "id": ident,
        "title": printable(table.title),
        "columns": heads,
        "groups": _groups(columns, heads),
        "units": any(column.unit for column in columns),
        "width": sum(head["span"] for head in heads),
        "bodies": _bodies(headings, cells),
        "count": len(rows),
        "folded": table.folded or len(rows) >= _FOLD_FROM,
        "stacked": any(len(cell.main) >= _STACKED_FROM for row in body_rows for cell in row),
        "note": " ".join(
            printable(note) for note in (table.evidence(), range_note(table), table.note) if note
        ),
    }


def grouped(number: str) -> Markup:
    """
    A number with its thousands set apart by space that is not copied with it.

    Anything that is not a plain number stays as it is, escaped.
    """
    match = re.fullmatch(r"([+-]?)(\d+)(\.\d+)?", number)
    if match is None or len(match[2]) < _GROUP_FROM:
        return escape(number.replace("-", "−", 1) if match else number)
    first = len(match[2]) % 3 or 3
    parts = [match[2][:first], *(match[2][at : at + 3] for at in range(first, len(match[2]), 3))]
    apart = "".join(f'<span class="g">{part}</span>' for part in parts[1:])
    sign = match[1].replace("-", "−")
    return Markup(f"{sign}{parts[0]}{apart}{match[3] or ''}")  # noqa: S704 - digits only


def _head(column: Column, *, ranged: bool) -> dict[str, Any]:
    classes = ["lead"] if column.lead else []
    if column.align == "right" and not ranged:
        classes.append("right")
    if len(column.title) > _LONG_FROM:
        classes.append("long")
    return {
        "title": printable(column.title),
        "unit": printable(column.unit or ""),
        "description": column.description,
        "span": 2 if ranged else 1,
        "css": " ".join(classes),
    }


def _groups(columns: Sequence[Column], heads: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    if not any(column.group for column in columns):
        return []
    groups: list[dict[str, Any]] = []
    for column, head in zip(columns, heads, strict=True):
        if groups and groups[-1]["key"] == column.group:
            groups[-1]["span"] += head["span"]
        else:
            name = printable(column.group) if column.group else None
            groups.append({"key": column.group, "name": name, "span": head["span"]})
    return groups


def _cells(written: Written, column: Column, *, ranged: bool) -> list[dict[str, Any]]:
    tag = "th" if column.lead else "td"
    classes = ["lead"] if column.lead else []
    if column.align == "right":
        classes += ["right", "main"]
        if not ranged:
            classes.append("alone")
    else:
        classes.append("text" if len(written.main) > 24 else "name")
        if column.style == "code":
            classes.append("code")
    if written.main == NOTHING:
        classes.append("none")
    if column.key in VERDICTS:
        classes.append(tone(written.main))
    main = {
        "tag": tag,
        "css": " ".join(filter(None, classes)),
        "html": grouped(written.main),
        "head": printable(f"{column.title}, {column.unit}" if column.unit else column.title),
    }
    if not ranged:
        return [main]
    spread = {"tag": "td", "css": "spread", "html": _range(written.spread), "head": ""}
    return [main, spread]


def _range(spread: str) -> Markup:
    match = re.fullmatch(r"\[([^,]+), ([^,]+)\]", spread)
    if match is None:
        return escape(spread)
    return Markup("[{}, {}]").format(grouped(match[1]), grouped(match[2]))


def _bodies(
    headings: Sequence[str | None], rows: Sequence[list[dict[str, Any]]]
) -> list[dict[str, Any]]:
    bodies: list[dict[str, Any]] = []
    for heading, row in zip(headings, rows, strict=True):
        if not bodies or bodies[-1]["heading"] != heading:
            bodies.append({"heading": heading, "rows": []})
        bodies[-1]["rows"].append(row)
    return bodies
