"""A statement that writes most of the log."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from pgheadroom.bloat.asking import Ask
from pgheadroom.defaults import RATES_FROM_S
from pgheadroom.doctor.rule import DAY_S, Facts, QueryRow, Rule, bytes_a_day
from pgheadroom.doctor.values import Blind, Finding, Remedy
from pgheadroom.sources.statements_at import STATEMENTS_AT_SQL
from pgheadroom.units import PAGE_BYTES, percent, show_bytes, show_duration

_SHARE_MIN = 0.5
_A_DAY_MIN = 1024.0**3
_SHOWN = 100
_CHANGES = re.compile(r"(insert|update|delete|merge|with)\b", re.IGNORECASE)
"""Only these are shown: other statements are kept with their literals."""

_STATEMENTS = """
WITH here AS (
    SELECT s.queryid, min(s.query) AS query, sum(s.calls)::int8 AS calls,
           sum(s.rows)::int8 AS rows, sum(s.wal_bytes)::float8 AS wal_bytes,
           sum(s.wal_fpi)::int8 AS wal_fpi, sum(s.shared_blks_dirtied)::int8 AS pages_dirtied
    FROM {schema}.pg_stat_statements s
    WHERE s.toplevel
      AND s.dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
    GROUP BY s.queryid
)
SELECT h.*, (SELECT sum(wal_bytes) FROM here)::float8 AS of_all,
       (SELECT extract(epoch FROM stats_reset)::float8 FROM {schema}.pg_stat_statements_info)
         AS since_epoch_s
FROM here h ORDER BY h.wal_bytes DESC LIMIT 1
"""


def _look(_facts: Facts, rows: Sequence[QueryRow], ask: Ask) -> Sequence[QueryRow]:
    return [each for row in rows for each in ask(_STATEMENTS.format(schema=row["schema"]))]


def _decide(facts: Facts, rows: Sequence[QueryRow]) -> Iterator[Finding | Blind]:
    for row in rows:
        length_s = facts.now_s - float(row["since_epoch_s"] or facts.now_s)
        if length_s < RATES_FROM_S:
            yield Blind(
                rule=RULE.id,
                why=f"pg_stat_statements reaches back {show_duration(max(length_s, 0))}: rates "
                f"need {show_duration(RATES_FROM_S)}",
            )
            return
        written, of_all = float(row["wal_bytes"] or 0), float(row["of_all"] or 0)
        a_day = written * DAY_S / length_s
        if row["queryid"] is None or a_day < _A_DAY_MIN or written < _SHARE_MIN * of_all:
            continue
        calls = max(int(row["calls"]), 1)
        images = min(int(row["wal_fpi"] or 0) * PAGE_BYTES / max(written, 1.0), 1.0)
        yield RULE.finding(
            "info",
            f"queryid {row['queryid']}",
            f"{percent(written / of_all)} of the WAL of all statements of this database is of "
            f"one{_shown(row['query'])}: {calls:,} calls, {show_bytes(written / calls)} each, up "
            f"to {percent(images)} of it full-page images.",
            remedy=Remedy(
                text="What it costs by row and why, `observe` and `advise` tell of its tables: "
                "fillfactor, indexes that end HOT, values that are set to what they were.",
            ),
            price=bytes_a_day(a_day, "wal_bytes of pg_stat_statements", basis="measured"),
            calls=calls,
            rows=int(row["rows"] or 0),
            wal_bytes=round(written),
            wal_fpi=int(row["wal_fpi"] or 0),
            pages_dirtied=int(row["pages_dirtied"] or 0),
            share_frac=round(written / of_all, 4),
        )


def _shown(query: str | None) -> str:
    text = " ".join((query or "").split())
    if not _CHANGES.match(text):
        return ""
    return f" ({text if len(text) <= _SHOWN else text[:_SHOWN] + ' ...'})"


RULE = Rule(
    id="dear-statement",
    question="Does one statement write most of the WAL?",
    book=("B7.51",),
    sql={15: STATEMENTS_AT_SQL},
    decide=_decide,
    look=_look,
    needs_monitor=True,
    on_standby=False,
    threshold="Half of the WAL of this database's statements, as pg_stat_statements counts them, "
    "and 1 GiB a day.",
    severity="info: it is where a change pays, not a fault.",
    price="Bytes of WAL a day, measured by pg_stat_statements.",
    remedy="`observe` and `advise` on its tables.",
    blind="Databases without pg_stat_statements, or where it was not loaded at the start. "
    "Statements that it has given up for others (pg_stat_statements.max).",
    link="https://www.postgresql.org/docs/current/pgstatstatements.html",
)
