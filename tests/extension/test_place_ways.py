"""Ways in and out of a table under `cluster_place()`: COPY, dump, restore, a missing library."""

from __future__ import annotations

import subprocess
from pathlib import Path

import psycopg
import pytest

from pgheadroom.servers import Cluster, ServerPrograms, find_client

Session = psycopg.Connection[tuple[object, ...]]

TABLE = """
CREATE TABLE t (k int, v text) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT 10 * g, repeat('x', 360) FROM generate_series(1, 20000) g;
CREATE INDEX t_k ON t (k);
ALTER TABLE t CLUSTER ON t_k;
CREATE TABLE plain (LIKE t INCLUDING ALL);
INSERT INTO plain SELECT * FROM t;
CREATE TRIGGER place BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION cluster_place();
"""


def pages(session: Session, table: str, index: str) -> tuple[float, int]:
    """Pages under 1,000 rows, and pages of the table."""
    found = session.execute(
        f"SELECT pages_per_1000, heap_pages FROM cluster_quality('{table}', '{index}')"
    ).fetchone()
    assert found is not None
    per_1000, whole = found
    assert isinstance(per_1000, float)
    assert isinstance(whole, int)
    return per_1000, whole


def test_copy_is_not_placed(session: Session) -> None:
    """
    COPY has a page in hand, which goes before heap's hint (hio.c): rows lie as they come.

    The documentation says so. What must not happen is a page for each row that the trigger took
    and COPY left.
    """
    session.execute(TABLE)
    rows = [(n * 7919 % 200_003, "y" * 360) for n in range(4000)]
    for table in ("t", "plain"):
        with session.cursor().copy(f"COPY {table} FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)
    placed, placed_pages = pages(session, "t", "t_k")
    plain, plain_pages = pages(session, "plain", "plain_k_idx")
    assert placed == pytest.approx(plain, rel=0.05)
    assert placed_pages <= plain_pages + 10
    # The remedy: COPY into a table beside it, and from there.
    session.execute("CREATE TABLE stage (LIKE t)")
    session.execute("DELETE FROM t WHERE v LIKE 'y%'")
    session.execute("VACUUM FULL t")
    with session.cursor().copy("COPY stage FROM STDIN") as copy:
        for row in rows:
            copy.write_row(row)
    session.execute("INSERT INTO t SELECT * FROM stage ORDER BY k")
    assert pages(session, "t", "t_k")[0] < plain / 2


@pytest.mark.parametrize("method", ["heap", "clustered_heap"])
def test_dump_and_restore(
    cluster: Cluster, extended: ServerPrograms, database: str, session: Session, method: str
) -> None:
    """pg_dump carries the mark and the trigger or access method, which work at once."""
    session.execute(TABLE)
    if method == "clustered_heap":
        session.execute("DROP TRIGGER place ON t")
        session.execute("ALTER TABLE t SET ACCESS METHOD clustered_heap")
    session.execute("INSERT INTO t SELECT 10 * g + 5, 'late' FROM generate_series(1, 20000, 50) g")
    dump, _ = find_client("pg_dump", extended)
    psql, _ = find_client("psql", extended)
    environment = cluster.client_env() | {"PGDATABASE": database}
    script = subprocess.run(
        [dump], env=environment, capture_output=True, text=True, check=True
    ).stdout
    restored = f"{database}_restored"
    session.execute(f"CREATE DATABASE {restored}")
    try:
        subprocess.run(
            [psql, "-X", "-q", "-v", "ON_ERROR_STOP=1"],
            env=environment | {"PGDATABASE": restored},
            input=script,
            capture_output=True,
            text=True,
            check=True,
        )
        with cluster.connect(restored) as other:
            assert other.execute("SELECT count(*) FROM t").fetchone() == (20400,)
            before = pages(other, "t", "t_k")[0]
            other.execute(
                "INSERT INTO t SELECT 10 * g + 7, repeat('z', 360) "
                "FROM generate_series(1, 20000, 10) g ORDER BY g % 97"
            )
            assert pages(other, "t", "t_k")[0] < 1.3 * before
    finally:
        session.execute(f"DROP DATABASE {restored} WITH (FORCE)")


def library_of(session: Session, extended: ServerPrograms) -> Path:
    """The extension's library in the copied server."""
    folder = session.execute("SELECT setting FROM pg_config WHERE name = 'PKGLIBDIR'").fetchone()
    assert folder is not None
    return extended.bin_dir.parent.joinpath(str(folder[0])) / "clustered_heap.so"


def test_library_of_a_table_is_missing(
    cluster: Cluster, extended: ServerPrograms, database: str, session: Session
) -> None:
    """A table of the access method can neither be read nor dropped then, and loses nothing."""
    session.execute("CREATE TABLE kept USING clustered_heap AS SELECT 1 AS k")
    library = library_of(session, extended)
    away = library.with_suffix(".away")
    library.rename(away)
    try:
        with cluster.connect(database) as other:
            for statement in ("SELECT * FROM kept", "DROP TABLE kept"):
                with pytest.raises(psycopg.errors.UndefinedFile, match="clustered_heap"):
                    other.execute(statement)
    finally:
        away.rename(library)
    with cluster.connect(database) as other:
        assert other.execute("SELECT * FROM kept").fetchone() == (1,)


def test_library_is_missing(
    cluster: Cluster, extended: ServerPrograms, database: str, session: Session
) -> None:
    """Without the library an INSERT fails by name; the way out does without it."""
    session.execute(TABLE)
    library = library_of(session, extended)
    away = library.with_suffix(".away")
    library.rename(away)
    try:
        with cluster.connect(database) as other:
            with pytest.raises(psycopg.errors.UndefinedFile, match="clustered_heap"):
                other.execute("INSERT INTO t VALUES (1, 'a')")
            other.execute("SELECT count(*) FROM t WHERE k > 5")
            other.execute("ALTER TABLE t DISABLE TRIGGER place")
            other.execute("INSERT INTO t VALUES (1, 'a')")
            other.execute("DROP EXTENSION clustered_heap CASCADE")
            other.execute("INSERT INTO t VALUES (2, 'b')")
            assert other.execute("SELECT count(*) FROM t WHERE k < 5").fetchone() == (2,)
    finally:
        away.rename(library)
