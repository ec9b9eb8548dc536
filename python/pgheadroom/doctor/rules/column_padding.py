"""Rows that are longer than their values, for columns stand in an order that needs padding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pgheadroom import _core
from pgheadroom.bloat.heap import heap_pages
from pgheadroom.doctor.rule import Facts, QueryRow, Rule, bytes_held
from pgheadroom.doctor.values import Finding, Remedy
from pgheadroom.layout.columns import live_column
from pgheadroom.quoting import called
from pgheadroom.sources.columns import LiveColumn
from pgheadroom.units import PAGE_BYTES, percent, show_bytes

_BYTES_MIN = 1024**2
_SHARE_MIN = 0.10

# Domains as what they are over, as the layout has them.
_SQL = """
WITH RECURSIVE domains AS (
    SELECT t.oid AS domain, t.typbasetype AS oid, t.typtypmod AS typmod
    FROM pg_type t WHERE t.typtype = 'd'
    UNION ALL
    SELECT d.domain, t.typbasetype, t.typtypmod
    FROM domains d JOIN pg_type t ON t.oid = d.oid AND t.typtype = 'd'
), base AS MATERIALIZED (
    SELECT d.* FROM domains d JOIN pg_type t ON t.oid = d.oid AND t.typtype <> 'd'
), big AS MATERIALIZED (
    SELECT c.oid, n.nspname, c.relname, c.relpages, c.reltuples, c.reloptions
    FROM pg_class c
    JOIN pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_am am ON am.oid = c.relam AND am.amname = 'heap'
    WHERE c.relkind IN ('r', 'm') AND c.relpages >= 1000 AND c.reltuples > 0
      AND n.nspname <> 'information_schema' AND n.nspname !~ '^pg_'
)
SELECT b.oid::int8 AS oid, b.nspname AS schema, b.relname AS name, b.relpages,
       b.reltuples::float8 AS reltuples,
       coalesce((SELECT p.option_value::int FROM pg_options_to_table(b.reloptions) p
                 WHERE p.option_name = 'fillfactor'), 100) AS fillfactor,
       jsonb_agg(jsonb_build_object(
         'name', a.attname,
         'type', format_type(coalesce(d.oid, a.atttypid), coalesce(d.typmod, a.atttypmod)),
         'declared', format_type(a.atttypid, a.atttypmod),
         'is_user_type', t.typnamespace <> 'pg_catalog'::regnamespace,
         'typlen', a.attlen, 'typalign', a.attalign, 'not_null', a.attnotnull,
         'avg_width', s.avg_width, 'null_frac', s.null_frac) ORDER BY a.attnum) AS columns
FROM big b
JOIN pg_attribute a ON a.attrelid = b.oid AND a.attnum > 0 AND NOT a.attisdropped
  AND a.attgenerated <> 'v'  -- nothing of it is stored
LEFT JOIN base d ON d.domain = a.atttypid
LEFT JOIN pg_type t ON t.oid = coalesce(d.oid, a.atttypid)
LEFT JOIN pg_stats s ON (s.schemaname, s.tablename, s.attname) = (b.nspname, b.relname, a.attname)
  AND NOT s.inherited
GROUP BY b.oid, b.nspname, b.relname, b.relpages, b.reltuples, b.reloptions
"""


def _decide(_facts: Facts, rows: Sequence[QueryRow]) -> Iterator[Finding]:
    for row in rows:
        laid = [live_column(_column(column), row["name"]) for column in row["columns"]]
        usual = [each.null() if each.null_frac > 0.5 else each.core for each in laid]
        now = _core.RowLayout(usual)
        order = now.best_order()
        best = _core.RowLayout([usual[place] for place in order])
        saved = now.page_bytes - best.page_bytes
        total = (_pages(row, now) - _pages(row, best)) * PAGE_BYTES
        size = int(row["relpages"]) * PAGE_BYTES
        if saved <= 0 or total < _BYTES_MIN or saved < _SHARE_MIN * now.page_bytes:
            continue
        names = [str(usual[place].name) for place in order]
        assumed = any(each.assumed for each in laid)
        basis = (
            "mean widths are guesses where pg_stats is not readable"
            if assumed
            else ("mean widths by ANALYZE")
        )
        yield RULE.finding(
            "info",
            called(row["schema"], row["name"]),
            f"A usual row takes {now.page_bytes} bytes of its page and would take "
            f"{best.page_bytes} with its columns in the order {', '.join(names)}: "
            f"{percent(saved / now.page_bytes)} of {show_bytes(size)}.",
            remedy=Remedy(
                text="Order the columns so when the table is made anew the next time (a dump, a "
                "new version of it, a copy that is swapped in). ALTER TABLE cannot move columns.",
                lock="that of a copy and a swap",
                cost="a whole copy of the table and its indexes, and their WAL",
            ),
            price=bytes_held(
                total, f"pages of so many rows in both orders; {basis}", basis="estimated"
            ),
            row_bytes=now.page_bytes,
            row_bytes_best=best.page_bytes,
            saved_bytes=round(total),
            size_bytes=size,
            best_order=", ".join(names),
        )


def _pages(row: QueryRow, laid: _core.RowLayout) -> float:
    """Pages of a copy: whole rows lie on a page, so the saving of a row is not that of a table."""
    return heap_pages(float(row["reltuples"]), [laid.page_bytes], int(row["fillfactor"]))


def _column(found: QueryRow) -> LiveColumn:
    width = found["avg_width"]
    return LiveColumn(
        name=str(found["name"]),
        declared=str(found["declared"]),
        type=str(found["type"]),
        is_user_type=bool(found["is_user_type"]),
        typlen=int(found["typlen"]),
        typalign=str(found["typalign"]),
        stored_bytes=None if width is None else float(width),
        null_frac=0.0 if found["not_null"] else found["null_frac"],
        evidence=None if width is None else "estimated by ANALYZE",
    )


RULE = Rule(
    id="column-padding",
    question="Which big tables would be smaller with their columns in another order?",
    book=(),
    sql={15: _SQL},
    decide=_decide,
    threshold="Tables of 1,000 pages (8 MiB) and more, whose usual row would be 10 % shorter, and "
    "1 MiB in all: less is not worth copying a table.",
    severity="info: it is no fault, and the remedy is a copy of the table.",
    price="Bytes of the pages that a copy in that order saves, by the layout of rows.",
    remedy="Another order of columns, when the table is made anew.",
    blind="A usual row stands for all: one whose strings have their mean width, and NULL where "
    "most are.",
    link="https://www.postgresql.org/docs/current/storage-page-layout.html",
)
