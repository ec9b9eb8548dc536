"""What the twin foresees of a table to which autovacuum comes late, by the doctor on a server."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from doctor_sides import conninfo, run

from pgheadroom.advise import duration
from pgheadroom.doctor import Diagnosis, foreseeing, rule_named
from pgheadroom.doctor.live import examine_live
from pgheadroom.servers import Cluster, Host, ServerPrograms

pytestmark = pytest.mark.usefixtures("run_parent")

ROWS = 2000
MAKE = (
    "CREATE TABLE t (id int PRIMARY KEY, v int, filler char(1900))"
    " WITH (autovacuum_enabled = off, fillfactor = 50);\n"
    f"INSERT INTO t SELECT i, i, '' FROM generate_series(1, {ROWS}) i;\n"
    "CREATE INDEX t_v ON t (v);\nVACUUM ANALYZE t;\n"
)
WORK = (
    "DO $$ BEGIN FOR i IN 1..60 LOOP UPDATE t SET v = v + 1"
    f" WHERE id = 1 + (random() * {ROWS - 1})::int; COMMIT; END LOOP; END $$"
)


def looked(cluster: Cluster, interval_s: float, sleep: Callable[[float], None]) -> Diagnosis:
    rules = [rule_named("autovacuum-off")]
    target = conninfo(cluster, "postgres")
    return examine_live(target, {}, rules=rules, interval_s=interval_s, sleep=sleep)


@pytest.mark.long(reason="ten seconds of the twin; recorded work is played")
def test_a_table_that_autovacuum_leaves_alone(
    newest: ServerPrograms, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dead rows without end as it is, few with autovacuum on; and nothing where nothing can be."""
    monkeypatch.setattr(foreseeing, "_OPERATIONS_MAX", 20_000)
    monkeypatch.setattr(duration, "_OPERATIONS_MAX", 10_000)
    with Host(newest) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum_naptime": "1", "shared_buffers": "32MB"})
        run(cluster, "postgres", MAKE + f"{WORK};\n" * 12)

        def work(_seconds: float) -> None:
            run(cluster, "postgres", WORK)

        (short,) = looked(cluster, 19.0, work).findings
        assert "twin" not in short.text
        (found,) = looked(cluster, 20.0, work).findings
        assert "with autovacuum on" in found.text, found.text
        numbers = {name: int(str(found.numbers[name])) for name in found.numbers if "dead" in name}
        assert numbers["foreseen_now_dead_rows_low"] > numbers["n_dead_tup"]
        # Threshold and what dies in a naptime, at a rate that is as high as the machine is quick.
        assert 0 < numbers["foreseen_then_dead_rows_high"] < numbers["foreseen_now_dead_rows_low"]
        assert found.numbers["foreseen_now_vacuums_per_day_high"] == 0.0
        assert float(str(found.numbers["foreseen_then_vacuums_per_day_low"])) > 0.0

        def nothing(_seconds: float) -> None:
            """Nobody works."""

        (idle,) = looked(cluster, 20.0, nothing).findings
        assert "The twin foresees nothing of it: nothing that changes it was seen" in idle.text
        assert not any(name.startswith("foreseen") for name in idle.numbers)

        def drop(_seconds: float) -> None:
            run(cluster, "postgres", "DROP TABLE IF EXISTS t")

        gone = looked(cluster, 20.0, drop)
        assert (gone.findings, gone.cut_off) == ((), False)
