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

The last position is that of the last row. Where more line pointers are to be unused than fillers
leave, rows of NULLs are among the positions, which take little room: they are deleted first, and a
second wave of rows and fillers takes the room that is left (`loading_waves` of the core). The twin
does the same (`profile/pages.rs`, `profile/line_pointers.rs`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, count
from typing import TYPE_CHECKING, Any

from pgheadroom import quoting
from pgheadroom._core import loading_waves, redirect_rounds
from pgheadroom.play.values import MILLION, column_list, million, row_values
from pgheadroom.profile import TableProfile
from pgheadroom.profile.pages import of_load

if TYPE_CHECKING:
    import psycopg

_STEP = 2_654_435_769  # 2^32 by the golden ratio: its multiples are spread evenly
_RANGE = 2**32
PLACES = "pg_temp.pgheadroom_places"
"""Which places are deleted (round 0) or HOT updated, in which round."""


def fill_with_gaps(connection: psycopg.Connection[Any], table: TableProfile) -> None:
    """
    Fill a table that has kinds of pages and no index yet.

    Args:
        connection: A session in autocommit mode.
        table: One that was created.
    """
    name = quoting.identifier(table.name)
    connection.execute(f"CREATE TEMP TABLE {PLACES.split('.')[1]} (place tid, round int2)".encode())
    of_round = f"WHERE ctid = ANY (ARRAY(SELECT place FROM {PLACES} WHERE round = %d))"
    vacuum = f"VACUUM {name}".encode()
    if has_narrow(table):
        connection.execute(insert_wave(table, 0).encode())
        connection.execute(f"DELETE FROM {name} {of_round % NARROW}".encode())
        connection.execute(vacuum)
        connection.execute(insert_wave(table, 1).encode())
    else:
        connection.execute(insert_with_fillers(table).encode())
    connection.execute(f"DELETE FROM {name} {of_round % 0}".encode())
    connection.execute(vacuum)
    same = quoting.identifier(table.columns[0].name)
    for number in range(1, last_round(table) + 1):
        update = f"UPDATE {name} SET {same} = {same} {of_round % number}"
        connection.execute(update.encode())
        connection.execute(vacuum)
    connection.execute(f"DROP TABLE {PLACES}".encode())


def last_round(table: TableProfile) -> int:
    """Rounds of HOT updates that a load of the table has."""
    return max((number for rounds in _rounds(table) for number in rounds), default=0)


def insert_with_fillers(table: TableProfile) -> str:
    """The INSERT of all positions in their order, which notes the fillers and who is updated."""
    per_page = table.rows_per_page
    assert per_page is not None, "it has kinds of pages"
    total = blocks(table)
    rows = by_kind(table, "b", [f"{kind.rows}::int8" for kind in table.pages])
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
        f"{by_kind(table, f'(n / {per_page})', [f'{kind.rows}::int8' for kind in table.pages])} "
        f"AS r FROM numbered), "
        f"marked AS (SELECT place, CASE WHEN {with_it} > {without_it} THEN "
        f"{_round_of_row(table, 'b', without_it)} ELSE 0 END AS round FROM found) "
        f"INSERT INTO {PLACES} SELECT place, round FROM marked WHERE round IS NOT NULL"
    )


NARROW = -1
"""The round in which rows of NULLs are deleted."""


def _waves(table: TableProfile) -> list[list[list[tuple[int, int]]]]:
    """Of each kind."""
    full = of_load(table)
    return [loading_waves(full, kind.rows, kind.redirects, kind.unused) for kind in table.pages]


def has_narrow(table: TableProfile) -> bool:
    """Whether rows of NULLs are loaded, whose line pointers a second wave takes."""
    return any(code == 2 for waves in _waves(table) for code, _ in waves[0])


def insert_wave(table: TableProfile, wave: int) -> str:
    """The INSERT of a wave's positions in their order, which notes what of them goes, and when."""
    of_wave = [waves[wave] for waves in _waves(table)]
    kinds = [str(n) for n in range(len(of_wave))]
    lengths = [str(len(positions)) for positions in of_wave]

    def listed(numbers: Iterable[int]) -> str:
        return "'{" + ",".join(map(str, numbers)) + "}'::int2[]"

    def of_kind(lists: Iterable[Iterable[int]], place: str) -> str:
        cases = " ".join(f"WHEN {n} THEN {listed(one)}" for n, one in enumerate(lists))
        return f"(CASE k {cases} END)[{place}]"

    codes = of_kind(([code for code, _ in one] for one in of_wave), "i")
    numbers = of_kind(([number for _, number in one] for one in of_wave), "i")
    rounds = of_kind(_rounds(table), "number")
    sizes = " ".join(f"WHEN {n} THEN {length}" for n, length in enumerate(lengths))
    rows = by_kind(table, "b", [f"{kind.rows}::int8" for kind in table.pages])
    return (
        f"WITH blocks AS (SELECT b, k, CAST(sum(r) OVER (ORDER BY b) AS int8) - r AS before "
        f"FROM (SELECT b, {by_kind(table, 'b', kinds)} AS k, {rows} AS r "
        f"FROM generate_series(0::int8, {blocks(table) - 1}::int8) AS b) AS b), "
        f"all_positions AS (SELECT b, i, k, before, {codes} AS code, {numbers} AS number "
        f"FROM blocks, generate_series(1, CASE k {sizes} END) AS i), "
        f"positions AS (SELECT row_number() OVER (ORDER BY b, i) AS n, k, code, number, "
        f"greatest(before + number, 1) AS row FROM all_positions "
        f"WHERE before + number < {table.rows} "
        f"OR (before + number = {table.rows} AND code = 1)), "
        f"loaded AS (INSERT INTO {quoting.identifier(table.name)} ({column_list(table)}) "
        f"SELECT v.* FROM positions AS p LEFT JOIN LATERAL "
        f"(SELECT {row_values(table, 'p.row')} WHERE p.code <> 2) AS v ON true ORDER BY p.n "
        f"RETURNING ctid AS place), "
        f"numbered AS (SELECT place, row_number() OVER () AS n FROM loaded), "
        f"marked AS (SELECT place, CASE code WHEN 0 THEN 0 WHEN 2 THEN {NARROW} "
        f"ELSE nullif({rounds}, 0) END AS round FROM numbered JOIN positions USING (n)) "
        f"INSERT INTO {PLACES} SELECT place, round FROM marked WHERE round IS NOT NULL"
    )


def _rounds(table: TableProfile) -> list[list[int]]:
    """Of each kind."""
    full = of_load(table)
    return [redirect_rounds(full, kind.rows, kind.redirects, kind.unused) for kind in table.pages]


def _round_of_row(table: TableProfile, block: str, row: str) -> str:
    """SQL of the round in which a block's row, counted from 0, is updated; NULL if never."""
    made = []
    for rounds in _rounds(table):
        listed = ",".join(str(number) for number in rounds)
        any_ = max(rounds, default=0) > 0
        made.append(f"nullif(('{{{listed}}}'::int2[])[{row} + 1], 0)" if any_ else "NULL::int2")
    return by_kind(table, block, made)


def _bounds(table: TableProfile) -> list[int]:
    sums = list(accumulate(kind.pages_frac for kind in table.pages))
    return [million(total) for total in sums[:-1]] + [MILLION]


def by_kind(table: TableProfile, block: str, of_kinds: Sequence[str]) -> str:
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
