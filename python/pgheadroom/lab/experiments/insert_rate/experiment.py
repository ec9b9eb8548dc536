"""
Experiment `insert-rate`: rows a second and WAL a row, by how many rows a statement brings.

Each statement is a transaction, so few rows a statement pay the commit, the statement and its
round trip for each of them. The values cannot be compressed; those of more than about 2,000 bytes
go out of line, into the table's TOAST table.

Two windows a trial: a fixed number of rows, for counters (fsync off, which they do not depend on),
and a fixed time with fsync on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pgheadroom.errors import InputError
from pgheadroom.lab import guards
from pgheadroom.lab.base import plain_rows
from pgheadroom.lab.base import shared_factors as shared
from pgheadroom.lab.base.comparing import Comparing
from pgheadroom.lab.base.exact_counts import beside, counts_as_predicted
from pgheadroom.lab.contrast import differences
from pgheadroom.lab.design import Factor, Measure, Request, Trial, TrialCell, latency_measures
from pgheadroom.lab.environment import describe_server
from pgheadroom.lab.experiment import TrialOutcome
from pgheadroom.lab.experiments.insert_rate import presentation
from pgheadroom.lab.experiments.insert_rate.measure import (
    ROWS_PER_SCALE,
    count,
    create,
    time_window,
)
from pgheadroom.lab.experiments.insert_rate.script import (
    METHODS,
    PARAMETERS_MAX,
    write_script,
)
from pgheadroom.lab.place import Place, Shape
from pgheadroom.lab.reading import Result
from pgheadroom.lab.record import TrialSample
from pgheadroom.lab.result import ComparedCells, Reference
from pgheadroom.types import PgVersion

PREDICTED = ("wal_bytes_per_row", "wal_records_per_row", "heap_pages_per_million_rows")

BOOK = Reference(
    title="What the book has",
    source="chapters 2, 8, 12 and 17 of the book",
    columns=("what", "figure"),
    rows=(
        ("rows a commit that dilute its latency", "about 1,000"),
        ("rows a commit that get most of the gain", "100 to 1,000"),
        ("width of a row without effect on the rate", "up to 10,000 bytes, bound by commits"),
        ("COPY without WAL, disks of its time", "86 to 88 MB/s, a core 64 % busy"),
    ),
    note="the sweep of widths repeated a letter: such a value is compressed from about 2,000 "
    "bytes on, ours are not",
)

MEASURES = (
    Measure(
        name="rows_per_s",
        description="rows inserted per second, fsync on",
        unit="1/s",
        better="higher",
    ),
    Measure(
        name="tps",
        description="statements per second, each a transaction of its own",
        unit="1/s",
        better="higher",
    ),
    *latency_measures("p50", "p99", "max", of="a statement's latency, its commit included"),
    *beside(
        Measure(
            name="wal_bytes_per_row",
            description="WAL bytes per row of the counter window, commits included",
            unit="bytes",
            better="lower",
        ),
        Measure(
            name="wal_records_per_row",
            description="WAL records per row of the counter window",
            better="lower",
        ),
        Measure(
            name="heap_pages_per_million_rows",
            description="pages of the table, without its TOAST table, after the counter window, "
            "per million rows; the last page counts whole",
            unit="pages",
            better="lower",
        ),
        names=PREDICTED,
    ),
    Measure(name="wal_fpi", description="full-page images in the counter window", better="lower"),
    Measure(
        name="checkpoints", description="checkpoints begun in the throughput window", clock=True
    ),
)


class InsertRate(Comparing):
    """See the module's docstring."""

    name = "insert-rate"
    order = 100
    title = "Rows per statement"
    topic = "Loading"
    question = "What do more rows per statement gain in rows a second, and save in WAL a row?"
    source = "S3: the book, chapters 2, 8 and 17 (B2.9, B8.23, B17.2)"
    time_needed = "about 6 minutes with windows of 3 s; measure=counters takes one"
    scale_default = 1
    scale_meaning = "rows of the counter window / 20,000"
    factors = (
        shared.told("method", METHODS),
        Factor(
            name="rows",
            description="rows per statement",
            default=(1, 10, 100, 1000),
            bounds=(1, 10_000),
        ),
        Factor(
            name="value_bytes",
            description="length of the value that is inserted, which cannot be compressed",
            unit="bytes",
            default=(100,),
            bounds=(1, 100_000),
        ),
        Factor(
            name="index",
            description="none, or serial: a key from a sequence with its unique index",
            default=("none",),
            words=("none", "serial"),
        ),
        shared.clients(1),
    )
    options = (
        shared.windows("both windows, or one"),
        shared.protocol(
            "simple",
            how="simple: the values are in the statement's text; else they are parameters, "
            f"at most {PARAMETERS_MAX}",
        ),
        shared.window_s(3),
    )
    measures = MEASURES
    compared = ("rows_per_s",)
    documents = (BOOK,)
    own_server = "insert-rate switches fsync, and COPY reads a file of ours"
    figures = presentation.FIGURES

    def check(self, request: Request, version: PgVersion, *, throw_away: bool) -> None:
        """Refuse what cannot be sent."""
        super().check(request, version, throw_away=throw_away)
        most = max(int(level) for level in request.levels["rows"])
        widest = max(int(level) for level in request.levels["value_bytes"])
        if request.options["protocol"] != "simple":
            if "values" in request.levels["method"] and most > PARAMETERS_MAX:
                raise InputError(
                    f"pgbench sends at most {PARAMETERS_MAX} parameters, and rows={most} of "
                    "method values need one each: take fewer rows, or `protocol=simple`",
                    mentions=("protocol=simple",),
                )
            if most * widest > 100_000 and set(request.levels["method"]) - {"copy"}:
                raise InputError(
                    f"rows={most} of {widest} bytes are {most * widest:,} bytes, and a variable of "
                    "pgbench takes 100,000: take less, or `protocol=simple`",
                    mentions=("protocol=simple",),
                )
        if most > ROWS_PER_SCALE * request.scale:
            raise InputError(
                f"rows={most} is more than the counter window's {ROWS_PER_SCALE * request.scale}"
            )

    def reference(self, request: Request, cell: TrialCell) -> TrialCell:
        """The fewest rows a statement, all else equal."""
        return {**cell, "rows": _fewest(request)}

    def is_controlled(self, request: Request, cell: TrialCell) -> bool:
        """The fewest rows of each group, where times are measured."""
        return request.options["measure"] != "counters" and super().is_controlled(request, cell)

    def pairs(self, request: Request) -> list[tuple[TrialCell, TrialCell]]:
        """More rows a statement against the fewest; then the methods."""
        first = request.levels["method"][0]
        return super().pairs(request) + [
            (cell, {**cell, "method": first})
            for cell in request.cells()
            if cell["method"] != first and cell["rows"] != _fewest(request)
        ]

    def trial_s(self, request: Request) -> float:
        """Starting, the counter window, the throughput window."""
        both = request.options["measure"] != "counters"
        return 1.5 + 1.0 * request.scale + (int(request.options["window_s"]) + 0.5) * both

    def shape_name(self, trial: Trial) -> str:
        """An empty table with or without a key."""
        return f"empty-{trial.cell['index']}"

    def measure(self, request: Request, place: Place, trial: Trial) -> TrialOutcome:
        """Both windows."""
        cell = trial.cell
        rows = ROWS_PER_SCALE * request.scale
        data_bytes = rows * (int(cell["value_bytes"]) + 80)
        is_serial = cell["index"] == "serial"
        shape = Shape(
            name=self.shape_name(trial),
            load=lambda server: create(server, is_serial=is_serial),
            bytes_expected=data_bytes,
        )
        settings = {
            **plain_rows.quiet_settings(data_bytes * 10, place.memory_bytes),
            "max_connections": str(int(cell["clients"]) + 20),
        }
        measures: dict[str, float | None] = {}
        notes: list[str] = []
        series = None
        with place.running(shape, settings) as server:
            environment = describe_server(server, timed=request.options["measure"] != "counters")
            assert server.cluster is not None, "insert-rate runs on our own servers only"
            script = write_script(server.scratch, server.cluster.data_dir, request, cell)
            if request.options["measure"] != "throughput":
                measures.update(count(server, request, trial, script))
            if request.options["measure"] != "counters":
                found, series, notes = time_window(server, request, trial, script)
                measures.update(found)
        return TrialOutcome(
            measures=measures, notes=tuple(notes), series=series, environment=environment
        )

    def findings(
        self,
        request: Request,  # noqa: ARG002
        cells: Sequence[dict[str, Any]],
        comparisons: Sequence[ComparedCells],
    ) -> list[str]:
        """Counters beside predictions, what is saved, rates."""
        return [
            *counts_as_predicted(cells, PREDICTED, _label),
            *_savings(cells),
            *differences(comparisons, "Rows a second", _label),
        ]

    def warnings(self, request: Request, samples: Sequence[TrialSample]) -> list[str]:
        """Windows that are too short to be believed."""
        return guards.long_enough(samples, int(request.options["window_s"]))

    def answer(self, result: Result) -> str | None:
        """As `presentation` has it."""
        return presentation.answer(result)


def _fewest(request: Request) -> int:
    return min(int(level) for level in request.levels["rows"])


def _label(cell: Mapping[str, Any]) -> str:
    clients = f", {cell['clients']} clients" if cell["clients"] != 1 else ""
    index = ", serial key" if cell["index"] == "serial" else ""
    return (
        f"{cell['method']}, {cell['rows']} rows a statement, {cell['value_bytes']} bytes"
        f"{index}{clients}"
    )


def _savings(cells: Sequence[dict[str, Any]]) -> list[str]:
    """WAL a row at the fewest and the most rows a statement, method by method."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for cell in cells:
        if cell["wal_bytes_per_row"] is not None:
            key = (cell["method"], cell["value_bytes"], cell["index"], cell["clients"])
            groups.setdefault(key, []).append(cell)
    said = []
    for group in groups.values():
        ordered = sorted(group, key=lambda cell: int(cell["rows"]))
        few, many = ordered[0], ordered[-1]
        if few is not many:
            said.append(
                f"({_label(many)}) A row writes {many['wal_bytes_per_row']:.1f} bytes of WAL; with "
                f"{few['rows']} a statement {few['wal_bytes_per_row']:.1f}, of which "
                f"{34 / int(few['rows']):.1f} are its commit."
            )
    return said


EXPERIMENT = InsertRate()
