"""
The model of an online rewrite beside a server that does the same steps in SQL.

pg_repack's: a trigger notes changes in a log table; under a held snapshot the rows are inserted
into a new table; then its index is built and the noted changes are applied, 1,000 a transaction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import observed
import pytest

from pgheadroom.predict import RewriteAsked, Timing, predict
from pgheadroom.predict.rewriting import RewrittenLater
from pgheadroom.profile import parse_profile
from pgheadroom.servers import Cluster, Host, ServerPrograms, find_client

if TYPE_CHECKING:
    import psycopg

pytestmark = pytest.mark.usefixtures("run_parent")

ROWS, UPDATES = 20_000, 10_000
BATCH = 1000
NOTE = (
    "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS "
    "'BEGIN INSERT INTO changes (id, n) VALUES (NEW.id, NEW.n); RETURN NULL; END'"
)


def _foreseen(version: str) -> RewrittenLater:
    """Half of the updates before the copy, half while rows are copied."""
    table = {
        "name": "t",
        "rows": ROWS,
        "columns": [
            {"name": "id", "type": "int4"},
            {"name": "n", "type": "int4"},
            {"name": "filler", "type": "bpchar(84)"},
        ],
        "indexes": [{"name": "t_pkey", "columns": ["id"], "unique": True}],
    }
    update = {"table": "t", "kind": "update", "sets": ["n"], "pick": {"distribution": "uniform"}}
    profile = parse_profile(
        {
            "schema_version": 1,
            "table": [table],
            "operation": [update],
            "run": {"operations": 2 * UPDATES},
        }
    )
    (cell,) = predict(
        profile,
        [80],
        server=version,
        timing=Timing(tps=1000, windows=4),
        from_fillfactor=100,
        rewrite=RewriteAsked(at_frac=0.5, how="online", takes_s=UPDATES / 1000),
    ).cells
    assert cell.rewritten_later is not None
    return cell.rewritten_later


def _counters(connection: psycopg.Connection[Any], table: str) -> tuple[int, int, int]:
    """Updates, HOT updates and pages of a table."""
    connection.execute("SELECT pg_stat_force_next_flush()")
    row = connection.execute(
        "SELECT n_tup_upd, n_tup_hot_upd, pg_relation_size(relid) / 8192 "
        "FROM pg_stat_user_tables WHERE relname = %s",
        (table,),
    ).fetchone()
    assert row is not None
    return row[0], row[1], row[2]


def _clients(host: Host, cluster: Cluster, seed: int) -> None:
    script = host.scratch / "update.sql"
    script.write_text(f"\\set k random(1, {ROWS})\nUPDATE t SET n = n + 1 WHERE id = :k;\n")
    program, _ = find_client("pgbench", host.programs)
    arguments = ["-n", "-M", "prepared", "-t", str(UPDATES), f"--random-seed={seed}"]
    done = host.run([program, *arguments, "-f", script.name, "postgres"], env=cluster.client_env())
    assert done.returncode == 0, done.stderr
    # Its counters are whole when its server process has ended, a moment after pgbench.
    gone = "SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name = 'pgbench'"
    observed.wait_until(cluster, gone, "pgbench's session has ended")


def test_beside_the_same_steps_in_sql(newest: ServerPrograms) -> None:
    """HOT share while rows are copied, pages of the new table and of its index."""
    later = _foreseen(str(newest.version))
    assert later.series is not None
    hot = sum(later.series.column("n_tup_hot_upd")[2:])  # type: ignore[arg-type]
    (work,) = later.tables
    with Host(newest, label="online") as host:
        cluster = host.cluster("online")
        cluster.start({"shared_buffers": "64MB", "autovacuum": "off", "fsync": "off"})
        with cluster.connect("postgres") as own, cluster.connect("postgres") as copier:
            columns = "(id int, n int, filler char(84))"
            own.execute(f"CREATE TABLE t {columns} WITH (fillfactor = 100)".encode())
            own.execute(b"INSERT INTO t SELECT g, 0, '' FROM generate_series(1, %s) g", (ROWS,))
            own.execute("CREATE UNIQUE INDEX t_pkey ON t (id)")
            own.execute("VACUUM ANALYZE t")
            own.execute("ALTER TABLE t SET (fillfactor = 80)")
            own.execute(f"CREATE TABLE new {columns} WITH (fillfactor = 80)".encode())
            own.execute("CREATE TABLE changes (k serial, id int, n int)")
            own.execute(NOTE)
            _clients(host, cluster, 1)
            before = _counters(own, "t")
            copier.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            copier.execute("SELECT count(*) FROM pg_class")
            own.execute(
                "CREATE TRIGGER note AFTER UPDATE ON t FOR EACH ROW EXECUTE FUNCTION note()"
            )
            copier.execute("INSERT INTO new SELECT * FROM t")
            _clients(host, cluster, 2)
            after = _counters(own, "t")
            copier.execute("COMMIT")
            own.execute("CREATE UNIQUE INDEX new_pkey ON new (id)")
            own.execute("SET enable_seqscan = off")
            own.execute("SET enable_bitmapscan = off")
            changes = own.execute("SELECT n, id FROM changes ORDER BY k").fetchall()
            for first in range(0, len(changes), BATCH):
                with own.transaction():
                    for n, key in changes[first : first + BATCH]:
                        own.execute("UPDATE new SET n = %s WHERE id = %s", (n, key))
            new = _counters(own, "new")
            row = own.execute("SELECT pg_relation_size('new_pkey') / 8192").fetchone()
        cluster.stop("immediate")
    assert row is not None
    assert len(changes) == UPDATES
    assert hot / UPDATES == pytest.approx((after[1] - before[1]) / UPDATES, abs=0.01)
    assert work.heap_pages_before == pytest.approx(before[2], rel=0.01)
    assert work.heap_pages_after == pytest.approx(new[2], rel=0.01)
    assert work.index_pages_after == row[0]
