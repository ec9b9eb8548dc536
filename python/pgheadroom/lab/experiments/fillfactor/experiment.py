"""
Experiment `fillfactor` (S0): pgbench over fillfactors, with data that fits in memory or does not.

Memory is what the server gets: shared_buffers, with direct I/O (16 and later) so that the
operating system's cache does not stand in for it. Each trial starts from a copy of the loaded
cluster, counts a fixed number of transactions, then measures a fixed time. Trials are interleaved
in blocks, each with an A/A arm at the reference fillfactor.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from pgheadroom.errors import InputError, UnsupportedServer
from pgheadroom.input_file import read_text
from pgheadroom.lab.base import accounts_trial
from pgheadroom.lab.base import shared_factors as shared
from pgheadroom.lab.base.comparing import Comparing
from pgheadroom.lab.design import (
    Factor,
    LevelValue,
    Measure,
    Request,
    Trial,
    TrialCell,
    latency_measures,
)
from pgheadroom.lab.experiment import Summary, TrialOutcome
from pgheadroom.lab.experiments.fillfactor import predicted as fillfactor_predicted
from pgheadroom.lab.experiments.fillfactor import presentation
from pgheadroom.lab.experiments.fillfactor import summary as fillfactor_summary
from pgheadroom.lab.place import Place
from pgheadroom.lab.predicted import measures_of
from pgheadroom.lab.presentation import TableForm
from pgheadroom.lab.reading import Result
from pgheadroom.lab.record import TrialSample
from pgheadroom.types import PgVersion

FACTORS = (
    Factor(
        name="fillfactor",
        description="fillfactor of pgbench's tables (pgbench -F)",
        unit="%",
        default=(100, 90, 80, 70),
        bounds=(10, 100),
    ),
    Factor(
        name="memory",
        description="data against shared_buffers: it fits, is twice, is ten times as large; "
        "server: as a borrowed server has it",
        default=("fits", "twice", "tenfold"),
        words=("fits", "twice", "tenfold", "server"),
        only_by_name=("server",),
    ),
    Factor(
        name="autovacuum",
        description="default settings, aggressive (every second, from 1,000 dead rows), or off; "
        "the default acts once a minute, so it shows in windows of minutes only; server: as a "
        "borrowed server has it",
        default=("default",),
        words=("default", "aggressive", "off", "server"),
        only_by_name=("server",),
    ),
)

OPTIONS = (
    Factor(
        name="script",
        description="tpcb-like, simple-update or select-only (pgbench's own), accounts-update "
        "(that UPDATE alone), or the path of a pgbench script for pgbench's tables",
        default=("tpcb-like",),
        single=True,
    ),
    shared.windows("counters of a fixed number of transactions, throughput of a fixed time, both"),
    shared.IO,
    shared.clients(2, single=True),
    Factor(
        name="transactions",
        description="transactions of the counter window, all clients together; 0: 4,000 x scale",
        default=(0,),
        bounds=(0, 1_000_000_000),
        single=True,
    ),
    shared.window_s(8),
    shared.protocol("simple"),
)

_SCRIPT_BYTES_MAX = 16 * 1024**2  # the record holds it; arbitrary
_MEASURED = (
    Measure(name="tps", description="transactions per second", unit="1/s", better="higher"),
    Measure(
        name="accounts_update_ms",
        description="mean time of the UPDATE of pgbench_accounts",
        unit="ms",
        better="lower",
    ),
    *latency_measures("p50", "p90", "p99", "max"),
    Measure(
        name="hot_frac", description="share of HOT updates of pgbench_accounts", better="higher"
    ),
    Measure(
        name="newpage_frac",
        description="share of its updates that went to another page (counted from 16 on)",
        better="lower",
    ),
    Measure(name="n_tup_upd", description="its rows updated in the counter window"),
    Measure(name="n_tup_hot_upd", description="of these HOT", better="higher"),
    Measure(name="n_tup_newpage_upd", description="of these to another page", better="lower"),
    Measure(name="heap_pages_before", description="its pages after loading", unit="pages"),
    Measure(
        name="heap_pages",
        description="its pages after the counter window",
        unit="pages",
        better="lower",
    ),
    Measure(name="index_pages_before", description="pages of its index before", unit="pages"),
    Measure(
        name="index_pages",
        description="pages of its index, likewise",
        unit="pages",
        better="lower",
    ),
    Measure(
        name="heap_growth_pages_per_h",
        description="growth of its heap, from the throughput window's length to an hour",
        unit="pages/h",
        evidence="extrapolated",
        better="lower",
    ),
    Measure(
        name="index_growth_pages_per_h",
        description="growth of its index, likewise",
        unit="pages/h",
        evidence="extrapolated",
        better="lower",
    ),
    Measure(
        name="wal_bytes_per_tx",
        description="WAL bytes per transaction of the counter window, images included",
        unit="bytes",
        better="lower",
    ),
    Measure(
        name="wal_fpi_per_tx",
        description="full-page images per transaction of the counter window",
        better="lower",
    ),
    Measure(
        name="buffer_hit_frac",
        description="share of page requests found in shared buffers, throughput window",
        better="higher",
        clock=True,
    ),
    Measure(
        name="checkpoints", description="checkpoints begun in the throughput window", clock=True
    ),
    Measure(
        name="autovacuums",
        description="vacuums of pgbench_accounts by autovacuum, same",
        clock=True,
    ),
    Measure(name="shared_buffers_bytes", description="shared_buffers", unit="bytes"),
)
MEASURES = (*_MEASURED, *measures_of(_MEASURED, fillfactor_predicted.PREDICTED))


class FillfactorSweep(Comparing):
    """See the module's docstring."""

    name = "fillfactor"
    order = 20
    title = "Fillfactor under pgbench"
    topic = "Updates and the room on pages"
    question = (
        "What does a lower fillfactor change in the time of an UPDATE, in throughput, HOT share, "
        "size and WAL, when the data fits in memory and when it does not?"
    )
    source = "S0: What is fillfactor and how does it affect PostgreSQL performance? (2020)"
    time_needed = "about 30 minutes at scale 5; measure=counters takes a third"
    scale_default = 5
    scale_meaning = "pgbench's scale: 100,000 accounts, about 15 MB each"
    factors = FACTORS
    options = OPTIONS
    measures = MEASURES
    compared = fillfactor_summary.COMPARED
    figures = presentation.FIGURES
    series_by = "fillfactor"

    def check(self, request: Request, version: PgVersion, *, throw_away: bool) -> None:
        """Refuse what this server, or this machine, cannot do."""
        super().check(request, version, throw_away=throw_away)
        if request.options["io"] == "direct" and version.major < 16:
            raise UnsupportedServer(
                f"direct I/O needs PostgreSQL 16 or later, found {version}: take `io=cached`",
                mentions=("io=cached",),
            )
        found = (request.levels["memory"], request.levels["autovacuum"])
        if not throw_away and (
            found != (("server",), ("server",)) or request.options["io"] == "direct"
        ):
            raise InputError(
                "memory, autovacuum and io are settings of the whole server, and this one is not "
                "ours: take them as they are by `memory=server` and `autovacuum=server`",
                mentions=("memory=server", "autovacuum=server"),
            )
        if throw_away and ("server" in found[0] or "server" in found[1]):
            raise InputError(
                "memory=server and autovacuum=server are for a server given by connection; a "
                "throw-away one has no settings of its own"
            )
        script = str(request.options["script"])
        if script not in (*accounts_trial.BUILTIN_SCRIPTS, *accounts_trial.OWN_SCRIPTS):
            self._check_script(Path(script), request.options.get("script_text"))

    @staticmethod
    def _check_script(path: Path, kept: LevelValue | None) -> None:
        try:
            text = (
                read_text(path, bytes_max=_SCRIPT_BYTES_MAX, expected="a pgbench script")
                if kept is None
                else str(kept)
            )
        except InputError as error:
            raise InputError(
                f"script {path} cannot be read ({error}): expected the path of a pgbench script, "
                "or one of "
                + ", ".join((*accounts_trial.BUILTIN_SCRIPTS, *accounts_trial.OWN_SCRIPTS))
            ) from error
        if not re.search(r"pgbench_", text):
            raise InputError(
                f"script {path} names no table of pgbench's: this experiment loads "
                "pgbench_accounts, pgbench_branches, pgbench_tellers and pgbench_history, and "
                "varies their fillfactor"
            )

    def reference(self, request: Request, cell: TrialCell) -> TrialCell:
        """The largest fillfactor, all else equal."""
        return {**cell, "fillfactor": _largest(request)}

    def trial_s(self, request: Request) -> float:
        """Copying and warming, the counter window at 2,000 tps, the throughput window."""
        kind = request.options["measure"]
        counters_s = accounts_trial.transactions(request) / 2000 if kind != "throughput" else 0
        window_s = int(request.options["window_s"]) if kind != "counters" else 0
        return 1.5 + 0.05 * request.scale + counters_s + window_s

    def shape_name(self, trial: Trial) -> str:
        """Cells with equal fillfactor start from the same cluster."""
        return f"fillfactor-{trial.cell['fillfactor']}"

    def measure(self, request: Request, place: Place, trial: Trial) -> TrialOutcome:
        """One trial: copy, start, warm, count, time."""
        return accounts_trial.measure(request, place, trial, self.shape_name(trial))

    def summarise(
        self, request: Request, version: PgVersion, samples: Sequence[TrialSample]
    ) -> Summary:
        """Cells, paired comparisons, controls, findings."""
        return fillfactor_summary.summarise(
            request, version, samples, MEASURES, reference=_largest(request)
        )

    def tables_for(self, result: Result) -> tuple[TableForm, ...]:
        """As `presentation` has them."""
        return presentation.tables(result)

    def answer(self, result: Result) -> str | None:
        """As `presentation` has it."""
        return presentation.answer(result)


def _largest(request: Request) -> int:
    return max(int(level) for level in request.levels["fillfactor"])


EXPERIMENT = FillfactorSweep()
