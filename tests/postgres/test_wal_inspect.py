"""The log by pg_walinspect, where its files may not be read: the sums that the files have."""

from __future__ import annotations

import shutil
import threading
from typing import Any

import psycopg
import pytest

from pgheadroom.errors import PrivilegeMissing
from pgheadroom.servers import Host, ServerPrograms
from pgheadroom.wal import inspecting, names_of_server, read_wal
from pgheadroom.wal.live import grants, read_live
from pgheadroom.wal.names import Names
from pgheadroom.wal.values import WalStats

pytestmark = pytest.mark.each

WORK = """
CREATE TABLE u (id int PRIMARY KEY, v int, p text) WITH (fillfactor = 80);
INSERT INTO u SELECT i, 0, repeat('x', 100) FROM generate_series(1, 3000) i;
CREATE INDEX ON u (v);
CHECKPOINT;
UPDATE u SET p = repeat('y', 100) WHERE id % 3 = 0;
UPDATE u SET v = v + 1;
DELETE FROM u WHERE id % 7 = 0;
VACUUM u;
BEGIN; INSERT INTO u SELECT i, 1, 'z' FROM generate_series(5000, 5400) i; ROLLBACK;
SELECT pg_switch_wal();
UPDATE u SET v = v - 1 WHERE id < 400;
"""


def _has_it(connection: psycopg.Connection[tuple[object, ...]]) -> bool:
    found = connection.execute(
        "SELECT count(*) FROM pg_available_extensions WHERE name = 'pg_walinspect'"
    ).fetchone()
    return found == (1,)


def test_as_the_files_have_it(programs: ServerPrograms, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Relation by relation and cause by cause from 16 on; on 15 the total and single-block records.

    A role that may call the functions needs no file; one that may not is told both ways.
    """
    # In pieces, some of them shorter than a record.
    monkeypatch.setattr(inspecting, "CHUNK_BYTES", 6_000)
    with Host(programs) as host:
        cluster = host.cluster("inspect")
        cluster.start({"autovacuum": "off", "wal_keep_size": "1GB"})
        with cluster.connect() as connection:
            if not _has_it(connection):
                pytest.skip(f"{programs.version} has no pg_walinspect")
            connection.execute("CREATE ROLE reader LOGIN")
            dsn = connection.info.dsn
            with pytest.raises(PrivilegeMissing, match="pg_walinspect"):
                read_live(dsn, {"user": "reader"}, seconds=0.1)
            connection.execute("CREATE EXTENSION pg_walinspect")
            wanted = grants(dsn, {"user": "reader"}).splitlines()
            assert "pg_read_binary_file" in wanted[0]
            for statement in wanted[2:]:
                connection.execute(statement.encode())
            assert grants(dsn, {"user": "reader"}) == ""
            (schema,) = [inspecting.schema_of(connection)]
            assert schema is not None
            row = connection.execute("SELECT pg_current_wal_flush_lsn()::text").fetchone()
            assert row is not None
            begin = inspecting.parsed_position(str(row[0]))
            assert begin is not None
            for statement in filter(str.strip, WORK.split(";")):
                connection.execute(statement.encode())
            connection.execute("SELECT pg_logical_emit_message(false, '', repeat('m', 90000))")
            connection.execute("CHECKPOINT")
            row = connection.execute("SELECT pg_current_wal_flush_lsn()::text").fetchone()
            assert row is not None
            end = inspecting.parsed_position(str(row[0]))
            assert end is not None
        names = names_of_server(dsn, {})
        with psycopg.connect(dsn, user="reader", autocommit=True) as connection:
            stats = _inspected(connection, schema, (begin, end), names)
        cluster.stop()
        files = read_wal(
            cluster.data_dir / "pg_wal", begin=stats.start_lsn, end=stats.end_lsn, names=names
        )
    assert stats.total == files.total
    assert stats.gaps == ()
    assert stats.overhead_bytes == files.overhead_bytes
    assert {(one.rmgr, one.type): one for one in stats.record_types} == {
        (one.rmgr, one.type): one for one in files.record_types
    }
    ours = {one.relfilenode: one for one in stats.relations}
    theirs = {one.relfilenode: one for one in files.relations}
    if programs.version.major >= inspecting.BLOCKS_FROM_MAJOR:
        assert ours == theirs
    else:
        assert set(ours) == set(theirs)
        assert [one.records for one in ours.values()] == [theirs[number].records for number in ours]
        assert any("several blocks" in note for note in stats.notes)
        heap = next(one.relfilenode for one in files.relations if one.name == "u")
        assert ours[heap].fpi_bytes == theirs[heap].fpi_bytes
        assert ours[heap].by_cause["hot_update"] == theirs[heap].by_cause["hot_update"]


def _inspected(
    connection: psycopg.Connection[Any], schema: str, span: tuple[int, int], names: Names | None
) -> WalStats:
    """The log between two positions, by pg_walinspect, at once."""
    begin, end = span
    return inspecting.inspect(
        connection,
        schema,
        lambda: end,
        begin=begin,
        seconds=0.0,
        wait=lambda _: True,
        names=lambda: names or Names(relations=()),
    )


def test_segments_that_are_gone(programs: ServerPrograms) -> None:
    """The part that the server has recycled is one gap, named; what follows is summed."""
    with Host(programs) as host:
        cluster = host.cluster("recycled")
        cluster.start({"autovacuum": "off", "max_wal_size": "32MB", "min_wal_size": "32MB"})
        with cluster.connect() as connection:
            if not _has_it(connection):
                pytest.skip(f"{programs.version} has no pg_walinspect")
            connection.execute("CREATE EXTENSION pg_walinspect")
            connection.execute("CREATE TABLE u (i int, p text)")
            begin = _flushed(connection)
            for _ in range(4):
                connection.execute(
                    "INSERT INTO u SELECT i, repeat('x', 400) FROM generate_series(1, 30000) i"
                )
                connection.execute("CHECKPOINT")
            end = _flushed(connection)
            schema = inspecting.schema_of(connection)
            assert schema is not None
            stats = _inspected(connection, schema, (begin, end), None)
        cluster.stop()
        files = read_wal(
            cluster.data_dir / "pg_wal", begin=stats.start_lsn, end=stats.end_lsn, names=None
        )
    (gap,) = stats.gaps
    assert "has already been removed" in gap.why
    assert inspecting.parsed_position(gap.from_lsn) == begin
    behind = inspecting.parsed_position(gap.to_lsn)
    assert behind is not None
    assert begin < behind < end
    assert stats.start_lsn is not None
    assert (inspecting.parsed_position(stats.start_lsn) or 0) >= behind
    assert stats.total.records > 0
    assert stats.total == files.total


def _flushed(connection: psycopg.Connection[tuple[object, ...]]) -> int:
    row = connection.execute("SELECT pg_current_wal_flush_lsn()::text").fetchone()
    assert row is not None
    position = inspecting.parsed_position(str(row[0]))
    assert position is not None
    return position


def test_a_standby_that_replays(programs: ServerPrograms) -> None:
    """
    What a standby has replayed, each record once, while it goes on; what it received is more.

    It gives what is there by then, query by query, and 15 refuses a position that is not.
    """
    with Host(programs) as host:
        primary, standby = host.cluster("primary"), host.cluster("standby")
        primary.start({"autovacuum": "off", "wal_keep_size": "1GB"})
        with primary.connect() as connection:
            if not _has_it(connection):
                pytest.skip(f"{programs.version} has no pg_walinspect")
            connection.execute("CREATE EXTENSION pg_walinspect")
            connection.execute("CREATE TABLE u (i int, p text)")
            connection.execute("CREATE ROLE reader LOGIN")
            for name in (inspecting.RECORDS, inspecting.BLOCKS):
                if programs.version.major >= inspecting.BLOCKS_FROM_MAJOR or "records" in name:
                    connection.execute(f"GRANT EXECUTE ON FUNCTION {name} TO reader".encode())
            # Not its whole conninfo: an older libpq refuses a newer one's options.
            info = connection.info
            source = f"host={info.host} port={info.port} user={info.user}"
        primary.stop()
        owner = standby.data_dir.owner()
        shutil.rmtree(standby.data_dir)
        shutil.copytree(primary.data_dir, standby.data_dir)
        (standby.data_dir / "standby.signal").touch()
        for path in (standby.data_dir, *standby.data_dir.rglob("*")):
            shutil.chown(path, owner)
        primary.start({"autovacuum": "off", "wal_keep_size": "1GB"})
        standby.start(
            {
                "autovacuum": "off",
                "primary_conninfo": source,
                "recovery_min_apply_delay": "300ms",
            }
        )
        is_over = threading.Event()

        def write() -> None:
            with primary.connect() as connection:
                while not is_over.is_set():
                    connection.execute("INSERT INTO u SELECT i, 'x' FROM generate_series(1, 9) i")

        writer = threading.Thread(target=write)
        writer.start()
        with standby.connect() as connection:
            dsn = connection.info.dsn
        stats = read_live(dsn, {"user": "reader"}, seconds=3.5)
        is_over.set()
        writer.join()
        standby.stop()
        primary.stop()
        files = read_wal(
            primary.data_dir / "pg_wal", begin=stats.start_lsn, end=stats.end_lsn, names=None
        )
    assert stats.gaps == ()
    assert stats.total == files.total
    assert stats.by_cause["insert"].records > 100
