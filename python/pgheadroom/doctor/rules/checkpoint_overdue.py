"""Checkpoints that do not come to an end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pgheadroom.doctor.rule import Facts, QueryRow, Rule, bytes_held
from pgheadroom.doctor.values import Finding, Remedy
from pgheadroom.units import show_age, show_bytes, show_duration

_MIB = 1024**2
_TIMEOUTS = 2.0
"""The control file has the last one that ended, with the time of its start. The next one starts a
timeout later and takes up to checkpoint_completion_target of another."""

_SQL = """
SELECT (pg_current_wal_insert_lsn() - c.redo_lsn)::float8 AS replayed_bytes,
       extract(epoch FROM c.checkpoint_time)::float8 AS started_epoch_s
FROM pg_control_checkpoint() c
"""


def _decide(facts: Facts, rows: Sequence[QueryRow]) -> Iterator[Finding]:
    for row in rows:
        replayed, allowed = float(row["replayed_bytes"]), facts.number("max_wal_size") * _MIB
        age_s = facts.now_s - float(row["started_epoch_s"])
        timeout_s = facts.number("checkpoint_timeout")
        if replayed <= allowed or age_s <= _TIMEOUTS * timeout_s:
            continue
        yield RULE.finding(
            "warning",
            "checkpoint_timeout",
            f"The last checkpoint that came to its end began {show_age(age_s)} ago, though "
            f"one is due each {show_duration(timeout_s)} (checkpoint_timeout): recovery after a "
            f"crash would read {show_bytes(replayed)} of WAL, more than max_wal_size.",
            remedy=Remedy(
                text="The server's log says why (log_checkpoints): one that fails names its file, "
                "and is tried again and again. One that is slow has more to write and to sync "
                "than the disk takes. Repair that before anything is restarted: a shutdown waits "
                "for a checkpoint too.",
            ),
            price=bytes_held(replayed, "WAL since the last checkpoint's redo point"),
            replayed_bytes=round(replayed),
            age_s=round(age_s, 1),
        )


RULE = Rule(
    id="checkpoint-overdue",
    question="Do checkpoints come to their end?",
    book=("B5.13",),
    sql={15: _SQL},
    decide=_decide,
    on_standby=False,
    threshold="The last one that ended began more than two checkpoint_timeouts ago, and more WAL "
    "was written since its redo point than max_wal_size. One that is spread out ends within 1.9 of "
    "them.",
    severity="warning: WAL is kept on disk until one ends, and recovery takes as much longer.",
    price="Bytes of WAL that recovery after a crash would read.",
    remedy="Find in the log why they fail, or what makes them slow.",
    blind="How fast recovery reads it: only a recovery shows that.",
    link="https://www.postgresql.org/docs/current/wal-configuration.html",
)
