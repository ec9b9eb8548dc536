"""
A verification as tables: a verdict a table, the measures, what of the workload was compared.
"""

from __future__ import annotations

from collections.abc import Iterator

from pgheadroom.lab import reading
from pgheadroom.outcome import Value
from pgheadroom.report import csv_file, text
from pgheadroom.report.table import Column, Style, Table
from pgheadroom.types import Interval
from pgheadroom.verify.values import MeasureOutcome, TableOutcome, Verification

_MEASURES = {
    "hot_frac": "HOT",
    "newpage_frac": "new page",
    "heap_bytes": "heap",
    "heap_grown_bytes": "heap that came since",
    "wal_bytes_per_update": "WAL of an update",
}


def tables(result: Verification) -> list[Table]:
    """Tables of a verification."""
    found = [_verdicts(result)]
    found += [_shares(result), _sizes(result), _workload(result)]
    return [table for table in found if table.rows]


def findings(result: Verification) -> list[str]:
    """What it comes to, in sentences."""
    if not result.tables:
        return ["The plan has no forecast to verify."]
    said = ", ".join(f"{count} {verdict}" for verdict, count in sorted(result.verdicts.items()))
    return [f"Forecasts of {len(result.tables)} tables: {said}."]


def title(result: Verification) -> str:
    """Its heading."""
    database = reading.printable(result.database)
    return f"Forecast and outcome in database {database}, PostgreSQL {result.server_version}"


def as_markdown(result: Verification) -> str:
    """For a change request."""
    lines = [f"# {title(result).replace('`', '')}", ""]
    lines += [f"- {line}" for line in (*findings(result), *result.notes)]
    return "\n".join([*lines, "", text.as_markdown(tables(result))])


def as_csv(result: Verification) -> str:
    """One row a table and measure; an interval as its two ends."""
    sides = ("before", "planned", "forecast", "now")
    ends = [f"{side}{end}" for side in sides for end in ("", "_low", "_high")]
    rows = []
    for table in result.tables:
        for outcome in table.outcomes:
            numbers: list[object] = []
            for side in sides:
                value: Value = getattr(outcome, side)
                if isinstance(value, Interval):
                    numbers += [value.mid, value.low, value.high]
                else:
                    numbers += [value, "", ""]
            own = (table.schema, table.name, table.verdict, outcome.name, outcome.unit)
            rows.append([*own, *numbers, outcome.verdict, outcome.note])
    head = ("schema", "name", "table_verdict", "measure", "unit", *ends, "verdict", "note")
    return csv_file.written(head, rows)


def _name(table: TableOutcome) -> str:
    schema = "" if table.schema == "public" else f"{table.schema}."
    return reading.printable(f"{schema}{table.name}")


def _verdicts(result: Verification) -> Table:
    return Table(
        title="Verdicts",
        columns=(
            Column("table", "table", align="left", style="text", lead=True),
            Column("planned", "planned", align="left", style="text"),
            Column("fillfactor", "fillfactor"),
            Column("rewritten", "rewritten", align="left", style="text"),
            Column("updates", "updates"),
            Column("verdict", "verdict", align="left", style="text"),
            Column("reason", "reason", align="left", style="text"),
        ),
        rows=tuple(
            (
                _name(table),
                table.planned,
                table.fillfactor,
                "yes" if table.rewritten else "no",
                table.updates,
                table.verdict,
                table.reason + (f" ({table.progress})" if _says_way(table) else ""),
            )
            for table in result.tables
        ),
    )


def _says_way(table: TableOutcome) -> bool:
    return bool(table.progress) and str(table.progress) not in table.reason


def _outcomes(result: Verification, unit: str) -> Iterator[tuple[TableOutcome, MeasureOutcome]]:
    for table in result.tables:
        for outcome in table.outcomes:
            seen = outcome.before is not None or outcome.now is not None
            if outcome.unit == unit and seen:
                yield table, outcome


def _shares(result: Verification) -> Table:
    return _measures(result, "Shares of updates", "frac", "%")


def _sizes(result: Verification) -> Table:
    return _measures(result, "Bytes", "bytes", None)


def _measures(result: Verification, heading: str, unit: str, shown: str | None) -> Table:
    style: Style = "share" if unit == "frac" else "number"

    def number(key: str, name: str, evidence: str) -> Column:
        return Column(key, name, unit=shown, style=style, evidence=evidence)

    return Table(
        title=heading,
        columns=(
            Column("table", "table", align="left", style="text", lead=True),
            Column("measure", "measure", align="left", style="text", lead=True),
            number("before", "before", "measured"),
            number("planned", "foreseen then", "predicted"),
            number("forecast", "for now", "predicted"),
            number("now", "now", "measured"),
            Column("verdict", "verdict", align="left", style="text"),
        ),
        rows=tuple(
            (
                _name(table),
                _MEASURES[outcome.name],
                outcome.before,
                outcome.planned,
                outcome.forecast,
                outcome.now,
                outcome.verdict or "shown only",
            )
            for table, outcome in _outcomes(result, unit)
        ),
        note=_note(result, unit),
    )


def _note(result: Verification, unit: str) -> str | None:
    """How intervals were made, and why a measure that could be judged is only shown."""
    if unit == "frac":
        return "Intervals of what was measured know that updates come in clusters."
    said = [
        f"{_name(table)}, {_MEASURES[outcome.name]}: {outcome.note}."
        for table, outcome in _outcomes(result, unit)
        if outcome.verdict is None and table.verdict != "not comparable" and outcome.note
    ]
    return " ".join(said) or None


def _workload(result: Verification) -> Table:
    return Table(
        title="The workload, then and now",
        columns=(
            Column("table", "table", align="left", style="text", lead=True),
            Column("what", "what", align="left", style="text", lead=True),
            Column("before", "then", evidence="measured"),
            Column("now", "now", evidence="measured"),
            Column("limit", "may differ by", align="left", style="text"),
            Column("alike", "alike", align="left", style="text"),
        ),
        rows=tuple(
            (
                _name(table),
                like.name,
                like.before,
                like.now,
                like.limit,
                "yes" if like.is_alike else "no",
            )
            for table in result.tables
            for like in table.workload
        ),
    )
