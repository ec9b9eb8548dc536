"""
Summary of `fillfactor`: cells, paired ratios against the reference, the document's claims.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from pgheadroom.lab import guards, predicted
from pgheadroom.lab.contrast import contrast, ratio_words
from pgheadroom.lab.design import Measure, Request, TrialCell
from pgheadroom.lab.experiment import (
    Summary,
    summarise_cells,
)
from pgheadroom.lab.experiments.fillfactor import predicted as fillfactor_predicted
from pgheadroom.lab.record import TrialSample
from pgheadroom.lab.result import ComparedCells, Reference
from pgheadroom.types import PgVersion
from pgheadroom.units import percent

COMPARED = (
    "accounts_update_ms",
    "tps",
    "latency_ms_p50",
    "latency_ms_p99",
    "hot_frac",
    "wal_bytes_per_tx",
    "heap_pages",
    "index_pages",
)

DOCUMENT_CLAIMS = Reference(
    title="What the document says",
    source="What is fillfactor and how does it affect PostgreSQL performance? (2020); "
    "PostgreSQL 12.2, scales 1000, 2500, 10000 on 16 GB, 12 hours each, 2 clients",
    columns=("claim", "shown here by"),
    rows=(
        (
            "on average a boost of 10 % when fillfactor is lowered by 10 or 20",
            "accounts_update_ms, ratio at 90 and 80",
        ),
        ("70 clearly deteriorates updates at every scale", "accounts_update_ms, ratio at 70"),
        ("90 is a good idea when hot data is a lot bigger than memory", "memory tenfold, 90"),
        (
            "smaller data against memory: no benefit, total TPS may fall a little",
            "memory fits, tps",
        ),
        ("more aggressive autovacuum would have helped further", "factor autovacuum"),
    ),
    note="its table of times is a picture that the text at hand does not carry",
)


def summarise(
    request: Request,
    version: PgVersion,
    samples: Sequence[TrialSample],
    measures: Sequence[Measure],
    *,
    reference: int,
) -> Summary:
    """Everything of the result that is this experiment's own."""
    own = [measure for measure in measures if measure.evidence != "predicted"]
    cells = summarise_cells(samples, request.cells(), own)
    why_not = fillfactor_predicted.fill(request, version, samples, cells)
    comparisons: list[ComparedCells] = []
    controls: list[ComparedCells] = []
    findings: list[str] = []
    for group in _groups(request):
        against = {**group, "fillfactor": reference}
        against = {name: against[name] for name in request.levels}
        pairs = [
            (cell, against)
            for cell in request.cells()
            if all(cell[name] == value for name, value in group.items())
        ]
        found = contrast(samples, pairs, COMPARED)
        comparisons.extend(found.comparisons)
        controls.extend(found.controls)
        findings.extend(_findings(group, cells, comparisons, reference))
    findings += predicted.findings(cells, fillfactor_predicted.PREDICTED)
    findings += [f"Not predicted: {reason}." for reason in why_not]
    return Summary(
        cells=cells,
        comparisons=comparisons,
        controls=controls,
        references=[DOCUMENT_CLAIMS],
        findings=findings,
        warnings=_warnings(request, version, samples),
    )


def _groups(request: Request) -> list[TrialCell]:
    """The combinations of all factors but fillfactor."""
    groups: list[TrialCell] = []
    for cell in request.cells():
        group = {name: value for name, value in cell.items() if name != "fillfactor"}
        if group not in groups:
            groups.append(group)
    return groups


def _findings(
    group: TrialCell,
    cells: Sequence[dict[str, Any]],
    comparisons: Sequence[ComparedCells],
    reference: int,
) -> list[str]:
    """Sentences of a group: why updates miss HOT, what fillfactor changes, time with intervals."""
    label = ", ".join(f"{name} {value}" for name, value in group.items())
    mine = [cell for cell in cells if all(cell[name] == value for name, value in group.items())]
    counted = [cell for cell in mine if cell["hot_frac"] is not None]
    findings = [*_cause(counted, reference), *_by_fillfactor(counted)]
    for measure, name in (("accounts_update_ms", "The accounts UPDATE takes"), ("tps", "TPS is")):
        parts = [
            f"at {comparison.cell['fillfactor']} {ratio_words(comparison)}"
            for comparison in comparisons
            if comparison.measure == measure
            and all(comparison.cell[factor] == value for factor, value in group.items())
        ]
        if parts:
            findings.append(f"{name}, against fillfactor {reference}: " + "; ".join(parts) + ".")
    return [f"({label}) {finding}" for finding in findings]


def _cause(counted: Sequence[dict[str, Any]], reference: int) -> list[str]:
    """Why updates miss HOT at the reference: here no indexed column changes, so it is room."""
    for cell in counted:
        if cell["fillfactor"] == reference and cell["newpage_frac"]:
            return [
                f"At fillfactor {reference} {percent(cell['newpage_frac'], 1)} of the accounts "
                "updates "
                "found no room on their page: each moved to another page and needed a new index "
                f"entry; {percent(cell['hot_frac'], 1)} were HOT."
            ]
    return []


def _by_fillfactor(counted: Sequence[dict[str, Any]]) -> list[str]:
    """HOT share, size and WAL at each fillfactor, in one sentence."""
    if not counted:
        return []
    shares = ", ".join(
        f"{percent(cell['hot_frac'], 1)} at {cell['fillfactor']}" for cell in counted
    )
    pages = ", ".join(f"{cell['heap_pages_before']:,} at {cell['fillfactor']}" for cell in counted)
    wal = ", ".join(f"{cell['wal_bytes_per_tx']:,.0f} at {cell['fillfactor']}" for cell in counted)
    return [
        f"HOT share of the accounts updates by fillfactor: {shares}; pages after loading: {pages}; "
        f"WAL bytes per transaction: {wal}."
    ]


def _warnings(request: Request, version: PgVersion, samples: Sequence[TrialSample]) -> list[str]:
    """The guards of benchmark practice: what makes these numbers say less than they seem to."""
    timed = [sample for sample in samples if sample.measures.get("tps") is not None]
    warnings: list[str] = []
    if timed:
        if _updates_branches(request):
            warnings += guards.clients_within_scale(request.scale, int(request.options["clients"]))
        warnings += guards.long_enough(samples, int(request.options["window_s"]))
    if (
        timed
        and any(level != "off" for level in request.levels["autovacuum"])
        and not any(sample.measures.get("autovacuums") for sample in timed)
    ):
        warnings.append("Autovacuum never reached pgbench_accounts in a window.")
    if version.major < 16 and request.options["io"] != "cached":
        warnings.append(
            f"PostgreSQL {version} has no direct I/O: the operating system's cache hides what "
            "memory twice and tenfold are meant to show."
        )
    return warnings


def _updates_branches(request: Request) -> bool:
    """Whether clients wait for each other at pgbench_branches; of the named scripts at one only."""
    text = str(request.options.get("script_text", ""))
    found = re.search(r"\bupdate\s+(only\s+)?(\w+\.)?pgbench_branches\b", text, re.IGNORECASE)
    return request.options["script"] == "tpcb-like" or found is not None
