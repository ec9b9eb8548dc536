"""
A table's columns become a layout.

Arithmetic is the core's (`_core.RowLayout`); here it is decided which row is laid out. Column by
column that is the usual row: its strings have their mean width, and a column that is NULL in most
rows is NULL in it. What a page holds follows from the mean row: the measured one where rows were
sampled, else the mean over which columns are NULL.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import pgheadroom
from pgheadroom import _core
from pgheadroom.errors import InputError, ParameterError
from pgheadroom.layout.columns import LaidColumn, live_column, profile_column
from pgheadroom.layout.mean_row import DROPPED, mean_row
from pgheadroom.layout.values import (
    ColumnLayout,
    Computed,
    IndexLayout,
    Layout,
    MeasuredRows,
    Room,
    TableLayout,
)
from pgheadroom.profile import Profile, TableProfile
from pgheadroom.profile.observed import ObservedColumn
from pgheadroom.quoting import called
from pgheadroom.sources.columns import ColumnAccess, LiveColumn, LiveTable

FILLFACTORS = (100, 95, 90, 85, 80, 75, 70, 60, 50, 40, 30, 20, 10)
_ROW_BYTES_MAX = 8160
_LINE_POINTER_BYTES = 4


def of_profile(profile: Profile, table: str | None) -> Layout:
    """
    Lay out the tables of a profile; one from `observe` as its tables were seen.

    Args:
        profile: A profile with tables of its own.
        table: Only this one.

    Raises:
        InputError: No such table, or a profile of pgbench's own tables.
    """
    names = [found.name for found in profile.tables]
    if not names:
        raise InputError("the profile has no [[table]]: pgbench's own tables are not laid out")
    if table is not None and table not in names:
        raise ParameterError(
            "table", f"{table!r} is not in the profile: expected {', '.join(names)}"
        )
    laid_out = [
        _of_profile(found) if live is None else _of_live(live)
        for found, live in ((found, _observed(found)) for found in profile.tables)
        if table in (None, found.name)
    ]
    return _of_tables(laid_out)


def _of_tables(laid_out: Sequence[tuple[TableLayout, Mapping[str, str]]]) -> Layout:
    return Layout(
        tool_version=pgheadroom.__version__,
        assumed={name: how for _, assumed in laid_out for name, how in assumed.items()},
        tables=tuple(table for table, _ in laid_out),
    )


def _assumed(columns: Sequence[LaidColumn]) -> Mapping[str, str]:
    return {name: how for column in columns for name, how in column.assumed.items()}


def _of_profile(found: TableProfile) -> tuple[TableLayout, Mapping[str, str]]:
    """A table as it is laid out, and what is not known of it."""
    columns = [profile_column(column, found.name) for column in found.columns]
    keys: dict[str, tuple[str | None, ...]] = {
        index.name: (*index.columns, *index.include, *(None for _ in index.expressions))
        for index in found.indexes
        if index.method == "btree"
    }
    laid_out = _lay_out(found.name, columns, found.rows, found.fillfactor, keys, None)
    return laid_out, _assumed(columns)


def _observed(table: TableProfile) -> LiveTable | None:
    """A table as `observe` saw it; None for one that somebody wrote, or an older observation."""
    seen = table.observed
    columns = [] if seen is None else [_observed_column(column) for column in seen.columns]
    if seen is None or not columns or None in columns:
        return None
    return LiveTable(
        schema="public",  # the profile's name has the schema where it is another
        name=table.name,
        rows=table.rows,
        pages=seen.pages,
        fillfactor=table.fillfactor,
        columns=tuple(column for column in columns if column is not None),
        indexes=tuple(
            (
                index.name,
                tuple(
                    None if name == "(expression)" else name
                    for name in (*index.columns, *(index.include or ()))
                ),
            )
            for index in seen.indexes
            if index.method == "btree"
        ),
        sample=seen.sample,
        dropped_columns=seen.dropped_columns,
        added_columns=seen.added_columns,
    )


def _observed_column(column: ObservedColumn) -> LiveColumn | None:
    if column.declared is None or column.typlen is None or column.typalign is None:
        return None
    return LiveColumn(
        name=column.name,
        declared=column.declared,
        type=column.type,
        is_user_type=bool(column.is_user_type),
        typlen=column.typlen,
        typalign=column.typalign,
        stored_bytes=column.stored_bytes,
        null_frac=column.null_frac,
        evidence=column.null_frac_evidence,
    )


def of_live_tables(
    tables: Iterable[LiveTable], access: ColumnAccess, *, server: str, table: str | None
) -> Layout:
    """
    Lay out the tables of a live database.

    Raises:
        InputError: There is none, or none of that name.
    """
    seen = list(tables)
    laid_out = [_of_live(found) for found in seen if found.columns]
    if not laid_out and seen and table is not None:
        raise InputError(f"table {table!r} has no columns: there is no row to lay out")
    if not laid_out:
        what = "no table of its own" if table is None else f"no table {table!r}"
        raise InputError(f"the database has {what} that this role can see")
    return replace(_of_tables(laid_out), access=access, server=server)


def _of_live(found: LiveTable) -> tuple[TableLayout, Mapping[str, str]]:
    name = called(found.schema, found.name)
    columns = [live_column(column, name) for column in found.columns]
    measured = _measured(found)
    laid_out = _lay_out(
        name,
        columns,
        found.rows,
        found.fillfactor,
        dict(found.indexes),
        measured,
        dropped=found.dropped_columns,
    )
    return replace(laid_out, added_columns=found.added_columns), _assumed(columns)


def _measured(found: LiveTable) -> MeasuredRows | None:
    """What the table's rows and pages say, beside what is computed; None where nothing does."""
    sample = found.sample
    if sample is not None and sample.rows and sample.pages:
        return MeasuredRows(
            tuple_bytes=sample.tuple_bytes,
            page_bytes=sample.page_bytes_mean,
            rows=int(sample.rows),
            pages=int(sample.pages),
            rows_per_page=round(sample.rows / sample.pages, 2),
            evidence=sample.tuple_bytes.evidence or "sampled",
        )
    if not found.rows or not found.pages:
        return None
    return MeasuredRows(
        tuple_bytes=None,
        page_bytes=None,
        rows=found.rows,
        pages=found.pages,
        rows_per_page=round(found.rows / found.pages, 2),
        evidence="estimated: rows by the last VACUUM or ANALYZE over pages",
    )


def _lay_out(
    name: str,
    columns: Sequence[LaidColumn],
    rows: int | None,
    fillfactor: int,
    indexes: Mapping[str, tuple[str | None, ...]],
    measured: MeasuredRows | None,
    *,
    dropped: int = 0,
) -> TableLayout:
    usual = [column.null() if column.null_frac > 0.5 else column.core for column in columns]
    row = _core.RowLayout([*usual, *[DROPPED] * dropped])
    order = _core.RowLayout(usual).best_order()
    best = _core.RowLayout([usual[place] for place in order])
    mean = mean_row(columns, dropped)
    page_bytes = (measured and measured.page_bytes) or mean.page_bytes
    by_name = {column.core.name: column.core for column in columns}
    return TableLayout(
        name=name,
        rows=rows,
        fillfactor=fillfactor,
        tuple_bytes=row.tuple_bytes,
        hoff_bytes=row.hoff_bytes,
        null_bitmap_bytes=row.null_bitmap_bytes,
        page_bytes=row.page_bytes,
        inner_padding_bytes=row.inner_padding_bytes,
        tail_padding_bytes=row.tail_padding_bytes,
        needs_toast=row.needs_toast,
        computed=Computed(
            tuple_bytes=round(mean.tuple_bytes, 2),
            page_bytes=round(mean.page_bytes, 2),
            with_nulls_frac=round(mean.with_nulls_frac, 6),
        ),
        measured=measured,
        best_order=tuple(usual[place].name or "" for place in order),
        best_order_tuple_bytes=best.tuple_bytes,
        best_order_page_bytes=best.page_bytes,
        columns=tuple(
            ColumnLayout(
                name=laid.column.name or "",
                type=shown.type,
                stored_like=shown.like,
                null_frac=round(shown.null_frac, 6),
                is_null=laid.column.is_null,
                offset_bytes=laid.offset_bytes,
                padding_bytes=laid.padding_bytes,
                header_bytes=laid.header_bytes,
                payload_bytes=laid.payload_bytes,
            )
            for laid, shown in zip(row.columns[: len(usual)], columns, strict=True)
        ),
        fillfactors=tuple(
            _room(page_bytes - _LINE_POINTER_BYTES, rows, percent)
            for percent in sorted({*FILLFACTORS, fillfactor}, reverse=True)
            if page_bytes - _LINE_POINTER_BYTES <= _ROW_BYTES_MAX
        ),
        indexes=tuple(_index(index, listed, by_name) for index, listed in indexes.items()),
        dropped_columns=dropped,
    )


def _room(row_bytes: float, rows: int | None, percent: int) -> Room:
    """
    Rows of a page, and pages, for rows of a mean length.

    Rows lie on multiples of 8 bytes; a mean between two of those is a mixture of both.
    """
    below = max(int(row_bytes // 8) * 8, 24)
    above = below if row_bytes <= below else below + 8
    frac = (row_bytes - below) / 8 if above > below else 0.0

    def mixed(low: float, high: float) -> float:
        return low + (high - low) * frac

    each = [
        (1 / _core.rows_per_page(length, percent), _core.spare_versions(length, percent), length)
        for length in (below, above)
    ]
    pages = None
    if rows is not None:
        whole = [_core.heap_pages(rows, length, percent) for _, _, length in each]
        pages = math.ceil(mixed(whole[0], whole[1]) - 1e-9)
    return Room(
        fillfactor=percent,
        rows_per_page=math.floor(1 / mixed(each[0][0], each[1][0]) + 1e-9),
        spare_versions=math.floor(mixed(each[0][1], each[1][1])),
        heap_pages=pages,
    )


def _index(
    name: str, listed: tuple[str | None, ...], by_name: Mapping[str, _core.Column]
) -> IndexLayout:
    """An entry's bytes; None where an expression's width, or a value too wide, decides."""
    tuple_bytes: int | None = None
    if None not in listed:
        try:
            tuple_bytes = _core.index_tuple_bytes([by_name[column or ""] for column in listed])
        except (InputError, KeyError):
            tuple_bytes = None
    return IndexLayout(
        name=name,
        columns=tuple(column or "(expression)" for column in listed),
        tuple_bytes=tuple_bytes,
        page_bytes=None if tuple_bytes is None else tuple_bytes + _LINE_POINTER_BYTES,
    )
