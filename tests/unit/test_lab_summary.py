"""Summaries: what an experiment says follows from its samples, and from nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from pgheadroom.lab.design import Cell, Request, parse_settings
from pgheadroom.lab.experiments import get
from pgheadroom.lab.record import Sample
from pgheadroom.types import PgVersion

VERSION = PgVersion(18, 4)


def _request(name: str, *settings: str, scale: int = 1, repetitions: int = 5) -> Request:
    experiment = get(name)
    levels, options = parse_settings(
        settings, experiment.factors, experiment.options, name=experiment.name
    )
    return Request(
        experiment=name,
        server="18",
        scale=scale,
        seed=1,
        repetitions=repetitions,
        levels=levels,
        options=options,
    )


def _sample(
    cell: Cell, repetition: int, measures: dict[str, float | None], arm: str = "measured"
) -> Sample:
    return Sample(
        trial=f"{repetition}-{arm}-{cell}",
        cell=dict(cell),
        repetition=repetition,
        arm=arm,
        started_at="2026-11-20T00:00:00+00:00",
        duration_s=1,
        measures=measures,
    )


def _index_samples(request: Request, time_ms: Any) -> list[Sample]:
    """Blocks whose machine is slower each time; the ratio within a block stays."""
    return [
        _sample(
            cell,
            repetition,
            {
                "update_ms": (1 + 0.2 * repetition)
                * time_ms(int(cell["indexes"]))
                * (1 + 0.01 * ((7 * repetition + 3 * int(cell["indexes"])) % 5)),
                "wal_bytes": 27332 + 6400 * int(cell["indexes"]),
            },
        )
        for repetition in range(1, request.repetitions + 1)
        for cell in request.cells()
    ]


@pytest.mark.parametrize(
    ("time_ms", "words"),
    [
        (lambda k: 10.0 * (k + 1), "the claim is not refuted"),
        (lambda k: 10.0 + 2 * k, "it grows, but less than in proportion; the claim is refuted"),
        (lambda k: 10.0 * (k + 1) ** 2, "it grows, but more than in proportion"),
        (lambda _: 10.0, "no growth with the number of indexes is shown"),
    ],
)
def test_the_law_of_the_indexes_is_decided_by_its_interval(time_ms: Any, words: str) -> None:
    """Proportional, linear with an offset, faster, constant: each is told from the others."""
    request = _request(
        "update-cost",
        "indexes=0,4,8",
        "filler_length=64",
        "fillfactor=100",
        "update_bid=0",
        repetitions=8,
    )
    samples = _index_samples(request, time_ms)
    findings = get("update-cost").summarise(request, VERSION, samples).findings
    (finding,) = [text for text in findings if "update_ms with 9 indexes" in text]
    assert words in finding


def test_the_law_of_the_indexes_needs_five_blocks() -> None:
    """Four blocks give no verdict, whatever they show."""
    request = _request("update-cost", "indexes=0,8", "fillfactor=100", repetitions=4)
    samples = _index_samples(request, lambda k: 10.0 * (k + 1))
    findings = get("update-cost").summarise(request, VERSION, samples).findings
    laws = [text for text in findings if "number of indexes" in text]
    assert laws
    assert all("undecided" in text for text in laws)


def _document_samples(request: Request, wal_bytes: int) -> list[Sample]:
    figures: dict[str, float | None] = {
        "pages_dirtied": 20142,
        "wal_records": 30003,
        "wal_bytes": wal_bytes,
        "wal_bytes_per_update": wal_bytes / 10000,
        "hot_frac": 0,
    }
    return [_sample(cell, 1, figures) for cell in request.cells()]


def test_the_documents_figures_are_compared_at_its_scale_only() -> None:
    """At scale 100 the three figures stand beside ours; at another scale there is nothing."""
    settings = ("filler_length=64", "fillfactor=100", "update_bid=0")
    request = _request("update-cost", *settings, scale=100, repetitions=1)
    summary = get("update-cost").summarise(request, VERSION, _document_samples(request, 2720132))
    assert summary.cells[0]["document_wal_bytes"] == 2720132
    assert "3 of 3 to the unit" in summary.findings[0]
    summary = get("update-cost").summarise(request, VERSION, _document_samples(request, 2720140))
    assert "2 of 3 to the unit" in summary.findings[0]
    assert "64/100/0 wal_bytes 2,720,140" in summary.findings[1]
    small = _request("update-cost", *settings, scale=10, repetitions=1)
    summary = get("update-cost").summarise(small, VERSION, _document_samples(small, 1))
    assert summary.cells[0]["document_wal_bytes"] is None


def test_other_conditions_are_not_the_documents() -> None:
    """With full_page_writes on, its figures are no reference for the cell."""
    request = _request(
        "update-cost",
        "filler_length=64",
        "fillfactor=100",
        "update_bid=0",
        "full_page_writes=on,off",
        scale=100,
        repetitions=1,
    )
    cells = get("update-cost").summarise(request, VERSION, _document_samples(request, 1)).cells
    assert {cell["full_page_writes"]: cell["document_wal_bytes"] for cell in cells} == {
        "on": None,
        "off": 2720132,
    }


def _sweep_samples(request: Request, aa: float) -> list[Sample]:
    samples = []
    for repetition in range(1, request.repetitions + 1):
        wobble = 1 + 0.002 * (repetition % 3)
        for cell in request.cells():
            tps = 1000.0 * wobble if cell["fillfactor"] == 100 else 1200.0
            samples.append(_sample(cell, repetition, {"tps": tps, "hot_frac": None}))
            if cell["fillfactor"] == 100:
                control = {"tps": aa * 1000.0, "hot_frac": None}
                samples.append(_sample(cell, repetition, control, arm="control"))
    return samples


def test_comparisons_take_the_control_of_their_own_group() -> None:
    """A quiet control lets the verdict stand; one that shows a difference takes it back."""
    request = _request("fillfactor", "fillfactor=100,90", "memory=fits")
    quiet = get("fillfactor").summarise(request, VERSION, _sweep_samples(request, 1.002))
    (found,) = [row for row in quiet.comparisons if row["measure"] == "tps"]
    assert (found["verdict"], found["pairs"]) == ("higher", 5)
    assert found["against"]["fillfactor"] == 100
    loud = get("fillfactor").summarise(request, VERSION, _sweep_samples(request, 1.1))
    (found,) = [row for row in loud.comparisons if row["measure"] == "tps"]
    assert found["verdict"] == "undecided"
    assert "A/A control" in found["reason"]
    (control,) = [row for row in loud.controls if row["measure"] == "tps"]
    assert control["ratio"]["low"] > 1


def test_a_measure_that_some_repetitions_lack_is_null() -> None:
    """A median of those that happen to have it would be a median of something else."""
    request = _request("update-cost", "filler_length=64", "fillfactor=80", "update_bid=0")
    (cell,) = request.cells()
    samples = [
        _sample(cell, 1, {"wal_bytes": 1.0, "n_tup_newpage_upd": 0.0}),
        _sample(cell, 2, {"wal_bytes": 3.0, "n_tup_newpage_upd": None}),
    ]
    (row,) = get("update-cost").summarise(request, VERSION, samples).cells
    assert row["wal_bytes"] == 2
    assert row["n_tup_newpage_upd"] is None
    assert row["repetitions"] == 2
