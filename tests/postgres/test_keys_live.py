"""
Keys that are no integers, on real servers: random uuids and strings, ordered ones, several columns.

With one client every figure is exact, splits of leaves in the middle of an index among them.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path

import observed
import pytest

from pgheadroom.cli.app import run
from pgheadroom.observe import find_classes, observe
from pgheadroom.predict import predict
from pgheadroom.profile import Profile, read_profile, to_json
from pgheadroom.prove import prove
from pgheadroom.servers import Cluster, Host, ServerPrograms
from pgheadroom.sources.log import StatementCounts

pytestmark = pytest.mark.usefixtures("run_parent")

GOLDEN = Path(__file__).parents[2] / "golden" / "profiles"
ROWS = 3000
UPDATES = 2500
DDL = f"""
CREATE TABLE users (id uuid PRIMARY KEY, email text, visits int8, seen timestamptz)
    WITH (fillfactor = 95, autovacuum_enabled = off);
CREATE INDEX users_email ON users (email);
INSERT INTO users SELECT md5(i::text)::uuid, 'user' || i || '@example.org', 0, now()
    FROM generate_series(1, {ROWS}) i;
CREATE TABLE events (id uuid PRIMARY KEY, n int4) WITH (autovacuum_enabled = off);
INSERT INTO events SELECT (lpad(to_hex(i), 16, '0') || left(md5(i::text), 16))::uuid, i
    FROM generate_series(1, {ROWS}) i;
VACUUM ANALYZE users;
VACUUM ANALYZE events
"""
STATEMENT = "UPDATE users SET visits = visits + 1, seen = now() WHERE id = md5(%s::text)::uuid"


@pytest.mark.parametrize("name", ["keys-uuid", "keys-text", "keys-times"])
def test_keys_are_exact(programs: ServerPrograms, name: str) -> None:
    """Rows are found, entries placed and leaves split as on the server, to the byte of WAL."""
    proof = prove(read_profile(GOLDEN / f"{name}.toml"), server=str(programs.bin_dir))
    (cell,) = proof.cells
    assert cell.predicted.is_exact
    assert [(f.key, f.predicted, f.measured) for _, f in proof.beyond] == []


def _update(cluster: Cluster) -> None:
    """Visits of random users, one by one, each a transaction; and of events, by their order."""
    rng = random.Random(5)
    with observed.session(cluster) as connection:
        for _ in range(UPDATES):
            connection.execute(STATEMENT.encode(), (rng.randint(1, ROWS),))
        connection.execute("UPDATE events SET n = n + 1 WHERE n <= 50")


def _observed(programs: ServerPrograms) -> Profile:
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off", "fsync": "off"})
        observed.load(cluster, DDL)
        recording = observed.watched(cluster, lambda: _update(cluster))
    counts = Counter({STATEMENT.replace("%s", "1"): UPDATES})
    files = [StatementCounts(source="file", counts=counts, seen=UPDATES, cut=0)]
    return observe(recording, find_classes(recording, [], files), mask=False, sampled=True)


@pytest.mark.pg(">= 18, < 19")
def test_a_live_table_with_uuids_is_forecast(
    programs: ServerPrograms, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """
    What `observe` writes of it predicts the HOT share that the interval had.

    Three of ten updates find no room on their page at first; `advise` says what room would do, and
    `check` that an index on what changes ends HOT.
    """
    profile = _observed(programs)
    users, events = profile.table("users"), profile.table("events")
    assert users.key is not None
    assert (users.key.type, users.has_ordered_keys) == ("uuid", False)
    assert events.key is not None
    assert (events.key.type, events.has_ordered_keys) == ("uuid", True)
    assert users.observed is not None
    facts = users.observed.columns[0]
    assert facts.substituted is None
    assert "not as the rows lie" in str(facts.key_order)
    counters = users.observed.counters
    assert counters is not None
    assert counters.n_tup_upd == UPDATES
    measured = (counters.n_tup_hot_upd or 0) / UPDATES
    predicted = predict(profile, server="18.4").cells[0].predicted.by_table["users"].hot_frac
    middle = predicted if isinstance(predicted, float) else predicted.mid
    assert middle == pytest.approx(measured, abs=0.05)
    saved, plan = tmp_path / "p.json", tmp_path / "plan.json"
    saved.write_text(json.dumps(to_json(profile)))
    assert run(["advise", str(saved), "-f", "json", "--plan", str(plan), "--budget", "60s"]) == 0
    advised = {table["table"]: table for table in json.loads(capsys.readouterr().out)["tables"]}
    assert advised["users"]["verdict"] in ("CHANGE", "KEEP")
    migration = tmp_path / "m.sql"
    migration.write_text("CREATE INDEX users_visits ON users (visits);")
    assert run(["check", str(migration), "--profile", str(saved), "-f", "json"]) == 1
    judged = {table["table"]: table for table in json.loads(capsys.readouterr().out)["tables"]}
    assert judged["users"]["verdict"] == "loses HOT"
