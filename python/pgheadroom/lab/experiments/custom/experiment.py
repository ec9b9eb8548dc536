"""
Experiment `custom`: any profile, or any pgbench script with its schema, swept over anything.

Factors are whatever `--set` names: a reloption of all tables (`fillfactor=100,80`) or of one
(`accounts.fillfactor=100,80`), `server=16,18`, or a setting of the server
(`setting.wal_compression=off,pglz`).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence

from pgheadroom.errors import InputError
from pgheadroom.lab import guards, predicted
from pgheadroom.lab.contrast import blocks, contrast, ratio_words
from pgheadroom.lab.design import Factor, Measure, Request, Trial, TrialCell
from pgheadroom.lab.experiment import (
    Experiment,
    Summary,
    TrialOutcome,
    require_wal_counters,
    summarise_cells,
)
from pgheadroom.lab.experiments.custom import load as custom_load
from pgheadroom.lab.experiments.custom import measure as custom_measure
from pgheadroom.lab.experiments.custom import predicted as custom_predicted
from pgheadroom.lab.place import Place
from pgheadroom.lab.record import TrialSample
from pgheadroom.lab.result import ComparedCells
from pgheadroom.stats import ComparisonVerdict
from pgheadroom.types import PgVersion

OPTIONS = (
    Factor(name="profile", description="path of a profile to play", single=True),
    Factor(
        name="script",
        description="path of a pgbench script; :scale and :client_id are pgbench's",
        single=True,
    ),
    Factor(
        name="schema",
        description="path of the SQL that makes and fills the script's tables, run by psql with "
        ":scale; autovacuum is off meanwhile, VACUUM ANALYZE follows",
        single=True,
    ),
    Factor(
        name="clients",
        description="pgbench clients; 0: the profile's, else 1",
        default=(0,),
        bounds=(0, 1000),
        single=True,
    ),
    Factor(
        name="transactions",
        description="transactions of the counter window, all clients together; 0: the profile's "
        "operations, else 10,000",
        default=(0,),
        bounds=(0, 1_000_000_000),
        single=True,
    ),
    Factor(
        name="window_s",
        description="length of a throughput window after it in seconds; 0: none",
        default=(0,),
        bounds=(0, 86_400),
        single=True,
    ),
    Factor(
        name="protocol",
        description="how pgbench sends a script's statements; a profile's are prepared",
        default=("prepared",),
        words=("simple", "extended", "prepared"),
        single=True,
    ),
)

SERVER = Factor(
    name="server",
    description="server version or folder, each started by turns",
)

_RELOPTION = re.compile(
    r"(?:[^.]+\.)?(fillfactor|toast_tuple_target|parallel_workers|user_catalog_table|"
    r"vacuum_\w+|autovacuum_\w+|log_autovacuum_min_duration|toast\.\w+)"
)
_SETTING = re.compile(r"setting\.[A-Za-z_][A-Za-z0-9_.]*")


def factor_named(name: str) -> Factor | None:
    """The factor that a name means: the server, a reloption, a setting; None for anything else."""
    if name == "server":
        return SERVER
    if match := _RELOPTION.fullmatch(name):
        where = "of every table" if "." not in name else f"of {name.rpartition('.')[0]}"
        bounds = (10, 100) if match[1] == "fillfactor" else None
        unit = "%" if match[1] == "fillfactor" else None
        return Factor(
            name=name, description=f"reloption {match[1]} {where}", bounds=bounds, unit=unit
        )
    if _SETTING.fullmatch(name):
        setting = name.partition(".")[2]
        return Factor(name=name, description=f"the server's setting {setting}")
    return None


class Custom(Experiment):
    """See the module's docstring."""

    name = "custom"
    order = 1000
    title = "A workload of one's own"
    question = "What does each level of the factors change for this workload?"
    source = "yours: a profile, or a pgbench script with its schema"
    time_needed = "loading and 10,000 transactions for each trial; 5 repetitions of each cell"
    scale_default = 1
    scale_meaning = ":scale in script and schema; a profile has its own size"
    factors: tuple[Factor, ...] = ()
    options = OPTIONS
    measures: tuple[Measure, ...] = (
        *custom_measure.MEASURES,
        *predicted.measures_of(custom_measure.MEASURES, custom_predicted.PREDICTED),
    )
    series_by = "fillfactor"
    open_factors = (
        "fillfactor or another reloption, of all tables or as TABLE.OPTION; server; "
        "setting.NAME for any setting of the server"
    )

    def factors_for(self, names: Iterable[str]) -> tuple[Factor, ...]:
        """A factor for each name that is none of the options and means something."""
        options = {option.name for option in OPTIONS}
        found = (factor_named(name) for name in names if name not in options)
        return tuple(factor for factor in found if factor is not None)

    def check(self, request: Request, version: PgVersion, *, throw_away: bool) -> None:
        """Refuse what this server cannot do; reads the files that were named."""
        require_wal_counters(version)
        if not request.levels:
            raise InputError(
                f"custom has nothing to vary: expected a `set` of {self.open_factors}",
                mentions=("set",),
            )
        own = [n for n in request.levels if n == "server" or n.startswith("setting.")]
        if own and not throw_away:
            raise InputError(
                f"{own[0]} needs servers of ours: leave `server` out, or vary reloptions",
                mentions=("server",),
            )
        custom_load.work_of(request)

    def trials(self, request: Request) -> list[Trial]:
        """Interleaved blocks, with a control arm for the first levels."""
        first = reference(request)
        return blocks(request, lambda cell: cell == first)

    def trial_s(self, request: Request) -> float:
        """Copying, the counter window at 2,000 transactions a second, the throughput window."""
        wanted = int(request.options["transactions"]) or custom_load.TRANSACTIONS_DEFAULT
        return 2 + wanted / 2000 + int(request.options["window_s"])

    def shape_name(self, trial: Trial) -> str:
        """Cells that differ only in settings start from the same cluster."""
        parts = [
            f"{name}={level}"
            for name, level in trial.cell.items()
            if not name.startswith("setting.")
        ]
        return "-".join(["custom", *parts])

    def measure(self, request: Request, place: Place, trial: Trial) -> TrialOutcome:
        """Load or copy, run, count; then time if asked for."""
        return custom_measure.measure(request, place, trial, self.shape_name(trial))

    def summarise(
        self,
        request: Request,
        version: PgVersion,
        samples: Sequence[TrialSample],
    ) -> Summary:
        """Each cell against the one where a factor has its first level."""
        cells = summarise_cells(samples, request.cells(), custom_measure.MEASURES)
        why_not = custom_predicted.fill(request, version, samples, cells)
        first = reference(request)
        pairs = [(first, first), *_pairs(request)]
        found = contrast(samples, pairs, custom_measure.COMPARED, control=lambda _: first)
        warnings = []
        if int(request.options["window_s"]):
            warnings = guards.long_enough(samples, int(request.options["window_s"]))
        return Summary(
            cells=cells,
            comparisons=found.comparisons,
            controls=found.controls,
            findings=[
                *_findings(found.comparisons),
                *predicted.findings(cells, custom_predicted.PREDICTED),
                *(f"Not predicted: {reason}." for reason in why_not),
            ],
            warnings=warnings,
        )


def reference(request: Request) -> TrialCell:
    """The cell of all first levels."""
    return {name: levels[0] for name, levels in request.levels.items()}


def _pairs(request: Request) -> list[tuple[TrialCell, TrialCell]]:
    """Each cell with those where one factor has its first level instead, all else equal."""
    return [
        (cell, {**cell, name: levels[0]})
        for cell, (name, levels) in itertools.product(request.cells(), request.levels.items())
        if cell[name] != levels[0]
    ]


def _findings(comparisons: Sequence[ComparedCells]) -> list[str]:
    """What is higher or lower, in a sentence for each comparison that has a verdict."""
    said = []
    for item in comparisons:
        cell, against = item.cell, item.against
        shown = item.verdict in (ComparisonVerdict.HIGHER, ComparisonVerdict.LOWER)
        if not shown or item.ratio is None:
            continue
        changed = [name for name in cell if cell[name] != against[name]]
        rest = ", ".join(f"{name} {cell[name]}" for name in cell if name not in changed)
        what = ", ".join(f"{name} {cell[name]} against {against[name]}" for name in changed)
        said.append(f"{f'({rest}) ' if rest else ''}{what}: {item.measure} {ratio_words(item)}.")
    if said:
        return said
    if comparisons and all(item.verdict == ComparisonVerdict.UNDECIDED for item in comparisons):
        return [f"Undecided: {comparisons[0].reason}."]
    return ["No difference between levels is shown."]


EXPERIMENT = Custom()
