"""`wal stats` of the log of a server that lost a part of it in a crash, and went on."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest
from log_tools import position, set_segment_size

from pgheadroom.servers import Cluster, Host, ServerPrograms
from pgheadroom.wal import read_wal

pytestmark = [pytest.mark.each, pytest.mark.usefixtures("run_parent")]

PAGE = 8192
SEGMENT = 1024**2
SETTINGS = {
    "autovacuum": "off",
    "bgwriter_lru_maxpages": "0",
    "checkpoint_timeout": "1h",
    "wal_keep_size": "200MB",
}


@pytest.mark.parametrize("lost", ["pages", "end"])
def test_whole_records_from_before_a_crash(
    programs: ServerPrograms, tmp_path: Path, lost: str
) -> None:
    """
    What lies behind the log's end from before the crash is none of it.

    A crash of the operating system that keeps later pages of the log and loses earlier ones is
    played: the server is ended, zeros are put in their place, and it is started again. `end`: those
    up to the segment's end, so that the next segment has its first page.
    """
    with Host(programs) as host:
        cluster = host.cluster("crash")
        set_segment_size(host, cluster, 1)
        cluster.start(SETTINGS)
        written = _write(cluster)
        cluster.stop("immediate")
        pg_wal = cluster.data_dir / "pg_wal"
        if lost == "pages":
            begin = (written - 100_000) // PAGE * PAGE
            _lose(pg_wal, begin, begin + 3 * PAGE)
        else:
            edge = written // SEGMENT * SEGMENT
            _lose(pg_wal, edge - 20 * PAGE, edge)
        time.sleep(1.1)  # times of checkpoints are whole seconds
        cluster.start(SETTINGS)
        with cluster.connect() as connection:
            for number in range(20):
                connection.execute("UPDATE t SET v = 'new' WHERE id = %s", [number])
            row = connection.execute("SELECT pg_current_wal_insert_lsn()").fetchone()
            assert row is not None
            shutil.copytree(pg_wal, tmp_path / "copied")
        cluster.stop()
    stats = read_wal(tmp_path / "copied")
    assert stats.gaps == ()
    assert _number(stats.end_lsn) == _number(row[0])
    assert any("before the server started" in note for note in stats.notes)
    whole = read_wal(tmp_path / "copied", end=row[0])
    assert whole.total == stats.total
    # Asked for from behind the start on, the log has nothing that tells.
    assert read_wal(tmp_path / "copied", begin=stats.end_lsn).gaps == ()


def _write(cluster: Cluster) -> int:
    """Update rows until a segment has just begun, a good way behind the last checkpoint."""
    with cluster.connect() as connection:
        connection.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
        connection.execute("INSERT INTO t SELECT i, 'x' FROM generate_series(1, 1000) i")
        connection.execute("CHECKPOINT")
        connection.execute("UPDATE t SET v = 'y'")
        begin = position(connection)
        number = 0
        while True:
            for _ in range(200):
                number += 1
                connection.execute(
                    "UPDATE t SET v = %s WHERE id = %s", [str(number), number % 1000 + 1]
                )
            now = position(connection)
            if now - begin > SEGMENT and 150_000 < now % SEGMENT < 500_000:
                return now


def _lose(pg_wal: Path, begin: int, end: int) -> None:
    log, within = divmod(begin, 2**32)
    path = pg_wal / f"00000001{log:08X}{within // SEGMENT:08X}"
    with path.open("r+b") as file:
        file.seek(begin % SEGMENT)
        file.write(bytes(end - begin))


def _number(lsn: str | None) -> int:
    high, low = (lsn or "").split("/")
    return (int(high, 16) << 32) + int(low, 16)
