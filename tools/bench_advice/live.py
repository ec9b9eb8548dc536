"""
A table that has lived, under load, as `observe` sees it.

The table is loaded at its current fillfactor and lives through the same transactions as before the
window of a cell. Then clients come at the workload's rate, on a server with autovacuum and
checkpoints of its own, and `observe` watches for some seconds, reading like any other client.
Update classes come from that server's log. Nothing else reaches the observed profile.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

from bench_advice.cell import Place
from bench_advice.player import Player, hold
from bench_advice.workloads import CYCLE_S, NAPTIME_S, Workload
from pgheadroom.errors import LabError
from pgheadroom.observe import find_classes, observe
from pgheadroom.play import DATABASE
from pgheadroom.play.settings import CONDUCT
from pgheadroom.profile import to_json
from pgheadroom.servers import Cluster
from pgheadroom.sources.log_reading import read_log
from pgheadroom.sources.observing import APPLICATION_NAME, ObservationRequest, watch
from pgheadroom.sources.session import read_only_session

_LEAD_S = 3.0  # of load before the first snapshot, so that counters are on their way; arbitrary
_TAIL_S = 2.0  # of load behind the last one
_TICK_S = 2.0


def settings_for_live() -> dict[str, str]:
    """A server that does its own vacuums and checkpoints, at the pace of a cycle."""
    conduct = {name: value for name, value in CONDUCT.items() if name != "wal_keep_size"}
    return conduct | {
        "shared_buffers": "256MB",
        "autovacuum": "on",
        "autovacuum_naptime": f"{NAPTIME_S:.0f}s",
        "checkpoint_timeout": f"{CYCLE_S:.0f}s",
        "max_wal_size": "16GB",
    }


def observed(place: Place, workload: Workload, scratch: Path) -> dict[str, Any]:
    """
    Let a workload's table live, put it under load, watch it.

    Args:
        place: A server that runs with `settings_for_live`.
        workload: Its profile says how the table is made; `observe` is not told.
        scratch: A folder for the part of the server's log.

    Returns:
        The observed profile, as a file has it.
    """
    player = place.loaded(workload.profile)
    player.turn(workload.settle)
    log_begin = place.cluster.log_path.stat().st_size
    length_s = _LEAD_S + workload.observe_s + _TAIL_S
    clients = player.start(
        ["-R", repr(workload.rate_per_s), "-T", str(round(length_s))], {"log_statement": "mod"}
    )
    holder = _Holder(place.cluster, player)
    try:
        holder.start()
        time.sleep(_LEAD_S)
        recording = _watched(place.cluster, workload.observe_s)
        _, errors = clients.communicate()
    finally:
        clients.kill()
        holder.stop()
    if clients.returncode != 0:
        raise LabError(f"pgbench ended with {clients.returncode}: {errors.strip()[-500:]}")
    log = scratch / "observed.log"
    with place.cluster.log_path.open("rb") as file:
        file.seek(log_begin)
        log.write_bytes(file.read())
    found = observe(
        recording,
        find_classes(recording, [read_log(log, DATABASE)], []),
        mask=False,
        sampled=True,
    )
    log.unlink()
    return to_json(found)


def _watched(cluster: Cluster, length_s: float) -> Any:
    env = cluster.client_env()
    target = f"host={env['PGHOST']} port={env['PGPORT']} user=postgres dbname={DATABASE}"
    with read_only_session(target, {"application_name": APPLICATION_NAME}) as connection:
        request = ObservationRequest(duration_s=length_s, ticks=round(length_s / _TICK_S))
        return watch(connection, request, lambda _: None)


class _Holder:
    """Holds the profile's snapshots, at the same parts of every cycle, until it is stopped."""

    def __init__(self, cluster: Cluster, player: Player) -> None:
        self._cluster = cluster
        self._snapshots = player.profile.workload.run.snapshots
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._hold, daemon=True)

    def start(self) -> None:
        if self._snapshots:
            self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        if self._snapshots:
            self._thread.join()

    def _hold(self) -> None:
        (snapshot,) = self._snapshots
        while not self._stopped.wait(CYCLE_S * snapshot.start_frac):
            connection = hold(self._cluster)
            self._stopped.wait(CYCLE_S * snapshot.length_frac)
            connection.close()
            rest = 1 - snapshot.start_frac - snapshot.length_frac
            if self._stopped.wait(CYCLE_S * rest):
                return
