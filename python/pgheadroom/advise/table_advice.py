"""
One table's advice as a value: what was seen, why, what to do, and what is said beside.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from pgheadroom.advise.cold_updates import Cause, Evidence
from pgheadroom.advise.foreseen import Calibration, Point, Transition, of_one_wal
from pgheadroom.forms import Earlier
from pgheadroom.outcome import Value, middle

AdviceVerdict = Literal["CHANGE", "KEEP", "ABSTAIN"]
DecidedBy = Literal["counters", "rule", "twin"]
RemarkKind = Literal[
    "horizon",
    "index",
    "autovacuum",
    "column_order",
    "row_width",
    "growth",
    "access",
    "workload",
    "wal",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """A measure as it is, and as it would be."""

    now: Value
    then: Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """
    A finding beside the fillfactor, with its gain where there is one.

    Attributes:
        kind: What it is about.
        text: One or two sentences for people.
        evidence: Where its figures are from.
        gain: Measures as they are and as they would be.
        statements: Statements that would act on it: `{"sql": ..., "undo": ...}`; never part of a
            plan unless they are safe and reversible.
    """

    kind: RemarkKind
    text: str
    evidence: Evidence
    gain: Mapping[str, Gain]
    statements: tuple[Mapping[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TableAdvice:
    """
    One table: what was seen, why, what to do.

    Attributes:
        table: Its name in the profile.
        schema: Of the server.
        name: Of the server; a pseudonym in a masked profile.
        oid: Of the server.
        relfilenode: When it was observed.
        parent: The partitioned table it belongs to.
        rows: Rows.
        heap_bytes: Main fork when it was observed.
        fillfactor: In force.
        updates_per_s: Over the interval.
        updates: In the interval.
        hot_frac: Observed; None without updates.
        verdict: What to do.
        reason: Why, in one sentence.
        advised_fillfactor: The setting that is best by the policy; the current one for KEEP, None
            for ABSTAIN.
        gain_frac: Part of the cost that the change saves, by the policy; None without a curve.
        causes: The interval's updates by cause; empty without updates.
        calibration: None where nothing was simulated.
        curve: Points by falling fillfactor; the current and the advised one are among them. Empty
            where nothing was simulated.
        transition: The way there without a rewrite; None unless CHANGE.
        remarks: Further findings.
        missing: What was not known and would have helped.
        decided_by: From what: `counters` and layout, a `rule` (an index, the horizon), or `twin`.
        wal_bytes_per_update: Measured in the interval: what the statements that update rows wrote,
            images apart; by the log where the profile has it. None where nobody has counted them.
    """

    table: str
    schema: str
    name: str
    oid: int | None
    relfilenode: int | None
    parent: str | None
    rows: int
    heap_bytes: int | None
    fillfactor: int
    updates_per_s: float
    updates: int
    hot_frac: float | None
    verdict: AdviceVerdict
    reason: str
    advised_fillfactor: int | None
    gain_frac: Value
    causes: tuple[Cause, ...]
    calibration: Calibration | None
    curve: tuple[Annotated[Point, Earlier(of_one_wal)], ...]
    transition: Transition | None
    remarks: tuple[Remark, ...]
    missing: tuple[str, ...]
    decided_by: DecidedBy = "twin"
    wal_bytes_per_update: Value = None

    def point(self, fillfactor: int | None) -> Point | None:
        """The curve's point at a fillfactor, if it has one."""
        return next((point for point in self.curve if point.fillfactor == fillfactor), None)

    @property
    def heap_grows_frac(self) -> float | None:
        """By what part the heap is larger as advised than as it is set, both in the long run."""
        now, then = self.point(self.fillfactor), self.point(self.advised_fillfactor)
        if now is None or then is None:
            return None
        before, after = middle(now.heap_bytes), middle(then.heap_bytes)
        return None if not before or after is None else after / before - 1
