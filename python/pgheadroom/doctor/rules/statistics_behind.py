"""Tables of which much has changed since their statistics were taken."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pgheadroom.doctor.rule import Facts, QueryRow, Rule
from pgheadroom.doctor.values import Finding, Remedy
from pgheadroom.quoting import called, shown_relation
from pgheadroom.settings.arithmetic import option_number
from pgheadroom.units import show_age

_TIMES = 5.0
_CHANGED_MIN = 1000
_NAPTIMES = 2.0

_SQL = f"""
SELECT c.oid::int8 AS oid, n.nspname AS schema, c.relname AS name,
       pg_stat_get_mod_since_analyze(c.oid) AS changed,
       greatest(c.reltuples, 0)::float8 AS reltuples,
       extract(epoch FROM greatest(pg_stat_get_last_analyze_time(c.oid),
                                   pg_stat_get_last_autoanalyze_time(c.oid)))::float8
         AS analyzed_epoch_s,
       (SELECT jsonb_object_agg(p.option_name, p.option_value)
        FROM pg_options_to_table(c.reloptions) p) AS reloptions
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'm') AND c.relpersistence <> 't'
  AND n.nspname <> 'information_schema' AND n.nspname !~ '^pg_'
  AND pg_stat_get_mod_since_analyze(c.oid) >= {_CHANGED_MIN}
  AND greatest(pg_stat_get_last_analyze_time(c.oid),
               pg_stat_get_last_autoanalyze_time(c.oid)) IS NOT NULL
"""


def _trigger_rows(facts: Facts, row: QueryRow) -> float:
    """
    Changed rows from which on autovacuum analyzes the table.

    Source: `relation_needs_vacanalyze`, autovacuum.c.
    """

    def value(name: str) -> float:
        own = option_number(name, str((row["reloptions"] or {}).get(name, "-1")))
        return facts.number(name) if own < 0 else own

    threshold = value("autovacuum_analyze_threshold")
    return threshold + value("autovacuum_analyze_scale_factor") * float(row["reltuples"])


def _decide(facts: Facts, rows: Sequence[QueryRow]) -> Iterator[Finding]:
    for row in rows:
        changed, trigger = int(row["changed"]), _trigger_rows(facts, row)
        ago_s = facts.now_s - row["analyzed_epoch_s"]
        naptimes_s = _NAPTIMES * facts.number("autovacuum_naptime")
        if changed < _TIMES * trigger or ago_s < naptimes_s:
            continue
        yield RULE.finding(
            "info",
            called(row["schema"], row["name"]),
            f"{changed:,} rows changed since the last ANALYZE, {show_age(ago_s)} ago: "
            f"{changed / max(trigger, 1.0):,.1f} times what autovacuum waits for ({trigger:,.0f}).",
            remedy=Remedy(
                sql=(f"ANALYZE {shown_relation(row['schema'], row['name'])}",),
                text="Take them anew. See why autovacuum does not come to it: is it off for it, "
                "are all workers busy elsewhere, do locks cancel it?",
                lock="SHARE UPDATE EXCLUSIVE: readers and writers go on",
                cost="a sample of 300 rows for each unit of the statistics target",
            ),
            oid=int(row["oid"]),
            changed=changed,
            trigger_rows=round(trigger),
        )


RULE = Rule(
    id="statistics-behind",
    question="Of which tables are the planner's statistics old?",
    book=("B7.36", "B7.37", "B9.4", "B17.10"),
    sql={15: _SQL},
    decide=_decide,
    on_standby=False,
    threshold="Five times the changed rows at which autovacuum analyzes, by settings and storage "
    f"parameters, and {_CHANGED_MIN:,} of them; and the last ANALYZE is two naptimes ago "
    "(autovacuum_naptime), in which it has looked.",
    severity="info: plans go by what the table was.",
    price="no price: what a wrong plan costs depends on the query",
    remedy="ANALYZE.",
    blind="Tables that were never analyzed are `never-analyzed`. Whether the values are others "
    "than they were: an update may leave all as it was.",
    link="https://www.postgresql.org/docs/current/routine-vacuuming.html#VACUUM-FOR-STATISTICS",
)
