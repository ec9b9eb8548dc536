"""Tables that the planner knows nothing of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pgheadroom.doctor import dead_rows
from pgheadroom.doctor.rule import Facts, QueryRow, Rule
from pgheadroom.doctor.values import Finding, Remedy
from pgheadroom.quoting import called, shown_relation

_ROWS_MIN = 51

# pg_stats shows what the role may read, so that its absence says nothing of other tables; reltuples
# -1 says of any that it was never vacuumed nor analyzed.
_SQL = """
WITH known AS MATERIALIZED (SELECT DISTINCT schemaname, tablename FROM pg_stats)
SELECT c.oid::int8 AS oid, n.nspname AS schema, c.relname AS name, c.reltuples::float8 AS reltuples,
       pg_stat_get_live_tuples(c.oid) AS n_live_tup,
       (SELECT jsonb_object_agg(p.option_name, p.option_value)
        FROM pg_options_to_table(c.reloptions) p) AS reloptions
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'm') AND c.relpersistence <> 't'
  AND n.nspname <> 'information_schema' AND n.nspname !~ '^pg_'
  AND greatest(pg_stat_get_live_tuples(c.oid), c.reltuples) > 50
  AND pg_stat_get_last_analyze_time(c.oid) IS NULL
  AND pg_stat_get_last_autoanalyze_time(c.oid) IS NULL
  AND (c.reltuples < 0
       OR has_table_privilege(c.oid, 'SELECT') AND NOT row_security_active(c.oid)
          AND NOT EXISTS (SELECT FROM known k
                          WHERE (k.schemaname, k.tablename) = (n.nspname, c.relname)))
"""


def _decide(facts: Facts, rows: Sequence[QueryRow]) -> Iterator[Finding]:
    for row in rows:
        is_off = dead_rows.is_switched_off(facts, row)
        count = max(int(row["n_live_tup"] or 0), round(row["reltuples"]))
        by_itself = (
            "and autovacuum, which is off for it, will not"
            if is_off
            else "autovacuum does it within minutes, unless it is new"
        )
        name = shown_relation(row["schema"], row["name"])
        yield RULE.finding(
            "warning" if is_off else "info",
            called(row["schema"], row["name"]),
            f"It has about {count:,} rows and was never analyzed, {by_itself}: the planner guesses "
            "how many rows a condition leaves.",
            remedy=Remedy(
                sql=(f"ANALYZE {name}",),
                text="Analyze it; after a load, before others use it.",
                lock="SHARE UPDATE EXCLUSIVE: readers and writers go on",
                cost="a sample of 30,000 rows (300 x default_statistics_target)",
            ),
            oid=int(row["oid"]),
            n_live_tup=count,
            is_autovacuum_off=is_off,
        )


RULE = Rule(
    id="never-analyzed",
    question="Of which tables were statistics never taken?",
    book=("B9.4", "B17.10"),
    sql={15: _SQL},
    decide=_decide,
    on_standby=False,
    threshold=f"{_ROWS_MIN} rows or more, from which autovacuum analyzes it "
    "(autovacuum_analyze_threshold 50), neither ANALYZE nor "
    "autovacuum has analyzed it, and it has no statistics.",
    severity="warning where autovacuum is off for it, for then it stays so; else info.",
    price="no price: what a wrong plan costs depends on the query",
    remedy="ANALYZE.",
    blind="Tables that the role may not read and that were vacuumed: pg_stats does not show them. "
    "Columns that were added later.",
    link="https://www.postgresql.org/docs/current/sql-analyze.html",
)
