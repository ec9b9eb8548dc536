"""Rows that die faster than autovacuum's cost limit lets it work."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pgheadroom.doctor.rule import DAY_S, Facts, QueryRow, Rule, bytes_a_day
from pgheadroom.doctor.values import Finding, Remedy
from pgheadroom.settings.arithmetic import (
    COST_LIMIT_MAX,
    VACUUM_BUSY_FRAC_MAX,
    cost_limit_for,
    cost_pace,
    work_per_s,
)
from pgheadroom.settings.measured import DYING_SQL, dying_tables
from pgheadroom.units import PAGE_BYTES, percent

_NAME = "autovacuum_vacuum_cost_limit"


def _decide(facts: Facts, rows: Sequence[QueryRow]) -> Iterator[Finding]:
    limit, delay_s = cost_pace(facts.settings)
    length_s = facts.length_s(rows[0]) if rows else None
    if not length_s or delay_s <= 0:
        return
    tables = dying_tables(facts.settings, rows, length_s)
    work = work_per_s(tables, facts.settings)
    share = work.cost * delay_s / limit
    if share <= VACUUM_BUSY_FRAC_MAX:
        return
    wanted = cost_limit_for(work, delay_s)
    dead = sum(table.dead_per_s for table in tables)
    a_day = work.pages * PAGE_BYTES * DAY_S if facts.tells_rates(rows[0]) else None
    yield RULE.finding(
        "warning" if share >= 1.0 else "info",
        _NAME,
        f"{dead:,.1f} rows a second die {facts.over(rows[0])}, in {_counted(tables)}. Autovacuum "
        f"has up to {work.pages:,.1f} pages a second to process so that it keeps up, at a cost of "
        f"up to {work.cost:,.0f}; all workers together may cost {limit / delay_s:,.0f} a second: "
        f"{percent(share)} of it.",
        remedy=_raised(facts, wanted) if wanted > limit else _ENOUGH,
        price=bytes_a_day(a_day, "pages that autovacuum has to process, at most"),
        dead_rows_per_s=round(dead, 3),
        pages_per_s=round(work.pages, 3),
        cost_per_s=round(work.cost, 3),
        cost_per_s_max=round(limit / delay_s, 3),
        share_frac=round(share, 4),
        cost_limit_wanted=wanted,
    )


def _counted(tables: Sequence[object]) -> str:
    return "1 table" if len(tables) == 1 else f"{len(tables):,} tables"


def _raised(facts: Facts, wanted: int) -> Remedy:
    return Remedy(
        sql=(f"ALTER SYSTEM SET {_NAME} = {wanted}", "SELECT pg_reload_conf()"),
        text="Let it work faster. Workers share the limit: more of them are not faster together.",
        cost="more reading and writing at a time, by autovacuum",
        undo=f"ALTER SYSTEM SET {_NAME} = {facts.settings[_NAME]}",
    )


_ENOUGH = Remedy(
    text=f"The limit is as high as is needed, or {COST_LIMIT_MAX:,}, which is the most: a shorter "
    "autovacuum_vacuum_cost_delay, or fewer rows that die at once (HOT)."
)

RULE = Rule(
    id="autovacuum-limit",
    question="Do rows die faster than autovacuum may work?",
    book=("B7.18", "B7.17"),
    sql=DYING_SQL,
    decide=_decide,
    counters=("dead",),
    key=("oid",),
    is_rate=True,
    on_standby=False,
    threshold="What it has to do costs more than half of what limit and delay allow: rates are "
    "means, and a peak of twice that leaves it no time. The cost is what a VACUUM at each table's "
    "trigger meets, by pages, with nothing in the cache and dead rows anywhere: at most.",
    severity="warning from all of it on, else info.",
    price="Bytes of pages a day that autovacuum has to process, at most.",
    remedy="A higher autovacuum_vacuum_cost_limit, at which it is a quarter.",
    blind="Other databases, whose tables share the limit; freezing; VACUUM by hand. Dead rows side "
    "by side, or pages in the cache, cost less.",
    link="https://www.postgresql.org/docs/current/runtime-config-autovacuum.html",
)
