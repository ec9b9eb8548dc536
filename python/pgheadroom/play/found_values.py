"""
What a predicate is for the values that it reads: those of the load, and what updates make of them.

    turn 0     the values of loaded rows, and of those that the run inserts
    turn n+1   what each update makes of those of turn n, as far as none had it before

Updates change a value by a rule and nothing else, so these are the run's own values, whichever
rows it updates: a share alone would not say that a number which counts up to 3 makes a predicate
true that is true for no loaded row.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pgheadroom import quoting
from pgheadroom.play.type_values import WRAPPED, enum_type
from pgheadroom.play.values import changed, row_values
from pgheadroom.profile import Change, ColumnProfile, Kind, TableProfile
from pgheadroom.profile.tables import Stated

if TYPE_CHECKING:
    import psycopg

VALUES_MAX = 100_000
"""Values that are kept; arbitrary: a few megabytes of a profile."""
BYTES_MAX = 4_000_000
"""Of them as text; arbitrary."""
TURNS_MAX = 100
"""Updates of a value that are followed; arbitrary."""
_MISSED = 1e-3  # probability that a row is updated more often than is followed; arbitrary


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """Where values come from: sets of updates, and the loaded rows' table with a column `data`."""

    table: TableProfile
    sets: Sequence[tuple[Change, ...]]
    rows: str
    inserted: int
    """Rows that the run inserts, at most."""
    turns: int


def turns_of(rows: int, updates: float) -> int:
    """
    How often the most updated row is, where any is as likely: a Poisson distribution's far end.

    Args:
        rows: Rows of the table.
        updates: Of a row, on average.
    """
    if updates <= 0:
        return 0
    if updates >= TURNS_MAX:
        return TURNS_MAX
    term = passed = math.exp(-updates)
    count = 0
    while count < TURNS_MAX and (1 - passed) * rows > _MISSED:
        count += 1
        term *= updates / count
        passed += term
    return max(count, 1)


def with_found(
    connection: psycopg.Connection[Any], stated: Stated, of: Reached, name: str
) -> Stated:
    """
    A predicate with the values for which it is true, and those for which it is not.

    Args:
        connection: A session in autocommit mode.
        stated: The predicate.
        of: Where values come from.
        name: Of a table to make, in a schema.

    Returns:
        Without any where a column that it reads has no text that the twin has too.
    """
    read = [column for column in of.table.columns if column.name in stated.columns]
    texts = [_text(column, f"(t.data).{quoting.identifier(column.name)}") for column in read]
    if not read or None in texts:
        return stated
    key = f"ARRAY[{', '.join(_copied(text) for text in texts if text is not None)}]"
    row_type = f"public.{quoting.identifier(of.table.name)}"
    _run(connection, f"CREATE TABLE {name} (turn int4, key text[], truth boolean, data {row_type})")
    truth = (
        f"(SELECT COALESCE(({stated.expression}), false) "
        f"FROM (SELECT (t.data).*) AS {quoting.identifier(of.table.name)})"
    )
    found = _found(connection, of, read, (name, key, truth))
    _run(connection, f"DROP TABLE {name}")
    return _kept(stated, read, found)


def _found(
    connection: psycopg.Connection[Any],
    of: Reached,
    read: Sequence[ColumnProfile],
    sql: tuple[str, str, str],
) -> dict[tuple[str, ...], bool]:
    """Turn by turn, until nothing new comes, or more than is kept."""
    name, key, truth = sql
    row_type = f"public.{quoting.identifier(of.table.name)}"
    size = "octet_length(array_to_string(key, ''))"
    found: dict[tuple[str, ...], bool] = {}
    size_bytes = 0
    for turn, sources in enumerate(_turns(of, read, name, row_type)):
        new = 0
        for source in sources:
            rows = _tried(
                connection,
                f"INSERT INTO {name} SELECT {turn}, key, {truth}, data FROM ("
                f"SELECT key, data, sum({size}) OVER (ROWS UNBOUNDED PRECEDING) - {size} AS passed "
                f"FROM (SELECT DISTINCT ON (key) key, data FROM (SELECT {key} AS key, t.data "
                f"FROM ({source}) AS t(data)) AS t WHERE NOT EXISTS "
                f"(SELECT FROM {name} AS old WHERE old.key = t.key) "
                f"LIMIT {VALUES_MAX + 1}) AS t) AS t "
                # One beyond what is kept says that there are more; no others come here.
                f"WHERE passed <= {BYTES_MAX - size_bytes} RETURNING key, truth",
            )
            if rows is None:  # as a server's run would end, if it came so far
                return found
            size_bytes += sum(len(text.encode()) for values, _ in rows for text in values)
            if len(found) + len(rows) > VALUES_MAX or size_bytes > BYTES_MAX:
                return found
            found |= {tuple(values): is_true for values, is_true in rows}
            new += len(rows)
        if new == 0:
            break
    return found


def _turns(
    of: Reached, read: Sequence[ColumnProfile], name: str, row_type: str
) -> Iterator[list[str]]:
    """Queries of rows, of one column, turn by turn."""
    loaded = [f"SELECT data FROM {of.rows}"]
    if of.inserted:
        first = of.table.rows + 1
        loaded.append(
            f"SELECT ROW({row_values(of.table, 'g.i')})::{row_type} FROM "
            f"generate_series({first}::int8, {of.table.rows + of.inserted}::int8) AS g(i)"
        )
    yield loaded
    names = {column.name for column in read}
    ways = {tuple(one for one in sets if one.column in names) for sets in of.sets}
    ways.discard(())
    for turn in range(1, of.turns + 1):
        yield [
            f"SELECT ROW({', '.join(_after(of.table, way))})::{row_type} FROM {name} AS r "
            f"WHERE r.turn = {turn - 1}"
            for way in sorted(ways, key=repr)
        ]


def _after(table: TableProfile, way: Sequence[Change]) -> Iterator[str]:
    """SQL of a row's columns after an update that changes all that it sets."""
    changes = {change.column: change for change in way}
    for column in table.columns:
        old = f"(r.data).{quoting.identifier(column.name)}"
        change = changes.get(column.name)
        if change is None:
            yield old
        else:
            growth = str(change.grows_min_bytes)
            yield changed(column, replace(change, changed_frac=1.0), old, "1", growth)


def _text(column: ColumnProfile, value: str) -> str | None:
    """SQL of a value as the twin has it, as text; None where it does not have it so."""
    base = column.base_type
    if column.elements is not None:
        return None
    if column.labels:
        labels = f"enum_range(CAST(NULL AS {enum_type(column)}))"
        return f"CAST(array_position({labels}, {value}) - 1 AS text)"
    if column.kind in (Kind.INTEGER, Kind.BOOLEAN) or base == "numeric":
        whole = "int4" if column.kind is Kind.BOOLEAN else "int8"
        return f"CAST(CAST({value} AS {whole}) AS text)"
    if column.kind is Kind.TIMESTAMP:
        zone = "+00" if base == "timestamptz" else ""
        passed = f"EXTRACT(epoch FROM {value} - CAST('2000-01-01 00:00:00{zone}' AS {base}))"
        return f"CAST(CAST({passed} * 1000000 AS int8) AS text)"
    if base == "date":
        return f"CAST({value} - date '2000-01-01' AS text)"
    if column.kind in (Kind.STRING, Kind.PADDED):
        return f"CAST({value} AS text)"
    return WRAPPED[base].inside.format(old=value) if base in WRAPPED else None


def _copied(text: str) -> str:
    """SQL of a text as COPY writes it, which tells NULL from all others."""
    return rf"COALESCE(replace({text}, '\', '\\'), '\N')"


def _kept(
    stated: Stated, read: Sequence[ColumnProfile], found: dict[tuple[str, ...], bool]
) -> Stated:
    return replace(
        stated,
        columns=tuple(column.name for column in read),
        true_for=tuple(values for values, is_true in found.items() if is_true),
        false_for=tuple(values for values, is_true in found.items() if not is_true),
    )


def _run(connection: psycopg.Connection[Any], sql: str) -> None:
    connection.execute(sql.encode(), prepare=True)


def _tried(connection: psycopg.Connection[Any], sql: str) -> list[tuple[Any, ...]] | None:
    import psycopg  # noqa: PLC0415 - loads libpq, for nothing where no server is asked

    try:
        return connection.execute(sql.encode(), prepare=True).fetchall()
    except (psycopg.DataError, psycopg.errors.QueryCanceled):
        return None
