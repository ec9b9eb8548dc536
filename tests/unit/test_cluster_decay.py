"""Decay of cluster order: when clustering again pays, and what follows from rounds."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pgheadroom.cli.lab_run import make_request
from pgheadroom.lab import rounds
from pgheadroom.lab.experiments import get
from pgheadroom.lab.experiments.cluster_decay.summary import (
    DOCUMENT_HEAD,
    DOCUMENT_PATCH,
    best_cycle,
)
from pgheadroom.lab.record import TrialSample
from pgheadroom.types import PgVersion


def test_best_cycle_of_linear_decay_is_the_square_root_rule() -> None:
    """
    With costs that grow by g a round the best cycle is sqrt(2 C / g), as in periodic replacement.

    Mean cost of r rounds: C / r + g (r + 1) / 2, least at r = sqrt(2 C / g).
    """
    found = best_cycle([1 + 0.01 * number for number in range(41)], 80, 100)
    assert found is not None
    cycle, cost = found
    assert cycle == round((2 * 80 / (0.01 * 100)) ** 0.5) == 13
    assert cost == pytest.approx(80 / 13 + 14 / 2)


def test_best_cycle_is_unknown_when_it_would_be_longer_than_what_was_seen() -> None:
    """A minimum at the end of the data may lie beyond it: no claim is made."""
    assert best_cycle([1.0, 1.1, 1.2], 1e6, 100) is None
    assert best_cycle([1.0], 1.0, 100) is None


def test_an_order_that_does_not_decay_never_pays() -> None:
    """Without any loss every further round makes clustering cheaper: there is no best cycle."""
    assert best_cycle([1.0] * 11, 50, 1000) is None


def _sample(measures: dict[str, float | None]) -> TrialSample:
    return TrialSample(
        trial="r001_measured_engine=heap",
        cell={"engine": "heap"},
        repetition=1,
        arm="measured",
        started_at="2026-11-20T00:00:00+00:00",
        duration_s=1,
        measures=measures,
    )


def test_rounds_become_cells() -> None:
    """What a trial measured in its rounds is found again, each in the cell of its round."""
    flat = rounds.flat({0: {"pages": 48.6}, 1: {"pages": 69.0, "insert_ms": 5.0}})
    first, second = rounds.expand([_sample({**flat, "whole_trial": 1.0})], "round")
    assert (first.cell["round"], first.measures) == (0, {"pages": 48.6})
    assert (second.cell["round"], second.measures) == (1, {"pages": 69.0, "insert_ms": 5.0})
    assert first.trial != second.trial


def test_sums_over_rounds_leave_out_the_state_before_and_incomplete_trials() -> None:
    """A sum of steps is a sum of all of them or none at all."""
    flat = rounds.flat({0: {"ms": 100.0}, 1: {"ms": 2.0}, 2: {"ms": 3.0}})
    (total,) = rounds.summed(rounds.expand([_sample(flat)], "round"), "round", "ms", label="1 to 2")
    assert total.measures == {"ms": 5.0}
    assert total.cell == {"engine": "heap", "round": "1 to 2"}
    holed = rounds.flat({1: {"ms": 2.0}, 2: {"ms": None}})
    assert rounds.summed(rounds.expand([_sample(holed)], "round"), "round", "ms", label="x") == []


def test_a_sum_of_rounds_has_those_that_nobody_asked_for() -> None:
    """
    With rounds 0 and 3 as cells, "1 to 3" is still the sum of three rounds.

    Sorted inserts take twice as long in the rounds between and as long in the last: 10 against 6
    in all, where round 3 alone would be 2 against 2.
    """
    settings = ["engine=heap,sorted", "round=0,3", "churn_pct=2"]
    experiment = get("cluster-decay")
    request = make_request(experiment, settings, 1, 5, 1, "18")
    samples = []
    for trial in experiment.trials(request):
        between = {"insert_ms": 4.0 if trial.cell["engine"] == "sorted" else 2.0}
        last = {"insert_ms": 2.0, "pages_per_range": 60.0}
        flat = rounds.flat({0: {"live_rows": 1e5}, 1: between, 2: between, 3: last})
        samples.append(
            replace(
                _sample(flat),
                trial=trial.id,
                cell=trial.cell,
                arm=trial.arm,
                repetition=trial.repetition,
            )
        )
    summary = experiment.summarise(request, PgVersion(18, 4), samples)
    (total,) = [item for item in summary.comparisons if item["measure"] == "insert_ms"]
    assert total["cell"]["round"] == "1 to 3"
    assert total["ratio"]["mid"] == pytest.approx(10 / 6)
    assert {cell["round"] for cell in summary.cells} == {0, 3}
    assert {item["cell"]["round"] for item in summary.controls} == {3, "1 to 3"}


def test_the_documents_figures_say_what_the_document_says_of_them() -> None:
    """Its text: 3 to 6 ms as it was, 3 to 4.5 with the patch, INSERT about twice as long."""
    assert DOCUMENT_HEAD[1][3] == pytest.approx(3, abs=0.3)
    assert 6 < DOCUMENT_HEAD[-1][3] < 7.2
    assert 4.5 < DOCUMENT_PATCH[-1][3] < 4.8
    insert = [sum(row[2] for row in rows[1:]) for rows in (DOCUMENT_HEAD, DOCUMENT_PATCH)]
    assert insert[1] / insert[0] == pytest.approx(2.16, abs=0.02)
