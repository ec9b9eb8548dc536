"""
Pages that a VACUUM beside several clients leaves because somebody has one of them pinned just then.

A scan has the page that it reads pinned. A VACUUM that comes to the page in this moment removes
nothing from it, and the table is not cut off before it. The twin's scans are over at once, so that
none of its runs shows that: of 3,224 VACUUMs of a table of one page, whose dead rows 8 or 32
clients looked for by sequential scans at full speed, 16 left them (18.4, two cores, other work
beside).

Source: `lazy_scan_heap` and `lazy_scan_noprune`, src/backend/access/heap/vacuumlazy.c
(REL_18_STABLE).
"""

from __future__ import annotations

from dataclasses import replace

from pgheadroom.outcome import Outcome, Value, mid
from pgheadroom.predict.chance import LEVEL
from pgheadroom.profile import Profile
from pgheadroom.types import Interval

_NEW_FILES = frozenset({"truncate", "vacuum full", "cluster"})
"""Commands after which an empty table has no page, whoever reads it."""


def cut_off_of(profile: Profile) -> frozenset[str]:
    """Tables that nothing but a VACUUM beside several clients makes empty."""
    run = profile.workload.run
    if run.clients == 1:
        return frozenset()
    if profile.may_autovacuum:
        return frozenset(profile.table_names)
    commands = {
        name: {command.do for command in run.maintenance if command.table == name}
        for name in profile.table_names
    }
    return frozenset(
        name for name, done in commands.items() if "vacuum" in done and not done & _NEW_FILES
    )


def with_pins(outcome: Outcome, tables: frozenset[str]) -> Outcome:
    """
    The outcome in which no heap of these tables is empty for certain.

    What has pages has an interval anyway.
    """
    empty = {name for name in tables & outcome.by_table.keys() if _is_none(outcome.by_table[name])}
    if not empty:
        return outcome
    parts = {
        name: replace(part, heap_pages=_with_pages(part.heap_pages, 1)) if name in empty else part
        for name, part in outcome.by_table.items()
    }
    whole = outcome.heap_pages
    if not isinstance(whole, Interval):
        whole = _with_pages(whole, len(empty))
    return replace(outcome, heap_pages=whole, by_table=parts)


def _is_none(part: Outcome) -> bool:
    """Whether a heap that had rows is empty in all runs."""
    had_rows = mid(part.n_tup_ins) + mid(part.n_tup_del) > 0
    return had_rows and not isinstance(part.heap_pages, Interval) and part.heap_pages == 0


def _with_pages(pages: Value, more: int) -> Value:
    if pages is None or isinstance(pages, Interval):
        return pages
    return Interval(low=float(pages), mid=float(pages), high=float(pages + more), level=LEVEL)
