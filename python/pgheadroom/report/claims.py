"""
The claims of a doctor's plan as a table: before, foreseen, measured, and whether that is inside.
"""

from __future__ import annotations

from collections.abc import Sequence

from pgheadroom.lab import reading
from pgheadroom.outcome import Value
from pgheadroom.plan.text import CLAIMED, shown_amount
from pgheadroom.report import csv_file
from pgheadroom.report.table import Column, Table
from pgheadroom.types import Interval
from pgheadroom.units import show_count
from pgheadroom.verify.values import ClaimOutcome, Verification


def claim_findings(result: Verification) -> list[str]:
    """What it comes to, in a sentence."""
    claims = result.claims or ()
    if not claims:
        return ["The plan has no claim to verify."]
    said = ", ".join(f"{count} {verdict}" for verdict, count in sorted(result.verdicts.items()))
    steps = len({claim.step for claim in claims})
    return [f"{show_count(len(claims), 'claim')} of {show_count(steps, 'step')}: {said}."]


def claim_tables(claims: Sequence[ClaimOutcome]) -> list[Table]:
    """One table, a row a claim; none where there are no claims."""
    if not claims:
        return []
    return [
        Table(
            title="Claims",
            columns=(
                Column("step", "step", lead=True),
                Column("object", "of", style="words", lead=True),
                Column("measure", "what", style="words"),
                Column("before", "before", style="words"),
                Column("foreseen", "foreseen", style="words"),
                Column("now", "measured", style="words"),
                Column("verdict", "verdict", style="words"),
                Column("note", "note", style="words"),
            ),
            rows=tuple(
                (
                    claim.step,
                    reading.printable(claim.object),
                    CLAIMED[claim.measure],
                    _shown(claim.before, claim.unit),
                    _shown(claim.foreseen, claim.unit),
                    _shown(claim.now, claim.unit),
                    claim.verdict,
                    claim.note,
                )
                for claim in claims
            ),
        )
    ]


def _shown(value: Value, unit: str) -> str:
    """An interval by its ends, one that is a point as a number."""
    if value is None:
        return ""
    if not isinstance(value, Interval):
        return shown_amount(value, unit)
    low, high = shown_amount(value.low, unit), shown_amount(value.high, unit)
    return low if low == high else f"{low} to {high}"


def claims_as_csv(claims: Sequence[ClaimOutcome]) -> str:
    """One row a claim; an interval as its middle and two ends."""
    rows: list[tuple[object, ...]] = []
    for claim in claims:
        numbers: list[object] = []
        for value in (claim.before, claim.foreseen, claim.now):
            if isinstance(value, Interval):
                numbers += [value.mid, value.low, value.high]
            else:
                numbers += [value, "", ""]
        own = (claim.step, claim.rule, claim.object, claim.measure, claim.unit)
        rows.append((*own, *numbers, claim.verdict, claim.note))
    ends = [
        f"{side}{end}" for side in ("before", "foreseen", "now") for end in ("", "_low", "_high")
    ]
    head = ("step", "rule", "object", "measure", "unit", *ends, "verdict", "note")
    return csv_file.written(head, rows)
