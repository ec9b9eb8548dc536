"""The demo's shop does what the demo says of it: one table for each answer."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from footprint import DEADLINE_S

from pgheadroom.cli import demo_shop
from pgheadroom.errors import LabError
from pgheadroom.servers import Cluster, Host, ServerPrograms
from pgheadroom.sources.log_reading import read_log

_LOAD_S = 4.0
_FEWEST = "SELECT min(n_tup_upd) FROM pg_stat_user_tables"


def _wait(is_so: Callable[[], bool], awaited: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not is_so():
        assert time.monotonic() < deadline, awaited
        time.sleep(0.1)


def _fewest_updates(cluster: Cluster) -> int:
    with cluster.connect(demo_shop.DATABASE) as connection:
        (found,) = connection.execute(_FEWEST).fetchall()[0]
    return int(found)


def test_each_table_has_its_reason(newest: ServerPrograms, run_parent: Path) -> None:
    """Orders miss room, devices HOT by an index that nobody reads, accounts nothing."""
    assert run_parent.is_dir()
    with Host(newest, label="test") as host, demo_shop.opened(host) as (shop, cluster):
        with demo_shop.under_load(host, cluster):
            time.sleep(_LOAD_S)
            _wait(lambda: _fewest_updates(cluster) > 100, "100 updates of each table")
        with cluster.connect(demo_shop.DATABASE) as connection:
            found = {
                name: counts
                for name, *counts in connection.execute(
                    "SELECT relname, n_tup_upd, n_tup_hot_upd, n_tup_newpage_upd"
                    " FROM pg_stat_user_tables"
                ).fetchall()
            }
            scans = connection.execute(
                "SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelname = 'devices_last_seen'"
            ).fetchone()
        log = read_log(shop.log, demo_shop.DATABASE)
    assert found["orders"][2] > 0.1 * found["orders"][0], "a tenth and more leave their page"
    assert found["devices"][1] == 0
    assert found["devices"][2] < 0.5 * found["devices"][0], "most stay on their page even so"
    assert found["accounts"][1] == found["accounts"][0]
    assert scans == (0,)
    assert any("devices" in text for text in log.counts), "its log says what updates assign"


def test_a_load_that_fails_is_an_error(
    newest: ServerPrograms, run_parent: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody is shown advice about a load that did not run."""
    assert run_parent.is_dir()
    started: list[subprocess.Popen[bytes]] = []
    popen = Host.popen

    def noted(self: Host, *arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
        started.append(popen(self, *arguments, **options))
        return started[-1]

    monkeypatch.setattr(Host, "popen", noted)
    with Host(newest, label="test") as host, demo_shop.opened(host) as (_, cluster):
        with cluster.connect(demo_shop.DATABASE) as connection:
            connection.execute("DROP TABLE devices")
        with (
            pytest.raises(LabError, match="pgbench ended by itself"),
            demo_shop.under_load(host, cluster),
        ):
            started[-1].wait(timeout=DEADLINE_S)
