"""
Many sessions write a table that is kept in order, and servers crash under it.

Whatever happens, the rows that are there afterwards are those that were committed, the index and
the table agree, and (where the server has amcheck) both pass its checks.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
from collections import Counter
from collections.abc import Callable, Sequence

import psycopg
import pytest

from pgheadroom.errors import ServerStartFailed
from pgheadroom.servers import Cluster, Host, ServerPrograms

Session = psycopg.Connection[tuple[object, ...]]

WRITERS = 8
CRASH_SETTINGS = {"autovacuum_naptime": "1s", "max_connections": "40", "jit": "off"}
TABLE = """
CREATE TABLE t (k int, writer int, v text) USING {method} WITH (fillfactor = 90);
INSERT INTO t SELECT 100 * g, -1, repeat('x', 200) FROM generate_series(1, 5000) g;
CREATE INDEX t_k ON t (k);
ALTER TABLE t CLUSTER ON t_k;
CLUSTER t;
"""
TRIGGER = "CREATE TRIGGER place BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION cluster_place()"
METHODS = ("heap", "clustered_heap")
"""By the trigger, and by the access method."""


def make(session: Session, method: str) -> None:
    """The table, kept in order by that method."""
    session.execute(TABLE.format(method=method))
    if method == "heap":
        session.execute(TRIGGER)


def check(session: Session, table: str = "t", index: str = "t_k") -> None:
    """By index and by table the same rows; amcheck too, where there is one."""
    whole = (
        "SELECT count(*), coalesce(sum(k), 0), md5(string_agg(ctid::text, ',' ORDER BY k, ctid)) "
        f"FROM {table}"
    )
    session.execute(
        "SET enable_seqscan = on; SET enable_indexscan = off; SET enable_bitmapscan = off"
    )
    by_table = session.execute(whole).fetchone()
    session.execute("SET enable_seqscan = off; SET enable_indexscan = on")
    by_index = session.execute(whole).fetchone()
    session.execute("RESET enable_seqscan; RESET enable_indexscan; RESET enable_bitmapscan")
    assert by_table == by_index
    has_amcheck = "SELECT 1 FROM pg_available_extensions WHERE name = 'amcheck'"
    if session.execute(has_amcheck).fetchone() is not None:
        session.execute("CREATE EXTENSION IF NOT EXISTS amcheck")
        session.execute(f"SELECT bt_index_check('{index}', true)")
        verify_heap(session, table)


def verify_heap(session: Session, table: str) -> None:
    """
    What amcheck says of the table; of the access method it is told that it is heap.

    verify_heapam takes none but heap, which is what the pages are; the change of the catalog is
    rolled back.
    """
    with session.transaction(force_rollback=True):
        session.execute(
            "UPDATE pg_class SET relam = (SELECT oid FROM pg_am WHERE amname = 'heap') "
            f"WHERE oid = '{table}'::regclass"
        )
        assert session.execute(f"SELECT * FROM verify_heapam('{table}')").fetchall() == []


def side_by_side(tasks: list[Callable[[], None]]) -> None:
    """Run all at once; the first error of any is raised when all are done."""
    errors: list[BaseException] = []

    def guarded(task: Callable[[], None]) -> None:
        try:
            task()
        except BaseException as error:  # noqa: BLE001 - raised below
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(task,)) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def a_writer(
    cluster: Cluster, database: str, number: int, rounds: int, left: Counter[tuple[int, int]]
) -> Callable[[], None]:
    """
    One session: rows between, before and behind the others, deleted and updated, rolled back.

    It changes its own rows alone, so that `left` says how often (k, writer) is there.
    """

    def write() -> None:
        rng = random.Random(number)
        with cluster.connect(database) as session:
            for n in range(rounds):
                k, width = rng.randrange(600_000), rng.randrange(400)
                with session.transaction():
                    session.execute(
                        "INSERT INTO t SELECT %s + g, %s, repeat('y', %s) "
                        "FROM generate_series(0, 3) g",
                        (k, number, width),
                    )
                    session.execute(
                        "UPDATE t SET v = v || 'longer' WHERE k = %s AND writer = %s", (k, number)
                    )
                    session.execute(
                        "DELETE FROM t WHERE k BETWEEN %s AND %s AND writer = %s",
                        (k + 1, k + 2, number),
                    )
                for gone in (k + 1, k + 2):
                    del left[gone, number]
                left[k, number] += 1
                left[k + 3, number] += 1
                if n % 3 == 0:
                    with session.transaction(force_rollback=True):
                        session.execute("INSERT INTO t VALUES (%s, %s, 'gone')", (k, number))

    return write


@pytest.mark.parametrize("method", METHODS)
def test_writers_and_maintenance(
    cluster: Cluster, database: str, session: Session, method: str
) -> None:
    """Eight writers beside VACUUM, REINDEX CONCURRENTLY, another mark and no mark: nothing lost."""
    make(session, method)
    session.execute("CREATE INDEX t_other ON t (writer, k)")

    def maintain() -> None:
        with cluster.connect(database) as own:
            for n in range(WRITERS):
                own.execute("VACUUM t")
                own.execute("REINDEX INDEX CONCURRENTLY t_k")
                own.execute(f"ALTER TABLE t CLUSTER ON {('t_other', 't_k')[n % 2]}")
                own.execute("DROP INDEX CONCURRENTLY IF EXISTS t_spare")
                own.execute("CREATE INDEX CONCURRENTLY t_spare ON t (k, writer)")
                own.execute("ALTER TABLE t CLUSTER ON t_spare")

    left: Counter[tuple[int, int]] = Counter()
    side_by_side([*(a_writer(cluster, database, n, 120, left) for n in range(WRITERS)), maintain])
    check(session)
    there = session.execute("SELECT k, writer FROM t WHERE writer >= 0").fetchall()
    assert Counter(there) == left
    assert left.total() > 1400
    assert session.execute("SELECT count(*) FROM t WHERE writer < 0").fetchone() == (5000,)


@pytest.mark.parametrize("method", METHODS)
def test_truncated_between(cluster: Cluster, database: str, session: Session, method: str) -> None:
    """
    A session that has inserted goes on after others have emptied or shrunk the table.

    A block number kept over statements led to "could not read blocks 23809..23809" here: what
    tells heap of the page is its own hint, which it resets.
    """
    make(session, method)
    with cluster.connect(database) as other:
        for statement in (
            "TRUNCATE t",
            "DELETE FROM t WHERE k > 1000",
            "CLUSTER t",
            "VACUUM FULL t",
        ):
            session.execute("INSERT INTO t SELECT 7 * g, 1, 'a' FROM generate_series(1, 4000) g")
            session.execute("INSERT INTO t VALUES (900000, 1, 'at the end')")
            other.execute(statement)
            if statement.startswith("DELETE"):
                other.execute("VACUUM (TRUNCATE) t")
            session.execute("INSERT INTO t VALUES (900001, 1, 'after'), (5, 1, 'after')")
            check(session)
    found = session.execute("SELECT count(*) FROM t WHERE v = 'after'").fetchone()
    assert found is not None
    assert found[0] >= 2


@pytest.mark.parametrize("method", METHODS)
def test_table_is_emptied_while_a_statement_waits(
    cluster: Cluster, database: str, session: Session, method: str
) -> None:
    """A prepared INSERT that waits for TRUNCATE, CLUSTER or DROP INDEX goes on in what is there."""
    make(session, method)
    session.execute(
        "PREPARE one AS INSERT INTO t SELECT 70 * g, 2, 'w' FROM generate_series(1, 500) g"
    )
    session.execute("EXECUTE one")
    with cluster.connect(database) as other:
        for statement in ("TRUNCATE t", "CLUSTER t", "DROP INDEX t_k"):
            waiter = threading.Thread(target=session.execute, args=("EXECUTE one",))
            with other.transaction():
                other.execute(statement)
                waiter.start()
                waiting = (
                    "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 't'::regclass"
                )
                while other.execute(waiting).fetchone() == (0,):
                    pass
            waiter.join()
    session.execute("CREATE INDEX t_k ON t (k)")
    check(session)
    assert session.execute("SELECT count(*) FROM t WHERE v = 'w'").fetchone() == (1500,)


def at_once(cluster: Cluster, _: random.Random) -> None:
    """An immediate stop."""
    cluster.stop("immediate")


def backend_killed(cluster: Cluster, rng: random.Random) -> None:
    """SIGKILL to a writer: the postmaster ends all others, and recovers by itself."""
    with cluster.connect() as session:
        writers = session.execute(
            "SELECT pid FROM pg_stat_activity WHERE query LIKE 'INSERT INTO t%'"
        ).fetchall()
        (pid,) = rng.choice(writers)
        assert isinstance(pid, int)
        os.kill(pid, signal.SIGKILL)
        # Until the postmaster has noticed, it takes connections, and ends them with the others.
        with contextlib.suppress(psycopg.OperationalError):
            while True:
                session.execute("SELECT 1")


def postmaster_killed(cluster: Cluster, _: random.Random) -> None:
    """SIGKILL to the postmaster: its children notice by themselves, whenever that is."""
    pid = int((cluster.data_dir / "postmaster.pid").read_text().split()[0])
    os.kill(pid, signal.SIGKILL)
    cluster.stop("immediate")  # waits for its end


def recovered(cluster: Cluster) -> Session:
    """A connection to the server, started if it has ended, as soon as it takes one."""
    while not cluster.running:
        try:
            cluster.start(CRASH_SETTINGS)
        except ServerStartFailed as error:
            # Children of a killed postmaster hold the shared memory until they notice.
            if "pre-existing shared memory block" not in str(error):
                raise
    while True:
        try:
            return cluster.connect()
        except psycopg.OperationalError:
            assert cluster.running


def crash(
    extended: ServerPrograms,
    crashes: int,
    method: str,
    how: Sequence[Callable[[Cluster, random.Random], None]],
) -> None:
    """End a server under eight writers, again and again; every committed row is there."""
    with Host(extended) as host:
        cluster = host.cluster("main")
        cluster.start(CRASH_SETTINGS)
        with cluster.connect() as session:
            session.execute("CREATE EXTENSION clustered_heap")
            make(session, method)
        rng = random.Random(7)
        committed: dict[int, int] = dict.fromkeys(range(WRITERS), 0)
        for number_of_crash in range(crashes):
            limit = rng.randrange(20, 400)
            enough, over = threading.Event(), threading.Event()

            def write(
                number: int,
                limit: int = limit,
                enough: threading.Event = enough,
                over: threading.Event = over,
            ) -> None:
                own = random.Random(number + committed[number])
                try:
                    with cluster.connect() as session:
                        for n in range(100_000):
                            # One that connects late may find the server that has recovered.
                            if over.is_set():
                                return
                            rows = own.randrange(1, 20)
                            session.execute(
                                "INSERT INTO t SELECT %s + g, %s, repeat('z', 150) "
                                "FROM generate_series(1, %s) g",
                                (own.randrange(600_000), number, rows),
                            )
                            committed[number] += rows
                            # On a busy machine some have not even connected by then.
                            if n >= limit and all(committed.values()):
                                enough.set()
                except psycopg.OperationalError:
                    pass

            threads = [threading.Thread(target=write, args=(number,)) for number in committed]
            for thread in threads:
                thread.start()
            enough.wait(timeout=300)
            how[number_of_crash % len(how)](cluster, rng)
            over.set()
            for thread in threads:
                thread.join()
            with recovered(cluster) as session:
                check(session)
                found = dict(
                    session.execute(
                        "SELECT writer, count(*)::int FROM t WHERE writer >= 0 GROUP BY writer"
                    ).fetchall()
                )
                for number, count in committed.items():
                    # One statement of each may have been committed without an answer.
                    there = found.get(number, 0)
                    assert isinstance(there, int)
                    assert count <= there <= count + 19
                    committed[number] = there
        assert all(committed.values())
        with cluster.connect() as session:
            pages = session.execute(
                "SELECT pages_per_1000 < 2 * pages_per_1000_ideal FROM cluster_quality('t')"
            ).fetchone()
            assert pages == (True,)


KINDS = (backend_killed, postmaster_killed, at_once)


@pytest.mark.parametrize("method", METHODS)
def test_crashes(extended: ServerPrograms, method: str) -> None:
    """Under eight writers one of them is killed, then the postmaster, then an immediate stop."""
    crash(extended, 3, method, KINDS)


@pytest.mark.long(reason="fifty crashes take some minutes")
@pytest.mark.minors
@pytest.mark.parametrize("method", METHODS)
def test_many_crashes(extended: ServerPrograms, method: str) -> None:
    """Fifty crashes under eight writers, the three kinds by turns."""
    crash(extended, 50, method, KINDS)
