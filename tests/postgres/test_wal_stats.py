"""`wal stats` against pg_waldump of the same version, and against the server's own counters."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from typer.testing import CliRunner

from pgheadroom.cli.wal import app
from pgheadroom.errors import ProgramMissing
from pgheadroom.play.waldump import waldump_records
from pgheadroom.servers import Cluster, Host, ServerPrograms, find_client
from pgheadroom.wal import Names, RelationWal, WalStats, names_of_server, read_wal

pytestmark = pytest.mark.each

SETTINGS = {
    "autovacuum": "off",
    "wal_level": "logical",
    "wal_compression": "pglz",
    "wal_log_hints": "on",
    "max_prepared_transactions": "2",
    "max_wal_size": "1GB",
    "wal_keep_size": "1GB",
    "full_page_writes": "on",
}
COUNTED = """
CREATE TABLE counted (id int PRIMARY KEY, n int, p text) WITH (fillfactor = 80);
INSERT INTO counted SELECT i, i, repeat('x', 60) FROM generate_series(1, 2000) i;
UPDATE counted SET n = n + 1 WHERE id % 3 = 0;
UPDATE counted SET p = repeat('y', 300) WHERE id % 4 = 0;
DELETE FROM counted WHERE id % 10 = 0;
BEGIN; UPDATE counted SET n = 0 WHERE id < 500; ROLLBACK;
BEGIN; SAVEPOINT a; INSERT INTO counted SELECT i, 0, '' FROM generate_series(5001, 5100) i;
ROLLBACK TO a; DELETE FROM counted WHERE id BETWEEN 900 AND 950; COMMIT;
BEGIN; UPDATE counted SET n = 1 WHERE id = 1001; PREPARE TRANSACTION 'p1';
COMMIT PREPARED 'p1';
BEGIN; UPDATE counted SET n = 1 WHERE id = 1001; PREPARE TRANSACTION 'p2';
ROLLBACK PREPARED 'p2'
"""
ALL_KINDS = """
CREATE TABLE t (a int, b text, c point, d int[], f int);
INSERT INTO t SELECT i, md5(i::text), point(i % 97, i % 89), array[i % 10, i % 100], i
    FROM generate_series(1, 3000) i;
CREATE INDEX ON t (a);
CREATE INDEX t_hash ON t USING hash (b);
CREATE INDEX t_gin ON t USING gin (d);
CREATE INDEX t_gist ON t USING gist (c);
CREATE INDEX t_spgist ON t USING spgist (c);
CREATE INDEX t_brin ON t USING brin (f) WITH (pages_per_range = 4);
INSERT INTO t SELECT i, md5(i::text), point(i % 97, i % 89), array[i % 10, i % 100], i
    FROM generate_series(3001, 6000) i;
CHECKPOINT;
UPDATE t SET b = md5(b) WHERE a % 7 = 0;
DELETE FROM t WHERE a % 5 = 0;
VACUUM t;
VACUUM (FREEZE) t;
SELECT count(*) FROM t;
ALTER TABLE t REPLICA IDENTITY FULL;
UPDATE t SET f = f WHERE a < 100;
SELECT a FROM t WHERE a = 101 FOR UPDATE;
CREATE SEQUENCE s; SELECT count(nextval('s')) FROM generate_series(1, 500);
SELECT pg_logical_emit_message(false, 'x', repeat('y', 200000));
VACUUM FULL t;
TRUNCATE t;
SELECT pg_switch_wal();
CREATE TABLE u AS SELECT i AS a FROM generate_series(1, 5000) i;
COMMENT ON TABLE u IS 'the last one'
"""


@dataclass(frozen=True)
class Run:
    """A closed run: its log, what relations are called, and the counters of one table."""

    host: Host
    cluster: Cluster
    folder: Path
    start: str
    names: Names
    counters: dict[str, int]


@pytest.fixture(scope="module")
def run(programs: ServerPrograms) -> Iterator[Run]:
    with Host(programs) as host:
        cluster = host.cluster("wal")
        cluster.start(SETTINGS)
        with cluster.connect() as connection:
            start = _value(connection, "SELECT pg_current_wal_insert_lsn()")
            _play(connection, COUNTED)
            connection.execute("SELECT pg_stat_force_next_flush()")
            counters = _value(
                connection,
                "SELECT to_jsonb(s) FROM pg_stat_user_tables s WHERE relname = 'counted'",
            )
            _play(connection, ALL_KINDS)
            conninfo = connection.info.dsn
        names = names_of_server(conninfo, {})
        cluster.stop()
        yield Run(host, cluster, cluster.data_dir / "pg_wal", start, names, counters)


def _value(connection: psycopg.Connection[Any], query: str) -> Any:
    row = connection.execute(query.encode()).fetchone()
    assert row is not None
    return row[0]


def _play(connection: psycopg.Connection[Any], history: str) -> None:
    for statement in re.split(r";\s", history.strip()):
        connection.execute(statement.encode())


def _waldump(run: Run) -> dict[str, tuple[int, int, int]]:
    """Records, bytes without images and bytes of images of each record type, and of `Total`."""
    program, version = find_client("pg_waldump", run.host.programs)
    if version.major != run.host.programs.version.major:
        raise ProgramMissing(f"pg_waldump of {version}")
    arguments = [program, "-p", run.folder, "-s", run.start, "--stats=record"]
    # It ends with an error where the log does.
    printed = subprocess.run(arguments, check=False, capture_output=True, text=True).stdout
    share = r"\s*(?:\(\s*[\d.]+\)|\[\s*[\d.]+%\])?\s+"
    line = re.compile(rf"^(\S+/\S+|\S+/UNKNOWN \(\w+\)|Total)\s+(\d+){share}(\d+){share}(\d+)\s")
    found = {}
    for text in printed.splitlines():
        match = line.match(text)
        if match is not None and int(match[2]):
            found[match[1]] = (int(match[2]), int(match[3]), int(match[4]))
    assert "Total" in found, printed[-500:]
    return found


def _relation(stats: WalStats, name: str) -> RelationWal:
    (found,) = (relation for relation in stats.relations if relation.name == name)
    return found


def test_record_types_are_pg_waldumps(run: Run) -> None:
    """The total and each record type: records, bytes, bytes of images."""
    try:
        expected = _waldump(run)
    except ProgramMissing as error:
        pytest.skip(str(error))
    stats = read_wal(run.folder, begin=run.start)
    ours = {
        f"{kind.rmgr}/{kind.type}": (kind.records, kind.bytes - kind.fpi_bytes, kind.fpi_bytes)
        for kind in stats.record_types
    }
    total = stats.total
    ours["Total"] = (total.records, total.bytes - total.fpi_bytes, total.fpi_bytes)
    assert ours == expected
    assert len(ours) > 50
    assert stats.gaps == ()


def test_sums_equal_the_total(run: Run) -> None:
    """Over relations and over causes, to the byte."""
    stats = read_wal(run.folder)
    assert sum(one.records for one in stats.relations) == stats.total.records
    assert sum(one.bytes for one in stats.relations) == stats.total.bytes
    assert sum(one.fpi_bytes for one in stats.relations) == stats.total.fpi_bytes
    for one in stats.relations:
        assert sum(count.bytes for count in one.by_cause.values()) == one.bytes
        assert sum(count.records for count in one.by_cause.values()) == one.records
    assert sum(count.bytes for count in stats.by_cause.values()) == stats.total.bytes


def test_counters_of_a_closed_run(run: Run) -> None:
    """Work that was attempted, aborted rows too: inserts, deletes, HOT and new-page updates."""
    by_cause = _relation(read_wal(run.folder, names=run.names), "counted").by_cause
    pairs = {"hot_update": "n_tup_hot_upd", "insert": "n_tup_ins", "delete": "n_tup_del"}
    if "n_tup_newpage_upd" in run.counters:
        pairs["newpage_update"] = "n_tup_newpage_upd"
    found = {cause: by_cause[cause].records for cause in pairs}
    assert found == {cause: run.counters[counter] for cause, counter in pairs.items()}
    updates = sum(
        by_cause[cause].records
        for cause in ("hot_update", "cold_update", "newpage_update")
        if cause in by_cause
    )
    assert updates == run.counters["n_tup_upd"]
    assert min(found.values()) > 0


def test_what_causes_say(run: Run) -> None:
    """Indexes and the sequence have causes of their own, old rows for decoding are noted."""
    stats = read_wal(run.folder, names=run.names)
    assert "index_insert" in _relation(stats, "counted_pkey").by_cause
    assert _relation(stats, "counted_pkey").table == "counted"
    assert "sequence" in _relation(stats, "s").by_cause
    assert {"commit", "abort", "prepare"} <= stats.by_cause.keys()
    assert {"fpi_first_change", "fpi_forced"} <= stats.by_cause.keys()
    assert stats.memo["logical_old_rows"] > 0
    assert stats.memo["logical_rows_beside_images"] > 0
    older, newer = {"prune", "vacuum", "freeze"}, {"prune_vacuum"}
    is_new = int(stats.server) >= 17
    assert (newer if is_new else older) <= stats.by_cause.keys()
    assert (older if is_new else newer).isdisjoint(stats.by_cause)


def test_cycles_add_up(run: Run) -> None:
    """Checkpoint cycles and slices of time divide the log, to the byte."""
    whole = read_wal(run.folder).total
    for by in ("checkpoint", "1s"):
        stretches = read_wal(run.folder, by=by).stretches
        assert sum(one.bytes for one in stretches) == whole.bytes
        assert sum(one.records for one in stretches) == whole.records
    assert len(read_wal(run.folder, by="checkpoint").stretches) > 1


def test_transactions_are_pg_waldumps(run: Run) -> None:
    """What each has written with its parts, by pg_waldump's list."""
    program, version = find_client("pg_waldump", run.host.programs)
    if version.major != run.host.programs.version.major:
        pytest.skip(f"pg_waldump of {version}")
    arguments = [program, "-p", run.folder, "-s", run.start]
    listed = subprocess.run(arguments, check=False, capture_output=True, text=True).stdout
    records = list(waldump_records(listed.splitlines()))
    written: dict[str, int] = {}
    for record in records:
        written[record.xid] = written.get(record.xid, 0) + record.total_bytes
    expected = {
        int(record.xid): sum(written[xid] for xid in (record.xid, *record.parts) if xid in written)
        for record in records
        if record.kind == "COMMIT" and record.xid != "0"
    }
    stats = read_wal(run.folder, begin=run.start, by="transaction")
    found = {one.xid: one.bytes for one in stats.transactions if one.end == "commit"}
    prepared = found.keys() - expected.keys()
    assert len(prepared) == 1
    assert len(found) > 20
    assert {xid: length for xid, length in found.items() if xid in expected} == {
        xid: expected[xid] for xid in found.keys() - prepared
    }


def test_the_command(run: Run, tmp_path: Path) -> None:
    """A flipped byte in the middle of a segment: one gap, both sides summed, exit code 3."""
    whole = read_wal(run.folder)
    first = min(run.folder.glob("[0-9A-F]" * 24))
    for path in run.folder.glob("[0-9A-F]" * 24):
        content = bytearray(path.read_bytes())
        if path == first:
            content[len(content) // 2] ^= 0xFF
        (tmp_path / path.name).write_bytes(content)
    done = CliRunner().invoke(app, ["stats", str(tmp_path), "--allow-gaps", "-f", "json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["kind"] == "wal_stats"
    assert len(found["gaps"]) == 1
    lost = whole.total.records - found["total"]["records"]
    assert 0 < lost < 500
    refused = CliRunner().invoke(app, ["stats", str(tmp_path)])
    assert getattr(refused.exception, "exit_code", None) == 3
