"""The advice as a value: its file's form; what a setting costs by the policy."""

from __future__ import annotations

import json
from dataclasses import replace

import observed_table as made
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgheadroom.advise.advice import Advice, Observation
from pgheadroom.advise.build import partitions_of
from pgheadroom.advise.cold_updates import Blamed, Cause
from pgheadroom.advise.foreseen import Calibration, Point, Transition
from pgheadroom.advise.inputs import FittedInput
from pgheadroom.advise.policy import make_policy, with_cost
from pgheadroom.advise.table_advice import Gain, Remark, TableAdvice
from pgheadroom.errors import InputError
from pgheadroom.report.advice import detail as advice_detail
from pgheadroom.report.advice import overview as advice_overview
from pgheadroom.types import Interval


def _around(mid: float) -> Interval:
    return Interval(low=mid * 0.9, mid=mid, high=mid * 1.1, level=0.9)


def _point(fillfactor: int) -> Point:
    return Point(
        fillfactor=fillfactor,
        hot_frac=_around(0.5),
        newpage_frac=0.25,
        heap_bytes=1e9,
        index_bytes=1e9,
        wal_bytes_per_update=_around(100.0),
        all_wal_bytes_per_update=_around(100.0),
        pages_modified_per_update=0.5,
        seq_scan_pages=1e6,
    )


def _advice() -> Advice:
    blamed = Blamed(name='o"x', columns=("state",), updates=5, certainty="possible", scans=3)
    table = TableAdvice(
        table="orders",
        schema="public",
        name="orders",
        oid=16384,
        relfilenode=16390,
        parent=None,
        rows=1000,
        heap_bytes=81920,
        fillfactor=100,
        updates_per_s=2.5,
        updates=25,
        hot_frac=0.4,
        verdict="CHANGE",
        reason="room is short",
        advised_fillfactor=90,
        gain_frac=_around(0.3),
        causes=(
            Cause(
                kind="indexed_column",
                updates=5,
                frac=_around(0.2),
                evidence="measured",
                detail="orders_state",
                indexes=(blamed,),
                wal_bytes=2000.0,
            ),
        ),
        calibration=Calibration(
            observed_hot_frac=0.4,
            predicted_hot_frac=_around(0.41),
            observed_newpage_frac=None,
            predicted_newpage_frac=None,
            agrees=True,
            fitted=(FittedInput(quantity="changed_frac", of="orders.state", value=0.1),),
            note="agrees",
        ),
        curve=(_point(100), _point(90)),
        transition=Transition(
            verdict="converges",
            after_s=60.0,
            after_updates_per_row=0.2,
            final_hot_frac=0.8,
            rewritten_hot_frac=0.9,
            final_heap_bytes=2e9,
        ),
        remarks=(
            Remark(
                kind="index",
                text="x",
                evidence="predicted",
                gain={"hot_frac": Gain(now=0.4, then=0.9)},
                statements=({"sql": "a", "undo": "b"},),
            ),
        ),
        missing=("rights",),
    )
    return Advice(
        tool_version="0.1",
        observation=Observation(
            server_version="18.4",
            database="d",
            database_oid=5,
            system_identifier="7",
            observed_at=None,
            interval_s=10.0,
            masked=False,
            levels=("pg_monitor",),
            missing=(),
            broken=(),
            modules={"pg_repack": "1.5"},
        ),
        policy=make_policy().stated(),
        first=(),
        tables=(table,),
        partitioned=(),
        assumed=("one client",),
    )


def test_partitioned_tables_that_are_each_others_parents_end() -> None:
    """No server has such a pair; a file may say so, and advise once never came to an end."""
    pair = [
        {"schema": "public", "name": name, "parent": parent}
        for name, parent in (("a", "b"), ("b", "a"), ("c", None))
    ]
    seen = made.seen_of_server(partitioned=pair)
    tables = [replace(table, parent="a") for table in _advice().tables]
    found = {one.name: one.partitions for one in partitions_of(seen, tables, ())}
    name = tables[0].name
    assert found == {"a": (name,), "b": (name,), "c": ()}


@given(st.floats(0.0, 1.0), st.floats(-0.02, 0.02))
def test_no_share_is_shown_as_moving_to_itself(now: float, more: float) -> None:
    """A table with an index over what changes was told "HOT 0.0 -> 0.0 %"."""
    (table,) = _advice().tables
    then = min(max(now + more, 0.0), 1.0)
    curve = (replace(_point(100), hot_frac=now), replace(_point(90), hot_frac=then))
    advice = replace(_advice(), tables=(replace(table, curve=curve),))
    (row,) = advice_overview.overview(advice).rows
    shown = str(row[4])
    before, arrow, after = shown.partition(" -> ")
    assert shown.startswith("stays ") != bool(arrow)
    assert before != after
    way = advice_detail.transition(advice.tables[0])
    assert ("HOT" in way) == (abs(then - now) >= 0.01)


def test_a_saved_advice_is_read_as_the_same() -> None:
    """Through text, intervals and nested parts included."""
    advice = _advice()
    assert Advice.from_json(json.loads(json.dumps(advice.to_json()))) == advice


def test_cost_is_the_published_formula() -> None:
    """Each part by hand: 1 GB heap and index, 1 update a second, one scan a day."""
    priced = with_cost(
        _point(100), make_policy().prices, updates_per_s=1.0, seq_scans_per_s=1 / 86_400
    )
    assert isinstance(priced.cost, Interval)
    kept, wal, written, read = 2.0, 5 * 86_400 * 100 / 1e9, 2 * 86_400 * 0.5 / 1e6, 1.0
    assert priced.cost.mid == pytest.approx(kept + wal + written + read)
    assert priced.cost.high - priced.cost.mid == pytest.approx(wal * 0.1), "only WAL is unsure"


def test_goals_weigh_differently_and_prices_replace() -> None:
    """A goal is a set of prices; one that is given wins."""
    assert make_policy("size").prices.wal_gb < make_policy("balanced").prices.wal_gb
    assert make_policy("wal", {"kept_gb": 7.0}).prices.kept_gb == 7.0


@pytest.mark.parametrize(
    ("goal", "prices", "growth"),
    [
        ("best", {}, None),
        ("wal", {"gold": 1.0}, None),
        ("wal", {"wal_gb": -1.0}, None),
        ("wal", {}, -0.1),
        ("wal", {"kept_gb": float("nan")}, None),
    ],
)
def test_what_is_no_policy_is_refused(
    goal: str, prices: dict[str, float], growth: float | None
) -> None:
    """Names and numbers are checked, and the message says what would do."""
    with pytest.raises(InputError, match="expected"):
        make_policy(goal, prices, growth)
