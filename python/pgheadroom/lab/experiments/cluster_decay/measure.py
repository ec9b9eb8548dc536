"""
Measurement of one trial of `cluster-decay`: the document's program, and what it does not show.
"""

from __future__ import annotations

import functools
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pgheadroom import _core
from pgheadroom.errors import MeasurementInvalid, UnsupportedServer
from pgheadroom.extension import objects_sql
from pgheadroom.lab import rounds
from pgheadroom.lab.checkpoints import checkpoints_begun
from pgheadroom.lab.design import LevelValue, Request, Trial
from pgheadroom.lab.environment import describe_server
from pgheadroom.lab.experiment import TrialOutcome
from pgheadroom.lab.experiments.cluster_decay.draws import (
    EXTENSION,
    MODEL,
    RANGE_KEYS,
    Draws,
    Round,
    drawn,
    modelled,
    predicted,
    row_characters,
)
from pgheadroom.lab.place import Place, Running, Shape
from pgheadroom.units import PAGE_BYTES, setting_bytes

if TYPE_CHECKING:
    import psycopg

TABLE = "testtab"
INDEX = "testtabi"
ROWS_PER_SCALE = 100_000
_INDEX_TUPLE_BYTES = 20  # an int4 key: 8 bytes of header, 8 aligned, 4 of line pointer

_SESSION = {
    "enable_seqscan": "off",
    "jit": "off",
    "max_parallel_workers_per_gather": "0",
    "synchronize_seqscans": "off",
}
"""The document's server had neither compilation nor parallel plans."""


def row_count(scale: int) -> int:
    """Rows of the table."""
    return scale * ROWS_PER_SCALE


def settings(request: Request, place: Place) -> dict[str, str]:
    """
    The document's settings in today's names.

    `checkpoint_segments = 30` is a checkpoint each 480 MB of WAL; today that is 912 MB of
    max_wal_size, of which one cycle and the spread of the next (0.9) must fit. It shrinks with the
    data, as shared_buffers do; maintenance_work_mem does not matter below the document's.
    """
    if not place.throw_away:
        return {}
    pages = int(request.options["shared_buffers_pages"]) or 1000 * request.scale
    return {
        "shared_buffers": setting_bytes(pages * PAGE_BYTES),
        "maintenance_work_mem": "160MB",
        "wal_buffers": "640kB",
        "max_wal_size": f"{max(round(91.2 * request.scale), 64)}MB",
        "min_wal_size": "32MB",
        "autovacuum": "off",
        "fsync": "on",
        **_SESSION,
    }


def _load(server: Running, *, scale: int, cell: Mapping[str, LevelValue], place: Place) -> None:
    """The document's set-up; a BRIN index takes the place of the B-tree after CLUSTER."""
    engine = "heap"
    with server.connect() as connection:
        if cell["engine"] == EXTENSION:
            connection.execute(_objects_of_extension(server, place))
            engine = EXTENSION
        connection.execute(
            f"CREATE TABLE {TABLE} (k int, d text) USING {engine} "
            f"WITH (fillfactor = {int(cell['fillfactor'])}, autovacuum_enabled = off)"
        )
        connection.execute(
            f"INSERT INTO {TABLE} SELECT x, repeat('x', {row_characters()}) "
            f"FROM generate_series(1, {row_count(scale)}) x"
        )
        connection.execute(f"CREATE INDEX {INDEX} ON {TABLE} (k)")
        connection.execute(f"CLUSTER {TABLE} USING {INDEX}")
        if cell["index"] == "brin":
            connection.execute(f"DROP INDEX {INDEX}")
            connection.execute(f"CREATE INDEX {INDEX} ON {TABLE} USING brin (k)")
        connection.execute(f"VACUUM (ANALYZE) {TABLE}")
    server.checkpoint()


def _objects_of_extension(server: Running, place: Place) -> str:
    """
    Statements by which the server has the access method.

    A throw-away server gets a library that is built for it and lies beside its clusters, so that
    nothing is installed.
    """
    if EXTENSION in place.contrib:
        return f"CREATE EXTENSION {EXTENSION}"
    if server.host is None:
        raise UnsupportedServer(
            f"engine={EXTENSION} needs the extension {EXTENSION}, which PostgreSQL {place.version} "
            "there does not have: install the extension into that server, or leave the engine out"
        )
    return objects_sql(server.host.programs, server.host.folder / EXTENSION)


def measure(request: Request, place: Place, trial: Trial, shape_name: str) -> TrialOutcome:
    """
    Play the rounds of one cell.

    Raises:
        MeasurementInvalid: A statement touched another number of rows than it must, or ran by
            another plan than the one that is measured.
        UnsupportedServer: The engine is not installed, or the twin does not have the version.
        ProgramMissing, LabError: The extension cannot be built for a throw-away server.
    """
    cell = trial.cell
    rows = row_count(request.scale)
    if cell["engine"] == MODEL:
        states = modelled(trial, drawn(request, trial, rows), rows, place.version)
        said = {f"engine {MODEL}": "the twin's model, nothing ran on the server"}
        return TrialOutcome(measures=rounds.flat(states), assumed=said)
    tuple_bytes = _core.heap_tuple_bytes([("int4", 4), ("text", row_characters())])
    heap_pages = _core.heap_pages(rows, tuple_bytes, int(cell["fillfactor"]))
    shape = Shape(
        name=shape_name,
        load=functools.partial(_load, scale=request.scale, cell=cell, place=place),
        # CLUSTER and the copies that the rounds make: half as much again.
        bytes_expected=int(1.5 * (heap_pages * PAGE_BYTES + rows * _INDEX_TUPLE_BYTES)),
    )
    with place.running(shape, settings(request, place)) as server:
        environment = describe_server(server)
        with server.connect() as connection:
            _prepare_session(connection, request, cell)
            draws = drawn(request, trial, rows)
            found = _Program(server, connection, request, trial, draws).play()
        assumed = dict(server.assumed)
    if request.options["index_only"] == "off":
        assumed["enable_indexonlyscan"] = "off: the document's server had no index-only scans"
    for number, measures in enumerate(predicted(trial, draws, rows, place.version)):
        found[number].update(measures)
    return TrialOutcome(measures=rounds.flat(found), assumed=assumed, environment=environment)


def _prepare_session(
    connection: psycopg.Connection[Any], request: Request, cell: Mapping[str, LevelValue]
) -> None:
    wanted = {
        **_SESSION,
        "enable_bitmapscan": "on" if cell["index"] == "brin" else "off",
        "enable_indexonlyscan": str(request.options["index_only"]),
    }
    for name, value in wanted.items():
        connection.execute(f"SET {name} = {value}")


@dataclass(kw_only=True)
class _Spent:
    """What a statement took; filled in when it has ended."""

    ms: float = 0.0
    wal_bytes: int = 0
    rows: int = 0
    extra: dict[str, float] = field(default_factory=dict)


class _Program:
    """The document's program, once through."""

    def __init__(
        self,
        server: Running,
        connection: psycopg.Connection[Any],
        request: Request,
        trial: Trial,
        draws: Draws,
    ) -> None:
        self._server = server
        self._connection = connection
        self._request = request
        self._cell = trial.cell
        self._rows = row_count(request.scale)
        self._churned = self._rows * int(trial.cell["churn_pct"]) // 100
        self._draws = draws

    def play(self) -> dict[int, dict[str, float | None]]:
        """Measures by round; 0 is the state before the first."""
        last = max(int(level) for level in self._request.levels["round"])
        found = {0: self._state(0, self._draws.starts)}
        for number, drawn_here in enumerate(self._draws.rounds, start=1):
            found[number] = {
                **self._churn(drawn_here),
                **self._state(number, drawn_here.starts),
            }
        if self._cell["index"] == "btree":
            found[last].update(self._recluster())
        return found

    def _churn(self, drawn_here: Round) -> dict[str, float | None]:
        """DELETE, VACUUM, INSERT as in the document."""
        share = int(self._cell["churn_pct"]) / 100
        order = " ORDER BY 1" if self._cell["engine"] == "sorted" else ""
        checkpoints = checkpoints_begun(self._connection, self._server.version)
        self._seed(drawn_here.delete_seed)
        with self._spent() as delete:
            done = self._connection.execute(f"DELETE FROM {TABLE} WHERE random() < {share}")
            delete.rows = done.rowcount
        with self._spent() as vacuum:
            self._connection.execute(f"VACUUM {TABLE}")
        self._seed(drawn_here.insert_seed)
        with self._spent() as insert:
            done = self._connection.execute(
                f"INSERT INTO {TABLE} SELECT (random() * {self._rows})::int, "
                f"repeat('x', {row_characters()}) FROM generate_series(1, {self._churned}){order}"
            )
            insert.rows = done.rowcount
        if insert.rows != self._churned:
            raise MeasurementInvalid(f"{insert.rows} rows were inserted, expected {self._churned}")
        return {
            "delete_ms": delete.ms,
            "vacuum_ms": vacuum.ms,
            "insert_ms": insert.ms,
            "deleted_rows": delete.rows,
            "insert_wal_bytes": insert.wal_bytes,
            "wal_bytes": delete.wal_bytes + vacuum.wal_bytes + insert.wal_bytes,
            "checkpoints": checkpoints_begun(self._connection, self._server.version) - checkpoints,
        }

    def _state(self, number: int, starts: Sequence[int]) -> dict[str, float | None]:
        """What range queries pay now; ANALYZE comes last, since it reads much of the table."""
        times_ms = []
        for start in starts:
            with self._spent() as select:
                self._count(f"k BETWEEN {start} AND {start + RANGE_KEYS}")
            times_ms.append(select.ms)
        buffers = [self._range_buffers(start) for start in starts]
        pages = [self._range_pages(start) for start in starts]
        with self._spent() as count:
            live = self._count("true")
        if number == 0 and live != self._rows:
            raise MeasurementInvalid(f"{live} rows after loading, expected {self._rows}")
        return {
            "range_ms": statistics.median(times_ms),
            "buffers_per_range": statistics.fmean(buffers),
            "pages_per_range": statistics.fmean(pages),
            "count_ms": count.ms,
            "live_rows": live,
            **self._statistics(),
        }

    def _statistics(self) -> dict[str, float | None]:
        self._connection.execute(f"ANALYZE {TABLE} (k)")
        row = self._one(
            "SELECT s.correlation, pg_relation_size(%s::regclass) / %s, "
            "pg_relation_size(%s::regclass) / %s "
            "FROM pg_stats s WHERE s.tablename = %s AND s.attname = 'k' "
            "AND s.schemaname = current_schema()",
            (TABLE, PAGE_BYTES, INDEX, PAGE_BYTES, TABLE),
        )
        return {"correlation": row[0], "heap_pages": row[1], "index_pages": row[2]}

    def _recluster(self) -> dict[str, float | None]:
        """What it would cost to have the order again."""
        self._server.checkpoint()
        with self._spent() as spent:
            self._connection.execute(f"CLUSTER {TABLE} USING {INDEX}")
            self._connection.execute(f"VACUUM (ANALYZE) {TABLE}")
        return {"recluster_ms": spent.ms, "recluster_wal_bytes": spent.wal_bytes}

    def _range_buffers(self, start: int) -> float:
        plan = self._one(
            "EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) SELECT count(*) "
            f"FROM {TABLE} WHERE k BETWEEN {start} AND {start + RANGE_KEYS}"
        )[0][0]["Plan"]
        node = plan["Plans"][0]["Node Type"]
        expected = {"Index Scan"} if self._cell["index"] == "btree" else {"Bitmap Heap Scan"}
        if self._request.options["index_only"] == "on":
            expected = expected | {"Index Only Scan"}
        if node not in expected:
            raise MeasurementInvalid(
                f"a range SELECT ran as {node}, expected {' or '.join(sorted(expected))}"
            )
        return float(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])

    def _range_pages(self, start: int) -> float:
        row = self._one(
            "SELECT count(DISTINCT (ctid::text::point)[0]) "
            f"FROM {TABLE} WHERE k BETWEEN {start} AND {start + RANGE_KEYS}"
        )
        return float(row[0])

    def _count(self, condition: str) -> int:
        row = self._one(f"SELECT count(*) FROM {TABLE} WHERE {condition}")
        return int(row[0])

    def _seed(self, seed: float) -> None:
        self._connection.execute("SELECT setseed(%s)", (seed,))

    @contextmanager
    def _spent(self) -> Iterator[_Spent]:
        spent = _Spent()
        before = self._lsn()
        start = time.perf_counter()
        yield spent
        spent.ms = (time.perf_counter() - start) * 1000
        spent.wal_bytes = self._lsn() - before

    def _lsn(self) -> int:
        row = self._one("SELECT (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint")
        return int(row[0])

    def _one(self, query: str, parameters: tuple[LevelValue, ...] | None = None) -> Any:
        row = self._connection.execute(query, parameters).fetchone()
        if row is None:
            raise MeasurementInvalid(f"no row came back from: {query}")
        return row
