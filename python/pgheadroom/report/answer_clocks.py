"""
Answers of the experiments that compare times and throughput, in one sentence each.

`fillfactor` and `clients-scale`, and `told_of` for those whose measures say enough. The comparison
that is told of is fixed beforehand, and how all others of its measure came out is counted, so that
no answer is the best of many.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pgheadroom.report import reading
from pgheadroom.report.answer_words import Compared, Sentence, comparisons, named, tally
from pgheadroom.report.reading import Result
from pgheadroom.stats import Verdict

_MOST_SAID = 3
"""Comparisons that still read as one sentence."""

_FILLFACTOR_MEASURES = {
    "accounts_update_ms": "the time of the accounts UPDATE",
    "tps": "throughput",
    "wal_bytes_per_tx": "WAL per transaction",
}

_MEMORY = {
    "fits": "where the data fit in memory",
    "twice": "where they are twice as large",
    "tenfold": "where they are ten times as large",
    "server": "with the server's own memory",
}


def fillfactor(result: Result) -> str | None:
    """Time of the UPDATE, else throughput, else WAL, at the next lower fillfactor."""
    found = {
        measure: [item for item in comparisons(result, measure) if _levels(item) is not None]
        for measure in _FILLFACTOR_MEASURES
    }
    measure = next((measure for measure, items in found.items() if items), None)
    if measure is None:
        return None
    every = found[measure]
    # The first step below the reference, whatever came out at it.
    step = max(every, key=lambda item: (_levels(item) or (0, 0))[0])
    near = [item for item in every if _levels(item) == _levels(step)]
    said = Sentence()
    low, high = _levels(step) or (0, 0)
    shown = [f"{said.compared(item)}{_where(result, item)}" for item in near[:_MOST_SAID]]
    text = f"at fillfactor {low:g} against {high:g} {_FILLFACTOR_MEASURES[measure]} is "
    text += ", ".join(shown)
    if len(every) > len(shown):
        text += f"; of all {len(every)} such comparisons {tally(every)}"
    if measure != "wal_bytes_per_tx" and all(item.verdict is Verdict.UNDECIDED for item in near):
        for item in found["wal_bytes_per_tx"]:
            if (item.cell, item.against) == (step.cell, step.against):
                text += f"; WAL per transaction is {said.compared(item)}{_where(result, item)}"
    return said.ended(text)


def _levels(item: Compared) -> tuple[float, float] | None:
    """Fillfactors of both cells; None for a comparison of anything else."""
    found = [reading.number(cell.get("fillfactor")) for cell in (item.cell, item.against)]
    if item.changed != ("fillfactor",) or found[0] is None or found[1] is None:
        return None
    return float(found[0]), float(found[1])


def _where(result: Result, item: Compared) -> str:
    names = [factor.name for factor in reading.varying(result) if factor.name != "fillfactor"]
    memory = item.cell.get("memory")
    known = _MEMORY.get(memory) if isinstance(memory, str) else None
    parts = []
    if "memory" in names:
        parts.append(known or f"with memory {reading.label(memory)}")
    rest = reading.at(item.cell, [name for name in names if name != "memory"])
    parts += [f"with {rest}"] if rest else []
    return f" {' and '.join(parts)}" if parts else ""


def told_of(*measures: str) -> Callable[[Result], str | None]:
    """
    An answer that tells of the first comparison of each measure, in the experiment's order.

    Args:
        measures: The measures that the experiment's question asks for, the main one first; one
            that was not compared is left out.
    """

    def answer(result: Result) -> str | None:
        said = Sentence()
        parts = []
        for measure in measures:
            every = comparisons(result, measure)
            if every:
                text = f"{named(result, every[0])} is {said.compared(every[0])}"
                if len(every) > 1:
                    text += f" (of all {len(every)} such comparisons {tally(every)})"
                parts.append(text)
        return said.ended("; ".join(parts), name_first=True) if parts else None

    return answer


def clients_scale(result: Result) -> str | None:
    """Throughput of the most clients against the fewest, at each size of the data; the peak."""
    every = [item for item in comparisons(result, "tps") if item.changed == ("clients",)]
    counts = [reading.number(item.cell.get("clients")) for item in every]
    known = [count for count in counts if count is not None]
    if not known:
        return None
    said = Sentence()
    most = [item for item, count in zip(every, counts, strict=True) if count == max(known)]
    shown = [
        f"{said.compared(item)} at data_scale {reading.label(item.cell.get('data_scale'))}"
        for item in _ends(most)
    ]
    fewest = reading.label(most[0].against.get("clients"))
    text = f"throughput with {max(known):g} clients against {fewest} is {', '.join(shown)}"
    if len(every) > len(shown):
        text += f"; of all {len(every)} such comparisons {tally(every)}"
    timed = [cell for cell in reading.cells(result) if reading.number(cell.get("tps")) is not None]
    if timed:
        best = max(timed, key=lambda cell: reading.number(cell.get("tps")) or 0)
        where = reading.at(best, ("clients", "data_scale"))
        text += f"; the highest median is {said.figure(best, 'tps')} a second ({where})"
    return said.ended(text)


def _ends(items: Sequence[Compared]) -> list[Compared]:
    """The first and the last, which are the smallest data and the largest."""
    return [*items[:1], *items[1:][-1:]]
