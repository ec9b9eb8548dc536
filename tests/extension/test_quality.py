"""`cluster_quality()` beside other sessions."""

from __future__ import annotations

import psycopg
import pytest

from pgheadroom.servers import Cluster

Session = psycopg.Connection[tuple[object, ...]]


def test_index_that_is_younger_than_the_snapshot(
    cluster: Cluster, database: str, session: Session
) -> None:
    """
    An index that lacks rows of this snapshot is refused, and read by the next one.

    Rows that were updated on their page before the index was built have entries for their new
    versions alone (`indcheckxmin`).
    """
    session.execute("CREATE TABLE t (k int) WITH (autovacuum_enabled = off, fillfactor = 50)")
    session.execute("INSERT INTO t SELECT generate_series(1, 100)")
    quality = "SELECT row_count, leaf_count FROM cluster_quality('t')"
    with cluster.connect(database) as other:
        other.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        assert other.execute("SELECT count(*) FROM t").fetchone() == (100,)
        session.execute("UPDATE t SET k = k + 1000")
        session.execute("CREATE INDEX t_k ON t (k)")
        session.execute("ALTER TABLE t CLUSTER ON t_k")
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="lacks rows"):
            other.execute(quality)
        other.execute("ROLLBACK")
        assert other.execute(quality).fetchone() == (100, 1)
