"""
Summary of `cluster-decay`: rounds beside the document's two runs, and when to cluster again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pgheadroom.lab import rounds
from pgheadroom.lab.design import Measure, Request, TrialCell
from pgheadroom.lab.experiment import Summary, compare_cells, compared_cells, summarise_cells
from pgheadroom.lab.experiments.cluster_decay.draws import EXTENSION
from pgheadroom.lab.record import TrialSample
from pgheadroom.lab.result import ComparedCells, Reference
from pgheadroom.stats import PAIRS_MIN, Comparison, ComparisonVerdict
from pgheadroom.units import show_bytes

DOCUMENT_HEAD = (
    (14771, 10663, 2449, 170.685, 648),
    (33761, 28762, 12212, 3.139, 647),
    (30541, 13204, 17973, 3.621, 624),
    (14912, 27444, 19126, 4.900, 668),
    (22651, 10744, 21631, 4.566, 632),
    (11588, 15279, 23725, 5.960, 680),
    (3905, 42848, 18620, 7.106, 678),
    (27288, 9330, 23361, 5.997, 615),
    (20417, 17537, 19781, 6.894, 671),
    (14063, 17440, 17381, 6.664, 632),
)
"""The document's run of PostgreSQL as it was: DELETE, VACUUM, INSERT, range SELECT, count in ms."""

DOCUMENT_PATCH = (
    (18063, 28488, 25638, 1498.475, 624),
    (30211, 24147, 40759, 2.711, 985),
    (31616, 22384, 36174, 2.840, 723),
    (34280, 34855, 36653, 3.554, 715),
    (37396, 17721, 32414, 3.498, 723),
    (44696, 13851, 47650, 4.165, 723),
    (17855, 52447, 41294, 4.169, 692),
    (32103, 22019, 44296, 4.636, 740),
    (31679, 12643, 53179, 4.745, 709),
    (35682, 42612, 45727, 4.753, 696),
)
"""Its run with the patch that keeps inserts in cluster order."""

LAST = ("pages_per_range", "buffers_per_range", "range_ms")
SUMS = ("insert_ms", "delete_ms", "vacuum_ms", "insert_wal_bytes", "wal_bytes")


def reference(request: Request) -> str:
    """The engine that the others are compared with: plain heap, else the first."""
    engines = [str(level) for level in request.levels["engine"]]
    return "heap" if "heap" in engines else engines[0]


def summarise(
    request: Request, samples: Sequence[TrialSample], measures: Sequence[Measure]
) -> Summary:
    """
    Everything of the result that is this experiment's own.

    Args:
        request: What was asked.
        samples: One a trial, which played all rounds up to the last that was asked for.
        measures: Those of the experiment.
    """
    cells = summarise_cells(rounds.asked(request, samples, "round"), request.cells(), measures)
    comparisons, controls = _compared(request, samples)
    findings: list[str] = []
    for group in _groups(cells):
        findings.extend(_decay(group))
    findings.extend(_ratios(comparisons))
    for group in _groups(cells):
        findings.extend(_recluster(request, group))
    findings.extend(_foreseen(cells))
    return Summary(
        cells=cells,
        comparisons=comparisons,
        controls=controls,
        references=_references(),
        findings=findings,
        warnings=_warnings(request, cells),
    )


def _groups(cells: Sequence[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """The cells that differ only in the round."""
    names = ("engine", "fillfactor", "churn_pct", "index")
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for cell in cells:
        groups.setdefault(tuple(cell[name] for name in names), []).append(cell)
    return list(groups.values())


def _label(cell: Mapping[str, Any]) -> str:
    index = "" if cell["index"] == "btree" else f", {cell['index']}"
    return f"{cell['engine']}, fillfactor {cell['fillfactor']}, churn {cell['churn_pct']} %{index}"


def _decay(group: Sequence[Mapping[str, Any]]) -> list[str]:
    """How a group's order fell, first by counters."""
    first, last = group[0], group[-1]
    if first["round"] == last["round"] or None in (
        first["pages_per_range"],
        last["pages_per_range"],
    ):
        return []
    fresh, worn = first["pages_per_range"], last["pages_per_range"]
    times = (
        f"; the range SELECT {first['range_ms']:.2f} to {last['range_ms']:.2f} ms"
        if first["range_ms"] and last["range_ms"]
        else ""
    )
    return [
        f"({_label(last)}) The rows of a range lie on {fresh:.1f} pages after round "
        f"{first['round']} and on {worn:.1f} after round {last['round']}, "
        f"{worn / fresh:.2f} times as many; "
        f"correlation {first['correlation']:.3f} to {last['correlation']:.3f}{times}."
    ]


def _compared(
    request: Request, samples: Sequence[TrialSample]
) -> tuple[list[ComparedCells], list[ComparedCells]]:
    """Engines against the reference, within each group of the other factors, and the controls."""
    against_engine = reference(request)
    # All rounds, not only those that were asked for: a sum of the others would be of fewer.
    played = rounds.expand(samples, "round")
    last = max(int(level) for level in request.levels["round"])
    comparisons: list[ComparedCells] = []
    controls: list[ComparedCells] = []
    for measure in (*LAST, *SUMS):
        label: str | int = last if measure in LAST else f"1 to {last}"
        of = (
            played if measure in LAST else rounds.summed(played, "round", measure, label=str(label))
        )
        seen: list[TrialCell] = []
        for cell in request.cells():
            here: TrialCell = {**cell, "round": label}
            if here in seen:
                continue
            seen.append(here)
            against: TrialCell = {**here, "engine": against_engine}
            arms = ("control", "measured")
            aa = compare_cells(of, cell=against, against=against, measure=measure, arms=arms)
            if here == against:
                _add(controls, aa, measure, here, against)
            else:
                found = compare_cells(of, cell=here, against=against, measure=measure, aa=aa)
                _add(comparisons, found, measure, here, against)
    return comparisons, controls


def _add(
    into: list[ComparedCells], found: Comparison, measure: str, cell: TrialCell, against: TrialCell
) -> None:
    if found.pairs:
        into.append(compared_cells(found, measure=measure, cell=cell, against=against))


def _ratios(comparisons: Sequence[ComparedCells]) -> list[str]:
    """What another engine changes, with its interval or why it is undecided."""
    words = {
        "insert_ms": "INSERT time, all rounds",
        "pages_per_range": "pages of a range at the end",
        "range_ms": "range SELECT time at the end",
    }
    said = []
    for item in comparisons:
        if item.measure not in words:
            continue
        ratio = item.ratio
        found = f"undecided ({item.reason})"
        if item.verdict != ComparisonVerdict.UNDECIDED and ratio is not None:
            found = f"{ratio.mid:.2f} times [{ratio.low:.2f}, {ratio.high:.2f}], {item.verdict}"
        said.append(
            f"({_label(item.cell)}) {words[item.measure]}, against {item.against['engine']}: "
            f"{found}."
        )
    return said


def _foreseen(cells: Sequence[dict[str, Any]]) -> list[str]:
    """How the twin's pages per range compare with the measured ones, engine by engine."""
    said = []
    for group in _groups(cells):
        pairs = [
            (cell["predicted_pages_per_range"], cell["pages_per_range"])
            for cell in group
            if cell["predicted_pages_per_range"] is not None and cell["pages_per_range"]
        ]
        if not pairs:
            continue
        same = sum(1 for foreseen, found in pairs if foreseen == found)
        off = max(abs(foreseen / found - 1) for foreseen, found in pairs)
        how = (
            f"equal to the measured ones in all {len(pairs)} states"
            if same == len(pairs)
            else f"equal in {same} of {len(pairs)} states, at most {100 * off:.1f} % off"
        )
        last = group[-1]
        model = ""
        if last["engine"] != EXTENSION and last["clustered_pages_per_range"] is not None:
            model = (
                f"; the engine clustered, a model, would end at "
                f"{last['clustered_pages_per_range']:.1f} pages"
            )
        said.append(f"({_label(last)}) The twin's pages of a range are {how}{model}.")
    return said


def best_cycle(
    per_query: Sequence[float], recluster: float, queries_per_round: int
) -> tuple[int, float] | None:
    """
    After how many rounds clustering again costs least per round.

    A cycle of r rounds costs the clustering and what the range queries of each round pay above the
    fresh state; the best r minimises the mean cost of a round (the rule of periodic replacement).

    Args:
        per_query: What a range query costs after rounds 0, 1, ... of the decay, in ms or in pages,
            shape (rounds + 1,).
        recluster: What clustering again costs, in the same unit.
        queries_per_round: Range queries that run in a round.

    Returns:
        The rounds of the best cycle, and its cost per round; None when the best is as long as
        what was measured, so that a longer one may be better still.
    """
    fresh, costs, paid = per_query[0], [], 0.0
    for number, now in enumerate(per_query[1:], start=1):
        paid += queries_per_round * (now - fresh)
        costs.append((recluster + paid) / number)
    if not costs or min(costs) == costs[-1]:
        return None
    best = min(range(len(costs)), key=costs.__getitem__)
    return best + 1, costs[best]


def _recluster(request: Request, group: Sequence[Mapping[str, Any]]) -> list[str]:
    """When clustering again pays: by pages, which repeat, and by time where it is known."""
    last = group[-1]
    numbers = [cell["round"] for cell in group]
    if last["recluster_ms"] is None or numbers != list(range(len(group))):
        return []
    queries = int(request.options["queries_per_round"])
    moved = 2 * (last["heap_pages"] + last["index_pages"])
    pages = [cell["pages_per_range"] for cell in group]
    said = (
        f"({_label(last)}) With {queries:,} range SELECTs a round, clustering again "
        f"{_when(best_cycle(pages, moved, queries), numbers[-1])} if nothing is cached (it reads "
        f"and writes about {moved:,} pages)"
    )
    spent = (
        f"; it took {last['recluster_ms']:.0f} ms and "
        f"{show_bytes(last['recluster_wal_bytes'] or 0)} of WAL"
    )
    times = [cell["range_ms"] for cell in group]
    if last["repetitions"] < PAIRS_MIN:
        return [
            f"{said}{spent}. By the clock it is undecided: {_counted(last['repetitions'])}, "
            f"at least {PAIRS_MIN} are needed."
        ]
    if None in times:
        return [f"{said}{spent}."]
    cycle = best_cycle(times, last["recluster_ms"], queries)
    return [f"{said}{spent}, and by the clock of this machine it {_when(cycle, numbers[-1])}."]


def _when(cycle: tuple[int, float] | None, measured: int) -> str:
    if cycle is None:
        return f"does not pay within {_rounds(measured)}"
    return f"costs least when it is done after every {_rounds(cycle[0])}"


def _counted(count: int) -> str:
    return "1 repetition" if count == 1 else f"{count} repetitions"


def _rounds(count: int) -> str:
    return "round" if count == 1 else f"{count} rounds"


def _references() -> list[Reference]:
    """The document's two runs, as it prints them, in milliseconds."""
    source = (
        "Tom Lane, Re: [PATCHES] Maintaining cluster order on insert (pgsql-hackers, 2007); "
        "1,000,000 rows, 80 MB of buffers, a workstation with one IDE disk"
    )
    columns = ("round", "DELETE ms", "VACUUM ms", "INSERT ms", "range SELECT ms", "count ms")
    return [
        Reference(
            title=title,
            source=source,
            columns=columns,
            rows=tuple((number, *row) for number, row in enumerate(rows, start=1)),
            note="the first range SELECT is a start-up transient, as the document says",
        )
        for title, rows in (
            ("The document's run of PostgreSQL as it was", DOCUMENT_HEAD),
            ("The document's run with the cluster-order patch", DOCUMENT_PATCH),
        )
    ]


def _warnings(request: Request, cells: Sequence[Mapping[str, Any]]) -> list[str]:
    warnings = []
    if request.scale != 10:
        warnings.append(
            f"{request.scale * 100_000:,} rows, the document has 1,000,000 (scale 10): buffers and "
            "checkpoint distance shrink with the data, so plain heap's pages per range and its "
            "correlation compare with the document's case; sorted inserts, which find the nearer "
            "room the smaller the table is, and times do not."
        )
    # A group's cells of round 0 have no churn and so no checkpoints.
    if any(cell["checkpoints"] for cell in cells):
        warnings.append(
            "Checkpoints fell into rounds (measure checkpoints), as in the document: full-page "
            "images and writing are in those rounds' times and WAL."
        )
    return warnings
