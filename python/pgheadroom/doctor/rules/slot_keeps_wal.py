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
       {reason} AS reason, {copied} AS is_copied
FROM pg_replication_slots s WHERE NOT s.temporary
"""


def _decide(facts: Facts, rows: Sequence[QueryRow]) -> Iterator[Finding]:
    allowed = facts.number("max_wal_size") * _MIB
    for row in rows:
        severity: Severity
        is_lost = row["wal_status"] == "lost"
        # One that is invalid keeps none (ReplicationSlotsComputeRequiredLSN).
        kept = 0.0 if is_lost else float(row["kept_bytes"] or 0)
        if is_lost:
            severity, state = "error", f"is invalid ({row['reason'] or 'wal_status lost'})"
        elif row["wal_status"] == "unreserved":
            severity, state = "error", "is about to lose WAL that it needs"
        elif row["is_copied"]:
            continue  # the primary knows whether somebody uses it
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
    if row["is_copied"]:
        return Remedy(
            text="It is a copy of the primary's slot of that name, made anew from that: see there.",
        )
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
    # Not to be run as it stands: whoever comes back would find its position gone, and no undo
    # brings that again.
    return Remedy(
        text="Let its consumer go on. max_slot_wal_keep_size bounds what slots may keep. Only if "
        f"the consumer is gone for good: {drop}; one that comes back has to be set up anew then.",
    )


RULE = Rule(
    id="slot-keeps-wal",
    question="Which replication slots keep WAL, or are invalid?",
    book=("B14.5", "B12.14"),
    sql={
        15: _SQL.format(reason="NULL", copied="false"),
        16: _SQL.format(
            # Any that is invalid is called conflicting; one that lost WAL has no position any more.
            reason="CASE WHEN s.conflicting AND s.restart_lsn IS NOT NULL"
            " THEN 'conflict with recovery' END",
            copied="false",
        ),
        17: _SQL.format(reason="s.invalidation_reason", copied="s.synced AND pg_is_in_recovery()"),
    },
    decide=_decide,
    threshold="A slot that nobody uses and that keeps more than max_wal_size, which the server has "
    "on disk anyway; or one that is invalid (wal_status lost) or about to lose WAL (unreserved).",
    severity="error where it is invalid or about to be, for its consumer cannot go on; else "
    "warning.",
    price="Bytes of WAL that it keeps.",
    remedy="Let the consumer go on; pg_drop_replication_slot if it is gone for good. No statement "
    "is printed for a slot that still has its place: dropped, a standby that comes back is lost.",
    blind="Before 17 why a slot is invalid: WAL that was removed is one reason of several. How "
    "much room the disk has. A slot in use that lags is not judged; at a standby, "
    "whether somebody uses a slot of the primary's that is copied.",
    link="https://www.postgresql.org/docs/current/view-pg-replication-slots.html",
)
