"""What `advise` says at once, in which order it plays, and what its budget counts."""

from __future__ import annotations

import json
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import observed_table as made
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_advise_parts import SERVER, observed

from curve_points import point_of
from lengths import examples
from pgheadroom import _core
from pgheadroom.advise import Options, advise, runs
from pgheadroom.advise.advice import Advice
from pgheadroom.advise.build import in_order
from pgheadroom.advise.by_rule import beside_index, missed_of
from pgheadroom.advise.causes import causes_of
from pgheadroom.advise.curve import Costed
from pgheadroom.advise.decide import Decision
from pgheadroom.advise.knobs import Knobs
from pgheadroom.advise.policy import DEFAULT_POLICY
from pgheadroom.advise.runs import BudgetSpent, Runner, ScenarioPiece
from pgheadroom.advise.scenario import SAMPLE_PAGES, make_scenario
from pgheadroom.advise.table import TableCase
from pgheadroom.cli.app import run
from pgheadroom.profile import Profile, read_profile
from pgheadroom.report.advice.head import budget as budget_lines
from pgheadroom.types import Interval, PgVersion
from pgheadroom.units import percent

VERSION = PgVersion.parse("18.4")


def several(*profiles: Profile) -> Profile:
    """The tables of several profiles, as t1, t2, ... of one."""
    tables, operations = [], []
    for n, profile in enumerate(profiles, start=1):
        (table,) = profile.tables
        name = f"t{n}"
        indexes = tuple(replace(i, name=i.name.replace("t_", f"{name}_")) for i in table.indexes)
        facts = made.seen_of(table, name=name, oid=16384 + n)
        tables.append(replace(table, name=name, indexes=indexes, observed=facts))
        operations += [replace(o, table=name) for o in profile.workload.operations]
    first = profiles[0]
    workload = replace(first.workload, operations=tuple(operations))
    return replace(first, tables=tuple(tables), workload=workload)


def cases(profile: Profile) -> list[TableCase]:
    """All of a profile's tables, by counters and rules."""
    return [
        TableCase(profile, table, VERSION, DEFAULT_POLICY, SAMPLE_PAGES) for table in profile.tables
    ]


# The budget


def test_the_budget_is_processor_time_of_ours_and_not_the_clock_on_the_wall() -> None:
    """A loaded machine takes nothing away: only the given clock's seconds count."""
    spent = [0.0]
    with Runner(budget_s=10.0, clock=lambda: spent[0]) as runner:
        assert runner.in_time
        spent[0] = 9.9
        assert runner.in_time
        spent[0] = 10.0
        assert not runner.in_time
        assert runner.spent_s == 10.0


def test_processor_time_of_other_processes_is_counted_and_of_this_one_once() -> None:
    """Pieces that a pool of processes plays are ours too."""
    profile = observed(rows=2000, updates=2000, hot=1000, newpage=1000)
    scenario = make_scenario(profile, profile.tables[0], Knobs(), sample_pages=50)
    assert scenario is not None
    piece = ScenarioPiece(scenario=scenario, version="18.4", fillfactor=100, seed=0)
    with (
        ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool,
        Runner(_Elsewhere(pool), clock=lambda: 0.0) as runner,
    ):
        runner.play([piece])
        assert runner.spent_s > 0
    with Runner(clock=lambda: 0.0) as runner:
        runner.play([piece])
        assert runner.spent_s == 0, "this process is what the clock counts"


class _Elsewhere(ProcessPoolExecutor):
    """A process that tells what it took, without sending the run back: that is no plain value."""

    def __init__(self, pool: ProcessPoolExecutor) -> None:
        self._pool = pool

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
        return self._pool.submit(_without_run, fn, *args, **kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self._pool.shutdown(wait, cancel_futures=cancel_futures)


def _without_run(fn: Any, *args: Any) -> Any:
    _, pid, cpu_s = fn(*args)
    return None, pid, cpu_s


@pytest.mark.parametrize("begun", [0, 1, 2, 3])
def test_nothing_is_begun_after_the_budget(begun: int) -> None:
    """Each item takes a second and asks for no run: as many as fit are begun, in order."""
    spent = [0.0]

    def work(item: int) -> int:
        spent[0] += 1.0
        return item

    with Runner(_inline(), budget_s=begun - 0.5, clock=lambda: spent[0]) as runner:
        done = [item for item, _ in runner.side_by_side(work, range(5))]
    assert done == list(range(begun))


def test_a_run_that_is_under_way_is_cut_off_with_the_budget(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """
    A run that would take a minute begins in time; the budget is spent while the twin plays it.

    It has no figures then, and neither is another one begun.
    """
    spent = [0.0]
    begun = _simulating(monkeypatch, spent, seconds=10.0)
    profile = observed(rows=2000, updates=2000, hot=1000, newpage=1000)
    scenario = make_scenario(profile, profile.tables[0], Knobs(), sample_pages=50)
    assert scenario is not None
    run = replace(scenario.profile.workload.run, operations=30_000_000)
    workload = replace(scenario.profile.workload, run=run)
    endless = replace(scenario, profile=replace(scenario.profile, workload=workload))
    pieces = [
        ScenarioPiece(scenario=endless, version="18.4", fillfactor=100, seed=seed)
        for seed in range(50)
    ]

    def work(piece: ScenarioPiece) -> str:
        with pytest.raises(BudgetSpent):
            runner.play([piece, *pieces])
        return "cut off"

    with Runner(budget_s=5.0, clock=lambda: spent[0]) as runner:
        done = [found for _, found in runner.side_by_side(work, pieces[:1])]
        with pytest.raises(BudgetSpent):
            runner.play(pieces[-1:])
    assert done == ["cut off"]
    assert 1 <= len(begun) < len(pieces)


def test_one_of_several_has_a_part_of_the_budget_while_others_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A table of slow runs leaves something to the others; the last one may have all the rest."""
    play = runs._play_elsewhere
    monkeypatch.setattr(runs, "_play_elsewhere", lambda piece: (*play(piece)[:2], 1.0))
    profile = observed(rows=2000, updates=2000, hot=1000, newpage=1000)
    scenario = make_scenario(profile, profile.tables[0], Knobs(), sample_pages=50)
    assert scenario is not None
    seeds = iter(range(100))

    def work(count: int) -> str:
        for n in range(count):
            piece = ScenarioPiece(
                scenario=scenario, version="18.4", fillfactor=100, seed=next(seeds)
            )
            try:
                runner.play([piece])
            except BudgetSpent as spent:
                return f"{n} runs, {percent(spent.part)}"
        return "ended"

    with Runner(_inline(), budget_s=12.0, clock=lambda: 0.0) as runner:
        done = [found for _, found in runner.side_by_side(work, [10, 4, 10])]
    assert done == ["5 runs, 33 %", "ended", "ended"]


def _simulating(
    monkeypatch: pytest.MonkeyPatch, spent: list[float], *, seconds: float
) -> list[int]:
    """The twin as it is, with a clock beside it that goes on so much when a run has begun."""
    begun: list[int] = []
    simulate = _core.simulate

    def counted(*args: Any, **kwargs: Any) -> Any:
        begun.append(1)
        spent[0] += seconds
        return simulate(*args, **kwargs)

    monkeypatch.setattr(_core, "simulate", counted)
    return begun


def test_the_budget_holds_and_what_it_was_not_enough_for_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A run is a second: of three tables one is played, one cut off in the middle."""
    profile = several(
        observed(rows=600, updates=200, hot=188, newpage=12),
        observed(rows=500, updates=120, hot=112, newpage=8),
        observed(rows=400, updates=100, hot=95, newpage=5),
    )
    spent = [0.0]
    begun = _simulating(monkeypatch, spent, seconds=1.0)
    clocked = partial(Runner, clock=lambda: spent[0])
    monkeypatch.setattr(sys.modules[advise.__module__], "Runner", clocked)
    counts = []
    for name in ("t1", "t2"):
        before = len(begun)
        advise(profile, Options(budget_s=1e6, tables=(name,)), executor=_inline())
        counts.append(len(begun) - before)
    assert min(counts) > 10, "a table takes many runs"
    whole = {t.table: t for t in advise(profile, Options(budget_s=1e6), executor=_inline()).tables}
    begun.clear()
    budget_s = counts[0] + counts[1] // 2
    found = advise(profile, Options(budget_s=budget_s), executor=_inline())
    assert len(begun) == budget_s, "seconds, and none beyond"
    tables = {table.table: table for table in found.tables}
    assert tables["t1"] == whole["t1"]
    assert found.budget.played == 1
    assert found.budget.cut_off == ("t2",)
    assert found.budget.not_weighed == ("t2", "t3")
    for name in ("t2", "t3"):
        table = tables[name]
        assert (table.verdict, table.curve, table.calibration) == ("ABSTAIN", (), None)
        assert "a larger budget" in table.reason
    assert "were cut off after" in tables["t2"].reason
    assert "1 of 3 tables were played" in tables["t3"].reason
    assert Advice.from_json(json.loads(json.dumps(found.to_json()))) == found
    said = " ".join(budget_lines(found))
    assert "2 are not weighed (t2, t3; t2 was begun and cut off)" in said


def test_what_a_rule_answers_says_that_the_budget_was_not_enough(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Jobs of pg-boss, never HOT, were to keep fillfactor 50, and nothing said why."""
    queue = read_profile(Path(__file__).parent / "observed" / "job-queue.json")
    spent = [0.0]
    _simulating(monkeypatch, spent, seconds=1.0)
    clocked = partial(Runner, clock=lambda: spent[0])
    monkeypatch.setattr(sys.modules[advise.__module__], "Runner", clocked)
    found = advise(queue, Options(budget_s=3), executor=_inline())
    ruled = [table for table in found.tables if table.decided_by == "rule"]
    assert ruled
    assert all("not foreseen: its runs were cut off after 3 s" in one.reason for one in ruled)


def _inline() -> Any:
    from pgheadroom.schedule import InlineExecutor

    return InlineExecutor()


def test_without_a_budget_counters_and_rules_alone_answer(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--budget 0`: the index is found, and nothing is played."""
    monkeypatch.setattr(Runner, "play", None)
    queue = Path(__file__).parent / "observed" / "job-queue.json"
    assert run(["advise", str(queue), "--budget", "0", "-f", "json"]) == 0
    found = json.loads(capfd.readouterr().out)
    assert found["budget"]["played"] == 0
    assert {one["evidence"] for one in found["indexes"]} == {"estimated"}


def test_tables_that_were_not_reached_say_so_and_rules_hold_without_a_play() -> None:
    """A budget of nothing: an index, plenty of HOT, and what only a play would tell."""
    by_index = observed(indexed=True, sets="state", updates=4000, hot=0, newpage=0, fillfactor=70)
    enough = observed(updates=40_000, hot=39_900, newpage=100)
    unknown = observed(updates=4000, hot=2000, newpage=2000)
    profile = several(_with_index(by_index), enough, unknown)
    found = advise(profile, Options(budget_s=1e-9))
    tables = {table.table: table for table in found.tables}
    index, plenty, left = (tables[name] for name in ("t1", "t2", "t3"))
    assert (index.verdict, index.decided_by) == ("KEEP", "rule"), index.reason
    assert "t1_state" in index.reason
    assert "no fillfactor makes these HOT" in index.reason
    assert index.remarks[0].kind == "index"
    assert "time was spent" not in json.dumps(found.to_json())
    assert (plenty.verdict, plenty.decided_by) == ("KEEP", "rule"), plenty.reason
    assert left.verdict == "ABSTAIN"
    assert "not weighed: 0 of 3 tables were played" in left.reason
    assert "a larger budget" in left.reason
    assert found.budget.not_weighed == ("t3",), "rules decide the others"
    assert found.budget.played == 0
    assert [finding.name for finding in found.indexes] == ["t1_state"]
    assert found.indexes[0].evidence == "estimated"
    assert Advice.from_json(json.loads(json.dumps(found.to_json()))) == found


def _with_index(profile: Profile) -> Profile:
    """The table with its index as `observe` writes it, and its statements counted."""
    (table,) = profile.tables
    assert table.observed is not None
    count = table.observed["counters"]["n_tup_upd"]
    seen = {
        **table.observed["updates"],
        "source": "pg_stat_statements",
        "classes": [made.a_class(["state"], count, frac=1.0, wal_bytes=count * 900, kind="update")],
        "unattributed_frac": 0.0,
        "unattributed_resolution": 0.001,
    }
    indexes = [
        made.index("t1_pkey", ["id"], is_unique=True, is_primary=True),
        made.index("t1_state", ["state"]),
    ]
    observed_facts = made.seen_of(table, updates=seen, indexes=indexes)
    return replace(profile, tables=(replace(table, observed=observed_facts),))


def test_the_same_profile_gives_the_same_advice_however_the_runs_are_scheduled() -> None:
    """Side by side in threads or one after the other: with budget enough nothing differs."""
    profile = several(
        observed(rows=600, updates=200, hot=190, newpage=10),
        observed(rows=500, updates=120, hot=110, newpage=10),
    )
    options = Options(budget_s=6000.0)
    found = advise(profile, options)
    assert [table.decided_by for table in found.tables] == ["twin", "twin"]
    assert advise(profile, options, executor=_inline()) == found


# The order

_SHAPES = st.lists(
    st.tuples(
        st.integers(200, 5000),  # updates
        st.floats(0, 1),  # HOT of them
        st.one_of(st.none(), st.integers(60, 20_000)),  # WAL bytes that a statement wrote
        st.sampled_from([40, 200, 900]),  # width
    ),
    min_size=2,
    max_size=6,
)


def _shaped(updates: int, hot: float, wal: int | None, width: int) -> Profile:
    missed = updates - int(updates * hot)
    profile = observed(updates=updates, hot=updates - missed, newpage=missed, width_bytes=width)
    if wal is None:
        return profile
    (table,) = profile.tables
    assert table.observed is not None
    seen = {
        **table.observed["updates"],
        "classes": [made.a_class(["v"], updates, frac=1.0, wal_bytes=updates * wal)],
        "unattributed_frac": 0.0,
    }
    return replace(profile, tables=(replace(table, observed=made.seen_of(table, updates=seen)),))


@settings(max_examples=examples(60), deadline=None, derandomize=True)
@given(shapes=_SHAPES, names=st.randoms(use_true_random=False))
def test_tables_are_played_by_the_wal_at_stake_whatever_they_are_called(
    shapes: list[tuple[int, float, int | None, int]], names: Any
) -> None:
    """The order falls by stake, and is the same under other names and in another order."""
    profile = several(*(_shaped(*shape) for shape in shapes))
    ordered = in_order(cases(profile))
    stakes = [case.stake.wal_bytes_per_day for case in ordered]
    assert stakes == sorted(stakes, reverse=True)
    shuffled = list(profile.tables)
    names.shuffle(shuffled)
    renamed = replace(
        profile,
        tables=tuple(replace(t, name=f"x{n}") for n, t in enumerate(shuffled)),
        workload=replace(profile.workload, operations=()),
    )
    assert [case.stake.wal_bytes_per_day for case in in_order(cases(renamed))] == stakes


@settings(max_examples=examples(60), deadline=None, derandomize=True)
@given(shape=_SHAPES.map(lambda shapes: shapes[0]), more=st.integers(1, 1000))
def test_more_misses_and_more_measured_wal_put_a_table_further_to_the_front(
    shape: tuple[int, float, int | None, int], more: int
) -> None:
    """Of two tables alike, the one whose updates miss HOT oftener, or write more, is first."""
    updates, hot, wal, width = shape
    missed = updates - int(updates * hot)
    one = _shaped(updates, hot, wal, width)
    worse = _shaped(updates, max(hot - more / updates, 0.0), wal, width)
    first = in_order(cases(several(one, worse)))[0]
    if int(updates * max(hot - more / updates, 0.0)) < updates - missed:
        assert first.name == "t2"
    if wal is not None and missed:
        dearer = _shaped(updates, hot, wal + more, width)
        assert in_order(cases(several(one, dearer)))[0].name == "t2"


def test_a_table_without_updates_has_nothing_at_stake() -> None:
    """And no counter of it is divided by."""
    (case,) = cases(observed(updates=0, hot=0, newpage=0))
    assert case.stake.wal_bytes_per_day == 0
    assert not case.is_worth_playing


# A horizon, by rule


def test_a_held_horizon_is_told_without_a_play() -> None:
    """Versions that nobody may remove explain what missed HOT; what to do comes with it."""
    still = {"stood_still": [{"start_frac": 0.1, "length_frac": 0.8}], "holders": [], "series": []}
    profile = observed(updates=4000, hot=2000, newpage=2000, server={"horizon": still})
    (table,) = advise(profile, Options(budget_s=1e-9)).tables
    assert (table.verdict, table.decided_by) == ("ABSTAIN", "rule")
    assert "stood still for 80 %" in table.reason
    assert "observe again" in table.reason
    assert SERVER["horizon"]["stood_still"] == []


# An index, and a fillfactor


@pytest.mark.parametrize("hot_then", [0.004, 0.3])
def test_where_an_index_ends_hot_a_lower_fillfactor_is_no_remedy_for_hot(hot_then: float) -> None:
    """
    A table with 0 % HOT by an index was told "fillfactor 90", which left it at 0 %.

    What pays by fewer pages and less WAL is advised for that, and the index is named before.
    """
    profile = _with_index(observed(indexed=True, sets="state", updates=4000, hot=0, newpage=0))
    (case,) = cases(profile)
    curve = tuple(
        Costed(point=point_of(f, hot=hot), costs=(1.0,)) for f, hot in ((100, 0.0), (90, hot_then))
    )
    missed = missed_of(causes_of(profile.tables[0], VERSION.major, profile.server.observed))
    change = Decision(
        verdict="CHANGE",
        reason="cheaper",
        fillfactor=90,
        gain_frac=Interval(low=0.05, mid=0.1, high=0.2, level=0.9),
    )
    found = beside_index(change, profile.tables[0], missed, case.findings, curve)
    assert (found.verdict, found.fillfactor) == ("CHANGE", 90)
    if hot_then < 0.01:
        index, fillfactor = found.reason.index("t1_state by state"), found.reason.index("90 is for")
        assert index < fillfactor
        assert f"pages and WAL, not for HOT, which stays at {percent(hot_then, 1)}" in found.reason
        assert "in the long run" not in found.reason
    else:
        assert found.reason == "cheaper"
    keep = replace(change, verdict="KEEP", fillfactor=100)
    kept = beside_index(keep, profile.tables[0], missed, case.findings, curve)
    assert "t1_state by state" in kept.reason
