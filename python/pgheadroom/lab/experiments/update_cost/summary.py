"""
Summary of `update-cost`: our cells beside the source document's, and the law of the indexes.

The document's figures are quoted as printed. Two of its eight cells, fillfactor 100 with both
columns, have none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pgheadroom.lab import predicted
from pgheadroom.lab.contrast import CONTROL_ARMS, NO_CONTROL, Contrasts, contrast
from pgheadroom.lab.design import Measure, Request, TrialCell, cell_key
from pgheadroom.lab.experiment import Summary, compare_cells, summarise_cells
from pgheadroom.lab.experiments.update_cost import predicted as update_cost_predicted
from pgheadroom.lab.record import TrialSample
from pgheadroom.lab.result import Reference
from pgheadroom.stats import PAIRS_MIN, fit_line, mean_interval, paired_ratio
from pgheadroom.types import Interval, PgVersion
from pgheadroom.units import percent

DOCUMENT_SCALE = 100
COLUMNS = [
    "filler_length",
    "fillfactor",
    "update_bid",
    "pages_dirtied",
    "wal_records",
    "wal_bytes",
]
DOCUMENT_POSTGRESQL = [
    [64, 100, 0, 20142, 30003, 2720132],
    [64, 80, 0, 10006, 10000, 719690],
    [64, 80, 1, 10006, 10000, 1439716],
    [128, 100, 0, 20224, 30003, 3360132],
    [128, 80, 0, 10009, 10000, 719710],
    [128, 80, 1, 10009, 10000, 2079758],
]
DOCUMENT_REDROCK = [
    [64, 100, 0, 10079, 10077, 1457101],
    [64, 80, 0, 10078, 10076, 1457677],
    [64, 80, 1, 10087, 10085, 1558367],
    [128, 100, 0, 10078, 10076, 1457303],
    [128, 80, 0, 10079, 10077, 1456955],
    [128, 80, 1, 10088, 10086, 1558449],
]
DOCUMENT_MEASURES = ("pages_dirtied", "wal_records", "wal_bytes")
BASE_FACTORS = ("filler_length", "fillfactor", "update_bid")
SETTINGS = ("full_page_writes", "wal_compression")
TIMES = ("update_ms",)
COMPARED = ("wal_bytes", "pages_dirtied", *TIMES)


def reference(request: Request) -> int:
    """The fillfactor that the others are compared with: the largest."""
    return max(int(level) for level in request.levels["fillfactor"])


def control_of(request: Request, cell: TrialCell) -> TrialCell:
    """
    The cell whose A/A control decides whether times that a cell takes part in are to be believed.

    Where the number of indexes is a factor, times are its point, and each law of it has a control
    of its own at the fewest indexes; elsewhere one cell's control stands for all.
    """
    levels = request.levels.get("indexes", ())
    if len(levels) > 1:
        return {**cell, "indexes": min(int(level) for level in levels)}
    first = {name: given[0] for name, given in request.levels.items()}
    return {**first, "fillfactor": reference(request)}


def summarise(
    request: Request,
    version: PgVersion,
    samples: Sequence[TrialSample],
    measures: Sequence[Measure],
) -> Summary:
    """Everything of the result that is this experiment's own."""
    own = [measure for measure in measures if measure.evidence != "predicted"]
    cells = summarise_cells(samples, request.cells(), own)
    why_not = update_cost_predicted.fill(request, version, samples, cells)
    for cell in cells:
        document = _document_figures(cell, request)
        for name in DOCUMENT_MEASURES:
            cell[f"document_{name}"] = document.get(name)
    found = _contrasts(request, samples)
    findings = [
        *_document_findings(cells, request, version),
        *_fillfactor_findings(cells),
        *_index_findings(request, samples),
        *predicted.findings(cells, update_cost_predicted.PREDICTED),
        *(f"Not predicted: {reason}." for reason in why_not),
    ]
    return Summary(
        cells=cells,
        comparisons=found.comparisons,
        controls=found.controls,
        references=_references(request),
        findings=findings,
        warnings=_warnings(request, version),
    )


def _document_figures(cell: dict[str, Any], request: Request) -> dict[str, int]:
    """The document's figures for a cell; none at another scale, or under another condition."""
    extra = {
        "indexes": 0,
        "indexed_column": "none",
        "full_page_writes": "off",
        "wal_compression": "off",
    }
    comparable = request.scale == DOCUMENT_SCALE and all(
        cell.get(name, value) == value for name, value in extra.items()
    )
    key = [cell[name] for name in BASE_FACTORS]
    for row in DOCUMENT_POSTGRESQL if comparable else ():
        if row[:3] == key:
            return dict(zip(DOCUMENT_MEASURES, row[3:], strict=True))
    return {}


def _references(request: Request) -> list[Reference]:
    note = (
        "10 million rows (scale 100), full_page_writes off; compare cells of this scale only"
        if request.scale == DOCUMENT_SCALE
        else f"10 million rows (scale 100); this run has scale {request.scale}, so the document's "
        "counts are larger by about the ratio of the scales"
    )
    source = "PostgreSQL update performance, John Doe, 6 May 2026"
    return [
        Reference(
            title="PostgreSQL, as the document prints it",
            source=source,
            columns=tuple(COLUMNS),
            rows=tuple(map(tuple, DOCUMENT_POSTGRESQL)),
            note=note,
        ),
        Reference(
            title="Redrock Postgres (undo log, update in place), as the document prints it",
            source=source,
            columns=tuple(COLUMNS),
            rows=tuple(map(tuple, DOCUMENT_REDROCK)),
            note=f"{note}; not measured by us: that server is not at hand",
        ),
    ]


def _document_findings(
    cells: Sequence[dict[str, Any]], request: Request, version: PgVersion
) -> list[str]:
    """How far our figures and the document's agree, cell by cell."""
    if request.scale != DOCUMENT_SCALE:
        return []
    equal: list[str] = []
    different: list[str] = []
    for cell in cells:
        label = "/".join(str(cell[name]) for name in BASE_FACTORS)
        for name in DOCUMENT_MEASURES:
            document = cell.get(f"document_{name}")
            if document is None:
                continue
            if cell[name] == document:
                equal.append(f"{label} {name}")
            else:
                share = (cell[name] - document) / document
                different.append(
                    f"{label} {name} {cell[name]:,.0f}, the document {document:,} "
                    f"({percent(share, 3, sign=True)})"
                )
    if not equal and not different:
        return []
    findings = [
        f"Of the document's figures PostgreSQL {version} repeats {len(equal)} of "
        f"{len(equal) + len(different)} to the unit."
    ]
    if different:
        findings.append(
            "Those that differ: "
            + "; ".join(different)
            + ". Bytes at fillfactor 80 depend on the random values of the update."
        )
    return findings


def _fillfactor_findings(cells: Sequence[dict[str, Any]]) -> list[str]:
    """Lowest against highest fillfactor, for each combination of the other factors."""
    findings: list[str] = []
    groups: dict[str, list[dict[str, Any]]] = {}
    measured = {"pages_dirtied", "wal_bytes_per_update", "hot_frac"}
    names = ("filler_length", "update_bid", *SETTINGS)
    for cell in cells:
        key = cell_key({name: cell[name] for name in names if name in cell})
        if cell.get("indexes", 0) == 0 and cell.get("indexed_column", "none") == "none":
            groups.setdefault(key, []).append(cell)
    for group in groups.values():
        low = min(group, key=lambda cell: int(cell["fillfactor"]))
        high = max(group, key=lambda cell: int(cell["fillfactor"]))
        if low is high or any(low[m] is None or high[m] is None for m in measured):
            continue
        settings = "".join(f", {name} {low[name]}" for name in SETTINGS if name in low)
        findings.append(
            f"filler {low['filler_length']}, update_bid {low['update_bid']}{settings}: "
            f"{high['wal_bytes_per_update']:.1f} bytes of WAL per update at fillfactor "
            f"{high['fillfactor']} ({percent(high['hot_frac'])} HOT), "
            f"{low['wal_bytes_per_update']:.1f} at {low['fillfactor']} "
            f"({percent(low['hot_frac'])} HOT); {high['pages_dirtied']:,} and "
            f"{low['pages_dirtied']:,} pages modified."
        )
    return findings


def _contrasts(request: Request, samples: Sequence[TrialSample]) -> Contrasts:
    """Every cell against that of the highest fillfactor with all else equal, and the controls."""
    highest = reference(request)
    pairs = [(cell, {**cell, "fillfactor": highest}) for cell in request.cells()]
    # Beside itself: a cell with a control that no other is compared with.
    pairs += [(cell, cell) for cell in request.cells() if cell == control_of(request, cell)]
    return contrast(
        samples,
        pairs,
        COMPARED,
        control=lambda cell: control_of(request, cell),
        clocks=TIMES,
    )


def _index_findings(request: Request, samples: Sequence[TrialSample]) -> list[str]:
    """Is the cost proportional to the number of indexes, as the document says?"""
    levels = sorted(int(level) for level in request.levels.get("indexes", ()))
    if len(levels) < 2:
        return []
    findings: list[str] = []
    rest = {name: value for name, value in request.levels.items() if name != "indexes"}
    for cell in Request(
        experiment="", server="", scale=0, seed=0, repetitions=0, levels=rest
    ).cells():
        for measure, unit in (("update_ms", "ms"), ("wal_bytes", "bytes")):
            finding = _index_law(cell, levels, measure, unit, samples)
            if finding is not None:
                findings.append(finding)
    return findings


def _index_law(
    cell: TrialCell, levels: Sequence[int], measure: str, unit: str, samples: Sequence[TrialSample]
) -> str | None:
    """One sentence on how a measure grows with the number of indexes, the primary key counted."""
    blocks: dict[int, dict[int, float]] = {}
    for sample in samples:
        value = sample.measures.get(measure)
        others = {name: level for name, level in sample.cell.items() if name != "indexes"}
        if others == cell and value is not None and sample.arm == "measured":
            blocks.setdefault(sample.repetition, {})[int(sample.cell["indexes"])] = value
    complete = [block for block in blocks.values() if len(block) == len(levels)]
    if not complete:
        return None
    label = ", ".join(f"{name} {value}" for name, value in cell.items())
    few, many = levels[0] + 1, levels[-1] + 1
    ratio = paired_ratio([b[levels[-1]] for b in complete], [b[levels[0]] for b in complete])
    lines = [fit_line([n + 1 for n in levels], [b[n] for n in levels]) for b in complete]
    slope = mean_interval([line.slope for line in lines])
    if len(complete) < PAIRS_MIN or ratio is None or slope is None:
        return (
            f"{label}: {measure} against the number of indexes is undecided, "
            f"{len(complete)} blocks; a verdict needs at least {PAIRS_MIN}."
        )
    proportion = many / few
    if (doubt := _doubt(samples, {**cell, "indexes": levels[0]}, measure)) is not None:
        return f"{label}: {measure} against the number of indexes is undecided, {doubt}."
    verdict = _proportion_verdict(ratio, slope, proportion, is_claim=measure == "update_ms")
    return (
        f"{label}: {measure} with {many} indexes is {_shown(ratio)} times that with {few}, where "
        f"proportion to the number of indexes would be {proportion:g}: {verdict} "
        f"Each further index adds {_shown(slope)} {unit}."
    )


def _doubt(samples: Sequence[TrialSample], cell: TrialCell, measure: str) -> str | None:
    """Why a time is not to be believed: a cell's A/A control differs, or there is none."""
    if measure not in TIMES:
        return None
    aa = compare_cells(samples, cell=cell, against=cell, measure=measure, arms=CONTROL_ARMS)
    if not aa.pairs:
        return NO_CONTROL
    if aa.ratio is not None and aa.ratio.excludes(1):
        return f"the A/A control shows {_shown(aa.ratio)} where 1 is the truth"
    return None


def _proportion_verdict(
    ratio: Interval, slope: Interval, proportion: float, *, is_claim: bool
) -> str:
    """In words; the document claims proportion of time only, so only time refutes it."""
    refuted = "; the claim is refuted." if is_claim else "."
    if not slope.excludes(0):
        return "no growth with the number of indexes is shown."
    if slope.high < 0:
        return f"it falls{refuted}"
    if not ratio.excludes(proportion):
        return "the claim is not refuted." if is_claim else "in proportion."
    word = "less" if ratio.mid < proportion else "more"
    return f"it grows, but {word} than in proportion{refuted}"


def _shown(interval: Interval) -> str:
    if interval.low == interval.high:
        return _number(interval.mid)
    return f"{_number(interval.mid)} [{_number(interval.low)}, {_number(interval.high)}]"


def _number(value: float) -> str:
    """Four digits, and whole from 1,000 on: never an exponent."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _warnings(request: Request, version: PgVersion) -> list[str]:
    warnings = []
    if request.scale == DOCUMENT_SCALE and version != PgVersion(18, 4):
        warnings.append(
            f"The document's figures are those of 18.4 with data checksums; PostgreSQL {version} "
            "may write other WAL (17.11 and 18.6 add 8 bytes per updated row)."
        )
    if request.repetitions == 1:
        warnings.append("One repetition: no intervals.")
    return warnings
