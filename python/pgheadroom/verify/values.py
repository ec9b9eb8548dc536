"""
A verification as a value: a verdict a table, each measure before, foreseen and now.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from pgheadroom.forms import Filed, in_file, read, unframed
from pgheadroom.outcome import Value
from pgheadroom.plan.remedies import ClaimMeasure
from pgheadroom.verify.comparing import ForecastVerdict, Likeness

FAILED: tuple[ForecastVerdict, ...] = ("failed", "no effect")
"""Verdicts that make `verify` end with 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureOutcome:
    """
    One measure: before, foreseen then, foreseen for what has happened since, now.

    `planned` is the plan's forecast, `forecast` what the measure is held against: the same, or what
    the plan's profile gives for the rows and updates that have come since. `verdict` is None for a
    measure that is only shown; `note` says why, or the reason.
    """

    name: str
    unit: str
    before: Value
    planned: Value
    forecast: Value
    now: Value
    verdict: ForecastVerdict | None
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ByPage:
    """
    Updates of a window by the page on which they find their row, as foreseen.

    Attributes:
        old_pages_frac: Those on pages that were there when the setting came.
        hot_old_frac: HOT among these; None without any.
        hot_new_frac: HOT among those on pages that came since; None without any.
    """

    old_pages_frac: float
    hot_old_frac: float | None
    hot_new_frac: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOutcome:
    """
    One table.

    `progress` says how far it is on its way to the new state, None where that does not matter;
    `windows` are those of the interval with updates; `by_page` is what is foreseen of old pages and
    new ones by themselves, None where nothing was foreseen again or nothing altered.
    """

    schema: str
    name: str
    oid: int
    planned: str
    fillfactor: int
    fillfactor_now: int | None
    rewritten: bool
    verdict: ForecastVerdict
    reason: str
    progress: str | None
    updates: int | None
    windows: int
    outcomes: tuple[MeasureOutcome, ...]
    workload: tuple[Likeness, ...]
    by_page: ByPage | None = field(default=None, metadata=in_file(unless_none=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimOutcome:
    """
    One claim of a doctor's step: before, foreseen, measured.

    `step` is its number in the plan, `object` what the step acts on; `note` says why, or the
    reason.
    """

    step: int
    rule: str
    object: str
    measure: ClaimMeasure
    unit: str
    before: Value
    foreseen: Value
    now: Value
    verdict: ForecastVerdict
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification(Filed):
    """All tables of a plan, after one observation; or the claims of a doctor's plan."""

    KIND = "verification"

    tool_version: str
    server_version: str
    database: str
    planned_at: str
    observed_at: str
    interval_s: float
    tables: tuple[TableOutcome, ...]
    notes: tuple[str, ...]
    claims: tuple[ClaimOutcome, ...] | None = field(
        default=None, metadata=in_file(unless_none=True)
    )

    @property
    def judged(self) -> tuple[TableOutcome | ClaimOutcome, ...]:
        """What has a verdict."""
        return self.tables if self.claims is None else self.claims

    @property
    def failed(self) -> bool:
        """Whether a forecast failed."""
        return any(one.verdict in FAILED for one in self.judged)

    @property
    def held(self) -> bool:
        """Whether every forecast was judged, and held."""
        return bool(self.judged) and all(one.verdict == "held" for one in self.judged)

    @property
    def verdicts(self) -> Mapping[str, int]:
        """How many tables, or claims, have each verdict."""
        return Counter(one.verdict for one in self.judged)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """
        Read what `to_json` wrote.

        Raises:
            InputError: It is no verification, or a field is not as it must be.
        """
        return read(cls, unframed(data), at="verification", exact=True)
