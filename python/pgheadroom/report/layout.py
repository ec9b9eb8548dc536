"""
Tables of a `layout` result: a row's bytes, the rooms that fillfactors leave, index entries.
"""

from __future__ import annotations

from typing import Any

from pgheadroom.layout.values import ColumnLayout, Layout, MeasuredRows, TableLayout
from pgheadroom.report import csv_file
from pgheadroom.report.table import Column, Table
from pgheadroom.units import percent

_BYTES = "bytes"


def tables(result: Layout) -> list[Table]:
    """All tables of the result, in the order in which they are read."""
    found = [table for laid_out in result.tables for table in _of_one(laid_out)]
    if result.assumed:
        found.append(
            Table(
                title="Assumed",
                columns=(
                    Column(key="what", title="what", style="words"),
                    Column(key="value", title="taken as", style="words"),
                ),
                rows=tuple(result.assumed.items()),
                section="assumed",
            )
        )
    return found


def as_csv(result: Layout) -> str:
    """The columns of all tables, one row each."""
    names = (
        "name", "type", "offset_bytes", "padding_bytes", "header_bytes", "payload_bytes",
        "null_frac", "is_null", "stored_like",
    )  # fmt: skip
    rows = [
        (table.name, *(getattr(column, name) for name in names))
        for table in result.tables
        for column in table.columns
    ]
    return csv_file.written(("table", *names), rows)


def _of_one(table: TableLayout) -> list[Table]:
    found = [_row(table)]
    if table.fillfactors:
        found.append(_room(table))
    if table.indexes:
        found.append(_indexes(table))
    return found


def _row(table: TableLayout) -> Table:
    columns = [
        Column(key="name", title="column", style="words", lead=True),
        Column(key="type", title="type", style="words"),
        Column(key="offset_bytes", title="offset", unit=_BYTES),
        Column(key="padding_bytes", title="padding before", unit=_BYTES),
        Column(key="header_bytes", title="length header", unit=_BYTES),
        Column(key="payload_bytes", title="value", unit=_BYTES),
    ]
    if any(column.null_frac for column in table.columns):
        columns.append(Column(key="null_frac", title="NULL", style="share"))
    if any(column.stored_like for column in table.columns):
        columns.append(Column(key="stored_like", title="stored like", style="words"))
    return Table(
        title=f"{table.name}: a row, column by column",
        columns=tuple(columns),
        rows=tuple(
            tuple(_cell(column, shown.key) for shown in columns) for column in table.columns
        ),
        note=_row_note(table),
    )


def _cell(column: ColumnLayout, key: str) -> Any:
    in_no_row = ("offset_bytes", "padding_bytes", "header_bytes", "payload_bytes")
    return None if column.is_null and key in in_no_row else getattr(column, key)


def _row_note(table: TableLayout) -> str:
    nulls = [column.name for column in table.columns if column.is_null]
    note = (
        f"{table.tuple_bytes} bytes with a header of {table.hoff_bytes}, "
        f"{table.page_bytes} on a page with its line pointer; padding takes {table.padding_bytes}. "
    )
    if nulls:
        note += f"NULL in it, as in most rows: {', '.join(nulls)}. "
    if table.dropped_columns:
        note += (
            "Each row that is written has a bitmap of NULLs in its header, for columns that were "
            f"dropped ({table.dropped_columns}) are NULL in it. "
        )
    elif table.computed.with_nulls_frac:
        share = table.computed.with_nulls_frac
        note += (
            f"{percent(share, 1)} of the rows have NULLs, and a bitmap of them in the header, if "
            "each column is NULL by itself. "
        )
    if table.added_columns:
        note += (
            f"Rows from before {', '.join(table.added_columns)} came lack them, and are shorter "
            "until they are updated. "
        )
    note += f"The mean row: {table.computed.tuple_bytes:g} bytes computed"
    note += _measured(table.measured) + ". "
    best = "A new table with the order" if table.dropped_columns else "Best order"
    note += (
        f"{best} ({', '.join(table.best_order)}) would save {table.saved_bytes} bytes a row."
        if table.saved_bytes
        else "No order of the columns is shorter."
    )
    if table.needs_toast:
        note += " Above 2032 bytes: PostgreSQL compresses values or moves them out of line."
    return note


def _measured(measured: MeasuredRows | None) -> str:
    """What rows and pages say, to stand behind what is computed."""
    if measured is None:
        return ""
    lengths = measured.tuple_bytes
    said = f"{measured.rows:,} rows on {measured.pages:,} pages, "
    said += f"{measured.rows_per_page:g} a page"
    if lengths is None:
        return f"; {said} ({measured.evidence})"
    found = f", {lengths.mean:g} {lengths.evidence} "
    if lengths.p50 is not None:
        found += f"(5 % have at most {lengths.p05}, half {lengths.p50}, 95 % {lengths.p95}; "
    else:
        found += "("
    return f"{found}{said} as they lie now)"


def _room(table: TableLayout) -> Table:
    return Table(
        title=f"{table.name}: room on a page",
        columns=(
            Column(key="fillfactor", title="fillfactor", unit="%", lead=True),
            Column(key="rows_per_page", title="rows per page"),
            Column(key="spare_versions", title="spare versions per page"),
            Column(key="heap_pages", title="table", unit="pages"),
        ),
        rows=tuple(
            (room.fillfactor, room.rows_per_page, room.spare_versions, room.heap_pages)
            for room in table.fillfactors
        ),
        note=f"Its fillfactor is {table.fillfactor}. Of its mean row, {_mean_of(table)}.",
    )


def _mean_of(table: TableLayout) -> str:
    is_measured = table.measured is not None and table.measured.page_bytes is not None
    return "as measured" if is_measured else "as computed"


def _indexes(table: TableLayout) -> Table:
    return Table(
        title=f"{table.name}: index entries",
        columns=(
            Column(key="name", title="index", style="words", lead=True),
            Column(key="columns", title="columns", style="words"),
            Column(key="tuple_bytes", title="entry", unit=_BYTES),
            Column(key="page_bytes", title="with line pointer", unit=_BYTES),
        ),
        rows=tuple(
            (index.name, ", ".join(index.columns), index.tuple_bytes, index.page_bytes)
            for index in table.indexes
        ),
    )
