"""B-trees that a rebuild would make much smaller."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pgheadroom.bloat.asking import BTREE_SQL, Ask
from pgheadroom.bloat.reading import estimated_btrees
from pgheadroom.bloat.values import Estimate
from pgheadroom.doctor.bloat_look import (
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
from pgheadroom.doctor.rewriting import index_remedy
from pgheadroom.doctor.rule import Facts, QueryRow, Rule, bytes_held
from pgheadroom.doctor.values import Blind, Finding
from pgheadroom.quoting import called
from pgheadroom.units import PAGE_BYTES, percent, show_bytes


def _look(_facts: Facts, rows: Sequence[QueryRow], ask: Ask) -> list[QueryRow]:
    found, left = looked_at(rows, ask, estimated_btrees)
    return [*found, *([{"left": left}] if left else [])]


def _decide(_facts: Facts, rows: Sequence[QueryRow]) -> Iterator[Finding | Blind]:
    for row in rows:
        if "left" in row:
            yield Blind(rule=RULE.id, why=f"{row['left']:,} more indexes were not estimated")
            continue
        about = called(row["schema"], row["name"])
        for each in row["estimates"]:
            estimate = each.estimate
            if estimate is None:
                yield Blind(rule=RULE.id, why=f"{about} is held by somebody")
            elif is_bloated(estimate):
                yield _finding(row, estimate, about)
            elif not estimate.is_narrow and may_be_bloated(estimate):
                yield Blind(rule=RULE.id, why=f"{about}: a rebuild {open_between(estimate)}")


def _finding(row: QueryRow, estimate: Estimate, about: str) -> Finding:
    share, given = estimate.given_back_frac, estimate.given_back_bytes
    size = estimate.pages * PAGE_BYTES
    wide = (
        "" if estimate.is_narrow else f" It cannot be told better: {'; '.join(estimate.reasons)}."
    )
    table = called(row["table_schema"], row["table_name"])
    return RULE.finding(
        "warning" if given.low >= WARN_BYTES else "info",
        about,
        f"A rebuild would give back {reach(share.low, share.high, percent)} of the "
        f"{show_bytes(size)} of this index of {table}: "
        f"{reach(given.low, given.high, show_bytes)}.{wide}",
        remedy=index_remedy(row, estimate.rewritten_pages.high * PAGE_BYTES),
        price=bytes_held(
            given.mid,
            "pages less those of a fresh build, by the layout of entries and statistics",
            basis="estimated",
        ),
        oid=int(row["oid"]),
        table_oid=int(row["table_oid"]),
        **numbers_of(estimate),
    )


RULE = Rule(
    id="bloated-index",
    question="Which B-trees would a rebuild make much smaller?",
    book=("B7.38",),
    sql={15: BTREE_SQL.format(pages_min=PAGES_MIN)},
    look=_look,
    decide=_decide,
    on_standby=False,
    threshold=f"B-trees of {PAGES_MIN * PAGE_BYTES // 1024**2} MiB and more that give back "
    f"{percent(SHARE_MIN)} and 10 MiB, even at the low end of the estimate: an index of random "
    "keys has nearly as much room in the mean, and is there again soon after a rebuild. Posting "
    "lists that a build would make count, where types and options allow them.",
    severity="warning from 1 GiB on, else info.",
    price="Bytes that a rebuild gives back, over an interval ([bloat.md](bloat.md)).",
    remedy="REINDEX INDEX CONCURRENTLY.",
    blind="Wide estimates say why. Other access methods than btree. Why it came about: rows that "
    "were deleted from all over, or a horizon that was held.",
    link="https://www.postgresql.org/docs/current/routine-reindex.html",
)
