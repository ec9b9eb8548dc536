"""
Summary of `tprocc`: cells, ratios to the reference, the document's sizes beside ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pgheadroom.lab import guards
from pgheadroom.lab.contrast import contrast, ratio_words
from pgheadroom.lab.design import LevelValue, Request, TrialCell
from pgheadroom.lab.experiment import Summary, summarise_cells
from pgheadroom.lab.experiments.tprocc import predicted
from pgheadroom.lab.experiments.tprocc.measure import MEASURES, transactions
from pgheadroom.lab.experiments.tprocc.schedules import SOURCES, UPDATED
from pgheadroom.lab.record import TrialSample
from pgheadroom.lab.result import ComparedCells, Reference
from pgheadroom.types import PgVersion
from pgheadroom.units import percent

COMPARED = (
    "nopm",
    "tpm",
    "new_order_ms_p50",
    "new_order_ms_p99",
    "payment_ms_p99",
    "cpu_frac",
    "hot_frac",
    "wal_nonfpi_bytes_per_tx",
    "wal_bytes_per_tx",
)

ONCE = ("load_s", "data_bytes", "aged_bytes")
"""Measured once for a fillfactor, in the database that all its trials start from: no interval."""


DOCUMENT_SIZES_GB: dict[LevelValue, int] = {100: 48, 80: 58, 60: 74, 40: 109}
"""Of 500 warehouses, as the document prints them."""

DOCUMENT = (
    "Fillfactor of PostgreSQL and its effect; HammerDB's TPROC-C, 500 warehouses, 100 to 500 users "
    "for 300 minutes each, Aurora PostgreSQL 15.4 on db.r6g.4xlarge"
)

CLAIMS = Reference(
    title="What the document says",
    source=DOCUMENT,
    columns=("claim", "shown here by"),
    rows=(
        ("TPM rises with the users, and is higher the lower the fillfactor", "tpm"),
        ("CPU depends on the users, not on the fillfactor", "cpu_frac"),
        ("the share of HOT updates rises as the fillfactor falls", "<table>_hot_frac"),
        (
            "500 users: about 94 million updates an hour of stock and of order_line, 19 million of "
            "customer and of district: 4.9 to 1",
            "<table>_updates_per_h",
        ),
        ("loading takes as long at every fillfactor (60 to 62 minutes)", "load_s"),
        ("more room for updates means more pages for the inserts of order_line", "data_bytes"),
    ),
    note="its throughput, CPU and HOT shares are pictures that the text at hand does not carry; "
    "Aurora's storage takes the log and makes the pages itself, for which the twin's "
    "predicted_log_bytes_per_tx stands; its tiered cache has no counterpart here",
)


def summarise(
    request: Request,
    version: PgVersion,
    samples: Sequence[TrialSample],
    pairs: Sequence[tuple[TrialCell, TrialCell]],
) -> Summary:
    """Everything of the result that is this experiment's own."""
    cells = summarise_cells(samples, request.cells(), MEASURES)
    for cell in cells:
        cell.update({f"{name}_interval": None for name in ONCE})
        if request.options["predict"] == "on":
            cell.update(_predictions(request, version, cell))
    found = contrast(samples, pairs, COMPARED)
    return Summary(
        cells=cells,
        comparisons=found.comparisons,
        controls=found.controls,
        references=[CLAIMS, *_sizes(request, cells), *_predicted(request, cells, samples)],
        findings=_findings(request, cells, found.comparisons),
        warnings=_warnings(request, version, samples),
    )


def _sizes(request: Request, cells: Sequence[dict[str, Any]]) -> list[Reference]:
    """The document's table of sizes, each against fillfactor 100."""
    by_level = {cell["fillfactor"]: cell for cell in cells}
    if 100 not in by_level or not by_level[100]["data_bytes"]:
        return []
    base = by_level[100]
    rows = []
    for level in request.levels["fillfactor"]:
        cell = by_level.get(level)
        if cell is None or cell["data_bytes"] is None:
            continue
        stated = DOCUMENT_SIZES_GB.get(level)
        rows.append(
            [
                str(level),
                None if stated is None else f"{stated} GB",
                None if stated is None else percent(stated / 48 - 1, sign=True),
                f"{cell['data_bytes'] / 1024**2:,.0f} MB",
                percent(cell["data_bytes"] / base["data_bytes"] - 1, 1, sign=True),
                _against(cell["predicted_data_bytes"], base["predicted_data_bytes"]),
                None if cell["load_s"] is None else f"{cell['load_s']:.0f} s",
            ]
        )
    return [
        Reference(
            title="Size of the database by fillfactor",
            source=DOCUMENT,
            evidence="printed by the document, measured or predicted as the column says",
            columns=(
                "fillfactor",
                "document",
                "against 100",
                f"measured, scale {request.scale}",
                "against 100",
                "predicted against 100",
                "load",
            ),
            rows=tuple(map(tuple, rows)),
            note="sizes of the tables and their indexes, whose fillfactor stays at 90"
            + "".join(
                f"; {level}: {SOURCES[str(level)]}"
                for level in request.levels["fillfactor"]
                if str(level) in SOURCES
            ),
        )
    ]


def _against(value: float | None, base: float | None) -> str | None:
    return None if value is None or not base else percent(value / base - 1, 1, sign=True)


def _predictions(request: Request, version: PgVersion, cell: TrialCell) -> dict[str, float | None]:
    """What the twin says of a cell, which follows from the request alone."""
    workload = predicted.PredictedLoad(
        version=str(version),
        level=cell["fillfactor"],
        warehouses=request.scale,
        users=int(cell["users"]),
        at_home=request.options["home"] == "own",
        age=int(request.options["age"]),
        transactions=transactions(request),
        seed=request.seed,
    )
    return predicted.figures(workload)


def _predicted(
    request: Request, cells: Sequence[dict[str, Any]], samples: Sequence[TrialSample]
) -> list[Reference]:
    """HOT share of each table, the twin's beside the range that was measured."""
    rows = []
    for asked, cell in zip(request.cells(), cells, strict=True):
        for table in UPDATED:
            measured = [
                value
                for sample in samples
                if sample.cell == asked
                and (value := sample.measures.get(f"{table}_hot_frac")) is not None
            ]
            mid = cell[f"predicted_{table}_hot_frac"]
            if measured and mid is not None:
                rows.append(
                    [
                        *(str(asked[name]) for name in ("fillfactor", "users")),
                        table,
                        percent(mid, 1),
                        f"{percent(min(measured), 1)} to {percent(max(measured), 1)}",
                        f"{(mid - sum(measured) / len(measured)) * 100:+.1f} points",
                    ]
                )
    if not rows:
        return []
    return [
        Reference(
            title="HOT share by table, predicted and measured",
            evidence="predicted or measured as the column says",
            source="the twin, which plays the same transactions (docs/method/tprocc.md)",
            columns=("fillfactor", "users", "table", "predicted", "measured", "difference"),
            rows=tuple(map(tuple, rows)),
            note="measured over all repetitions",
        )
    ]


def _findings(
    request: Request, cells: Sequence[dict[str, Any]], comparisons: Sequence[ComparedCells]
) -> list[str]:
    """Counters first; then orders per minute with verdicts; each for what else varies."""
    if not cells:
        return []
    said = [_sizes_said(cells)]
    groups: list[dict[str, LevelValue]] = []
    for cell in request.cells():
        group = {name: value for name, value in cell.items() if name != "fillfactor"}
        if group not in groups:
            groups.append(group)
    for group in groups:
        label = _label(request, group)
        mine = [cell for cell in cells if all(cell[name] == group[name] for name in group)]
        if group == groups[0]:
            said += [f"{label}{each}" for each in _counters_said(request, mine)]
        parts = [
            f"at {item.cell['fillfactor']} {ratio_words(item)}"
            for item in comparisons
            if item.measure == "nopm" and all(item.cell[name] == group[name] for name in group)
        ]
        if parts:
            reference = request.levels["fillfactor"][0]
            said.append(f"{label}Orders per minute against {reference}: {'; '.join(parts)}.")
    return said


def _label(request: Request, group: Mapping[str, LevelValue]) -> str:
    """What else varies, in brackets."""
    varying = [name for name in group if len(request.levels[name]) > 1]
    return f"({', '.join(f'{name} {group[name]}' for name in varying)}) " if varying else ""


def _sizes_said(cells: Sequence[dict[str, Any]]) -> str:
    by_level = {cell["fillfactor"]: cell for cell in cells}
    loaded = ", ".join(f"{c['data_bytes'] / 1024**2:,.0f} at {f}" for f, c in by_level.items())
    aged = ", ".join(f"{cell['aged_bytes'] / 1024**2:,.0f}" for cell in by_level.values())
    return f"MB of tables and indexes after loading: {loaded}; after aging: {aged}."


def _counters_said(request: Request, cells: Sequence[dict[str, Any]]) -> list[str]:
    """HOT and WAL of one number of users."""
    counted = [cell for cell in cells if cell["hot_frac"] is not None]
    if not counted:
        return []
    age = int(request.options["age"])
    when = (
        f"after {age:,} transactions a warehouse"
        if age
        else "of the first transactions after loading, when every full page has its first update"
    )
    said = [
        f"HOT share of all updates {when}: "
        + ", ".join(f"{percent(cell['hot_frac'], 1)} at {cell['fillfactor']}" for cell in counted)
        + "."
    ]
    if counted[0]["wal_nonfpi_bytes_per_tx"] is not None:
        wal = [f"{c['wal_nonfpi_bytes_per_tx']:,.0f} at {c['fillfactor']}" for c in counted]
        said.append(f"WAL bytes per transaction without full-page images: {', '.join(wal)}.")
    for table in UPDATED:
        shares = [
            f"{percent(cell[f'{table}_hot_frac'], 1)} at {cell['fillfactor']}"
            for cell in counted
            if cell[f"{table}_hot_frac"] is not None
        ]
        said.append(f"{table}, HOT: {', '.join(shares)}.")
    return said


def _warnings(request: Request, version: PgVersion, samples: Sequence[TrialSample]) -> list[str]:
    said = [
        "Derived from TPC-C as HammerDB's TPROC-C is: not a TPC result, and comparable to none; "
        "no think times, so a few users drive what hundreds of terminals would."
    ]
    if not int(request.options["shared_buffers_mb"]):
        said.append(
            "Every database fits into shared_buffers: what a larger one costs in cache misses is "
            "not in these times; --set shared_buffers_mb=... with --set io=direct shows it."
        )
    idle = [sample for sample in samples if not sample.measures.get("autovacuums")]
    if idle and request.options["autovacuum"] != "off":
        said.append(f"Autovacuum reached no table in {len(idle)} of {len(samples)} trials.")
    window_s = int(request.options["window_s"])
    if window_s:
        said += guards.long_enough(samples, window_s, rate="tpm", per_s=1 / 60)
        if window_s < guards.WINDOW_S_MIN:
            said.append(
                f"Windows of {window_s} s are too short to test for a steady state: none is "
                "claimed."
            )
    most = max(int(level) for level in request.levels["users"])
    if request.scale < most:
        said.append(
            f"Fewer warehouses ({request.scale}) than users ({most}): they wait for each other at "
            "the rows of warehouse and district."
        )
    if version.major < 16:
        said.append(f"PostgreSQL {version} does not count updates that went to another page.")
    return said
