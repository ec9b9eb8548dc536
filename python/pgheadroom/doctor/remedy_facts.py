"""
What steps rest on: tables, indexes, keys and settings as they are when a plan is made.

Each is asked for by itself once it is settled that it is to be a step. The text of an index waits
for who holds its table, so that one may be had no answer for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pgheadroom.doctor import definitions
from pgheadroom.plan.remedies import PlannedIndex, PlannedRelation
from pgheadroom.quoting import printable

if TYPE_CHECKING:
    import psycopg

_INDEX = f"""
SELECT c.oid::int8 AS oid, c.relfilenode::int8 AS relfilenode, n.nspname AS schema,
       c.relname AS name, i.indisvalid AND i.indislive AS is_valid,
       coalesce(s.spcname, CASE WHEN {definitions.HAS_OTHER_DEFAULT} THEN '' END) AS tablespace,
{definitions.MARKS},
       EXISTS (SELECT FROM pg_depend x
               WHERE x.classid = 'pg_class'::regclass AND x.objid = c.oid AND x.deptype = 'x')
         AS is_of_extension,
       pg_get_indexdef(c.oid) AS definition, c.relkind::text AS relkind, i.indisunique AS is_unique,
       i.indisexclusion AS is_exclusion, pg_relation_size(c.oid) AS size_bytes,
       am.amname = 'btree' AND i.indpred IS NULL AND c.relpersistence = 'p' AS is_counted,
       t.oid::int8 AS table_oid, t.relfilenode::int8 AS table_relfilenode,
       tn.nspname AS table_schema, t.relname AS table_name,
       t.relpages * 8192::int8 AS table_bytes
FROM pg_index i
JOIN pg_class c ON c.oid = i.indexrelid
JOIN pg_am am ON am.oid = c.relam
JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_class t ON t.oid = i.indrelid
JOIN pg_namespace tn ON tn.oid = t.relnamespace
LEFT JOIN pg_tablespace s ON s.oid = c.reltablespace
WHERE c.oid = %(oid)s::oid
"""
_TABLE = """
SELECT c.oid::int8 AS oid, c.relfilenode::int8 AS relfilenode, n.nspname AS schema,
       c.relname AS name, c.relkind::text AS relkind, c.relpages * 8192::int8 AS size_bytes,
       (SELECT coalesce(jsonb_object_agg(o.option_name, o.option_value), '{}')
        FROM pg_options_to_table(c.reloptions) o) AS options,
       (SELECT coalesce(jsonb_object_agg('toast.' || o.option_name, o.option_value), '{}')
        FROM pg_class t, pg_options_to_table(t.reloptions) o
        WHERE t.oid = c.reltoastrelid) AS toast_options
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.oid = %(oid)s::oid
"""
_KEY = """
SELECT c.oid::int8 AS oid, c.relfilenode::int8 AS relfilenode, n.nspname AS schema,
       c.relname AS name, c.relkind::text AS relkind, c.relpages * 8192::int8 AS size_bytes,
       k.confrelid::int8 AS parent_oid, (k.conname || '_idx')::name::text AS index_name,
       EXISTS (SELECT FROM pg_class x
               WHERE x.relnamespace = c.relnamespace AND x.relname = (k.conname || '_idx')::name)
         AS is_taken,
       format('CREATE INDEX %%I ON %%I.%%I USING btree (%%s)', (k.conname || '_idx')::name,
              n.nspname, c.relname,
              (SELECT string_agg(quote_ident(a.attname), ', ' ORDER BY u.place)
               FROM unnest(k.conkey) WITH ORDINALITY u(attnum, place)
               JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = u.attnum))
         AS definition,
       greatest(c.reltuples, 0)::float8 AS reltuples
FROM pg_constraint k
JOIN pg_class c ON c.oid = k.conrelid
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE k.oid = %(oid)s::oid
"""
_SETTING = """
SELECT s.name, s.setting, s.unit, s.boot_val, s.context, s.source, s.vartype, s.pending_restart,
       coalesce(s.sourcefile ~ 'postgresql[.]auto[.]conf$', false) AS is_auto,
       s.sourcefile IS NULL AND s.source = 'configuration file' AS is_hidden
FROM pg_settings s WHERE s.name = %(name)s
"""
_UNITS = {
    "B": 1.0,
    "kB": 1024.0,
    "8kB": 8192.0,
    "MB": 1024.0**2,
    "GB": 1024.0**3,
    "TB": 1024.0**4,
    "us": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "min": 60.0,
    "h": 3600.0,
    "d": 86_400.0,
}
_AMOUNT = re.compile(r"(-?[0-9]+(?:[.][0-9]+)?) ?([A-Za-z]*)", re.ASCII)
FactRow = Mapping[str, Any]


class RemedyFacts:
    """
    Asks a database for what steps rest on.

    Args:
        connection: From `read_only_session`.
    """

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def index(self, oid: int) -> FactRow | None:
        """An index by its OID; None where it is gone, or held by somebody."""
        return self._row(_INDEX, {"oid": oid})

    def table(self, oid: int) -> FactRow | None:
        """A table by its OID."""
        return self._row(_TABLE, {"oid": oid})

    def key(self, oid: int) -> FactRow | None:
        """A foreign key by its constraint's OID, with the index that it wants."""
        return self._row(_KEY, {"oid": oid})

    def setting(self, name: str) -> FactRow | None:
        """A setting by its name."""
        return self._row(_SETTING, {"name": name})

    def settings(self) -> dict[str, str]:
        """All of them."""
        rows = self._connection.execute("SELECT name, setting FROM pg_settings").fetchall()
        return {str(name): str(setting) for name, setting in rows}

    def is_superuser(self) -> bool:
        """Whether the role that asks is one."""
        (row,) = self.rows("SELECT rolsuper AS is_one FROM pg_roles WHERE rolname = current_user")
        return bool(row["is_one"])

    def rows(self, query: str) -> list[FactRow]:
        """Of a query without parameters."""
        from psycopg.rows import dict_row  # noqa: PLC0415 - loads libpq

        with self._connection.cursor(row_factory=dict_row) as cursor:
            return list(cursor.execute(query.encode()).fetchall())

    def _row(self, query: str, values: FactRow) -> FactRow | None:
        import psycopg  # noqa: PLC0415 - loads libpq, which most commands do not need
        from psycopg.rows import dict_row  # noqa: PLC0415

        try:
            with self._connection.cursor(row_factory=dict_row) as cursor:
                return cursor.execute(query.encode(), values).fetchone()
        except psycopg.errors.LockNotAvailable:
            return None


def relation_of(row: FactRow) -> PlannedRelation:
    """The table or index of a row."""
    return PlannedRelation(
        schema=str(row["schema"]),
        name=str(row["name"]),
        oid=int(row["oid"]),
        relfilenode=int(row["relfilenode"]),
    )


def table_of(row: FactRow) -> PlannedRelation:
    """The table of an index's row."""
    return PlannedRelation(
        schema=str(row["table_schema"]),
        name=str(row["table_name"]),
        oid=int(row["table_oid"]),
        relfilenode=int(row["table_relfilenode"]),
    )


def index_of(row: FactRow) -> PlannedIndex:
    """The index of a row."""
    tablespace = row["tablespace"]
    return PlannedIndex(
        relation=relation_of(row),
        definition=str(row["definition"]),
        tablespace=None if tablespace is None else str(tablespace),
        is_valid=bool(row["is_valid"]),
        comment=row["comment"],
        statistics=row["statistics"],
    )


def is_shown(index: PlannedIndex) -> bool:
    """Whether the text that makes it can stand in a file for people as it is."""
    return printable(index.definition) == index.definition


def in_unit(value: str, unit: str | None) -> str | None:
    """A value such as `4096MB` in the unit of pg_settings; None where it is not understood."""
    match = _AMOUNT.fullmatch(value)
    if match is None:
        return None
    digits, own = match.groups()
    if not own:
        return digits
    if unit not in _UNITS or own not in _UNITS:
        return None
    amount = float(digits) * _UNITS[own] / _UNITS[unit]
    return str(round(amount)) if abs(amount - round(amount)) < 1e-6 else None
