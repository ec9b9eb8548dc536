"""Checkpoints by a clock that is so fast that most of the log is images of pages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pgheadroom.doctor.rule import Facts, QueryRow, Rule, bytes_a_day
from pgheadroom.doctor.values import Finding, Remedy
from pgheadroom.settings import checkpoint_counters
from pgheadroom.settings.arithmetic import (
    MIB,
    are_by_wal,
    checkpoints_by_wal,
    distance_bytes,
)
from pgheadroom.settings.checkpoints import (
    IMAGES_BYTES_A_DAY_MIN,
    IMAGES_FRAC_MIN,
    TIMEOUT_S,
    TIMEOUT_SHORT_S,
)
from pgheadroom.units import PAGE_BYTES, percent, show_bytes, show_duration


def _decide(facts: Facts, rows: Sequence[QueryRow]) -> Iterator[Finding]:
    timeout_s = facts.number("checkpoint_timeout")
    if timeout_s >= TIMEOUT_SHORT_S:
        return
    for row in rows:
        images = min(float(row["wal_fpi"]) * PAGE_BYTES, float(row["wal_bytes"]))
        share = images / max(float(row["wal_bytes"]), 1.0)
        of_wal = {"since_epoch_s": row["wal_since_epoch_s"]}
        a_day = facts.a_day(of_wal, images)
        distance = distance_bytes(
            facts.number("max_wal_size") * MIB,
            int(facts.number("wal_segment_size")),
            facts.number("checkpoint_completion_target"),
        )
        by_wal = checkpoints_by_wal(
            int(row["requested"]), int(row["done"]), float(row["wal_bytes"]), distance
        )
        if (
            share < IMAGES_FRAC_MIN
            or a_day is None
            or a_day < IMAGES_BYTES_A_DAY_MIN
            or are_by_wal(by_wal, int(row["done"]))  # `checkpoints-by-wal` has these
        ):
            continue
        yield RULE.finding(
            "info",
            "checkpoint_timeout",
            f"Up to {show_bytes(images)} of {show_bytes(row['wal_bytes'])} of WAL were full-page "
            f"images ({percent(share)}) {facts.over(of_wal)}: the clock makes a checkpoint each "
            f"{show_duration(timeout_s)}, and after each a page's first change writes the whole "
            "page.",
            remedy=Remedy(
                sql=(
                    f"ALTER SYSTEM SET checkpoint_timeout = '{TIMEOUT_S / 60:.0f}min'",
                    "SELECT pg_reload_conf()",
                ),
                text="Make them rarer; max_wal_size has to hold the WAL of that time (`pgheadroom "
                "settings`). What that saves, `pgheadroom wal what-if` says by the log itself.",
                cost="recovery after a crash reads up to so much time of WAL, and pg_wal holds it",
                undo=f"ALTER SYSTEM SET checkpoint_timeout = '{timeout_s:.0f}s'",
            ),
            price=bytes_a_day(
                a_day,
                "full-page images, at most a page each (wal_fpi); rarer checkpoints save a part",
            ),
            wal_bytes=round(float(row["wal_bytes"])),
            image_bytes_max=round(images),
            image_frac_max=round(share, 4),
            checkpoints_done=int(row["done"]),
            checkpoint_timeout_s=round(timeout_s),
        )


RULE = Rule(
    id="checkpoint-images",
    question="Is most of the log images of pages, for checkpoints come often?",
    book=("B6.13", "B11.29", "B5.12"),
    sql=checkpoint_counters.SQL,
    decide=_decide,
    counters=("requested", "done", "wal_bytes", "wal_fpi"),
    key=("id",),
    is_rate=True,
    on_standby=False,
    threshold="Images are half of the WAL or more, 1 GiB a day or more, and checkpoint_timeout is "
    "under 10 min; arbitrary: less is written in seconds. Not where WAL asks for them.",
    severity="info: it is the default, and costs what it is told to cost.",
    price="Bytes of full-page images a day, at most.",
    remedy="A longer checkpoint_timeout.",
    blind="How much of the images a longer time saves: the log says that. Images of hint bits and "
    "of index builds are counted too.",
    link="https://www.postgresql.org/docs/current/wal-configuration.html",
)
