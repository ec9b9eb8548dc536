"""`advise` beside what a server has counted: WAL of an update, and rows that grow once."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import observed
import pytest

from pgheadroom.advise import Options, advise
from pgheadroom.servers import Cluster, Host, ServerPrograms, at_hand
from pgheadroom.types import Interval

pytestmark = pytest.mark.usefixtures("run_parent")

_DDL = """
CREATE TABLE ledger (id int4 PRIMARY KEY, owner text, balance numeric NOT NULL DEFAULT 0,
    changed timestamptz DEFAULT now()) WITH (autovacuum_enabled = off);
INSERT INTO ledger SELECT i, 'owner ' || md5(i::text), 0 FROM generate_series(1, 1500) i;
VACUUM ANALYZE
"""
# Autocommit: the statement is the transaction, so its WAL has no COMMIT.
_SCRIPT = """
\\set id random(1, 1500)
\\set amount random(-9999, 99999)
UPDATE ledger SET balance = balance + :amount / 100.0, changed = now() WHERE id = :id;
"""
_LOADED, _WATCHED = 3000, 3000  # transactions before and in the interval: two updates a row each


def _work(cluster: Cluster, tmp_path: Path, transactions: int, seed: int) -> None:
    script = tmp_path / "work.sql"
    script.write_text(_SCRIPT)
    pgbench = next(found for found in at_hand() if found.has("pgbench")).program("pgbench")
    command = [pgbench, "-n", "-M", "prepared", "-t", str(transactions), "-f", script]
    subprocess.run(
        [*command, "--random-seed", str(seed), "postgres"],
        env={**os.environ, **cluster.client_env()},
        check=True,
        capture_output=True,
    )


@pytest.mark.contrib
def test_wal_of_an_update_is_what_its_statement_wrote(
    programs: ServerPrograms, tmp_path: Path
) -> None:
    """
    The twin's, images apart, within a tenth of what pg_stat_statements counted.

    The balances leave 0 with the first update, and have their length then: nothing is used up.
    """
    with Host(programs) as host:
        cluster = host.cluster("main")
        if not observed.start_with_contrib(cluster, {"autovacuum": "off"}):
            pytest.skip("this build has no pg_stat_statements")
        observed.load(cluster, "CREATE EXTENSION pg_stat_statements;" + _DDL)
        _work(cluster, tmp_path, _LOADED, 1)
        recording = observed.watched(cluster, lambda: _work(cluster, tmp_path, _WATCHED, 2))
        profile = observed.profile_of(recording)
    (table,) = advise(profile, Options(budget_s=600, sample_pages=50)).tables
    known = table.wal_bytes_per_update
    assert isinstance(known, Interval)
    assert "used up" not in table.reason
    assert table.calibration is not None, table.reason
    assert table.calibration.contradicted == ()
    assert not any(one.quantity == "grows_bytes" for one in table.calibration.fitted)
    own = table.calibration.predicted_wal_bytes_per_update
    assert isinstance(own, Interval)
    low, high = own.low - 0.1 * own.mid, own.high + 0.1 * own.mid
    assert low <= known.high, f"{own} of the twin, {known} counted"
    assert high >= known.low, f"{own} of the twin, {known} counted"
