"""Sorts and hashes that do not fit into work_mem."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pgheadroom.doctor.rule import Facts, QueryRow, Rule, bytes_a_day
from pgheadroom.doctor.values import Finding, Remedy
from pgheadroom.units import show_bytes

_INFO_BYTES_A_DAY = 1024**3
_WARN_BYTES_A_DAY = 100 * 1024**3

_SQL = """
SELECT d.datid::int8 AS oid, d.datname AS name, d.temp_files, d.temp_bytes,
       extract(epoch FROM d.stats_reset)::float8 AS reset_epoch_s
FROM pg_stat_database d WHERE d.datname = current_database()
"""


def _decide(facts: Facts, rows: Sequence[QueryRow]) -> Iterator[Finding]:
    for row in rows:
        a_day = facts.a_day(row, float(row["temp_bytes"]))
        if a_day is None or a_day < _INFO_BYTES_A_DAY:
            continue
        mean = row["temp_bytes"] / max(row["temp_files"], 1)
        yield RULE.finding(
            "warning" if a_day >= _WARN_BYTES_A_DAY else "info",
            f"database {row['name']}",
            f"Sorts and hashes wrote {row['temp_files']:,} temporary files of "
            f"{show_bytes(row['temp_bytes'])} {facts.over(row)}, {show_bytes(mean)} in the mean: "
            f"they did not fit into work_mem ({facts.settings['work_mem']} kB).",
            remedy=Remedy(
                text="Find the statements (log_temp_files, temp_blks_written in "
                "pg_stat_statements) and give work_mem to them alone (SET LOCAL, or their role's): "
                "it is for each sort and hash, not for each session.",
                cost="memory, as often as it is used at once",
            ),
            price=bytes_a_day(a_day, "written into temporary files", basis="measured"),
            temp_files=int(row["temp_files"]),
            temp_bytes=int(row["temp_bytes"]),
            temp_bytes_a_day=round(a_day),
        )


RULE = Rule(
    id="temp-files",
    question="Do sorts and hashes go to disk?",
    book=("B6.20", "B4.14"),
    sql={15: _SQL},
    decide=_decide,
    counters=("temp_files", "temp_bytes"),
    key=("oid",),
    is_rate=True,
    threshold="1 GiB a day; arbitrary: less is written in seconds.",
    severity="warning from 100 GiB a day on (it is also read again), else info.",
    price="Bytes a day, measured.",
    remedy="More work_mem for the statements that need it.",
    blind="Which statements they were. Files of building indexes are counted too.",
    link="https://www.postgresql.org/docs/current/runtime-config-resource.html",
)
