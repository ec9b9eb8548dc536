"""`advise` on real servers: what it foresees for another fillfactor is what the server does."""

from __future__ import annotations

import json
import os
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import observed
import pytest

from pgheadroom.advise import Advice, Options, TableAdvice, advise
from pgheadroom.cli.app import run
from pgheadroom.observe import find_classes, observe
from pgheadroom.outcome import mid
from pgheadroom.profile import Profile, to_json
from pgheadroom.servers import Cluster, Host, ServerPrograms, at_hand
from pgheadroom.sources.log import read_statements
from pgheadroom.types import Interval

pytestmark = pytest.mark.usefixtures("run_parent")

# wide: six rows fill a page, and few of its rows have moved yet; tickets: its status is indexed;
# calm: has room, and nothing that ends HOT.
_DDL = """
CREATE TABLE wide (id int4 PRIMARY KEY, v int4, payload text)
    WITH (autovacuum_enabled = off);
CREATE TABLE tickets (id int4 PRIMARY KEY, status int4, v int4, note text)
    WITH (fillfactor = 90, autovacuum_enabled = off);
CREATE INDEX tickets_status ON tickets (status);
CREATE TABLE calm (id int4 PRIMARY KEY, v int4, note text)
    WITH (fillfactor = 90, autovacuum_enabled = off);
CREATE TABLE quiet (id int4 PRIMARY KEY, v int4);
INSERT INTO wide SELECT i, 0, repeat(md5(i::text), 37 + abs(hashint4(i)) % 4)
    FROM generate_series(1, 3000) i;
INSERT INTO tickets SELECT i, i % 7, 0, repeat('n', 60) FROM generate_series(1, 4000) i;
INSERT INTO calm SELECT i, 0, repeat('n', 60) FROM generate_series(1, 4000) i;
INSERT INTO quiet SELECT i, 0 FROM generate_series(1, 100) i;
VACUUM ANALYZE
"""
_STATEMENTS = """
UPDATE wide SET v = v + 1 WHERE id = 1;
UPDATE tickets SET status = status + 1 WHERE id = 1;
UPDATE calm SET v = v + 1 WHERE id = 1;
"""
_SCRIPT = """
\\set wide random(1, 3000)
\\set row random(1, 4000)
UPDATE wide SET v = v + 1 WHERE id = :wide;
UPDATE tickets SET status = status + 1 WHERE id = :row;
UPDATE calm SET v = v + 1 WHERE id = :row;
"""
_SETTINGS = {"autovacuum": "off", "checkpoint_timeout": "30s"}
_OTHER = 80  # percent; leaves room for one version


def _work(cluster: Cluster, tmp_path: Path, transactions: int, seed: int) -> None:
    """The script's statements, each a transaction of its own."""
    script = tmp_path / "work.sql"
    script.write_text(_SCRIPT)
    pgbench = next(found for found in at_hand() if found.has("pgbench")).program("pgbench")
    command = [pgbench, "-n", "-M", "prepared", "-R", "1000", "-t", str(transactions), "-f", script]
    subprocess.run(
        [*command, "--random-seed", str(seed), "postgres"],
        env={**os.environ, **cluster.client_env()},
        check=True,
        capture_output=True,
    )
    # Its counters are whole when its server process has ended, a moment after pgbench.
    with cluster.connect() as connection:
        client = "SELECT FROM pg_stat_activity WHERE application_name = 'pgbench'"
        while connection.execute(client).fetchall():
            time.sleep(0.01)


@dataclass(frozen=True)
class _Lived:
    """What was observed, and what came of it."""

    profile: Profile
    advice: Advice

    def table(self, name: str) -> TableAdvice:
        return next(table for table in self.advice.tables if table.table == name)


def _observed(cluster: Cluster, tmp_path: Path) -> Profile:
    file = tmp_path / "statements.sql"
    file.write_text(_STATEMENTS)
    recording = observed.watched(cluster, lambda: _work(cluster, tmp_path, 1600, 2))
    classes = find_classes(recording, [], [read_statements(file)])
    return observe(recording, classes, mask=False, sampled=True)


def _hot(cluster: Cluster, table: str) -> tuple[int, int]:
    with cluster.connect() as connection:
        row: Any = connection.execute(
            "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = %s", (table,)
        ).fetchone()
    return int(row[0]), int(row[1])


def _share(before: tuple[int, int], after: tuple[int, int]) -> float:
    return (after[1] - before[1]) / (after[0] - before[0])


@pytest.mark.minors
@pytest.mark.long(reason="minutes on each server; tests/postgres/test_verify_grows.py has the loop")
def test_the_advice_is_what_the_server_then_does(programs: ServerPrograms, tmp_path: Path) -> None:
    """Observe, advise, apply by hand with a rewrite, work on: HOT comes out as foreseen."""
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start(_SETTINGS)
        observed.load(cluster, _DDL)
        _work(cluster, tmp_path, 2400, 1)
        profile = _observed(cluster, tmp_path)
        lived = _Lived(profile=profile, advice=advise(profile, Options(budget_s=600)))
        wide = lived.table("wide")
        with cluster.connect(autocommit=True) as connection:
            connection.execute(b"ALTER TABLE wide SET (fillfactor = %d)" % _OTHER)
            connection.execute(b"VACUUM FULL wide")
            connection.execute(b"DROP INDEX tickets_status")
        _work(cluster, tmp_path, 1600, 3)
        before, tickets_before = _hot(cluster, "wide"), _hot(cluster, "tickets")
        _work(cluster, tmp_path, 1600, 4)
        after, tickets_after = _hot(cluster, "wide"), _hot(cluster, "tickets")
    _check_wide(wide, _share(before, after))
    _check_others(lived, programs.version.major, _share(tickets_before, tickets_after))
    assert Advice.from_json(json.loads(json.dumps(lived.advice.to_json()))) == lived.advice
    _check_command(lived, tmp_path)


def _check_wide(wide: TableAdvice, hot: float) -> None:
    assert wide.fillfactor == 100
    assert wide.hot_frac is not None
    assert wide.hot_frac < 1
    assert wide.calibration is not None
    foreseen = wide.calibration.predicted_hot_frac
    assert isinstance(foreseen, Interval)
    # A young table gains twenty points of HOT share within one update a row.
    assert abs(foreseen.mid - wide.hot_frac) < 0.05, wide.calibration.note
    point = wide.point(_OTHER)
    assert point is not None
    assert isinstance(point.hot_frac, Interval)
    assert abs(point.hot_frac.mid - hot) < 0.01, f"{hot} after the change, not {point.hot_frac}"
    causes = {cause.kind: cause for cause in wide.causes}
    assert set(causes) >= {"hot", "no_room"}


def _check_others(lived: _Lived, major: int, without_index: float) -> None:
    tickets, calm, quiet = lived.table("tickets"), lived.table("calm"), lived.table("quiet")
    assert isinstance(tickets.gain_frac, Interval)
    assert tickets.gain_frac.mid < 0.05, "no room on the page helps an index"
    assert tickets.hot_frac == 0
    assert [remark.kind for remark in tickets.remarks].count("index") == 1
    (remark,) = (remark for remark in tickets.remarks if remark.kind == "index")
    assert "tickets_status" in remark.text
    foreseen = mid(remark.gain["hot_frac"].then)
    assert abs(foreseen - without_index) < 0.03, f"{without_index} without the index"
    assert without_index > 0.9
    assert (calm.verdict, calm.hot_frac) == ("KEEP", 1.0), calm.reason
    assert quiet.verdict == "KEEP"
    assert "nothing updates" not in quiet.reason
    assert "nothing updated it" in quiet.reason
    assert lived.advice.observation.server_version.startswith(str(major))


def _check_command(lived: _Lived, tmp_path: Path) -> None:
    """The same by the command line, as JSON and as a page."""
    saved = tmp_path / "profile.json"
    saved.write_text(json.dumps(to_json(lived.profile)))
    made = tmp_path / "advice.json"
    page = tmp_path / "advice.html"
    options = ["-t", "wide", "--budget", "10m", "--html", str(page)]
    assert run(["advise", str(saved), "-f", "json", "-o", str(made), *options]) == 0
    (table,) = json.loads(made.read_text())["tables"]
    assert (table["table"], table["fillfactor"]) == ("wide", 100)
    assert table["verdict"] == lived.table("wide").verdict
    assert "<svg" in page.read_text()
