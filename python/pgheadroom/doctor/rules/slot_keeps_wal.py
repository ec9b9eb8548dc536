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
         AS kept_bytes
FROM pg_replication_slots s WHERE NOT s.temporary
"""


def _decide(facts: Facts, rows: Sequence[QueryRow]) -> Iterator[Finding]:
    allowed = facts.number("max_wal_size") * _MIB
    for row in rows:
        kept = float(row["kept_bytes"] or 0)
        severity: Severity
        if row["wal_status"] in ("lost", "unreserved"):
            severity = "error"
            state = (
                "has lost WAL that it needs"
                if row["wal_status"] == "lost"
                else ("is about to lose WAL that it needs")
            )
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
        yield RULE.finding(
            severity,
            f"slot {row['name']}",
            f"The {row['slot_type']} slot {state} and keeps {show_bytes(kept)} of WAL; {bound}.",
            remedy=Remedy(
                sql=(f"SELECT pg_drop_replication_slot({shown_literal(row['name'])})",),
                text="Let its consumer go on. If there is none any more, or it has lost what it "
                "needs, drop the slot. max_slot_wal_keep_size bounds what slots may keep.",
                cost="its consumer has to be set up anew",
            ),
            price=bytes_held(kept, "WAL from the slot's position to the server's"),
            kept_bytes=round(kept),
            wal_status=row["wal_status"],
            is_active=bool(row["active"]),
        )


RULE = Rule(
    id="slot-keeps-wal",
    question="Which replication slots keep WAL, or have lost it?",
    book=("B14.5", "B12.14"),
    sql={15: _SQL},
    decide=_decide,
    threshold="A slot that nobody uses and that keeps more than max_wal_size, which the server has "
    "on disk anyway; or one whose WAL is lost or about to be (wal_status).",
    severity="error where WAL is lost or about to be, for its consumer cannot go on; else warning.",
    price="Bytes of WAL that it keeps.",
    remedy="Let the consumer go on, or pg_drop_replication_slot.",
    blind="How much room the disk has. A slot in use that lags is not judged.",
    link="https://www.postgresql.org/docs/current/view-pg-replication-slots.html",
)
