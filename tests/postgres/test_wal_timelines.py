"""`wal stats` of a log with another segment size, databases of one template, and two timelines."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import observed
import psycopg
import pytest
from log_tools import set_segment_size, tool

from pgheadroom.errors import WalError
from pgheadroom.servers import Cluster, Host, ServerPrograms
from pgheadroom.servers.user import server_user
from pgheadroom.wal import WalStats, names_of_server, read_wal

pytestmark = [pytest.mark.each, pytest.mark.usefixtures("run_parent")]

SETTINGS = {
    "autovacuum": "off",
    "min_wal_size": "256MB",  # four segments of 64 MB
    "wal_keep_size": "1GB",
    "max_prepared_transactions": "2",
    "wal_compression": "pglz",
}
ARCHIVING = {"archive_mode": "on", "archive_command": "true"}
SMALL = {**SETTINGS, "min_wal_size": "80MB"}
TABLES = """
CREATE TABLE part (id int, region int, v text, PRIMARY KEY (region, id))
    PARTITION BY LIST (region);
CREATE TABLE part_1 PARTITION OF part FOR VALUES IN (1);
CREATE TABLE part_2 PARTITION OF part FOR VALUES IN (2);
CREATE TABLE long_values (id int PRIMARY KEY, body text);
ALTER TABLE long_values ALTER body SET STORAGE EXTERNAL;
CREATE UNLOGGED TABLE unlogged (id int PRIMARY KEY, n int);
CREATE TABLE prepared (id int PRIMARY KEY, n int)
"""


def _changes(rows: int) -> str:
    return f"""
INSERT INTO part SELECT i, 1 + i % 2, 'x' FROM generate_series(1, {rows}) i;
UPDATE part SET v = 'y' WHERE id % 3 = 0;
UPDATE part SET region = 3 - region WHERE id % 11 = 0;
INSERT INTO long_values SELECT i, repeat('z', 9000) FROM generate_series(1, {rows // 10}) i;
INSERT INTO unlogged SELECT i, 0 FROM generate_series(1, {rows}) i;
INSERT INTO prepared SELECT i, 0 FROM generate_series(1, {rows}) i;
CHECKPOINT;
BEGIN;
UPDATE prepared SET n = 1 WHERE id < {rows // 2};
PREPARE TRANSACTION 'p';
UPDATE prepared SET n = 2 WHERE id > {rows // 2};
COMMIT PREPARED 'p'
"""


def _play(cluster: Cluster, database: str, history: str) -> None:
    with cluster.connect(dbname=database) as connection:
        for statement in re.split(r";\s", history.strip()):
            connection.execute(statement.encode())


def test_sums_over_two_timelines(programs: ServerPrograms, tmp_path: Path) -> None:
    """
    Record types are pg_waldump's on both timelines together; names are of the right database.

    The second database is a copy of the first: its files have the same numbers.
    """
    with Host(programs) as host:
        waldump = tool("pg_waldump", programs)
        cluster = host.cluster("wal")
        set_segment_size(host, cluster, 64)
        cluster.start(SETTINGS)
        _play(cluster, "postgres", "CREATE DATABASE one")
        _play(cluster, "one", TABLES)
        _play(cluster, "postgres", "CREATE DATABASE two TEMPLATE one")
        _play(cluster, "one", _changes(900))
        _play(cluster, "two", _changes(300))
        names = names_of_server(observed.conninfo(cluster), {})
        cluster.stop()
        pg_wal = cluster.data_dir / "pg_wal"
        _recover(cluster, **SETTINGS, **ARCHIVING)
        _play(cluster, "two", "UPDATE prepared SET n = n + 1")
        cluster.stop()
        stats = read_wal(pg_wal, names=names)
        for path in filter(Path.is_file, pg_wal.iterdir()):
            shutil.copy(path, tmp_path / path.name.removesuffix(".partial"))
        history = (pg_wal / "00000002.history").read_text(encoding="utf-8")
        switch = history.split("\t")[1]
        assert stats.start_lsn is not None
        expected = _dumped(
            [waldump, "-p", tmp_path, "-t", "1", "-s", stats.start_lsn, "-e", switch]
        )
        expected.update(_dumped([waldump, "-p", tmp_path, "-t", "2", "-s", switch]))
        sizes = {path.stat().st_size for path in tmp_path.iterdir() if len(path.name) == 24}
    assert sizes == {64 * 1024**2}
    assert stats.timeline == 2
    assert stats.gaps == ()
    assert any(".partial" in note for note in stats.notes)
    assert _ours(stats) == expected
    of_tables = {(one.database, one.name): one.by_cause for one in stats.relations}
    for database, rows in (("one", 900), ("two", 300)):
        parts = [of_tables[database, f"part_{region}"]["insert"].records for region in (1, 2)]
        assert sum(parts) == rows + rows // 11
        prepared = of_tables[database, "prepared"]
        assert prepared["insert"].records == rows
        moved = sum(prepared[cause].records for cause in prepared if cause.endswith("_update"))
        assert moved == rows - 1 + (rows if database == "two" else 0)
        # 9,000 bytes are five chunks.
        (chunks,) = (
            one.by_cause["insert"].records
            for one in stats.relations
            if one.table == "long_values" and (one.name or "").startswith("pg_toast.")
            if one.database == database and "insert" in one.by_cause
        )
        assert chunks == 5 * (rows // 10)
        assert "insert" not in of_tables.get((database, "unlogged"), {})


def test_recovery_to_a_target(programs: ServerPrograms, tmp_path: Path) -> None:
    """
    What the new timeline keeps of the one that was left, under names of its own, is none of it.

    By files and through a pipe; `cat pg_wal/*`, in which a segment comes twice, is refused.
    """
    with Host(programs) as host:
        cluster = host.cluster("target")
        cluster.start(SMALL)
        target = _backed_up_and_written(cluster, tmp_path / "backup")
        shutil.rmtree(cluster.data_dir)
        shutil.copytree(tmp_path / "backup", cluster.data_dir)
        _recover(cluster, **SMALL, recovery_target_lsn=target, recovery_target_action="promote")
        with cluster.connect() as connection:
            connection.execute("UPDATE t SET v = 'new' WHERE id < 50")
            end = _position(connection)
        cluster.stop()
        pg_wal = cluster.data_dir / "pg_wal"
        whole = read_wal(pg_wal)
        until = read_wal(pg_wal, end=end)
        files = sorted(pg_wal.glob("0*"))
        segments = [path for path in files if path.suffix != ".history"]
        # Of the segment in which the first timeline was left the second one's copy.
        of_second = [path for path in segments if path.name.startswith("00000002")]
        copied = {path.name[8:] for path in of_second}
        of_first = [path for path in segments if path.name[8:] not in copied]
        by_pipe = _through_a_pipe(of_first + of_second, tmp_path)
        with pytest.raises(WalError, match="a second time"):
            _through_a_pipe(files, tmp_path)
    # Segments of the first timeline that were left, and are there to be written again.
    assert any("nothing is written to them yet" in note for note in whole.notes)
    assert whole.timeline == 2
    assert whole.gaps == by_pipe.gaps == ()
    assert whole.total == by_pipe.total
    # Behind it comes the end of the server, which writes a checkpoint.
    assert whole.total.records - until.total.records < 10
    assert whole.by_cause["insert"].records < 90_000


def _backed_up_and_written(cluster: Cluster, backup: Path) -> str:
    """
    Copy a server's files, write four times, and stop it; where the first time ended.

    The log of it all is with the copy.
    """
    with cluster.connect() as connection:
        connection.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
        connection.execute("SELECT pg_backup_start('x', true)")
        without = shutil.ignore_patterns("postmaster.pid", "pg_wal")
        shutil.copytree(cluster.data_dir, backup, ignore=without)
        label = connection.execute("SELECT labelfile FROM pg_backup_stop(false)").fetchone()
        assert label is not None
        ends = []
        for begin in (0, 90_000, 180_000, 270_000):
            connection.execute(
                "INSERT INTO t SELECT i, repeat('x', 90) "
                f"FROM generate_series({begin}, {begin + 80_000}) i".encode()
            )
            ends.append(_position(connection))
    cluster.stop()
    shutil.copytree(cluster.data_dir / "pg_wal", backup / "pg_wal")
    (backup / "backup_label").write_text(label[0], encoding="utf-8")
    return ends[0]


def _position(connection: psycopg.Connection[Any]) -> str:
    row = connection.execute("SELECT pg_current_wal_insert_lsn()::text").fetchone()
    assert row is not None
    return str(row[0])


def _through_a_pipe(files: Sequence[Path], folder: Path) -> WalStats:
    """As `cat` gives them; in a file without a segment's name, which is read as one."""
    joined = folder / "joined"
    joined.write_bytes(b"".join(path.read_bytes() for path in files))
    return read_wal(joined)


def _recover(cluster: Cluster, **settings: str) -> None:
    """Start as an archive's recovery does, which ends on a timeline of its own."""
    user = server_user()
    (cluster.data_dir / "recovery.signal").touch()
    cluster.data_dir.chmod(0o700)
    for path in (cluster.data_dir, *cluster.data_dir.rglob("*")) if user else ():
        shutil.chown(path, user.uid, user.gid)
    cluster.start({"restore_command": "false", **settings})
    with cluster.connect() as connection:
        while connection.execute("SELECT pg_is_in_recovery()").fetchone() != (False,):
            time.sleep(0.05)


def _ours(stats: WalStats) -> Counter[tuple[str, str]]:
    found: Counter[tuple[str, str]] = Counter()
    for kind in stats.record_types:
        name = f"{kind.rmgr}/{kind.type}"
        found[name, "records"] = kind.records
        found[name, "bytes"] = kind.bytes - kind.fpi_bytes
        found[name, "images"] = kind.fpi_bytes
    return +found


def _dumped(command: Sequence[str | Path]) -> Counter[tuple[str, str]]:
    # It ends with an error where the log does.
    printed = subprocess.run(
        [*command, "--stats=record"], check=False, capture_output=True, text=True
    ).stdout
    share = r"\s*(?:\(\s*[\d.]+\)|\[\s*[\d.]+%\])?\s+"
    line = re.compile(rf"^(\S+/\S+|\S+/UNKNOWN \(\w+\))\s+(\d+){share}(\d+){share}(\d+)\s")
    found: Counter[tuple[str, str]] = Counter()
    for match in filter(None, map(line.match, printed.splitlines())):
        for what, place in (("records", 2), ("bytes", 3), ("images", 4)):
            found[match[1], what] = int(match[place])
    assert found, printed[-500:]
    return +found
