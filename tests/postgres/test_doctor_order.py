"""Tables in bad order as the doctor finds them: planned beside other remedies, and who may look."""

from __future__ import annotations

from pathlib import Path

import pytest
from doctor_order import AT_RANDOM, BY_INDEX, INDEX, MAKE, ranges, rows
from doctor_sides import conninfo, database, run
from order_tables import counted_pages
from test_doctor_agrees import planned_agree, printed_agree
from test_doctor_plan import states, verdicts, verified, written

from pgheadroom.cli.app import run as command
from pgheadroom.doctor import Diagnosis, Examination, rule_named
from pgheadroom.doctor.live_plan import examine_and_plan
from pgheadroom.doctor.planning import PlanWish
from pgheadroom.plan import Plan
from pgheadroom.servers import Cluster
from pgheadroom.sources.session import read_only_session

pytestmark = pytest.mark.usefixtures("run_parent")

RULES = ("rows-out-of-order", "bloated-table", "bloated-index", "duplicate-index")
HALF = (
    MAKE + rows("hashint4(i)", 20_000) + INDEX + "DELETE FROM t WHERE k % 2 = 0;\nVACUUM t;\n"
    "ANALYZE t;\nCREATE INDEX t_k_again ON t (k);\n"
)
"""A table of which half is gone, all over."""
WORK = BY_INDEX + ranges()


def looked(cluster: Cluster, dbname: str, how: str = "vacuum-full") -> tuple[Diagnosis, Plan]:
    """While ranges are read."""
    found, plan = examine_and_plan(
        conninfo(cluster, dbname),
        {},
        PlanWish(rewrite=how),
        rules=[rule_named(name) for name in RULES],
        interval_s=60.0,
        sleep=lambda _: run(cluster, dbname, WORK),
    )
    assert plan is not None
    return found, plan


def test_put_in_order_beside_other_remedies(server: Cluster, tmp_path: Path) -> None:
    """
    A table in bad order, half empty, with an index twice: each is said, and written anew once.

    Carried out it is in order and whole; what was found is found no more.
    """
    with database(server, "order_plan") as dbname:
        run(server, dbname, HALF)
        found, plan = looked(server, dbname)
        told = {each.rule: each for each in found.findings}
        assert set(told) >= {"rows-out-of-order", "bloated-table", "duplicate-index"}
        assert "`rows-out-of-order`" in told["bloated-table"].remedy.text
        printed_agree(found)
        planned_agree(plan)
        assert [step.kind for step in plan.work] == ["drop_index", "cluster_table"]
        _, gentle = looked(server, dbname, "auto")
        assert [step.kind for step in gentle.work] == ["drop_index"], "nobody asked for its lock"
        assert any("VACUUM FULL" in note for note in gentle.notes)
        path = written(plan, tmp_path)
        assert command(["apply", str(path), conninfo(server, dbname), "--yes"]) == 0
        assert set(states(path)) == {"done"}
        claims = verdicts(verified(server, path, "SELECT 1", dbname))
        assert claims["t", "pages_per_range"] == "held"
        assert "failed" not in claims.values()
        with server.connect(dbname) as connection:
            pages = counted_pages(connection, "t", "k")
        claim = next(c for step in plan.work for c in step.claims if c.unit == "pages")
        assert claim.foreseen.low <= pages <= claim.foreseen.high
        after, _ = looked(server, dbname)
        assert after.findings == ()
        assert not after.cut_off


def test_who_may_look(server: Cluster) -> None:
    """Counters say that it may pay: a role that may not SELECT is told so, and reads no row."""
    with database(server, "order_role") as dbname:
        run(
            server,
            dbname,
            MAKE + AT_RANDOM + INDEX + "CREATE ROLE order_monitor LOGIN;\n"
            "GRANT pg_monitor TO order_monitor;\n",
        )
        try:
            with read_only_session(conninfo(server, dbname, "order_monitor"), {}) as connection:
                examination = Examination(connection, [rule_named("rows-out-of-order")])
                examination.start()
                run(server, dbname, WORK)
                before = connection.execute("SHOW statement_timeout").fetchone()
                found = examination.end()
                assert connection.execute("SHOW statement_timeout").fetchone() == before
        finally:
            run(server, dbname, "DROP ROLE order_monitor")
    assert found.findings == ()
    assert [item.why for item in found.blind] == ["t: the role may not SELECT from the table"]
    assert not found.cut_off
