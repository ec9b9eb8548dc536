"""How many blocks and why: a budget's run that was killed is not taken for one that ended."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pgheadroom.lab import conduct
from pgheadroom.lab.design import Request, Trial, parse_settings
from pgheadroom.lab.experiments import get
from pgheadroom.lab.record import Record, TrialSample
from pgheadroom.lab.run import find_record, summarise_record


def _request() -> Request:
    experiment = get("update-cost")
    settings = ("filler_length=64", "fillfactor=100,80", "update_bid=0")
    levels, options = parse_settings(settings, experiment.factors, experiment.options, name="x")
    return Request(
        experiment="update-cost",
        server="18",
        scale=1,
        seed=1,
        repetitions=5,
        levels=levels,
        options=options,
    )


def _sample(trial: Trial) -> TrialSample:
    return TrialSample(
        trial=trial.id,
        cell=dict(trial.cell),
        repetition=trial.repetition,
        arm=trial.arm,
        started_at="2026-11-20T00:00:00+00:00",
        duration_s=1,
        measures={"wal_bytes": 7200, "update_ms": 10},
    )


@pytest.fixture
def killed(tmp_path: Path) -> Record:
    """The record of a budget's run in its sixth block, whose plan has five."""
    trials = get("update-cost").trials(_request())
    with Record.create(tmp_path / "2026-11-20-update-cost", _request()) as record:
        environment = {"schema_version": 1, "kind": "lab_environment", "server": "18.4"}
        record.write("environment.json", {**environment, "settings": {}})
        for trial in trials:
            record.append(_sample(trial))
        conduct.write(record, conduct.so_far(record, _request()), ended=False)
        record.append(_sample(replace(trials[0], repetition=6)))
    return record


def _goes_on(record: Record) -> bool:
    return find_record(_request(), parent=record.folder.parent, fresh=False) == record.folder


@pytest.mark.parametrize("has_conduct", [True, False])
def test_a_budget_that_was_killed_stays_unfinished_when_reported(
    killed: Record, has_conduct: bool
) -> None:
    """Its plan is whole and a report can be made, and the same command still goes on with it."""
    if not has_conduct:
        (killed.folder / "conduct.json").unlink()
    assert _goes_on(killed)
    result = summarise_record(killed.folder).read_result()
    assert not result["complete"]
    assert "the same command goes on" in result["warnings"][0]
    assert "5 blocks planned, 1 more" in result["assumed"]["repetitions"]
    assert _goes_on(killed)


def test_a_budget_that_ended_is_finished(killed: Record) -> None:
    """Once the conduct says why it stopped, a new record begins and the result stays."""
    conduct.write(killed, f"{conduct.so_far(killed, _request())}; {conduct.why_stopped([])}")
    result = summarise_record(killed.folder).read_result()
    assert result["complete"]
    assert "5 blocks planned, 1 more" in result["assumed"]["repetitions"]
    assert "no comparison was left" in result["assumed"]["repetitions"]
    assert not _goes_on(killed)


def test_a_conduct_of_an_earlier_version_had_ended(killed: Record) -> None:
    """It was only written at the end then, and did not say so."""
    old = {"schema_version": 1, "kind": "lab_conduct", "repetitions": "5 blocks and 1"}
    killed.write("conduct.json", old)
    assert conduct.read(killed, _request()) == conduct.Conduct(repetitions="5 blocks and 1")


def test_a_plan_without_a_budget_needs_no_conduct(killed: Record) -> None:
    """Five blocks of five are all there is to come."""
    (killed.folder / "conduct.json").unlink()
    killed.samples = killed.samples[:-1]
    assert conduct.read(killed, _request()) == conduct.Conduct()
