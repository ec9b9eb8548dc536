"""
What an index was, to make it again: asked once it is settled that it is to go.

The text of an index locks its table for a moment, so it is no part of a rule's query: a table that
somebody holds would stop the rule for all others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pgheadroom.doctor.rule import QueryRow
from pgheadroom.doctor.values import Finding
from pgheadroom.plan.index_marks import marks_again
from pgheadroom.quoting import printable, shown_relation

HAS_OTHER_DEFAULT = """(current_setting('default_tablespace') <> ''
  OR EXISTS (SELECT FROM pg_db_role_setting o, unnest(o.setconfig) w
             WHERE starts_with(w, 'default_tablespace=')))"""
"""Whether an index that is made without a word may lie elsewhere than in the database's own
tablespace: default_tablespace is set, here or of a role or a database."""
MARKS = """
       obj_description(c.oid, 'pg_class') AS comment,
       (SELECT jsonb_object_agg(e.attnum, e.attstattarget)
        FROM pg_attribute e WHERE e.attrelid = c.oid AND e.attstattarget >= 0) AS statistics"""
"""Of an index, pg_class c: what its definition does not have."""

_SQL = f"""
SELECT pg_get_indexdef(i.indexrelid) AS definition, c.relkind = 'I' AS is_partitioned,
       'CREATE ' || CASE WHEN i.indisunique THEN 'UNIQUE ' ELSE '' END || 'INDEX ' AS head,
       quote_ident(c.relname) || ' ON ' AS name, n.nspname AS schema, c.relname AS own_name,
       coalesce(quote_ident(s.spcname), CASE WHEN {HAS_OTHER_DEFAULT} THEN $$''$$ END)
         AS tablespace,{MARKS}
FROM pg_index i
JOIN pg_class c ON c.oid = i.indexrelid
JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_tablespace s ON s.oid = c.reltablespace
WHERE i.indexrelid = {{oid}}
  -- Who holds the table, or waits for it, would make us wait, and others behind us.
  AND NOT EXISTS (SELECT FROM pg_locks l
                  WHERE l.locktype = 'relation' AND l.mode = 'AccessExclusiveLock'
                    AND l.relation IN (i.indrelid, i.indexrelid)
                    AND l.database = (SELECT oid FROM pg_database
                                      WHERE datname = current_database()))
"""
_UNKNOWN = "Note its definition first (pg_get_indexdef): it could not be read, for a lock mostly."
_ODD = "Note its definition first (pg_get_indexdef): characters of it cannot be printed here."


def with_definition(finding: Finding, ask: Callable[[str], QueryRow | None]) -> Finding:
    """
    The finding, with what makes its index again as undo.

    Args:
        finding: Of a rule that drops an index, or of any other.
        ask: Gives the row of a query; None where the server does not.
    """
    remedy = finding.remedy
    if "index_oid" not in finding.numbers or not remedy.sql:
        return finding
    row = ask(_SQL.format(oid=finding.numbers["index_oid"]))
    undo = None if row is None else _made_again(row)
    if undo is not None and printable(undo) == undo:
        return replace(finding, remedy=replace(remedy, undo=undo))
    why = _UNKNOWN if undo is None else _ODD
    return replace(finding, remedy=replace(remedy, text=f"{remedy.text} {why}"))


def _made_again(row: QueryRow) -> str | None:
    """Without a lock on writers; of a partitioned table with all its partitions; in its place."""
    head, name = str(row["head"]), str(row["name"])
    begin = f"{head}{name}{'ONLY ' if row['is_partitioned'] else ''}"
    definition = str(row["definition"])
    if not definition.startswith(begin):
        return None
    how = "" if row["is_partitioned"] else "CONCURRENTLY "
    made = f"{head}{how}{name}{definition.removeprefix(begin)}"
    if row["tablespace"] is not None:
        made = f"SET default_tablespace = {row['tablespace']}; {made}; RESET default_tablespace"
    name = shown_relation(row["schema"], row["own_name"])
    return "; ".join((made, *marks_again(name, row["comment"], row["statistics"])))
