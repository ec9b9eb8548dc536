"""
What `update-cost` shows: one UPDATE beside the figures that the document prints.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pgheadroom.lab import presentation as forms
from pgheadroom.lab import reading
from pgheadroom.lab.answer_words import (
    Compared,
    SaidCell,
    Sentence,
    cell_of,
    comparisons,
)
from pgheadroom.lab.reading import Result
from pgheadroom.lab.result import FactorLevels

DOCUMENTED = ("pages_dirtied", "wal_records", "wal_bytes")
"""The measures that the document prints; ours and the document's stand side by side."""

_OWN = ("filler_length", "fillfactor", "update_bid")

TABLES: tuple[forms.TableForm, ...] = (
    forms.PairedTable(),
    forms.CellsTable(
        title="Where the new row versions went",
        measures=("n_tup_upd", "n_tup_hot_upd", "n_tup_newpage_upd", "hot_frac", "newpage_frac"),
    ),
    forms.CellsTable(
        title="WAL per updated row, and size",
        measures=(
            "wal_bytes_per_update",
            "wal_fpi",
            "heap_pages_before",
            "heap_pages",
            "index_pages",
        ),
    ),
    forms.CellsTable(
        title="Time",
        measures=("update_ms", "execution_ms"),
        repetitions=True,
        note="Times are noisier than counters; read the comparisons for what they show.",
    ),
)


def tables(result: Result) -> tuple[forms.TableForm, ...]:
    """The document's comparison first, as far as there is one."""
    names = [name for name in DOCUMENTED if reading.has_value(result, name)]
    return (_beside(result, names), *TABLES) if names else TABLES


def _beside(result: Result, names: Sequence[str]) -> forms.GivenTable:
    """Ours, the document's, and the difference, for each documented measure."""
    known = {measure.name: measure for measure in reading.measures(result)}
    leads = reading.varying(result) or reading.factors(result)
    documented = [name for name in names if reading.has_value(result, f"document_{name}")]
    columns = [
        forms.GivenColumn(name=factor.name, title=factor.name, factor=True) for factor in leads
    ]
    for name in names:
        measure = known.get(name)
        columns.append(
            forms.GivenColumn(
                name=name,
                title="ours" if name in documented else name,
                group=name if name in documented else None,
                evidence=measure.evidence if measure else None,
                description=measure.description if measure else None,
            )
        )
        if name in documented:
            columns += [
                forms.GivenColumn(
                    name=f"document_{name}",
                    title="document",
                    group=name,
                    evidence="printed by the document",
                ),
                forms.GivenColumn(
                    name=f"{name}_difference", title="difference", group=name, signed=True
                ),
            ]
    rows = []
    for cell in reading.cells(result):
        row: list[Any] = [cell.get(factor.name) for factor in leads]
        for name in names:
            row.append(reading.value(cell, name))
            if name in documented:
                row += [reading.number(cell.get(f"document_{name}")), _less(cell, name)]
        rows.append(tuple(row))
    return forms.GivenTable(
        title="One UPDATE: ours beside the document's" if documented else "One UPDATE",
        columns=tuple(columns),
        rows=tuple(rows),
        constants=True,
        note="Difference: ours less the document's; a dash where the document has no figure."
        if documented
        else "The document's figures are for scale 100 and full_page_writes off; "
        "none of these cells is such a one.",
        covers=(*DOCUMENTED, *(f"document_{name}" for name in DOCUMENTED)),
    )


def _less(cell: Mapping[str, Any], name: str) -> float | None:
    ours = reading.number(cell.get(name))
    theirs = reading.number(cell.get(f"document_{name}"))
    return None if ours is None or theirs is None else ours - theirs


def figures(result: Result) -> tuple[forms.FigureForm, ...]:
    """WAL and pages by cell first, then time and WAL against indexes and the other factors."""
    size = "wal_bytes_per_update"
    size = size if reading.has_value(result, size) else "wal_bytes"
    further = [
        factor for factor in reading.varying(result) if factor.name not in _OWN and factor.levels
    ]
    bars = forms.CellBars(
        title="WAL and pages by cell",
        factors=_OWN,
        colour="fillfactor",
        measures=(size, "pages_dirtied"),
        beside=tuple(
            forms.Beside(
                measure=name,
                documented=_figures(result, name, "document_"),
                predicted=_figures(result, name, "predicted_"),
            )
            for name in (size, "pages_dirtied")
        ),
        only=_first(further),
        key=True,
    )
    shown = [
        next((name for name in names if reading.has_value(result, name)), None)
        for names in (("update_ms", "execution_ms"), ("wal_bytes_per_update", "wal_bytes"))
    ]
    measures = tuple(name for name in shown if name is not None)
    titles = {
        "indexes": "Time and WAL against the number of additional indexes",
        "indexed_column": "An index on an updated column",
    }
    return (
        bars,
        *(
            forms.Against(
                title=titles.get(factor.name, f"Time and WAL by {reading.printable(factor.name)}"),
                across=factor.name,
                measures=measures,
                only=_first([other for other in further if other.name != factor.name]),
            )
            for factor in further
            if measures
        ),
    )


def _first(factors: Sequence[FactorLevels]) -> dict[str, Any]:
    """The first level of each."""
    return {factor.name: factor.levels[0] for factor in factors}


def _figures(result: Result, name: str, prefix: str) -> tuple[float | None, ...]:
    """What the document, or the twin, says of a measure in each cell; WAL is by statement there."""
    found = []
    for cell in reading.cells(result):
        value = reading.number(cell.get(f"{prefix}{name}"))
        updates = reading.number(cell.get("n_tup_upd"))
        if name == "wal_bytes_per_update" and updates:
            value = reading.number(cell.get(f"{prefix}wal_bytes"))
            value = None if value is None else value / updates
        found.append(value)
    return tuple(found)


def answer(result: Result) -> str | None:
    """WAL and pages of an UPDATE that is HOT against one that is not."""
    for item in comparisons(result, "wal_bytes"):
        hot, cold = cell_of(result, item.cell), cell_of(result, item.against)
        if hot is None or cold is None:
            continue
        shares = [reading.number(cell.get("hot_frac")) for cell in (hot, cold)]
        if shares == [1, 0]:
            return _hot_against_cold(result, item, hot, cold)
    return None


def _hot_against_cold(result: Result, item: Compared, hot: SaidCell, cold: SaidCell) -> str:
    said = Sentence()
    pages = next(
        (
            other
            for other in comparisons(result, "pages_dirtied")
            if (other.cell, other.against) == (item.cell, item.against)
        ),
        None,
    )
    sides = [reading.at(cell, item.changed) for cell in (item.cell, item.against)]
    text = (
        f"the WAL of a HOT UPDATE ({sides[0]}) against one that is not HOT ({sides[1]}) is "
        f"{said.compared(item)}"
    )
    if pages is not None:
        text += f" and its modified pages are {said.compared(pages)}"
    measured = [
        f"{one} against {other} {what}"
        for measure, what in (
            ("wal_bytes_per_update", "bytes of WAL per update"),
            ("pages_dirtied", "pages"),
        )
        if (one := said.figure(hot, measure)) and (other := said.figure(cold, measure))
    ]
    if measured:
        text += f": {', '.join(measured)}"
    where = item.differs_at(result)
    return said.ended(f"{text}{f'; at {where}' if where else ''}")
