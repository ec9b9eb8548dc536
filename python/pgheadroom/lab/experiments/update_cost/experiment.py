"""
Experiment `update-cost` (S1): what one UPDATE of every thousandth row costs.

The source document's matrix, filler length x fillfactor x one or two columns, measured by
EXPLAIN (ANALYZE, BUFFERS, WAL) on the Update node. Further factors on request: additional indexes,
an index on an updated column, full_page_writes, wal_compression.

Each table shape is loaded once by the document's statements; every trial starts from a copy of
that stopped cluster. The shutdown checkpoint stands for the document's CHECKPOINT: nothing is
dirty, and every page was last changed before the redo pointer.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace

from pgheadroom import _core
from pgheadroom.errors import InputError, MeasurementInvalid, UnsupportedServer
from pgheadroom.lab.design import Factor, Measure, Request, Trial, TrialCell, interleave
from pgheadroom.lab.environment import describe_server
from pgheadroom.lab.experiment import Experiment, Summary, TrialOutcome
from pgheadroom.lab.experiments.update_cost import predicted as update_cost_predicted
from pgheadroom.lab.experiments.update_cost import presentation
from pgheadroom.lab.experiments.update_cost import summary as update_cost_summary
from pgheadroom.lab.experiments.update_cost.measure import (
    TABLE,
    base_settings,
    explain_update,
    load,
    warm,
)
from pgheadroom.lab.experiments.update_cost.predicted import ROWS_PER_SCALE, row_bytes
from pgheadroom.lab.place import Place, Shape
from pgheadroom.lab.predicted import measures_of
from pgheadroom.lab.presentation import FigureForm, TableForm
from pgheadroom.lab.reading import Result
from pgheadroom.lab.record import TrialSample
from pgheadroom.types import PgVersion
from pgheadroom.units import PAGE_BYTES

FACTORS = (
    Factor(
        name="filler_length",
        description="length of the filler column, char(n)",
        unit="characters",
        default=(64, 128),
        bounds=(1, 2000),
    ),
    Factor(
        name="fillfactor",
        description="fillfactor of the table",
        unit="%",
        default=(100, 80),
        bounds=(10, 100),
    ),
    Factor(
        name="update_bid",
        description="what the update adds to bid; 0 leaves its value as it is",
        default=(0, 1),
        bounds=(0, 1),
    ),
    Factor(
        name="indexes",
        description="additional indexes, each on the unchanged column aid",
        bounds=(0, 8),
    ),
    Factor(
        name="indexed_column",
        description="a further index on this column; abalance changes in every update",
        words=("none", "bid", "abalance"),
    ),
    Factor(name="full_page_writes", description="the server's setting", words=("on", "off")),
    Factor(
        name="wal_compression",
        description="the server's setting; lz4 and zstd need a server built with them",
        words=("off", "pglz", "lz4", "zstd"),
    ),
)

OPTIONS = (
    Factor(
        name="change",
        description="what the update adds to abalance: random from -5000 to 5000, or this number",
        default=("random",),
        words=("random",),
        bounds=(-1_000_000, 1_000_000),
        single=True,
    ),
)

_MEASURED = (
    Measure(
        name="pages_dirtied",
        description="pages that the Update node made dirty, FSM and VM pages included",
        unit="pages",
        better="lower",
    ),
    Measure(name="wal_records", description="WAL records of the Update node", better="lower"),
    Measure(
        name="wal_bytes",
        description="WAL bytes of the Update node, COMMIT not included",
        unit="bytes",
        better="lower",
    ),
    Measure(
        name="wal_bytes_per_update",
        description="wal_bytes over updated rows",
        unit="bytes",
        better="lower",
    ),
    Measure(name="wal_fpi", description="full-page images among the records", better="lower"),
    Measure(
        name="update_ms",
        description="time of the Update node itself, its scan taken off",
        unit="ms",
        better="lower",
    ),
    Measure(
        name="execution_ms",
        description="execution time of the statement",
        unit="ms",
        better="lower",
    ),
    Measure(name="n_tup_upd", description="rows updated"),
    Measure(name="n_tup_hot_upd", description="rows updated as HOT", better="higher"),
    Measure(
        name="n_tup_newpage_upd",
        description="rows whose new version went to another page (counted from 16 on)",
        better="lower",
    ),
    Measure(name="hot_frac", description="share of HOT updates", better="higher"),
    Measure(
        name="newpage_frac",
        description="share of updates that went to another page",
        better="lower",
    ),
    Measure(name="heap_pages_before", description="pages of the table before", unit="pages"),
    Measure(
        name="heap_pages", description="pages of the table after", unit="pages", better="lower"
    ),
    Measure(
        name="index_pages",
        description="pages of all its indexes after, metapages included",
        unit="pages",
        better="lower",
    ),
)
MEASURES = (*_MEASURED, *measures_of(_MEASURED, update_cost_predicted.PREDICTED))


class UpdateCost(Experiment):
    """See the module's docstring."""

    name = "update-cost"
    order = 10
    title = "What one UPDATE costs"
    topic = "Updates and the room on pages"
    question = (
        "How many pages does an UPDATE modify and how much WAL does it write, "
        "by row width, fillfactor and the columns that change?"
    )
    source = "S1: PostgreSQL update performance (May 2026)"
    time_needed = "about 4 minutes at scale 10; 6 minutes and 8 GB of disk at scale 100"
    scale_default = 10
    scale_meaning = "rows / 100,000; 100 is the document's 10 million rows"
    factors = FACTORS
    options = OPTIONS
    measures = MEASURES

    def repetitions_default(self, scale: int) -> int:
        """Ten, but one from scale 50 on, where loading and copying take minutes."""
        return 1 if scale >= 50 else 10

    def check(self, request: Request, version: PgVersion, *, throw_away: bool) -> None:
        """Refuse what this server cannot be set to."""
        if version.major < 13:
            raise UnsupportedServer(f"PostgreSQL {version} has no EXPLAIN (WAL): 13 is the first")
        for name in ("full_page_writes", "wal_compression"):
            if name in request.levels and not throw_away:
                raise InputError(
                    f"{name} changes the whole server, and this one is not ours: "
                    "leave `server` out, or name a version, to run it on a throw-away server",
                    mentions=("server",),
                )
        if version.major < 15 and set(request.levels.get("wal_compression", ())) & {"lz4", "zstd"}:
            raise UnsupportedServer(
                f"wal_compression with lz4 or zstd needs 15 or later; found {version}"
            )

    def trials(self, request: Request) -> list[Trial]:
        """
        Order interleaved blocks, with an A/A arm for the times.

        A single repetition goes shape by shape instead, which needs the room of one at a time. It
        decides nothing, and has the arm all the same: merged with others it is a block of theirs.
        """
        blocks = [
            [
                Trial(cell=cell, repetition=repetition, arm=arm)
                for cell in request.cells()
                for arm in ("measured", "control")
                if arm == "measured" or _is_control(request, cell)
            ]
            for repetition in range(1, request.repetitions + 1)
        ]
        if request.repetitions == 1:
            return blocks[0]
        return interleave(blocks, seed=request.seed)

    def trial_s(self, request: Request) -> float:
        """Copying, starting and updating; grows with the table."""
        return 1.5 + 0.12 * request.scale

    def shape_name(self, trial: Trial) -> str:
        """Cells that differ only in the statement or in settings share a loaded cluster."""
        names = ("filler_length", "fillfactor", "indexes", "indexed_column")
        return "-".join(str(trial.cell[name]) for name in names if name in trial.cell)

    def measure(self, request: Request, place: Place, trial: Trial) -> TrialOutcome:
        """Copy the shape, start it, run the UPDATE under EXPLAIN, check, and read the counters."""
        cell = trial.cell
        rows = request.scale * ROWS_PER_SCALE
        bytes_of_row = row_bytes(cell)
        heap_pages = _core.heap_pages(rows, bytes_of_row, int(cell["fillfactor"]))
        shape = Shape(
            name=self.shape_name(trial),
            load=functools.partial(load, scale=request.scale, cell=cell),
            bytes_expected=heap_pages * PAGE_BYTES + rows * 25 * (1 + int(cell.get("indexes", 0))),
        )
        settings = {
            **base_settings(shape.bytes_expected, place.memory_bytes),
            "full_page_writes": str(cell.get("full_page_writes", "off")),
            "wal_compression": str(cell.get("wal_compression", "off")),
        }
        with place.running(shape, settings) as server:
            if _is_timed(request):
                warm(server)
            outcome = explain_update(server, request, trial)
            outcome = replace(outcome, environment=describe_server(server))
        if shape.bytes_expected * 1.3 > place.memory_bytes / 2:
            note = (
                "The data do not fit into half of this machine's memory, which is what "
                "shared_buffers gets: a page may be written and made dirty again."
            )
            outcome = replace(outcome, notes=(*outcome.notes, note))
        found = outcome.measures["heap_pages_before"]
        if found != heap_pages:
            raise MeasurementInvalid(
                f"{TABLE} has {found} pages after loading, expected {heap_pages} for rows of "
                f"{bytes_of_row} bytes at fillfactor {cell['fillfactor']}: not the intended table"
            )
        return outcome

    def summarise(
        self, request: Request, version: PgVersion, samples: Sequence[TrialSample]
    ) -> Summary:
        """Cells beside the document's figures, comparisons, the law of the indexes."""
        return update_cost_summary.summarise(request, version, samples, MEASURES)

    def tables_for(self, result: Result) -> tuple[TableForm, ...]:
        """As `presentation` has them."""
        return presentation.tables(result)

    def figures_for(self, result: Result) -> tuple[FigureForm, ...]:
        """As `presentation` has them."""
        return presentation.figures(result)

    def answer(self, result: Result) -> str | None:
        """As `presentation` has it."""
        return presentation.answer(result)


def _is_timed(request: Request) -> bool:
    """Times are the point when indexes are a factor; caches are then warmed first."""
    return len(request.levels.get("indexes", ())) > 1


def _is_control(request: Request, cell: TrialCell) -> bool:
    """Whether a cell has an A/A arm."""
    return cell == update_cost_summary.control_of(request, cell)


EXPERIMENT = UpdateCost()
