"""
Loading pages that are not full: rows and fillers by one INSERT, and the fillers deleted again.

Then rows that shall be behind a redirect are HOT updated, in rounds with a VACUUM behind each.

A load's positions are cut into blocks of `rows_per_page`; each block is of one kind of pages, and
of its positions as many are rows as the kind has. The others are fillers with the values of the row
before them, which are deleted by their places and vacuumed away before there is an index:

    kind      the first whose bound is above mod(block * 2654435769, 2^32) * 10^6 / 2^32
    bound     the shares so far, in millionths
    row       position i of P is one if (i + 1) * rows / P > i * rows / P, whole numbers
    round     of a block's row: `redirect_rounds` of the core, half as many as there is room for

The last position is that of the last row. The twin does the same (`profile/pages.rs`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, count
from typing import TYPE_CHECKING, Any

from pgheadroom import quoting
from pgheadroom._core import redirect_rounds
from pgheadroom.play.values import MILLION, column_list, million, row_values
from pgheadroom.profile import TableProfile

if TYPE_CHECKING:
    import psycopg

_STEP = 2_654_435_769  # 2^32 by the golden ratio: its multiples are spread evenly
_RANGE = 2**32
_PLACES = "pg_temp.pgheadroom_places"


def fill_with_gaps(connection: psycopg.Connection[Any], table: TableProfile) -> None:
    """
    Fill a table that has kinds of pages and no index yet.

    Args:
        connection: A session in autocommit mode.
        table: One that was created.
    """
    name = quoting.identifier(table.name)
    connection.execute(
        f"CREATE TEMP TABLE {_PLACES.split('.')[1]} (place tid, round int2)".encode()
    )
    connection.execute(insert_with_fillers(table).encode())
    of_round = f"WHERE ctid = ANY (ARRAY(SELECT place FROM {_PLACES} WHERE round = %d))"
    connection.execute(f"DELETE FROM {name} {of_round % 0}".encode())
    vacuum = f"VACUUM {name}".encode()
    connection.execute(vacuum)
    same = quoting.identifier(table.columns[0].name)
    for number in range(1, last_round(table) + 1):
        update = f"UPDATE {name} SET {same} = {same} {of_round % number}"
        connection.execute(update.encode())
        connection.execute(vacuum)
    connection.execute(f"DROP TABLE {_PLACES}".encode())


def last_round(table: TableProfile) -> int:
    """Rounds of HOT updates that a load of the table has."""
    return max((number for rounds in _rounds(table) for number in rounds), default=0)


def insert_with_fillers(table: TableProfile) -> str:
    """The INSERT of all positions in their order, which notes the fillers and who is updated."""
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
        f"found AS (SELECT place, n % {per_page} AS i, n / {per_page} AS b, "
        f"{_rows_of_block(table, f'(n / {per_page})')} AS r FROM numbered), "
        f"marked AS (SELECT place, CASE WHEN {with_it} > {without_it} THEN "
        f"{_round_of_row(table, 'b', without_it)} ELSE 0 END AS round FROM found) "
        f"INSERT INTO {_PLACES} SELECT place, round FROM marked WHERE round IS NOT NULL"
    )


def _rounds(table: TableProfile) -> list[list[int]]:
    """Of each kind."""
    assert table.rows_per_page is not None, "it has kinds of pages"
    return [
        redirect_rounds(table.rows_per_page, table.fillfactor, kind.rows, kind.redirects)
        for kind in table.pages
    ]


def _round_of_row(table: TableProfile, block: str, row: str) -> str:
    """SQL of the round in which a block's row, counted from 0, is updated; NULL if never."""
    made = []
    for rounds in _rounds(table):
        listed = ",".join(str(number) for number in rounds)
        any_ = max(rounds, default=0) > 0
        made.append(f"nullif(('{{{listed}}}'::int2[])[{row} + 1], 0)" if any_ else "NULL::int2")
    return _by_kind(table, block, made)


def _bounds(table: TableProfile) -> list[int]:
    sums = list(accumulate(kind.pages_frac for kind in table.pages))
    return [million(total) for total in sums[:-1]] + [MILLION]


def _rows_of_block(table: TableProfile, block: str) -> str:
    """SQL of the rows of a block, an int8."""
    return _by_kind(table, block, [f"{kind.rows}::int8" for kind in table.pages])


def _by_kind(table: TableProfile, block: str, of_kinds: Sequence[str]) -> str:
    """SQL of what is of the kind of a block."""
    place = f"mod({block} * {_STEP}::int8, {_RANGE}::int8) * {MILLION} / {_RANGE}::int8"
    *others, last = of_kinds
    if not others:
        return last
    bounds = _bounds(table)[:-1]
    cases = " ".join(
        f"WHEN {place} < {bound} THEN {one}" for bound, one in zip(bounds, others, strict=True)
    )
    return f"CASE {cases} ELSE {last} END"


def blocks(table: TableProfile) -> int:
    """Blocks of a table with kinds of pages, until its last row."""
    left = table.rows
    for block, rows in enumerate(_rows_by_block(table)):
        left -= rows
        if left <= 0:
            return block + 1
    raise AssertionError("blocks are without end")


def _rows_by_block(table: TableProfile) -> Iterator[int]:
    kinds = list(zip(_bounds(table), table.pages, strict=True))
    for block in count():
        place = block * _STEP % _RANGE * MILLION // _RANGE
        yield next(kind.rows for bound, kind in kinds if place < bound)
