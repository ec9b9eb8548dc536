"""Budget: further blocks go where intervals are widest, and end when everything is answered."""

from __future__ import annotations

import math
from dataclasses import replace

from pgheadroom.lab import budget, conduct
from pgheadroom.lab.design import Request, Trial
from pgheadroom.lab.experiment import compared_cells
from pgheadroom.lab.experiments import get
from pgheadroom.lab.record import TrialSample
from pgheadroom.lab.result import ComparedCells
from pgheadroom.stats import compare
from pgheadroom.types import PgVersion

REQUEST = Request(
    experiment="fillfactor",
    server="18",
    scale=1,
    seed=3,
    repetitions=5,
    levels={"fillfactor": (100, 90, 70), "memory": ("fits",), "autovacuum": ("off",)},
    options={},
)
COMMITS = {"synchronous_commit": ("on", "off"), "clients": (1, 8)}
NOISE = (0.0, 9.0, -7.0, 3.0, 8.0, -5.0)
CELLS = {int(cell["fillfactor"]): cell for cell in REQUEST.cells()}


def _item(fillfactor: int, ratios: list[float], measure: str = "tps") -> ComparedCells:
    found = compare(ratios, [1.0] * len(ratios))
    return compared_cells(found, measure=measure, cell=CELLS[fillfactor], against=CELLS[100])


def _pilot(repetition: int) -> list[Trial]:
    return [replace(trial, repetition=repetition) for trial in get("fillfactor").one_block(REQUEST)]


def test_what_is_precise_or_equal_or_without_ratio_is_answered() -> None:
    """More blocks would not change these, so the budget is not spent on them."""
    assert budget.unanswered([_item(90, [1.001, 1.002, 1.0, 1.001, 1.0])]) == []
    assert budget.unanswered([_item(90, [2.0, 2.1, 2.0, 2.1, 2.05])]) == []
    assert budget.unanswered([_item(90, [1.0] * 5)]) == []
    assert budget.unanswered([_item(90, [0.0] * 4 + [1.0])]) == []


def test_wide_and_few_are_not_answered_the_widest_first() -> None:
    """Four pairs have no verdict; beyond, what is widest comes first."""
    noisy, noisier = [0.9, 1.1, 1.0, 1.05, 0.95], [0.5, 1.5, 1.0, 1.3, 0.7]
    open_ = budget.unanswered([_item(90, noisy), _item(70, noisier), _item(90, [1.0, 1.1], "wal")])
    assert [each.cell["fillfactor"] for each in open_] == [90, 70, 90]
    assert open_[0].measure == "wal"
    assert open_[1].half_width > open_[2].half_width


def test_a_block_has_both_cells_and_the_control_but_not_what_is_narrow() -> None:
    """Pairs must be interleaved in the same block, and so must the A/A arm."""
    noisier, noisy = [0.5, 1.5, 1.0, 1.3, 0.7], [0.98, 1.02, 1.0, 1.05, 0.95]
    open_ = budget.unanswered([_item(90, noisy), _item(70, noisier)])
    block = budget.next_block(REQUEST, _pilot(6), open_)
    assert sorted((trial.cell["fillfactor"], trial.arm) for trial in block) == [
        (70, "measured"),
        (100, "control"),
        (100, "measured"),
    ]
    assert {trial.repetition for trial in block} == {6}


def test_every_second_block_runs_in_reverse() -> None:
    """ABBA holds in the further blocks as in the planned ones."""
    open_ = budget.unanswered([_item(70, [0.5, 1.5, 1.0, 1.3, 0.7])])
    first, second = (budget.next_block(REQUEST, _pilot(number), open_) for number in (6, 7))
    assert [trial.cell for trial in first] == [trial.cell for trial in second[::-1]]


def test_a_round_belongs_to_the_trial_that_plays_it() -> None:
    """The cell of a comparison may have a round; the trial that measures it has none."""
    trial = Trial(cell={"engine": "heap"}, repetition=6)
    item = _item(90, [1.0, 1.3, 0.8, 1.1, 0.9])
    of = {"engine": "heap"}
    item = replace(item, cell={**of, "round": 10}, against={**of, "round": 0})
    assert budget.next_block(REQUEST, [trial], budget.unanswered([item])) == [trial]


def test_the_block_has_the_cell_whose_control_decides() -> None:
    """Where that is neither of the two that are compared, its control arm still gets its pair."""
    request = replace(
        REQUEST, experiment="commit-cost", levels=dict(COMMITS), options={"window_s": 3}
    )
    samples = [
        TrialSample(
            trial=trial.id,
            cell=dict(trial.cell),
            repetition=trial.repetition,
            arm=trial.arm,
            started_at="2026-11-20T00:00:00+00:00",
            duration_s=1,
            measures={"tps": 100.0 + NOISE[trial.repetition] * (trial.cell["clients"] == 8)},
        )
        for trial in get("commit-cost").trials(request)
    ]
    found = get("commit-cost").summarise(request, PgVersion(18, 4), samples)
    control = {"synchronous_commit": "on", "clients": 1}
    item = next(
        item
        for item in found.comparisons
        if item["cell"]["clients"] == 8
        and item["against"] == {**control, "synchronous_commit": "off"}
    )
    assert item["control"] == control
    one = get("commit-cost").one_block(request)
    pilot = [replace(trial, repetition=6) for trial in one]
    block = budget.next_block(request, pilot, budget.unanswered([item]))
    assert {trial.arm for trial in block if trial.cell == control} == {"measured", "control"}
    assert len(block) == 4


def test_one_block_has_the_controls_that_a_single_one_goes_without() -> None:
    """Further blocks of `load-methods` must sharpen its control too."""
    experiment = get("load-methods")
    levels = {"method": ("copy", "insert"), "order": ("ascending",), "index": ("none",),
              "wal_level": ("replica",), "step": ("load",)}  # fmt: skip
    request = replace(REQUEST, experiment="load-methods", levels=levels)
    assert {trial.arm for trial in experiment.trials(replace(request, repetitions=1))} == {
        "measured"
    }
    assert {trial.arm for trial in experiment.one_block(request)} == {"measured", "control"}
    assert {trial.repetition for trial in experiment.one_block(request)} == {1}


def test_a_narrow_comparison_that_its_control_leaves_undecided_says_so() -> None:
    """No number of blocks "for 2 %" where there are fewer to go than there were."""
    ratios = [1.001, 1.002, 1.0, 1.001, 1.0]
    aa = compare([1.05, 1.051, 1.049, 1.05, 1.052], [1.0] * 5)
    found = compare(ratios, [1.0] * 5, aa=aa)
    item = replace(_item(90, ratios), verdict=str(found.verdict), reason=found.reason)
    (open_,) = budget.unanswered([item])
    assert "undecided because the A/A control shows" in conduct.why_stopped([open_])
    assert "blocks for 2 %" not in conduct.why_stopped([open_])
    (wide,) = budget.unanswered([_item(90, [0.9, 1.1, 1.0, 1.05, 0.95])])
    assert wide.reason is None
    assert "about " in conduct.why_stopped([wide])
    assert "no comparison was left" in conduct.why_stopped([])


def test_the_blocks_that_are_needed_grow_with_the_square_of_the_width() -> None:
    """Half the width takes four times the pairs."""
    (open_,) = budget.unanswered([_item(90, [0.9, 1.1, 1.0, 1.05, 0.95])])
    assert budget.blocks_needed(open_, open_.half_width / 2) == 20
    assert budget.blocks_needed(replace(open_, half_width=math.inf), 0.02) is None


def test_with_controls_alone_whole_blocks_are_repeated() -> None:
    """An experiment whose law needs all cells, as the indexes', gets all of them each time."""
    item = replace(_item(90, [0.9, 1.1, 1.0, 1.05, 0.95]), cell=CELLS[100])
    block = budget.next_block(REQUEST, _pilot(6), budget.unanswered([item]))
    assert len(block) == len(_pilot(6))
