"""
The cards of an advice's page: a table to change, in the four states that there are to compare.

    measured      in the interval, at the setting in force
    if unchanged  the long run at the setting in force, predicted
    foreseen      the long run at the advised one, predicted
    outcome       what was measured after the change, once it has been verified

Below them come the tables that stay as they are, a line each, with what ends HOT there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pgheadroom.advise.advice import Advice
from pgheadroom.advise.cold_updates import Evidence
from pgheadroom.advise.table_advice import AdviceVerdict, TableAdvice
from pgheadroom.lab import reading
from pgheadroom.outcome import Value, middle
from pgheadroom.report.advice import values as advice_values
from pgheadroom.report.advice.head import full_name
from pgheadroom.report.table import NOTHING
from pgheadroom.units import show_bytes
from pgheadroom.verify.values import TableOutcome, Verification

_MOST_KEPT = 20
"""Tables that stay as they are and are named with their reason; arbitrary: a screen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedState:
    """
    One of the states of a table.

    Attributes:
        name: What it is, in words of ours.
        evidence: Where its figures are from.
        fillfactor: Percent.
        hot_frac: HOT updates over updates.
        wal_bytes_per_update: What the statements that update write, images apart.
        heap_bytes: Main fork.
    """

    name: str
    evidence: Evidence
    fillfactor: int
    hot_frac: Value
    wal_bytes_per_update: Value
    heap_bytes: Value


def states(table: TableAdvice, outcome: TableOutcome | None = None) -> list[ComparedState]:
    """What is known of a table, in the order of time; measured figures are no long run."""
    now, then = table.point(table.fillfactor), table.point(table.advised_fillfactor)
    found = [
        ComparedState(
            name="measured",
            evidence="measured",
            fillfactor=table.fillfactor,
            hot_frac=table.hot_frac,
            wal_bytes_per_update=advice_values.known_wal(table.wal_bytes_per_update),
            heap_bytes=table.heap_bytes,
        )
    ]
    named = (("if unchanged", now), ("foreseen", then if table.verdict == "CHANGE" else None))
    found += [
        ComparedState(
            name=name,
            evidence="predicted",
            fillfactor=point.fillfactor,
            hot_frac=point.hot_frac,
            wal_bytes_per_update=point.wal_bytes_per_update,
            heap_bytes=point.heap_bytes,
        )
        for name, point in named
        if point is not None
    ]
    if outcome is not None:
        measured = {item.name: item.now for item in outcome.outcomes}
        found.append(
            ComparedState(
                name="outcome",
                evidence="measured",
                fillfactor=outcome.fillfactor_now or outcome.fillfactor,
                hot_frac=measured.get("hot_frac"),
                wal_bytes_per_update=measured.get("wal_bytes_per_update"),
                heap_bytes=measured.get("heap_bytes"),
            )
        )
    return found


def outcome_of(table: TableAdvice, found: Verification | None) -> TableOutcome | None:
    """What became of a table, if it was verified: by its OID, else by its name."""
    if found is None:
        return None
    by_oid = {item.oid: item for item in found.tables}
    by_name = {(item.schema, item.name): item for item in found.tables}
    return by_oid.get(table.oid or 0) or by_name.get((table.schema, table.name))


def rows(found: Sequence[ComparedState]) -> list[dict[str, Any]]:
    """States as lines of a table: each value with its interval apart."""
    shares = [state.hot_frac for state in found]
    return [
        {
            "name": state.name,
            "evidence": state.evidence if state.evidence != state.name else None,
            "fillfactor": str(state.fillfactor),
            "hot": _apart(advice_values.share(state.hot_frac, beside=shares)),
            "wal": _apart(advice_values.plain(state.wal_bytes_per_update, ranged=True)),
            "heap": _size(state.heap_bytes),
        }
        for state in found
    ]


def stays(advice: Advice, places: Mapping[int, str]) -> list[dict[str, Any]]:
    """
    Lists of the tables that are not changed, by verdict: those with most updates first.

    Args:
        advice: Of all tables.
        places: By `id` of a table that is shown in full: where on the page.
    """
    titles: tuple[tuple[AdviceVerdict, str], ...] = (
        ("KEEP", "Stay as they are"),
        ("ABSTAIN", "Without an answer"),
    )
    found = []
    for verdict, title in titles:
        tables = [table for table in advice.tables if table.verdict == verdict]
        tables.sort(key=lambda table: -table.updates)
        if tables:
            found.append(
                {
                    "id": verdict.lower(),
                    "title": title,
                    "lines": [_line(table, places) for table in tables[:_MOST_KEPT]],
                    "more": len(tables) - _MOST_KEPT,
                }
            )
    return found


def _line(table: TableAdvice, places: Mapping[int, str]) -> dict[str, Any]:
    return {
        "name": full_name(table),
        "place": places.get(id(table)),
        "fillfactor": str(table.fillfactor),
        "reason": reading.printable(table.reason),
        "indexes": [reading.printable(name) for name in _ending_hot(table)],
        "hot": advice_values.share(table.hot_frac) if table.updates else "",
    }


def _ending_hot(table: TableAdvice) -> Iterable[str]:
    """Indexes that took HOT away, those named in the reason left out."""
    named = (blamed.name for cause in table.causes for blamed in cause.indexes)
    return [name for name in dict.fromkeys(named) if name not in table.reason]


def _apart(written: str) -> tuple[str, str]:
    main, _, spread = written.partition(" ")
    return main, spread


def _size(value: Value) -> tuple[str, str]:
    at = middle(value)
    return (NOTHING if at is None else show_bytes(at), "")
