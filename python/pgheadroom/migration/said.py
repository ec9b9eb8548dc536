"""
What a check says of a table, in sentences: what is done, to which updates, at what cost.
"""

from __future__ import annotations

import math

from pgheadroom import _core
from pgheadroom.advise.hot import HotChange
from pgheadroom.advise.room import fitting_bytes
from pgheadroom.advise.updates import Updates
from pgheadroom.migration.figures import Figures
from pgheadroom.migration.shape import (
    Altered,
    ColumnSet,
    ExpressionSet,
    FillfactorSet,
    IndexAdded,
    IndexDropped,
)
from pgheadroom.outcome import mid
from pgheadroom.profile import TableProfile
from pgheadroom.types import Interval
from pgheadroom.units import PAGE_BYTES, show_bytes, show_bytes_more, show_share, show_shares

REAL_SHARE = 0.01
"""Fewer updates than one in a hundred are no finding, as less than a point of HOT is none."""

_SHOWN_FROM = 0.005  # less is what counters of different moments differ by; arbitrary


def edits_said(altered: Altered, updates: Updates, new: frozenset[str]) -> str:
    """
    What is done to the table, and how many updates assign what is indexed from now on.

    Args:
        altered: The table.
        updates: Its updates.
        new: Columns that end HOT only from now on, by identity.
    """
    if not altered.edits:
        return ""
    parts = []
    for edit in altered.edits:
        place = f"line {edit.line}: "
        match edit:
            case IndexAdded():
                parts.append(place + _index_said(edit, altered, updates, new))
            case IndexDropped():
                along = f" with column {edit.column}" if edit.column is not None else ""
                parts.append(f"{place}{edit.name} goes{along}")
            case FillfactorSet():
                parts.append(place + _fillfactor_said(edit.fillfactor, altered.table))
            case ColumnSet(is_new=True, is_null=True):
                parts.append(f"{place}column {edit.name} is new, and NULL until it is assigned")
            case ColumnSet(is_new=True):
                parts.append(
                    f"{place}column {edit.name} is new, and makes rows longer as they are written"
                )
            case ColumnSet():
                parts.append(f"{place}column {edit.name} gets another type")
            case ExpressionSet():
                reads = "is not generated any more" if edit.reads is None else "is computed anew"
                parts.append(f"{place}column {edit.name} {reads}")
    said = "; ".join(parts)
    return f"{said[0].upper()}{said[1:]}."


def _fillfactor_said(fillfactor: int, table: TableProfile) -> str:
    """What pages are filled to, and how big the table is when all are."""
    if fillfactor == table.fillfactor:
        return f"fillfactor stays {fillfactor}"
    text = f"fillfactor {table.fillfactor} -> {fillfactor} for new pages"
    length = fitting_bytes(table)
    per_page = [_core.rows_per_page(length, each) for each in (table.fillfactor, fillfactor)]
    if not all(per_page) or not table.rows:
        return text
    then = math.ceil(table.rows / per_page[1]) * PAGE_BYTES
    text += f", about {per_page[1]} rows a page instead of {per_page[0]}"
    now = None if table.observed is None else table.observed.main_bytes
    as_is = f", {show_bytes(now)} now" if now else ""
    return f"{text}; the heap takes about {show_bytes(then)} once it is rewritten{as_is}"


def _index_said(edit: IndexAdded, altered: Altered, updates: Updates, new: frozenset[str]) -> str:
    text = f"{edit.kind} {edit.name} over {_over(edit)}"
    if not edit.hot.ends_hot(altered.after.major):
        return f"{text}, which ends no HOT from 16 on"
    if edit.hot.whole_row:
        return f"{text}, which reads the row itself: no update is HOT any more"
    mine = new & (edit.hot.columns | set().union(*_read(edit, altered)))
    if not mine:
        rest = edit.hot.columns - altered.before.blocking
        if not rest:
            return f"{text}, and other indexes read all of that already"
        named = ", ".join(sorted(altered.spelled(name) for name in rest))
        return f"{text}; no statement that was observed can have assigned {named}"
    if not updates.classes:
        return text
    rows = sum(found.rows for found in updates.classes if found.columns & mine)
    unknown = updates.unknown / updates.count
    assigned = frozenset().union(*(found.columns for found in updates.classes)) & mine
    by_trigger = _by_trigger(altered)
    named = ", ".join(
        f"{altered.spelled(name)}{' (a trigger does)' if name in by_trigger else ''}"
        for name in sorted(assigned or mine)
    )
    share = min(rows / updates.count, 1.0)
    text += (
        f"; {show_share(share)} of the updates assign {named}"
        if rows
        else f"; no statement that was observed assigns {named}"
    )
    if not rows and altered.table.observed is not None and altered.table.observed.triggers is None:
        text += " (whether a trigger does is not known: the profile is older than that is observed)"
    said = f", {show_share(unknown)} are known to no statement"
    return text + (said if unknown >= _SHOWN_FROM else "")


def _by_trigger(altered: Altered) -> set[str]:
    """Columns that no statement assigns, but a trigger of one."""
    observed = altered.table.observed
    classes = () if observed is None else observed.updates.classes
    found = {name for one in classes for name in one.by_trigger or ()}
    return found - {n for one in classes for n in set(one.columns) - set(one.by_trigger or ())}


def _over(edit: IndexAdded) -> str:
    """Its columns by their part: those of the key and of expressions first."""
    text = ", ".join(edit.keys) or "the whole row"
    text += f" INCLUDE ({', '.join(edit.include)})" if edit.include else ""
    named = f" with a predicate over {', '.join(edit.predicate)}" if edit.predicate else ""
    return text + named


def _read(edit: IndexAdded, altered: Altered) -> list[frozenset[str]]:
    """What the generated columns of an index read."""
    return [r for g, r in altered.after.generated.items() if g in edit.hot.columns]


def rule_said(verdict: str, why: str, found: HotChange) -> str:
    """What the rule makes of it."""
    if verdict == "not judged":
        return f"{why[0].upper()}{why[1:]}."
    parts = []
    if found.lost_frac >= REAL_SHARE:
        by = dict.fromkeys(str(blocker) for _, blocking in found.lost for blocker in blocking)
        named = ", ".join(list(by)[:3]) + (f" and {len(by) - 3} more" if len(by) > 3 else "")
        # PostgreSQL compares what was generated, not what it was generated from.
        is_computed = any(b.assigned != b.column for _, blocking in found.lost for b in blocking)
        made = ", and what is generated from it," if is_computed else ""
        parts.append(
            f"{show_share(found.lost_frac)} of the updates can be HOT now and no more then"
            f"{f' ({named})' if named else ''}, if every value that is assigned{made} changes."
        )
    if found.gained_frac >= REAL_SHARE:
        parts.append(f"{show_share(found.gained_frac)} of the updates can be HOT from then on.")
    if why:
        parts.append(f"Not judged besides: {why}.")
    return " ".join(parts)


def figures_said(figured: Figures, per_day: float) -> str:
    """
    What was played.

    Args:
        figured: Both players.
        per_day: Updates.
    """
    before, after = show_shares(mid(figured.hot_now), mid(figured.hot_then))
    wal = mid(figured.wal_now), mid(figured.wal_then)
    text = f"HOT in the long run {before} -> {after}, WAL "
    if is_noise(figured):
        return f"{text}{wal[0]:,.0f} bytes an update without images, before and after."
    more = show_bytes_more((wal[1] - wal[0]) * per_day)
    return f"{text}{wal[0]:,.0f} -> {wal[1]:,.0f} bytes an update without images ({more} a day)."


NONE_IS_LOST = "Those updates cannot be HOT as it is, so no HOT is lost."


def is_noise(figured: Figures) -> bool:
    """Whether the WAL of before and after differs by no more than what is played does."""
    now, then = figured.wal_now, figured.wal_then
    if not (isinstance(now, Interval) and isinstance(then, Interval)):
        return now == then
    return now.low <= then.high and then.low <= now.high
