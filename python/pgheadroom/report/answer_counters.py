"""
Answers of the experiments that lead with counters, in one sentence each.

`update-cost`, `cluster-decay`, `index-walkthrough`, `fpi-sawtooth` and `long-transaction`. Which
cell is told of is fixed beforehand, the first of each factor, so that no answer is the best of
many. Each gives None when the result lacks what its sentence needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pgheadroom.lab.experiments.cluster_decay.summary import best_cycle
from pgheadroom.report import reading
from pgheadroom.report.answer_words import (
    Cell,
    Compared,
    Sentence,
    cell_of,
    changes,
    comparisons,
    few_repetitions,
    undecided,
)
from pgheadroom.report.reading import Result

_CYCLES = 2
"""Checkpoint cycles that `fpi-sawtooth` plays."""


def update_cost(result: Result) -> str | None:
    """WAL and pages of an UPDATE that is HOT against one that is not."""
    for item in comparisons(result, "wal_bytes"):
        hot, cold = cell_of(result, item.cell), cell_of(result, item.against)
        if hot is None or cold is None:
            continue
        shares = [reading.number(cell.get("hot_frac")) for cell in (hot, cold)]
        if shares == [1, 0]:
            return _hot_against_cold(result, item, hot, cold)
    return None


def _hot_against_cold(result: Result, item: Compared, hot: Cell, cold: Cell) -> str:
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


def cluster_decay(result: Result) -> str | None:
    """Pages of a range, fresh and after the last round, and when clustering again pays."""
    if any(factor.name == "record" for factor in reading.factors(result)):
        return None
    group = _in_order(result, _reference_engine(result), "round")
    known = [cell for cell in group if reading.number(cell.get("pages_per_range")) is not None]
    if len(known) < 2:
        return None
    said = Sentence()
    first, last = known[0], known[-1]
    rounds = [reading.label(cell["round"]) for cell in (first, last)]
    start = "freshly clustered" if first["round"] == 0 else f"after round {rounds[0]}"
    end = f"after {rounds[1]} round{'' if rounds[1] == '1' else 's'}"
    text = (
        f"the rows of a range lie on {said.figure(first, 'pages_per_range')} pages {start} and on "
        f"{said.figure(last, 'pages_per_range')} {end}"
    )
    reason = few_repetitions([first, last])
    if reason is None and not changes(first, last, "pages_per_range"):
        text += ", which is no change that the intervals show"
    names = ("engine", "fillfactor", "churn_pct", "index")
    text += f" ({reading.at(last, names)})"
    if reason is None:
        text += _again(result, known, end)
    for item in comparisons(result, "pages_per_range"):
        if item.changed == ("engine",) and cell_of(result, item.against) is last:
            text += (
                f"; with engine {reading.label(item.cell['engine'])} those pages are at the end, "
                f"against {reading.label(item.against['engine'])}, {said.compared(item)}"
            )
            break
    return said.ended(undecided(reason, text))


def _reference_engine(result: Result) -> dict[str, Any]:
    """Plain heap, else the first engine: what the experiment compares with."""
    engines = [cell.get("engine") for cell in reading.cells(result)]
    return {"engine": "heap" if "heap" in engines else next(iter(engines), None)}


def _again(result: Result, group: Sequence[Cell], end: str) -> str:
    """After how many rounds clustering again pays, counted in pages, which repeat."""
    queries = reading.number(reading.mapping(result.get("options")).get("queries_per_round"))
    last = group[-1]
    sizes = [reading.number(last.get(name)) for name in ("heap_pages", "index_pages")]
    whole = [cell["round"] for cell in group] == list(range(len(group)))
    if (
        queries is None
        or None in sizes
        or not whole
        or reading.number(last.get("recluster_ms")) is None
    ):
        return ""
    pages = [float(reading.number(cell["pages_per_range"]) or 0) for cell in group]
    moved = 2 * sum(float(size) for size in sizes if size is not None)
    cycle = best_cycle(pages, moved, int(queries))
    by = f"counted in pages at {queries:,.0f} range SELECTs a round"
    if cycle is None:
        return f"; clustering again, {by}, does not pay {end}"
    number = "each round" if cycle[0] == 1 else f"every {cycle[0]} rounds"
    return f"; clustering again, {by}, costs least when done after {number}"


def index_walkthrough(result: Result) -> str | None:
    """How many block counts are those of the arithmetic, one by one."""
    return as_predicted(result, "block counts")


def as_predicted(result: Result, what: str) -> str | None:
    """
    How many counts are exactly as predicted, one by one.

    Args:
        result: Whose measures have `predicted_` ones beside them.
        what: The counts, in the plural.

    Returns:
        None where nothing is predicted.
    """
    exact, count = 0, 0
    seen = []
    names = [measure.name for measure in reading.measures(result)]
    for cell in reading.cells(result):
        for name in names:
            foreseen = reading.middle(reading.value(cell, f"predicted_{name}"))
            found = reading.middle(reading.value(cell, name))
            if foreseen is None or found is None:
                continue
            spread = reading.interval(cell.get(f"{name}_interval"))
            count += 1
            seen.append(cell)
            exact += found == foreseen and (spread is None or spread.low == spread.high)
    if not count:
        return None
    known = sorted({found for cell in seen if (found := reading.number(cell.get("repetitions")))})
    ends = " to ".join(reading.label(number) for number in (*known[:1], *known[1:][-1:]))
    runs = f", in {ends} repetition{'' if known == [1] else 's'}" if known else ""
    if exact == count:
        return f"All {count} {what} are exactly as predicted{runs}."
    return f"{exact} of {count} {what} are exactly as predicted and {count - exact} are not{runs}."


def fpi_sawtooth(result: Result) -> str | None:
    """An update's WAL right after a checkpoint and at the end of the same cycle."""
    measure = "wal_bytes_per_update"
    group = _in_order(result, {"full_page_writes": "on"}, "window")
    if not group:
        group = _in_order(result, {}, "window")
    most = max((cell["window"] for cell in group), default=0)
    first_cycle = [
        cell
        for cell in group
        if cell["window"] <= -(-most // _CYCLES) and reading.number(cell.get(measure)) is not None
    ]
    if len(first_cycle) < 2:
        return None
    said = Sentence()
    near, far = first_cycle[0], first_cycle[-1]
    where = reading.at(near, ("fillfactor", "full_page_writes", "wal_compression"))
    text = (
        f"with {where} an update writes {said.figure(near, measure)} bytes of WAL in window "
        f"{reading.label(near['window'])} after a checkpoint and {said.figure(far, measure)} in "
        f"window {reading.label(far['window'])}"
    )
    images = [said.figure(cell, "wal_fpi_per_update") for cell in (near, far)]
    if None not in images:
        text += f", with {images[0]} and {images[1]} full-page images"
    reason = few_repetitions([near, far])
    if reason is None and not changes(near, far, measure):
        text += "; the intervals show no change"
    return said.ended(undecided(reason, text))


def long_transaction(result: Result) -> str | None:
    """HOT before a snapshot is held, while it is, and after; and how the table grew."""
    options = reading.mapping(result.get("options"))
    opens, closes = (reading.number(options.get(name)) for name in ("open", "close"))
    group = _in_order(result, {"snapshot": "held"}, "window")
    group = [cell for cell in group if reading.number(cell.get("hot_frac")) is not None]
    if opens is None or closes is None:
        return None
    before = [cell for cell in group if cell["window"] < opens]
    during = [cell for cell in group if opens <= cell["window"] < closes]
    after = [cell for cell in group if cell["window"] >= closes]
    if not before or not during:
        return None
    said = Sentence()
    last, worst = before[-1], during[-1]
    shown = [last, worst, *after[-1:]]
    parts = [
        f"{said.figure(last, 'hot_frac')} before a snapshot is held",
        f"{said.figure(worst, 'hot_frac')} in the last window under it",
        *(f"{said.figure(cell, 'hot_frac')} at the end, after it" for cell in after[-1:]),
    ]
    text = f"at {reading.at(last, ('fillfactor',))} the HOT share of updates is {_listed(parts)}"
    sizes = [size for cell in shown if (size := said.figure(cell, "heap_pages"))]
    if len(sizes) == len(shown):
        text += f", and the table has {_listed(sizes)} pages"
    reason = few_repetitions(shown)
    if reason is None and not changes(last, worst, "hot_frac"):
        text += "; the intervals show no change of the share under the snapshot"
    return said.ended(undecided(reason, text))


def _listed(parts: Sequence[str]) -> str:
    """`"a, b and c"`."""
    return " and ".join(filter(None, [", ".join(parts[:-1]), *parts[-1:]]))


def _in_order(result: Result, wanted: Cell, across: str) -> list[Cell]:
    """
    The cells that go by rounds or windows, in their order, for the first level of all else.

    Args:
        result: Of kind "experiment".
        wanted: Levels that a cell must have.
        across: The factor that counts; cells where it is no number are left out.
    """
    fitting = [
        cell
        for cell in reading.cells(result)
        if reading.number(cell.get(across)) is not None
        and all(cell.get(name) == level for name, level in wanted.items())
    ]
    if not fitting:
        return []
    others = [factor.name for factor in reading.factors(result) if factor.name != across]
    same = [
        cell for cell in fitting if all(cell.get(name) == fitting[0].get(name) for name in others)
    ]
    return sorted(same, key=lambda cell: cell[across])
