"""Server logs of real servers: each format, rotated inside the interval, counted exactly."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

import observed
import pytest

from pgheadroom.observe import find_classes
from pgheadroom.servers import Cluster, Host, ServerPrograms
from pgheadroom.sources.log import StatementCounts
from pgheadroom.sources.log_reading import LogWatch
from pgheadroom.sources.observing import ObservationRequest, watch
from pgheadroom.sources.recording import Recording
from pgheadroom.sources.session import read_only_session

pytestmark = pytest.mark.usefixtures("run_parent")

FORMS = {"log": "stderr log", "csv": "csvlog", "json": "jsonlog"}
COLLECTED = (
    "logging_collector = on",
    "log_destination = 'stderr,csvlog,jsonlog'",
    "log_rotation_age = 0",
    "log_line_prefix = '%m [%p] %q%u@%d '",
)


def collecting(cluster: Cluster, *settings: str) -> Path:
    """Restart with the collector; gives the folder of the logs."""
    # In postgresql.auto.conf, which comes after the settings that our servers always have.
    for setting in (*COLLECTED, *settings):
        observed.load(cluster, f"ALTER SYSTEM SET {setting}")
    cluster.stop()
    cluster.start({"autovacuum": "off"})
    return cluster.data_dir / "log"


def work(cluster: Cluster) -> None:
    """Statements in every way in which clients send them."""
    observed.change(cluster)
    with cluster.connect() as connection:
        connection.execute("UPDATE quiet SET note = 'it''s; a\ntest: x\n\ty', id = 1 WHERE id = 1")
        connection.execute("PREPARE q (int) AS UPDATE quiet SET note = 'LOG:  x' WHERE id = $1")
        for row in range(3):
            connection.execute(f"EXECUTE q ({row})".encode())
        for row in range(7):  # in the extended protocol, named after the first time
            connection.execute("UPDATE parts SET v = %s WHERE id = 0", (row,), prepare=row > 0)


def interval(
    cluster: Cluster, paths: list[Path], at_tick: list[object]
) -> tuple[Recording, list[StatementCounts]]:
    """Watch for a second; the first of the ticks does what is asked, each in turn."""
    logs = LogWatch(paths)

    def say(_: str) -> None:
        if at_tick:
            at_tick.pop(0)()  # type: ignore[operator]

    with read_only_session(observed.conninfo(cluster), {}) as connection:
        recording = watch(connection, ObservationRequest(duration_s=1.0, ticks=2), say, logs.at)
    # Statements of the time after the interval, while its log is read.
    observed.load(cluster, "UPDATE quiet SET note = note")
    return recording, logs.read(recording, lambda _: None)


def expected(found: Counter[str]) -> dict[str, int]:
    """What `work` has done, with the numbers in which the log has it."""
    wanted = {
        "UPDATE jobs SET state = state WHERE id = ''": 120,
        "UPDATE jobs SET owner = owner + 0, touched = now() WHERE id = ''": 30,
        "DELETE FROM jobs WHERE id > 0 AND id <= 0": 1,
        "UPDATE quiet SET note = '', id = 0 WHERE id = 0": 1,
        "PREPARE q (int) AS UPDATE quiet SET note = '' WHERE id = ''": 3,
        "UPDATE parts SET v = '' WHERE id = 0": 7,
        "UPDATE quiet SET note = note": 0,
    }
    assert {text: found[text] for text in wanted} == wanted
    return wanted


def test_each_format_gives_the_interval_exactly(programs: ServerPrograms) -> None:
    """The statements of the interval, no more: not those before it, nor of another database."""
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        observed.load(cluster)
        observed.load(cluster, "CREATE DATABASE other")
        folder = collecting(
            cluster,
            "log_filename = 'server.log'",
            "log_min_duration_statement = 0",
            "log_timezone = 'Asia/Kolkata'",
        )
        observed.load(cluster, "UPDATE quiet SET note = note")
        with cluster.connect("other") as connection:
            connection.execute("CREATE TABLE quiet (note text)")

        def both() -> None:
            work(cluster)
            with cluster.connect("other") as connection:
                connection.execute("UPDATE quiet SET note = note")

        paths = [folder / f"server.{suffix}" for suffix in FORMS]
        recording, found = interval(cluster, paths, [both])
        by_time = LogWatch(paths).read(recording, lambda _: None)
    assert [log.source for log in found] == list(FORMS.values())
    for log in found:
        expected(log.counts)
        assert (log.notes, log.lost, log.cut) == ((), {}, 0)
    assert found[0].counts == found[1].counts == found[2].counts
    # Without the places, by time alone.
    assert [log.counts for log in by_time] == [log.counts for log in found]
    classes = find_classes(recording, [found[0]], [])
    oid = next(r["oid"] for r in recording.rows("tables", "shape") if r["name"] == "quiet")
    assert sorted((c.attnums, c.calls) for c in classes.by_table[oid]) == [((1, 2), 1), ((2,), 3)]


def test_rotation_inside_the_interval(newest: ServerPrograms) -> None:
    """The collector's next file is followed by log_filename, in each format."""
    with Host(newest) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        observed.load(cluster)
        folder = collecting(
            cluster, "log_filename = 'pg-%Y%m%d-%H%M%S.log'", "log_statement = 'mod'"
        )
        paths = [next(folder.glob(f"*.{suffix}")) for suffix in FORMS]

        def rotate() -> None:
            observed.load(cluster, "UPDATE jobs SET state = 1 WHERE id = 40")
            # A name of another second, else the collector goes on in the same file.
            time.sleep(1.1)
            observed.load(cluster, "SELECT pg_rotate_logfile()")
            deadline = time.monotonic() + 30
            while len(list(folder.glob("*.json"))) < 2 and time.monotonic() < deadline:
                time.sleep(0.05)
            work(cluster)

        _, found = interval(cluster, paths, [rotate])
    for log in found:
        expected(log.counts)
        assert log.counts["UPDATE jobs SET state = 0 WHERE id = 0"] == 1
        assert log.notes == ()
