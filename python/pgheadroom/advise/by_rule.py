"""
What needs no play: plenty of HOT, an index that ends it, a cleanup horizon that is held.

Beside an index that ends HOT a fillfactor is told for what it is for: room and pages, never HOT.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pgheadroom.advise.cold_updates import Cause, IndexFinding
from pgheadroom.advise.curve import Costed
from pgheadroom.advise.decide import Decision, abstain, keep
from pgheadroom.advise.foreseen import HOT_MOVES
from pgheadroom.advise.reasons import why_pages
from pgheadroom.advise.room import held_frac
from pgheadroom.outcome import mid
from pgheadroom.profile.observed_server import ObservedServer
from pgheadroom.profile.tables import TableProfile
from pgheadroom.units import percent, show_share

_BY_INDEX = 0.9  # of the updates that missed HOT: then it is an index, and hardly anything else
_BY_INDEX_TOO = 0.5  # the same: then room alone must show that it helps
_COLD_MIN = 0.05  # of the updates: fewer that miss HOT are not what a table's advice is about
_PLENTY_OF_HOT = 0.02  # of the updates miss HOT: less is not worth more room
_HELD_MIN = 0.5  # of the interval: then the horizon explains what missed HOT


@dataclass(frozen=True, slots=True, kw_only=True)
class Missed:
    """
    The interval's updates that were not HOT.

    Attributes:
        cold_frac: Of all updates.
        indexed_frac: Of those that missed HOT: their indexed columns changed.
    """

    cold_frac: float
    indexed_frac: float


def missed_of(causes: Sequence[Cause]) -> Missed:
    """From all updates of a table by cause; 0 where there are none, or all are HOT."""
    parts: dict[str, float] = {cause.kind: mid(cause.updates) for cause in causes}
    total = sum(parts.values())
    cold = total - parts.get("hot", 0.0)
    if not total or not cold:
        return Missed(cold_frac=0.0, indexed_frac=0.0)
    return Missed(cold_frac=cold / total, indexed_frac=parts.get("indexed_column", 0.0) / cold)


def by_rule(
    table: TableProfile,
    missed: Missed,
    findings: Sequence[IndexFinding],
    server: ObservedServer | None,
) -> Decision | None:
    """
    The answer that needs no play; None where no rule has one.

    Args:
        table: As observed.
        missed: What was not HOT.
        findings: Indexes of the table that end HOT.
        server: As observed.
    """
    cold = missed.cold_frac
    if cold < _PLENTY_OF_HOT:
        most = f"no more than {100 * cold:.1f}" if cold >= 0.0005 else "less than 0.1"
        return keep(
            table,
            f"{show_share(1 - cold)} of its updates are HOT at this fillfactor: another can "
            f"add {most} points",
        )
    if cold < _COLD_MIN:
        return None
    if missed.indexed_frac >= _BY_INDEX:
        return keep(table, _why_index(missed, findings))
    held = held_frac(server)
    if held >= _HELD_MIN:
        return abstain(
            f"the cleanup horizon stood still for {percent(held)} of the interval, so versions "
            "that nobody needs keep the room, and no fillfactor helps",
            settled_by="end what holds it, then observe again",
        )
    return None


def beside_index(
    decision: Decision,
    table: TableProfile,
    missed: Missed,
    findings: Sequence[IndexFinding],
    curve: Sequence[Costed],
) -> Decision:
    """
    Say of a fillfactor beside an index that ends HOT what it is for.

    Where it gives no HOT, it may still pay, by fewer updates that need another page and their
    WAL: then it is advised for that, after the index, and never for HOT.

    Args:
        decision: By the curve.
        table: As observed.
        missed: What was not HOT.
        findings: Indexes of the table that end HOT.
        curve: Its points; the settings that a change is from and to are among them.
    """
    indexed = missed.indexed_frac
    if decision.verdict == "KEEP" and indexed >= _BY_INDEX and missed.cold_frac >= _COLD_MIN:
        return replace(decision, reason=f"{_why_index(missed, findings)}; {decision.reason}")
    if decision.verdict != "CHANGE" or indexed < _BY_INDEX_TOO:
        return decision
    points = {found.point.fillfactor: found for found in curve}
    assert decision.fillfactor is not None, "a change has a setting"
    now, then = points[table.fillfactor], points[decision.fillfactor]
    if mid(then.point.hot_frac) - mid(now.point.hot_frac) >= HOT_MOVES:
        return decision
    return replace(
        decision,
        reason=f"{_why_index(missed, findings)}; {why_pages(now, then, decision.gain_frac)}",
    )


def _why_index(missed: Missed, findings: Sequence[IndexFinding]) -> str:
    named = [f"{found.name} by {found.by}" for found in findings if found.by]
    named = named or [found.name for found in findings] or ["one of its indexes"]
    share = missed.cold_frac * missed.indexed_frac
    changed = f"{percent(share)} of its updates change an indexed column ({'; '.join(named)})"
    if missed.indexed_frac >= _BY_INDEX:
        return f"{changed}: no fillfactor makes these HOT, and room is not what the others lack"
    return f"{changed}, and no fillfactor makes these HOT"
