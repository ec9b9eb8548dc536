"""A cache as initdb makes it, beside a database that is read again and again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pgheadroom.doctor.rule import Facts, QueryRow, Rule, bytes_a_day
from pgheadroom.doctor.values import Finding, Remedy
from pgheadroom.units import PAGE_BYTES, show_bytes

_DEFAULT_BYTES = 128 * 1024**2
_INFO_BYTES_A_DAY = 100 * 1024**3
_WARN_BYTES_A_DAY = 1024**4

_SQL = """
SELECT d.datid::int8 AS oid, d.datname AS name, d.blks_read,
       (SELECT sum(c.relpages) FROM pg_class c WHERE c.relkind IN ('r', 'm', 't', 'i'))::int8
         AS pages
FROM pg_stat_database d WHERE d.datname = current_database()
"""


def _decide(facts: Facts, rows: Sequence[QueryRow]) -> Iterator[Finding]:
    cache = facts.number("shared_buffers") * PAGE_BYTES
    for row in rows:
        size, read = int(row["pages"]) * PAGE_BYTES, float(row["blks_read"]) * PAGE_BYTES
        a_day = facts.a_day(row, read)
        if cache > _DEFAULT_BYTES or size <= cache or a_day is None or a_day < _INFO_BYTES_A_DAY:
            continue
        yield RULE.finding(
            "warning" if a_day >= _WARN_BYTES_A_DAY else "info",
            "shared_buffers",
            f"{show_bytes(read)} were read into {show_bytes(cache)} of shared_buffers "
            f"{facts.over(row)}, out of a database of {show_bytes(size)}.",
            remedy=Remedy(
                text="A quarter of the machine's memory is a start, which a connection does not "
                "see: `pgheadroom settings`, told the memory, has the line. It needs a restart.",
                cost="memory, which the system's cache then does not have",
            ),
            price=bytes_a_day(
                a_day, "read from the disk or the system's cache (blks_read)", basis="measured"
            ),
            shared_buffers_bytes=round(cache),
            read_bytes=round(read),
            read_bytes_a_day=round(a_day),
            database_bytes=size,
        )


RULE = Rule(
    id="shared-buffers-default",
    question="Is the cache as small as a new cluster's, though much is read?",
    book=("B5.19",),
    sql={15: _SQL},
    decide=_decide,
    counters=("blks_read",),
    key=("oid",),
    is_rate=True,
    threshold="shared_buffers is 128 MB, as initdb sets it, or less; the database is larger, by "
    "relpages; and 100 GiB a day are read into it, which is 800 times the cache. Arbitrary.",
    severity="warning from 1 TiB a day on, else info.",
    price="Bytes a day that are read, measured.",
    remedy="More shared_buffers, by the machine's memory.",
    blind="What comes out of the system's cache, which costs little, and what a larger cache would "
    "have held. Large sequential scans go through a small ring and fill no cache.",
    link="https://www.postgresql.org/docs/current/runtime-config-resource.html",
)
