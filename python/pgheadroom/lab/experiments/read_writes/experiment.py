"""
Experiment `read-writes`: what the first read of fresh rows writes.

Whoever first reads a row after its transaction has committed notes that on the row (hint bits),
which makes the page dirty. With data checksums, on by default from 18, or wal_log_hints the page
also goes into the WAL, whole, once after each checkpoint. A reader that meets versions which an
UPDATE left behind removes them, and that is logged whatever the settings; where hints are logged
too the page gets its image before that, with all that is then removed.

Rows come by one of several methods, a checkpoint follows, and the table is read twice; a VACUUM or
COPY FREEZE before pays instead of the readers. Everything but the time is predicted to the byte.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pgheadroom.errors import MeasurementInvalid
from pgheadroom.lab import rounds
from pgheadroom.lab.base import plain_rows
from pgheadroom.lab.base import shared_factors as shared
from pgheadroom.lab.base.comparing import Comparing
from pgheadroom.lab.base.exact_counts import beside, counts_as_predicted
from pgheadroom.lab.base.plain_rows import TABLE
from pgheadroom.lab.contrast import differences
from pgheadroom.lab.design import Factor, Measure, Request, Trial, TrialCell
from pgheadroom.lab.environment import describe_server
from pgheadroom.lab.environment_form import ServerFound
from pgheadroom.lab.experiment import TrialOutcome
from pgheadroom.lab.experiments.read_writes import model as read_writes_model
from pgheadroom.lab.experiments.read_writes import presentation
from pgheadroom.lab.place import Place, Running, Shape
from pgheadroom.lab.reading import Result
from pgheadroom.lab.result import ComparedCells, Reference
from pgheadroom.units import PAGE_BYTES, percent

if TYPE_CHECKING:
    import psycopg

METHODS = {
    "insert": "INSERT ... SELECT",
    "copy": "COPY",
    "copy-freeze": "COPY FREEZE into a table of the same transaction",
    "insert-vacuum": "INSERT ... SELECT, then VACUUM",
    "update": "INSERT ... SELECT, VACUUM, a checkpoint, then an UPDATE of every n-th row",
}
STEPS = ("load", "vacuum", "update", "first-read", "second-read")
READS = ("first-read", "second-read")

PREDICTED = ("pages_dirtied", "wal_records", "wal_fpi", "wal_bytes")

BOOK = Reference(
    title="What the book has, on PostgreSQL 9.6",
    source="chapters 3 and 17 of the book",
    columns=("what", "figure"),
    rows=(
        ("INSERT of 100,000 integers, with the table's creation", "185 ms"),
        ("count(*) of them, the first after the load", "14.4 ms in the executor, 32.9 ms in all"),
    ),
    note="it says that the first count also writes hint bits, but not how much; without "
    "checksums, its default then, that is no WAL",
)

MEASURES = (
    *beside(
        Measure(
            name="pages_dirtied",
            description="pages that the step made dirty, as EXPLAIN counts them",
            unit="pages",
            better="lower",
        ),
        Measure(name="wal_records", description="WAL records of the step", better="lower"),
        Measure(name="wal_fpi", description="full-page images among them", better="lower"),
        Measure(
            name="wal_bytes",
            description="WAL bytes of the step; of a read without, of other steps with its COMMIT",
            unit="bytes",
            better="lower",
        ),
        names=PREDICTED,
    ),
    Measure(
        name="wal_frac_of_heap",
        description="WAL bytes over the bytes of the table",
        better="lower",
    ),
    Measure(name="heap_pages", description="pages of the table after the step", unit="pages"),
    Measure(
        name="step_ms",
        description="time of the statement, fsync off and everything in memory",
        unit="ms",
        better="lower",
    ),
)


class ReadWrites(Comparing):
    """See the module's docstring."""

    name = "read-writes"
    order = 90
    title = "What the first read writes"
    topic = "The write-ahead log"
    question = "How many pages does the first read of fresh rows dirty, and how much WAL is that?"
    source = "S3: the book, chapters 3, 5, 11 and 17 (hint bits; B3.3, B17.10, B17.14)"
    time_needed = "under a minute at scale 1, about 4 at scale 10"
    scale_default = 1
    scale_meaning = "rows / 100,000; about 10 MB each"
    factors = (
        shared.told("method", METHODS),
        Factor(
            name="checksums",
            description="data checksums, chosen at initdb",
            default=("on", "off"),
            words=("on", "off"),
        ),
        Factor(
            name="wal_log_hints",
            description="the server's setting",
            default=("off", "on"),
            words=("off", "on"),
        ),
        Factor(name="full_page_writes", description="the server's setting", words=("on", "off")),
        Factor(
            name="step",
            description="steps that are reported",
            default=STEPS,
            words=STEPS,
        ),
    )
    options = (
        plain_rows.FILLER_OPTION,
        Factor(
            name="update_every",
            description="the UPDATE of method update changes every n-th row",
            default=(10,),
            bounds=(2, 1000),
            single=True,
        ),
    )
    measures = MEASURES
    compared = ("step_ms",)
    documents = (BOOK,)
    steps = STEPS
    own_server = "read-writes chooses checksums and when checkpoints happen"
    figures = presentation.FIGURES

    def repetitions_default(self, scale: int) -> int:  # noqa: ARG002 - the same at every scale
        """One: there is nothing random in it but the time, which asks for five."""
        return 1

    def reference(self, request: Request, cell: TrialCell) -> TrialCell:  # noqa: ARG002
        """The second read of the same."""
        return {**cell, "step": "second-read"}

    def is_controlled(self, request: Request, cell: TrialCell) -> bool:  # noqa: ARG002
        """None is: counters repeat, and the second read is beside each first one."""
        return False

    def pairs(self, request: Request) -> list[tuple[TrialCell, TrialCell]]:
        """The first read against the second, where there is more than one."""
        firsts = [cell for cell in request.cells() if cell["step"] == "first-read"]
        return [(cell, self.reference(request, cell)) for cell in firsts if request.repetitions > 1]

    def trial_s(self, request: Request) -> float:
        """Starting, loading, reading."""
        return 1 + 0.5 * request.scale

    def shape_name(self, trial: Trial) -> str:
        """An empty cluster with or without checksums."""
        return f"empty-{trial.cell['checksums']}"

    def measure(self, request: Request, place: Place, trial: Trial) -> TrialOutcome:
        """Load, treat, checkpoint, read twice."""
        cell = trial.cell
        rows = request.scale * plain_rows.ROWS_PER_SCALE
        method = str(cell["method"])
        full_page_writes = str(cell.get("full_page_writes", "on"))
        plan = read_writes_model.expected(
            rows=rows,
            row_bytes=plain_rows.row_bytes(int(request.options["filler_length"])),
            update_every=int(request.options["update_every"]) if method == "update" else None,
            is_settled=method in ("copy-freeze", "insert-vacuum"),
            has_free_space_map=not method.startswith("copy"),
            logs_hints="on" in (cell["checksums"], cell["wal_log_hints"]),
            full_page_writes=full_page_writes == "on",
            major=place.version.major,
        )
        data_bytes = plan.heap_pages * PAGE_BYTES * 2
        shape = Shape(
            name=self.shape_name(trial),
            load=_no_load,
            bytes_expected=data_bytes,
            data_checksums=cell["checksums"] == "on",
        )
        # A scan of more than a quarter of shared_buffers goes round a ring of few buffers
        # (initscan, heapam.c), and writes pages whose hints it has set to make room for others.
        ring_free_bytes = plan.heap_pages * PAGE_BYTES * 4
        settings = {
            **plain_rows.quiet_settings(ring_free_bytes, place.memory_bytes),
            "wal_log_hints": str(cell["wal_log_hints"]),
            "full_page_writes": full_page_writes,
        }
        found: dict[int, dict[str, float | None]] = {}
        with place.running(shape, settings) as server:
            environment = describe_server(server)
            _require_checksums(environment, str(cell["checksums"]))
            for step, run in _treatments(request, method, rows):
                if step == "update":
                    server.checkpoint()
                found[STEPS.index(step)] = _counted(server, run)
            server.checkpoint()
            before = plain_rows.wal_counters(server)
            for step in READS:
                with server.connect() as connection:
                    found[STEPS.index(step)] = _read(connection, rows)
            plain_rows.wal_counters(server).since(before)
        _require_pages(found, plan.heap_pages, exact=not method.startswith("copy"))
        for name in PREDICTED:
            found[STEPS.index("first-read")][f"predicted_{name}"] = getattr(plan, name)
            found[STEPS.index("second-read")][f"predicted_{name}"] = 0
        return TrialOutcome(measures=rounds.flat(found), environment=environment)

    def findings(
        self,
        request: Request,  # noqa: ARG002
        cells: Sequence[dict[str, Any]],
        comparisons: Sequence[ComparedCells],
    ) -> list[str]:
        """What each first read wrote, measured beside predicted; its time against the second."""
        return [
            *counts_as_predicted(cells, PREDICTED, _label),
            *_findings(cells),
            *differences(comparisons, "Time of the first read", _label),
        ]

    def answer(self, result: Result) -> str | None:
        """As `presentation` has it."""
        return presentation.answer(result)


def _no_load(server: Running) -> None:
    """Trials load themselves; what belongs to every cluster is in initdb's."""


def _require_checksums(environment: ServerFound, wanted: str) -> None:
    found = environment.build.get("data_checksums")
    if found != wanted:
        raise MeasurementInvalid(f"data_checksums is {found}, expected {wanted}")


def _treatments(request: Request, method: str, rows: int) -> list[tuple[str, Any]]:
    """What happens before the checkpoint, step by step, each a function of a connection."""
    length = int(request.options["filler_length"])
    load = functools.partial(_load, method=method, rows=rows, length=length)
    vacuum = functools.partial(_execute, statement=f"VACUUM {TABLE}", status="VACUUM")
    every = int(request.options["update_every"])
    update = functools.partial(
        _execute,
        statement=f"UPDATE {TABLE} SET v = v WHERE k % {every} = 0",
        status=f"UPDATE {rows // every}",
    )
    steps = [("load", load)]
    if method in ("insert-vacuum", "update"):
        steps.append(("vacuum", vacuum))
    if method == "update":
        steps.append(("update", update))
    return steps


def _load(connection: psycopg.Connection[Any], *, method: str, rows: int, length: int) -> None:
    create = (
        f"CREATE TABLE {TABLE} (k int NOT NULL, v char({length})) WITH (autovacuum_enabled = off)"
    )
    if not method.startswith("copy"):
        connection.execute(create.encode())
        _execute(
            connection,
            statement=f"INSERT INTO {TABLE} SELECT i, left(repeat(md5(i::text), {length // 32 + 1})"
            f", {length}) FROM generate_series(1, {rows}) i",
            status=f"INSERT 0 {rows}",
        )
        return
    options = " WITH (FREEZE)" if method == "copy-freeze" else ""
    with connection.transaction():
        connection.execute(create.encode())
        cursor = connection.cursor()
        with cursor.copy(f"COPY {TABLE} FROM STDIN{options}".encode()) as copy:
            for block in plain_rows.copy_blocks(rows, length):
                copy.write(block)
    if cursor.rowcount != rows:
        raise MeasurementInvalid(f"COPY loaded {cursor.rowcount} rows, expected {rows}")


def _execute(connection: psycopg.Connection[Any], *, statement: str, status: str) -> None:
    done = connection.execute(statement.encode()).statusmessage
    if done != status:
        raise MeasurementInvalid(f"{statement[:40]}... ended with {done}, expected {status}")


def _counted(server: Running, run: Any) -> dict[str, float | None]:
    """A step between two readings of pg_stat_wal."""
    start = plain_rows.wal_counters(server)
    began = time.perf_counter()
    with server.connect() as connection:
        run(connection)
    took = time.perf_counter() - began
    wal = plain_rows.wal_counters(server).since(start)
    with server.connect() as connection:
        pages = plain_rows.relation_pages(connection)
    return {
        "wal_records": wal.records,
        "wal_fpi": wal.images,
        "wal_bytes": wal.size_bytes,
        "wal_frac_of_heap": wal.size_bytes / (pages * PAGE_BYTES),
        "heap_pages": pages,
        "step_ms": took * 1000,
    }


def _read(connection: psycopg.Connection[Any], rows: int) -> dict[str, float | None]:
    """One sequential scan under EXPLAIN, in a session of its own."""
    map_pages = plain_rows.map_pages(connection)
    row = connection.execute(
        f"EXPLAIN (ANALYZE, BUFFERS, WAL, TIMING OFF, FORMAT JSON) SELECT k FROM {TABLE}"
    ).fetchone()
    assert row is not None, "EXPLAIN returns one row"
    plan = row[0][0]["Plan"]
    if plan["Node Type"] != "Seq Scan":
        raise MeasurementInvalid(f"the table was read by {plan['Node Type']}, expected Seq Scan")
    if plan["Actual Rows"] != rows:
        raise MeasurementInvalid(f"the scan found {plan['Actual Rows']} rows, expected {rows}")
    # Pages by which a fork grows count as written (ExtendBufferedRelShared, bufmgr.c): from 19 on a
    # read that prunes makes the visibility map, and the free space map of what it finds empty.
    written_pages = plan["Shared Written Blocks"] - (plain_rows.map_pages(connection) - map_pages)
    if written_pages > 0:
        raise MeasurementInvalid(
            f"{written_pages} pages were written to make room: the table does not "
            "fit into shared_buffers; take a smaller `scale`",
            mentions=("scale",),
        )
    pages = plain_rows.relation_pages(connection)
    touched = plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]
    if touched < pages:
        raise MeasurementInvalid(f"the scan touched {touched} of {pages} pages")
    return {
        "pages_dirtied": plan["Shared Dirtied Blocks"],
        "wal_records": plan["WAL Records"],
        "wal_fpi": plan["WAL FPI"],
        "wal_bytes": plan["WAL Bytes"],
        "wal_frac_of_heap": plan["WAL Bytes"] / (pages * PAGE_BYTES),
        "heap_pages": pages,
        "step_ms": row[0][0]["Execution Time"],
    }


def _require_pages(
    found: dict[int, dict[str, float | None]], expected: int, *, exact: bool
) -> None:
    """COPY may leave pages at the end of the table that nothing was put into, from 16 on."""
    pages = int(found[STEPS.index("second-read")]["heap_pages"] or 0)
    if pages < expected or (exact and pages != expected):
        raise MeasurementInvalid(
            f"{TABLE} has {pages} pages before it is read, expected {expected}: "
            "not the intended table"
        )


def _label(cell: Mapping[str, Any]) -> str:
    names = ("method", "checksums", "wal_log_hints", "full_page_writes", "step")
    return ", ".join(
        str(cell[name]) if name in ("method", "step") else f"{name} {cell[name]}"
        for name in names
        if name in cell
    )


def _findings(cells: Sequence[dict[str, Any]]) -> list[str]:
    """A sentence for each first read, cells with equal outcome together."""
    groups: dict[tuple[Any, ...], list[str]] = {}
    for cell in cells:
        if cell["step"] != "first-read" or cell["wal_bytes"] is None:
            continue
        settings = ", ".join(
            f"{name} {cell[name]}"
            for name in ("checksums", "wal_log_hints", "full_page_writes")
            if name in cell
        )
        outcome = (cell["method"], cell["pages_dirtied"], cell["wal_fpi"], cell["wal_bytes"])
        groups.setdefault((*outcome, cell["wal_frac_of_heap"]), []).append(settings)
    said = []
    for (method, dirtied, images, size, share), settings_of in groups.items():
        kind = "image" if images == 1 else "images"
        wrote = (
            f"writes {size:,} bytes of WAL with {images:,} {kind}, {percent(share)} of the "
            "table's size"
            if size
            else "writes no WAL"
        )
        said.append(
            f"({method}) The first read dirties {dirtied:,} pages and {wrote}; "
            f"with {' or '.join(settings_of)}."
        )
    return said


EXPERIMENT = ReadWrites()
