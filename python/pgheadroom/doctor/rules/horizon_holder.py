"""Who keeps dead rows from being removed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pgheadroom.doctor.rule import Facts, QueryRow, Rule, bytes_held
from pgheadroom.doctor.values import Finding, Price, Remedy, Severity, no_price
from pgheadroom.quoting import shown_literal
from pgheadroom.units import show_age, show_bytes

_INFO_S = 300.0
_WARN_S = 3600.0
_INFO_XIDS = 100_000
_WARN_XIDS = 10_000_000
_MOVED_XIDS = 100
_WARN_BYTES = 10 * 1024**2

# A backend's own snapshot for VACUUM or CREATE INDEX CONCURRENTLY keeps nothing for others
# (PROC_IN_VACUUM, PROC_IN_SAFE_IC), but for an index with an expression or a predicate. ANALYZE
# does, autovacuum's too. A snapshot without a transaction id moves on: it is as old as its
# statement, or as its transaction where that idles.
_HOLDERS = """
WITH holders AS (
    SELECT 'session' AS kind, a.pid::text AS name, a.usename::text AS who, a.application_name,
           a.state, a.datname::text AS database, a.datname = current_database() AS is_here,
           false AS is_catalog, z.pid IS NOT NULL AS is_analyze,
           greatest(age(a.backend_xmin), age(a.backend_xid))::int8 AS age_xids,
           extract(epoch FROM CASE WHEN a.backend_xid IS NOT NULL OR a.state <> 'active'
                              THEN a.xact_start
                              ELSE greatest(a.xact_start, a.query_start)
                              END)::float8 AS from_epoch_s
    FROM pg_stat_activity a
    LEFT JOIN pg_stat_progress_analyze z
      ON z.pid = a.pid AND a.backend_type = 'autovacuum worker'
    WHERE a.pid <> pg_backend_pid() AND a.backend_type <> 'walsender'
      AND (a.leader_pid IS NULL OR a.leader_pid = a.pid)  -- a worker ends with its leader
      AND (a.backend_type <> 'autovacuum worker' OR z.pid IS NOT NULL)
      AND a.pid NOT IN (SELECT v.pid FROM pg_stat_progress_vacuum v)
      AND NOT EXISTS (
        SELECT FROM pg_stat_progress_create_index b
        LEFT JOIN pg_index i ON i.indexrelid = b.index_relid AND b.datname = current_database()
        WHERE b.pid = a.pid AND b.command LIKE '%CONCURRENTLY'
          AND i.indexprs IS NULL AND i.indpred IS NULL)
      AND (a.backend_xmin IS NOT NULL OR a.backend_xid IS NOT NULL)
      -- A standby's sessions hold nothing here, and the primary's horizon by feedback alone.
      AND (NOT pg_is_in_recovery() OR current_setting('hot_standby_feedback')::bool)
    UNION ALL
    SELECT 'prepared transaction', p.gid, p.owner::text, NULL, NULL, p.database::text,
           p.database = current_database(), false, false, age(p.transaction)::int8,
           extract(epoch FROM p.prepared)::float8
    FROM pg_prepared_xacts p
    UNION ALL
    SELECT 'standby feedback', coalesce(nullif(r.application_name, ''), r.pid::text),
           r.usename::text, r.application_name, r.state, NULL, true, false, false,
           age(r.backend_xmin)::int8, NULL
    FROM pg_stat_replication r WHERE r.backend_xmin IS NOT NULL
    UNION ALL
    SELECT 'slot', s.slot_name::text, NULL, s.slot_type, CASE WHEN s.active THEN 'active' ELSE
           'inactive' END, s.database::text, true, s.xmin IS NULL,
           false, coalesce(age(s.xmin), age(s.catalog_xmin))::int8, {inactive}
    FROM pg_replication_slots s
    WHERE (s.xmin IS NOT NULL OR s.catalog_xmin IS NOT NULL)
      -- One that is invalid keeps nothing (ReplicationSlotsComputeRequiredXmin), nor does a copy.
      AND s.wal_status IS DISTINCT FROM 'lost' AND NOT ({copied})
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
    15: _HOLDERS.replace("{inactive}", "NULL").replace("{copied}", "false"),
    17: _HOLDERS.replace("{inactive}", "extract(epoch FROM s.inactive_since)::float8").replace(
        "{copied}", "s.synced AND pg_is_in_recovery()"
    ),
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
        is_of_rows = bool(row["is_here"]) and not row["is_catalog"] and not facts.is_standby
        kept, price = _kept(row) if is_oldest and is_of_rows else ("", _LATER)
        is_oldest = is_oldest and not is_of_rows
        since = "" if age_s is None else f" for {show_age(age_s)}"
        what = " ".join(filter(None, (row["state"], row["application_name"])))
        described = f" ({what})" if what else ""
        yield RULE.finding(
            severity,
            f"{row['kind']} {row['name']}",
            f"The {row['kind']}{described} holds the horizon{_where(facts, row)}{since}, "
            f"{row['age_xids']:,} transactions back: rows{_of_what(row)} that died since then "
            f"cannot be removed.{kept}",
            remedy=_remedy(row),
            price=price,
            age_s=None if age_s is None else round(age_s, 3),
            age_xids=row["age_xids"],
            database=row["database"],
            dead_rows=row["dead_rows"] if is_of_rows else None,
            dead_bytes=_dead_bytes(row) if is_of_rows else None,
        )


def _where(facts: Facts, row: QueryRow) -> str:
    """Whose horizon it is, where that is not this database's."""
    if facts.is_standby:
        return " of the primary, by feedback,"
    return "" if row["is_here"] else f" of the database {row['database']}"


def _of_what(row: QueryRow) -> str:
    return " of catalogs alone" if row["is_catalog"] else ""


def _dead_bytes(row: QueryRow) -> int | None:
    return None if row["dead_bytes"] is None else round(row["dead_bytes"])


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
    """
    By transactions; by the clock only where it keeps something.

    A session that is alone on its server for an hour keeps nothing.
    """
    forced = facts.number("autovacuum_freeze_max_age")
    xids = row["age_xids"]
    if xids >= max(1.5 * forced, 1_000_000_000):
        return "error"
    if xids >= _WARN_XIDS:
        return "warning"
    if age_s is not None and age_s >= _INFO_S and xids >= _MOVED_XIDS:
        is_dear = row["is_here"] and not row["is_catalog"] and not facts.is_standby
        is_dear = is_dear and (row["dead_bytes"] or 0) >= _WARN_BYTES
        return "warning" if is_dear and age_s >= _WARN_S else "info"
    return "info" if xids >= _INFO_XIDS else None


def _remedy(row: QueryRow) -> Remedy:
    name = str(row["name"])
    if row["is_analyze"]:
        return Remedy(
            text="It is autovacuum's ANALYZE, which ends by itself; where it takes long, a "
            "smaller statistics target of the table's columns."
        )
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
            text="Ask the transaction manager whether it is to be committed, for its parts "
            f"elsewhere may be; then COMMIT PREPARED {shown_literal(name)} or ROLLBACK PREPARED "
            f"{shown_literal(name)}, in its database.",
            cost="what it has done is lost, if it is rolled back",
        )
    if row["kind"] == "slot":
        if row["state"] == "active":
            return Remedy(text="See to its consumer, which is connected: it is behind.")
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
    "minutes, in which autovacuum (autovacuum_naptime 1 min) came five times in vain, and 100 "
    "transactions, for else hardly anything can have died. Any of them: 100,000 transactions.",
    severity="warning from 10 million transactions on, or from an hour on where 10 MiB of this "
    "database are dead; error from a billion, for then freezing stands still too; else info. The "
    "numbers are arbitrary.",
    price="Of the oldest: dead rows of this database, at most. n_dead_tup also counts those that "
    "autovacuum has not come to.",
    remedy="End the transaction; commit or roll back the prepared one; drop the slot; see to the "
    "standby's query.",
    blind="How much is kept in other databases and in catalogs, and which of the dead rows are "
    "older than the holder. A standby's own queries are told by the standby.",
    link="https://www.postgresql.org/docs/current/routine-vacuuming.html",
)
