"""Tables that a rewrite would make much smaller."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from pgheadroom.bloat.asking import HEAP_SQL, Ask
from pgheadroom.bloat.measured import as_measured, measure, module_schema
from pgheadroom.bloat.reading import estimated_tables, fillfactor_of
from pgheadroom.bloat.values import Estimate
from pgheadroom.doctor.bloat_look import (
    MEASURED_BYTES,
    PAGES_MIN,
    SHARE_MIN,
    WARN_BYTES,
    is_bloated,
    looked_at,
    may_be_bloated,
    numbers_of,
    open_between,
    reach,
)
from pgheadroom.doctor.rewriting import rewriting_facts, table_remedy
from pgheadroom.doctor.rule import Facts, QueryRow, Rule, bytes_held
from pgheadroom.doctor.values import Blind, Finding, Remedy
from pgheadroom.quoting import called
from pgheadroom.units import PAGE_BYTES, percent, show_bytes


def _look(_facts: Facts, rows: Sequence[QueryRow], ask: Ask) -> list[QueryRow]:
    found, left = looked_at(rows, ask, estimated_tables)
    found = _measured(found, ask)
    asked = [
        row["oid"]
        for row in found
        if any(each.estimate and is_bloated(each.estimate) for each in row["estimates"])
    ]
    tools = rewriting_facts(ask, asked)
    return [
        *({**row, "rewriting": tools.get(row["oid"])} for row in found),
        *([{"left": left}] if left else []),
    ]


def _measured(rows: list[QueryRow], ask: Ask) -> list[QueryRow]:
    """Where statistics leave it open, what pgstattuple_approx says, within a budget of pages."""
    unsure = {
        each.oid: each.estimate
        for row in rows
        for each in row["estimates"]
        if each.estimate and not each.estimate.is_narrow and may_be_bloated(each.estimate)
    }
    schema = module_schema(ask) if unsure else None
    if schema is None:
        return rows
    budget = MEASURED_BYTES
    told: dict[int, Estimate] = {}
    fillfactors = {row["oid"]: fillfactor_of(row, "heap") for row in rows}
    for oid, estimate in unsure.items():
        seen = measure(ask, schema, oid, budget)
        if seen is not None:
            budget -= seen.read_bytes
            told[oid] = as_measured(estimate, seen, fillfactors.get(oid, 100))
    return [
        {
            **row,
            "measured": told.keys(),
            "estimates": [
                replace(each, estimate=told.get(each.oid, each.estimate))
                for each in row["estimates"]
            ],
        }
        for row in rows
    ]


def _decide(facts: Facts, rows: Sequence[QueryRow]) -> Iterator[Finding | Blind]:
    for row in rows:
        if "left" in row:
            yield Blind(rule=RULE.id, why=f"{row['left']:,} more tables were not estimated")
            continue
        name = called(row["schema"], row["name"])
        for each in row["estimates"]:
            is_toast = each.oid != row["oid"]
            about = f"TOAST of {name}" if is_toast else name
            estimate = each.estimate
            if estimate is None:
                yield Blind(rule=RULE.id, why=f"{about} is held by somebody")
            elif is_bloated(estimate) and row["rewriting"] is not None:
                remedy = _remedy(facts, row, estimate, is_toast=is_toast)
                is_measured = each.oid in row.get("measured", ())
                yield _finding(row, estimate, about, remedy, is_measured=is_measured)
            elif not estimate.is_narrow and may_be_bloated(estimate):
                yield Blind(rule=RULE.id, why=f"{about}: a rewrite {open_between(estimate)}")


def _remedy(facts: Facts, row: QueryRow, estimate: Estimate, *, is_toast: bool) -> Remedy:
    own = row["estimates"][0].estimate
    if is_toast and own is not None and is_bloated(own):
        return Remedy(text="The rewrite of its table does it: that is told as well.")
    heap = int(row["relpages"]) if is_toast else estimate.rewritten_pages.high
    return table_remedy(facts, row, row["rewriting"], heap * PAGE_BYTES)


def _finding(
    row: QueryRow, estimate: Estimate, about: str, remedy: Remedy, *, is_measured: bool
) -> Finding:
    share, given = estimate.given_back_frac, estimate.given_back_bytes
    size = estimate.pages * PAGE_BYTES
    wide = (
        "" if estimate.is_narrow else f" It cannot be told better: {'; '.join(estimate.reasons)}."
    )
    return RULE.finding(
        "warning" if given.low >= WARN_BYTES else "info",
        about,
        f"A rewrite would give back {reach(share.low, share.high, percent)} of its "
        f"{show_bytes(size)}: {reach(given.low, given.high, show_bytes)}, which whole scans read "
        f"and base backups copy.{wide}",
        remedy=remedy,
        price=bytes_held(
            given.mid,
            "pages less those of a fresh copy, "
            + ("by pgstattuple_approx" if is_measured else "by the layout of rows and statistics"),
            basis="estimated",
        ),
        oid=int(row["oid"]),
        is_measured=is_measured,
        **numbers_of(estimate),
    )


RULE = Rule(
    id="bloated-table",
    question="Which tables would a rewrite make much smaller?",
    book=("B7.35", "B7.40"),
    sql={15: HEAP_SQL.format(pages_min=PAGES_MIN, methods="'heap'")},
    look=_look,
    decide=_decide,
    on_standby=False,
    threshold=f"Tables and TOAST tables of {PAGES_MIN * PAGE_BYTES // 1024**2} MiB and more that "
    f"give back {percent(SHARE_MIN)} and 10 MiB, even at the low end of the estimate: a table that "
    "is written keeps room for what comes next, and less fills again by itself. Room that the "
    "fillfactor leaves is none of it.",
    severity="warning from 1 GiB on, else info.",
    price="Bytes that a rewrite gives back, over an interval ([bloat.md](bloat.md)).",
    remedy="REPACK (CONCURRENTLY) from 19 on, pg_squeeze or pg_repack where they are installed and "
    "the table has what they need, else VACUUM FULL.",
    blind="Where statistics leave it open and the role may run pgstattuple_approx, that is asked; "
    "it reads the pages that are not all-visible, 256 MiB of them at most. Wide estimates say why. "
    "Rows that an old snapshot keeps are copied as well. Tables of other access methods.",
    link="https://www.postgresql.org/docs/current/routine-vacuuming.html#VACUUM-FOR-SPACE-RECOVERY",
)
