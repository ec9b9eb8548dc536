"""
Loading pages that are not full: rows and fillers by one INSERT, and the fillers deleted again.

A load's positions are cut into blocks of `rows_per_page`; each block is of one kind of pages, and
of its positions as many are rows as the kind has. The others are fillers with the values of the row
before them, which are deleted by their places and vacuumed away before there is an index:

    kind      the first whose bound is above mod(block * 2654435769, 2^32) * 10^6 / 2^32
    bound     the shares so far, in millionths
    row       position i of P is one if (i + 1) * rows / P > i * rows / P, whole numbers

The last position is that of the last row. The twin does the same (`profile/pages.rs`).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate, count
from typing import TYPE_CHECKING, Any

from pgheadroom import quoting
from pgheadroom.play.values import MILLION, column_list, million, row_values
from pgheadroom.profile import TableProfile

if TYPE_CHECKING:
    import psycopg

_STEP = 2_654_435_769  # 2^32 by the golden ratio: its multiples are spread evenly
_RANGE = 2**32
_FILLERS = "pg_temp.pgheadroom_fillers"


def fill_with_gaps(connection: psycopg.Connection[Any], table: TableProfile) -> None:
    """
    Fill a table that has kinds of pages and no index yet.

    Args:
        connection: A session in autocommit mode.
        table: One that was created.
    """
    name = quoting.identifier(table.name)
    connection.execute(f"CREATE TEMP TABLE {_FILLERS.split('.')[1]} (place tid)".encode())
    connection.execute(insert_with_fillers(table).encode())
    delete = f"DELETE FROM {name} WHERE ctid = ANY (ARRAY(SELECT place FROM {_FILLERS}))"
    connection.execute(delete.encode())
    connection.execute(f"DROP TABLE {_FILLERS}".encode())
    connection.execute(f"VACUUM {name}".encode())


def insert_with_fillers(table: TableProfile) -> str:
    """The INSERT of all positions in their order, which notes where the fillers are."""
    per_page = table.rows_per_page
    assert per_page is not None, "it has kinds of pages"
    total = blocks(table)
    rows = _rows_of_block(table, "b")
    with_it = f"(i + 1) * r / {per_page}"
    without_it = f"i * r / {per_page}"
    return (
        f"WITH blocks AS (SELECT b, r, CAST(sum(r) OVER (ORDER BY b) AS int8) - r AS before "
        f"FROM (SELECT b, {rows} AS r FROM generate_series(0::int8, {total - 1}::int8) AS b) "
        f"AS b), "
        f"positions AS (SELECT b, i, before + {with_it} AS upto, "
        f"{with_it} > {without_it} AS is_row "
        f"FROM blocks, generate_series(0::int8, {per_page - 1}::int8) AS i), "
        f"loaded AS (INSERT INTO {quoting.identifier(table.name)} ({column_list(table)}) "
        f"SELECT {row_values(table, 'greatest(upto, 1)')} FROM positions "
        f"WHERE upto < {table.rows} OR (upto = {table.rows} AND is_row) ORDER BY b, i "
        f"RETURNING ctid AS place), "
        f"numbered AS (SELECT place, row_number() OVER () - 1 AS n FROM loaded), "
        f"found AS (SELECT place, n % {per_page} AS i, "
        f"{_rows_of_block(table, f'(n / {per_page})')} AS r FROM numbered) "
        f"INSERT INTO {_FILLERS} SELECT place FROM found WHERE {with_it} = {without_it}"
    )


def _bounds(table: TableProfile) -> list[tuple[int, int]]:
    sums = list(accumulate(kind.pages_frac for kind in table.pages))
    bounds = [million(total) for total in sums[:-1]] + [MILLION]
    return [(bound, kind.rows) for bound, kind in zip(bounds, table.pages, strict=True)]


def _rows_of_block(table: TableProfile, block: str) -> str:
    """SQL of the rows of a block, an int8."""
    place = f"mod({block} * {_STEP}::int8, {_RANGE}::int8) * {MILLION} / {_RANGE}::int8"
    *others, (_, last) = _bounds(table)
    if not others:
        return f"{last}::int8"
    cases = " ".join(f"WHEN {place} < {bound} THEN {rows}::int8" for bound, rows in others)
    return f"CASE {cases} ELSE {last}::int8 END"


def blocks(table: TableProfile) -> int:
    """Blocks of a table with kinds of pages, until its last row."""
    left = table.rows
    for block, rows in enumerate(_rows_by_block(table)):
        left -= rows
        if left <= 0:
            return block + 1
    raise AssertionError("blocks are without end")


def _rows_by_block(table: TableProfile) -> Iterator[int]:
    bounds = _bounds(table)
    for block in count():
        place = block * _STEP % _RANGE * MILLION // _RANGE
        yield next(rows for bound, rows in bounds if place < bound)
