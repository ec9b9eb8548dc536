"""The long run: runs go on until consecutive windows agree, or say that they do not."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_advise_parts import observed
from test_foreseeing import scenario as hand_made

from lengths import examples
from pgheadroom.advise.knobs import Knobs
from pgheadroom.advise.runs import PlayedPiece, Runner, ScenarioPiece
from pgheadroom.advise.scenario import Scenario, longer, make_scenario
from pgheadroom.advise.settling import LONGER_MAX, SETTLED_WITHIN, differs, long_runs, moved
from pgheadroom.profile import Snapshot, parse_profile
from pgheadroom.types import Interval

PER_WINDOW = 1000
ROWS_AT_HAND = hand_made().table.rows


def played(
    hot: list[float],
    *,
    seed: int = 0,
    pages: tuple[int, ...] = (),
    inserts: tuple[int, ...] = (),
) -> PlayedPiece:
    """A run whose windows have these HOT shares; the other updates go to new pages."""
    made = replace(hand_made(), windows=len(hot), steady_from=len(hot) // 2)
    counts = tuple(round(share * PER_WINDOW) for share in hot)
    columns: dict[str, Any] = {
        "n_tup_upd": (PER_WINDOW,) * len(hot),
        "n_tup_hot_upd": counts,
        "n_tup_newpage_upd": tuple(PER_WINDOW - count for count in counts),
        "n_tup_ins": inserts or (0,) * len(hot),
        "n_tup_del": (0,) * len(hot),
        "heap_pages": pages or (1000,) * len(hot),
    }
    return PlayedPiece(
        piece=ScenarioPiece(scenario=made, version="18.4", fillfactor=100, seed=seed),
        columns=columns,
        vacuum_pages=(),
        simulated=None,  # type: ignore[arg-type] # nothing looks at it
        cpu_s=0.0,
    )


def waves(windows: int, *, first: float, second: float, begins: int, lasts: int) -> list[float]:
    """HOT shares with a first wave of moves at the beginning, and a second one later."""
    return [
        1.0 - (first if n < 2 else 0.0) - (second if begins <= n < begins + lasts else 0.0)
        for n in range(windows)
    ]


@settings(max_examples=examples(200), deadline=None, derandomize=True)
@given(
    first=st.floats(0, 0.5),
    second=st.floats(0.05, 0.5),
    begins=st.integers(2, 30),
    lasts=st.integers(1, 30),
)
def test_a_wave_in_one_of_the_windows_has_not_settled(
    first: float, second: float, begins: int, lasts: int
) -> None:
    """Where the last half differs from the quarter before it by half a point, it says so."""
    shares = waves(32, first=first, second=second, begins=begins, lasts=lasts)
    runs = [played(shares, seed=seed) for seed in range(3)]
    quarter, half = math.fsum(shares[8:16]) / 8, math.fsum(shares[16:]) / 16
    seen = moved(runs)
    if abs(quarter - half) > SETTLED_WITHIN + 1e-3:
        assert seen is not None
        assert seen.low == pytest.approx(min(quarter, half), abs=1e-3)
        assert seen.high == pytest.approx(max(quarter, half), abs=1e-3)
        assert seen.mid == pytest.approx(half, abs=1e-3)
    elif abs(quarter - half) < SETTLED_WITHIN - 1e-3:
        assert seen is None


@settings(max_examples=examples(100), deadline=None, derandomize=True)
@given(
    share=st.floats(0.1, 0.9),
    steps=st.lists(st.floats(-0.04, 0.04), min_size=3, max_size=3),
    drift=st.sampled_from([0.0, 0.2, -0.2]),
)
def test_what_chance_does_between_windows_has_not_moved(
    share: float, steps: list[float], drift: float
) -> None:
    """Runs that differ by as much to either side are one state; what all of them do is none."""
    centre = math.fsum(steps) / 3
    before = [(share, 0.0)] * 3
    after = [(share + step - centre + drift / 2, 0.0) for step in steps]
    spread = max(steps) - min(steps)
    if not drift:
        assert not differs(before, after)
    elif spread < 0.02:
        assert differs(before, after)
    same = [(0.0, one) for one, _ in after]
    assert differs([(0.0, one) for one, _ in before], same) == differs(before, after)


def test_a_heap_that_grows_by_more_than_its_rows_has_not_settled() -> None:
    """Moves that go on at one pace look the same in both windows, and go on."""
    hot, rows = [0.96] * 16, ROWS_AT_HAND
    still, slowly = (1000,) * 16, tuple(1000 + 10 * n for n in range(16))
    come = (round(rows * 0.01),) * 16
    assert moved([played(hot, pages=still)]) is None
    seen = moved([played(hot, pages=slowly)])
    assert seen is not None
    assert seen.mid == pytest.approx(0.96)
    assert moved([played(hot, pages=slowly, inserts=come)]) is None, "rows come as well"


def test_a_longer_run_is_the_same_one_for_longer() -> None:
    """It begins as the shorter one does, with its rows, rate and snapshots."""
    short = make_scenario(observed(), observed().tables[0], Knobs(held_s=20.0), sample_pages=100)
    assert short is not None
    twice = longer(short)
    assert twice is not None
    distance = short.profile.server.checkpoint_interval_s
    assert distance is not None
    assert twice.duration_s == pytest.approx(2 * short.duration_s, abs=distance)
    assert (twice.duration_s / distance) % 1 == pytest.approx(0.5)
    assert twice.table == short.table
    assert twice.profile.workload.run.operations == pytest.approx(
        twice.per_s * twice.duration_s, abs=1
    )
    held = [
        math.fsum(one.length_frac for one in found.profile.workload.run.snapshots)
        for found in (short, twice)
    ]
    assert held[0] > 0.1
    assert held[1] == pytest.approx(held[0], abs=0.05)
    starts = [one.start_frac * twice.duration_s for one in twice.profile.workload.run.snapshots]
    assert starts[: len(short.profile.workload.run.snapshots)] == pytest.approx(
        [one.start_frac * short.duration_s for one in short.profile.workload.run.snapshots]
    )


def test_a_run_ends_where_the_table_would_be_another_one() -> None:
    """Growth and deletes bound it, and a month; sizes of a growing table keep their moment."""
    plain = make_scenario(observed(), observed().tables[0], Knobs(), sample_pages=100)
    assert plain is not None
    assert plain.sized_at == plain.windows
    assert longer(replace(plain, longest_s=1.1 * plain.duration_s)) is None
    many = tuple(Snapshot(start_frac=n / 1000, length_frac=0.0005) for n in range(1000))
    run = replace(plain.profile.workload.run, snapshots=many)
    workload = replace(plain.profile.workload, run=run)
    assert longer(replace(plain, profile=replace(plain.profile, workload=workload))) is None
    grows = longer(replace(plain, sized_s=plain.duration_s))
    assert grows is not None
    at_s = grows.sized_at / grows.windows * grows.duration_s
    assert at_s == pytest.approx(plain.duration_s, rel=0.01)


ROWS = 600


def slow(updates_per_row: float = 4.0) -> Scenario:
    """Full pages of rows of 650 to 1,290 bytes: rows find pages where they fit, one by one."""
    profile = parse_profile(
        {
            "schema_version": 1,
            "server": {"full_page_writes": False, "checkpoint_interval_s": 30},
            "table": [
                {
                    "name": "t",
                    "rows": ROWS,
                    "columns": [
                        {"name": "id", "type": "int4"},
                        {"name": "v", "type": "int4"},
                        {
                            "name": "note",
                            "type": "text",
                            "width": {"min_bytes": 650, "max_bytes": 1290},
                        },
                    ],
                    "indexes": [{"name": "t_pk", "columns": ["id"], "unique": True}],
                }
            ],
            "operation": [
                {
                    "table": "t",
                    "kind": "update",
                    "sets": ["v"],
                    "pick": {"distribution": "uniform"},
                }
            ],
            "run": {"operations": round(updates_per_row * ROWS)},
        }
    )
    duration_s = updates_per_row * ROWS / 10
    return replace(
        hand_made(),
        profile=profile,
        duration_s=duration_s,
        updates_per_row=updates_per_row,
        windows=16,
        steady_from=8,
    )


def test_a_late_wave_is_not_called_the_long_run() -> None:
    """
    Rows of mixed lengths still move after four updates a row, and hardly after thirty.

    18.4 does the same: 2,000 such rows at 100 have 95.9 % HOT between 2 and 4 updates a row, 97.8 %
    to 15 and 99.2 % to 30, each as the twin has it, update by update.
    """
    with Runner() as runner:
        found = long_runs(slow(), (100,), "18.4", runner, seeds=3)[100]
        first = _hot(runner.play([_piece(slow())]))
        far = _hot(runner.play([_piece(slow(64.0))]))
    assert found.scenario.updates_per_row > 12, "it went on"
    assert far - first > 0.02
    assert abs(_hot(found.runs) - far) < abs(first - far) / 2
    assert found.is_settled or isinstance(found.seen, Interval)


def test_a_run_whose_budget_is_spent_says_between_what_it_moves() -> None:
    """It plays what everybody gets, no more; the range that it has seen stands beside."""
    with Runner(budget_s=1e-9) as runner:
        found = long_runs(slow(), (100, 50), "18.4", runner, seeds=3)
    assert {one.scenario.updates_per_row for one in found.values()} == {4.0}
    assert found[50].is_settled
    seen = found[100].seen
    assert seen is not None
    assert seen.low < seen.high
    assert seen.low <= _hot(found[100].runs) <= seen.high


def test_a_run_is_not_doubled_without_end() -> None:
    """Whatever it does: eight times its first length."""
    with Runner() as runner:
        (found,) = long_runs(slow(), (100,), "18.4", runner, seeds=2).values()
    assert found.scenario.updates_per_row == pytest.approx(4.0 * 2**LONGER_MAX, rel=0.2)


def _piece(scenario: Scenario) -> ScenarioPiece:
    return ScenarioPiece(scenario=scenario, version="18.4", fillfactor=100, seed=0)


def _hot(runs: Any) -> float:
    found = [run.figures() for run in runs]
    return math.fsum(one.n_tup_hot_upd for one in found) / math.fsum(one.n_tup_upd for one in found)
