"""The demo's shop does what the demo says of it: one table for each answer."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from pgheadroom.cli import demo_shop
from pgheadroom.errors import LabError
from pgheadroom.servers import Host, ServerPrograms
from pgheadroom.sources.log_reading import read_log

_LOAD_S = 5.0


def test_each_table_has_its_reason(newest: ServerPrograms, run_parent: Path) -> None:
    """Orders miss room, devices HOT by an index that nobody reads, accounts nothing."""
    assert run_parent.is_dir()
    with Host(newest, label="test") as host, demo_shop.opened(host) as (shop, cluster):
        with demo_shop.under_load(host, cluster):
            time.sleep(_LOAD_S)
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
    assert min(counts[0] for counts in found.values()) > 100, found
    assert found["orders"][2] > 0.1 * found["orders"][0], "a tenth and more leave their page"
    assert found["devices"][1] == 0
    assert found["devices"][2] < 0.5 * found["devices"][0], "most stay on their page even so"
    assert found["accounts"][1] == found["accounts"][0]
    assert scans == (0,)
    assert any("devices" in text for text in log.counts), "its log says what updates assign"


def test_a_load_that_fails_is_an_error(newest: ServerPrograms, run_parent: Path) -> None:
    """Nobody is shown advice about a load that did not run."""
    assert run_parent.is_dir()
    with Host(newest, label="test") as host, demo_shop.opened(host) as (_, cluster):
        with cluster.connect(demo_shop.DATABASE) as connection:
            connection.execute("DROP TABLE devices")
        with (
            pytest.raises(LabError, match="pgbench ended by itself"),
            demo_shop.under_load(host, cluster),
        ):
            time.sleep(_LOAD_S)
