"""
The laboratory on a Dask cluster: a real scheduler and workers that are processes of their own.

All workers are on this machine, so counters are looked at and no times.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from dask_cluster import StartedCluster, started

from pgheadroom.advise import Options, advise
from pgheadroom.cli.advise_fleet import _advised_there
from pgheadroom.doctor.fleet import examine_fleet
from pgheadroom.errors import ConnectionFailed, InputError, LabError
from pgheadroom.fleet import asked_of
from pgheadroom.lab.design import Request, parse_settings
from pgheadroom.lab.experiments import get
from pgheadroom.lab.on_worker import IDLE_S, TrialJob, play_job
from pgheadroom.lab.record import Record, TrialSample
from pgheadroom.lab.run import run
from pgheadroom.observe.fleet import observe_fleet
from pgheadroom.observe.live import request_of
from pgheadroom.predict import Timing, predict
from pgheadroom.profile import read_profile
from pgheadroom.progress import RunState, unsaid_of
from pgheadroom.schedule import scheduler
from pgheadroom.schedule.scheduler import Scheduler
from pgheadroom.servers import Host, ServerPrograms
from pgheadroom.wal import read_wal
from pgheadroom.wal.parts import WalAsked, bounds

EXAMPLES = Path(__file__).parents[2] / "examples"
LABELS = {"a": "red", "b": "red", "c": "blue"}
COUNTERS = ("pages_dirtied", "wal_records", "wal_bytes", "n_tup_hot_upd")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartedCluster]:
    """Two workers of one label and one of another; the last tests kill one, and the scheduler."""
    with started(tmp_path_factory.mktemp("dask"), LABELS) as found:
        yield found


def _request(*settings: str, repetitions: int) -> Request:
    experiment = get("update-cost")
    levels, options = parse_settings(
        ("filler_length=64", "update_bid=0", "change=4660", *settings),
        experiment.factors,
        experiment.options,
        name=experiment.name,
    )
    return Request(
        experiment="update-cost",
        server="18",
        scale=1,
        seed=1,
        repetitions=repetitions,
        levels=levels,
        options=options,
    )


def _run(
    request: Request,
    folder: Path,
    report: Callable[[RunState], None] = lambda _: None,
    **where: Any,
) -> Record:
    run(request, folder, server="18", command="test", report=report, **where)
    return Record.open(folder)


def _worker(sample: TrialSample) -> str:
    assert sample.ran_on is not None
    return sample.ran_on.worker


def _planned(request: Request) -> list[str]:
    return sorted(trial.id for trial in get("update-cost").trials(request))


def _assert_foreseen(result: Mapping[str, Any]) -> None:
    for cell in result["cells"]:
        for name in ("pages_dirtied", "wal_records", "wal_bytes"):
            assert cell[name] == cell[f"predicted_{name}"] is not None


def test_blocks_stay_with_one_label(cluster: StartedCluster, tmp_path: Path) -> None:
    """
    Each block ran on workers of one label, both labels had some, and the record says who played.

    Counters are to the byte those that are foreseen, and what workers had for the run is gone.
    """
    request = _request("fillfactor=80", repetitions=3)
    record = _run(request, tmp_path / "spread", scheduler=cluster.address)
    assert sorted(sample.trial for sample in record.samples) == _planned(request)
    labels: dict[int, set[str]] = {}
    for sample in record.samples:
        assert sample.ran_on is not None
        assert LABELS[sample.ran_on.worker] == sample.ran_on.label
        labels.setdefault(sample.repetition, set()).add(sample.ran_on.label)
    assert all(len(found) == 1 for found in labels.values())
    assert set().union(*labels.values()) == {"red", "blue"}
    environment = record.read_environment()
    assert environment is not None
    assert environment.workers is not None
    assert set(environment.workers) == set(map(_worker, record.samples))
    result = record.read_result()
    assert result["complete"]
    assert any("on one host" in text for text in result["warnings"])
    assert [list(folder.iterdir()) for folder in cluster.folders.values()] == [[], [], []]
    _assert_foreseen(result)


def test_a_block_goes_on_where_it_was_begun(cluster: StartedCluster, tmp_path: Path) -> None:
    """
    One that workers have begun is not finished here, nor by those of another label.

    The run is interrupted while the other worker plays: that one ends its trial, and has nothing
    left of it.
    """

    def stop(step: RunState) -> None:
        if step.done == 1:
            raise KeyboardInterrupt

    request, folder = _request("fillfactor=100,80", repetitions=1), tmp_path / "record"
    red = {"scheduler": cluster.address, "labels": ["red"]}
    with pytest.raises(KeyboardInterrupt):
        _run(request, folder, stop, **red)
    assert _eventually(lambda: not any(map(os.listdir, cluster.folders.values())))
    for elsewhere in ({}, {**red, "labels": ["blue"]}):
        with pytest.raises(InputError, match=r"block 1 of .* with the label red"):
            _run(request, folder, **elsewhere)
    assert len(Record.open(folder).samples) == 1
    record = _run(request, folder, **red)
    assert sorted(sample.trial for sample in record.samples) == _planned(request)
    assert set(map(_worker, record.samples)) <= {"a", "b"}


def test_predictions_on_workers_are_the_same(cluster: StartedCluster) -> None:
    """Intervals, windows and all that is said; wherever each run was, and it is counted here."""
    read = read_profile(EXAMPLES / "busy.toml")
    timing = Timing(windows=5)
    told: list[tuple[int, int]] = []
    with Scheduler(cluster.address) as found:
        there = predict(
            read,
            [100, 80],
            timing=timing,
            seeds=2,
            executor=found.executor(),
            report=lambda done, total, _: told.append((done, total)),
        )
    assert told == sorted(told)
    assert told[-1] == (4, 4), "two cells of two runs each"
    assert there == predict(read, [100, 80], timing=timing, seeds=2)


def test_a_fleet_is_asked_from_workers(cluster: StartedCluster, newest: ServerPrograms) -> None:
    """
    Which server is silent, a setting, and what an observation advises are what they are from here.

    Findings of counters may differ: the two looks are some seconds apart.
    """
    with Host(newest) as host, Scheduler(cluster.address) as found:
        server = host.cluster("asked")
        server.start({"fsync": "off", "wal_keep_size": "1GB"})
        with server.connect() as connection:
            connection.execute("CREATE TABLE t (id int PRIMARY KEY, v int)")
            connection.execute("INSERT INTO t SELECT i, 0 FROM generate_series(1, 1000) i")
        env = server.client_env()
        where = f"host={env['PGHOST']} port={env['PGPORT']} user=postgres dbname=postgres"
        asked = asked_of([where, f"{where}no"], {})
        executor = found.executor()
        here, there = (examine_fleet(asked, executor=each) for each in (None, executor))
        for one in (here, there):
            assert [each.error is None for each in one.servers] == [True, False]
            assert "fsync-off" in {finding.rule for _, finding in one.findings()}
        assert here.servers[1].error == there.servers[1].error
        request = request_of(0.2, samples=True)
        observed, silent = observe_fleet(asked, request, say=unsaid_of, executor=executor)
        assert silent.error == here.servers[1].error
        assert observed.value is not None
        assert [table.name for table in observed.value.tables] == ["t"]
        options = Options(budget_s=0.0)
        made = executor.submit(_advised_there, options, ("a", observed.value)).result()
        assert made == advise(observed.value, options)
        with server.connect() as connection:
            for _ in range(3):
                connection.execute("UPDATE t SET v = v + 1")
                connection.execute("SELECT pg_switch_wal()")
        server.stop()
        asked_log = WalAsked(paths=(server.data_dir / "pg_wal",))
        assert len(executor.submit(bounds, asked_log, 9).result()) > 2
        assert read_wal(*asked_log.paths, executor=executor) == read_wal(*asked_log.paths)
        with pytest.raises(InputError, match="has a password, which is not sent"):
            examine_fleet(asked_of([f"{where} password=secret"], {}), executor=executor)


def test_equal_calls_are_run_each(cluster: StartedCluster) -> None:
    """Dask takes them for one, unless it is told that a call is not its result."""
    with Scheduler(cluster.address) as found:
        drawn = [found.executor("blue").submit(os.urandom, 8) for _ in range(2)]
        assert drawn[0].result() != drawn[1].result()


def test_what_a_cluster_cannot_do_is_said(cluster: StartedCluster, tmp_path: Path) -> None:
    """By name, with what would do, and before there is a record."""
    request, folder = _request("fillfactor=100", repetitions=1), tmp_path / "record"
    with pytest.raises(LabError, match=r"no worker with the label green .* blue"):
        _run(request, folder, scheduler=cluster.address, labels=["green"])
    with pytest.raises(InputError, match="`server` is a connection"):
        run(
            request,
            folder,
            server="host=127.0.0.1",
            command="test",
            report=lambda _: None,
            scheduler=cluster.address,
        )
    assert not folder.exists()


def test_a_worker_without_the_server_is_named(cluster: StartedCluster, tmp_path: Path) -> None:
    """What a worker cannot find is its own error, with its exit code and its name."""
    with pytest.raises(LabError) as raised:
        run(
            _request("fillfactor=100", repetitions=1),
            tmp_path / "record",
            server=str(tmp_path),
            command="test",
            report=lambda _: None,
            scheduler=cluster.address,
        )
    assert str(tmp_path) in str(raised.value)
    assert any("on worker" in note for note in raised.value.__notes__)


def test_a_worker_forgets_a_run_that_was_killed(
    cluster: StartedCluster, newest: ServerPrograms
) -> None:
    """A run that cannot let go of its place there: once it has been idle, the place is removed."""
    from distributed import Client

    request = _request("fillfactor=100", repetitions=1)
    job = TrialJob(
        run="killed",
        request=request,
        server="18",
        version=str(newest.version),
        label="blue",
        trial=get("update-cost").trials(request)[0],
        needed=None,
    )
    with Client(cluster.address, set_as_default=False) as client:
        client.run(_setting_idle(0.0))
        try:
            played = client.submit(play_job, job, resources={"blue": 1}, pure=False).result()
            assert _worker(played.sample) == "c"
            assert _eventually(lambda: not list(cluster.folders["c"].iterdir()))
        finally:
            client.run(_setting_idle(IDLE_S))


def _setting_idle(length_s: float) -> Callable[[], None]:
    """For a worker, which does not have this module: what it is to run travels as text."""
    text = f"from pgheadroom.lab import on_worker; on_worker.IDLE_S = {length_s!r}"
    return partial(exec, text)


def _eventually(condition: Callable[[], bool]) -> bool:
    """Whether it comes true; two minutes are for machines that are very busy."""
    deadline = time.monotonic() + 120
    while not (found := condition()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return found


def test_a_worker_killed_in_the_middle_loses_nothing(
    cluster: StartedCluster, tmp_path: Path
) -> None:
    """
    SIGKILL while it plays a trial: all trials are there, each once, with the same counters.

    The trial that died with it was played by the other worker, and its watchdog has removed what
    it had.
    """
    request, folder = _request("fillfactor=100,80", repetitions=3), tmp_path / "record"
    hunt = _Hunt(cluster.workers["b"], cluster.folders["b"], folder / "samples.jsonl")
    with hunt:
        record = _run(request, folder, hunt.report, scheduler=cluster.address, labels=["red"])
    planned = _planned(request)
    assert 0 < hunt.samples_before < len(planned), "it was killed in the middle"
    assert sorted(sample.trial for sample in record.samples) == planned
    assert set(map(_worker, record.samples[hunt.samples_before :])) == {"a"}
    by_cell: dict[str, Counter[tuple[Any, ...]]] = {}
    for sample in record.samples:
        figures = tuple(sample.measures[name] for name in COUNTERS)
        by_cell.setdefault(str(sample.cell), Counter())[figures] += 1
    assert len(by_cell) == 2
    assert all(len(figures) == 1 for figures in by_cell.values())
    result = record.read_result()
    assert result["complete"]
    assert [cell["repetitions"] for cell in result["cells"]] == [3, 3]
    _assert_foreseen(result)
    assert _eventually(lambda: not list(cluster.folders["b"].iterdir()))


def test_a_run_whose_scheduler_is_gone_keeps_what_has_ended(
    cluster: StartedCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is said that it is gone, and the record can be gone on with."""
    monkeypatch.setattr(scheduler, "_ANSWER_S", 4.0)  # as long as it may be away

    def kill(step: RunState) -> None:
        if step.done == 1:
            cluster.scheduler.kill()

    request, folder = _request("fillfactor=100", repetitions=3), tmp_path / "record"
    with pytest.raises(ConnectionFailed, match="is gone"):
        _run(request, folder, kill, scheduler=cluster.address, labels=["blue"])
    assert 0 < len(Record.open(folder).samples) < len(_planned(request))


class _Hunt:
    """Kills a worker while a server of its trial runs, once the record has a sample."""

    def __init__(self, worker: subprocess.Popen[bytes], folder: Path, samples: Path) -> None:
        self._worker = worker
        self._folder = folder
        self._samples = samples
        self._begun = threading.Event()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._hunt)
        self.samples_before = 0

    def report(self, step: RunState) -> None:
        """Called by the run."""
        if step.done:
            self._begun.set()

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._begun.set()
        self._thread.join()

    def _hunt(self) -> None:
        self._begun.wait()
        pid = self._worker.pid
        while not self._over.wait(0.01):
            # It stands still, so that what is seen here of its trial stays so.
            os.kill(pid, signal.SIGSTOP)
            while Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "T":
                pass
            if list(self._folder.glob("*/clusters/trial-*/data/postmaster.pid")):
                self.samples_before = self._samples.read_bytes().count(b"\n")
                os.kill(pid, signal.SIGKILL)
                self._worker.wait()
                return
            os.kill(pid, signal.SIGCONT)
