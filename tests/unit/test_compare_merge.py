"""Records side by side and made one: what may be said of runs that were not interleaved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pgheadroom.errors import InputError
from pgheadroom.lab.compare import compare_records
from pgheadroom.lab.design import Request, parse_settings
from pgheadroom.lab.experiments import get
from pgheadroom.lab.merge import merge
from pgheadroom.lab.record import Record, Sample
from pgheadroom.stats import Verdict, compare_unpaired


def _request(*settings: str, repetitions: int = 5, seed: int = 1, **parts: Any) -> Request:
    experiment = get("update-cost")
    levels, options = parse_settings(
        settings or ("filler_length=64", "fillfactor=100,80", "update_bid=0"),
        experiment.factors,
        experiment.options,
        name=experiment.name,
    )
    request = Request(
        experiment="update-cost",
        server="18",
        scale=1,
        seed=seed,
        repetitions=repetitions,
        levels=levels,
        options=options,
    )
    return replace(request, **parts)


def _record(
    folder: Path,
    request: Request,
    *,
    wal_bytes: float = 7200,
    ms: float = 10,
    cpu: str = "x",
    measures: Mapping[str, float | None] | None = None,
) -> Record:
    """A record in which bytes are steady and times wander, or everything is as given."""
    with Record.create(folder, request) as record:
        for number, trial in enumerate(get(request.experiment).trials(request)):
            wandering = {
                "wal_bytes": wal_bytes,
                "update_ms": ms * (1 + 0.01 * (number % 3)),
                "execution_ms": None,
            }
            record.append(
                Sample(
                    trial=trial.id,
                    cell=dict(trial.cell),
                    repetition=trial.repetition,
                    arm=trial.arm,
                    started_at=f"2026-11-20T00:{request.seed:02}:{number:02}+00:00",
                    duration_s=1,
                    measures=dict(wandering if measures is None else measures),
                )
            )
        environment = {"schema_version": 1, "kind": "lab_environment", "server": "18.4"}
        record.write("environment.json", {**environment, "cpu": cpu, "settings": {}})
    return record


def _verdicts(result: dict[str, Any], measure: str) -> set[str]:
    return {item["verdict"] for item in result["comparisons"] if item["measure"] == measure}


def test_counters_get_a_verdict_and_times_do_not(tmp_path: Path) -> None:
    """Two days of one machine: bytes can be compared, a time twice as long may be the machine."""
    first = _record(tmp_path / "a", _request())
    second = _record(tmp_path / "b", _request(seed=2), wal_bytes=8000, ms=20)
    result = compare_records(first, second)
    assert _verdicts(result, "wal_bytes") == {Verdict.HIGHER}
    assert _verdicts(result, "update_ms") == {Verdict.UNDECIDED}
    (item, _) = [i for i in result["comparisons"] if i["measure"] == "update_ms"]
    assert item["ratio"]["mid"] == pytest.approx(2, rel=0.02)
    assert "not interleaved" in item["reason"]
    assert {cell["record"] for cell in result["cells"]} == {"A", "B"}
    assert "seed: 1 and 2" in result["warnings"][0]


def test_what_a_machines_pace_decides_gets_no_verdict(tmp_path: Path) -> None:
    """New orders a minute and busy processors are times in disguise; HOT shares are counters."""
    experiment = get("tprocc")
    levels, options = parse_settings(
        ("fillfactor=100", "users=1"), experiment.factors, experiment.options, name="tprocc"
    )
    found = []
    for number, name in enumerate("ab", start=1):
        request = replace(_request(), experiment="tprocc", levels=levels, options=options)
        measures = dict.fromkeys(("nopm", "cpu_frac", "checkpoints", "hot_frac"), float(number))
        found.append(_record(tmp_path / name, request, measures=measures))
    result = compare_records(*found)
    for measure in ("nopm", "cpu_frac", "checkpoints"):
        assert _verdicts(result, measure) == {Verdict.UNDECIDED}, measure
    assert _verdicts(result, "hot_frac") == {Verdict.HIGHER}


def test_equal_counters_are_equal(tmp_path: Path) -> None:
    """What repeats to the byte is equal, not merely not shown to differ."""
    records = [_record(tmp_path / name, _request()) for name in "ab"]
    assert _verdicts(compare_records(*records), "wal_bytes") == {Verdict.EQUAL}


def test_records_without_a_common_cell_are_refused(tmp_path: Path) -> None:
    """The message says what would be comparable."""
    first = _record(tmp_path / "a", _request("fillfactor=100"))
    second = _record(tmp_path / "b", _request("fillfactor=50"))
    with pytest.raises(InputError, match="no cell in common"):
        compare_records(first, second)


def test_few_repetitions_decide_nothing() -> None:
    """Four of one side are too few, whatever the other has."""
    assert compare_unpaired([2.0] * 4 + [2.1], [1.0] * 4, clock=False).verdict is Verdict.UNDECIDED
    found = compare_unpaired([2.0] * 4 + [2.1], [1.0] * 4 + [1.1], clock=False)
    assert found.verdict is Verdict.HIGHER


def test_a_merged_record_has_the_blocks_of_both(tmp_path: Path) -> None:
    """Ten blocks out of five and five, complete, with a result of its own; the sources stay."""
    sources = [_record(tmp_path / name, _request(seed=seed)) for seed, name in enumerate("ab", 1)]
    merged = merge([record.folder for record in sources], tmp_path / "c")
    result = merged.read_result()
    assert result["complete"]
    assert [cell["repetitions"] for cell in result["cells"]] == [10, 10]
    assert {sample.repetition for sample in merged.samples} == set(range(1, 11))
    assert "merged from 2 records" in result["assumed"]["repetitions"]
    assert len(Record.open(sources[0].folder).samples) == 10


def test_other_machines_are_named_and_other_requests_refused(tmp_path: Path) -> None:
    """Ratios within blocks survive another machine; another scale is another experiment."""
    first = _record(tmp_path / "a", _request())
    second = _record(tmp_path / "b", _request(seed=2), cpu="y")
    result = merge([first.folder, second.folder], tmp_path / "c").read_result()
    assert any("different cpu" in warning for warning in result["warnings"])
    third = _record(tmp_path / "d", _request(scale=2))
    with pytest.raises(InputError, match="has scale 1"):
        merge([first.folder, third.folder], tmp_path / "e")
    with pytest.raises(InputError, match="new folder"):
        merge([first.folder, second.folder], tmp_path / "c")


def test_a_block_of_a_budget_comes_after_the_whole_ones(tmp_path: Path) -> None:
    """A block of some cells only is no planned one: the plan counts whole blocks."""
    first = _record(tmp_path / "a", _request())
    extra = replace(
        first.samples[0],
        trial=first.samples[0].trial.replace("r001", "r006"),
        repetition=6,
    )
    with Record.create(first.folder, _request()) as record:
        record.append(extra)
    second = _record(tmp_path / "b", _request(seed=2))
    merged = merge([first.folder, second.folder], tmp_path / "c")
    assert merged.request["repetitions"] == 10
    assert merged.read_result()["complete"]
    assert sorted(cell["repetitions"] for cell in merged.read_result()["cells"]) == [10, 11]
