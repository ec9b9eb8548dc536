"""Summaries: what an experiment says follows from its samples, and from nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pgheadroom.lab.design import Request, TrialCell, parse_settings
from pgheadroom.lab.experiments import get
from pgheadroom.lab.record import TrialSample
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
    cell: TrialCell, repetition: int, measures: dict[str, float | None], arm: str = "measured"
) -> TrialSample:
    return TrialSample(
        trial=f"{repetition}-{arm}-{cell}",
        cell=dict(cell),
        repetition=repetition,
        arm=arm,
        started_at="2026-11-20T00:00:00+00:00",
        duration_s=1,
        measures=measures,
    )


def _index_samples(request: Request, time_ms: Any, *, aa: float = 1.002) -> list[TrialSample]:
    """
    Blocks whose machine is slower each time; the ratio within a block stays.

    The control arm is now slower and now faster than its cell's measured arm, by `aa`.
    """
    return [
        _sample(
            trial.cell,
            trial.repetition,
            {
                "update_ms": (1 + 0.2 * trial.repetition)
                * time_ms(int(trial.cell["indexes"]))
                * (1 + 0.01 * ((7 * trial.repetition + 3 * int(trial.cell["indexes"])) % 5))
                * (1 if trial.arm == "measured" else aa ** (-1) ** trial.repetition),
                "wal_bytes": 27332 + 6400 * int(trial.cell["indexes"]),
            },
            arm=trial.arm,
        )
        for trial in get("update-cost").trials(request)
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


@pytest.mark.parametrize(
    ("has_control", "words"), [(False, "no A/A control"), (True, "shows 1.3 where 1 is the truth")]
)
def test_a_law_of_times_needs_a_quiet_control(*, has_control: bool, words: str) -> None:
    """Without a control arm, or with one that differs, times say nothing; counters still do."""
    request = _request("update-cost", "indexes=0,4,8", "filler_length=64", "fillfactor=100")
    samples = []
    for sample in _index_samples(request, lambda k: 10.0 * (k + 1), aa=1.0):
        slower = {**sample.measures, "update_ms": 1.3 * (sample.measures["update_ms"] or 0)}
        if sample.arm == "measured":
            samples.append(sample)
        elif has_control:
            samples.append(replace(sample, measures=slower))
    findings = get("update-cost").summarise(request, VERSION, samples).findings
    laws = {
        name: [text for text in findings if f": {name} " in text and "indexes" in text]
        for name in ("update_ms", "wal_bytes")
    }
    assert [len(texts) for texts in laws.values()] == [2, 2]
    assert all("undecided" in text and words in text for text in laws["update_ms"])
    assert all("less than in proportion" in text for text in laws["wal_bytes"])


def _fillfactor_samples(request: Request, *, aa: float | None) -> list[TrialSample]:
    """Fillfactor 80 takes half the time and WAL; `aa` is the control arm's time, if it has one."""
    return [
        _sample(
            trial.cell,
            trial.repetition,
            {
                "update_ms": (20.0 if trial.cell["fillfactor"] == 100 else 10.0)
                * (1 if trial.arm == "measured" or aa is None else aa)
                * (1 + 0.01 * ((trial.repetition + len(trial.arm)) % 3)),
                "wal_bytes": 2000 if trial.cell["fillfactor"] == 100 else 1000,
                "pages_dirtied": 2 * int(trial.cell["fillfactor"]),
                "wal_bytes_per_update": 3.0 * int(trial.cell["filler_length"]),
                "hot_frac": float(trial.cell["fillfactor"] != 100),
            },
            arm=trial.arm,
        )
        for trial in get("update-cost").trials(request)
        if trial.arm == "measured" or aa is not None
    ]


@pytest.mark.parametrize(
    ("aa", "verdict", "reason"),
    [(None, "undecided", "no A/A control"), (1.2, "undecided", "A/A control shows"),
     (1.0, "lower", "below 1")],
)  # fmt: skip
def test_times_of_an_update_are_decided_beside_a_control(
    aa: float | None, verdict: str, reason: str
) -> None:
    """Without a control arm, or with one that differs, a time has no verdict; counters have one."""
    request = _request("update-cost")
    assert len(request.cells()) == 8
    summary = get("update-cost").summarise(request, VERSION, _fillfactor_samples(request, aa=aa))
    assert len(summary.cells) == 8, "a control arm is no cell"
    found = {
        measure: [item for item in summary.comparisons if item["measure"] == measure]
        for measure in ("update_ms", "wal_bytes", "pages_dirtied")
    }
    assert [len(items) for items in found.values()] == [4, 4, 4]
    assert {item["verdict"] for item in found["update_ms"]} == {verdict}
    assert all(reason in item["reason"] for item in found["update_ms"])
    assert {item["verdict"] for name in ("wal_bytes", "pages_dirtied") for item in found[name]} == {
        "lower"
    }
    assert [item["cell"] for item in summary.controls if item["measure"] == "update_ms"] == (
        [] if aa is None else [{"filler_length": 64, "fillfactor": 100, "update_bid": 0}]
    )


def test_the_control_of_the_indexes_decides_on_fillfactors_too() -> None:
    """With indexes as a factor the control is at the fewest of them, and its word counts."""
    request = _request("update-cost", "indexes=0,4", "filler_length=64", "update_bid=0")
    noisy = _fillfactor_samples(request, aa=1.2)
    summary = get("update-cost").summarise(request, VERSION, noisy)
    times = [item for item in summary.comparisons if item["measure"] == "update_ms"]
    assert [item["cell"]["indexes"] for item in times] == [0, 4]
    assert all("A/A control shows" in item["reason"] for item in times)
    controls = [item["cell"] for item in summary.controls if item["measure"] == "update_ms"]
    assert [(cell["fillfactor"], cell["indexes"]) for cell in controls] == [(100, 0), (80, 0)]


def test_each_setting_is_told_by_name() -> None:
    """Cells that differ in the server's settings are groups of their own, each with its label."""
    request = _request(
        "update-cost", "filler_length=64", "update_bid=0", "full_page_writes=on,off",
        "wal_compression=off,pglz",
    )  # fmt: skip
    samples = _fillfactor_samples(request, aa=1.0)
    findings = get("update-cost").summarise(request, VERSION, samples).findings
    said = [text.partition(":")[0] for text in findings if text.startswith("filler 64")]
    assert said == [
        f"filler 64, update_bid 0, full_page_writes {writes}, wal_compression {compression}"
        for writes in ("on", "off")
        for compression in ("off", "pglz")
    ]


def _document_samples(request: Request, wal_bytes: int) -> list[TrialSample]:
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


def _sweep_samples(request: Request, aa: float) -> list[TrialSample]:
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


@pytest.mark.parametrize(
    ("settings", "text", "warned"),
    [
        ((), None, True),
        (("script=select-only",), None, False),
        (("script=simple-update",), None, False),
        (("script=accounts-update",), None, False),
        (("script=own.sql",), "UPDATE pgbench_branches SET bbalance = 1;", True),
        (("script=own.sql",), "SELECT bbalance FROM pgbench_branches;", False),
    ],
)
def test_only_updates_of_branches_wait_for_them(
    settings: tuple[str, ...], text: str | None, *, warned: bool
) -> None:
    """More clients than branches matter to scripts that update branches, to no others."""
    request = _request("fillfactor", "fillfactor=100", "memory=fits", "clients=2", *settings)
    if text is not None:
        request = replace(request, options={**request.options, "script_text": text})
    summary = get("fillfactor").summarise(request, VERSION, _sweep_samples(request, 1.0))
    assert any("pgbench_branches" in warning for warning in summary.warnings) == warned


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
