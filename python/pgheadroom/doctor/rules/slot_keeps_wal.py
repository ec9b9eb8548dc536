"""Replication slots that keep WAL, or have lost theirs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pgheadroom.doctor.rule import Facts, QueryRow, Rule, bytes_held
from pgheadroom.doctor.values import Finding, Remedy, Severity
from pgheadroom.quoting import shown_literal
from pgheadroom.units import show_bytes

_MIB = 1024**2

_SQL = """
SELECT s.slot_name::text AS name, s.slot_type, s.active, s.wal_status, s.safe_wal_size,
       s.database::text AS database, s.restart_lsn IS NOT NULL AS has_position,
       greatest((CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn()
                      ELSE pg_current_wal_insert_lsn() END - s.restart_lsn), 0)::float8
         AS kept_bytes,
       {reason} AS reason
FROM pg_replication_slots s WHERE NOT s.temporary
"""


def _decide(facts: Facts, rows: Sequence[QueryRow]) -> Iterator[Finding]:
    allowed = facts.number("max_wal_size") * _MIB
    for row in rows:
        kept = float(row["kept_bytes"] or 0)
        severity: Severity
        is_lost = row["wal_status"] == "lost"
        if is_lost:
            severity, state = "error", f"is invalid ({row['reason'] or 'wal_status lost'})"
        elif row["wal_status"] == "unreserved":
            severity, state = "error", "is about to lose WAL that it needs"
        elif not row["active"] and row["has_position"] and kept > allowed:
            severity, state = "warning", "is used by nobody"
        else:
            continue
        limit = facts.number("max_slot_wal_keep_size")
        bound = (
            "nothing bounds it (max_slot_wal_keep_size)"
            if limit < 0
            else f"max_slot_wal_keep_size lets it keep {show_bytes(limit * _MIB)}"
        )
        keeps = (
            "its consumer cannot go on from it"
            if is_lost
            else f"keeps {show_bytes(kept)} of WAL; {bound}"
        )
        yield RULE.finding(
            severity,
            f"slot {row['name']}",
            f"The {row['slot_type']} slot {state} and {keeps}."
            if not is_lost
            else f"The {row['slot_type']} slot {state}: {keeps}.",
            remedy=_remedy(row),
            price=bytes_held(kept, "WAL from the slot's position to the server's"),
            kept_bytes=round(kept),
            wal_status=row["wal_status"],
            invalidation_reason=row["reason"],
            is_active=bool(row["active"]),
        )


def _remedy(row: QueryRow) -> Remedy:
    drop = f"SELECT pg_drop_replication_slot({shown_literal(row['name'])})"
    if row["wal_status"] == "lost":
        return Remedy(
            sql=() if row["active"] else (drop,),
            text="Set its consumer up anew, with a new slot, and drop this one.",
            cost="a new copy of what it follows",
        )
    if row["active"]:
        return Remedy(
            text="Its consumer is connected and does not keep up: look there first. "
            "max_slot_wal_keep_size is what it may be behind.",
        )
    return Remedy(
        sql=(drop,),
        text="Let its consumer go on. If there is none any more, drop the slot. "
        "max_slot_wal_keep_size bounds what slots may keep.",
        cost="its consumer has to be set up anew",
    )


RULE = Rule(
    id="slot-keeps-wal",
    question="Which replication slots keep WAL, or are invalid?",
    book=("B14.5", "B12.14"),
    sql={
        15: _SQL.format(reason="NULL"),
        16: _SQL.format(reason="CASE WHEN s.conflicting THEN 'conflict with recovery' END"),
        17: _SQL.format(reason="s.invalidation_reason"),
    },
    decide=_decide,
    threshold="A slot that nobody uses and that keeps more than max_wal_size, which the server has "
    "on disk anyway; or one that is invalid (wal_status lost) or about to lose WAL (unreserved).",
    severity="error where it is invalid or about to be, for its consumer cannot go on; else "
    "warning.",
    price="Bytes of WAL that it keeps.",
    remedy="Let the consumer go on, or pg_drop_replication_slot.",
    blind="Before 17 why a slot is invalid: WAL that was removed is one reason of several. How "
    "much room the disk has. A slot in use that lags is not judged.",
    link="https://www.postgresql.org/docs/current/view-pg-replication-slots.html",
)
