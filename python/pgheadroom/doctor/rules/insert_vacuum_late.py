"""Tables that grow, and whose new pages no VACUUM has marked all-visible."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pgheadroom.bloat.asking import Ask
from pgheadroom.bloat.reading import pages_of
from pgheadroom.doctor import dead_rows
from pgheadroom.doctor.rule import Facts, QueryRow, Rule, bytes_held
from pgheadroom.doctor.values import Blind, Finding, Remedy
from pgheadroom.quoting import called, shown_relation
from pgheadroom.units import PAGE_BYTES, percent

_TIMES = 2.0
_BYTES_MIN = 10 * 1024**2

_SQL = """
SELECT c.oid::int8 AS oid, n.nspname AS schema, c.relname AS name, c.relpages,
       c.reltuples::float8 AS reltuples, c.relallvisible, {frozen} AS relallfrozen,
       pg_stat_get_ins_since_vacuum(c.oid) AS n_ins_since_vacuum,
       (SELECT jsonb_object_agg(p.option_name, p.option_value)
        FROM pg_options_to_table(c.reloptions) p) AS reloptions
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'm') AND c.relpersistence <> 't' AND c.reltuples > 0
  AND n.nspname <> 'information_schema' AND n.nspname !~ '^pg_'
  AND pg_stat_get_ins_since_vacuum(c.oid) > 0
  -- Whose work it is, is hidden from a role that does not monitor.
  AND NOT EXISTS (SELECT FROM pg_stat_progress_vacuum v
                  WHERE v.datname = current_database() AND coalesce(v.relid, c.oid) = c.oid)
"""


def trigger_rows(facts: Facts, row: QueryRow) -> float | None:
    """
    Inserted rows from which on autovacuum comes (`relation_needs_vacanalyze`, autovacuum.c).

    From 18 on by the share of pages that are not frozen; None: it never comes for inserts.
    """
    own = row["reloptions"] or {}

    def of(name: str) -> float:
        full = f"autovacuum_vacuum_insert_{name}"
        return float(own[full]) if full in own else facts.number(full)

    base = of("threshold")
    if base < 0:
        return None
    pages = int(row["relpages"])
    unfrozen = 1 - min(row["relallfrozen"], pages) / pages if pages else 1.0
    return base + of("scale_factor") * float(row["reltuples"]) * unfrozen


def _look(facts: Facts, rows: Sequence[QueryRow], ask: Ask) -> list[QueryRow]:
    """
    Those to which autovacuum is late, with their pages as they are now.

    n_live_tup does not tell how far one has grown: rows that a session had not told yet when it
    vacuumed them are counted twice.
    """
    late = []
    for row in rows:
        trigger = trigger_rows(facts, row)
        if trigger is None or dead_rows.is_switched_off(facts, row):
            continue
        if int(row["n_ins_since_vacuum"]) >= _TIMES * trigger:
            late.append({**row, "trigger_rows": trigger})
    pages = pages_of(ask, [row["oid"] for row in late])
    return [{**row, "pages": pages.get(row["oid"])} for row in late]


def _decide(_facts: Facts, rows: Sequence[QueryRow]) -> Iterator[Finding | Blind]:
    for row in rows:
        trigger, inserted, pages = row["trigger_rows"], int(row["n_ins_since_vacuum"]), row["pages"]
        if pages is None:
            name = called(row["schema"], row["name"])
            yield Blind(rule=RULE.id, why=f"{name} is held by somebody")
            continue
        lacking = max(pages - int(row["relallvisible"]), 0)
        if lacking * PAGE_BYTES < _BYTES_MIN:
            continue
        yield RULE.finding(
            "info",
            called(row["schema"], row["name"]),
            f"{inserted:,} rows were inserted since the last VACUUM, {inserted / trigger:,.1f} "
            f"times what autovacuum waits for ({trigger:,.0f}); {percent(lacking / pages)} of its "
            "pages are not marked all-visible: index-only scans read them, and all are frozen at "
            "once later.",
            remedy=Remedy(
                sql=(f"VACUUM (VERBOSE) {shown_relation(row['schema'], row['name'])}",),
                text="See first what keeps autovacuum away (`autovacuum-late`, `horizon-holder`, "
                "all autovacuum_max_workers busy elsewhere).",
                lock="SHARE UPDATE EXCLUSIVE: readers and writers go on",
                cost="a scan of the pages that changed",
            ),
            price=bytes_held(
                lacking * PAGE_BYTES,
                "pages that are not all-visible, which index-only scans read besides",
                basis="estimated",
            ),
            n_ins_since_vacuum=inserted,
            trigger_rows=round(trigger),
            not_visible_frac=round(lacking / pages, 4),
        )


RULE = Rule(
    id="insert-vacuum-late",
    question="Which tables grow without being vacuumed?",
    book=("B9.28",),
    sql={15: _SQL.format(frozen="0"), 18: _SQL.format(frozen="c.relallfrozen")},
    look=_look,
    decide=_decide,
    on_standby=False,
    threshold="Twice the inserted rows that autovacuum waits for, by settings and storage "
    "parameters (from 18 on by the share of pages that are not frozen), and 10 MiB of pages that "
    "are not all-visible.",
    severity="info: nothing is lost, but index-only scans read the table all the same.",
    price="Bytes of pages that are not all-visible: those that there are, less those that were at "
    "the last VACUUM or ANALYZE.",
    remedy="Find what keeps autovacuum away; then VACUUM.",
    blind="Many rows of the last minute look the same. Which queries use index-only scans is in no "
    "statistics.",
    link="https://www.postgresql.org/docs/current/indexes-index-only-scans.html",
)
