"""`verify` of tables that grow: foreseen again for the rows and updates that have come since."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import observed
import planned
import pytest
from test_verify import around, verified, watched, way

from pgheadroom.advise.foreseen import Calibration
from pgheadroom.cli.app import run
from pgheadroom.plan import Plan, make_plan
from pgheadroom.plan.record import AppliedRecord, read_record, record_path
from pgheadroom.profile import Profile
from pgheadroom.servers import Cluster, Host, ServerPrograms
from pgheadroom.types import Interval
from pgheadroom.verify.values import MeasureOutcome, TableOutcome

pytestmark = pytest.mark.usefixtures("run_parent")

ROWS = 2000
TABLE = """
CREATE TABLE {name} (id int PRIMARY KEY, n int, s int, filler char(200))
    WITH (autovacuum_enabled = off);
CREATE INDEX ON {name} (s);
INSERT INTO {name} SELECT i, 0, 0, '' FROM generate_series(1, {rows}) i;
VACUUM ANALYZE {name}
"""


class Work:
    """Each turn 50 rows come and 100 of any age are updated, of both tables."""

    def __init__(self, cluster: Cluster, names: tuple[str, ...]) -> None:
        self._cluster = cluster
        self._draw = random.Random(7)
        self.rows = dict.fromkeys(names, ROWS)
        self.column = dict.fromkeys(names, "n")
        self.deletes = dict.fromkeys(names, 0)

    def turn(self, _: int = 0, *, inserts: int = 50) -> None:
        with observed.session(self._cluster) as connection:
            for name, rows in self.rows.items():
                self.rows[name] = rows + inserts
                connection.execute(
                    f"INSERT INTO {name} SELECT i, 0, 0, '' FROM generate_series("
                    f"{rows + 1}, {rows + inserts}) i"
                )
                column = self.column[name]
                for _ in range(100):
                    row = self._draw.randint(1, self.rows[name])
                    connection.execute(
                        f"UPDATE {name} SET {column} = {column} + 1 WHERE id = {row}"
                    )
                for _ in range(self.deletes[name]):
                    row = self._draw.randint(1, self.rows[name])
                    connection.execute(f"DELETE FROM {name} WHERE id = {row}")


def advised(profile: Profile, name: str) -> Any:
    """As `advise` has it of a table that it simulated, from 100 to 70."""
    table = profile.table(name)
    facts: Any = table.observed
    heap = float(facts["main_bytes"])
    curve = (planned.point(100, heap, around(0.9)), planned.point(70, heap * 1.4, around(0.97)))
    made = planned.table_advice(table, 70, "CHANGE", curve, way(0.97, 1.0))
    calibration = Calibration(
        observed_hot_frac=0.9,
        predicted_hot_frac=around(0.9),
        observed_newpage_frac=None,
        predicted_newpage_frac=None,
        agrees=True,
        fitted=(),
        note="",
    )
    return replace(made, calibration=calibration)


def measures(table: TableOutcome) -> dict[str, MeasureOutcome]:
    return {outcome.name: outcome for outcome in table.outcomes}


@pytest.mark.long(reason="half a minute; rows updated as they come are judged in ten seconds")
def test_a_table_that_grows_is_judged_for_what_it_is_now(
    newest: ServerPrograms, tmp_path: Path
) -> None:
    """
    Twice the rows: not comparable, with exit code 0, said an earlier release.

    Held where rows came and were updated as before; failed where HOT goes, or where the pages that
    came since are not those that the setting makes; not comparable where something else happens.
    """
    names = ("held", "lost", "shrinks")
    with Host(newest) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        for name in names:
            observed.load(cluster, TABLE.format(name=name, rows=ROWS))
        work = Work(cluster, names)
        for _ in range(20):  # a life before: each row was updated about once
            work.turn(inserts=0)
        before = observed.profile_of(watched(cluster, work.turn))
        plan = make_plan(
            planned.advice_of(before, tuple(advised(before, name) for name in names)), before
        )
        path = planned.write_plan(plan, tmp_path)
        assert run(["apply", str(path), observed.conninfo(cluster), "--yes"]) == 0
        record = read_record(record_path(path), plan)
        assert record is not None
        work.column["lost"] = "s"
        work.deletes["shrinks"] = 30
        for _ in range(30):
            work.turn()
        recording = watched(cluster, work.turn)
        found, tables = verified(plan, record, recording)
        _, near = verified(plan, other_record(plan, record, 0.5), recording)
        _, wrong = verified(plan, other_record(plan, record, 10), recording)
        _, without = verified(replace(plan, profile=None), record, recording)
    assert {name: table.verdict for name, table in tables.items()} == {
        "held": "held",
        "lost": "failed",
        "shrinks": "not comparable",
    }, [table.reason for table in tables.values()]
    assert not found.held
    held = measures(tables["held"])
    hot, grown, heap = (held[n] for n in ("hot_frac", "heap_grown_bytes", "heap_bytes"))
    assert isinstance(hot.planned, Interval)
    assert hot.planned.mid == pytest.approx(0.97), "what was foreseen then stands beside"
    assert isinstance(hot.forecast, Interval)
    assert isinstance(grown.forecast, Interval)
    assert isinstance(grown.now, int)
    assert "44 % of the rows came since" in hot.note
    assert "of the updates on pages that were there" in hot.note
    parts = tables["held"].by_page
    assert parts is not None
    assert 0 < parts.old_pages_frac < 1
    # The new rows' pages are filled to 70 %, and that is what is judged.
    assert grown.now == pytest.approx(grown.forecast.mid, rel=0.2)
    assert grown.verdict == heap.verdict == "held"
    rows = next(like for like in tables["held"].workload if like.name == "rows")
    assert rows.is_alike
    assert rows.limit == "foreseen again for them"
    assert "hot_frac" in tables["lost"].reason
    assert "rows were changed by delete since" in tables["shrinks"].reason
    # Half of so small a heap is within the 64 pages and the second of growth that are allowed.
    half = measures(near["held"])["heap_bytes"]
    assert half.verdict == "held"
    assert re.search(r"KiB above the forecast, \d+ KiB may be", half.note)
    assert measures(wrong["held"])["heap_bytes"].verdict == "failed"
    assert wrong["held"].verdict == "failed"
    assert without["held"].verdict == "not comparable"
    assert "the plan has no profile of it" in without["held"].reason


def other_record(plan: Plan, record: AppliedRecord, times: float) -> AppliedRecord:
    """As if the heap had been so many times as large when the setting came."""
    for step in plan.steps:
        known = record.step(step.number)
        assert known.after is not None
        assert known.after.heap_bytes is not None
        more = replace(known.after, heap_bytes=round(known.after.heap_bytes * times))
        record = record.with_step(replace(known, after=more))
    return record


ORDERS = """
CREATE TABLE orders (id int PRIMARY KEY, document char(1340), s int)
    WITH (autovacuum_enabled = off);
INSERT INTO orders SELECT i, '', 0 FROM generate_series(1, {rows}) i;
VACUUM ANALYZE orders
"""


class Orders:
    """Orders come, and the newest is paid, packed and sent: three updates for each."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._draw = random.Random(7)
        self.rows = ROWS

    def turn(self, _: int = 0, *, times: int = 200) -> None:
        with observed.session(self._cluster) as connection:
            for _ in range(times):
                if self._draw.random() < 0.25:
                    self.rows += 1
                    connection.execute(f"INSERT INTO orders VALUES ({self.rows}, '', 0)")
                else:
                    connection.execute(f"UPDATE orders SET s = s + 1 WHERE id = {self.rows}")


def test_growth_of_rows_that_are_updated_as_they_come_is_judged(
    newest: ServerPrograms, tmp_path: Path
) -> None:
    """
    How many rows a new page takes is decided by how versions and further rows alternate.

    So it was only shown, and foreseen to be a tenth of what came: the twin gave the table a longer
    life than it had had, and in that room for the next rows.
    """
    with Host(newest) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        observed.load(cluster, ORDERS.format(rows=ROWS))
        orders = Orders(cluster)
        orders.turn(times=1000)
        before = observed.profile_of(watched(cluster, orders.turn))
        plan = make_plan(planned.advice_of(before, (advised(before, "orders"),)), before)
        path = planned.write_plan(plan, tmp_path)
        assert run(["apply", str(path), observed.conninfo(cluster), "--yes"]) == 0
        record = read_record(record_path(path), plan)
        assert record is not None
        orders.turn(times=1500)
        recording = watched(cluster, orders.turn)
        _, tables = verified(plan, record, recording)
        _, wrong = verified(plan, other_record(plan, record, 0.5), recording)
    grown = measures(tables["orders"])["heap_grown_bytes"]
    assert isinstance(grown.forecast, Interval)
    assert isinstance(grown.now, int)
    assert grown.verdict == "held", grown.note
    assert grown.now == pytest.approx(grown.forecast.mid, rel=0.25)
    assert grown.now > 2.5 * 1372 * (orders.rows - ROWS) * 0.5, "by far more than its rows"
    assert measures(wrong["orders"])["heap_grown_bytes"].verdict == "failed"


def test_the_exit_code_says_that_nothing_could_be_judged(
    newest: ServerPrograms, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """6 where the workload is another one, and where nothing happens; it was 0."""
    with Host(newest) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        observed.load(cluster, TABLE.format(name="t", rows=ROWS))
        work = Work(cluster, ("t",))
        before = observed.profile_of(watched(cluster, work.turn))
        plan = make_plan(planned.advice_of(before, (advised(before, "t"),)), before)
        path = planned.write_plan(plan, tmp_path)
        base = ["verify", str(path), observed.conninfo(cluster), "--for", "200ms", "--no-sample"]
        assert run(base) == 6
        assert "not comparable" in capsys.readouterr().out
        assert run(["apply", str(path), observed.conninfo(cluster), "--yes"]) == 0
        capsys.readouterr()
        assert run(base) == 6
        assert "undecided" in capsys.readouterr().out
