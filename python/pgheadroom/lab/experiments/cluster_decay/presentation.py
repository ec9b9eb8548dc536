"""
What `cluster-decay` shows: what a range query pays by round, beside the document's two runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pgheadroom.lab import presentation as forms
from pgheadroom.lab import reading
from pgheadroom.lab.answer_words import (
    SaidCell,
    Sentence,
    cell_of,
    changes,
    comparisons,
    few_repetitions,
    undecided,
)
from pgheadroom.lab.base.answers import in_order
from pgheadroom.lab.experiments.cluster_decay.summary import best_cycle
from pgheadroom.lab.reading import Result

_BASE_ROUND = 2
"""The document's first range SELECT is a start-up transient: its second is the first that counts"""

_STEPS = ("delete_ms", "vacuum_ms", "insert_ms", "count_ms")

TABLES: tuple[forms.TableForm, ...] = (
    forms.CellsTable(
        title="What a range SELECT pays after each round",
        measures=(
            "pages_per_range",
            "predicted_pages_per_range",
            "clustered_pages_per_range",
            "buffers_per_range",
            "correlation",
            "range_ms",
        ),
        constants=True,
        repetitions=True,
    ),
    forms.CellsTable(
        title="The steps of each round",
        measures=_STEPS,
        note="Times are noisier than counters; read the comparisons for what they show.",
    ),
    forms.CellsTable(
        title="WAL and size",
        measures=(
            "insert_wal_bytes",
            "wal_bytes",
            "checkpoints",
            "heap_pages",
            "predicted_heap_pages",
            "index_pages",
        ),
        note="Pages of 8192 bytes.",
    ),
    forms.CellsTable(
        title="Clustering again after the last round",
        measures=("recluster_ms", "recluster_wal_bytes"),
        only_with="recluster_ms",
    ),
    forms.CellsTable(title="Rows, a check of the workload", measures=("live_rows", "deleted_rows")),
)


def figures(result: Result) -> tuple[forms.FigureForm, ...]:
    """Pages and correlation first, then the document's figures beside ours, then the steps."""
    beside = _beside_document(result)
    return (
        forms.Against(
            title="How the order decays",
            across="round",
            measures=(
                "pages_per_range",
                "predicted_pages_per_range",
                "clustered_pages_per_range",
                "buffers_per_range",
                "correlation",
            ),
            key=True,
        ),
        *([] if beside is None else [beside]),
        forms.Against(title="Times by round", across="round", measures=("range_ms", *_STEPS)),
        forms.Against(
            title="WAL and size by round",
            across="round",
            measures=("insert_wal_bytes", "wal_bytes", "heap_pages"),
        ),
    )


def _beside_document(result: Result) -> forms.Curves | None:
    """Growth of the range SELECT since round 2: ours in time and pages, the document's in time."""
    factors = [factor.name for factor in reading.factors(result)]
    names = [factor.name for factor in reading.varying(result) if factor.name != "round"]
    ours_ms, ours_pages = _own(result, names, "range_ms"), _own(result, names, "pages_per_range")
    theirs = _document(result)
    if "round" not in factors or not ours_ms or not theirs:
        return None
    return forms.Curves(
        title="Beside the document's two runs",
        caption="Each line is divided by its own value after round 2, since the document's first "
        "range SELECT is a start-up transient; its machine of 2007 and ours compare in shape only. "
        "Every axis of values begins at 0.",
        across="round",
        panels=(
            forms.CurvePanel(
                title="Range SELECT time over that of round 2",
                curves=(*ours_ms, *theirs),
                level=1.0,
            ),
            forms.CurvePanel(
                title="Pages of a range over those of round 2", curves=tuple(ours_pages), level=1.0
            ),
        ),
        legend=tuple(names),
    )


def _own(result: Result, names: Sequence[str], measure: str) -> list[forms.Curve]:
    """Our lines, each divided by its value at the base round."""
    groups: dict[str, dict[float, float]] = {}
    for cell in reading.cells(result):
        number = reading.number(cell.get("round"))
        value = reading.number(cell.get(measure))
        if number is not None and value is not None:
            name = reading.group_label(cell, names) or "ours"
            groups.setdefault(name, {})[number] = float(value)
    return [line for name, values in groups.items() for line in _relative(values, name)]


def _document(result: Result) -> list[forms.Curve]:
    found = []
    for reference in result.references:
        columns = reference.columns
        if "round" not in columns or "range SELECT ms" not in columns:
            continue
        place = columns.index("range SELECT ms")
        values = {
            float(number): float(value)
            for item in reference.rows
            if (number := reading.number(item[columns.index("round")])) is not None
            and (value := reading.number(item[place])) is not None
        }
        patched = "patch" in reference.title
        found += _relative(values, "document, patch" if patched else "document, as it was")
    return found


def _relative(values: Mapping[float, float], name: str) -> list[forms.Curve]:
    base = values.get(_BASE_ROUND)
    if not base:
        return []
    points = [(x, value / base) for x, value in sorted(values.items()) if x >= _BASE_ROUND]
    return [forms.Curve(name=name, points=tuple(points))]


def answer(result: Result) -> str | None:
    """Pages of a range, fresh and after the last round, and when clustering again pays."""
    group = in_order(result, _reference_engine(result), "round")
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


def _again(result: Result, group: Sequence[SaidCell], end: str) -> str:
    """After how many rounds clustering again pays, counted in pages, which repeat."""
    queries = reading.number(result.options.get("queries_per_round"))
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
