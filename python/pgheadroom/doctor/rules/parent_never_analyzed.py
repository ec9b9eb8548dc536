"""Partitioned tables whose own statistics nobody takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pgheadroom.doctor.rule import Facts, QueryRow, Rule
from pgheadroom.doctor.values import Finding, Remedy
from pgheadroom.quoting import called, shown_relation
from pgheadroom.units import show_count

_ROWS_MIN = 50

# By pg_inherits: pg_partition_tree locks every partition.
_SQL = """
WITH RECURSIVE tree AS (
    SELECT c.oid AS root, c.oid AS relid, c.relkind
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind = 'p' AND NOT c.relispartition AND c.reltuples < 0
      AND n.nspname <> 'information_schema' AND n.nspname !~ '^pg_'
    UNION ALL
    SELECT t.root, l.oid, l.relkind
    FROM tree t
    JOIN pg_inherits i ON i.inhparent = t.relid
    JOIN pg_class l ON l.oid = i.inhrelid
), whole AS (
    SELECT t.root, count(*) AS partitions,
           sum(greatest(pg_stat_get_live_tuples(t.relid), 0))::float8 AS n_live_tup
    FROM tree t WHERE t.relkind <> 'p' GROUP BY t.root
)
SELECT c.oid::int8 AS oid, n.nspname AS schema, c.relname AS name, w.n_live_tup, w.partitions
FROM whole w
JOIN pg_class c ON c.oid = w.root
JOIN pg_namespace n ON n.oid = c.relnamespace
"""


def _decide(_facts: Facts, rows: Sequence[QueryRow]) -> Iterator[Finding]:
    for row in rows:
        if (row["n_live_tup"] or 0) < _ROWS_MIN:
            continue
        name = shown_relation(row["schema"], row["name"])
        yield RULE.finding(
            "info",
            called(row["schema"], row["name"]),
            f"The partitioned table has about {row['n_live_tup']:,.0f} rows in "
            f"{show_count(row['partitions'], 'partition')} and was never analyzed as a whole: "
            "autovacuum only analyzes partitions.",
            remedy=Remedy(
                sql=(f"ANALYZE {name}",),
                text="Analyze it now and then, by a job: after a load, when partitions come.",
                lock="SHARE UPDATE EXCLUSIVE: readers and writers go on",
                cost="samples of it as a whole and of each partition",
            ),
            oid=int(row["oid"]),
            n_live_tup=round(row["n_live_tup"]),
            partitions=int(row["partitions"]),
        )


RULE = Rule(
    id="parent-never-analyzed",
    question="Which partitioned tables have no statistics of their own?",
    book=("B15.7",),
    sql={15: _SQL},
    decide=_decide,
    on_standby=False,
    threshold="50 rows in its partitions and no ANALYZE of the whole ever (reltuples -1).",
    severity="info: plans over several partitions guess.",
    price="no price: what a wrong plan costs depends on the query",
    remedy="ANALYZE of the partitioned table, by a job.",
    blind="Statistics that were taken once and are old.",
    link="https://www.postgresql.org/docs/current/routine-vacuuming.html#VACUUM-FOR-STATISTICS",
)
