"""Tables with many more dead rows than autovacuum waits for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pgheadroom.doctor import dead_rows
from pgheadroom.doctor.rule import Facts, QueryRow, Rule, bytes_held
from pgheadroom.doctor.values import Finding, Remedy
from pgheadroom.quoting import called, shown_relation
from pgheadroom.units import show_age

_TIMES = 2.0
_WARN_TIMES = 5.0
_BYTES_MIN = 10 * 1024**2


def _decide(facts: Facts, rows: Sequence[QueryRow]) -> Iterator[Finding]:
    for row in rows:
        trigger = dead_rows.trigger_rows(facts, row)
        dead, size = int(row["n_dead_tup"]), dead_rows.dead_bytes(row)
        if dead_rows.is_switched_off(facts, row) or size < _BYTES_MIN or dead < _TIMES * trigger:
            continue
        if _was_just_there(facts, row):
            continue
        times = dead / max(trigger, 1.0)
        last = "was never vacuumed since the statistics began"
        if row["vacuum_epoch_s"] is not None:
            ago = max(facts.now_s - row["vacuum_epoch_s"], 0.0)
            last = f"was last vacuumed {show_age(ago)} ago"
        table = called(row["schema"], row["name"])
        is_at_work = bool(row["is_being_vacuumed"])
        yield RULE.finding(
            "warning" if times >= _WARN_TIMES and not is_at_work else "info",
            f"{table} (TOAST)" if row["is_toast"] else table,
            f"{dead:,} rows are dead, {times:,.1f} times what autovacuum waits for "
            f"({trigger:,.0f}), beside {row['n_live_tup']:,} live ones; it {last}.",
            remedy=_AT_WORK
            if is_at_work
            else Remedy(
                sql=(f"VACUUM (VERBOSE) {shown_relation(row['schema'], row['name'])}",),
                text="See first whether something holds the horizon (`horizon-holder`), whether "
                "all autovacuum_max_workers are busy elsewhere, or whether locks cancel it. Then "
                "more of its work at once: autovacuum_vacuum_cost_limit.",
                lock="SHARE UPDATE EXCLUSIVE: readers and writers go on",
                cost="a scan of the pages that changed, and of the indexes",
            ),
            price=bytes_held(
                size, "the dead rows' part of its pages (relpages)", basis="estimated"
            ),
            oid=int(row["oid"]),
            table_oid=int(row["table_oid"]),
            n_dead_tup=dead,
            n_live_tup=int(row["n_live_tup"]),
            trigger_rows=round(trigger, 1),
            dead_bytes=round(size),
            is_being_vacuumed=is_at_work,
        )


def _was_just_there(facts: Facts, row: QueryRow) -> bool:
    """
    Whether it was vacuumed so lately that nobody can be late yet.

    A session that has deleted rows within the second before a VACUUM tells them after it has
    counted (PGSTAT_MIN_INTERVAL, pgstat.c): then rows count as dead that are gone.
    """
    vacuumed_s = row["vacuum_epoch_s"]
    return vacuumed_s is not None and facts.now_s - vacuumed_s < facts.number("autovacuum_naptime")


_AT_WORK = Remedy(
    text="A VACUUM is at work on it at this moment (pg_stat_progress_vacuum): let it finish. "
    "Another would wait for it, and autovacuum's would be cancelled for that."
)

RULE = Rule(
    id="autovacuum-late",
    question="To which tables does autovacuum come too late?",
    book=("B7.22", "B7.24", "B7.26", "B10.10"),
    sql={15: dead_rows.SQL},
    decide=_decide,
    on_standby=False,
    threshold="Twice the dead rows that autovacuum waits for, by settings and storage parameters, "
    "and 10 MiB of them: it looks every minute (autovacuum_naptime), so what is far beyond has "
    "been waiting, or is held off. Not within that time after a VACUUM.",
    severity="warning from five times on, unless a VACUUM is at work on it; else info.",
    price="Bytes of the table's pages that dead rows take, by their share of all rows.",
    remedy="Find what holds it off; then VACUUM, and a higher autovacuum_vacuum_cost_limit. Over "
    "an interval the twin says how many rows are dead at the limit in force and at ten times it; "
    "where the horizon was held, with it and without.",
    blind="Many rows that were deleted within the last minute look the same. n_dead_tup is the "
    "server's own estimate.",
    link="https://www.postgresql.org/docs/current/routine-vacuuming.html#AUTOVACUUM",
)
