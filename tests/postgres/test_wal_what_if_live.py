"""`wal what-if` on real logs: what it says of one log is what another one was."""

from __future__ import annotations

from collections.abc import Sequence

import psycopg
import pytest

from pgheadroom.servers import Host, ServerPrograms
from pgheadroom.wal import Grid, RelationWal, names_of_server, read_wal, wal_what_if
from pgheadroom.wal.what_if_values import middle

ROUNDS = 4
TOLERANCE_FRAC = 0.03


def _run(connection: psycopg.Connection, *statements: str) -> None:
    for statement in statements:
        connection.execute(statement.encode())


def _position(connection: psycopg.Connection) -> str:
    row = connection.execute("SELECT pg_current_wal_insert_lsn()::text").fetchone()
    assert row is not None
    return str(row[0])


def _played(connection: psycopg.Connection, table: str, *, checkpoints: bool) -> tuple[str, str]:
    """The same changes of a table of its own, from a checkpoint on; where they lie in the log."""
    _run(
        connection,
        f"CREATE TABLE {table} (id int PRIMARY KEY, n int, p text) WITH (fillfactor = 70)",
        f"INSERT INTO {table} SELECT i, i, repeat('x', 90) FROM generate_series(1, 20000) i",
        f"CREATE INDEX {table}_n ON {table} (n)",
        f"VACUUM {table}",
    )
    # Its record is the first of the range, its redo point lies within.
    begin = _position(connection)
    _run(connection, "CHECKPOINT")
    for number in range(ROUNDS):
        if checkpoints and number:
            _run(connection, "CHECKPOINT")
        _run(
            connection,
            f"UPDATE {table} SET p = repeat('y', 90) WHERE id % 20 = {number}",
            f"UPDATE {table} SET n = n + 7 WHERE id % 50 = {number}",
            f"DELETE FROM {table} WHERE id % 100 = {number}",
            f"INSERT INTO {table} SELECT i, i, 'z' FROM generate_series({30000 + number * 500},"
            f" {30499 + number * 500}) i",
        )
    return begin, _position(connection)


def _of(relations: Sequence[RelationWal], name: str) -> RelationWal:
    (found,) = (one for one in relations if one.name == name)
    return found


def test_longer_is_what_it_would_have_been(programs: ServerPrograms) -> None:
    """
    A log with four checkpoints, asked for none: the log of the same changes without them.

    By table and index, images and all WAL within 3 %; the log's own sums are those of wal stats.
    """
    with Host(programs) as host:
        cluster = host.cluster("what_if")
        cluster.start({"autovacuum": "off", "wal_keep_size": "1GB", "max_wal_size": "4GB"})
        with cluster.connect() as connection:
            often = _played(connection, "often", checkpoints=True)
            once = _played(connection, "once", checkpoints=False)
            names = names_of_server(connection.info.dsn, {})
        cluster.stop()
        folder = cluster.data_dir / "pg_wal"
        grid = Grid(timeouts_s=(86400.0,), sizes_bytes=(2**40,))
        result = wal_what_if(folder, begin=often[0], end=often[1], names=names, grid=grid)
        own = read_wal(folder, begin=result.start_lsn, end=result.end_lsn, names=names)
        truth = read_wal(folder, begin=once[0], end=once[1], names=names)
    now, longer = result.checkpoint
    assert (now.bytes, now.fpi_bytes) == (own.total.bytes, own.total.fpi_bytes)
    assert now.checkpoints == ROUNDS - 1
    assert longer.checkpoints == 0
    assert middle(longer.fpi_bytes) < 0.6 * middle(now.fpi_bytes)
    found = {one.name: one for one in longer.relations}
    for name in ("", "_pkey", "_n"):
        expected = _of(truth.relations, f"once{name}")
        for field in ("bytes", "fpi_bytes"):
            guess = middle(getattr(found[f"often{name}"], field))
            assert guess == pytest.approx(getattr(expected, field), rel=TOLERANCE_FRAC), name
    indexes = {one.name: one.bytes for one in result.without_index}
    assert indexes["often_pkey"] == _of(own.relations, "often_pkey").bytes
    assert "often" not in indexes
    assert not any("The rule" in note for note in result.notes)
