"""Per-second series: seconds are cut right, and the server's log tells what it did."""

from __future__ import annotations

import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pgheadroom.lab.design import Trial
from pgheadroom.lab.series import log_events, of_window, per_second
from pgheadroom.servers.pgbench import TransactionLog

# Recorded: 18.4, log_line_prefix '%m [%p] ', log_checkpoints on, log_autovacuum_min_duration 0.
LOG = """\
2026-11-20 12:00:00.000 UTC [10] LOG:  checkpoint starting: immediate force wait
2026-11-20 12:00:00.250 UTC [10] LOG:  checkpoint complete: wrote 40 buffers (0.2%), wrote 3 SLRU \
buffers; 0 WAL file(s) added, 0 removed, 0 recycled; write=0.004 s, sync=0.001 s, total=0.250 s; \
sync files=0, longest=0.000 s, average=0.000 s; distance=1 kB, estimate=1 kB; lsn=0/1, redo lsn=0/1
2026-11-20 12:00:05.000 UTC [11] LOG:  automatic vacuum of table "postgres.public.pgbench_accounts"\
: index scans: 1
\tpages: 0 removed, 1640 remain, 1640 scanned (100.00% of total), 0 eagerly scanned
\tsystem usage: CPU: user: 0.01 s, system: 0.00 s, elapsed: 2.50 s
2026-11-20 12:00:06.000 UTC [11] LOG:  automatic analyze of table "postgres.public.t"
\tsystem usage: CPU: user: 0.01 s, system: 0.00 s, elapsed: 0.10 s
2026-11-20 12:00:08.000 UTC [10] LOG:  checkpoint starting: time
"""
START_S = datetime.datetime(2026, 11, 20, 12, 0, 1, tzinfo=datetime.UTC).timestamp()


TRIAL = Trial(cell={"clients": 1}, repetition=1, arm="measured")


def _server(tmp_path: Path) -> Any:
    path = tmp_path / "server.log"
    path.write_text(LOG)
    return SimpleNamespace(cluster=SimpleNamespace(log_path=path))


def test_events_in_the_window_with_their_begin(tmp_path: Path) -> None:
    """Only what overlaps the window; a checkpoint that is still running has no duration."""
    events = log_events(_server(tmp_path), START_S, START_S + 10)
    assert [(event.kind, event.t_s, event.duration_s) for event in events] == [
        ("autovacuum", pytest.approx(1.5), 2.5),
        ("autoanalyze", pytest.approx(4.9), 0.1),
        ("checkpoint", pytest.approx(7.0), None),
    ]
    assert "pgbench_accounts" in events[0].text


def test_a_borrowed_server_has_no_events() -> None:
    """Its log is not ours to read."""
    assert log_events(SimpleNamespace(cluster=None), 0, 1) == []  # type: ignore[arg-type]


def test_seconds_hold_their_own_transactions() -> None:
    """A stall shows as zero transactions and no latency, not as a gap that is closed."""
    log = TransactionLog(
        ends_s=np.array([100.1, 100.9, 102.5, 103.2]),
        latency_ms=np.array([1.0, 3.0, 5.0, 7.0]),
        script=np.zeros(4, dtype=int),
        client=np.zeros(4, dtype=int),
        failed_ends_s=np.array([]),
        failed_client=np.array([], dtype=np.int64),
    )
    sampler = SimpleNamespace(
        t_s=[100.0, 101.0, 103.0],
        wal_bytes=[1000, 2000, 6000],
        heap_bytes=[8192, 8192, 24576],
        index_bytes=[0, 0, 0],
    )
    series = per_second(TRIAL, log, sampler, start_s=100.0, window_s=3.5)  # type: ignore[arg-type]
    assert series.t_s == (1.0, 2.0, 3.0)
    assert series.tps == (2.0, 0.0, 1.0)
    assert series.latency_ms_mean == (2.0, None, 5.0)
    assert series.latency_ms_max == (3.0, None, 5.0)
    assert series.wal_bytes_per_s == (1000.0, 2000.0, 2000.0)
    assert series.heap_bytes == (8192.0, 16384.0, 24576.0)


def test_without_samples_the_sampled_series_are_absent() -> None:
    """Absent, not zero."""
    one = np.array([0])
    log = TransactionLog(
        ends_s=np.array([100.5]),
        latency_ms=np.array([1.0]),
        script=one,
        client=one,
        failed_ends_s=np.array([]),
        failed_client=np.array([], dtype=np.int64),
    )
    sampler = SimpleNamespace(t_s=[], wal_bytes=[], heap_bytes=[], index_bytes=[])
    series = per_second(TRIAL, log, sampler, start_s=100.0, window_s=1)  # type: ignore[arg-type]
    assert "wal_bytes_per_s" not in series


@pytest.mark.parametrize(("rise", "notes"), [(0, 0), (10, 1)])
def test_a_window_without_a_sampler_has_a_series_and_its_steadiness(
    tmp_path: Path, rise: int, notes: int
) -> None:
    """
    Throughput, latencies and the server's events come without any session beside the clients.

    Eighty seconds of 50 transactions each are steady; those that gain 10 each second are not.
    """
    counts = [50 + rise * second for second in range(80)]
    ends = np.concatenate([START_S + second + np.arange(1, n + 1) / (n + 2)
                           for second, n in enumerate(counts)])  # fmt: skip
    none = np.zeros(len(ends), dtype=int)
    log = TransactionLog(
        ends_s=ends,
        latency_ms=np.ones(len(ends)),
        script=none,
        client=none,
        failed_ends_s=np.array([]),
        failed_client=np.array([], dtype=np.int64),
    )
    trial = Trial(cell={"clients": 2}, repetition=3, arm="control")
    found, said = of_window(
        _server(tmp_path), trial, log, start_s=START_S, end_s=START_S + 80, window_s=80
    )
    form = found.to_json()
    assert len(said) == notes
    assert (form["kind"], form["cell"], form["repetition"]) == ("series", {"clients": 2}, 3)
    assert form["arm"] == "control"
    assert form["tps"] == counts
    assert "wal_bytes_per_s" not in form
    assert [event["kind"] for event in form["events"]] == [
        "autovacuum", "autoanalyze", "checkpoint"
    ]  # fmt: skip
