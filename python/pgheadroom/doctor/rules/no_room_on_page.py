"""Tables whose updates find no room on their page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pgheadroom.doctor import index_cost
from pgheadroom.doctor.rule import DAY_S, Facts, QueryRow, Rule, bytes_a_day
from pgheadroom.doctor.values import Finding, Remedy, no_price
from pgheadroom.quoting import called
from pgheadroom.units import percent, show_bytes, show_count

_SHARE_MIN = 0.2
_UPDATES_A_DAY_MIN = 10_000
_WARN_BYTES_A_DAY = 1024**3
_ENTRY_WAL_BYTES = 64  # as for index-ends-hot

_SQL = """
SELECT c.oid::int8 AS oid, n.nspname AS schema, c.relname AS name,
       c.relpersistence = 'u' AS is_unlogged,
       pg_stat_get_tuples_updated(c.oid) AS n_tup_upd,
       pg_stat_get_tuples_newpage_updated(c.oid) AS n_tup_newpage_upd,
       (SELECT count(*) FROM pg_index i JOIN pg_class ic ON ic.oid = i.indexrelid
        JOIN pg_am am ON am.oid = ic.relam AND am.amname = 'btree'
        WHERE i.indrelid = c.oid AND i.indisready AND i.indpred IS NULL) AS indexes,
       coalesce((SELECT p.option_value::int FROM pg_options_to_table(c.reloptions) p
                 WHERE p.option_name = 'fillfactor'), 100) AS fillfactor
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'r'
  AND n.nspname <> 'information_schema' AND n.nspname !~ '^pg_'
"""


def _decide(facts: Facts, rows: Sequence[QueryRow]) -> Iterator[Finding]:
    for row in rows:
        updates, left = int(row["n_tup_upd"]), int(row["n_tup_newpage_upd"])
        a_day = facts.a_day(row, float(updates))
        if not updates or a_day is None or a_day < _UPDATES_A_DAY_MIN:
            continue
        if left < _SHARE_MIN * updates:
            continue
        wal = (facts.a_day(row, float(left)) or 0.0) * row["indexes"] * _ENTRY_WAL_BYTES
        wal = 0.0 if row["is_unlogged"] else wal
        shown = "unlogged" if row["is_unlogged"] else f"at least {show_bytes(wal)} of WAL a day"
        length_s = facts.length_s(row) or 0.0
        is_lasting = facts.interval_s is None and length_s >= DAY_S
        yield RULE.finding(
            "warning" if is_lasting and wal >= _WARN_BYTES_A_DAY else "info",
            called(row["schema"], row["name"]),
            f"{percent(left / updates)} of {updates:,} updates {facts.over(row)} found no room on "
            f"their page (fillfactor {row['fillfactor']}) and could not be HOT: an entry in each "
            f"of {show_count(row['indexes'], 'B-tree')}, {shown}.",
            remedy=Remedy(
                text="`pgheadroom advise` says which fillfactor would be enough, what it costs in "
                "pages, and whether they could be HOT at all.",
            ),
            price=no_price(index_cost.UNLOGGED)
            if row["is_unlogged"]
            else bytes_a_day(wal, "the least WAL of their index entries, without full-page images"),
            n_tup_upd=updates,
            n_tup_newpage_upd=left,
            newpage_frac=round(left / updates, 4),
            fillfactor=int(row["fillfactor"]),
            indexes=int(row["indexes"]),
        )


RULE = Rule(
    id="no-room-on-page",
    question="On which tables do updates find no room on their page?",
    book=("B7.14", "B7.15", "B9.18", "B11.5"),
    sql={16: _SQL},
    decide=_decide,
    counters=("n_tup_upd", "n_tup_newpage_upd"),
    key=("oid",),
    is_rate=True,
    on_standby=False,
    threshold="A fifth of the updates, and 10,000 updates a day. A table that was just loaded full "
    "has more at first, until its pages have room of their own.",
    severity="warning from 1 GiB of WAL a day on where statistics of a day or more say so; else "
    "info: what an interval shows may pass by itself.",
    price="WAL of their index entries, at least: 64 bytes for each B-tree without a predicate. "
    "Other indexes are not counted.",
    remedy="`pgheadroom advise`: which fillfactor, if any.",
    blind="Whether they could have been HOT: `pgheadroom advise` asks the statements.",
    link="https://www.postgresql.org/docs/current/storage-hot.html",
)
