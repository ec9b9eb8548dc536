"""How far transaction ids are from their end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pgheadroom.doctor.rule import DAY_S, Facts, QueryRow, Rule
from pgheadroom.doctor.values import Finding, Price, Remedy, Severity
from pgheadroom.units import show_age

_XIDS_END = 2**31 - 3_000_000
"""New transactions are refused from 3 million before wraparound on (SetTransactionIdLimit,
varsup.c)."""
_LATE = 1.5
_ERROR_DAYS = 7.0

_SQL = """
SELECT d.datname AS name, d.datname = current_database() AS is_here,
       age(d.datfrozenxid)::int8 AS age_xids,
       pg_snapshot_xmax(pg_current_snapshot())::text::int8 AS next_xid,
       CASE WHEN d.datname = current_database() THEN
         (SELECT jsonb_build_array(c.oid::regclass::text, c.relpersistence) FROM pg_class c
          WHERE c.relkind IN ('r', 'm', 't') AND c.relfrozenxid::text <> '0'
          ORDER BY age(c.relfrozenxid) DESC, c.oid LIMIT 1) END AS oldest,
       d.datallowconn AS lets_in
FROM pg_database d
-- One whose DROP was interrupted does not count (vac_truncate_clog), and nobody can enter it.
WHERE d.datconnlimit <> -2
"""


def _decide(facts: Facts, rows: Sequence[QueryRow]) -> Iterator[Finding]:
    forced = facts.number("autovacuum_freeze_max_age")
    failsafe = max(facts.number("vacuum_failsafe_age"), 1.05 * forced)  # as VACUUM takes it
    for row in rows:
        age = int(row["age_xids"])
        left = max(_XIDS_END - age, 0)
        left_s = _left_s(facts, row, left)
        if age < min(_LATE * forced, failsafe):
            continue  # autovacuum gets through, however fast ids are taken
        is_soon = left_s is not None and left_s < _ERROR_DAYS * DAY_S and facts.judges_rates
        severity: Severity = "error" if age >= failsafe or is_soon else "warning"
        told = "" if left_s is None else f", {show_age(left_s)} at the present rate"
        oldest = f" The oldest is {row['oldest'][0]}." if row["oldest"] else ""
        yield RULE.finding(
            severity,
            f"database {row['name']}",
            f"Its oldest row is {age:,} transactions old; autovacuum freezes from {forced:,.0f} on "
            f"and does not get through. {left:,} are left until the server refuses to write{told}."
            f"{oldest}",
            remedy=remedy_of(
                row,
                "See first whether something holds the horizon (`horizon-holder`): then nothing "
                "can be frozen. Then VACUUM the oldest tables, in that database, without FREEZE.",
            ),
            price=_price(left_s),
            age_xids=age,
            left_xids=left,
            left_s=None if left_s is None else round(left_s),
        )


def remedy_of(row: QueryRow, text: str) -> Remedy:
    """
    A plain VACUUM of the oldest table, where it is here and somebody else can do it.

    The manual forbids FREEZE there: it does more than is needed, and takes longer.
    """
    if not row["lets_in"]:
        return Remedy(
            text="The database lets nobody in: autovacuum freezes it all the same, once nothing "
            "holds the horizon (`horizon-holder`). Else ALTER DATABASE ... ALLOW_CONNECTIONS true, "
            "VACUUM in it, and back.",
        )
    if row["oldest"] and row["oldest"][1] == "t":
        return Remedy(
            text="The oldest is a session's temporary table, which only that session can vacuum or "
            "drop: find the session by the schema's number, and end it.",
        )
    return Remedy(
        sql=(f"VACUUM (VERBOSE) {row['oldest'][0]}",) if row["oldest"] else (),
        text=text,
        lock="SHARE UPDATE EXCLUSIVE: readers and writers go on",
        cost="a scan of the table",
    )


def _left_s(facts: Facts, row: QueryRow, left: int) -> float | None:
    """At the rate of the interval; statistics do not count transaction ids."""
    if facts.interval_s is None or not row["next_xid"]:
        return None
    return left * facts.interval_s / float(row["next_xid"])


def _price(left_s: float | None) -> Price:
    text = "time until the server refuses to write, by the transaction ids of the interval"
    if left_s is None:
        return Price(amount=None, unit=None, basis="none", text=RULE.price)
    return Price(amount=round(left_s), unit="seconds", basis="measured", text=text)


RULE = Rule(
    id="transaction-ids",
    question="How long until transaction ids run out?",
    book=("B7.4", "B7.5", "B12.14"),
    sql={15: _SQL},
    decide=_decide,
    counters=("next_xid",),
    key=("name",),
    threshold="Half as old again as autovacuum_freeze_max_age, or vacuum_failsafe_age if that is "
    "less: from the former on autovacuum freezes by force, and at a healthy server gets through "
    "long before.",
    severity="error from vacuum_failsafe_age on, or within a week of the end by the rate of an "
    "interval of ten minutes or more; else warning.",
    price="Seconds left, over an interval; statistics alone do not count transaction ids.",
    remedy="VACUUM, without FREEZE, of the oldest tables, once nothing holds the horizon.",
    blind="Tables of other databases are not seen by name.",
    link="https://www.postgresql.org/docs/current/routine-vacuuming.html#VACUUM-FOR-WRAPAROUND",
)
