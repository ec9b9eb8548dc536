"""Tables whose updates change an indexed column, so that none of them is HOT."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pgheadroom.doctor import index_cost
from pgheadroom.doctor.rule import Facts, QueryRow, Rule, bytes_a_day
from pgheadroom.doctor.values import Finding, Remedy, no_price
from pgheadroom.quoting import called
from pgheadroom.units import percent, show_bytes, show_count

_SHARE_MIN = 0.5
_UPDATES_A_DAY_MIN = 10_000
_WARN_BYTES_A_DAY = 1024**3
_ENTRY_WAL_BYTES = 64
"""The least that an entry of a B-tree writes: an INSERT_LEAF record with a key of up to 8 bytes."""

_SQL = """
SELECT c.oid::int8 AS oid, n.nspname AS schema, c.relname AS name,
       c.relpersistence = 'u' AS is_unlogged,
       pg_stat_get_tuples_updated(c.oid) AS n_tup_upd,
       pg_stat_get_tuples_hot_updated(c.oid) AS n_tup_hot_upd,
       pg_stat_get_tuples_newpage_updated(c.oid) AS n_tup_newpage_upd,
       (SELECT count(*) FROM pg_index i JOIN pg_class ic ON ic.oid = i.indexrelid
        JOIN pg_am am ON am.oid = ic.relam AND am.amname = 'btree'
        WHERE i.indrelid = c.oid AND i.indisready AND i.indpred IS NULL) AS indexes
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'r'
  AND n.nspname <> 'information_schema' AND n.nspname !~ '^pg_'
"""


def _decide(facts: Facts, rows: Sequence[QueryRow]) -> Iterator[Finding]:
    for row in rows:
        updates = int(row["n_tup_upd"])
        ended = updates - int(row["n_tup_hot_upd"]) - int(row["n_tup_newpage_upd"])
        a_day = facts.a_day(row, float(updates))
        if not updates or a_day is None or a_day < _UPDATES_A_DAY_MIN:
            continue
        if ended < _SHARE_MIN * updates:
            continue
        wal = (facts.a_day(row, float(ended)) or 0.0) * row["indexes"] * _ENTRY_WAL_BYTES
        wal = 0.0 if row["is_unlogged"] else wal
        shown = "unlogged" if row["is_unlogged"] else f"at least {show_bytes(wal)} of WAL a day"
        yield RULE.finding(
            "warning" if wal >= _WARN_BYTES_A_DAY else "info",
            called(row["schema"], row["name"]),
            f"{percent(ended / updates)} of {updates:,} updates {facts.over(row)} found room on "
            "their page and were not HOT all the same: they changed a column that an index reads, "
            f"and made an entry in each of {show_count(row['indexes'], 'B-tree')}, {shown}.",
            remedy=Remedy(
                text="`pgheadroom advise` says which index it is, which columns statements "
                "assign, and what the table would be without it. Since 16 an index by BRIN does "
                "not end HOT.",
            ),
            price=no_price(index_cost.UNLOGGED)
            if row["is_unlogged"]
            else bytes_a_day(wal, "the least WAL of their index entries, without full-page images"),
            n_tup_upd=updates,
            ended_by_index=ended,
            ended_frac=round(ended / updates, 4),
            indexes=int(row["indexes"]),
        )


RULE = Rule(
    id="index-ends-hot",
    question="On which tables does an index end HOT?",
    book=("B7.13", "B7.14", "B11.5", "B9.7"),
    sql={16: _SQL},
    decide=_decide,
    counters=("n_tup_upd", "n_tup_hot_upd", "n_tup_newpage_upd"),
    key=("oid",),
    is_rate=True,
    on_standby=False,
    threshold="Half of the updates, and 10,000 updates a day: below that nobody notices.",
    severity="warning from 1 GiB of WAL a day on, else info.",
    price="WAL of their index entries, at least: 64 bytes for each B-tree without a predicate. "
    "Other indexes are not counted.",
    remedy="`pgheadroom advise`: which index, and what without it.",
    blind="Updates that found no room may have changed such a column too; they are not counted "
    "here. 15 does not count pages that were left.",
    link="https://www.postgresql.org/docs/current/storage-hot.html",
)
