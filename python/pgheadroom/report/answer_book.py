"""
Answers of the experiments that a book's chapters ask for, in one sentence each.

`read-writes`, `insert-rate`, `load-methods` and `commit-cost`. What is told of is fixed beforehand:
the first level of each factor, the fewest against the most. Each gives None when the result lacks
what its sentence needs.
"""

from __future__ import annotations

from collections.abc import Sequence

from pgheadroom.report import answer_clocks, answer_counters, reading
from pgheadroom.report.answer_words import (
    Cell,
    Compared,
    Sentence,
    cell_of,
    comparisons,
    few_repetitions,
    named,
    tally,
    undecided,
)
from pgheadroom.report.reading import Result

_HINTS = ("checksums", "wal_log_hints")
_SETTINGS = (*_HINTS, "full_page_writes")


def read_writes(result: Result) -> str | None:
    """What the first read writes, with the first settings and with none that logs hints."""
    reads = [
        cell
        for cell in reading.cells(result)
        if cell.get("step") == "first-read" and reading.number(cell.get("wal_bytes")) is not None
    ]
    reads = [cell for cell in reads if cell.get("method") == reads[0].get("method")]
    exact = answer_counters.as_predicted(result, "counts")
    if not reads or exact is None:
        return None
    first = reads[0]
    silent = [
        cell
        for cell in reads[1:]
        if all(cell.get(name) == "off" for name in _HINTS)
        and cell.get("full_page_writes") == first.get("full_page_writes")
    ]
    said = Sentence()
    parts = [
        f"{said.figure(cell, 'pages_dirtied')} pages and {said.figure(cell, 'wal_bytes')} bytes of "
        f"WAL with {reading.at(cell, _SETTINGS)}"
        for cell in (first, *silent[:1])
    ]
    method = reading.label(reads[0].get("method"))
    exactly = f"{exact[:1].lower()}{exact[1:]}".removesuffix(".")
    return said.ended(
        f"the first read after {method} makes dirty, and logs, {'; '.join(parts)}; {exactly}"
    )


def insert_rate(result: Result) -> str | None:
    """Rows a second, and WAL a row, of the most rows a statement against the fewest."""
    said = Sentence()
    parts = []
    every = [item for item in comparisons(result, "rows_per_s") if item.changed == ("rows",)]
    if every:
        most = _most(every, "rows")
        text = f"{named(result, most)} is {said.compared(most)}"
        if len(every) > 1:
            text += f" (of all {len(every)} such comparisons {tally(every)})"
        parts.append(text)
        ends: list[Cell | None] = [cell_of(result, cell) for cell in (most.cell, most.against)]
    else:
        ends = _ends(result, "rows", "wal_bytes_per_row")
    many, few = (*ends, None, None)[:2]
    if many is not None and few is not None:
        figures = [said.figure(cell, "wal_bytes_per_row") for cell in (many, few)]
        if None not in figures:
            reason = few_repetitions([many, few])
            wal = (
                f"a row writes {figures[0]} bytes of WAL at {reading.at(many, ('rows',))} and "
                f"{figures[1]} at {reading.at(few, ('rows',))}"
            )
            parts.append(wal if every else undecided(reason, wal))
    return said.ended("; ".join(parts), name_first=bool(every)) if parts else None


def commit_cost(result: Result) -> str | None:
    """Commits a second of the most clients against the fewest, and without waiting for them."""
    every = comparisons(result, "tps")
    clients = [item for item in every if item.changed == ("clients",)]
    waiting = [item for item in every if item.changed == ("synchronous_commit",)]
    picked = [*([_most(clients, "clients")] if clients else []), *waiting[:1]]
    if not picked:
        return None
    said = Sentence()
    parts = [f"{named(result, item)} is {said.compared(item)}" for item in picked]
    group = cell_of(result, picked[0].cell) if clients else None
    if group is not None and (size := said.figure(group, "commits_per_sync")):
        parts.insert(1, f"{size} commits share a sync there")
    return said.ended("; ".join(parts), name_first=True)


load_methods = answer_clocks.told_of("step_ms")


def _most(items: Sequence[Compared], factor: str) -> Compared:
    """The first of those with the highest level, within the first level of all else."""
    return max(items, key=lambda item: reading.number(item.cell.get(factor)) or 0)


def _ends(result: Result, factor: str, measure: str) -> list[Cell | None]:
    """The cells with the most and the least of a factor, at the first level of all others."""
    known = [
        cell for cell in reading.cells(result) if reading.number(cell.get(measure)) is not None
    ]
    others = [item.name for item in reading.factors(result) if item.name != factor]
    same = [cell for cell in known if all(cell.get(n) == known[0].get(n) for n in others)]
    ordered = sorted(same, key=lambda cell: reading.number(cell.get(factor)) or 0)
    return [ordered[-1], ordered[0]] if len(ordered) > 1 else []
