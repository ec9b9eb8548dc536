"""
A verification as tables: a verdict a table, the measures, what of the workload was compared.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from typing import Any

from pgheadroom.lab import reading
from pgheadroom.report import text
from pgheadroom.report.table import Column, Style, Table

_MEASURES = {
    "hot_frac": "HOT",
    "newpage_frac": "new page",
    "heap_bytes": "heap",
    "heap_grown_bytes": "heap that came since",
    "wal_bytes_per_update": "WAL of an update",
}


def tables(result: Mapping[str, Any]) -> list[Table]:
    """Tables of a verification, as its JSON has it."""
    found = [_verdicts(result)]
    found += [_shares(result), _sizes(result), _workload(result)]
    return [table for table in found if table.rows]


def findings(result: Mapping[str, Any]) -> list[str]:
    """What it comes to, in sentences."""
    counts: dict[str, int] = {}
    for table in result["tables"]:
        counts[table["verdict"]] = counts.get(table["verdict"], 0) + 1
    if not counts:
        return ["The plan has no forecast to verify."]
    said = ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items()))
    return [f"Forecasts of {len(result['tables'])} tables: {said}."]


def title(result: Mapping[str, Any]) -> str:
    """Its heading."""
    database = reading.printable(result["database"])
    return f"Forecast and outcome in database {database}, PostgreSQL {result['server_version']}"


def as_markdown(result: Mapping[str, Any]) -> str:
    """For a change request."""
    lines = [f"# {title(result).replace('`', '')}", ""]
    lines += [f"- {line}" for line in (*findings(result), *result["notes"])]
    return "\n".join([*lines, "", text.as_markdown(tables(result))])


def as_csv(result: Mapping[str, Any]) -> str:
    """One row a table and measure; an interval as its two ends."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    sides = ("before", "planned", "forecast", "now")
    ends = [f"{side}{end}" for side in sides for end in ("", "_low", "_high")]
    writer.writerow(
        ["schema", "name", "table_verdict", "measure", "unit", *ends, "verdict", "note"]
    )
    for table in result["tables"]:
        for outcome in table["outcomes"]:
            numbers: list[object] = []
            for side in sides:
                value = outcome.get(side)
                spread = reading.interval(value)
                if spread is not None:
                    numbers += [spread.mid, spread.low, spread.high]
                else:
                    numbers += ["" if value is None else value, "", ""]
            row = [table["schema"], table["name"], table["verdict"], outcome["name"]]
            row += [outcome["unit"], *numbers, outcome["verdict"] or "", outcome["note"]]
            writer.writerow([_csv(value) for value in row])
    return out.getvalue()


def _csv(value: object) -> object:
    return text.csv_text(value) if isinstance(value, str) else value


def _name(table: Mapping[str, Any]) -> str:
    schema = "" if table["schema"] == "public" else f"{table['schema']}."
    return reading.printable(f"{schema}{table['name']}")


def _verdicts(result: Mapping[str, Any]) -> Table:
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
                table["planned"],
                table["fillfactor"],
                "yes" if table["rewritten"] else "no",
                table["updates"],
                table["verdict"],
                table["reason"] + (f" ({table['progress']})" if _says_way(table) else ""),
            )
            for table in result["tables"]
        ),
    )


def _says_way(table: Mapping[str, Any]) -> bool:
    return bool(table["progress"]) and str(table["progress"]) not in str(table["reason"])


def _outcomes(
    result: Mapping[str, Any], unit: str
) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    for table in result["tables"]:
        for outcome in table["outcomes"]:
            seen = any(outcome[side] is not None for side in ("before", "now"))
            if outcome["unit"] == unit and seen:
                yield table, outcome


def _shares(result: Mapping[str, Any]) -> Table:
    return _measures(result, "Shares of updates", "frac", "%")


def _sizes(result: Mapping[str, Any]) -> Table:
    return _measures(result, "Bytes", "bytes", None)


def _measures(result: Mapping[str, Any], heading: str, unit: str, shown: str | None) -> Table:
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
                _MEASURES[outcome["name"]],
                outcome["before"],
                outcome.get("planned"),
                outcome["forecast"],
                outcome["now"],
                outcome["verdict"] or "shown only",
            )
            for table, outcome in _outcomes(result, unit)
        ),
        note=_note(result, unit),
    )


def _note(result: Mapping[str, Any], unit: str) -> str | None:
    """How intervals were made, and why a measure that could be judged is only shown."""
    if unit == "frac":
        return "Intervals of what was measured know that updates come in clusters."
    said = [
        f"{_name(table)}, {_MEASURES[outcome['name']]}: {outcome['note']}."
        for table, outcome in _outcomes(result, unit)
        if outcome["verdict"] is None and table["verdict"] != "not comparable" and outcome["note"]
    ]
    return " ".join(said) or None


def _workload(result: Mapping[str, Any]) -> Table:
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
                like["name"],
                like["before"],
                like["now"],
                like["limit"],
                "yes" if like["is_alike"] else "no",
            )
            for table in result["tables"]
            for like in table["workload"]
        ),
    )
