"""Majors that get no more fixes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

from pgheadroom.doctor.rule import DAY_S, Facts, QueryRow, Rule
from pgheadroom.doctor.values import Finding, Remedy

_LAST_DAY: Mapping[int, str] = {
    15: "2027-11-11",
    16: "2028-11-09",
    17: "2029-11-08",
    18: "2030-11-14",
}
"""The last minor of each major (the project's versioning policy); one that is missing is younger
than this list."""

_GAINS: Mapping[int, str] = {
    16: "16: an index by BRIN no longer ends HOT, pages are frozen as a whole, pg_stat_io",
    17: "17: VACUUM's list of dead rows takes a fraction of the memory, one record prunes and "
    "freezes",
    18: "18: asynchronous reads, pages frozen early, statistics kept by pg_upgrade",
}

_SQL = """
SELECT current_setting('server_version_num')::int / 10000 AS major,
       current_setting('server_version') AS version
"""


def _decide(facts: Facts, rows: Sequence[QueryRow]) -> Iterator[Finding]:
    for row in rows:
        last = _LAST_DAY.get(int(row["major"]))
        if last is None:
            continue
        left_days = (
            datetime.fromisoformat(last).replace(tzinfo=UTC).timestamp() - facts.now_s
        ) / DAY_S
        if left_days >= 0:
            continue
        gains = "; ".join(text for major, text in _GAINS.items() if major > row["major"])
        yield RULE.finding(
            "warning",
            f"PostgreSQL {row['major']}",
            f"The last minor of this major came on {last}; nothing is repaired since, not what "
            "is found in security either.",
            remedy=Remedy(
                text=f"Upgrade. What later majors change for updates and space: {gains or 'see '}"
                f"{'' if gains else 'their release notes'}.",
                cost="pg_upgrade takes minutes; statistics have to be taken anew unless it is to "
                "18 or later",
            ),
            major=int(row["major"]),
            days_since=round(-left_days, 1),
        )


RULE = Rule(
    id="end-of-life",
    question="Is this major still repaired?",
    book=("B1.1", "B18.1", "B18.3"),
    sql={15: _SQL},
    decide=_decide,
    threshold="The day of its last minor is over, by the project's policy of five years.",
    severity="warning: no fault is repaired any more.",
    price="no price: nothing measures what is not repaired",
    remedy="A newer major.",
    blind="Whether the minor is the last one: that is in no server. A distributor may go on.",
    link="https://www.postgresql.org/support/versioning/",
)
