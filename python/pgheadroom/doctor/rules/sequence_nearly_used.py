"""Sequences that come to their end, or to that of the column that takes their numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pgheadroom.doctor.rule import Facts, QueryRow, Rule
from pgheadroom.doctor.values import Blind, Finding, Remedy
from pgheadroom.quoting import called, shown_relation
from pgheadroom.units import percent

_SHARE_MIN = 0.8
_READ_MAX = (
    "least(1000, current_setting('max_locks_per_transaction')::int"
    " * current_setting('max_connections')::int / 4)"
)
"""A quarter of the locks that there are, so that others find some."""
_END_OF = {"smallint": 2**15 - 1, "integer": 2**31 - 1, "bigint": 2**63 - 1}

# A column of a domain has the end of the type below it. Reading a sequence's value locks it until
# the statement ends, so that the number of those that are read is bounded: first those of the
# largest tables. A bigint that goes to its type's end is not read unless a narrower column takes
# its numbers.
_SQL = f"""
WITH locked AS MATERIALIZED (
    SELECT l.relation FROM pg_locks l
    WHERE l.locktype = 'relation' AND l.mode IN ('ShareLock', 'ShareRowExclusiveLock',
                                                 'ExclusiveLock', 'AccessExclusiveLock')
), found AS MATERIALIZED (
    SELECT s.seqrelid AS oid, n.nspname AS schema, c.relname AS name, s.seqmin AS min_value,
           s.seqmax AS max_value, format_type(s.seqtypid, NULL) AS data_type,
           tn.nspname AS table_schema, t.relname AS table_name, a.attname AS column_name,
           format_type(b.oid, NULL) AS column_type, d.deptype = 'i' AS is_identity,
           has_sequence_privilege(s.seqrelid, 'SELECT,USAGE') AS is_readable,
           s.seqrelid IN (SELECT relation FROM locked) AS is_locked,
           row_number() OVER (
             ORDER BY has_sequence_privilege(s.seqrelid, 'SELECT,USAGE') DESC,
                      t.reltuples DESC NULLS LAST, s.seqrelid) AS place
    FROM pg_sequence s
    JOIN pg_class c ON c.oid = s.seqrelid
    JOIN pg_namespace n ON n.oid = c.relnamespace
    LEFT JOIN pg_depend d ON d.classid = 'pg_class'::regclass AND d.objid = s.seqrelid
      AND d.refclassid = 'pg_class'::regclass AND d.refobjsubid > 0 AND d.deptype IN ('a', 'i')
    LEFT JOIN pg_class t ON t.oid = d.refobjid
    LEFT JOIN pg_namespace tn ON tn.oid = t.relnamespace
    LEFT JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = d.refobjsubid
    LEFT JOIN LATERAL (
        WITH RECURSIVE known AS (
            SELECT oid, typbasetype FROM pg_type WHERE oid = a.atttypid
            UNION ALL
            SELECT y.oid, y.typbasetype FROM known k JOIN pg_type y ON y.oid = k.typbasetype
        ) SELECT oid FROM known WHERE typbasetype = 0
    ) b ON true
    WHERE NOT s.seqcycle AND s.seqincrement > 0 AND c.relpersistence <> 't'
      AND NOT (c.relpersistence = 'u' AND pg_is_in_recovery())
      AND (s.seqmax < 9223372036854775807 OR b.oid IN ('int2'::regtype, 'int4'::regtype))
)
SELECT f.*, f.place > {_READ_MAX} AS is_beyond,
       CASE WHEN f.is_readable AND NOT f.is_locked AND f.place <= {_READ_MAX}
            THEN pg_sequence_last_value(f.oid::regclass) END AS last_value
FROM found f
"""


def _decide(_facts: Facts, rows: Sequence[QueryRow]) -> Iterator[Finding | Blind]:
    for why, count in (
        ("may not be read by the role", sum(not row["is_readable"] for row in rows)),
        ("are locked at this moment", sum(row["is_readable"] and row["is_locked"] for row in rows)),
        (
            "are not read, for reading locks them: those of the largest tables are",
            sum(row["is_readable"] and row["is_beyond"] for row in rows),
        ),
    ):
        if count:
            yield Blind(rule=RULE.id, why=f"{count:,} sequences {why}")
    for row in rows:
        last, least, most = row["last_value"], int(row["min_value"]), int(row["max_value"])
        if last is None:
            continue
        of_column = _END_OF.get(row["column_type"] or "", 2**63 - 1)
        end = min(most, of_column)
        share = (int(last) - least) / max(end - least, 1)
        if share < _SHARE_MIN:
            continue
        ends = (
            f"the end of {row['column_type']}, its column's type"
            if of_column < most
            else (row["data_type"] if most == _END_OF.get(row["data_type"]) else "its MAXVALUE")
        )
        yield RULE.finding(
            "warning",
            called(row["schema"], row["name"]),
            f"{percent(share)} of its numbers are used: {last:,} of {end:,} ({ends}).",
            remedy=_remedy(row, of_column),
            last_value=int(last),
            end_value=end,
            used_frac=round(share, 4),
            data_type=row["data_type"],
            column_type=row["column_type"],
        )


def _remedy(row: QueryRow, of_column: int) -> Remedy:
    """A statement only where the column has room already: else numbers would not fit into it."""
    name = shown_relation(row["schema"], row["name"])
    kind = row["data_type"]
    if row["column_name"] is None:
        return Remedy(
            text="No column owns it. Find whose default takes its numbers, and who else stores "
            f"them; these have to be bigint before the sequence becomes it ({name}).",
        )
    column = f"{called(row['table_schema'], row['table_name'])}.{row['column_name']}"
    if of_column < 2**63 - 1:
        after = (
            "The sequence of an identity column becomes bigint with it."
            if row["is_identity"]
            else f"Only then the sequence (ALTER SEQUENCE {name} AS bigint): before, its numbers "
            "do not fit."
        )
        return Remedy(
            text=f"Make {column} bigint first, and the columns that refer to it. ALTER COLUMN "
            "... TYPE bigint does it at once; a second column that is filled step by step, and "
            f"then takes the name, does it without a long lock. {after}",
            lock="ACCESS EXCLUSIVE on the table while it is rewritten",
            cost="the whole table and its indexes are written anew",
        )
    if int(row["max_value"]) != _END_OF.get(kind) or kind == "bigint":
        return Remedy(
            text=f"Somebody has set its end: see what stands at it. {column} is bigint and has "
            f"room: ALTER SEQUENCE {name} MAXVALUE ... moves it.",
        )
    return Remedy(
        sql=(f"ALTER SEQUENCE {name} AS bigint",),
        text=f"Make it bigint, as {column} is already; columns that refer to it have to be too.",
        lock="SHARE ROW EXCLUSIVE on the sequence, for a moment: who takes a number waits",
        undo=f"ALTER SEQUENCE {name} AS {kind}",
    )


RULE = Rule(
    id="sequence-nearly-used",
    question="Which sequences come to their end?",
    book=(),
    sql={15: _SQL},
    decide=_decide,
    threshold="80 % of its numbers are used, up to its end or the end of the type of the column "
    "that owns it, whichever comes first.",
    severity="warning: at its end every INSERT that takes its default fails.",
    price="no price: nothing counts how fast it goes",
    remedy="The column becomes bigint, then the sequence: never the sequence alone.",
    blind="Sequences that the role may not read, and those beyond the first thousand, or beyond a "
    "quarter of the locks that there are: reading one locks it. Columns that take numbers of a "
    "sequence that they do not own. Sequences that count down, and of bigint without a MAXVALUE.",
    link="https://www.postgresql.org/docs/current/sql-createsequence.html",
)
