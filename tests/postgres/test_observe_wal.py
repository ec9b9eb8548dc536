"""`observe --wal`: the log of the interval beside the counters, by table and cause."""

from __future__ import annotations

import json

import pytest
from observed import change, conninfo, load

from pgheadroom.advise.log_wal import log_wal
from pgheadroom.cli.observe_wal import said_log
from pgheadroom.errors import PrivilegeMissing
from pgheadroom.observe import find_classes, observe
from pgheadroom.profile import parse_profile, to_json
from pgheadroom.servers import Host, ServerPrograms
from pgheadroom.sources.observing import Request, watch
from pgheadroom.sources.session import read_only_session
from pgheadroom.wal.beside import beside


def test_the_log_has_what_the_counters_have(programs: ServerPrograms) -> None:
    """
    Each update, insert and delete of the interval is in the log, under its table.

    A masked profile has the same sums and no name; one without the log is read as ever.
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
            done.append(text)

        with (
            pytest.raises(PrivilegeMissing, match="GRANT EXECUTE"),
            beside(conninfo(cluster, "nobody"), {}, wanted=True),
        ):
            pass
        request = Request(duration_s=1.0, ticks=2, samples=True)
        with (
            read_only_session(conninfo(cluster), {}) as connection,
            beside(conninfo(cluster), {}, wanted=True) as log,
        ):
            recording = watch(connection, request, work, lambda moment, _: log.at(moment))
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
