"""Pages out of full-page images against pg_waldump --save-fullpage, byte for byte."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from log_tools import position, tool

from pgheadroom import _core
from pgheadroom.servers import Cluster, Host, ServerPrograms

pytestmark = pytest.mark.each

METHODS = ("off", "pglz", "lz4", "zstd")
FORKS = {"": 0, "main": 0, "fsm": 1, "vm": 2, "init": 3}
SETUP = """
CREATE TABLE t (a int PRIMARY KEY, b text, c int[]);
INSERT INTO t SELECT i, md5(i::text), array[i % 10, i % 100] FROM generate_series(1, 4000) i;
CREATE INDEX ON t USING gin (c);
VACUUM t
"""


@contextmanager
def _played(programs: ServerPrograms) -> Iterator[tuple[Cluster, dict[str, tuple[int, int]]]]:
    """A stopped cluster, and where its log has images by each method that it was built with."""
    with Host(programs) as host:
        cluster = host.cluster("images")
        cluster.start({"autovacuum": "off", "wal_log_hints": "on", "wal_keep_size": "1GB"})
        done: dict[str, tuple[int, int]] = {}
        with cluster.connect() as connection:
            for statement in SETUP.split(";\n"):
                connection.execute(statement.encode())
            for method in METHODS:
                try:
                    connection.execute(f"SET wal_compression = {method}".encode())
                except psycopg.errors.InvalidParameterValue:
                    continue
                connection.execute(b"CHECKPOINT")
                begin = position(connection)
                connection.execute(b"UPDATE t SET b = md5(b) WHERE a % 5 = 0")
                connection.execute(b"CREATE TABLE u AS SELECT * FROM t")
                connection.execute(b"CREATE INDEX ON u (b)")
                connection.execute(b"DROP TABLE u")
                done[method] = (begin, position(connection))
        cluster.stop()
        yield cluster, done


def _saved(folder: Path) -> dict[tuple[int, tuple[int, int, int], int, int], bytes]:
    """Images by position, relation, fork and block, as their files' names have them."""
    found = {}
    for path in folder.iterdir():
        # [TIMELINE-]HIGH-LOW.TABLESPACE.DATABASE.RELFILENODE.BLOCK_FORK
        place, tablespace, database, relation, block = path.name.split(".")
        high, low = place.split("-")[-2:]
        number, _, fork = block.partition("_")
        numbers = (int(tablespace), int(database), int(relation))
        key = ((int(high, 16) << 32) + int(low, 16), numbers, FORKS[fork], int(number))
        found[key] = path.read_bytes()
    return found


def test_pages_are_pg_waldumps(programs: ServerPrograms, tmp_path: Path) -> None:
    """Every image of every method: the page with its hole, to the byte."""
    if programs.version.major < 16:
        pytest.skip("pg_waldump has --save-fullpage from 16 on")
    program = tool("pg_waldump", programs)
    with _played(programs) as (cluster, methods):
        folder = cluster.data_dir / "pg_wal"
        first = min(folder.glob("[0-9A-F]" * 24))
        stats = _core.wal_sums([folder])
        saved = tmp_path / "saved"
        low, high = (f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}" for lsn in stats.spans[0])
        done = subprocess.run(
            [program, "-q", "-p", folder, "-s", low, "-e", high, f"--save-fullpage={saved}",
             first.name],
            check=False, capture_output=True, text=True,
        )  # fmt: skip
        expected = _saved(saved)
        assert expected, done.stderr
        pages = _core.wal_pages([folder], most=1_000_000)
    assert len(pages) == stats.total[2]
    assert {page[:4]: page[4] for page in pages} == expected
    assert len(pages) > 100 * len(methods)
    assert {"off", "pglz"} <= set(methods)


def test_compressed_again(programs: ServerPrograms) -> None:
    """
    Images of each method become those of every other: the same bytes whichever they come from.

    The server's own lz4 and zstd may be other releases than ours, whose output may differ a bit.
    """
    with _played(programs) as (cluster, methods):
        folder = cluster.data_dir / "pg_wal"
        for method, (begin, end) in methods.items():
            packed = _core.wal_packed([folder], from_lsn=begin, to_lsn=end, every=1)
            assert packed.sampled == packed.images > 50
            assert packed.broken == 0
            sizes = {name: length for name, length, _, _ in packed.methods}
            lengths = {name: count for name, _, count, _ in packed.methods}
            near = 0 if method in ("off", "pglz") else 0.01
            assert sizes[method] == pytest.approx(packed.logged_bytes, rel=near, abs=0)
            assert lengths[method] == pytest.approx(packed.with_length, rel=near, abs=0)
            assert sizes["zstd"] < sizes["lz4"] < sizes["off"] == packed.unpacked_bytes
            assert all(cpu_ns > 0 for _, _, _, cpu_ns in packed.methods[1:])
