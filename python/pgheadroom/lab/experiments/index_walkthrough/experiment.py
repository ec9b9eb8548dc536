"""
Experiment `index-walkthrough`: the blocks that each step of an index tutorial touches.

The book's key/value table of 100,000 rows, step by step: a look-up by key, a scan of everything,
a bitmap of one value in ten, half of the table after CLUSTER, and once more after VACUUM. Every
block count is predicted by arithmetic and measured; where they differ, one of the two is wrong.

Two deviations make the counts exact: the values are not random but every tenth in turn, and the
primary key is added after loading. The steps have no chance and no clock in them.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pgheadroom.errors import MeasurementInvalid, UnsupportedServer
from pgheadroom.lab import rounds
from pgheadroom.lab.contrast import blocks
from pgheadroom.lab.design import Factor, Measure, Request, Trial
from pgheadroom.lab.environment import describe_server
from pgheadroom.lab.experiment import Experiment, Summary, TrialOutcome, summarise_cells
from pgheadroom.lab.experiments.index_walkthrough import presentation
from pgheadroom.lab.experiments.index_walkthrough.model import DISTINCT_VALUES, expected
from pgheadroom.lab.place import Place, Running, Shape
from pgheadroom.lab.reading import Result
from pgheadroom.lab.record import TrialSample
from pgheadroom.lab.result import Reference
from pgheadroom.types import PgVersion
from pgheadroom.units import PAGE_BYTES

if TYPE_CHECKING:
    import psycopg

TABLE = "t"
ROWS_PER_SCALE = 100_000

STEPS = {
    "load": "the table and its index as loaded",
    "key-lookup": "one row by its key: index scan",
    "seq-scan": "rows of one value in ten: sequential scan",
    "bitmap": "the same rows: bitmap scan of the index on the value",
    "clustered": "half of the values after CLUSTER: index-only scan that must look into the heap",
    "vacuumed": "the same after VACUUM: index-only scan by the visibility map",
}

_SCANS = ("seqscan", "indexscan", "indexonlyscan", "bitmapscan")

_QUERIES = {
    "key-lookup": ("indexscan", "SELECT v FROM t WHERE k = {key}", "Index Scan"),
    "seq-scan": ("seqscan", "SELECT count(*) FROM t WHERE v = 1", "Seq Scan"),
    "bitmap": ("bitmapscan", "SELECT count(*) FROM t WHERE v = 1", "Bitmap Heap Scan"),
    "clustered": ("indexonlyscan", "SELECT count(v) FROM t WHERE v < 5", "Index Only Scan"),
    "vacuumed": ("indexonlyscan", "SELECT count(v) FROM t WHERE v < 5", "Index Only Scan"),
}

BOOK = Reference(
    title="What the book has, on PostgreSQL 9.6",
    source="chapter 9 of the book: 100,000 rows, random values, index without deduplication",
    columns=("step", "blocks"),
    rows=(
        ("load", "443 of the table, 276 of the index on the value"),
        ("seq-scan", "443"),
        ("bitmap", "443 + 29"),
        ("clustered", "223 + 139 (50,274 rows)"),
    ),
    note="before 12 the keys that separate equal values had no heap TID, so its index is a "
    "level lower: 274 leaves, a root and the metapage, where ours has two inner pages more",
)

MEASURES = (
    Measure(name="buffers", description="blocks that the plan touched, hit or read", unit="pages"),
    Measure(
        name="predicted_buffers",
        description="the same by arithmetic",
        unit="pages",
        evidence="predicted",
    ),
    Measure(name="heap_pages", description="pages of the table", unit="pages"),
    Measure(
        name="predicted_heap_pages",
        description="the same by arithmetic",
        unit="pages",
        evidence="predicted",
    ),
    Measure(name="index_pages", description="pages of the index on the value", unit="pages"),
    Measure(
        name="predicted_index_pages",
        description="the same by arithmetic",
        unit="pages",
        evidence="predicted",
    ),
    Measure(name="heap_fetches", description="rows that an index-only scan looked up in the heap"),
)
PREDICTED = ("buffers", "heap_pages", "index_pages")


class IndexWalkthrough(Experiment):
    """See the module's docstring."""

    name = "index-walkthrough"
    order = 50
    title = "An index, block by block"
    topic = "Order, indexes, concurrency"
    question = "How many blocks does each way to the rows touch, and does arithmetic predict it?"
    source = "S3: the book, chapter 9, the walk-through of a key/value table"
    time_needed = "under a minute"
    scale_default = 1
    scale_meaning = "rows / 100,000"
    factors = (
        Factor(
            name="deduplicate",
            description="deduplicate_items of the index on the value (13 and later)",
            default=("off", "on"),
            words=("off", "on"),
        ),
        Factor(
            name="index_fillfactor",
            description="fillfactor of that index",
            unit="%",
            default=(90,),
            bounds=(50, 100),
        ),
        Factor(
            name="step",
            description="; ".join(f"{name}: {text}" for name, text in STEPS.items()),
            default=tuple(STEPS),
            words=tuple(STEPS),
        ),
    )
    options: tuple[Factor, ...] = ()
    measures = MEASURES
    tables = presentation.TABLES
    figures = presentation.FIGURES

    def repetitions_default(self, scale: int) -> int:  # noqa: ARG002 - the same at every scale
        """One: there is nothing random in it."""
        return 1

    def check(
        self,
        request: Request,  # noqa: ARG002 - every request runs
        version: PgVersion,
        *,
        throw_away: bool,  # noqa: ARG002 - on a borrowed server too
    ) -> None:
        """Refuse a server without deduplication."""
        if version.major < 13:
            raise UnsupportedServer(f"PostgreSQL {version} has no deduplicate_items: 13 is first")

    def trials(self, request: Request) -> list[Trial]:
        """One trial walks all steps of one index."""
        return blocks(request, cells=rounds.trial_cells(request, "step"))

    def trial_s(self, request: Request) -> float:
        """Loading and CLUSTER."""
        return 3 + 0.7 * request.scale

    def shape_name(self, trial: Trial) -> str:
        """Each index is loaded by itself."""
        return f"index-{trial.cell['deduplicate']}-{trial.cell['index_fillfactor']}"

    def expand(self, request: Request, samples: Sequence[TrialSample]) -> list[TrialSample]:
        """One sample a step."""
        return rounds.asked(request, samples, "step", tuple(STEPS))

    def measure(self, request: Request, place: Place, trial: Trial) -> TrialOutcome:
        """Walk the steps."""
        rows = request.scale * ROWS_PER_SCALE
        load = functools.partial(_load, rows=rows, trial=trial)
        shape = Shape(name=self.shape_name(trial), load=load, bytes_expected=rows * 60)
        found: dict[int, dict[str, float | None]] = {}
        predicted = expected(
            rows,
            fillfactor=int(trial.cell["index_fillfactor"]),
            deduplicate=trial.cell["deduplicate"] == "on",
        )
        with place.running(shape, {"autovacuum": "off", "jit": "off"}) as server:
            environment = describe_server(server)
            for number, step in enumerate(STEPS):
                with server.connect() as connection:
                    found[number] = _step(connection, step, rows)
                for name in PREDICTED:
                    found[number][f"predicted_{name}"] = getattr(predicted[step], name)
            assumed = dict(server.assumed)
        assumed["values"] = "every tenth in turn instead of random, so that counts are exact"
        return TrialOutcome(measures=rounds.flat(found), assumed=assumed, environment=environment)

    def summarise(
        self,
        request: Request,
        version: PgVersion,  # noqa: ARG002 - the arithmetic is the same from 13 to 18
        samples: Sequence[TrialSample],
    ) -> Summary:
        """Measured beside predicted, and what does not agree."""
        cells = summarise_cells(self.expand(request, samples), request.cells(), MEASURES)
        pairs = [
            (cell, name)
            for cell in cells
            for name in PREDICTED
            if cell[name] is not None and cell[f"predicted_{name}"] is not None
        ]
        wrong = [
            f"{cell['step']}, deduplicate {cell['deduplicate']}, index_fillfactor "
            f"{cell['index_fillfactor']}: {name} {cell[name]:,} measured, "
            f"{cell[f'predicted_{name}']:,} predicted"
            for cell, name in pairs
            if cell[name] != cell[f"predicted_{name}"]
        ]
        findings = [
            f"{len(pairs) - len(wrong)} of {len(pairs)} block counts are exactly as predicted."
        ]
        findings += [f"Not as predicted: {text}." for text in wrong]
        findings += _lessons(cells)
        return Summary(
            cells=cells, references=[BOOK] if request.scale == 1 else [], findings=findings
        )

    def answer(self, result: Result) -> str | None:
        """As `presentation` has it."""
        return presentation.answer(result)


def _lessons(cells: Sequence[dict[str, Any]]) -> list[str]:
    """What the steps show, for the first index."""
    of = {cell["step"]: cell for cell in reversed(cells)}
    said = []
    if {"seq-scan", "bitmap"} <= set(of):
        said.append(
            f"For one row in ten the bitmap touches {of['bitmap']['buffers']:,} blocks and the "
            f"sequential scan {of['seq-scan']['buffers']:,}: every page holds such rows, so the "
            "index costs its own pages on top."
        )
    if {"clustered", "vacuumed"} <= set(of):
        said.append(
            f"Half of the table by an index-only scan: {of['clustered']['buffers']:,} blocks "
            f"right after CLUSTER, which leaves no visibility map, and "
            f"{of['vacuumed']['buffers']:,} after VACUUM."
        )
    return said


def _load(server: Running, *, rows: int, trial: Trial) -> None:
    with server.connect() as connection:
        connection.execute(
            f"CREATE TABLE {TABLE} (k int NOT NULL, v int) WITH (autovacuum_enabled = off)"
        )
        connection.execute(
            f"INSERT INTO {TABLE} SELECT i, i % {DISTINCT_VALUES} FROM generate_series(1, {rows}) i"
        )
        connection.execute(f"ALTER TABLE {TABLE} ADD PRIMARY KEY (k)")
        connection.execute(
            f"CREATE INDEX {TABLE}_v ON {TABLE} (v) WITH "
            f"(deduplicate_items = {trial.cell['deduplicate']}, "
            f"fillfactor = {int(trial.cell['index_fillfactor'])})"
        )
        connection.execute(f"VACUUM (ANALYZE) {TABLE}")
    server.checkpoint()


def _step(connection: psycopg.Connection[Any], step: str, rows: int) -> dict[str, float | None]:
    """One step, in a session of its own so that nothing is cached but pages."""
    connection.execute("SET max_parallel_workers_per_gather = 0")
    if step == "clustered":
        connection.execute(f"CLUSTER {TABLE} USING {TABLE}_v")
        connection.execute(f"ANALYZE {TABLE}")
    elif step == "vacuumed":
        connection.execute(f"VACUUM {TABLE}")
    found: dict[str, float | None] = {}
    if step in _QUERIES:
        allowed, query, node = _QUERIES[step]
        for scan in _SCANS:
            on = scan == allowed or (scan, allowed) == ("indexscan", "indexonlyscan")
            connection.execute(f"SET enable_{scan} = {'on' if on else 'off'}".encode())
        found = _explained(connection, query.format(key=rows // 2), node)
    row = connection.execute(
        f"SELECT pg_relation_size('{TABLE}') / {PAGE_BYTES}, "
        f"pg_relation_size('{TABLE}_v') / {PAGE_BYTES}"
    ).fetchone()
    assert row is not None, "a function returns one row"
    return {**found, "heap_pages": row[0], "index_pages": row[1]}


def _explained(
    connection: psycopg.Connection[Any], query: str, node: str
) -> dict[str, float | None]:
    """Blocks of the plan, which must be the intended one; those of planning are apart."""
    explain = f"EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) {query}"
    row = connection.execute(explain.encode()).fetchone()
    assert row is not None, "EXPLAIN returns one row"
    plan = row[0][0]["Plan"]
    scan = plan["Plans"][0] if "Plans" in plan and plan["Node Type"] == "Aggregate" else plan
    if scan["Node Type"] != node:
        raise MeasurementInvalid(f"{query} ran as {scan['Node Type']}, expected {node}")
    fetches = scan.get("Heap Fetches")
    return {
        "buffers": plan["Shared Hit Blocks"] + plan["Shared Read Blocks"],
        "heap_fetches": None if fetches is None else float(fetches),
    }


EXPERIMENT = IndexWalkthrough()
