"""`observe --wal`: the log of the interval beside the counters, by table and cause."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable

import pytest
from observed import change, conninfo, load

from pgheadroom.advise.log_wal import log_wal
from pgheadroom.cli.observe_wal import said_log
from pgheadroom.errors import InputError, PrivilegeMissing
from pgheadroom.observe import find_classes, observe
from pgheadroom.profile import parse_profile, to_json
from pgheadroom.servers import Cluster, Host, ServerPrograms
from pgheadroom.sources.observing import ObservationRequest, watch
from pgheadroom.sources.recording import Recording
from pgheadroom.sources.session import read_only_session
from pgheadroom.wal.beside import LogBeside, beside
from pgheadroom.wal.from_files import FileLog

SYSTEM_AT = 24
"""Where a segment's first page has the server's number."""


def _watched(cluster: Cluster, work: Callable[[str], None]) -> tuple[Recording, LogBeside]:
    """A second of the cluster, in which `work` is done, and the log of it."""
    request = ObservationRequest(duration_s=1.0, ticks=2, samples=True)
    with (
        read_only_session(conninfo(cluster), {}) as connection,
        beside(conninfo(cluster), {}, wanted=True) as log,
    ):
        return watch(connection, request, work, lambda moment, _: log.at(moment)), log


def test_the_log_has_what_the_counters_have(programs: ServerPrograms) -> None:
    """
    Each update, insert and delete of the interval is in the log, under its table.

    The table is rewritten at the end: what it wrote is in a file that is no more its own. A masked
    profile has the same sums and no name; one without the log is read as ever.
    """
    with Host(programs) as host:
        cluster = host.cluster("log")
        cluster.start({"autovacuum": "off"})
        load(cluster)
        with cluster.connect() as connection:
            connection.execute("CREATE ROLE nobody LOGIN")
        done: list[str] = []

        def work(text: str) -> None:
            if not done:
                change(cluster)
                with cluster.connect() as connection:
                    connection.execute("VACUUM FULL jobs")
            done.append(text)

        with (
            pytest.raises(PrivilegeMissing, match="GRANT EXECUTE"),
            beside(conninfo(cluster, "nobody"), {}, wanted=True),
        ):
            pass
        recording, log = _watched(cluster, work)
        classes = find_classes(recording, [], [])
        bare = observe(recording, classes, mask=False, sampled=True)
        profile = log.add(bare)
        masked = log.add(observe(recording, classes, mask=True, sampled=True))
    assert profile.server.observed is not None
    whole = profile.server.observed.wal
    assert whole is not None
    jobs = profile.table("jobs").observed
    assert jobs is not None
    assert jobs.wal is not None
    counters, causes = jobs.counters, jobs.wal.by_cause
    found = log_wal(profile.table("jobs"))
    assert found is not None
    assert found.updates == counters.n_tup_upd
    assert causes["hot_update"].records == counters.n_tup_hot_upd
    assert causes["insert"].records == counters.n_tup_ins
    assert causes["delete"].records == counters.n_tup_del
    assert 0 < jobs.wal.index_bytes < jobs.wal.bytes <= whole.bytes
    assert sum(count.bytes for count in causes.values()) == jobs.wal.bytes
    own = found.own_bytes_per_update
    assert 0 < own.low <= own.mid <= own.high <= found.most_bytes_per_update
    sums = [table.observed.wal for table in masked.tables if table.observed is not None]
    assert jobs.wal in sums
    assert '"jobs"' not in json.dumps(to_json(masked))
    assert any(line.startswith("WAL of jobs: ") for line in said_log(profile))
    assert parse_profile(to_json(profile)) == profile
    assert log_wal(bare.table("jobs")) is None
    assert list(said_log(bare)) == []


def test_the_log_out_of_files(programs: ServerPrograms) -> None:
    """
    `pg_wal` gives what the server gives, to a role without any right to the log.

    An archive that has no segment of the interval yet leaves a gap that is named, and another
    server's files are refused before the interval is spent.
    """
    with Host(programs) as host:
        cluster = host.cluster("log")
        cluster.start({"autovacuum": "off", "wal_keep_size": "1GB"})
        load(cluster)
        with cluster.connect() as connection:
            connection.execute("CREATE ROLE nobody LOGIN")
        pg_wal = cluster.data_dir / "pg_wal"
        archive = host.folder / "archive"
        archive.mkdir()
        first = min(path for path in pg_wal.iterdir() if len(path.name) == 24)
        shutil.copy(first, archive)
        with cluster.connect() as connection:
            connection.execute("SELECT pg_switch_wal()")
        done: list[str] = []

        def work(text: str) -> None:
            if not done:
                change(cluster)
            done.append(text)

        request = ObservationRequest(duration_s=1.0, ticks=2, samples=True)
        plain, role = conninfo(cluster), conninfo(cluster, "nobody")
        with (
            read_only_session(plain, {}) as connection,
            beside(plain, {}, wanted=True) as live,
            beside(role, {}, wanted=False, files=[pg_wal]) as files,
            beside(role, {}, wanted=False, files=[archive]) as lacking,
        ):
            logs = [live, files, lacking]

            def at(moment: str, _: object) -> None:
                for log in logs:
                    log.at(moment)

            recording = watch(connection, request, work, at)
            bare = observe(recording, find_classes(recording, [], []), mask=False, sampled=True)
            of_server, of_files, of_archive = (log.add(bare) for log in logs)
        foreign = bytearray(first.read_bytes())
        foreign[SYSTEM_AT] ^= 1
        (archive / first.name).write_bytes(foreign)
        with pytest.raises(InputError, match="system identifiers"):
            FileLog(plain, {}, [archive])
    assert log_wal(of_files.table("jobs")) == log_wal(of_server.table("jobs")) is not None
    for name in ("jobs", "parts_2"):
        ours, theirs = of_files.table(name).observed, of_server.table(name).observed
        assert ours is not None
        assert theirs is not None
        assert ours.wal is not None
        assert ours.wal == theirs.wal
    assert of_files.server.observed is not None
    assert of_files.server.observed.wal is not None
    assert not of_files.server.observed.wal.notes
    assert of_archive.server.observed is not None
    assert of_archive.server.observed.wal is not None
    (note,) = of_archive.server.observed.wal.notes or ()
    assert "the files do not have it" in note
    assert f"! {note}" in list(said_log(of_archive))
    assert log_wal(of_archive.table("jobs")) is None


def test_a_name_that_passes_to_another_table(programs: ServerPrograms) -> None:
    """
    Files are a table's by its OID: a swap of names gives nobody the other one's WAL.

    The table that was dropped has no counters any more, and what it wrote is nobody's; the one
    that has the name now has its own updates alone.
    """
    with Host(programs) as host:
        cluster = host.cluster("log")
        cluster.start({"autovacuum": "off"})
        load(cluster, SWAPPED)
        done: list[str] = []

        def work(text: str) -> None:
            if not done:
                load(cluster, SWAP)
            done.append(text)

        recording, log = _watched(cluster, work)
        classes = find_classes(recording, [], [])
        profile = log.add(observe(recording, classes, mask=False, sampled=True))
    (table,) = [one for one in profile.tables if one.observed and one.observed.wal]
    assert table.observed is not None
    assert table.observed.wal is not None
    causes = table.observed.wal.by_cause
    updates = [cause for name, cause in causes.items() if name.endswith("_update")]
    assert sum(cause.records for cause in updates) == 300
    assert table.observed.wal.by_cause["insert"].records == 1000, "of the file that it had before"


SWAPPED = """
CREATE TABLE orders (id int PRIMARY KEY, n int);
INSERT INTO orders SELECT i, 0 FROM generate_series(1, 1000) i;
CREATE TABLE orders_new (id int PRIMARY KEY, n int)
"""
SWAP = """
UPDATE orders SET n = 1;
UPDATE orders SET n = 2;
ALTER TABLE orders RENAME TO orders_old;
INSERT INTO orders_new SELECT i, 0 FROM generate_series(1, 1000) i;
ALTER TABLE orders_new RENAME TO orders;
VACUUM FULL orders;
DROP TABLE orders_old;
UPDATE orders SET n = 3 WHERE id <= 300
"""
