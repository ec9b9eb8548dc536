"""Tables that nobody vacuums."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pgheadroom.doctor import dead_rows
from pgheadroom.doctor.rule import Facts, QueryRow, Rule, bytes_held
from pgheadroom.doctor.values import Finding, Remedy
from pgheadroom.quoting import called, shown_relation
from pgheadroom.units import show_bytes

_BYTES_MIN = 1024**2


def _decide(facts: Facts, rows: Sequence[QueryRow]) -> Iterator[Finding]:
    for row in rows:
        trigger = dead_rows.trigger_rows(facts, row)
        dead, size = int(row["n_dead_tup"]), dead_rows.dead_bytes(row)
        if not dead_rows.is_switched_off(facts, row) or size < _BYTES_MIN or dead <= trigger:
            continue
        name = shown_relation(row["schema"], row["name"])
        toast = "toast." if row["has_own_toast_options"] else ""
        where, sql, undo = "for all tables (autovacuum = off)", "", None
        if facts.settings["autovacuum"] != "off":
            where = f"for it ({toast}autovacuum_enabled)"
            sql = f"ALTER TABLE {name} RESET ({toast}autovacuum_enabled)"
            undo = f"ALTER TABLE {name} SET ({toast}autovacuum_enabled = off)"
        table = called(row["schema"], row["name"])
        yield RULE.finding(
            "warning",
            f"{table} (TOAST)" if row["is_toast"] else table,
            f"Autovacuum is off {where}, and {dead:,} of its {dead + row['n_live_tup']:,} rows are "
            f"dead ({show_bytes(size)}); it would have come at {trigger:,.0f}.",
            remedy=Remedy(
                sql=(sql,) if sql else (),
                text="Switch it on; where a job vacuums at night, see whether it does."
                if sql
                else "Switch it on where it is set: `autovacuum-switched-off` says where that is.",
                lock="SHARE UPDATE EXCLUSIVE, for a moment" if sql else None,
                cost="autovacuum's reading and writing, bounded by its cost settings",
                undo=undo,
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
        )


RULE = Rule(
    id="autovacuum-off",
    question="Which tables with dead rows does autovacuum leave alone?",
    book=("B7.23", "B6.9", "B17.6"),
    sql={15: dead_rows.SQL},
    decide=_decide,
    on_standby=False,
    threshold="Autovacuum is off for it or for all, it has the dead rows at which it would come, "
    "and 1 MiB of them.",
    severity="warning: nothing will remove them by itself.",
    price="Bytes of the table's pages that dead rows take, by their share of all rows.",
    remedy="Switch autovacuum on. Over an interval the twin says how many rows are dead then.",
    blind="A job that vacuums instead, and has not run yet.",
    link="https://www.postgresql.org/docs/current/routine-vacuuming.html#AUTOVACUUM",
)
