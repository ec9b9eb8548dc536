"""`advise` and `verify` with the log of their intervals out of files, as a user runs them."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import observed
import planned
import pytest

from pgheadroom.cli.app import run
from pgheadroom.plan import Plan, make_plan
from pgheadroom.profile import Profile, read_profile
from pgheadroom.servers import Cluster, Host, ServerPrograms
from pgheadroom.types import Interval

pytestmark = pytest.mark.usefixtures("run_parent")

# Half empty pages, and a column with an index: every second update is HOT.
TABLE = """
CREATE TABLE jobs (id int PRIMARY KEY, n int, s int, filler char(84))
    WITH (fillfactor = 50, autovacuum_enabled = off);
CREATE INDEX ON jobs (s);
INSERT INTO jobs SELECT i, 0, 0, '' FROM generate_series(1, 4000) i;
VACUUM ANALYZE jobs;
CREATE ROLE watcher LOGIN;
GRANT pg_monitor, pg_read_all_data TO watcher
"""
BATCH = 20


@contextmanager
def server(programs: ServerPrograms) -> Iterator[tuple[Cluster, str, Path]]:
    """A server whose table is updated all the time, a role that may not read its log, `pg_wal`."""
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off", "wal_keep_size": "1GB"})
        observed.load(cluster, TABLE)
        is_over = threading.Event()

        def work() -> None:
            turn = 0
            with cluster.connect(prepare_threshold=None) as connection:
                while not is_over.wait(0.01):
                    for column in ("n", "s"):
                        turn = (turn + BATCH) % 4000
                        connection.execute(
                            f"UPDATE jobs SET {column} = {column} + 1"
                            f" WHERE id > {turn} AND id <= {turn + BATCH}"
                        )

        thread = threading.Thread(target=work)
        thread.start()
        try:
            yield cluster, observed.conninfo(cluster, "watcher"), cluster.data_dir / "pg_wal"
        finally:
            is_over.set()
            thread.join()


def test_advise_prices_by_the_log_of_files(programs: ServerPrograms, tmp_path: Path) -> None:
    """What an update wrote is the log's, to a role that cannot read it on the server."""
    advice = tmp_path / "advice.json"
    plain = ["--for", "1s", "--budget", "0", "-f", "json", "-o", str(advice), "--table", "jobs"]
    with server(programs) as (_, watcher, pg_wal):
        assert run(["advise", watcher, *plain, "--wal"]) == 3
        assert run(["advise", watcher, *plain]) == 0
        unpriced = _table(advice)
        assert run(["advise", watcher, *plain, "--wal-files", str(pg_wal)]) == 0
        priced = _table(advice)
    assert unpriced["wal_bytes_per_update"] is None
    (said,) = [one["text"] for one in priced["remarks"] if one["kind"] == "wal"]
    assert said.startswith("By the log the table wrote ")
    assert "HOT updates" in said
    known = priced["wal_bytes_per_update"]
    # A record has 64 bytes at least; at most an update writes images of both its heap pages and of
    # a leaf of each index, and their records. How many updates share an image is a matter of pace.
    assert 64 < known["low"] <= known["mid"] <= known["high"] < 5 * 8192


@pytest.mark.long(reason="both windows need one pace; tests/postgres/test_observe_wal.py reads one")
def test_verify_judges_wal_by_the_log_of_files(
    programs: ServerPrograms, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """
    As much WAL as before comes: held where that was foreseen, failed where a third was.

    Without the log of the second interval nothing is said of it.
    """
    observed_path, outcome = tmp_path / "profile.json", tmp_path / "verify.json"
    found: dict[str, Any] = {}
    with server(programs) as (cluster, watcher, pg_wal):
        files = ["--wal-files", str(pg_wal)]
        assert run(["observe", watcher, "--for", "2s", "-o", str(observed_path), *files]) == 0
        before = read_profile(observed_path)
        for name, share in (("held", 1.0), ("failed", 1 / 3)):
            path = planned.write_plan(_plan(before, share), _folder(tmp_path / name))
            apply = ["apply", str(path), observed.conninfo(cluster), "--yes"]
            verify = ["verify", str(path), watcher, "--for", "2s", "-f", "json", "-o", str(outcome)]
            assert run(apply) == 0
            code = run([*verify, *files])
            found[name] = _wal(outcome)
            assert (code == 1) == (_table(outcome)["verdict"] == "failed")
            if name == "held":
                assert run(verify) in (0, 1, 6)
                found["without"] = _wal(outcome)
            assert run([*apply, "--undo"]) == 0
    capsys.readouterr()
    assert found["held"]["verdict"] == "held", found
    assert found["failed"]["verdict"] == "failed", found
    assert "measured in the log" in found["failed"]["note"]
    assert 64 < found["held"]["now"] < 1000
    assert found["without"]["now"] is None
    assert found["without"]["verdict"] is None
    assert "neither the log of both intervals was read" in found["without"]["note"]


def _plan(before: Profile, share: float) -> Plan:
    """A fillfactor of 45, at which an update is to write this share of what it wrote at 50."""
    table = before.table("jobs")
    assert table.observed is not None
    heap = float(table.observed.main_bytes or 0)
    now, then = (
        replace(
            planned.point(setting, heap, 0.5),
            wal_bytes_per_update=Interval(low=0.7 * mid, mid=mid, high=1.4 * mid, level=0.9),
        )
        for setting, mid in ((50, 300.0), (45, 300.0 * share))
    )
    advice = planned.table_advice(table, 45, "CHANGE", (now, then))
    return make_plan(planned.advice_of(before, (advice,)), before)


def _folder(path: Path) -> Path:
    path.mkdir()
    return path


def _table(path: Path) -> dict[str, Any]:
    (table,) = json.loads(path.read_text(encoding="utf-8"))["tables"]
    return dict(table)


def _wal(path: Path) -> dict[str, Any]:
    (outcome,) = [one for one in _table(path)["outcomes"] if one["name"] == "wal_bytes_per_update"]
    return dict(outcome)
