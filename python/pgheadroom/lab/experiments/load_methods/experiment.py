"""
Experiment `load-methods`: the same rows loaded in every way that a DBA has.

What it takes in time and WAL, what table and index look like afterwards, and what the first VACUUM
still has to write. With wal_level minimal a table that its transaction has created is not logged
but synced, which only shows where the load happens so.

fsync is on throughout. Pages are predicted by arithmetic; the WAL of a load holds the catalogs'
part too where the table is created in it, so it is measured only.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Mapping, Sequence
from typing import Any

from pgheadroom import _core
from pgheadroom.errors import MeasurementInvalid
from pgheadroom.lab import rounds
from pgheadroom.lab.base import plain_rows
from pgheadroom.lab.base import shared_factors as shared
from pgheadroom.lab.base.comparing import Comparing
from pgheadroom.lab.base.exact_counts import beside, counts_as_predicted
from pgheadroom.lab.contrast import differences
from pgheadroom.lab.design import Factor, Measure, Request, Trial, TrialCell
from pgheadroom.lab.environment import describe_server
from pgheadroom.lab.experiment import TrialOutcome
from pgheadroom.lab.experiments.load_methods import model as load_model
from pgheadroom.lab.experiments.load_methods import presentation
from pgheadroom.lab.experiments.load_methods import script as load_script
from pgheadroom.lab.experiments.load_methods.script import METHODS, TABLE, VALUE_BYTES
from pgheadroom.lab.place import Place, Running, Shape
from pgheadroom.lab.reading import Result
from pgheadroom.lab.result import ComparedCells, Reference

ROWS_PER_SCALE = 20_000
_DATA_MIN_BYTES = 300 * 1024**2
"""What shared_buffers are made for at least. A session may pin its share of them only, and by that
many pages SET LOGGED can extend, less what its scan has pinned ahead (17 and later)."""

STEPS = {"load": "the load, with its index", "vacuum": "the first VACUUM afterwards"}
PREDICTED = ("heap_pages", "index_pages")

BOOK = Reference(
    title="What the book has",
    source="chapters 10, 12 and 17 of the book",
    columns=("what", "figure"),
    rows=(
        ("COPY of 10,000,000 rows, plain", "7,060 ms"),
        ("the same with FREEZE", "5,458 ms (0.77 times)"),
        ("COPY without WAL (wal_level minimal)", "WAL 0, 86 to 88 MB/s over three disks"),
        ("ranking, slow to fast", "single INSERTs, batches of rows, one COPY"),
        ("indexes", "dropped before the load, rebuilt after: faster and less fragmented"),
    ),
    note="its COPY FREEZE set no visibility map, which it does from 14 on",
)

MEASURES = (
    Measure(
        name="step_ms",
        description="time of the step, commits and syncs included",
        unit="ms",
        better="lower",
    ),
    Measure(
        name="wal_bytes_per_row",
        description="WAL bytes of the step per row, commits and catalogs included",
        unit="bytes",
        better="lower",
    ),
    Measure(
        name="wal_records_per_row", description="WAL records of the step per row", better="lower"
    ),
    Measure(name="wal_fpi", description="full-page images in the step", better="lower"),
    *beside(
        Measure(
            name="heap_pages",
            description="pages of the table after the step",
            unit="pages",
            better="lower",
        ),
        Measure(
            name="index_pages",
            description="pages of the index after the step, its metapage included",
            unit="pages",
            better="lower",
        ),
        names=PREDICTED,
    ),
)


class LoadMethods(Comparing):
    """See the module's docstring."""

    name = "load-methods"
    order = 110
    title = "Ways to load a table"
    topic = "Loading"
    question = "What does each way to load the same rows cost, and what does it leave to do?"
    source = "S3: the book, chapters 10, 12 and 17 (B10.18, B12.9, B17.1, B17.4, B17.7, B17.10)"
    time_needed = "about 10 minutes at scale 1, most of it INSERTs with a commit each"
    scale_default = 1
    scale_meaning = "rows / 20,000; about 3 MB each"
    factors = (
        shared.told("method", METHODS),
        Factor(
            name="index",
            description="a unique index on the key: none, before the load, after it",
            default=("after", "before"),
            words=("none", "before", "after"),
        ),
        Factor(
            name="order",
            description="order of the keys in the data",
            default=("ascending",),
            words=("ascending", "random"),
        ),
        Factor(
            name="wal_level",
            description="the server's setting",
            default=("replica", "minimal"),
            words=("replica", "minimal"),
        ),
        Factor(
            name="checksums",
            description="data checksums, chosen at initdb; as initdb has them if not set",
            words=("on", "off"),
        ),
        shared.told("step", STEPS),
    )
    options: tuple[Factor, ...] = ()
    measures = MEASURES
    compared = ("step_ms",)
    documents = (BOOK,)
    steps = tuple(STEPS)
    own_server = "load-methods chooses wal_level and when checkpoints happen"
    figures = presentation.FIGURES

    def reference(self, request: Request, cell: TrialCell) -> TrialCell:
        """The same load by the method that others are compared with: COPY if it is among them."""
        methods = request.levels["method"]
        return {**cell, "method": "copy" if "copy" in methods else methods[0]}

    def is_controlled(self, request: Request, cell: TrialCell) -> bool:
        """That method, where there are blocks to compare."""
        return request.repetitions > 1 and super().is_controlled(request, cell)

    def pairs(self, request: Request) -> list[tuple[TrialCell, TrialCell]]:
        """Methods against the reference, index before against after, minimal against replica."""
        loads = [cell for cell in request.cells() if cell["step"] == "load"]
        pairs: list[tuple[TrialCell, TrialCell]] = [
            (cell, self.reference(request, cell)) for cell in loads
        ]
        for factor, first, second in (
            ("index", "after", "before"),
            ("wal_level", "replica", "minimal"),
        ):
            if {first, second} <= set(request.levels[factor]):
                pairs += [
                    (cell, {**cell, factor: first}) for cell in loads if cell[factor] == second
                ]
        return pairs

    def trial_s(self, request: Request) -> float:
        """Starting, loading; a commit a row takes the longest."""
        share = ("insert" in request.levels["method"]) / len(request.levels["method"])
        return 1.5 + request.scale * (0.5 + 10 * share)

    def shape_name(self, trial: Trial) -> str:
        """The source of INSERT ... SELECT lies in the order of the data."""
        return f"source-{trial.cell['order']}-{trial.cell.get('checksums', 'default')}"

    def measure(self, request: Request, place: Place, trial: Trial) -> TrialOutcome:
        """Load, vacuum, count the rows."""
        cell = trial.cell
        method, index = str(cell["method"]), str(cell["index"])
        rows = request.scale * ROWS_PER_SCALE
        order_keys = load_script.keys(rows, str(cell["order"]))
        tuple_bytes = _core.heap_tuple_bytes([("int4", 4), ("text", VALUE_BYTES)])
        data_bytes = rows * (tuple_bytes + 40)
        shape = Shape(
            name=self.shape_name(trial),
            load=functools.partial(load_script.load_source, order_keys=order_keys),
            bytes_expected=data_bytes * 2,
            data_checksums=cell["checksums"] == "on" if "checksums" in cell else None,
        )
        settings = {
            **plain_rows.quiet_settings(max(data_bytes * 2, _DATA_MIN_BYTES), place.memory_bytes),
            "max_connections": "20",
            "wal_level": str(cell["wal_level"]),
            "fsync": "on",
        }
        if cell["wal_level"] == "minimal":
            settings["max_wal_senders"] = "0"
        plan = load_model.expected(
            order_keys,
            tuple_bytes=tuple_bytes,
            value_bytes=VALUE_BYTES + 1,
            method=method,
            index=index,
            extends_by_many=place.version.major >= 16,
        )
        with place.running(shape, settings) as server:
            environment = describe_server(server)
            with server.connect() as connection:
                if method not in ("copy-new", "copy-freeze"):
                    load_script.create(connection, method, index)
                # Read first, so that the time of no method depends on who warms its pages.
                plain_rows.require_rows(connection, rows, table=load_script.SOURCE)
            server.checkpoint()
            start = plain_rows.wal_counters(server)
            took = load_script.load(server, method, index, order_keys)
            loaded = _step(server, start, took, rows, index)
            start = plain_rows.wal_counters(server)
            vacuumed = _step(server, start, _vacuum(server), rows, index)
            with server.connect() as connection:
                plain_rows.require_rows(connection, rows, table=TABLE)
        found = {0: loaded, 1: vacuumed}
        for number, heap_pages in enumerate((plan.heap, plan.vacuumed)):
            found[number]["predicted_heap_pages"] = heap_pages
            found[number]["predicted_index_pages"] = plan.index
        return TrialOutcome(measures=rounds.flat(found), environment=environment)

    def findings(
        self,
        request: Request,  # noqa: ARG002
        cells: Sequence[dict[str, Any]],
        comparisons: Sequence[ComparedCells],
    ) -> list[str]:
        """Pages beside predictions, WAL, times."""
        return [
            *counts_as_predicted(cells, PREDICTED, _label),
            *_wal_sentences(cells),
            *differences(comparisons, "Time", _label),
        ]

    def answer(self, result: Result) -> str | None:
        """As `presentation` has it."""
        return presentation.answer(result)


def _vacuum(server: Running) -> float:
    with server.connect() as connection:
        start = time.perf_counter()
        connection.execute(f"VACUUM {TABLE}")
        return (time.perf_counter() - start) * 1000


def _step(
    server: Running, start: plain_rows.WalMoment, took_ms: float, rows: int, index: str
) -> dict[str, float | None]:
    wal = plain_rows.wal_counters(server).since(start)
    with server.connect() as connection:
        heap_pages = plain_rows.relation_pages(connection, TABLE)
        index_pages = 0
        if index != "none":
            index_pages = plain_rows.relation_pages(connection, f"{TABLE}_k")
        row = connection.execute(
            "SELECT relpersistence FROM pg_class WHERE oid = %s::regclass", (TABLE,)
        ).fetchone()
    if row is None or row[0] not in ("p", b"p"):
        raise MeasurementInvalid(f"{TABLE} is no permanent table after the load: found {row}")
    return {
        "step_ms": took_ms,
        "wal_bytes_per_row": wal.size_bytes / rows,
        "wal_records_per_row": wal.records / rows,
        "wal_fpi": wal.images,
        "heap_pages": heap_pages,
        "index_pages": index_pages,
    }


def _label(cell: Mapping[str, Any]) -> str:
    index = "no index" if cell["index"] == "none" else f"index {cell['index']}"
    parts = [str(cell["method"]), index]
    parts += [f"{cell['order']} keys", f"wal_level {cell['wal_level']}"]
    if "checksums" in cell:
        parts.append(f"checksums {cell['checksums']}")
    if cell["step"] != "load":
        parts.append("the first VACUUM")
    return ", ".join(parts)


def _wal_sentences(cells: Sequence[dict[str, Any]]) -> list[str]:
    """For each group of loads the WAL of a row, beside that of the VACUUM; then what stands out."""
    vacuums = {_label({**cell, "step": "load"}): cell for cell in cells if cell["step"] == "vacuum"}
    wal: dict[str, list[str]] = {}
    left: dict[str, None] = {}
    hinted: dict[str, list[str]] = {}
    for cell in cells:
        after = vacuums.get(_label({**cell, "step": "load"}))
        if cell["step"] != "load" or after is None or cell["wal_bytes_per_row"] is None:
            continue
        wal.setdefault(_group(cell), []).append(
            f"{cell['method']} {cell['wal_bytes_per_row']:.1f} + {after['wal_bytes_per_row']:.1f}"
        )
        empty = cell["heap_pages"] - after["heap_pages"]
        if empty:
            left[f"{cell['method']} {empty:,} of {cell['heap_pages']:,}"] = None
        pages = after["heap_pages"]
        for reader, step in (("CREATE INDEX", cell), ("the first VACUUM", after)):
            if cell["wal_level"] == "minimal" and step["wal_fpi"] >= pages / 2:
                hinted.setdefault(reader, []).append(
                    f"{cell['method']}, {_group(cell)}: {step['wal_fpi']:,} images"
                )
    said = [
        f"({group}) WAL bytes a row, of the load + of the first VACUUM: {', '.join(values)}."
        for group, values in wal.items()
    ]
    if left:
        said.append(f"Empty pages that the first VACUUM cuts off: {', '.join(left)}.")
    said += [
        f"The load was not logged, but {reader} sets hints on every page, which checksums or "
        f"wal_log_hints log ({'; '.join(where)})."
        for reader, where in hinted.items()
    ]
    return said


def _group(cell: Mapping[str, Any]) -> str:
    """What is equal in loads that are told together, in words."""
    return _label({**cell, "step": "load"}).removeprefix(f"{cell['method']}, ")


EXPERIMENT = LoadMethods()
