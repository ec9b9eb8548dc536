"""
Experiment `fpi-sawtooth`: WAL per update against the distance from the last checkpoint.

The first change of a page after a checkpoint logs the whole page. So WAL per update is high right
after one and falls as pages have had their image; a longer distance between checkpoints spreads
the images over more updates. Windows of updates, with a checkpoint before every cycle.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pgheadroom import _core
from pgheadroom.errors import UnsupportedServer
from pgheadroom.lab import rounds
from pgheadroom.lab.base import accounts_windows as accounts
from pgheadroom.lab.contrast import blocks
from pgheadroom.lab.design import Factor, Measure, Request, Trial
from pgheadroom.lab.environment import describe_server
from pgheadroom.lab.experiment import (
    Experiment,
    Summary,
    TrialOutcome,
    require_own_server,
    require_wal_counters,
    summarise_cells,
)
from pgheadroom.lab.experiments.fpi_sawtooth import presentation
from pgheadroom.lab.place import Place
from pgheadroom.lab.reading import Result
from pgheadroom.lab.record import TrialSample
from pgheadroom.types import PgVersion

CYCLES = 2
"""The second shows that the first was no start-up transient."""

MEASURES = (
    Measure(
        name="wal_bytes_per_update",
        description="WAL bytes per update of the window, images included",
        unit="bytes",
        better="lower",
    ),
    Measure(
        name="wal_fpi_per_update",
        description="full-page images per update of the window",
        better="lower",
    ),
    Measure(
        name="predicted_wal_fpi_per_update",
        description="pages that the window's updates are expected to be the first to change, where "
        "every update stays on its page",
        evidence="predicted",
    ),
    Measure(
        name="mean_wal_bytes_per_update",
        description="the same over all windows since the checkpoint: what this checkpoint distance "
        "costs",
        unit="bytes",
        better="lower",
    ),
    Measure(
        name="distance_bytes",
        description="WAL written since the checkpoint, at the end of the window",
        unit="bytes",
    ),
    Measure(name="hot_frac", description="share of HOT updates", better="higher"),
    Measure(name="heap_pages", description="pages of the table", unit="pages", better="lower"),
)


class FpiSawtooth(Experiment):
    """See the module's docstring."""

    name = "fpi-sawtooth"
    order = 60
    title = "Full-page images and the checkpoint distance"
    topic = "The write-ahead log"
    question = "How does the WAL of an update fall with the distance from the last checkpoint?"
    source = "S3: the book, chapters 5, 11 and 12 (checkpoint cycle)"
    time_needed = "about 5 minutes at scale 1"
    scale_default = 1
    scale_meaning = "pgbench's scale: 100,000 accounts, about 15 MB each"
    factors = (
        Factor(
            name="fillfactor",
            description="fillfactor of pgbench_accounts",
            unit="%",
            default=(100, 80),
            bounds=(10, 100),
        ),
        Factor(
            name="full_page_writes",
            description="the server's setting",
            default=("on",),
            words=("on", "off"),
        ),
        Factor(
            name="wal_compression",
            description="the server's setting; lz4 and zstd need a server built with them",
            default=("off",),
            words=("off", "pglz", "lz4", "zstd"),
            only_by_name=("lz4", "zstd"),
        ),
        Factor(
            name="window",
            description="windows that are reported; a checkpoint lies before the first, and before "
            "the first of the second half of those that are played",
            default=tuple(range(1, 21)),
            bounds=(1, 1000),
        ),
    )
    options = (accounts.UPDATES_OPTION,)
    measures = MEASURES
    figures = presentation.FIGURES

    def check(self, request: Request, version: PgVersion, *, throw_away: bool) -> None:
        """Refuse what cannot be set."""
        require_wal_counters(version)
        asked = {"lz4", "zstd"} & set(request.levels["wal_compression"])
        if version.major < 15 and asked:
            raise UnsupportedServer(
                f"wal_compression with lz4 or zstd needs 15 or later; found {version}"
            )
        require_own_server(throw_away, "fpi-sawtooth decides when checkpoints happen")

    def trials(self, request: Request) -> list[Trial]:
        """Interleaved blocks; no control arm, since no time is compared."""
        return blocks(request, cells=rounds.trial_cells(request, "window"))

    def trial_s(self, request: Request) -> float:
        """Copying, then each window at 4,000 updates a second and the start of pgbench."""
        played = _windows(request)
        return 2 + played * (0.15 + accounts.updates(request) / 4000)

    def shape_name(self, trial: Trial) -> str:
        """Cells with equal fillfactor start from the same cluster."""
        return f"accounts-{trial.cell['fillfactor']}"

    def expand(self, request: Request, samples: Sequence[TrialSample]) -> list[TrialSample]:
        """One sample a window."""
        return rounds.asked(request, samples, "window")

    def measure(self, request: Request, place: Place, trial: Trial) -> TrialOutcome:
        """Play the windows, with the checkpoints between."""
        cell = trial.cell
        settings = {
            **accounts.settings(request, place.memory_bytes),
            "full_page_writes": str(cell["full_page_writes"]),
            "wal_compression": str(cell["wal_compression"]),
        }
        shape = accounts.shape(request, trial, self.shape_name(trial))
        cycle = _windows(request) // CYCLES
        with place.running(shape, settings) as server:

            def before(number: int) -> int:
                if (number - 1) % cycle == 0:
                    server.checkpoint()
                return 0

            environment = describe_server(server)
            windows = _windows(request)
            found = accounts.play(server, request, trial, windows=windows, before=before)
        count = accounts.updates(request)
        for number, measures in found.items():
            since = range((number - 1) // cycle * cycle + 1, number + 1)
            bytes_ = sum(float(found[n]["wal_bytes_per_update"] or 0) for n in since) * count
            measures["distance_bytes"] = bytes_
            measures["mean_wal_bytes_per_update"] = bytes_ / (len(since) * count)
            measures["predicted_wal_fpi_per_update"] = predicted_fpi(
                request.scale, int(cell["fillfactor"]), before=(len(since) - 1) * count, count=count
            ) if cell["full_page_writes"] == "on" else 0.0  # fmt: skip
        return TrialOutcome(measures=rounds.flat(found), environment=environment)

    def summarise(
        self,
        request: Request,
        version: PgVersion,  # noqa: ARG002 - nothing depends on it
        samples: Sequence[TrialSample],
    ) -> Summary:
        """The sawtooth, and what a distance costs."""
        cells = summarise_cells(self.expand(request, samples), request.cells(), MEASURES)
        return Summary(cells=cells, findings=_findings(request, cells))

    def answer(self, result: Result) -> str | None:
        """As `presentation` has it."""
        return presentation.answer(result)


def _windows(request: Request) -> int:
    """Windows that are played: whole cycles that hold every reported one."""
    most = max(int(level) for level in request.levels["window"])
    return -(-most // CYCLES) * CYCLES


def predicted_fpi(scale: int, fillfactor: int, *, before: int, count: int) -> float | None:
    """
    Images per update that a window is expected to log, updates being uniform over the rows.

    A page gets its image with the first update of one of its rows since the checkpoint, so that
    after n updates a page with the share p of the rows is untouched with probability (1 - p)^n.

    Args:
        scale: pgbench's.
        fillfactor: Of the table; None is returned where a page has no room for two versions, so
            that updates also change other pages.
        before: Updates since the checkpoint.
        count: Updates of the window.
    """
    if _core.spare_versions(accounts.row_bytes(), fillfactor) < 2:
        return None
    pages, per_page, on_last = accounts.pages_and_rows(scale, fillfactor)
    rows = (pages - 1) * per_page + on_last
    found = 0.0
    for number, share in ((pages - 1, per_page / rows), (1, on_last / rows)):
        found += number * ((1 - share) ** before - (1 - share) ** (before + count))
    return found / count


def _findings(request: Request, cells: Sequence[dict[str, Any]]) -> list[str]:
    """Right after the checkpoint against far from it, and how the prediction fared."""
    cycle = _windows(request) // CYCLES
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for cell in cells:
        key = (cell["fillfactor"], cell["full_page_writes"], cell["wal_compression"])
        groups.setdefault(key, []).append(cell)
    said = []
    for (fillfactor, fpw, compression), group in groups.items():
        first = [cell for cell in group if cell["window"] <= cycle]
        if len(first) < 2:
            continue
        label = f"fillfactor {fillfactor}, full_page_writes {fpw}, wal_compression {compression}"
        near, far = first[0], first[-1]
        said.append(
            f"({label}) An update writes {near['wal_bytes_per_update']:,.0f} bytes of WAL in "
            f"window {near['window']} after a checkpoint and {far['wal_bytes_per_update']:,.0f} in "
            f"window {far['window']}; over that distance, {far['distance_bytes'] / 1e6:,.1f} MB, "
            f"the mean is {far['mean_wal_bytes_per_update']:,.0f}."
        )
        errors = [
            abs(cell["wal_fpi_per_update"] - cell["predicted_wal_fpi_per_update"])
            for cell in group
            if cell["predicted_wal_fpi_per_update"] is not None
        ]
        if errors and fpw == "on":
            said.append(
                f"({label}) Images per update differ from the prediction by at most "
                f"{max(errors):.3f} in any window."
            )
    return said


EXPERIMENT = FpiSawtooth()
