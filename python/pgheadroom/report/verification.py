"""
A verification as tables: a verdict a table, the measures, what of the workload was compared.
"""

from __future__ import annotations

from collections.abc import Iterator

from pgheadroom.lab import reading
from pgheadroom.outcome import Value, scaled
from pgheadroom.quoting import called
from pgheadroom.report import csv_file, text
from pgheadroom.report.claims import claim_findings, claim_tables, claims_as_csv
from pgheadroom.report.table import Column, Style, Table
from pgheadroom.types import Interval
from pgheadroom.verify.comparing import ON_THE_WAY
from pgheadroom.verify.values import MeasureOutcome, TableOutcome, Verification

_MEASURES = {
    "hot_frac": "HOT",
    "newpage_frac": "new page",
    "heap_bytes": "heap",
    "heap_grown_bytes": "heap since",
    "wal_bytes_per_update": "WAL of an update",
}
_WORKLOAD = {
    "updates_per_s": "updates/s",
    "inserts_per_update": "inserts/update",
    "tuple_bytes": "row bytes",
    "other_columns_frac": "other columns",
    "horizon_held_frac": "horizon held",
}
_MIB = 2**20


def tables(result: Verification) -> list[Table]:
    """Tables of a verification."""
    if result.claims is not None:
        return claim_tables(result.claims)
    found = [_verdicts(result)]
    found += [*_shares(result), _by_page(result), *_sizes(result), _workload(result)]
    return [table for table in found if table.rows]


def findings(result: Verification) -> list[str]:
    """What it comes to, in sentences."""
    if result.claims is not None:
        return claim_findings(result)
    if not result.tables:
        return ["The plan has no forecast to verify."]
    said = ", ".join(f"{count} {verdict}" for verdict, count in sorted(result.verdicts.items()))
    count = len(result.tables)
    return [f"Forecasts of {count} table{'' if count == 1 else 's'}: {said}.", *_of_kept(result)]


def _of_kept(result: Verification) -> list[str]:
    """What an outcome of a table that was left as it is says, and what it does not."""
    kept = [table for table in result.tables if table.planned == "KEEP"]
    if not kept:
        return []
    tables = (
        "one was to stay as it is" if len(kept) == 1 else f"{len(kept)} were to stay as they are"
    )
    return [
        f"Of these, {tables} (KEEP): there the forecast is that nothing moves at the setting in "
        "force. That another setting would not have paid no outcome shows, for none was tried."
    ]


def title(result: Verification) -> str:
    """Its heading."""
    database = reading.printable(result.database)
    what = "Forecast" if result.claims is None else "Claim"
    return f"{what} and outcome in database {database}, PostgreSQL {result.server_version}"


def as_markdown(result: Verification) -> str:
    """For a change request."""
    lines = [f"# {title(result).replace('`', '')}", ""]
    lines += [f"- {line}" for line in (*findings(result), *result.notes)]
    return "\n".join([*lines, "", text.as_markdown(tables(result))])


def as_csv(result: Verification) -> str:
    """One row a table and measure; an interval as its two ends."""
    if result.claims is not None:
        return claims_as_csv(result.claims)
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
    return reading.printable(called(table.schema, table.name))


def _verdicts(result: Verification) -> Table:
    return Table(
        title="Verdicts",
        columns=(
            Column("table", "table", style="words", lead=True),
            Column("planned", "planned", style="words"),
            Column("fillfactor", "fillfactor"),
            Column("rewritten", "rewritten", style="words"),
            Column("updates", "updates"),
            Column("verdict", "verdict", style="words"),
            Column("reason", "reason", style="words"),
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


def _outcomes(
    result: Verification, names: tuple[str, ...]
) -> Iterator[tuple[TableOutcome, MeasureOutcome]]:
    for table in result.tables:
        for outcome in table.outcomes:
            seen = outcome.before is not None or outcome.now is not None
            if outcome.name in names and seen:
                yield table, outcome


def _shares(result: Verification) -> list[Table]:
    """HOT, which is judged, and new pages, which are shown."""
    return [
        _measures(result, "HOT share of the updates", ("hot_frac",), "%"),
        _measures(result, "Updates that went to another page", ("newpage_frac",), "%"),
    ]


def _by_page(result: Verification) -> Table:
    """What no counter tells apart: pages that were there, and those that came since."""
    return Table(
        title="Old pages and new ones, foreseen for now",
        columns=(
            Column("table", "table", style="words", lead=True),
            Column("old", "updates on old pages", unit="%", style="share"),
            Column("hot_old", "HOT of these", unit="%", style="share"),
            Column("hot_new", "HOT on new pages", unit="%", style="share"),
        ),
        rows=tuple(
            (_name(table), parts.old_pages_frac, parts.hot_old_frac, parts.hot_new_frac)
            for table in result.tables
            if (parts := table.by_page) is not None
        ),
        note="Predicted: a server counts HOT of a table, not of its pages, so the whole is judged.",
    )


def _sizes(result: Verification) -> list[Table]:
    return [
        _measures(result, "Sizes", ("heap_bytes", "heap_grown_bytes"), "MiB"),
        _measures(result, "WAL of an update", ("wal_bytes_per_update",), "bytes"),
    ]


def _measures(result: Verification, heading: str, names: tuple[str, ...], unit: str) -> Table:
    """One kind of measure; its name in a column where there are several, a verdict if one has."""
    found = list(_outcomes(result, names))
    style: Style = "share" if unit == "%" else "number"
    judged = unit != "%" or any(outcome.verdict is not None for _, outcome in found)
    several = len(names) > 1

    def number(key: str, name: str, evidence: str) -> Column:
        return Column(key, name, unit=unit, style=style, evidence=evidence)

    columns = [
        Column("table", "table", style="words", lead=True),
        *([Column("measure", "of", style="words", lead=True)] if several else []),
        number("before", "before", "measured"),
        number("planned", "foreseen then", "predicted"),
        number("forecast", "foreseen now", "predicted"),
        number("now", "now", "measured"),
        *([Column("verdict", "verdict", style="words")] if judged else []),
    ]
    return Table(
        title=heading,
        columns=tuple(columns),
        rows=tuple(
            (
                _name(table),
                *([_MEASURES[outcome.name]] if several else []),
                _shown(outcome.before, unit),
                _shown(outcome.planned, unit),
                _shown(outcome.forecast, unit),
                _shown(outcome.now, unit),
                *([outcome.verdict or "shown only"] if judged else []),
            )
            for table, outcome in found
        ),
        note=_note(result, names),
    )


def _shown(value: Value, unit: str) -> Value:
    """In the unit of its column."""
    return scaled(value, 1 / _MIB) if unit == "MiB" else value


def _note(result: Verification, names: tuple[str, ...]) -> str | None:
    """How intervals were made, and why a measure that could be judged is only shown."""
    if names == ("hot_frac",):
        return "Intervals of what was measured know that updates come in clusters."
    if names == ("newpage_frac",):
        return None
    said = [
        f"{_name(table)}, {_MEASURES[outcome.name]}: {outcome.note}."
        for table, outcome in _outcomes(result, names)
        if (outcome.verdict is None or outcome.note.startswith(ON_THE_WAY))
        and table.verdict != "not comparable"
        and outcome.note
    ]
    return " ".join(said) or None


def _workload(result: Verification) -> Table:
    return Table(
        title="The workload, then and now",
        columns=(
            Column("table", "table", style="words", lead=True),
            Column("what", "what", style="words", lead=True),
            Column("before", "then", evidence="measured"),
            Column("now", "now", evidence="measured"),
            Column("limit", "may differ by", style="words"),
            Column("alike", "alike", style="words"),
        ),
        rows=tuple(
            (
                _name(table),
                _WORKLOAD.get(like.name, like.name),
                like.before,
                like.now,
                like.limit,
                "yes" if like.is_alike else "no",
            )
            for table in result.tables
            for like in table.workload
        ),
    )
