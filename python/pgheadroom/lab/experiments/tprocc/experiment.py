"""
Experiment `tprocc` (S4): a TPC-C-derived workload over fillfactors and published schedules.

A trial starts from a copy of the database, loaded and aged, counts a fixed number of
transactions, then, after a ramp-up, measures a fixed time. The standard's consistency conditions
1 to 4 hold before and after, or there is no result. Not a TPC result.
"""

from __future__ import annotations

from collections.abc import Sequence

from pgheadroom.errors import InputError, UnsupportedServer
from pgheadroom.lab.contrast import blocks
from pgheadroom.lab.design import Factor, Request, Trial, TrialCell
from pgheadroom.lab.experiment import Experiment, Summary, TrialOutcome, require_wal_counters
from pgheadroom.lab.experiments.tprocc import measure as tprocc_measure
from pgheadroom.lab.experiments.tprocc import presentation
from pgheadroom.lab.experiments.tprocc import summary as tprocc_summary
from pgheadroom.lab.experiments.tprocc.schedules import OWN_FORM, PUBLISHED, fillfactors
from pgheadroom.lab.place import Place
from pgheadroom.lab.reading import Result
from pgheadroom.lab.record import TrialSample
from pgheadroom.types import PgVersion

FACTORS = (
    Factor(
        name="fillfactor",
        description="of the nine tables; the schedule that BenchmarkSQL 6 ships, or HammerDB "
        "shipped until 2020; or one of your own; indexes stay at 90",
        unit="%",
        default=(100, 80, 60, 40),
        bounds=(10, 100),
        words=tuple(PUBLISHED),
        only_by_name=tuple(PUBLISHED),
        form=OWN_FORM,
    ),
    Factor(
        name="users",
        description="virtual users, pgbench's clients",
        default=(1, 2, 4),
        bounds=(1, 1000),
    ),
    Factor(
        name="io",
        description="through the operating system's cache, or direct (16 and later); server: as a "
        "borrowed server has it",
        default=("cached",),
        words=("cached", "direct", "server"),
        only_by_name=("server",),
    ),
)

OPTIONS = (
    Factor(
        name="age",
        description="transactions for each warehouse before any window, played once by two users "
        "and kept with the loaded database; by default so many that deliveries of the counter "
        "window still take orders that were loaded",
        default=(18_000,),
        bounds=(0, 1_000_000_000),
        single=True,
    ),
    Factor(
        name="transactions",
        description="transactions of the counter window, all users together; 0: 2,500 x scale",
        default=(0,),
        bounds=(0, 1_000_000_000),
        single=True,
    ),
    Factor(
        name="rampup_s",
        description="length of the ramp-up before the throughput window in seconds",
        default=(2,),
        bounds=(0, 86_400),
        single=True,
    ),
    Factor(
        name="window_s",
        description="length of the throughput window in seconds; 0: none",
        default=(10,),
        bounds=(0, 86_400),
        single=True,
    ),
    Factor(
        name="home",
        description="any: a warehouse is drawn for each transaction; own: user n stays at "
        "warehouse n",
        default=("any",),
        words=("any", "own"),
        single=True,
    ),
    Factor(
        name="autovacuum",
        description="default settings, aggressive (every second, from 1,000 dead rows), off; "
        "server: as a borrowed server has it",
        default=("default",),
        words=("default", "aggressive", "off", "server"),
        single=True,
    ),
    Factor(
        name="shared_buffers_mb",
        description="shared_buffers; 0: a quarter more than the largest database, and 128 MB",
        default=(0,),
        bounds=(0, 10_000_000),
        single=True,
    ),
    Factor(
        name="loaders",
        description="warehouses that are loaded at a time",
        default=(2,),
        bounds=(1, 64),
        single=True,
    ),
    Factor(
        name="predict",
        description="whether the twin plays the workload too, half a minute a cell",
        default=("on",),
        words=("on", "off"),
        single=True,
    ),
)


class Tprocc(Experiment):
    """See the module's docstring."""

    name = "tprocc"
    order = 40
    title = "A TPC-C-derived workload over fillfactors"
    topic = "Updates and the room on pages"
    question = (
        "What does a lower fillfactor, or a published schedule of them, change in orders per "
        "minute, HOT share by table, size and WAL?"
    )
    source = "S4: Fillfactor of PostgreSQL and its effect, HammerDB's TPROC-C on Aurora 15.4"
    time_needed = "about 35 minutes with 4 warehouses, loading and aging included"
    scale_default = 4
    scale_meaning = "warehouses, about 110 MB each at fillfactor 100"
    factors = FACTORS
    options = OPTIONS
    measures = tprocc_measure.MEASURES
    tables = presentation.TABLES
    figures = presentation.FIGURES
    series_by = "fillfactor"

    def check(self, request: Request, version: PgVersion, *, throw_away: bool) -> None:
        """Refuse what this server cannot do."""
        require_wal_counters(version)
        if "direct" in request.levels["io"] and version.major < 16:
            raise UnsupportedServer(
                f"direct I/O needs PostgreSQL 16 or later, found {version}: take `io=cached`",
                mentions=("io=cached",),
            )
        given = (request.levels["io"] == ("server",), request.options["autovacuum"] == "server")
        if throw_away and ("server" in request.levels["io"] or given[1]):
            raise InputError(
                "io=server and autovacuum=server are for a server given by connection; a "
                "throw-away one has no settings of its own"
            )
        if not throw_away and given != (True, True):
            raise InputError(
                "io and autovacuum are settings of the whole server, and this one is not ours: "
                "take them as they are by `io=server` and `autovacuum=server`",
                mentions=("io=server", "autovacuum=server"),
            )
        for level in request.levels["fillfactor"]:
            fillfactors(level)
        if request.options["predict"] == "on" and not 15 <= version.major <= 19:
            raise UnsupportedServer(
                f"the twin follows PostgreSQL 15 to 19, found {version}: take `predict=off`",
                mentions=("predict=off",),
            )

    def trials(self, request: Request) -> list[Trial]:
        """Interleaved blocks, with a control arm at the reference fillfactor."""
        return blocks(request, lambda cell: cell == reference(request, cell))

    def trial_s(self, request: Request) -> float:
        """Copying and warming, the counter window at 2,000 transactions a second, the times."""
        copy_s = 2 + 0.7 * request.scale
        window_s = int(request.options["window_s"])
        timed_s = window_s + int(request.options["rampup_s"]) if window_s else 0
        return copy_s + tprocc_measure.transactions(request) / 2000 + timed_s

    def shape_name(self, trial: Trial) -> str:
        """Cells with equal fillfactors start from the same database."""
        return f"tprocc-{trial.cell['fillfactor']}"

    def measure(self, request: Request, place: Place, trial: Trial) -> TrialOutcome:
        """One trial: copy, start, warm, count, ramp up, time."""
        return tprocc_measure.measure(request, place, trial, self.shape_name(trial))

    def summarise(
        self, request: Request, version: PgVersion, samples: Sequence[TrialSample]
    ) -> Summary:
        """Cells, ratios to the reference, the document's sizes and claims beside ours."""
        pairs = [(cell, reference(request, cell)) for cell in request.cells()]
        return tprocc_summary.summarise(request, version, samples, pairs)

    def answer(self, result: Result) -> str | None:
        """As `presentation` has it."""
        return presentation.answer(result)


def reference(request: Request, cell: TrialCell) -> TrialCell:
    """The cell with the first fillfactor of the run, all else equal."""
    return {**cell, "fillfactor": request.levels["fillfactor"][0]}


EXPERIMENT = Tprocc()
