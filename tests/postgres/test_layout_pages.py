"""Page arithmetic of the layout against real servers: rows per page, spare room, index pages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from page_file import read_pages

from pgheadroom import _core
from pgheadroom.servers import Cluster, Host, ServerPrograms

WIDTHS = [0, 10, 60, 61, 126, 127, 300, 780, 1000, 1960]
FILLFACTORS = [100, 99, 90, 80, 70, 50, 31, 10]


@pytest.fixture(scope="module")
def cluster(programs: ServerPrograms) -> Iterator[Cluster]:
    with Host(programs) as host:
        made = host.cluster("layout")
        made.start({"autovacuum": "off"})
        yield made
        made.stop()


@pytest.fixture
def connection(cluster: Cluster) -> Iterator[psycopg.Connection[Any]]:
    with cluster.connect() as opened:
        yield opened


def _number(connection: psycopg.Connection[Any], query: str) -> int:
    row = connection.execute(query).fetchone()
    assert row is not None
    return int(row[0])


def _load(connection: psycopg.Connection[Any], width: int, fillfactor: int) -> int:
    """Fill table t with rows of `(int4, text of this width)`, ten pages and some; the row count."""
    row_bytes = _core.heap_tuple_bytes([("int4", 4), ("text", width)])
    rows = 10 * _core.rows_per_page(row_bytes, fillfactor) + 1
    connection.execute("DROP TABLE IF EXISTS t")
    connection.execute(f"CREATE TABLE t (id int, filler text) WITH (fillfactor = {fillfactor})")
    connection.execute("ALTER TABLE t ALTER filler SET STORAGE EXTERNAL")
    connection.execute(
        f"INSERT INTO t SELECT g, repeat('x', {width}) FROM generate_series(1, {rows}) g"
    )
    return rows


@pytest.mark.parametrize("fillfactor", FILLFACTORS)
def test_pages_after_loading(
    cluster: Cluster, connection: psycopg.Connection[Any], fillfactor: int
) -> None:
    """Every full page has the computed number of rows, and the table the computed pages."""
    for width in WIDTHS:
        rows = _load(connection, width, fillfactor)
        connection.execute("CHECKPOINT")
        path = connection.execute("SELECT pg_relation_filepath('t')").fetchone()
        assert path is not None
        pages = read_pages(cluster.relation_path(path[0]))
        row_bytes = _core.heap_tuple_bytes([("int4", 4), ("text", width)])
        per_page = _core.rows_per_page(row_bytes, fillfactor)
        assert [len(page.items) for page in pages] == [per_page] * 10 + [1], width
        assert len(pages) == _core.heap_pages(rows, row_bytes, fillfactor), width


@pytest.mark.parametrize("fillfactor", FILLFACTORS)
def test_spare_versions(connection: psycopg.Connection[Any], fillfactor: int) -> None:
    """
    In one transaction, where nothing can be pruned, a full page takes that many new versions.

    The next one leaves the page: this is the room that a fillfactor really buys.
    """
    for width in WIDTHS:
        _load(connection, width, fillfactor)
        row_bytes = _core.heap_tuple_bytes([("int4", 4), ("text", width)])
        spare = _core.spare_versions(row_bytes, fillfactor)
        with connection.transaction():
            stayed = 0
            while True:
                connection.execute("UPDATE t SET filler = filler WHERE id = 1")
                if _number(connection, "SELECT ctid <= '(0,65535)' FROM t WHERE id = 1") == 0:
                    break
                stayed += 1
        assert stayed == spare, width


@pytest.mark.parametrize(
    ("type_name", "expression", "payload"),
    [
        ("int4", "g", 4),
        ("int8", "g::int8", 8),
        ("uuid", "md5(g::text)::uuid", 16),
        ("text", "md5(g::text)", 32),
        ("text", "repeat(md5(g::text), 10)", 320),
        ("numeric", "g + 100000000.5", 10),
    ],
)
def test_pages_of_a_fresh_unique_index(
    connection: psycopg.Connection[Any], type_name: str, expression: str, payload: int
) -> None:
    """CREATE INDEX on distinct keys has the computed pages at any size and fillfactor."""
    entry = _core.index_tuple_bytes([(type_name, payload)])
    for rows in [0, 1, 20, 367, 368, 5000, 30001]:
        connection.execute("DROP TABLE IF EXISTS k")
        connection.execute(f"CREATE TABLE k (k {type_name})")
        connection.execute(f"INSERT INTO k SELECT {expression} FROM generate_series(1, {rows}) g")
        for fillfactor in [90, 100, 50, 10]:
            connection.execute(f"CREATE UNIQUE INDEX k_k ON k (k) WITH (fillfactor = {fillfactor})")
            pages = _number(connection, "SELECT pg_relation_size('k_k') / 8192")
            assert pages == _core.btree_build_pages(rows, entry, fillfactor), (rows, fillfactor)
            connection.execute("DROP INDEX k_k")


def test_key_loaded_in_ascending_order(connection: psycopg.Connection[Any]) -> None:
    """A primary key that grows with the load has the same pages as one built afterwards."""
    for rows in [366, 367, 5000, 100_000]:
        connection.execute("DROP TABLE IF EXISTS k")
        connection.execute("CREATE TABLE k (k int PRIMARY KEY)")
        connection.execute(f"INSERT INTO k SELECT g FROM generate_series(1, {rows}) g")
        pages = _number(connection, "SELECT pg_relation_size('k_pkey') / 8192")
        assert abs(pages - _core.btree_build_pages(rows, 16)) <= 1, rows


def test_columns_not_needed_are_cut_from_inner_pages(
    connection: psycopg.Connection[Any],
) -> None:
    """With a distinct first column, downlinks carry that column alone."""
    connection.execute("DROP TABLE IF EXISTS k")
    connection.execute("CREATE TABLE k (a int8, b int8, c int8)")
    connection.execute("INSERT INTO k SELECT g, g, g FROM generate_series(1, 60000) g")
    connection.execute("CREATE INDEX k_abc ON k (a, b) INCLUDE (c)")
    pages = _number(connection, "SELECT pg_relation_size('k_abc') / 8192")
    assert pages == _core.btree_build_pages(60_000, 32, 90, pivot_tuple_bytes=16)
