"""
Experiment `clients-scale`: pgbench over a grid of clients and scales, shared_buffers fixed.

The book's main chart: throughput holds while the data fit, and falls beyond. The knee that can be
predicted is where data exceed shared_buffers; with direct I/O (16 and later) there is no other.
Without it there is a second one, where data exceed what memory the operating system's cache can
take: the machine's. The share of page requests found in shared buffers is the counter behind it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pgheadroom.errors import InputError, UnsupportedServer
from pgheadroom.lab import guards
from pgheadroom.lab.base import accounts_trial
from pgheadroom.lab.base import shared_factors as shared
from pgheadroom.lab.base.comparing import Comparing
from pgheadroom.lab.contrast import ratio_words
from pgheadroom.lab.design import Factor, Measure, Request, Trial, TrialCell, latency_measures
from pgheadroom.lab.experiment import TrialOutcome
from pgheadroom.lab.experiments.clients_scale import presentation
from pgheadroom.lab.place import Place
from pgheadroom.lab.presentation import FigureForm
from pgheadroom.lab.reading import Result
from pgheadroom.lab.record import TrialSample
from pgheadroom.lab.result import ComparedCells
from pgheadroom.types import PgVersion
from pgheadroom.units import PAGE_BYTES, percent, show_bytes

MEASURES = (
    Measure(name="tps", description="transactions per second", unit="1/s", better="higher"),
    *latency_measures("p50", "p99", "max"),
    Measure(
        name="buffer_hit_frac",
        description="share of page requests found in shared buffers",
        better="higher",
        clock=True,
    ),
    Measure(name="heap_pages_before", description="pages of pgbench_accounts", unit="pages"),
    Measure(name="index_pages_before", description="pages of its index", unit="pages"),
    Measure(
        name="data_frac",
        description="accounts and index over shared_buffers; the knee is where it passes 1",
    ),
    Measure(
        name="memory_frac",
        description="accounts and index over the machine's memory, where the operating system "
        "caches them: the second knee is where it passes 1",
    ),
    Measure(name="checkpoints", description="checkpoints begun in the window", clock=True),
)


class ClientsScale(Comparing):
    """See the module's docstring."""

    name = "clients-scale"
    order = 80
    title = "Clients and scale"
    topic = "Order, indexes, concurrency"
    question = (
        "How does throughput depend on clients and on data against memory; where is the peak?"
    )
    source = "S3: the book, chapter 8 (pgbench, the grid of scales and clients)"
    time_needed = "about 15 minutes with windows of 8 s; hours with windows that can be believed"
    scale_default = 1
    scale_meaning = "multiplies every level of data_scale, and shared_buffers with it"
    factors = (
        Factor(
            name="data_scale",
            description="pgbench's scale before it is multiplied by the scale",
            default=(1, 2, 4, 8),
            bounds=(1, 100_000),
        ),
        shared.clients(1, 2, 4),
    )
    options = (
        Factor(
            name="script",
            description="one of pgbench's own scripts",
            default=("select-only",),
            words=accounts_trial.BUILTIN_SCRIPTS,
            single=True,
        ),
        Factor(
            name="shared_buffers_mb",
            description="shared_buffers in MB, multiplied by the scale; 0 for a borrowed server",
            default=(48,),
            bounds=(0, 1_000_000),
            single=True,
        ),
        shared.IO,
        shared.window_s(8, of="length of the window in seconds"),
        shared.protocol("prepared"),
    )
    measures = MEASURES
    compared = ("tps", "latency_ms_p99")

    def check(self, request: Request, version: PgVersion, *, throw_away: bool) -> None:
        """Refuse what cannot be set."""
        super().check(request, version, throw_away=throw_away)
        if request.options["io"] == "direct" and version.major < 16:
            raise UnsupportedServer(f"direct I/O needs PostgreSQL 16 or later, found {version}")
        if throw_away == (int(request.options["shared_buffers_mb"]) == 0):
            raise InputError(
                "shared_buffers_mb=0 is for a server given by connection, whose shared_buffers are "
                "its own; a throw-away server needs a size"
            )

    def reference(self, request: Request, cell: TrialCell) -> TrialCell:
        """The fewest clients on the same data."""
        return {**cell, "clients": min(int(level) for level in request.levels["clients"])}

    def trial_s(self, request: Request) -> float:
        """Copying, warming, the window."""
        largest = request.scale * max(int(level) for level in request.levels["data_scale"])
        return 1.5 + 0.05 * largest + int(request.options["window_s"])

    def shape_name(self, trial: Trial) -> str:
        """Cells with equal data start from the same cluster."""
        return f"scale-{trial.cell['data_scale']}"

    def measure(self, request: Request, place: Place, trial: Trial) -> TrialOutcome:
        """One window, measured as `fillfactor` does."""
        inner = replace(
            request,
            scale=request.scale * int(trial.cell["data_scale"]),
            levels={"fillfactor": (100,)},
            options={
                **request.options,
                "measure": "throughput",
                "clients": trial.cell["clients"],
                "transactions": 0,
                accounts_trial.SHARED_BUFFERS_OPTION: (
                    int(request.options["shared_buffers_mb"]) * request.scale * 1024**2
                ),
            },
        )
        cell: TrialCell = {"fillfactor": 100, "memory": "fits", "autovacuum": "default"}
        outcome = accounts_trial.measure(
            inner, place, replace(trial, cell=cell), self.shape_name(trial)
        )
        found = dict(outcome.measures)
        pages = (found["heap_pages_before"] or 0) + (found["index_pages_before"] or 0)
        buffers = found["shared_buffers_bytes"]
        data_bytes = pages * PAGE_BYTES
        found["data_frac"] = data_bytes / buffers if buffers else None
        cached = place.throw_away and not accounts_trial.uses_direct_io(inner, place)
        found["memory_frac"] = data_bytes / place.memory_bytes if cached else None
        known = {measure.name for measure in MEASURES}
        series = outcome.series
        if series is not None:
            series = replace(series, cell=dict(trial.cell))
        return replace(
            outcome,
            measures={name: value for name, value in found.items() if name in known},
            series=series,
        )

    def findings(
        self,
        request: Request,
        cells: Sequence[dict[str, Any]],
        comparisons: Sequence[ComparedCells],
    ) -> list[str]:
        """What is found in memory; the knees; the peak; ratios with a verdict."""
        return _findings(request, cells, comparisons)

    def warnings(self, request: Request, samples: Sequence[TrialSample]) -> list[str]:
        """Windows that are too short; clients that wait for each other."""
        warnings = guards.long_enough(samples, int(request.options["window_s"]))
        if request.options["script"] == "tpcb-like":
            smallest = request.scale * min(int(level) for level in request.levels["data_scale"])
            most = max(int(level) for level in request.levels["clients"])
            warnings += guards.clients_within_scale(smallest, most)
        return warnings

    def figures_for(self, result: Result) -> tuple[FigureForm, ...]:
        """As `presentation` has them."""
        return presentation.figures(result)

    def answer(self, result: Result) -> str | None:
        """As `presentation` has it."""
        return presentation.answer(result)


def _findings(
    request: Request, cells: Sequence[dict[str, Any]], comparisons: Sequence[ComparedCells]
) -> list[str]:
    """First the counter: what is found in memory at each scale; then ratios with a verdict."""
    if not cells:
        return []
    said = []
    by_scale = {cell["data_scale"]: cell for cell in reversed(cells)}
    hits = ", ".join(
        f"{percent(cell['buffer_hit_frac'], 1)} where data are {cell['data_frac']:.2f} times "
        "shared_buffers"
        for _, cell in sorted(by_scale.items())
        if cell["buffer_hit_frac"] is not None and cell["data_frac"] is not None
    )
    mb = int(request.options["shared_buffers_mb"]) * request.scale
    size = f" of {show_bytes(mb * 1024**2)}" if mb else ""
    said.append(f"Page requests found in shared_buffers{size}: {hits}.")
    largest = max(cells, key=lambda cell: cell["memory_frac"] or 0)
    if largest["memory_frac"] is not None:
        where = "inside" if largest["memory_frac"] > 1 else "beyond"
        said.append(
            f"The second knee, where data exceed this machine's memory, lies {where} the grid: "
            f"data_scale {largest['data_scale']} is {percent(largest['memory_frac'], 1)} of it."
        )
    timed = [cell for cell in cells if cell["tps"] is not None]
    if timed:
        best = max(timed, key=lambda cell: cell["tps"])
        said.append(
            f"The highest median throughput is {best['tps']:,.0f} a second, with "
            f"{best['clients']} clients at data_scale {best['data_scale']}."
        )
    for item in comparisons:
        if item.measure == "tps":
            cell = item.cell
            said.append(
                f"(data_scale {cell['data_scale']}) {cell['clients']} clients against "
                f"{item.against['clients']}: throughput {ratio_words(item)}."
            )
    return said


EXPERIMENT = ClientsScale()
