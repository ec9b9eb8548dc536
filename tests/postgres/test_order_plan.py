"""`order --plan`: a table is clustered by `apply`, and `verify` holds the claim against it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import observed
import psycopg
import pytest
from order_tables import analyze, counted_pages, load_in_order

from pgheadroom.cli.app import run as command
from pgheadroom.clustering import order_and_plan
from pgheadroom.errors import InputError
from pgheadroom.order.live import OrderWish
from pgheadroom.order.paying import DAY_S
from pgheadroom.order.values import OrderPrices
from pgheadroom.plan import Plan, plan_text, read_plan
from pgheadroom.plan.record import read_record, record_path
from pgheadroom.plan.text import as_markdown
from pgheadroom.servers import Cluster, Host, ServerPrograms
from pgheadroom.sources.session import read_only_session
from pgheadroom.verify.claims import verify_remedies

pytestmark = pytest.mark.usefixtures("run_parent")

ROWS = 20_000
NAMED = OrderWish(tables=("testtab",))


def spoil(connection: psycopg.Connection[Any]) -> None:
    """Rounds in which a part of the rows goes, and comes again anywhere."""
    for number in range(3):
        connection.execute(f"SELECT setseed({number / 10})")
        connection.execute("DELETE FROM testtab WHERE random() < 0.04")
        connection.execute("VACUUM testtab")
        connection.execute(
            f"INSERT INTO testtab (k, d) SELECT (random() * {ROWS})::int, repeat('x', 350) "
            f"FROM generate_series(1, {ROWS // 25})"
        )
    analyze(connection, "testtab", vacuum=True)


@pytest.fixture
def cluster(programs: ServerPrograms) -> Iterator[Cluster]:
    with Host(programs, label="test") as host:
        made = host.cluster("order")
        made.start({"fsync": "off", "autovacuum": "off", "shared_buffers": "64MB"})
        with observed.session(made) as connection:
            load_in_order(connection, ROWS)
            connection.execute("ALTER TABLE testtab ADD id int GENERATED ALWAYS AS IDENTITY")
            connection.execute("ALTER TABLE testtab ADD PRIMARY KEY (id)")
            connection.execute("CLUSTER testtab USING testtabi")
            spoil(connection)
        yield made


def planned(cluster: Cluster, wish: OrderWish, how: str) -> Plan:
    _, plan = order_and_plan(observed.conninfo(cluster), {}, wish, how, sleep=lambda _: None)
    return plan


@pytest.mark.each
def test_planned_applied_verified(
    cluster: Cluster, programs: ServerPrograms, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The claim holds on the server, by ranges and by counting all; the undo says it has none."""
    how = "repack" if programs.version.major >= 19 else "cluster"
    plan = planned(cluster, NAMED, how)
    (step,) = plan.remedies or ()
    assert as_markdown(plan).startswith("# Change: 1 table put in the order of an index\n")
    tool = "REPACK (CONCURRENTLY, ANALYZE)" if how == "repack" else "CLUSTER"
    assert step.statements[0].startswith(tool)
    assert step.undo_statements == ()
    assert "no undo" in step.undo_note
    path = tmp_path / "plan.json"
    path.write_text(plan_text(plan), encoding="utf-8")
    assert read_plan(path) == plan
    connection = observed.conninfo(cluster)
    with observed.session(cluster) as session:
        before = counted_pages(session, "testtab", "k")
        size = session.execute("SELECT count(*), sum(k) FROM testtab").fetchone()
        with read_only_session(connection, {}) as reading:
            early = verify_remedies(plan, None, reading, 0.0, sleep=lambda _: None)
        assert [one.verdict for one in early.claims] == ["not comparable"]
        _check_refusals(plan, path, connection, session, capsys)
        path.write_text(plan_text(plan), encoding="utf-8")
        assert command(["apply", str(path), connection, "--yes"]) == 0, capsys.readouterr().err
        after = counted_pages(session, "testtab", "k")
        assert session.execute("SELECT count(*), sum(k) FROM testtab").fetchone() == size
    (claim,) = step.claims
    assert claim.before == pytest.approx(before, rel=0.1)
    assert claim.foreseen.low <= after <= claim.foreseen.high < 0.6 * before
    record = read_record(record_path(path), plan)
    with read_only_session(connection, {}) as reading:
        found = verify_remedies(plan, record, reading, 0.0, sleep=lambda _: None)
        timeout = reading.execute("SELECT current_setting('statement_timeout')").fetchone()
    assert timeout == ("30s",), "as it was before ranges were read"
    assert [(one.measure, one.verdict) for one in found.claims] == [("pages_per_range", "held")]
    assert command(["apply", str(path), connection, "--undo", "--yes"]) == 0
    again = planned(cluster, NAMED, how)
    assert again.remedies == ()
    assert any("no range lies on 1.5 times" in note for note in again.notes)

    with observed.session(cluster) as session:
        spoil(session)
    with read_only_session(connection, {}) as reading:
        spoiled = verify_remedies(plan, record, reading, 0.0, sleep=lambda _: None)
    assert [one.verdict for one in spoiled.claims] == ["failed"]


def _check_refusals(
    plan: Plan,
    path: Path,
    connection: str,
    session: psycopg.Connection[Any],
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Another statement than the step makes, and another index of that name, are not run."""
    (step,) = plan.remedies or ()
    changed = replace(step, statements=("DROP TABLE testtab",))
    other = path.with_name("changed.json")
    other.write_text(plan_text(replace(plan, remedies=(changed,))), encoding="utf-8")
    assert command(["apply", str(other), connection, "--yes"]) == 2
    assert "changed by hand" in " ".join(capsys.readouterr().err.split())
    session.execute("ALTER INDEX testtabi RENAME TO other")
    session.execute("CREATE INDEX testtabi ON testtab (d)")
    assert command(["apply", str(path), connection, "--yes"]) == 2
    assert "another one than the plan's" in " ".join(capsys.readouterr().err.split())
    session.execute("DROP INDEX testtabi")
    session.execute("ALTER INDEX other RENAME TO testtabi")


def test_what_is_no_step(cluster: Cluster, programs: ServerPrograms) -> None:
    """By price, by tool, and where a file was changed by hand: each says why."""
    unpriced = planned(cluster, OrderWish(interval_s=DAY_S), "cluster")
    assert unpriced.remedies == ()
    assert any("does not pay back" in note for note in unpriced.notes)
    if programs.version.major < 19:
        locked = planned(cluster, NAMED, "auto")
        assert locked.remedies == ()
        assert any("ACCESS EXCLUSIVE" in note for note in locked.notes)
        refused = planned(cluster, NAMED, "repack")
        assert any("it is of version 19" in note for note in refused.notes)
    with pytest.raises(InputError, match="expected one of auto, cluster, repack"):
        planned(cluster, NAMED, "vacuum")

    def day(_: float) -> None:
        with observed.session(cluster) as connection:
            connection.execute("SET enable_seqscan = off; SET enable_bitmapscan = off")
            for start in range(0, 18_000, 300):
                connection.execute(
                    f"SELECT count(d) FROM testtab WHERE k BETWEEN {start} AND {start + 900}"
                )
            connection.execute("SELECT pg_stat_force_next_flush()")
            connection.execute("SELECT 1")

    cheap = OrderPrices(page_read_ms=10, page_hit_ms=10, page_write_ms=0.01, lock_cost=0)
    wish = OrderWish(interval_s=DAY_S, prices=cheap)
    report, plan = order_and_plan(observed.conninfo(cluster), {}, wish, "cluster", sleep=day)
    (step,) = plan.remedies or ()
    assert step.index is not None
    assert step.index.relation.name == "testtabi"
    pay = next(i.pay for i in report.tables[0].indexes if i.name == "testtabi")
    assert pay is not None
    assert pay.pays_back_days is not None
    assert pay.pays_back_days.mid <= 30
