"""
What an examination finds, as values: findings, prices, remedies, and what was not seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pgheadroom.forms import Filed, in_file
from pgheadroom.tabular import Row, Tabular

Severity = Literal["info", "warning", "error"]
SEVERITIES: tuple[Severity, ...] = ("info", "warning", "error")
"""By effect: worth knowing; costs something that was measured, or soon will; harms or is about to
stop the server."""

Basis = Literal["measured", "estimated", "none"]
PriceUnit = Literal["bytes", "bytes a day", "seconds", "seconds a day"]
FindingNumber = float | int | bool | str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """
    What a finding costs.

    Attributes:
        amount: In the unit; None where nothing measures it.
        unit: Of the amount.
        basis: Counted or sized by the server; computed from that; or there is none.
        text: What is counted, and where from; or why there is no price.
    """

    amount: int | float | None
    unit: PriceUnit | None
    basis: Basis
    text: str


def no_price(why: str) -> Price:
    """A finding without one says why."""
    return Price(amount=None, unit=None, basis="none", text=why)


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """
    What to do.

    Attributes:
        sql: Statements, in their order; none where it is no statement's work.
        text: What they do, or what to do instead.
        lock: What they lock, in PostgreSQL's words; None: nothing that others wait for.
        cost: What they cost.
        undo: What takes them back; None where nothing has to, or nothing does.
    """

    text: str
    sql: tuple[str, ...] = ()
    lock: str | None = None
    cost: str | None = None
    undo: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """
    One thing that was found.

    Attributes:
        rule: Its rule's id.
        severity: By effect.
        object: What it is about, as people call it.
        text: What is so, with its numbers.
        numbers: The same for programs; names end in their unit.
        price: What it costs.
        remedy: What to do.
    """

    rule: str
    severity: Severity
    object: str
    text: str
    numbers: Mapping[str, FindingNumber]
    price: Price
    remedy: Remedy

    @property
    def key(self) -> tuple[str, str]:
        """By which it is known again in another examination."""
        return self.rule, self.object


@dataclass(frozen=True, slots=True, kw_only=True)
class Blind:
    """
    A rule that could not look, or not everywhere.

    Attributes:
        rule: Its id.
        why: What is in its way.
        cut_off: It should have looked and was stopped: by a timeout, a lock, the end of the
            connection, or an interval that was cut short. Otherwise a right, a version, or the age
            of the statistics is in its way.
    """

    rule: str
    why: str
    cut_off: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptedFinding:
    """
    A finding that somebody has accepted.

    Attributes:
        finding: It.
        until: The last day on which it counts as accepted (ISO 8601).
    """

    finding: Finding
    until: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """
    Where and when it was looked.

    Attributes:
        at: The server's clock (UTC).
        database: Its name.
        server: Its version, with the minor.
        role: Who looked.
        in_recovery: It is a standby.
        interval_s: Between the two readings of counters; None: one reading, of what the statistics
            have since their start.
        statistics_since: From when on (UTC) this database's statistics count; None where nothing
            says it.
        rules: How many rules looked.
    """

    at: str
    database: str
    server: str
    role: str
    in_recovery: bool
    interval_s: float | None
    statistics_since: str | None
    rules: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis(Filed, Tabular):
    """
    What was found, the worst first.

    Attributes:
        tool_version: Of ours.
        examined: Where and when.
        findings: By effect.
        accepted: Findings that do not count, for somebody has accepted them.
        known: How many findings the baseline has too, no worse; they are left out. None: no
            baseline.
        notes: What was said of acceptances that are over or fit nothing.
        blind: Rules that could not look.
    """

    KIND = "doctor"

    tool_version: str
    examined: Examined
    findings: tuple[Finding, ...]
    accepted: tuple[AcceptedFinding, ...] = ()
    known: int | None = None
    notes: tuple[str, ...] = ()
    blind: tuple[Blind, ...] = field(default=(), metadata=in_file("blind"))

    @property
    def cut_off(self) -> bool:
        """Whether something that should have been looked at was not."""
        return any(item.cut_off for item in self.blind)

    def at_least(self, severity: Severity) -> int:
        """How many findings are so severe, or worse."""
        least = SEVERITIES.index(severity)
        return sum(SEVERITIES.index(found.severity) >= least for found in self.findings)

    def rows(self) -> list[Row]:
        """A row a finding."""
        return [
            {
                "severity": found.severity,
                "rule": found.rule,
                "object": found.object,
                "text": found.text,
                "price": found.price.amount,
                "price_unit": found.price.unit,
                "price_basis": found.price.basis,
                "sql": "; ".join(found.remedy.sql) or None,
            }
            for found in self.findings
        ]

    def summary(self) -> str:
        """What it is, in a line."""
        return f"{self.headline()} in {self.examined.database}, PostgreSQL {self.examined.server}"

    def headline(self) -> str:
        """How many findings of which severity."""
        counted: list[Any] = []
        for severity in reversed(SEVERITIES):
            count = sum(found.severity == severity for found in self.findings)
            if count:
                counted.append(
                    f"{count} {severity}{'' if count == 1 or severity == 'info' else 's'}"
                )
        return ", ".join(counted) or "no finding"
