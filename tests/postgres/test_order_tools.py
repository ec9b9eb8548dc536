"""`order --plan` by pg_squeeze and pg_repack: rows are in order afterwards, and none is lost."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import observed
import pytest
from order_tables import analyze, counted_pages
from test_rewrites import environment, prepared

from pgheadroom.cli.app import run as command
from pgheadroom.clustering import order_and_plan
from pgheadroom.order.live import OrderWish
from pgheadroom.plan import plan_text, read_plan
from pgheadroom.plan.record import read_record, record_path
from pgheadroom.plan.values import Tool
from pgheadroom.servers import Cluster, ServerPrograms
from pgheadroom.sources.session import read_only_session
from pgheadroom.verify.claims import verify_remedies

pytestmark = pytest.mark.usefixtures("run_parent")

AT_RANDOM = """
CREATE TABLE "by ""day" (id int PRIMARY KEY, "a day" int, b int, v text);
INSERT INTO "by ""day" SELECT g, hashint4(g) % 20000, g % 7, repeat('x', 300)
FROM generate_series(1, 20000) g;
CREATE INDEX "I" ON "by ""day" ("a day" DESC, b DESC)
"""
NAME = 'public."by ""day"'
WISH = OrderWish(tables=('by "day',), pages=5000)


@pytest.mark.minors
@pytest.mark.pg(">= 18")
def test_put_in_order_by_each_tool(
    programs: ServerPrograms, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """
    Planned, carried out by `apply` or by hand, verified; ranges counted before and after.

    By an index that CLUSTER has not marked and statistics do not put first: `verify` read the
    primary key's ranges until the budget was over, and then could not judge.
    """
    with prepared(programs, "CREATE TABLE kept (id int)") as (cluster, _, tools):
        target = observed.conninfo(cluster)
        ways = [tool for tool in tools if not tool.startswith("REPACK")]
        if not ways:
            pytest.skip("this server has neither pg_squeeze nor pg_repack")
        for how in ways:
            for text in (f"DROP TABLE IF EXISTS {NAME}", *AT_RANDOM.split(";\n")):
                observed.load(cluster, text)
            with cluster.connect() as session:
                analyze(session, NAME, vacuum=True)
                before = counted_pages(session, NAME, '"a day"')
            _, plan = order_and_plan(target, {}, WISH, "auto" if how == tools[0] else how)
            assert plan.remedies, plan.notes
            (step,) = plan.remedies
            assert step.tool.split()[0] == how
            assert step.verified
            path = tmp_path / f"{how}.json"
            path.write_text(plan_text(plan), encoding="utf-8")
            assert read_plan(path) == plan
            assert command(["apply", str(path), target, "--yes"]) == 0, capsys.readouterr().err
            if how == "pg_repack":
                assert step.command is not None
                assert "'--order-by=\"a day\" DESC, b DESC'" in step.command
                env = environment(cluster) | {"PATH": f"{programs.bin_dir}:{os.environ['PATH']}"}
                subprocess.run(step.command, shell=True, env=env, check=True)
                assert command(["apply", str(path), target, "--yes"]) == 0
            with cluster.connect() as session:
                after = counted_pages(session, NAME, '"a day"')
                held = session.execute(f"SELECT count(*), sum(id) FROM {NAME}").fetchone()
            assert held == (20_000, 200_010_000)
            (claim,) = step.claims
            assert claim.before == pytest.approx(before, rel=0.1)
            assert claim.foreseen.low <= after <= claim.foreseen.high < 0.2 * before
            with read_only_session(target, {}) as reading:
                record = read_record(record_path(path), plan)
                found = verify_remedies(plan, record, reading, 0.0, sleep=lambda _: None)
            assert [one.verdict for one in found.claims or ()] == ["held"]
        _check_other_keys(cluster, ways)


def _check_other_keys(cluster: Cluster, ways: list[Tool]) -> None:
    """An expression behind the first column is for pg_squeeze, and none for pg_repack."""
    observed.load(cluster, f"DROP TABLE {NAME}")
    for text in AT_RANDOM.replace("b DESC)", "(b + 1) DESC)").split(";\n"):
        observed.load(cluster, text)
    with cluster.connect() as session:
        analyze(session, NAME, vacuum=True)
    plans = {how: order_and_plan(observed.conninfo(cluster), {}, WISH, how)[1] for how in ways}
    if "pg_squeeze" in plans:
        (step,) = plans["pg_squeeze"].remedies or ()
        statement = "SELECT squeeze.squeeze_table('public', 'by \"day', 'I', NULL, NULL)"
        assert step.statements == (statement,)
    if "pg_repack" in plans:
        assert plans["pg_repack"].remedies == ()
        assert any("has more than columns" in note for note in plans["pg_repack"].notes)
