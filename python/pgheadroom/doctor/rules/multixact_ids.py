"""How far multixact ids are from their end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pgheadroom.doctor.rule import Facts, QueryRow, Rule
from pgheadroom.doctor.rules.transaction_ids import remedy_of
from pgheadroom.doctor.values import Finding

_LATE = 1.5

_SQL = """
SELECT d.datname AS name, mxid_age(d.datminmxid)::int8 AS age_mxids,
       CASE WHEN d.datname = current_database() THEN
         (SELECT jsonb_build_array(c.oid::regclass::text, c.relpersistence) FROM pg_class c
          WHERE c.relkind IN ('r', 'm', 't') AND c.relminmxid::text <> '0'
          ORDER BY mxid_age(c.relminmxid) DESC, c.oid LIMIT 1) END AS oldest,
       d.datallowconn AS lets_in
FROM pg_database d
-- One whose DROP was interrupted does not count (vac_truncate_clog), and nobody can enter it.
WHERE d.datconnlimit <> -2
"""


def _decide(facts: Facts, rows: Sequence[QueryRow]) -> Iterator[Finding]:
    forced = facts.number("autovacuum_multixact_freeze_max_age")
    failsafe = max(facts.number("vacuum_multixact_failsafe_age"), 1.05 * forced)
    for row in rows:
        age = int(row["age_mxids"])
        if age < min(_LATE * forced, failsafe):
            continue
        oldest = f" The oldest is {row['oldest'][0]}." if row["oldest"] else ""
        yield RULE.finding(
            "error" if age >= failsafe else "warning",
            f"database {row['name']}",
            f"Its oldest multixact is {age:,} back; autovacuum freezes from {forced:,.0f} on and "
            f"does not get through.{oldest}",
            remedy=remedy_of(
                row,
                "End old transactions first, then VACUUM the oldest tables, without FREEZE. "
                "Multixacts come of rows that several transactions lock, mostly of foreign keys' "
                "checks.",
            ),
            age_mxids=age,
        )


RULE = Rule(
    id="multixact-ids",
    question="How far are multixact ids from their end?",
    book=("B7.4",),
    sql={15: _SQL},
    decide=_decide,
    threshold="Half as old again as autovacuum_multixact_freeze_max_age, or "
    "vacuum_multixact_failsafe_age if that is less.",
    severity="error from vacuum_multixact_failsafe_age on, else warning.",
    price="no price: nothing that everybody may read counts multixacts, so no time is left to tell",
    remedy="VACUUM, without FREEZE, of the oldest tables.",
    blind="The room of their members, which can run out before the ids do.",
    link="https://www.postgresql.org/docs/current/routine-vacuuming.html"
    "#VACUUM-FOR-MULTIXACT-WRAPAROUND",
)
