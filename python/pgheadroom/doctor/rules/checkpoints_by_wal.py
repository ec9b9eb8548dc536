"""Checkpoints that come because max_wal_size is full, not by the clock."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pgheadroom.doctor.rule import DAY_S, Facts, QueryRow, Rule, bytes_a_day
from pgheadroom.doctor.values import Finding, Remedy
from pgheadroom.settings import checkpoint_counters
from pgheadroom.settings.arithmetic import (
    MIB,
    are_by_wal,
    checkpoints_by_wal,
    distance_bytes,
    rounded_up_mib,
    wal_size_for,
)
from pgheadroom.units import PAGE_BYTES, percent, show_bytes, show_count

_WARN_SHARE = 0.5


def _decide(facts: Facts, rows: Sequence[QueryRow]) -> Iterator[Finding]:
    for row in rows:
        segment_bytes = int(facts.number("wal_segment_size"))
        target = facts.number("checkpoint_completion_target")
        max_bytes = facts.number("max_wal_size") * MIB
        distance = distance_bytes(max_bytes, segment_bytes, target)
        requested, done = int(row["requested"]), int(row["done"])
        is_bounded = facts.interval_s is not None or checkpoint_counters.are_of_one_time(row)
        by_wal = checkpoints_by_wal(
            requested, done, float(row["wal_bytes"]) if is_bounded else None, distance
        )
        if not are_by_wal(by_wal, done):
            continue
        share = by_wal / done
        length_s = facts.length_s(row) or 1.0
        timeout_s = facts.number("checkpoint_timeout")
        needed = wal_size_for(row["wal_bytes"] / length_s, timeout_s, segment_bytes, target)
        wanted_mib = rounded_up_mib(max(needed, 2 * max_bytes)) // MIB
        images = min(row["wal_fpi"] * PAGE_BYTES, row["wal_bytes"])
        each = row["buffers"] * PAGE_BYTES / done
        images_share = percent(images / max(row["wal_bytes"], 1.0))
        yield RULE.finding(
            "warning" if share >= _WARN_SHARE else "info",
            "max_wal_size",
            f"Up to {show_count(by_wal, 'checkpoint')} of {done:,} came because "
            f"{show_bytes(distance)} of WAL were written, not by the clock, {facts.over(row)}. "
            f"One wrote {show_bytes(each)} of pages in the mean. "
            f"After each, a page's first change writes the whole page: up to {show_bytes(images)} "
            f"of the {show_bytes(row['wal_bytes'])} ({images_share}).",
            remedy=Remedy(
                sql=(
                    f"ALTER SYSTEM SET max_wal_size = '{wanted_mib}MB'",
                    "SELECT pg_reload_conf()",
                ),
                text="Let the clock make them. What that saves, `pgheadroom wal what-if` says by "
                "the log itself.",
                cost=f"up to {wanted_mib:,} MB of disk for WAL, and recovery after a crash reads "
                "more of it",
                undo=f"ALTER SYSTEM SET max_wal_size = '{facts.settings['max_wal_size']}MB'",
            ),
            price=bytes_a_day(
                facts.a_day(row, float(images)),
                "full-page images, at most a page each (wal_fpi); a longer distance saves a part",
            ),
            checkpoints_by_wal=by_wal,
            checkpoints_done=done,
            by_wal_frac=round(share, 4),
            distance_bytes=distance,
            checkpoint_bytes=round(each),
            wal_bytes=round(row["wal_bytes"]),
            wal_bytes_a_day=round(row["wal_bytes"] * DAY_S / length_s),
            image_bytes_max=round(images),
            max_wal_size_wanted_bytes=wanted_mib * MIB,
        )


RULE = Rule(
    id="checkpoints-by-wal",
    question="Do checkpoints come because max_wal_size is full?",
    book=("B5.8", "B5.9", "B6.12", "B11.23", "B11.24", "B11.27", "B5.12"),
    sql=checkpoint_counters.SQL,
    decide=_decide,
    counters=("requested", "done", "buffers", "wal_bytes", "wal_fpi"),
    key=("id",),
    is_rate=True,
    on_standby=False,
    threshold="At least 3, and more than 10 % of all: a server whose checkpoints the clock makes "
    "has 90 % of them by it. No more are counted than there was WAL for.",
    severity="warning from half of all on, else info.",
    price="Bytes of full-page images a day, at most.",
    remedy="A larger max_wal_size: WAL per checkpoint_timeout x (1 + checkpoint_completion_target) "
    "and two segments, at least twice what it is.",
    blind="Which were requested by hand: the log says that (log_checkpoints). A rate is the mean "
    "of the time, and checkpoints by WAL come at the peaks.",
    link="https://www.postgresql.org/docs/current/wal-configuration.html",
)
