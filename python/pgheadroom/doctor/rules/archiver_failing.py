"""WAL that is not archived."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pgheadroom.doctor.rule import Facts, QueryRow, Rule, bytes_held
from pgheadroom.doctor.values import Finding, Remedy, Severity
from pgheadroom.units import show_age, show_bytes

_ERROR_S = 300.0

# How far the log has gone since the last segment that was archived; segments' names begin with the
# timeline, and a switch to another makes the two hard to compare: then nothing is said.
_SQL = """
SELECT 1 AS id, a.failed_count, a.archived_count, a.last_failed_wal, a.last_archived_wal,
       extract(epoch FROM a.last_failed_time)::float8 AS failed_epoch_s,
       extract(epoch FROM a.last_archived_time)::float8 AS archived_epoch_s,
       extract(epoch FROM a.stats_reset)::float8 AS since_epoch_s,
       to_char(a.stats_reset AT TIME ZONE 'UTC', 'YYYY-MM-DD') AS since,
       extract(epoch FROM pg_postmaster_start_time())::float8 AS started_epoch_s,
       pg_walfile_name(pg_current_wal_insert_lsn()) AS current_wal
FROM pg_stat_archiver a
WHERE current_setting('archive_mode') <> 'off'
"""


def _decide(facts: Facts, rows: Sequence[QueryRow]) -> Iterator[Finding]:
    for row in rows:
        if not (facts.settings["archive_command"].strip() or facts.settings["archive_library"]):
            yield _without_command(facts, row)
            continue
        failed_s, archived_s = row["failed_epoch_s"], row["archived_epoch_s"]
        if failed_s is None or (archived_s is not None and archived_s > failed_s):
            continue  # it goes on: what failed was tried again
        waiting = _waiting_bytes(facts, row["last_failed_wal"], row["current_wal"])
        since = "never archived one"
        if archived_s is not None:
            since = f"archived the last one {show_age(max(facts.now_s - archived_s, 0))} ago"
        held = "" if waiting is None else f" {show_bytes(waiting)} wait in pg_wal."
        yield RULE.finding(
            severity_of(facts, row, waiting),
            "archive_command",
            f"Archiving fails at {row['last_failed_wal']}; it has {since} "
            f"({row['failed_count']:,} attempts failed since {row['since']}, others among "
            f"them).{held} While it lasts the log grows, and backups end there.",
            remedy=Remedy(
                text="See the server's log for what archive_command or archive_library said, and "
                "repair it; the archiver goes on by itself.",
            ),
            price=None
            if waiting is None
            else bytes_held(waiting, "segments from the failed one to the current"),
            failed_count=int(row["failed_count"]),
            waiting_bytes=waiting,
        )


def severity_of(facts: Facts, row: QueryRow, waiting: int | None) -> Severity:
    """
    An error once nothing was archived for five minutes, in which it has tried 15 times.

    Where a single segment waits it may have been filled just now: that is a warning.
    """
    beginnings = (row["archived_epoch_s"], row["since_epoch_s"], row["started_epoch_s"])
    stalled_s = facts.now_s - max(each for each in beginnings if each is not None)
    if stalled_s < _ERROR_S:
        return "info"
    is_one = waiting is not None and waiting <= facts.number("wal_segment_size")
    return "warning" if is_one else "error"


def _without_command(facts: Facts, row: QueryRow) -> Finding:
    waiting = _waiting_bytes(facts, row["last_archived_wal"], row["current_wal"])
    held = "" if waiting is None else f" {show_bytes(waiting)} wait in pg_wal."
    return RULE.finding(
        "error",
        "archive_command",
        "archive_mode is on, and neither archive_command nor archive_library is set: nothing is "
        f"archived, and the log is kept until it is.{held}",
        remedy=Remedy(
            text="Set one of them (a reload is enough); or archive_mode = off, which needs a "
            "restart.",
        ),
        price=None
        if waiting is None
        else bytes_held(waiting, "segments from the last archived one to the current"),
        waiting_bytes=waiting,
    )


def _waiting_bytes(facts: Facts, first: str | None, current: str | None) -> int | None:
    segment_bytes = int(facts.number("wal_segment_size"))
    waiting = _segments_between(first, current, segment_bytes)
    return None if waiting is None else waiting * segment_bytes


def _segments_between(failed: str | None, current: str | None, segment_bytes: int) -> int | None:
    """How many segments lie before the current one, the failed one counted; by their names."""
    if not failed or not current or len(failed) != 24 or failed[:8] != current[:8]:
        return None  # a history or backup file, or another timeline

    def number(name: str) -> int:
        return int(name[8:16], 16) * (2**32 // segment_bytes) + int(name[16:24], 16)

    return max(number(current) - number(failed), 0)


RULE = Rule(
    id="archiver-failing",
    question="Is WAL archived?",
    book=("B12.14", "B14.5"),
    sql={15: _SQL},
    decide=_decide,
    on_standby=False,
    threshold="The last attempt failed: after one that succeeds the archiver has gone on. Or "
    "archive_mode is on and nothing is set that would archive.",
    severity="error where nothing was archived for five minutes (it tries three times a minute) "
    "and more than one segment waits, and where nothing is set: pg_wal grows until the disk is "
    "full, and no backup reaches further. warning where one waits, info before.",
    price="Bytes of WAL that wait, from the failed segment to the current one.",
    remedy="Repair archive_command or archive_library.",
    blind="An archiver that hangs in its command, or loses what it says it has archived.",
    link="https://www.postgresql.org/docs/current/continuous-archiving.html",
)
