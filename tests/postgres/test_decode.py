"""Our page decoder against pageinspect and pg_visibility, byte for byte on the same files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from pgheadroom import _core
from pgheadroom.servers import Cluster, Host, ServerPrograms

BLCKSZ = 8192
EXTENSIONS = ("pageinspect", "pg_visibility")
HISTORY = """
CREATE TABLE t (id int PRIMARY KEY, n int, p text) WITH (fillfactor = 90);
CREATE INDEX t_n ON t (n);
INSERT INTO t SELECT i, i % 40, CASE WHEN i % 7 > 0 THEN repeat('x', i % 90) END
    FROM generate_series(1, 3000) i;
VACUUM t;
DELETE FROM t WHERE id % 11 = 0;
UPDATE t SET p = 'changed' WHERE id % 5 = 0;
UPDATE t SET n = n + 1 WHERE id % 13 = 0;
SELECT count(*) FROM t;
VACUUM FREEZE t;
UPDATE t SET p = p WHERE id BETWEEN 100 AND 400;
UPDATE t SET p = p WHERE id BETWEEN 200 AND 300;
SELECT count(*) FROM (SELECT 1 FROM t WHERE id < 50 FOR UPDATE) s;
BEGIN;
UPDATE t SET n = 0 WHERE id > 2900;
ROLLBACK;
SELECT count(*) FROM t;
SET enable_seqscan = off;
SELECT count(p) FROM t WHERE n < 20;
CHECKPOINT
"""


@pytest.fixture(scope="module")
def session(
    programs: ServerPrograms,
) -> Iterator[tuple[psycopg.Connection[Any], Cluster]]:
    with Host(programs) as host:
        cluster = host.cluster("decode")
        cluster.start({"autovacuum": "off"})
        with cluster.connect() as connection:
            found = connection.execute(
                "SELECT count(*) FROM pg_available_extensions WHERE name = ANY (%s)",
                (list(EXTENSIONS),),
            ).fetchone()
            assert found is not None
            if found[0] < len(EXTENSIONS):
                pytest.skip(f"{programs} has no {' and no '.join(EXTENSIONS)}")
            for name in EXTENSIONS:
                connection.execute(f"CREATE EXTENSION {name}".encode())
            for statement in HISTORY.split(";\n"):
                connection.execute(statement.encode())
            yield connection, cluster
        cluster.stop()


def _file(connection: psycopg.Connection[Any], cluster: Cluster, name: str) -> Path:
    row = connection.execute("SELECT pg_relation_filepath(%s)", (name,)).fetchone()
    assert row is not None
    return cluster.relation_path(row[0])


def _pages(path: Path) -> list[bytes]:
    content = path.read_bytes()
    return [content[at : at + BLCKSZ] for at in range(0, len(content), BLCKSZ)]


@pytest.mark.contrib
def test_heap_pages(session: tuple[psycopg.Connection[Any], Cluster]) -> None:
    """Headers, line pointers, transactions, ctid and flags are those that pageinspect shows."""
    connection, cluster = session
    pages = _pages(_file(connection, cluster, "t"))
    kinds = set()
    for blkno, page in enumerate(pages):
        header, items = _core.decode_heap_page(page, blkno)
        assert header is not None
        (shown,) = connection.execute(
            # A checksum is computed when a page is written, so the one in memory is older.
            "SELECT CASE WHEN current_setting('data_checksums')::bool "
            "THEN page_checksum(raw, %(n)s)::int & 65535 ELSE 0 END, flags::int, lower, upper, "
            "special, prune_xid::text::bigint FROM get_raw_page('t', %(n)s) raw, page_header(raw)",
            {"n": blkno},
        ).fetchall()
        assert shown == (
            header.pd_checksum,
            header.pd_flags,
            header.pd_lower,
            header.pd_upper,
            header.pd_special,
            header.pd_prune_xid,
        )
        rows = connection.execute(
            "SELECT lp_flags, CASE lp_flags WHEN 2 THEN lp_off END, "
            "CASE lp_flags WHEN 1 THEN lp_len END, t_xmin::text::bigint, t_xmax::text::bigint, "
            "t_ctid::text, t_infomask2, t_infomask, t_hoff "
            "FROM heap_page_items(get_raw_page('t', %s)) ORDER BY lp",
            (blkno,),
        ).fetchall()
        assert rows == [
            (
                item.lp_flags,
                item.redirect,
                item.lp_len,
                item.xmin,
                item.xmax,
                None if item.ctid is None else f"({item.ctid[0]},{item.ctid[1]})",
                item.infomask2,
                item.infomask,
                item.hoff,
            )
            for item in items
        ]
        kinds |= {item.lp_flags for item in items}
    assert kinds == {0, 1, 2, 3}, "the history leaves every kind of line pointer"


@pytest.mark.contrib
@pytest.mark.parametrize("index", ["t_pkey", "t_n"])
def test_btree_pages(session: tuple[psycopg.Connection[Any], Cluster], index: str) -> None:
    """Siblings, levels, flags, sizes, TIDs, posting lists and dead marks are pageinspect's."""
    connection, cluster = session
    pages = _pages(_file(connection, cluster, index))
    kinds = set()
    for blkno, page in enumerate(pages[1:], start=1):
        decoded = _core.decode_btree_page(page, blkno)
        assert decoded is not None
        (shown,) = connection.execute(
            "SELECT btpo_prev, btpo_next, btpo_level, btpo_flags FROM bt_page_stats(%s, %s)",
            (index, blkno),
        ).fetchall()
        assert shown == (decoded.prev, decoded.next, decoded.level, decoded.flags)
        rows = connection.execute(
            "SELECT itemlen, coalesce(dead, false), htid::text, tids::text[], ctid::text "
            "FROM bt_page_items(%s, %s) ORDER BY itemoffset",
            (index, blkno),
        ).fetchall()
        assert len(rows) == len(decoded.items)
        for (length, dead, htid, tids, ctid), item in zip(rows, decoded.items, strict=True):
            assert (length, dead) == (item.lp_len, item.is_dead)
            texts = [f"({block},{offset})" for block, offset in item.tids]
            assert (texts or [None])[0] == htid
            if item.kind == "posting":
                assert tids == texts
            if item.kind == "downlink":
                assert ctid.startswith(f"({item.child},")
            kinds.add((item.kind, item.is_dead))
    assert ("high key", False) in kinds
    if index == "t_n":
        assert ("posting", False) in kinds


@pytest.mark.contrib
def test_free_space_map(session: tuple[psycopg.Connection[Any], Cluster]) -> None:
    """All nodes of the tree are pageinspect's, which shows those that are not 0."""
    connection, cluster = session
    path = _file(connection, cluster, "t")
    for blkno, page in enumerate(_pages(path.with_name(f"{path.name}_fsm"))):
        nodes, _ = _core.decode_fsm_page(page, blkno)
        (text,) = connection.execute(
            "SELECT fsm_page_contents(get_raw_page('t', 'fsm', %s))", (blkno,)
        ).fetchall()[0]
        shown = [line for line in text.splitlines() if not line.startswith("fp_next_slot")]
        assert [line for line in shown if line] == [
            f"{number}: {value}" for number, value in enumerate(nodes) if value
        ]


@pytest.mark.contrib
def test_visibility_map(session: tuple[psycopg.Connection[Any], Cluster]) -> None:
    """Both bits of every page are those of pg_visibility."""
    connection, cluster = session
    path = _file(connection, cluster, "t")
    bits = _core.decode_visibility_page(path.with_name(f"{path.name}_vm").read_bytes()[:BLCKSZ])
    shown = connection.execute(
        "SELECT all_visible, all_frozen FROM pg_visibility_map('t') ORDER BY blkno"
    ).fetchall()
    assert bits[: len(shown)] == shown
    assert {(False, False), (True, True)} <= set(shown)
