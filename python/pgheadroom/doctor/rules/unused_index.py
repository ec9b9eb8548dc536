"""Indexes that nobody reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pgheadroom.doctor import index_cost
from pgheadroom.doctor.rule import DAY_S, Facts, QueryRow, Rule
from pgheadroom.doctor.values import Blind, Finding, Remedy
from pgheadroom.quoting import called, shown_relation

_AGE_MIN_DAYS = 30
_PAGES_MIN = 128
_ENTRIES_A_DAY_MIN = 10_000

_SQL = """
WITH every AS (
    SELECT coalesce(pg_partition_root(i.indexrelid)::oid, i.indexrelid) AS root, i.indrelid,
           pg_stat_get_numscans(i.indexrelid) AS scans, c.relpages, c.reltuples,
           c.relpersistence <> 'p' AS is_unlogged,
           pg_stat_get_tuples_inserted(i.indrelid) AS n_tup_ins,
           pg_stat_get_tuples_updated(i.indrelid) AS n_tup_upd,
           pg_stat_get_tuples_hot_updated(i.indrelid) AS n_tup_hot_upd,
           i.indisunique OR i.indisprimary OR i.indisexclusion OR i.indisreplident
             OR i.indisclustered OR NOT i.indisvalid
             OR EXISTS (SELECT FROM pg_constraint k WHERE k.conindid = i.indexrelid)
             -- Without it a delete of the parent would read the whole table.
             OR EXISTS (SELECT FROM pg_constraint k
                        WHERE k.conrelid = i.indrelid AND k.contype = 'f'
                          AND i.indnkeyatts >= cardinality(k.conkey)
                          AND (i.indkey::int2[])[0:cardinality(k.conkey) - 1] @> k.conkey)
             AS is_needed
    FROM pg_index i
    JOIN pg_class c ON c.oid = i.indexrelid AND c.relkind = 'i'
    JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname <> 'information_schema' AND n.nspname !~ '^pg_'
), whole AS (
    SELECT root, sum(scans)::int8 AS idx_scan, sum(relpages)::int8 AS relpages,
           sum(greatest(reltuples, 0))::float8 AS reltuples, sum(n_tup_ins)::int8 AS n_tup_ins,
           sum(n_tup_upd)::int8 AS n_tup_upd, sum(n_tup_hot_upd)::int8 AS n_tup_hot_upd,
           bool_or(is_unlogged) AS is_unlogged
    FROM every GROUP BY root HAVING NOT bool_or(is_needed) AND sum(scans) = 0
)
SELECT i.indexrelid::int8 AS oid, n.nspname AS schema, c.relname AS name,
       tn.nspname AS table_schema, t.relname AS table_name, w.idx_scan,
       w.relpages, w.reltuples, am.amname AS method, i.indpred IS NOT NULL AS is_partial,
       i.indexprs IS NOT NULL AS has_expressions, c.relkind = 'I' AS is_partitioned,
       (SELECT CASE WHEN bool_and(a.attlen > 0) THEN sum(a.attlen) END
        FROM pg_attribute a WHERE a.attrelid = i.indexrelid)::float8 AS key_bytes,
       w.n_tup_ins, w.n_tup_upd, w.n_tup_hot_upd, w.is_unlogged
FROM whole w
JOIN pg_index i ON i.indexrelid = w.root
JOIN pg_class c ON c.oid = i.indexrelid
JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_class t ON t.oid = i.indrelid
JOIN pg_namespace tn ON tn.oid = t.relnamespace
JOIN pg_am am ON am.oid = c.relam
"""


def _decide(facts: Facts, rows: Sequence[QueryRow]) -> Iterator[Finding | Blind]:
    if facts.was_promoted and facts.promoted_s is None:
        yield Blind(
            rule=RULE.id,
            why="the server was promoted, or comes of a backup, and since when it is a primary "
            "only pg_monitor sees: before, it counted its own reads alone",
        )
        return
    age_days = None
    if facts.since_s is not None:
        age_days = (facts.now_s - max(facts.since_s, facts.promoted_s or 0.0)) / DAY_S
    if age_days is None or age_days < _AGE_MIN_DAYS:
        known = "since an unknown time" if age_days is None else f"for {age_days:.1f} days"
        known += " as a primary's" if facts.was_promoted else ""
        why = f"the statistics count {known}: what runs once a month needs {_AGE_MIN_DAYS} days"
        yield Blind(rule=RULE.id, why=why)
        return
    for row in rows:
        cost = index_cost.cost_of(facts, row)
        if row["relpages"] < _PAGES_MIN and (cost.entries_a_day or 0) < _ENTRIES_A_DAY_MIN:
            continue
        table = called(row["table_schema"], row["table_name"])
        yield RULE.finding(
            "info" if facts.has_standbys else cost.severity,
            called(row["schema"], row["name"]),
            f"The index of {table} was not read once in the {age_days:.0f} days that the "
            f"statistics reach back{_as_what(facts)}; it costs {cost.text}.",
            remedy=_remedy(facts, row),
            price=cost.price,
            idx_scan=int(row["idx_scan"]),
            index_oid=int(row["oid"]),
            statistics_days=round(age_days, 1),
            size_bytes=cost.size_bytes,
            entries_a_day=cost.entries_a_day,
            wal_bytes_a_day=cost.wal_bytes_a_day,
        )


def _as_what(facts: Facts) -> str:
    return ", since the server is a primary" if facts.was_promoted else ""


def _remedy(facts: Facts, row: QueryRow) -> Remedy:
    if facts.has_standbys:
        return Remedy(
            text="Ask every standby first: each counts its own reads (pg_stat_user_indexes there), "
            "and an index that they read is not to be dropped."
        )
    concurrently = "" if row["is_partitioned"] else "CONCURRENTLY "
    also = ""
    if row["has_expressions"]:
        also = " ANALYZE also keeps statistics of its expression, which go with it."
    return Remedy(
        sql=(f"DROP INDEX {concurrently}{shown_relation(row['schema'], row['name'])}",),
        text="See first that it is no new one, nor its table or database, for when these were "
        f"made is in no catalog; then drop it.{also}",
        lock="ACCESS EXCLUSIVE on the table and its partitions, for a moment"
        if row["is_partitioned"]
        else "SHARE UPDATE EXCLUSIVE: readers and writers go on",
        cost="none but building it again, should somebody miss it",
    )


RULE = Rule(
    id="unused-index",
    question="Which indexes does nobody read?",
    book=("B11.12",),
    sql={15: _SQL},
    decide=_decide,
    counters=index_cost.COUNTERS,
    key=("oid",),
    on_standby=False,
    threshold=f"Not read since the statistics began, and these are {_AGE_MIN_DAYS} days old, and "
    "as long the server is a primary, for what closes a month runs once in it; of at least 1 MiB, "
    "or 10,000 entries a day: what is less costs nobody anything. Never one that is unique, "
    "enforces a constraint, is a replica identity, what CLUSTER goes by, begins with the columns "
    "of a foreign key, or is an index of such partitions; nor one that another finding keeps.",
    severity="warning from 1 GiB of pages or of WAL a day on, else info; info where a standby is "
    "there, for that counts its own reads.",
    price="WAL a day of its entries where counters tell it, else its pages.",
    remedy="DROP INDEX CONCURRENTLY; its definition is the undo.",
    blind="When an index was made is in no catalog: one of yesterday is unused too. Standbys count "
    "their own reads, and one that takes its WAL out of an archive alone is not seen. Reads of "
    "ANALYZE's statistics on an expression are not counted.",
    link="https://www.postgresql.org/docs/current/monitoring-stats.html",
)
