"""
Experiment `cluster-decay` (S2): how fast a clustered table loses its order, and what that costs.

The document's program: a clustered table of about 20 rows a page, then rounds of DELETE of 2 %,
VACUUM, INSERT of 2 % with random keys, a range SELECT of about 1,000 keys and a count of all rows.
One trial plays all rounds of one cell; after each round many ranges are read, not one, and the
pages that their rows lie on are counted.
"""

from __future__ import annotations

from collections.abc import Sequence

from pgheadroom.errors import InputError, UnsupportedServer
from pgheadroom.lab import rounds
from pgheadroom.lab.contrast import blocks
from pgheadroom.lab.design import Factor, Measure, Request, Trial
from pgheadroom.lab.experiment import Experiment, Summary, TrialOutcome
from pgheadroom.lab.experiments.cluster_decay import measure as cluster_decay_measure
from pgheadroom.lab.experiments.cluster_decay import presentation
from pgheadroom.lab.experiments.cluster_decay import summary as cluster_decay_summary
from pgheadroom.lab.experiments.cluster_decay.draws import EXTENSION, MODEL
from pgheadroom.lab.place import Place
from pgheadroom.lab.presentation import FigureForm
from pgheadroom.lab.reading import Result
from pgheadroom.lab.record import TrialSample
from pgheadroom.types import PgVersion

FACTORS = (
    Factor(
        name="engine",
        description="heap; sorted: heap, and each INSERT's rows come in key order; "
        "clustered_heap: the access method of our extension, which a throw-away server gets built; "
        "clustered: the twin's model of it, which is computed and has no times",
        default=("heap", "sorted"),
        words=("heap", "sorted", MODEL, EXTENSION),
        only_by_name=(MODEL, EXTENSION),
    ),
    Factor(
        name="fillfactor",
        description="fillfactor of the table",
        unit="%",
        default=(100,),
        bounds=(10, 100),
    ),
    Factor(
        name="churn_pct",
        description="share of the rows that each round deletes, and inserts",
        unit="%",
        default=(2,),
        bounds=(1, 50),
    ),
    Factor(
        name="index",
        description="access method of the index on the key; with brin, bitmap scans are on",
        default=("btree",),
        words=("btree", "brin"),
    ),
    Factor(
        name="round",
        description="rounds after which the state is reported; 0 is freshly clustered, "
        "the largest is how many are played",
        default=tuple(range(11)),
        bounds=(0, 1000),
    ),
)

OPTIONS = (
    Factor(
        name="ranges",
        description="range SELECTs that are measured after each round",
        default=(40,),
        bounds=(1, 10_000),
        single=True,
    ),
    Factor(
        name="shared_buffers_pages",
        description="shared_buffers in pages; 0: 1,000 x scale, the document's share of the data",
        default=(0,),
        bounds=(0, 100_000_000),
        single=True,
    ),
    Factor(
        name="index_only",
        description="on: index-only scans are allowed, which the document's server did not have",
        default=("off",),
        words=("on", "off"),
        single=True,
    ),
    Factor(
        name="queries_per_round",
        description="range SELECTs that an application runs in a round: decides when to re-cluster",
        default=(10_000,),
        bounds=(1, 1_000_000_000),
        single=True,
    ),
)

MEASURES = (
    Measure(
        name="pages_per_range",
        description="distinct heap pages that hold the rows of a range, mean over the ranges",
        unit="pages",
        better="lower",
    ),
    Measure(
        name="buffers_per_range",
        description="buffers that the plan of a range SELECT touched, hit or read, index included",
        unit="pages",
        better="lower",
    ),
    Measure(
        name="range_ms",
        description="time of a range SELECT as the client sees it, median over the ranges",
        unit="ms",
        better="lower",
    ),
    Measure(name="correlation", description="pg_stats.correlation of the key, after ANALYZE"),
    Measure(name="delete_ms", description="time of the round's DELETE", unit="ms", better="lower"),
    Measure(name="vacuum_ms", description="time of its VACUUM", unit="ms", better="lower"),
    Measure(name="insert_ms", description="time of its INSERT", unit="ms", better="lower"),
    Measure(
        name="count_ms", description="time of the count of all rows", unit="ms", better="lower"
    ),
    Measure(name="live_rows", description="rows that the count found", unit="rows"),
    Measure(name="deleted_rows", description="rows that the DELETE took", unit="rows"),
    Measure(name="insert_wal_bytes", description="WAL of the INSERT", unit="bytes", better="lower"),
    Measure(
        name="wal_bytes",
        description="WAL of DELETE, VACUUM and INSERT together",
        unit="bytes",
        better="lower",
    ),
    Measure(name="heap_pages", description="pages of the table", unit="pages", better="lower"),
    Measure(name="index_pages", description="pages of its index", unit="pages", better="lower"),
    Measure(
        name="checkpoints",
        description="checkpoints begun during the round's DELETE to INSERT",
        clock=True,
    ),
    Measure(
        name="recluster_ms",
        description="time of CLUSTER and VACUUM ANALYZE after the last round",
        unit="ms",
        better="lower",
    ),
    Measure(
        name="recluster_wal_bytes",
        description="their WAL",
        unit="bytes",
        better="lower",
    ),
    Measure(
        name="predicted_pages_per_range",
        description="pages_per_range as the twin predicts it, with the server's random numbers",
        unit="pages",
        better="lower",
    ),
    Measure(
        name="predicted_heap_pages",
        description="heap_pages likewise",
        unit="pages",
        better="lower",
    ),
    Measure(
        name="clustered_pages_per_range",
        description="the same of the twin's engine clustered, a model, with the same draws",
        unit="pages",
        better="lower",
    ),
)


class ClusterDecay(Experiment):
    """See the module's docstring."""

    name = "cluster-decay"
    order = 30
    title = "Decay of cluster order"
    topic = "Order, indexes, concurrency"
    question = (
        "How fast do inserts undo the order of a clustered table, what do range queries pay for "
        "it, and when does clustering again pay?"
    )
    source = "S2: Re: [PATCHES] Maintaining cluster order on insert (pgsql-hackers, 2007)"
    time_needed = "about 20 minutes at scale 10, the document's million rows; 2 at scale 1"
    scale_default = 10
    scale_meaning = "rows / 100,000; 10 is the document's 1,000,000 rows (390 MB)"
    factors = FACTORS
    options = OPTIONS
    measures = MEASURES
    tables = presentation.TABLES

    def check(self, request: Request, version: PgVersion, *, throw_away: bool) -> None:
        """Refuse what cannot be set or compared."""
        if version.major < 13:
            raise UnsupportedServer(f"PostgreSQL {version}: 13 is the oldest this was written for")
        if not throw_away and request.options["shared_buffers_pages"]:
            raise InputError(
                "shared_buffers_pages is a setting of the whole server, and this one is not ours: "
                "leave it out, its own shared_buffers are then used"
            )
        placed = {EXTENSION, MODEL} & set(request.levels["engine"])
        if placed and "brin" in request.levels["index"]:
            raise InputError(
                f"engine={sorted(map(str, placed))[0]} keeps rows in the order of a B-tree: "
                "leave index=brin out, or the engine"
            )

    def trials(self, request: Request) -> list[Trial]:
        """Interleaved blocks, with a control arm for plain heap in each group."""
        reference = cluster_decay_summary.reference(request)
        return blocks(
            request,
            lambda cell: cell["engine"] == reference,
            cells=rounds.trial_cells(request, "round"),
        )

    def trial_s(self, request: Request) -> float:
        """Rounds of scans and samples; grows with rows and rounds."""
        played = max(int(level) for level in request.levels["round"])
        return 2 + request.scale * 0.4 + played * (0.25 + 0.12 * request.scale)

    def shape_name(self, trial: Trial) -> str:
        """Engines that differ only in the order of insertion start from the same cluster."""
        engine = EXTENSION if trial.cell["engine"] == EXTENSION else "heap"
        return f"{engine}-{trial.cell['fillfactor']}-" + str(trial.cell["index"])

    def expand(self, request: Request, samples: Sequence[TrialSample]) -> list[TrialSample]:
        """One sample a round."""
        return rounds.asked(request, samples, "round")

    def measure(self, request: Request, place: Place, trial: Trial) -> TrialOutcome:
        """All rounds of one cell."""
        return cluster_decay_measure.measure(request, place, trial, self.shape_name(trial))

    def summarise(
        self,
        request: Request,
        version: PgVersion,  # noqa: ARG002 - nothing depends on it
        samples: Sequence[TrialSample],
    ) -> Summary:
        """Rounds beside the document's two runs; when to cluster again."""
        return cluster_decay_summary.summarise(request, samples, MEASURES)

    def figures_for(self, result: Result) -> tuple[FigureForm, ...]:
        """As `presentation` has them."""
        return presentation.figures(result)

    def answer(self, result: Result) -> str | None:
        """As `presentation` has it."""
        return presentation.answer(result)


EXPERIMENT = ClusterDecay()
