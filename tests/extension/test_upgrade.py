"""pg_upgrade of tables that are kept in order: files stay, and rows go on being placed."""

from __future__ import annotations

import contextlib
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from sandbox import extended_copy
from test_writers import check

from pgheadroom.extension import lacking
from pgheadroom.servers import Cluster, Host, ServerPrograms, at_hand
from pgheadroom.servers.user import arguments, server_user

Session = psycopg.Connection[tuple[object, ...]]

TABLES = """
CREATE EXTENSION clustered_heap;
CREATE TABLE am (k int, writer int, v text, long text) USING clustered_heap;
CREATE TABLE by_trigger (LIKE am);
CREATE TRIGGER place BEFORE INSERT ON by_trigger FOR EACH ROW EXECUTE FUNCTION cluster_place();
CREATE TABLE parts (LIKE am) PARTITION BY RANGE (k);
CREATE TABLE part PARTITION OF parts DEFAULT USING clustered_heap;
"""
TABLE_NAMES = ("am", "by_trigger", "part")
FILL = """
ALTER TABLE {table} ALTER long SET STORAGE EXTERNAL;
INSERT INTO {table} SELECT 100 * g, -1, repeat('x', 200),
    CASE WHEN g % 100 = 0 THEN repeat(md5(g::text), 100) END FROM generate_series(1, 5000) g;
CREATE INDEX {table}_k ON {table} (k);
ALTER TABLE {table} CLUSTER ON {table}_k;
CLUSTER {table};
"""
LATECOMERS = """
INSERT INTO {table} SELECT g * 7919 % 500009, {writer}, repeat('x', 200)
FROM generate_series(1, 2000) g
"""
WHOLE = """
SELECT count(*), md5(string_agg(format('%%s %%s %%s', ctid, x, md5(long)), ',' ORDER BY ctid)),
       (SELECT cluster_quality('{table}')::text), pg_relation_size('{table}')
FROM {table} x
"""


def whole(session: Session, table: str) -> object:
    """Every row with its place, the exact order, the size."""
    return session.execute(WHOLE.format(table=table)).fetchone()


def older(programs: ServerPrograms) -> ServerPrograms:
    """The newest server of an older major version that the extension can be built for."""
    found = [
        each
        for each in at_hand()
        if each.version.major < programs.version.major and lacking(each) is None
    ]
    if not found:
        pytest.skip(f"no server older than {programs} with headers")
    return max(found, key=lambda each: each.version.major)


@contextlib.contextmanager
def without_library(programs: ServerPrograms) -> Iterator[None]:
    """The server lacks the extension's library meanwhile."""
    told = subprocess.run(
        [programs.program("pg_config"), "--pkglibdir"], capture_output=True, text=True, check=True
    )
    library = Path(told.stdout.strip()) / "clustered_heap.so"
    away = library.rename(library.with_suffix(".away"))
    try:
        yield
    finally:
        away.rename(library)


def upgraded(host: Host, old: Cluster, old_bin: Path, new: Cluster, new_bin: Path) -> str:
    """What pg_upgrade says."""
    folder = new.client_env()["PGHOST"]  # which the servers' user may write
    done = host.run(
        [
            new_bin / "pg_upgrade",
            *("--old-bindir", old_bin, "--new-bindir", new_bin),
            *("--old-datadir", old.data_dir, "--new-datadir", new.data_dir),
            *("--username", "postgres", "--socketdir", folder),
        ],
        env=new.client_env(),
        cwd=folder,
        timeout=300,
        **arguments(server_user()),
    )
    told = ("loadable_libraries.txt", "pg_upgrade_server.log")
    listed = [path.read_text() for name in told for path in new.data_dir.rglob(name)]
    return done.stdout + done.stderr + "".join(listed)


@pytest.mark.long(reason="two servers are copied, and pg_upgrade starts each of them several times")
@pytest.mark.pg(">= 17")
def test_upgraded(
    programs: ServerPrograms, extended: ServerPrograms, sandboxes: dict[Path, ServerPrograms]
) -> None:
    """
    Rows, their places and cluster_quality are equal, and new rows are placed.

    Without the library on the new side pg_upgrade refuses before it changes anything, and names it.
    """
    before = extended_copy(older(programs), sandboxes)
    with (
        Host(before, data_checksums=False) as old_host,
        Host(extended, data_checksums=False) as host,
    ):
        old, new = old_host.cluster("old"), host.cluster("new")
        new.start({"jit": "off"})  # a cluster's settings are written by its first start
        new.stop()
        old.start({"jit": "off"})
        with old.connect() as session:
            session.execute(TABLES)
            for table in TABLE_NAMES:
                session.execute(FILL.format(table=table))
                session.execute(LATECOMERS.format(table=table, writer=1))
                session.execute(f"VACUUM {table}")
            there = {table: whole(session, table) for table in TABLE_NAMES}
        old.stop()
        with without_library(extended):
            said = upgraded(host, old, before.bin_dir, new, extended.bin_dir)
        assert re.search(r'could not load library "([$]libdir/)?clustered_heap"', said), said
        said = upgraded(host, old, before.bin_dir, new, extended.bin_dir)
        assert "Upgrade Complete" in said, said
        new.start({"jit": "off"})
        with new.connect() as session:
            assert {table: whole(session, table) for table in TABLE_NAMES} == there
            for table in TABLE_NAMES:
                session.execute(LATECOMERS.format(table=table, writer=2))
                check(session, table, f"{table}_k")
                found = session.execute(
                    "SELECT row_count, pages_per_1000 < 1.5 * pages_per_1000_ideal "
                    f"FROM cluster_quality('{table}')"
                ).fetchone()
                assert found == (9000, True)
