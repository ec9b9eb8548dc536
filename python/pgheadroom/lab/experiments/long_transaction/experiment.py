"""
Experiment `long-transaction`: what a snapshot that is held does to HOT, size and WAL.

Windows of updates; before one of them another session takes a snapshot, before a later one it lets
it go. Meanwhile no row version that the snapshot may see can be pruned: pages fill up, updates
leave them, table and index grow. Afterwards pruning works again, and the room is not given back.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from pgheadroom.errors import InputError, MeasurementInvalid
from pgheadroom.lab import predicted, rounds
from pgheadroom.lab.base import accounts_predicted
from pgheadroom.lab.base import accounts_windows as accounts
from pgheadroom.lab.base.accounts_trial import ROWS_PER_SCALE, TABLE
from pgheadroom.lab.contrast import blocks
from pgheadroom.lab.design import Factor, Measure, Request, Trial
from pgheadroom.lab.environment import describe_server
from pgheadroom.lab.experiment import (
    Experiment,
    Summary,
    TrialOutcome,
    require_wal_counters,
    summarise_cells,
)
from pgheadroom.lab.experiments.long_transaction import presentation
from pgheadroom.lab.place import Place
from pgheadroom.lab.predicted import measures_of
from pgheadroom.lab.reading import Result
from pgheadroom.lab.record import TrialSample
from pgheadroom.outcome import shifted
from pgheadroom.profile.model import ProfileFile, ServerSettings
from pgheadroom.profile.workload import Run, Snapshot
from pgheadroom.types import PgVersion
from pgheadroom.units import percent

_MEASURED = (
    Measure(name="hot_frac", description="share of HOT updates of the window", better="higher"),
    Measure(
        name="newpage_frac",
        description="share of updates that went to another page (counted from 16 on)",
        better="lower",
    ),
    Measure(
        name="wal_bytes_per_update",
        description="WAL bytes per update of the window, images included",
        unit="bytes",
        better="lower",
    ),
    Measure(
        name="buffers_per_update",
        description="blocks that an update touched, hit or read",
        unit="pages",
        better="lower",
    ),
    Measure(
        name="heap_pages",
        description="pages of the table after the window",
        unit="pages",
        better="lower",
    ),
    Measure(
        name="index_pages", description="pages of its index after it", unit="pages", better="lower"
    ),
)

PREDICTED = ("hot_frac", "newpage_frac", "wal_bytes_per_update", "heap_pages", "index_pages")
"""Measures that have a predicted counterpart."""

MEASURES = (*_MEASURED, *measures_of(_MEASURED, PREDICTED))


class LongTransaction(Experiment):
    """See the module's docstring."""

    name = "long-transaction"
    order = 70
    title = "HOT while a snapshot is held"
    topic = "Updates and the room on pages"
    question = "What do updates lose while another session holds a snapshot, and what stays lost?"
    source = "S3: the book, chapter 7 (long-running transactions)"
    time_needed = "about 5 minutes at scale 1"
    scale_default = 1
    scale_meaning = "pgbench's scale: 100,000 accounts, about 15 MB each"
    factors = (
        Factor(
            name="snapshot",
            description="held: a repeatable-read transaction that has read something stays open "
            "from one window to another; none: nobody else is there",
            default=("none", "held"),
            words=("none", "held"),
        ),
        Factor(
            name="fillfactor",
            description="fillfactor of pgbench_accounts",
            unit="%",
            default=(80,),
            bounds=(10, 100),
        ),
        Factor(
            name="window",
            description="windows that are reported; the largest is how many are played",
            default=tuple(range(1, 16)),
            bounds=(1, 1000),
        ),
    )
    options = (
        Factor(
            name="updates",
            description="updates in each window; 0: 20,000 x scale, one row in five",
            default=(0,),
            bounds=(0, 100_000_000),
            single=True,
        ),
        Factor(
            name="open",
            description="window before which the snapshot is taken",
            default=(4,),
            bounds=(1, 1000),
            single=True,
        ),
        Factor(
            name="close",
            description="window before which it is let go",
            default=(10,),
            bounds=(2, 1001),
            single=True,
        ),
    )
    measures = MEASURES
    figures = presentation.FIGURES

    def check(self, request: Request, version: PgVersion, *, throw_away: bool) -> None:
        """Refuse windows in the wrong order, and servers of others: a horizon is everybody's."""
        require_wal_counters(version)
        if int(request.options["close"]) <= int(request.options["open"]):
            raise InputError(
                f"close={request.options['close']} is not after open={request.options['open']}"
            )
        if not throw_away:
            raise InputError(
                "long-transaction holds the horizon of the whole database back, and other sessions "
                "of this server hold it as well: leave `server` out, or name a version",
                mentions=("server",),
            )

    def trials(self, request: Request) -> list[Trial]:
        """Interleaved blocks; no control arm, since no time is compared."""
        return blocks(request, cells=rounds.trial_cells(request, "window"))

    def trial_s(self, request: Request) -> float:
        """Copying, then each window at 4,000 updates a second."""
        played = max(int(level) for level in request.levels["window"])
        return 2 + played * (0.15 + accounts.updates(_own(request)) / 4000)

    def shape_name(self, trial: Trial) -> str:
        """Cells with equal fillfactor start from the same cluster."""
        return f"accounts-{trial.cell['fillfactor']}"

    def expand(self, request: Request, samples: Sequence[TrialSample]) -> list[TrialSample]:
        """One sample a window."""
        return rounds.asked(request, samples, "window")

    def measure(self, request: Request, place: Place, trial: Trial) -> TrialOutcome:
        """Play the windows, with or without the snapshot."""
        settings = accounts.settings(request, place.memory_bytes)
        shape = accounts.shape(request, trial, self.shape_name(trial))
        windows = max(int(level) for level in request.levels["window"])
        opens, closes = int(request.options["open"]), int(request.options["close"])
        with place.running(shape, settings) as server, ExitStack() as stack:
            environment = describe_server(server)

            def before(number: int) -> int:
                if trial.cell["snapshot"] == "none":
                    return 0
                if number == opens:
                    holder = stack.enter_context(server.connect())
                    holder.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
                    row = holder.execute(
                        "SELECT count(*), pg_current_snapshot() FROM pgbench_branches"
                    ).fetchone()
                    if row is None or row[0] != request.scale:
                        raise MeasurementInvalid("the holder of the snapshot read nothing")
                if number == closes:
                    stack.close()
                return 1 if opens <= number < closes else 0

            found = accounts.play(server, _own(request), trial, windows=windows, before=before)
        return TrialOutcome(measures=rounds.flat(found), environment=environment)

    def summarise(
        self,
        request: Request,
        version: PgVersion,
        samples: Sequence[TrialSample],
    ) -> Summary:
        """HOT before, during and after; what has grown; and what of it was foreseen."""
        cells = summarise_cells(self.expand(request, samples), request.cells(), _MEASURED)
        why_not = _predict(request, version, cells)
        said = _findings(request, cells) + predicted.findings(cells, PREDICTED)
        if why_not is not None:
            said.append(f"Not predicted: {why_not}.")
        return Summary(cells=cells, findings=said)

    def answer(self, result: Result) -> str | None:
        """As `presentation` has it."""
        return presentation.answer(result)


def _own(request: Request) -> Request:
    """The request with this experiment's own default of updates."""
    count = int(request.options["updates"]) or 20_000 * request.scale
    return replace(request, options={**request.options, "updates": count})


def _predict(request: Request, version: PgVersion, cells: list[dict[str, Any]]) -> str | None:
    """
    Add the twin's windows to the cells; returns why there are none, if so.

    One run of the twin goes through all windows, where the experiment begins a session for each;
    its keys are other random ones, so that every figure has an interval.
    """
    rows, count = request.scale * ROWS_PER_SCALE, accounts.updates(_own(request))
    windows = max(int(level) for level in request.levels["window"])
    why_not = predicted.why_not(version, rows=rows + windows * count // 10)
    further = accounts_predicted.further_bytes(rows, count, windows)
    for cell in cells:
        series = None
        if why_not is None:
            found = predicted.windows_of(_profile(request, version, cell), version, windows)
            series = None if found is None else found.series
            why_not = "the twin cannot play these windows" if series is None else None
        number = int(cell["window"]) - 1
        for name in PREDICTED:
            value = None if series is None else series.column(name, TABLE)[number]
            if series is not None and name == "wal_bytes_per_update":
                window = series.windows[number]  # the whole of it, with the clients' commits
                more = further[number] * predicted.same_page_frac(window)
                value = shifted(window.wal_bytes_per_update, more)
            predicted.put(cell, name, value)
    return why_not


def _profile(request: Request, version: PgVersion, cell: dict[str, Any]) -> ProfileFile:
    """All windows of a trial as one run."""
    windows = max(int(level) for level in request.levels["window"])
    run = Run(operations=windows * accounts.updates(_own(request)))
    opens, closes = int(request.options["open"]), int(request.options["close"])
    if cell["snapshot"] == "held" and opens <= windows:
        ends = min(closes, windows + 1)
        start, length = (opens - 1) / windows, (ends - opens) / windows
        held = Snapshot(start_frac=start, length_frac=min(length, 1 - start))
        run = replace(run, snapshots=(held,))
    server = ServerSettings(version=str(version))
    return accounts_predicted.accounts_update(
        request.scale, int(cell["fillfactor"]), run, server=server
    )


def _findings(request: Request, cells: Sequence[dict[str, Any]]) -> list[str]:
    """What was lost, and what stays lost, for each fillfactor."""
    opens, closes = int(request.options["open"]), int(request.options["close"])
    said = []
    for fillfactor in request.levels["fillfactor"]:
        group = [
            cell for cell in cells if (cell["fillfactor"], cell["snapshot"]) == (fillfactor, "held")
        ]
        before = [cell for cell in group if cell["window"] < opens]
        during = [cell for cell in group if opens <= cell["window"] < closes]
        after = [cell for cell in group if cell["window"] >= closes]
        if not before or not during:
            continue
        last, worst = before[-1], during[-1]
        text = (
            f"(fillfactor {fillfactor}) HOT share {percent(last['hot_frac'], 1)} before the "
            "snapshot and "
            f"{percent(worst['hot_frac'], 1)} in its window {len(during)}; WAL per update "
            f"{last['wal_bytes_per_update']:,.0f} and {worst['wal_bytes_per_update']:,.0f} bytes; "
            f"table {last['heap_pages']:,} and {worst['heap_pages']:,} pages, index "
            f"{last['index_pages']:,} and {worst['index_pages']:,}."
        )
        if after:
            end = after[-1]
            text += (
                f" {len(after)} windows after its end HOT is {percent(end['hot_frac'], 1)} again "
                f"and the table has {end['heap_pages']:,} pages: the room is not given back."
            )
        said.append(text)
    return said


EXPERIMENT = LongTransaction()
