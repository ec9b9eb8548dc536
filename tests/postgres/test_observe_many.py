"""`observe` on a big catalog: what it costs the server, and that it waits for nobody."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import observed
import pytest

from pgheadroom.errors import HeadroomError
from pgheadroom.servers import Host, ServerPrograms, find_programs
from pgheadroom.sources import observing
from pgheadroom.sources.observing import ObservationRequest, watch
from pgheadroom.sources.session import read_only_session

pytestmark = pytest.mark.usefixtures("run_parent")

PASS_FRAC_MAX = 1.5
"""Of what `MEASURE` takes; 0.87 and 0.90 were measured with 2,000 tables."""
MEASURE = "SELECT count(DISTINCT md5(i::text)) FROM generate_series(1, 500 * {tables}) i"
"""About half a millisecond of processor time a table; a busy machine takes longer for both."""
MAKE = """
DO $$ BEGIN
  FOR i IN 1..{tables} LOOP
    EXECUTE format('CREATE TABLE t%s (id int8 PRIMARY KEY, a int, b int, c text, d timestamptz,'
        ' e numeric, f varchar(30), g bool)', i);
    EXECUTE format('CREATE INDEX ON t%s (a) WHERE g', i);
    EXECUTE format('INSERT INTO t%s SELECT i, i, i, ''x'' FROM generate_series(1, 20) i', i);
    IF i % 200 = 0 THEN COMMIT; END IF;
  END LOOP;
END $$
"""


def cpu_s(pid: int) -> float:
    """Processor time of a process: a shared machine's clock would count others' work."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def servers() -> list[Any]:
    found = []
    for wanted, tables in (("18", 800), ("18", 2000), ("15", 2000)):
        marks = [] if tables < 2000 else [pytest.mark.long(reason="half a minute on each server")]
        try:
            server = find_programs(wanted)
            found.append(pytest.param(server, tables, id=f"{wanted}-{tables}", marks=marks))
        except HeadroomError:
            continue
    return found


@pytest.mark.parametrize(("server", "tables"), servers())
def test_many_tables_and_locks(
    server: ServerPrograms, tables: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    A pass over 2,000 tables costs the server no more than about a second.

    No table is locked above ACCESS SHARE.

    All tables are held in EXCLUSIVE mode meanwhile, which lets ACCESS SHARE through and nothing
    else; one is held in ACCESS EXCLUSIVE mode and another is wanted so, as VACUUM FULL would:
    they are left out without waiting for them.
    """
    passes: dict[str, float] = {}
    ask_all = observing._Watch._ask_all

    def timed(self: Any, queries: Any, moment: str) -> None:
        pid = self._connection.info.backend_pid
        before = cpu_s(pid)
        ask_all(self, queries, moment)
        passes[moment] = passes.get(moment, 0.0) + cpu_s(pid) - before

    monkeypatch.setattr(observing._Watch, "_ask_all", timed)
    with Host(server) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off", "max_locks_per_transaction": "512"})
        with cluster.connect() as connection:
            connection.execute(MAKE.replace("{tables}", str(tables)).encode())
            connection.execute("ANALYZE")
            before = cpu_s(connection.info.backend_pid)
            connection.execute(MEASURE.format(tables=tables).encode())
            measure_s = cpu_s(connection.info.backend_pid) - before
        with (
            cluster.connect(autocommit=False) as holder,
            cluster.connect(autocommit=False) as exclusive,
            read_only_session(observed.conninfo(cluster), {}) as ours,
        ):
            names = ", ".join(f"t{i}" for i in range(2, tables + 1))
            holder.execute(f"LOCK TABLE {names} IN EXCLUSIVE MODE".encode())
            exclusive.execute("LOCK TABLE t1 IN ACCESS EXCLUSIVE MODE")
            request = ObservationRequest(duration_s=0.2, ticks=1, sample_tables=50)
            recording = watch(ours, request, lambda _: None)
            held = ours.execute(
                "SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND relation >= 16384"
            ).fetchone()
        profile = observed.profile_of(recording)
    assert recording.failures() == ()
    assert held == (0,), "nothing is held between the queries"
    assert len(profile.tables) == tables
    assert {moment: cpu for moment, cpu in passes.items() if cpu > PASS_FRAC_MAX * measure_s} == {}
    assert set(passes) == {"shape", "start", "end"}
    assert observed.facts(profile, "t1")["main_bytes"] is None, "its size was not waited for"
    assert observed.facts(profile, "t2")["main_bytes"] == 8192
    assert len(recording.rows("sample")) == 50
