"""
The shape of a database's tables: columns, average widths, fillfactor, B-trees.

Reads catalogs, and pg_stats as far as the role may see it; no table is touched.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import psycopg


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveColumn:
    """
    A column of a live table.

    `avg_width_bytes` is pg_stats' figure, header included; None where it cannot be seen.
    """

    name: str
    type: str
    typlen: int
    typalign: str
    avg_width_bytes: int | None
    null_frac: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveTable:
    """
    A live table; `rows` is the planner's estimate, None before the first VACUUM or ANALYZE.

    An index is its name and its columns' names, None for an expression.
    """

    schema: str
    name: str
    rows: int | None
    fillfactor: int
    columns: tuple[LiveColumn, ...]
    indexes: tuple[tuple[str, tuple[str | None, ...]], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """What the role may see, and what it therefore cannot see."""

    level: str
    missing: tuple[str, ...]


_TABLES = """
SELECT c.oid::bigint, n.nspname, c.relname,
       CASE WHEN c.reltuples >= 0 THEN c.reltuples::bigint END,
       coalesce((SELECT option_value FROM pg_options_to_table(c.reloptions)
                 WHERE option_name = 'fillfactor'), '100')::int
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'r' AND n.nspname <> 'information_schema' AND n.nspname !~ '^pg_'
  AND (%(table)s::text IS NULL OR %(table)s IN (c.relname, n.nspname || '.' || c.relname))
ORDER BY n.nspname, c.relname
"""
_COLUMNS = """
SELECT a.attrelid::bigint, a.attname, format_type(coalesce(nullif(t.typbasetype, 0), t.oid),
       CASE WHEN t.typbasetype <> 0 THEN t.typtypmod ELSE a.atttypmod END),
       a.attlen, a.attalign::text, s.avg_width, s.null_frac
FROM pg_attribute a
JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_type t ON t.oid = a.atttypid
LEFT JOIN pg_stats s ON s.schemaname = n.nspname AND s.tablename = c.relname
                    AND s.attname = a.attname AND NOT s.inherited
WHERE a.attrelid = ANY (%(oids)s::bigint[]::oid[]) AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attrelid, a.attnum
"""
_INDEXES = """
SELECT i.indrelid::bigint, c.relname,
       array_agg(a.attname::text ORDER BY k.place)
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
JOIN pg_am m ON m.oid = c.relam AND m.amname = 'btree'
CROSS JOIN LATERAL unnest(i.indkey::int2[]) WITH ORDINALITY AS k(attnum, place)
LEFT JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum AND k.attnum <> 0
WHERE i.indrelid = ANY (%(oids)s::bigint[]::oid[])
GROUP BY 1, 2 ORDER BY 1, 2
"""


def read_tables(connection: psycopg.Connection[Any], table: str | None) -> tuple[LiveTable, ...]:
    """
    Read the user's tables, ordered by schema and name.

    Args:
        connection: From `read_only_session`.
        table: Only tables of this name, or `schema.name`.
    """
    found = connection.execute(_TABLES, {"table": table}).fetchall()
    oids = [row[0] for row in found]
    columns: dict[int, list[LiveColumn]] = {}
    for row in connection.execute(_COLUMNS, {"oids": oids}):
        column = LiveColumn(
            name=row[1],
            type=row[2],
            typlen=row[3],
            typalign=row[4],
            avg_width_bytes=row[5],
            null_frac=row[6],
        )
        columns.setdefault(row[0], []).append(column)
    indexes: dict[int, list[tuple[str, tuple[str | None, ...]]]] = {}
    for oid, name, names in connection.execute(_INDEXES, {"oids": oids}):
        indexes.setdefault(oid, []).append((name, tuple(names)))
    return tuple(
        LiveTable(
            schema=schema,
            name=name,
            rows=rows,
            fillfactor=fillfactor,
            columns=tuple(columns.get(oid, ())),
            indexes=tuple(indexes.get(oid, ())),
        )
        for oid, schema, name, rows, fillfactor in found
    )


def read_access(connection: psycopg.Connection[Any]) -> Access:
    """The role's level of access, of the three that the documentation names."""
    row = connection.execute(
        "SELECT pg_has_role(current_user, 'pg_read_all_data', 'USAGE'),"
        " pg_has_role(current_user, 'pg_monitor', 'USAGE')"
    ).fetchone()
    assert row is not None, "a SELECT without FROM returns one row"
    reads_all, monitors = row
    if reads_all:
        return Access(level="pg_read_all_data", missing=())
    hidden = "pg_stats of tables without SELECT: their widths are estimated from types"
    return Access(level="pg_monitor" if monitors else "none beyond its own", missing=(hidden,))
