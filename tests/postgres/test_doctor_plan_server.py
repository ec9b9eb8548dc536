"""What settings of the server are said to do, measured: images of pages, runs of autovacuum."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from doctor_sides import conninfo, run
from test_doctor_plan import SETTINGS, planned, verdicts, written
from test_doctor_rules import asked, servers, until

from pgheadroom.cli.app import run as command
from pgheadroom.plan import read_plan
from pgheadroom.plan.record import read_record, record_path
from pgheadroom.servers import Cluster, Host, ServerPrograms
from pgheadroom.sources.session import read_only_session
from pgheadroom.verify.claims import verify_remedies

pytestmark = pytest.mark.usefixtures("run_parent")

_SOME = "UPDATE t SET v = v + 1 WHERE id % 20 = 0;\n"
OFTEN = f"CHECKPOINT;\n{_SOME}" * 3
"""Each update is the first change of all pages behind a checkpoint."""
SELDOM = f"CHECKPOINT;\n{_SOME}{_SOME}{_SOME}"


@contextmanager
def server(programs: ServerPrograms, made: str, **settings: str) -> Iterator[Cluster]:
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({**SETTINGS, "full_page_writes": "on", "max_wal_size": "1GB", **settings})
        run(cluster, "postgres", made)
        yield cluster


def judged(cluster: Cluster, path: Path, work: Callable[[], None]) -> dict[str, str]:
    """What becomes of the plan's claims, by their measures."""
    plan = read_plan(path)
    with read_only_session(conninfo(cluster, "postgres"), {}) as connection:
        record = read_record(record_path(path), plan)
        found = verify_remedies(plan, record, connection, 60.0, sleep=lambda _: work())
    return {measure: verdict for (_, measure), verdict in verdicts(found).items()}


def long_ago(path: Path) -> None:
    """The step's end as if it were hours ago."""
    kept = record_path(path)
    data = json.loads(kept.read_text(encoding="utf-8"))
    data["steps"][0]["finished_at"] = "2026-01-01T00:00:00Z"
    kept.write_text(json.dumps(data), encoding="utf-8")


@pytest.mark.parametrize("programs_of", servers())
def test_images_of_rarer_checkpoints(programs_of: ServerPrograms, tmp_path: Path) -> None:
    """A third as many checkpoints log a third as many images; as many as before is no effect."""
    made = (
        "CREATE TABLE t (id int8, v int8) WITH (fillfactor = 40);\n"
        "INSERT INTO t SELECT i, 0 FROM generate_series(1, 40000) i;\nVACUUM ANALYZE t;\n"
        "CREATE TABLE u (v int8);\n"
    )
    with server(programs_of, made, checkpoint_timeout="5min") as cluster:
        target = conninfo(cluster, "postgres")

        def doing(work: str) -> Callable[[], None]:
            return lambda: run(cluster, "postgres", work)

        plan = planned(cluster, rules=("checkpoint-images",), work=OFTEN)
        (step,) = plan.remedies or ()
        assert [claim.measure for claim in step.claims] == ["setting", "images_frac"]
        assert plan.wal is not None
        path = written(replace(plan, wal=replace(plan.wal, interval_s=600.0)), tmp_path)
        assert command(["apply", str(path), target, "--yes"]) == 0
        early = judged(cluster, path, doing(SELDOM))
        assert early == {"setting": "held", "images_frac": "undecided"}
        long_ago(path)
        assert judged(cluster, path, doing(SELDOM)) == {"setting": "held", "images_frac": "held"}
        other = "INSERT INTO u SELECT generate_series(1, 1200);\n"
        assert judged(cluster, path, doing(other))["images_frac"] == "not comparable"
        assert judged(cluster, path, doing(OFTEN * 50))["images_frac"] == "failed"


@pytest.mark.parametrize("programs_of", servers())
def test_autovacuum_comes_as_often_as_rows_die(programs_of: ServerPrograms, tmp_path: Path) -> None:
    """It is counted where it is due; where a lock keeps it away it is not there."""
    made = "".join(
        f"CREATE TABLE {name} (id int8 PRIMARY KEY, v int8);\n"
        f"CREATE INDEX {name}_v ON {name} (v);\n"
        f"INSERT INTO {name} SELECT i, i FROM generate_series(1, 20000) i;\n"
        f"VACUUM ANALYZE {name};\n"
        for name in ("t", "u", "w")
    )
    with server(
        programs_of,
        made,
        autovacuum_vacuum_cost_limit="1",
        autovacuum_vacuum_cost_delay="20ms",
    ) as cluster:
        target = conninfo(cluster, "postgres")
        dying = "UPDATE {} SET v = v + 1 WHERE id <= 5000;\n"
        plan = planned(cluster, rules=("autovacuum-limit",), work=dying.format("t"))
        (step,) = plan.remedies or ()
        assert [claim.measure for claim in step.claims] == ["setting", "vacuums_frac"]
        path = written(plan, tmp_path)
        assert command(["apply", str(path), target, "--yes"]) == 0
        assert judged(cluster, path, lambda: None) == {
            "setting": "held",
            "vacuums_frac": "undecided",
        }
        often = "ALTER SYSTEM SET autovacuum_naptime = 1;\nSELECT pg_reload_conf()"
        run(cluster, "postgres", often)

        def came(name: str) -> int:
            query = f"SELECT pg_stat_get_autovacuum_count('{name}'::regclass)"
            return int(asked(cluster, query))

        def all_die(awaited: str) -> None:
            for _ in range(3):
                before = {name: came(name) for name in awaited}
                run(cluster, "postgres", "".join(map(dying.format, "tuw")))
                until(
                    lambda before=before: all(came(name) > n for name, n in before.items()),
                    "autovacuum has come",
                )

        until(lambda: came("t") > 0, "it has come for what died before")
        assert judged(cluster, path, lambda: all_die("tuw"))["vacuums_frac"] == "held"
        with cluster.connect(autocommit=False) as holder:
            holder.execute("LOCK TABLE t, w IN SHARE UPDATE EXCLUSIVE MODE")
            assert judged(cluster, path, lambda: all_die("u"))["vacuums_frac"] == "failed"
