"""Blocks of trials for machines of several labels: whole, each once, and going on where begun."""

from __future__ import annotations

from pathlib import Path

import pytest

from pgheadroom.errors import InputError
from pgheadroom.lab.design import Request, Trial
from pgheadroom.lab.handout import Handout, check_owners, owners_of, planned
from pgheadroom.lab.record import RanOn, Record, TrialSample


def _trials(blocks: int, cells: int = 2) -> list[Trial]:
    return [
        Trial(cell={"fillfactor": 100 - cell}, repetition=block)
        for block in range(1, blocks + 1)
        for cell in range(cells)
    ]


def _sample(trial: Trial, label: str | None) -> TrialSample:
    return TrialSample(
        trial=trial.id,
        cell=trial.cell,
        repetition=trial.repetition,
        arm=trial.arm,
        started_at="2026-11-28T00:00:00+00:00",
        duration_s=1,
        measures={},
        ran_on=None if label is None else RanOn(label=label, worker=f"{label}-1"),
    )


def test_blocks_go_whole_to_whoever_has_room() -> None:
    """A quick label takes more of them, and none is split or given twice."""
    trials = _trials(5)
    handed = Handout(planned(trials, None), {})
    quick, slow = handed.trials("quick"), handed.trials("slow")
    found = [(label, next(of)) for label, of in [("quick", quick)] * 3 + [("slow", slow)]]
    found += [("quick", trial) for trial in quick] + [("slow", trial) for trial in slow]
    assert sorted(trial.id for _, trial in found) == sorted(trial.id for trial in trials)
    owners = {trial.repetition: {label} for label, trial in found}
    for label, trial in found:
        assert owners[trial.repetition] == {label}
    assert [trial.repetition for label, trial in found if label == "slow"] == [3, 3]


def test_a_block_that_was_begun_goes_on_where_it_was() -> None:
    """Also where another label comes by first."""
    trials = _trials(3)
    owners = owners_of([_sample(trials[0], "slow"), _sample(trials[2], "quick")])
    handed = Handout(planned(trials[3:] + trials[1:2], None), owners)
    quick = [trial.repetition for trial in handed.trials("quick")]
    slow = [trial.repetition for trial in handed.trials("slow")]
    assert quick == [2, 3, 3]
    assert slow == [1]


def test_a_repetition_that_is_no_stretch_stays_together() -> None:
    """An experiment may order its trials otherwise than block by block."""
    trials = sorted(_trials(2), key=lambda trial: trial.cell["fillfactor"])
    handed = Handout(planned(trials, None), {})
    first = next(handed.trials("a"))
    others = [*handed.trials("b")]
    rest = [*handed.trials("a")]
    assert {trial.repetition for trial in others} == {3 - first.repetition}
    assert [trial.repetition for trial in rest] == [first.repetition]


@pytest.mark.parametrize(
    ("begun", "labels", "said"),
    [
        ("red", (None,), "on workers with the label red.*with such workers by `scheduler`"),
        ("red", ("blue",), "on workers with the label red"),
        (None, ("blue",), "on this machine.*without `scheduler`"),
    ],
)
def test_a_block_is_not_finished_elsewhere(
    begun: str | None, labels: tuple[str | None, ...], said: str, tmp_path: Path
) -> None:
    """Its ratios would be of two machines."""
    request = Request(
        experiment="x", server="18", scale=1, seed=1, repetitions=2, levels={"fillfactor": (100,)}
    )
    trials = _trials(2)
    with Record.create(tmp_path / "record", request) as record:
        owners = owners_of([_sample(trials[0], begun)])
        with pytest.raises(InputError, match=f"(?s)block 1 of .*{said}"):
            check_owners(record, trials[1:], owners, labels)
        check_owners(record, trials[2:], owners, labels)
        check_owners(record, trials[1:], owners, (*labels, begun))


def test_a_spent_budget_ends_with_the_block() -> None:
    """One that has begun is finished; of a plan of a single block each trial is one."""
    assert list(planned(_trials(3), ends=0.0)) == [_trials(1)]
    assert list(planned(_trials(1), ends=0.0)) == [_trials(1)[:1]]
