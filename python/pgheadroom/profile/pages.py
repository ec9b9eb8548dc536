"""
How full a table's pages are: what a profile may say of it, and what cannot be.

A load leaves pages as full as fillfactor lets them be. A table that has lived has others: `pages`
are kinds of them, each a share of the pages and the rows on one, of `rows_per_page` that a load
puts there; some of the rows are behind a redirected line pointer, which HOT updates of them leave.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

from pgheadroom import _core
from pgheadroom._core import redirect_rounds
from pgheadroom.forms import fail
from pgheadroom.profile.column_types import payload_bytes
from pgheadroom.profile.spelling import Raw
from pgheadroom.profile.tables import ColumnProfile, PageKind, TableProfile
from pgheadroom.units import percent

OfLoad = tuple[int, int, int]
"""Rows on a full page, fillfactor in percent, and columns of the table."""

KINDS_MAX = 100
FILLED_FRAC_MIN = 0.001
"""Of the room of all pages at least; arbitrary, for the empty ones are loaded and emptied."""
_SUM_TOLERANCE = 0.0101  # thirds with two digits; the last kind takes what is left
_ROW_BYTES_MAX = 2032  # TOAST_TUPLE_TARGET: longer rows have values moved out
_TOAST_POINTER_BYTES = 18


def completed_pages(table: TableProfile, raw: Raw, path: str) -> TableProfile:
    """
    A table with the rows of a full page, where its pages are said.

    Args:
        table: Its columns completed.
        raw: What stands in the file.
        path: Its path, for messages.

    Raises:
        FieldError: Something does not fit.
    """
    if not table.pages:
        if "pages" in raw:
            fail(f"{path}.pages", raw["pages"], "at least one kind of pages, or no pages at all")
        if table.rows_per_page is not None:
            fail(f"{path}.rows_per_page", table.rows_per_page, "pages beside it")
        return table
    if len(table.pages) > KINDS_MAX:
        fail(f"{path}.pages", len(table.pages), f"at most {KINDS_MAX} kinds")
    if table.rows == 0:
        fail(f"{path}.pages", raw["pages"], "a table with rows")
    per_page = table.rows_per_page or loaded_rows_per_page(table)
    for n, kind in enumerate(table.pages):
        _check_kind(table, kind, per_page, f"{path}.pages[{n}]")
    total = sum(kind.pages_frac for kind in table.pages)
    if abs(total - 1) > _SUM_TOLERANCE:
        fail(f"{path}.pages", round(total, 6), "values of pages_frac whose sum is 1")
    mean = mean_rows(table.pages)
    if mean < FILLED_FRAC_MIN * per_page:
        expected = (
            f"pages with at least {percent(FILLED_FRAC_MIN, 1)} of rows_per_page ({per_page})"
        )
        fail(f"{path}.pages", f"{mean:.3g} rows on the mean page", expected)
    return replace(table, rows_per_page=per_page)


def _check_kind(table: TableProfile, kind: PageKind, per_page: int, path: str) -> None:
    """Refuse what a page cannot hold."""
    if kind.rows > per_page:
        expected = f"at most rows_per_page, which is {per_page}"
        if table.rows_per_page is None:
            expected += f" at fillfactor {table.fillfactor}"
        fail(f"{path}.rows", kind.rows, expected)
    if kind.redirects > kind.rows:
        expected = f"at most the page's rows, which are {kind.rows}"
        fail(f"{path}.redirects", kind.redirects, expected)
    full = per_page, table.fillfactor, len(table.columns)
    most = redirects_max(full, kind.rows)
    if kind.redirects > most:
        expected = (
            f"at most {most}: with {kind.rows} rows of {per_page} at fillfactor "
            f"{table.fillfactor} a page has no room for further HOT updates"
        )
        fail(f"{path}.redirects", kind.redirects, expected)
    most = _core.unused_max(full, kind.rows, kind.redirects)
    if kind.unused > most:
        expected = f"at most {most}, for which {kind.rows} rows of {per_page} leave room"
        fail(f"{path}.unused", kind.unused, expected)


def mean_rows(pages: Sequence[PageKind]) -> float:
    """
    Rows of the mean page of a table with such kinds.

    Of the blocks that are loaded: none is beyond the whole, the last kind takes what is left.
    """
    ends = [min(total, 1.0) for total in accumulate(kind.pages_frac for kind in pages)]
    ends[-1] = 1.0
    begins = [0.0, *ends]
    return sum(
        (end - begin) * kind.rows for begin, end, kind in zip(begins, ends, pages, strict=False)
    )


def redirects_max(of_load: OfLoad, rows: int) -> int:
    """How many of a page's rows HOT updates can put behind a redirect."""
    return sum(number > 0 for number in redirect_rounds(of_load, rows, rows))


def of_load(table: TableProfile) -> OfLoad:
    """What a load puts on a page of a table with kinds of pages."""
    assert table.rows_per_page is not None, "it has kinds of pages"
    return table.rows_per_page, table.fillfactor, len(table.columns)


def said_loaded_anew(table: TableProfile) -> str:
    """What becomes of a table's pages at other fillfactors than the one it has lived at."""
    return (
        f"at fillfactor {table.fillfactor} alone: at others {table.name} is loaded anew, as a "
        "rewrite leaves it"
    )


def loaded_rows_per_page(table: TableProfile) -> int:
    """
    Rows that a load puts on a page, at least one.

    Exact for rows of one length below TOAST's; else of rows of the mean length.
    """
    widths = [_width(column) for column in table.columns]
    while _tuple_bytes(table, widths) > _ROW_BYTES_MAX:
        longest = max(range(len(widths)), key=lambda n: widths[n] or 0)
        if (widths[longest] or 0) <= _TOAST_POINTER_BYTES:
            break
        widths[longest] = _TOAST_POINTER_BYTES
    usual = _tuple_bytes(table, widths)
    nullable = (n for n, column in enumerate(table.columns) if column.null_frac > 0)
    less = sum(
        table.columns[n].null_frac * (usual - _tuple_bytes(table, widths, null=n)) for n in nullable
    )
    return max(1, _core.rows_per_page(min(round(usual - less), _ROW_BYTES_MAX), table.fillfactor))


def _width(column: ColumnProfile) -> int | None:
    mean = column.mean_width_bytes
    return payload_bytes(column.type) if mean is None else round(mean)


def _tuple_bytes(
    table: TableProfile, widths: Sequence[int | None], *, null: int | None = None
) -> int:
    """Of a row with values of these widths, without one in one column."""
    return _core.heap_tuple_bytes(
        [
            _core.Column("bytea", payload_bytes=width - 1, is_null=n == null)
            if width == _TOAST_POINTER_BYTES and column.width is not None
            else _core.Column(column.type, payload_bytes=width, is_null=n == null)
            for n, (column, width) in enumerate(zip(table.columns, widths, strict=True))
        ]
    )
