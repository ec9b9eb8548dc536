"""Changes that a session tells after a VACUUM has counted the rows: they must not count twice."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from doctor_sides import DAY_S, database, examined, run
from observed import wait_until
from psycopg.pq import ExecStatus

from pgheadroom.doctor.bloat_look import SHARE_MIN
from pgheadroom.servers import Cluster, Host, ServerPrograms

pytestmark = pytest.mark.usefixtures("run_parent")

ROWS = 60_000
FILLED = f"""
CREATE TABLE t (id int8 NOT NULL, v char(300) NOT NULL, w text NOT NULL);
INSERT INTO t SELECT i, 'v', repeat(md5(i::text), 6) FROM generate_series(1, {ROWS}) i;
CREATE INDEX t_w ON t (w);
VACUUM (ANALYZE) t;
CREATE PROCEDURE change(share int) LANGUAGE plpgsql AS $$
BEGIN DELETE FROM t WHERE id % 100 < share; COMMIT; PERFORM pg_advisory_lock(17); END $$;
"""
_WAITS = "SELECT count(*) > 0 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"


@pytest.fixture(scope="module")
def cluster(programs: ServerPrograms) -> Iterator[Cluster]:
    with Host(programs) as host:
        made = host.cluster("main")
        made.start({"autovacuum_naptime": f"{DAY_S:.0f}"})
        yield made


def vacuumed_before_told(cluster: Cluster, dbname: str, percent: int) -> tuple[int, int, float]:
    """
    Rows that go, and whose counters come after another session's VACUUM.

    Counters are told between two commands of a client (`PostgresMain`, postgres.c), and a procedure
    that has committed and waits is within one.

    Returns:
        Live and dead rows by the counters, and rows as VACUUM has counted them.
    """
    with cluster.connect(dbname) as changing, cluster.connect(dbname) as other:
        other.execute("SELECT pg_advisory_lock(17)")
        changing.pgconn.send_query(f"CALL change({percent})".encode())
        wait_until(cluster, _WAITS, "a procedure that waits")
        other.execute("VACUUM t")
        other.execute("SELECT pg_advisory_unlock(17)")
        while (result := changing.pgconn.get_result()) is not None:
            assert result.status == ExecStatus.COMMAND_OK, result.error_message
        changing.execute("SELECT pg_stat_force_next_flush()")
        row = other.execute(
            "SELECT pg_stat_get_live_tuples(oid), pg_stat_get_dead_tuples(oid), reltuples"
            " FROM pg_class WHERE relname = 't'"
        ).fetchone()
    assert row is not None
    return row


def test_a_quarter_is_no_bloat(cluster: Cluster) -> None:
    """
    A quarter of the rows went, which is told as no bloat, and what is open is named.

    Deleted and vacuumed within a second, `n_live_tup` is what VACUUM counted less what the session
    told afterwards, and a table was said to be half empty that was a quarter empty.
    """
    with database(cluster, "quarter") as name:
        run(cluster, name, FILLED)
        assert vacuumed_before_told(cluster, name, 25) == (ROWS / 2, ROWS / 4, ROWS * 3 / 4)
        for rule, about in (("bloated-table", "t"), ("bloated-index", "t_w")):
            found = examined(cluster, name, rule)
            assert found.findings == ()
            (blind,) = found.blind
            assert blind.why.startswith(f"{about}: a ")
            assert "gives back 0 % to " in blind.why
            assert "it has 30,000 to 45,000 rows" in blind.why
            assert not blind.cut_off


def test_most_is_bloat_at_least(cluster: Cluster) -> None:
    """
    Two thirds went, which is inside what is told; after ANALYZE both counts agree.

    It was 100 %, for there seemed to be no rows.
    """
    with database(cluster, "most") as name:
        run(cluster, name, FILLED)
        assert vacuumed_before_told(cluster, name, 66)[0] == 0
        (finding,) = examined(cluster, name, "bloated-table").findings
        low, high = (finding.numbers[f"given_back_frac_{end}"] for end in ("low", "high"))
        assert isinstance(low, float)
        assert isinstance(high, float)
        assert SHARE_MIN <= low < 0.66 < high
        assert "it has 0 to 20,400 rows" in finding.text
        run(cluster, name, "ANALYZE t")
        (finding,) = examined(cluster, name, "bloated-table").findings
        for end in ("low", "high"):
            assert finding.numbers[f"given_back_frac_{end}"] == pytest.approx(0.66, abs=0.01)


def test_nobody_is_late_just_after_a_vacuum(cluster: Cluster) -> None:
    """Rows that a VACUUM has removed and that count as dead: autovacuum cannot be late yet."""
    with database(cluster, "late") as name:
        run(cluster, name, FILLED)
        assert vacuumed_before_told(cluster, name, 66)[1] == ROWS * 66 / 100
        assert examined(cluster, name, "autovacuum-late").findings == ()
        # Two naptimes later nobody has come, as far as the counters say.
        (finding,) = examined(cluster, name, "autovacuum-late", ahead_s=2 * DAY_S).findings
        assert finding.numbers["n_dead_tup"] == ROWS * 66 / 100
