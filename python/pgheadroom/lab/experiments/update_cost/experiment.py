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
from typing import Any

from pgheadroom import _core
from pgheadroom.errors import InputError, MeasurementInvalid, UnsupportedServer
from pgheadroom.lab.counters import table_counters, uncounted
from pgheadroom.lab.design import Cell, Factor, Measure, Request, Trial, interleave
from pgheadroom.lab.environment import describe_server
from pgheadroom.lab.experiment import Experiment, Summary, TrialOutcome
from pgheadroom.lab.experiments.update_cost import predicted as update_cost_predicted
from pgheadroom.lab.experiments.update_cost import presentation
from pgheadroom.lab.experiments.update_cost import summary as update_cost_summary
from pgheadroom.lab.experiments.update_cost.predicted import (
    CHANGE_SPAN,
    ROWS_PER_SCALE,
    ROWS_PER_UPDATED_ROW,
)
from pgheadroom.lab.place import Place, Running, Shape
from pgheadroom.lab.predicted import measures_of
from pgheadroom.lab.presentation import FigureForm, TableForm
from pgheadroom.lab.reading import Result
from pgheadroom.lab.record import TrialSample
from pgheadroom.types import PgVersion
from pgheadroom.units import PAGE_BYTES, setting_bytes

TABLE = "pgbench_accounts"

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


def row_bytes(filler_length: int) -> int:
    """Heap tuple length of a row (int, int, char(filler_length), int), header included."""
    return _core.heap_tuple_bytes(
        [("int4", 4), ("int4", 4), ("bpchar", filler_length), ("int4", 4)]
    )


class UpdateCost(Experiment):
    """See the module's docstring."""

    name = "update-cost"
    order = 10
    title = "What one UPDATE costs"
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
        bytes_of_row = row_bytes(int(cell["filler_length"]))
        heap_pages = _core.heap_pages(rows, bytes_of_row, int(cell["fillfactor"]))
        shape = Shape(
            name=self.shape_name(trial),
            load=functools.partial(_load, scale=request.scale, cell=cell),
            bytes_expected=heap_pages * PAGE_BYTES + rows * 25 * (1 + int(cell.get("indexes", 0))),
        )
        settings = {
            **_base_settings(shape.bytes_expected, place.memory_bytes),
            "full_page_writes": str(cell.get("full_page_writes", "off")),
            "wal_compression": str(cell.get("wal_compression", "off")),
        }
        with place.running(shape, settings) as server:
            if _is_timed(request):
                _warm(server)
            outcome = _explain_update(server, request, trial)
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


def _is_control(request: Request, cell: Cell) -> bool:
    """Whether a cell has an A/A arm."""
    return cell == update_cost_summary.control_of(request, cell)


def _base_settings(data_bytes: int, memory_bytes: int) -> dict[str, str]:
    """No checkpoint, vacuum or eviction inside; buffers for the data, at most half the memory."""
    shared_bytes = min(max(int(data_bytes * 1.3), 128 * 1024**2), memory_bytes // 2)
    return {
        "shared_buffers": setting_bytes(shared_bytes),
        "autovacuum": "off",
        "checkpoint_timeout": "1d",
        "max_wal_size": "1TB",
        "synchronize_seqscans": "off",
        "jit": "off",
        "max_parallel_workers_per_gather": "0",
        "bgwriter_lru_maxpages": "0",
        "fsync": "off",
    }


def _load(server: Running, *, scale: int, cell: dict[str, Any]) -> None:
    """The document's statements."""
    with server.connect() as connection:
        connection.execute(
            f"CREATE TABLE {TABLE} (aid int PRIMARY KEY, bid int, "
            f"filler char({int(cell['filler_length'])}), abalance int) "
            f"WITH (fillfactor = {int(cell['fillfactor'])})"
        )
        connection.execute(
            f"INSERT INTO {TABLE} (aid, bid, filler, abalance) "
            f"SELECT aid, (aid - 1) / 100000 + 1, '', 0 "
            f"FROM generate_series(1, {scale} * {ROWS_PER_SCALE}) AS aid"
        )
        if server.cluster is None:
            # A borrowed server's autovacuum is on, and would vacuum in the middle of a trial.
            connection.execute(f"ALTER TABLE {TABLE} SET (autovacuum_enabled = off)")
        for number in range(1, int(cell.get("indexes", 0)) + 1):
            connection.execute(f"CREATE INDEX {TABLE}_aid_{number} ON {TABLE} (aid)")
        if (column := cell.get("indexed_column", "none")) != "none":
            connection.execute(f"CREATE INDEX {TABLE}_{column} ON {TABLE} ({column})")
        connection.execute(f"VACUUM (ANALYZE) {TABLE}")
    server.checkpoint()


def _warm(server: Running) -> None:
    """
    Read the table and each index into shared buffers.

    The server has no pg_prewarm, and the planner takes one of equal indexes: so the others are
    dropped in a transaction that is rolled back. Nothing of the table or its indexes changes.
    """
    with server.connect() as connection:
        names = [
            name
            for (name,) in connection.execute(
                "SELECT indexrelid::regclass::text FROM pg_index "
                "WHERE indrelid = %s::regclass AND NOT indisprimary ORDER BY 1",
                (TABLE,),
            )
        ]
        connection.execute("SET enable_seqscan = off")
        connection.execute("SET enable_bitmapscan = off")
        for kept in (None, *names):
            with connection.transaction(force_rollback=True):
                for name in names:
                    if name != kept:
                        connection.execute(f"DROP INDEX {name}")
                if kept is None:
                    # The filler makes it an index scan, which reads every heap page as well.
                    connection.execute(f"SELECT max(filler) FROM {TABLE} WHERE aid > 0")
                else:
                    connection.execute(f"ALTER TABLE {TABLE} DROP CONSTRAINT {TABLE}_pkey")
                    connection.execute(f"SELECT count(aid) FROM {TABLE} WHERE aid > 0")


def _change(request: Request, version: PgVersion) -> tuple[str, dict[str, str]]:
    """SQL of what is added to abalance, and what had to be assumed for it."""
    change = request.options["change"]
    if change != "random":
        return str(int(change)), {}
    if version.major >= 17:
        return f"random({-CHANGE_SPAN}, {CHANGE_SPAN})", {}
    return f"(floor(random() * {2 * CHANGE_SPAN + 1})::int - {CHANGE_SPAN})", {
        "random(-5000, 5000)": "before PostgreSQL 17: floor(random() * 10001)::int - 5000, "
        "the same distribution"
    }


def _explain_update(server: Running, request: Request, trial: Trial) -> TrialOutcome:
    change, assumed = _change(request, server.version)
    statement = (
        f"EXPLAIN (ANALYZE, BUFFERS, WAL, FORMAT JSON) UPDATE {TABLE} "
        f"SET bid = bid + {int(trial.cell['update_bid'])}, abalance = abalance + {change} "
        f"WHERE mod(aid, {ROWS_PER_UPDATED_ROW}) = 1"
    )
    before = table_counters(server, TABLE)
    with server.connect() as connection:
        for setting in ("jit", "synchronize_seqscans"):
            connection.execute(f"SET {setting} = off")
        connection.execute("SET max_parallel_workers_per_gather = 0")
        draw = update_cost_predicted.setseed_of(request, trial)
        connection.execute("SELECT setseed(%s)", (draw,))
        row = connection.execute(statement).fetchone()
    assert row is not None, "EXPLAIN returns one row"
    after = table_counters(server, TABLE)
    plan = row[0][0]["Plan"]
    updated = after.n_tup_upd - before.n_tup_upd
    _verify(plan, updated, request.scale * ROWS_PER_SCALE // ROWS_PER_UPDATED_ROW)
    if after.checkpoints != before.checkpoints:
        raise MeasurementInvalid("a checkpoint began during the UPDATE: its counts mean nothing")
    hot = after.n_tup_hot_upd - before.n_tup_hot_upd
    newpage = (
        None
        if after.n_tup_newpage_upd is None or before.n_tup_newpage_upd is None
        else after.n_tup_newpage_upd - before.n_tup_newpage_upd
    )
    scan = plan["Plans"][0]
    measures: dict[str, float | None] = {
        "pages_dirtied": plan["Shared Dirtied Blocks"],
        "wal_records": plan["WAL Records"],
        "wal_bytes": plan["WAL Bytes"],
        "wal_bytes_per_update": plan["WAL Bytes"] / updated,
        "wal_fpi": plan["WAL FPI"],
        "update_ms": round(plan["Actual Total Time"] - scan["Actual Total Time"], 3),
        "execution_ms": row[0][0]["Execution Time"],
        "n_tup_upd": updated,
        "n_tup_hot_upd": hot,
        "n_tup_newpage_upd": newpage,
        "hot_frac": hot / updated,
        "newpage_frac": None if newpage is None else newpage / updated,
        "heap_pages_before": before.heap_pages,
        "heap_pages": after.heap_pages,
        "index_pages": after.index_pages,
    }
    assumed |= uncounted(server.version)
    return TrialOutcome(measures=measures, assumed={**server.assumed, **assumed})


def _verify(plan: dict[str, Any], updated: int, expected: int) -> None:
    """The plan must be the document's, and every intended row updated exactly once."""
    found = (plan["Node Type"], plan["Plans"][0]["Node Type"])
    if found != ("ModifyTable", "Seq Scan"):
        raise MeasurementInvalid(
            f"the UPDATE ran as {' over '.join(found)}, expected ModifyTable over Seq Scan"
        )
    if updated != expected:
        raise MeasurementInvalid(
            f"{updated} rows were updated, expected {expected}: the table is not as loaded"
        )


EXPERIMENT = UpdateCost()
