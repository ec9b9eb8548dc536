"""Who keeps dead rows from being removed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pgheadroom.doctor.rule import Facts, QueryRow, Rule, bytes_held
from pgheadroom.doctor.values import Finding, Price, Remedy, Severity, no_price
from pgheadroom.quoting import shown_literal
from pgheadroom.units import show_bytes, show_duration

_INFO_S = 300.0
_WARN_S = 3600.0
_INFO_XIDS = 100_000
_WARN_XIDS = 10_000_000

# A backend's own snapshot for VACUUM or CREATE INDEX CONCURRENTLY keeps nothing for others.
_HOLDERS = """
WITH holders AS (
    SELECT 'session' AS kind, a.pid::text AS name, a.usename::text AS who, a.application_name,
           a.state, a.datname = current_database() AS is_here,
           greatest(age(a.backend_xmin), age(a.backend_xid))::int8 AS age_xids,
           extract(epoch FROM a.xact_start)::float8 AS from_epoch_s
    FROM pg_stat_activity a
    WHERE a.pid <> pg_backend_pid() AND a.backend_type NOT IN ('walsender', 'autovacuum worker')
      AND (a.backend_xmin IS NOT NULL OR a.backend_xid IS NOT NULL)
    UNION ALL
    SELECT 'prepared transaction', p.gid, p.owner::text, NULL, NULL,
           p.database = current_database(), age(p.transaction)::int8,
           extract(epoch FROM p.prepared)::float8
    FROM pg_prepared_xacts p
    UNION ALL
    SELECT 'standby feedback', coalesce(nullif(r.application_name, ''), r.pid::text),
           r.usename::text, r.application_name, r.state, true, age(r.backend_xmin)::int8, NULL
    FROM pg_stat_replication r WHERE r.backend_xmin IS NOT NULL
    UNION ALL
    SELECT 'slot', s.slot_name::text, NULL, s.slot_type, CASE WHEN s.active THEN 'active' ELSE
           'inactive' END, s.xmin IS NOT NULL, greatest(age(s.xmin), age(s.catalog_xmin))::int8,
           {inactive}
    FROM pg_replication_slots s WHERE s.xmin IS NOT NULL OR s.catalog_xmin IS NOT NULL
), dead AS (
    SELECT sum(dead)::int8 AS rows,
           sum(dead * relpages * 8192.0 / nullif(live + dead, 0))::float8 AS bytes
    FROM (SELECT pg_stat_get_dead_tuples(c.oid) AS dead, pg_stat_get_live_tuples(c.oid) AS live,
                 c.relpages
          FROM pg_class c WHERE c.relkind IN ('r', 'm', 't')) AS each
)
SELECT h.*, d.rows AS dead_rows, d.bytes AS dead_bytes
FROM holders h CROSS JOIN dead d
ORDER BY h.age_xids DESC, h.from_epoch_s
"""
_SQL = {
    15: _HOLDERS.replace("{inactive}", "NULL"),
    17: _HOLDERS.replace("{inactive}", "extract(epoch FROM s.inactive_since)::float8"),
}


def _decide(facts: Facts, rows: Sequence[QueryRow]) -> Iterator[Finding]:
    is_oldest = True
    for row in rows:
        age_s = None
        if row["from_epoch_s"] is not None:
            age_s = max(facts.now_s - row["from_epoch_s"], 0.0)
        severity = _severity(facts, row, age_s)
        if severity is None:
            continue
        # Only of the oldest can be said what would be free without it.
        kept, price = _kept(row) if is_oldest and row["is_here"] else ("", _LATER)
        is_oldest = False
        since = "" if age_s is None else f" for {show_duration(age_s)}"
        what = " ".join(filter(None, (row["state"], row["application_name"])))
        described = f" ({what})" if what else ""
        yield RULE.finding(
            severity,
            f"{row['kind']} {row['name']}",
            f"The {row['kind']}{described} holds the horizon{since}, {row['age_xids']:,} "
            f"transactions back: rows that died since then cannot be removed.{kept}",
            remedy=_remedy(row),
            price=price,
            age_s=None if age_s is None else round(age_s, 3),
            age_xids=row["age_xids"],
            dead_rows=row["dead_rows"],
            dead_bytes=None if row["dead_bytes"] is None else round(row["dead_bytes"]),
        )


_LATER = no_price(
    "an older one keeps the same rows, or it is in another database: what this one keeps shows "
    "when that is gone"
)


def _kept(row: QueryRow) -> tuple[str, Price]:
    if not row["dead_rows"]:
        return " There are none in this database yet.", bytes_held(0, "dead rows by n_dead_tup")
    shown = f" In this database up to {row['dead_rows']:,} dead rows"
    if not row["dead_bytes"]:
        text = "no table of this database has pages counted yet (relpages)"
        return f"{shown} are there.", no_price(text)
    text = "dead rows of this database (n_dead_tup), at the mean of their tables' pages; at most"
    found = bytes_held(row["dead_bytes"], text, basis="estimated")
    return f"{shown} ({show_bytes(row['dead_bytes'])}) are there.", found


def _severity(facts: Facts, row: QueryRow, age_s: float | None) -> Severity | None:
    forced = facts.number("autovacuum_freeze_max_age")
    if row["age_xids"] >= max(1.5 * forced, 1_000_000_000):
        return "error"
    if age_s is not None:
        return "warning" if age_s >= _WARN_S else "info" if age_s >= _INFO_S else None
    xids = row["age_xids"]
    return "warning" if xids >= _WARN_XIDS else "info" if xids >= _INFO_XIDS else None


def _remedy(row: QueryRow) -> Remedy:
    name = str(row["name"])
    if row["kind"] == "session":
        return Remedy(
            sql=(f"SELECT pg_terminate_backend({name})",),
            text="End its transaction, best in the application; terminating it is the last resort. "
            "idle_in_transaction_session_timeout, and transaction_timeout from 17 on, end such "
            "ones by themselves.",
            cost="what its transaction has done is lost",
        )
    if row["kind"] == "prepared transaction":
        return Remedy(
            sql=(f"ROLLBACK PREPARED {shown_literal(name)}",),
            text="Ask the transaction manager whether it is to be committed; then COMMIT PREPARED "
            "or ROLLBACK PREPARED, in its database.",
            cost="what it has done is lost, if it is rolled back",
        )
    if row["kind"] == "slot":
        return Remedy(
            sql=(f"SELECT pg_drop_replication_slot({shown_literal(name)})",),
            text="Let its consumer go on; drop it if there is none any more.",
            cost="its consumer has to be set up anew",
        )
    return Remedy(
        text="Look for the long query on the standby; end it there, or let it be cancelled: "
        "hot_standby_feedback = off there, with max_standby_streaming_delay as its time.",
        cost="queries on the standby may be cancelled",
    )


RULE = Rule(
    id="horizon-holder",
    question="Who keeps dead rows from being removed, and since when?",
    book=("B7.31", "B7.32", "B11.15", "B11.16", "B14.4", "B7.12"),
    sql=_SQL,
    decide=_decide,
    needs_monitor=True,
    threshold="Sessions, prepared transactions and, from 17 on, slots that nobody uses: five "
    "minutes, in which autovacuum (autovacuum_naptime 1 min) came five times in vain. Others have "
    "no clock: 100,000 transactions.",
    severity="warning from an hour, or 10 million transactions, on; error from a billion, for then "
    "freezing stands still too; else info. The hour and the numbers are arbitrary.",
    price="Of the oldest: dead rows of this database, at most. n_dead_tup also counts those that "
    "autovacuum has not come to.",
    remedy="End the transaction; commit or roll back the prepared one; drop the slot; see to the "
    "standby's query.",
    blind="What is kept in other databases, and which of the dead rows are older than the holder.",
    link="https://www.postgresql.org/docs/current/routine-vacuuming.html",
)
