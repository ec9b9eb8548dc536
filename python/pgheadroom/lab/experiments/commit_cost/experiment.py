"""
Experiment `commit-cost`: what a commit costs, alone and in company.

A transaction inserts one row of 4 bytes, so that hardly anything but its commit takes time. One
client that waits for its commits cannot have more of them than the disk has synced writes; several
share one (group commit). With synchronous_commit off nobody waits, and the WAL writer syncs.

The disk's own rate is measured right before and after each window.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from pgheadroom import _core
from pgheadroom.errors import InputError, MeasurementInvalid
from pgheadroom.lab import driver, guards
from pgheadroom.lab.base import plain_rows
from pgheadroom.lab.base import shared_factors as shared
from pgheadroom.lab.base import wal_arithmetic as wal
from pgheadroom.lab.base.comparing import Comparing
from pgheadroom.lab.contrast import differences
from pgheadroom.lab.design import Factor, Measure, Request, Trial, TrialCell, latency_measures
from pgheadroom.lab.environment import describe_server, disk_syncs_per_s
from pgheadroom.lab.experiment import TrialOutcome
from pgheadroom.lab.experiments.commit_cost import presentation
from pgheadroom.lab.place import Place, Running, Shape
from pgheadroom.lab.reading import Result
from pgheadroom.lab.record import SecondsSeries, TrialSample
from pgheadroom.lab.result import ComparedCells, Reference
from pgheadroom.lab.series import of_window
from pgheadroom.servers.pgbench import read_logs
from pgheadroom.types import PgVersion
from pgheadroom.units import percent

TABLE = "t"
_WAL_WRITER_DELAY_MS = 200
_LOSS_DELAYS = 3
"""A commit that is not waited for is safe after three times wal_writer_delay at the latest (the
manual on asynchronous commit)."""

_BY_DATA_SYNC = ("fdatasync", "fsync")
"""Methods that sync by a call of its own, which is counted; the others sync while they write."""

BOOK = Reference(
    title="What the book has",
    source="chapters 2, 3 and 6 of the book (F1 to F4, F28)",
    columns=("what", "commits or syncs a second"),
    rows=(
        ("one client, disk of 5,400 / 7,200 / 10,000 / 15,000 rpm", "90 / 120 / 166 / 250"),
        ("measured, 7,200 rpm, write cache off", "105 (sysbench 104.8)"),
        ("the same, cache on and not safe", "1,048"),
        ("controller with battery-backed cache, one disk / RAID 0 of three", "10,212 / 10,855"),
        ("many clients, group commit", "above 500 is normal"),
        ("synchronous_commit off", "at most 600 ms of commits can be lost, by default"),
    ),
    note="far more commits than the medium can sync mean a volatile cache, and data at risk; "
    "flash with power-loss protection is the exception since",
)

MEASURES = (
    Measure(name="tps", description="commits per second", unit="1/s", better="higher"),
    Measure(
        name="predicted_tps",
        description="ceiling of one client that waits: the disk's synced writes per second",
        unit="1/s",
        evidence="predicted",
    ),
    Measure(name="ceiling_frac", description="tps over that ceiling, each trial's own", clock=True),
    Measure(
        name="disk_syncs_per_s",
        description="8 KiB writes with fdatasync per second, mean of right before and after",
        unit="1/s",
    ),
    *latency_measures("p50", "p90", "p99", "max"),
    Measure(
        name="wal_syncs_per_commit",
        description="syncs of the WAL per commit, whoever did them",
        better="lower",
        clock=True,
    ),
    Measure(
        name="commits_per_sync",
        description="commits per sync of the WAL: the size of a group",
        better="higher",
        clock=True,
    ),
    Measure(
        name="wal_bytes_per_commit",
        description="WAL bytes per transaction",
        unit="bytes",
        clock=True,
    ),
    Measure(
        name="predicted_wal_bytes_per_commit",
        description="an INSERT and a COMMIT; what the server logs besides is not in it",
        unit="bytes",
        evidence="predicted",
    ),
    Measure(name="checkpoints", description="checkpoints begun in the window", clock=True),
)


class CommitCost(Comparing):
    """See the module's docstring."""

    name = "commit-cost"
    order = 120
    title = "What a commit costs"
    topic = "The write-ahead log"
    question = "How many commits a second are there, how many share a sync, and what is the limit?"
    source = "S3: the book, chapters 2, 3, 6 and 18 (B2.8, B3.12, B6.16, B6.18, B6.25, B18.10)"
    time_needed = "about 6 minutes with windows of 5 s"
    scale_default = 1
    scale_meaning = "multiplies the length of the windows"
    factors = (
        Factor(
            name="synchronous_commit",
            description="the server's setting; without a standby only off differs",
            default=("on", "off"),
            words=("on", "local", "off"),
            only_by_name=("local",),
        ),
        shared.clients(1, 2, 4, 8),
        Factor(
            name="commit_delay",
            description="the server's setting: how long the first of a group waits for others",
            unit="us",
            bounds=(0, 100_000),
        ),
        Factor(
            name="wal_sync_method",
            description="the server's setting",
            words=("fdatasync", "fsync", "open_datasync", "open_sync"),
        ),
        Factor(
            name="wal_writer_delay",
            description="the server's setting",
            unit="ms",
            bounds=(1, 10_000),
        ),
    )
    options = (
        Factor(
            name="commit_siblings",
            description="transactions that must be open for commit_delay to count",
            default=(5,),
            bounds=(0, 1000),
            single=True,
        ),
        shared.window_s(5, of="length of the window in seconds, multiplied by the scale"),
    )
    measures = MEASURES
    compared = ("tps",)
    documents = (BOOK,)
    own_server = "commit-cost changes how the server syncs"
    figures = presentation.FIGURES

    def check(self, request: Request, version: PgVersion, *, throw_away: bool) -> None:
        """Refuse a server whose fsync is not ours, and a delay that nothing can trigger."""
        super().check(request, version, throw_away=throw_away)
        most = max(int(level) for level in request.levels["clients"])
        siblings = int(request.options["commit_siblings"])
        if any(request.levels.get("commit_delay", ())) and most <= siblings:
            fewer = f"commit_siblings={most - 1}"
            raise InputError(
                f"commit_delay counts only beside {siblings} other open transactions, and there "
                f"are at most {most} clients: take more, or `{fewer}`",
                mentions=(fewer,),
            )

    def reference(self, request: Request, cell: TrialCell) -> TrialCell:
        """The fewest clients, and the first level of synchronous_commit."""
        first = request.levels["synchronous_commit"][0]
        return {**cell, "clients": _fewest(request), "synchronous_commit": first}

    def pairs(self, request: Request) -> list[tuple[TrialCell, TrialCell]]:
        """Clients against the fewest, each setting against its first level."""
        pairs: list[tuple[TrialCell, TrialCell]] = []
        for cell in request.cells():
            pairs.append((cell, {**cell, "clients": _fewest(request)}))
            for name in ("synchronous_commit", *_SETTINGS):
                if name in cell and cell[name] != request.levels[name][0]:
                    pairs.append((cell, {**cell, name: request.levels[name][0]}))
        return [(cell, against) for cell, against in pairs if cell != against]

    def trial_s(self, request: Request) -> float:
        """Starting, two probes of the disk, the window."""
        return 3 + _window_s(request)

    def shape_name(self, trial: Trial) -> str:  # noqa: ARG002 - all start from the same
        """An empty table."""
        return "empty"

    def measure(self, request: Request, place: Place, trial: Trial) -> TrialOutcome:
        """One window between two probes of the disk."""
        cell = trial.cell
        settings = {
            **plain_rows.quiet_settings(256 * 1024**2, place.memory_bytes),
            "synchronous_commit": str(cell["synchronous_commit"]),
            "max_connections": str(int(cell["clients"]) + 20),
            "commit_siblings": str(request.options["commit_siblings"]),
            **{name: str(cell[name]) for name in _SETTINGS if name in cell},
        }
        shape = Shape(name=self.shape_name(trial), load=_create, bytes_expected=64 * 1024**2)
        with place.running(shape, settings) as server:
            # All of a trial is its window, so the environment is that of the window.
            driver.durable(server)
            environment = describe_server(server)
            measures, series, notes = _window(server, request, trial)
        return TrialOutcome(
            measures=measures, notes=tuple(notes), series=series, environment=environment
        )

    def findings(
        self,
        request: Request,  # noqa: ARG002
        cells: Sequence[dict[str, Any]],
        comparisons: Sequence[ComparedCells],
    ) -> list[str]:
        """The disk's rate beside one client's; groups; ratios with a verdict."""
        return [*_findings(cells), *differences(comparisons, "Commits a second", _label)]

    def warnings(self, request: Request, samples: Sequence[TrialSample]) -> list[str]:
        """Windows that are too short to be believed."""
        return guards.long_enough(samples, _window_s(request))

    def answer(self, result: Result) -> str | None:
        """As `presentation` has it."""
        return presentation.answer(result)


_SETTINGS = ("commit_delay", "wal_sync_method", "wal_writer_delay")


def _window_s(request: Request) -> int:
    return int(request.options["window_s"]) * request.scale


def _fewest(request: Request) -> int:
    return min(int(level) for level in request.levels["clients"])


def _label(cell: Mapping[str, Any]) -> str:
    settings = ", ".join(f"{name} {cell[name]}" for name in _SETTINGS if name in cell)
    count = cell["clients"]
    clients = "1 client" if count == 1 else f"{count} clients"
    first = f"synchronous_commit {cell['synchronous_commit']}, {clients}"
    return f"{first}, {settings}" if settings else first


def _create(server: Running) -> None:
    with server.connect() as connection:
        connection.execute(f"CREATE TABLE {TABLE} (k int) WITH (autovacuum_enabled = off)")
    server.checkpoint()


def _window(
    server: Running, request: Request, trial: Trial
) -> tuple[dict[str, float | None], SecondsSeries, list[str]]:
    """Measures of the window, its series, and what is to be noted."""
    import numpy as np  # noqa: PLC0415 - slow to import; only a run needs it

    cell, window_s = trial.cell, _window_s(request)
    clients = int(cell["clients"])
    script, logs = server.scratch / "commit.sql", server.scratch / "transactions"
    script.write_text(f"INSERT INTO {TABLE} VALUES (:client_id);\n", encoding="ascii")
    script.chmod(0o644)
    with server.connect() as connection:
        row = connection.execute("SELECT current_setting('fsync')").fetchone()
    if row is None or row[0] != "on":
        raise MeasurementInvalid("fsync is off in the window, whose commits then cost nothing")
    disk_before = disk_syncs_per_s(server.scratch)
    checkpoints = plain_rows.checkpoints_logged(server)
    start, syncs_before = plain_rows.wal_counters(server), _wal_syncs(server)
    # The series is made of the log that the latencies need in any case. No sampler runs beside, as
    # in other windows: its session would be among the processes whose syncs and WAL are counted.
    start_s = time.time()
    with driver.processor_time() as used:
        report = driver.run_pgbench(
            server,
            [
                *("-M", "prepared", "-f", str(script), "-T", str(window_s)),
                *("-l", f"--log-prefix={logs}"),
            ],
            clients=clients,
            seed=driver.seed_of(request, trial),
        )
    end_s = time.time()
    # The WAL writer reports what it did when it next wakes up.
    time.sleep(2 * int(cell.get("wal_writer_delay", _WAL_WRITER_DELAY_MS)) / 1000)
    end, syncs_after = plain_rows.wal_counters(server), _wal_syncs(server)
    begun = plain_rows.checkpoints_logged(server) - checkpoints
    disk_after = disk_syncs_per_s(server.scratch)
    done = report.transactions
    with server.connect() as connection:
        plain_rows.require_rows(connection, done, table=TABLE)
    log = read_logs(server.scratch.glob("transactions.*"))
    series, unsteady = of_window(
        server, trial, log, start_s=start_s, end_s=end_s, window_s=window_s
    )
    p50, p90, p99 = np.percentile(log.latency_ms, [50, 90, 99])
    disk = None if disk_before is None or disk_after is None else (disk_before + disk_after) / 2
    syncs: int | None = syncs_after - syncs_before
    if cell.get("wal_sync_method", "fdatasync") not in _BY_DATA_SYNC:
        syncs = None
    waits = cell["synchronous_commit"] != "off"
    if syncs == 0 and waits:
        raise MeasurementInvalid(f"{done} commits were waited for, and no sync was counted")
    row_bytes = _core.heap_tuple_bytes([("int4", 4)])
    measures: dict[str, float | None] = {
        "tps": report.tps,
        "predicted_tps": disk if waits and clients == 1 else None,
        "ceiling_frac": report.tps / disk if disk and waits and clients == 1 else None,
        "disk_syncs_per_s": disk,
        "latency_ms_p50": float(p50),
        "latency_ms_p90": float(p90),
        "latency_ms_p99": float(p99),
        "latency_ms_max": float(log.latency_ms.max()),
        "wal_syncs_per_commit": None if syncs is None else syncs / done,
        "commits_per_sync": done / syncs if syncs else None,
        "wal_bytes_per_commit": (end.size_bytes - start.size_bytes) / done,
        "predicted_wal_bytes_per_commit": wal.insert_bytes(row_bytes) + wal.COMMIT_BYTES,
        "checkpoints": begun,
    }
    notes = guards.driver(used.seconds, window_s, driver.threads(clients)) + unsteady
    return measures, series, notes


def _wal_syncs(server: Running) -> int:
    """Syncs of the WAL so far, by any process."""
    query = "SELECT wal_sync FROM pg_stat_wal"
    if server.version.major >= 18:
        query = "SELECT coalesce(sum(fsyncs), 0)::bigint FROM pg_stat_io WHERE object = 'wal'"
    with server.connect() as connection:
        row = connection.execute(query.encode()).fetchone()
    assert row is not None, "the view has a row"
    return int(row[0])


def _findings(cells: Sequence[dict[str, Any]]) -> list[str]:
    """One client beside the disk; the size of groups; what can be lost."""
    said = []
    for cell in cells:
        label = _label(cell)
        if cell["ceiling_frac"] is not None:
            said.append(
                f"({label}) {cell['tps']:,.0f} commits a second, where the disk does "
                f"{cell['predicted_tps']:,.0f} synced writes a second just before and after; in "
                f"the median trial {percent(cell['ceiling_frac'])} of its own."
            )
        if cell["clients"] > 1 and cell["commits_per_sync"] and not _is_off(cell):
            said.append(f"({label}) {cell['commits_per_sync']:.2f} commits share a sync.")
        if _is_off(cell):
            delay_ms = int(cell.get("wal_writer_delay", _WAL_WRITER_DELAY_MS)) * _LOSS_DELAYS
            said.append(
                f"({label}) {cell['tps']:,.0f} commits a second; a crash may lose those of the "
                f"last {delay_ms} ms, {cell['tps'] * delay_ms / 1000:,.0f} at this rate."
            )
    return said


def _is_off(cell: dict[str, Any]) -> bool:
    return bool(cell["synchronous_commit"] == "off")


EXPERIMENT = CommitCost()
