"""`advise` on real servers: what it foresees for another fillfactor is what the server does."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import observed
import pytest

from pgheadroom.advise import Advice, Options, TableAdvice, advise
from pgheadroom.cli.app import run
from pgheadroom.observe import find_classes, observe
from pgheadroom.profile import Profile, to_json
from pgheadroom.servers import Cluster, Host, ServerPrograms, at_hand
from pgheadroom.sources.log import read_statements
from pgheadroom.types import Interval

pytestmark = pytest.mark.usefixtures("run_parent")

# wide: six rows fill a page, and vacuums offer the room that one leaves to rows of other pages;
# tickets: its status is indexed; calm: has room, and nothing that ends HOT.
_DDL = """
CREATE TABLE wide (id int4 PRIMARY KEY, v int4, payload text)
    WITH (autovacuum_vacuum_threshold = 40, autovacuum_vacuum_scale_factor = 0);
CREATE TABLE tickets (id int4 PRIMARY KEY, status int4, v int4, note text)
    WITH (fillfactor = 90, autovacuum_enabled = off);
CREATE INDEX tickets_status ON tickets (status);
CREATE TABLE calm (id int4 PRIMARY KEY, v int4, note text)
    WITH (fillfactor = 90, autovacuum_enabled = off);
CREATE TABLE quiet (id int4 PRIMARY KEY, v int4);
INSERT INTO wide SELECT i, 0, repeat(md5(i::text), 37 + abs(hashint4(i)) % 4)
    FROM generate_series(1, 1000) i;
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
\\set wide random(1, 1000)
\\set row random(1, 4000)
UPDATE wide SET v = v + 1 WHERE id = :wide;
UPDATE tickets SET status = status + 1 WHERE id = :row;
UPDATE calm SET v = v + 1 WHERE id = :row;
"""
_SETTINGS = {"autovacuum_naptime": "1s", "checkpoint_timeout": "1h", "max_wal_size": "10GB"}


def _work(cluster: Cluster, tmp_path: Path, transactions: int, seed: int) -> None:
    """The script's statements, each a transaction of its own."""
    script = tmp_path / "work.sql"
    script.write_text(_SCRIPT)
    pgbench = next(found for found in at_hand() if found.has("pgbench")).program("pgbench")
    command = [pgbench, "-n", "-M", "prepared", "-R", "400", "-t", str(transactions), "-f", script]
    subprocess.run(
        [*command, "--random-seed", str(seed), "postgres"],
        env={**os.environ, **cluster.client_env()},
        check=True,
        capture_output=True,
    )


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
        assert wide.verdict == "CHANGE", wide.reason
        with cluster.connect(autocommit=True) as connection:
            connection.execute(b"ALTER TABLE wide SET (fillfactor = %d)" % wide.advised_fillfactor)
            connection.execute(b"VACUUM FULL wide")
        _work(cluster, tmp_path, 1600, 3)
        before = _hot(cluster, "wide")
        _work(cluster, tmp_path, 2400, 4)
        after = _hot(cluster, "wide")
    hot = (after[1] - before[1]) / (after[0] - before[0])
    _check_wide(wide, hot)
    _check_others(lived, programs.version.major)
    assert Advice.from_json(json.loads(json.dumps(lived.advice.to_json()))) == lived.advice
    _check_command(lived, tmp_path)


def _check_wide(wide: TableAdvice, hot: float) -> None:
    assert wide.fillfactor == 100
    assert wide.hot_frac is not None
    assert wide.hot_frac < 0.98
    assert wide.calibration is not None
    assert wide.calibration.agrees, wide.calibration.note
    point = wide.point(wide.advised_fillfactor)
    assert point is not None
    assert isinstance(point.hot_frac, Interval)
    # Four updates a row after the rewrite the table is not yet quite in its steady state.
    assert abs(point.hot_frac.mid - hot) < 0.01, f"{hot} after the change, not {point.hot_frac}"
    assert hot > wide.hot_frac + 0.02, "the change has done something"
    assert wide.transition is not None
    causes = {cause.kind: cause for cause in wide.causes}
    assert set(causes) >= {"hot", "no_room"}


def _check_others(lived: _Lived, major: int) -> None:
    tickets, calm, quiet = lived.table("tickets"), lived.table("calm"), lived.table("quiet")
    assert tickets.verdict == "KEEP", tickets.reason
    assert tickets.hot_frac == 0
    assert [remark.kind for remark in tickets.remarks].count("index") == 1
    (remark,) = (remark for remark in tickets.remarks if remark.kind == "index")
    assert "tickets_status" in remark.text
    assert remark.gain["hot_frac"]["then"]["mid"] > 0.9, "without the index it would be HOT"
    assert (calm.verdict, calm.hot_frac) == ("KEEP", 1.0), calm.reason
    assert quiet.verdict == "KEEP"
    assert "nothing updates" not in quiet.reason
    assert "nothing updated it" in quiet.reason
    assert lived.advice.observation.server_version.startswith(str(major))


def _check_command(lived: _Lived, tmp_path: Path) -> None:
    """The same by the command line, in each form."""
    saved = tmp_path / "profile.json"
    saved.write_text(json.dumps(to_json(lived.profile)))
    made = tmp_path / "advice.json"
    page = tmp_path / "advice.html"
    options = ["-t", "wide", "--budget", "10m"]
    assert run(["advise", str(saved), "-f", "json", "-o", str(made), *options]) == 0
    (table,) = json.loads(made.read_text())["tables"]
    assert (table["verdict"], table["fillfactor"]) == ("CHANGE", 100)
    assert run(["advise", str(saved), "-o", str(made), "--html", str(page), *options]) == 0
    assert "fillfactor" in made.read_text()
    assert "<svg" in page.read_text()
