"""
Tables of a `layout` result: a row's bytes, the rooms that fillfactors leave, index entries.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from typing import Any

from pgheadroom.report.table import Column, Table

_BYTES = "bytes"


def tables(result: Mapping[str, Any]) -> list[Table]:
    """All tables of the result, in the order in which they are read."""
    found = [table for laid_out in result["tables"] for table in _of_one(laid_out)]
    if result["assumed"]:
        found.append(
            Table(
                title="Assumed",
                columns=(
                    Column(key="what", title="what", align="left", style="text"),
                    Column(key="value", title="taken as", align="left", style="text"),
                ),
                rows=tuple(result["assumed"].items()),
                section="assumed",
            )
        )
    return found


def as_csv(result: Mapping[str, Any]) -> str:
    """The columns of all tables, one row each."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    names = ("name", "type", "offset_bytes", "padding_bytes", "header_bytes", "payload_bytes")
    writer.writerow(("table", *names))
    for table in result["tables"]:
        for column in table["columns"]:
            writer.writerow((table["name"], *(column[name] for name in names)))
    return out.getvalue()


def _of_one(table: Mapping[str, Any]) -> list[Table]:
    found = [_row(table)]
    if table["fillfactors"]:
        found.append(_room(table))
    if table["indexes"]:
        found.append(_indexes(table))
    return found


def _row(table: Mapping[str, Any]) -> Table:
    lost = table["inner_padding_bytes"] + table["tail_padding_bytes"]
    saved = table["page_bytes"] - table["best_order_page_bytes"]
    order = ", ".join(table["best_order"])
    note = (
        f"{table['tuple_bytes']} bytes with a header of {table['hoff_bytes']}, "
        f"{table['page_bytes']} on a page with its line pointer; padding takes {lost}. "
    )
    note += (
        f"Best order ({order}) would save {saved} bytes a row."
        if saved
        else "No order of the columns is shorter."
    )
    if table["needs_toast"]:
        note += " Above 2032 bytes: PostgreSQL compresses values or moves them out of line."
    return Table(
        title=f"{table['name']}: a row, column by column",
        columns=(
            Column(key="name", title="column", align="left", style="text", lead=True),
            Column(key="type", title="type", align="left", style="text"),
            Column(key="offset_bytes", title="offset", unit=_BYTES),
            Column(key="padding_bytes", title="padding before", unit=_BYTES),
            Column(key="header_bytes", title="length header", unit=_BYTES),
            Column(key="payload_bytes", title="value", unit=_BYTES),
        ),
        rows=tuple(
            (
                column["name"],
                column["type"],
                column["offset_bytes"],
                column["padding_bytes"],
                column["header_bytes"],
                column["payload_bytes"],
            )
            for column in table["columns"]
        ),
        note=note,
    )


def _room(table: Mapping[str, Any]) -> Table:
    return Table(
        title=f"{table['name']}: room on a page",
        columns=(
            Column(key="fillfactor", title="fillfactor", unit="%", lead=True),
            Column(key="rows_per_page", title="rows per page"),
            Column(key="spare_versions", title="spare versions per page"),
            Column(key="heap_pages", title="table", unit="pages"),
        ),
        rows=tuple(
            (room["fillfactor"], room["rows_per_page"], room["spare_versions"], room["heap_pages"])
            for room in table["fillfactors"]
        ),
        note=f"Its fillfactor is {table['fillfactor']}.",
    )


def _indexes(table: Mapping[str, Any]) -> Table:
    return Table(
        title=f"{table['name']}: index entries",
        columns=(
            Column(key="name", title="index", align="left", style="text", lead=True),
            Column(key="columns", title="columns", align="left", style="text"),
            Column(key="tuple_bytes", title="entry", unit=_BYTES),
            Column(key="page_bytes", title="with line pointer", unit=_BYTES),
        ),
        rows=tuple(
            (index["name"], ", ".join(index["columns"]), index["tuple_bytes"], index["page_bytes"])
            for index in table["indexes"]
        ),
    )
