"""Records side by side and made one: what may be said of runs that were not interleaved."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import fields, replace
from html import unescape
from pathlib import Path
from typing import Any

import pytest

import showing
from pgheadroom.cli.lab_run import make_request
from pgheadroom.errors import InputError
from pgheadroom.lab import predicted
from pgheadroom.lab.compare import compare_records
from pgheadroom.lab.design import Request, parse_settings
from pgheadroom.lab.environment_form import Machine
from pgheadroom.lab.experiments import get
from pgheadroom.lab.experiments.update_cost import predicted as update_cost_predicted
from pgheadroom.lab.merge import merge
from pgheadroom.lab.record import RanOn, Record, TrialSample
from pgheadroom.lab.stored import RecordPlace
from pgheadroom.stats import ComparisonVerdict, compare_unpaired, median
from pgheadroom.types import PgVersion

EXAMPLES = Path(__file__).parents[2] / "examples"


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
    place: RecordPlace,
    request: Request,
    *,
    wal_bytes: float = 7200,
    ms: float = 10,
    cpu: str = "x",
    hour: int = 0,
    measures: Mapping[str, float | None] | None = None,
    worker: str | None = None,
) -> Record:
    """A record in which bytes are steady and times wander, or everything is as given."""
    with Record.create(place, request) as record:
        environment = {"schema_version": 1, "kind": "lab_environment", "server": "18.4"}
        command = f"pgheadroom lab run --seed {request.seed}"
        known = {"cpu": cpu, "settings": {}, "command": command}
        if worker is not None:
            machine = dict.fromkeys((item.name for item in fields(Machine)), None)
            found = {"label": "red", "host": "h", "machine": machine | {"python": "3", "cpu": cpu}}
            found["machine"]["tool_version"] = "0"
            known["workers"] = {worker: found}
        record.write("environment.json", {**environment, **known})
        for number, trial in enumerate(get(request.experiment).trials(request)):
            wandering = {
                "wal_bytes": wal_bytes,
                "update_ms": ms * (1 + 0.01 * (number % 3)),
                "execution_ms": None,
            }
            record.append(
                TrialSample(
                    trial=trial.id,
                    cell=dict(trial.cell),
                    repetition=trial.repetition,
                    arm=trial.arm,
                    started_at=f"2026-11-20T{hour:02}:{request.seed:02}:{number:02}+00:00",
                    duration_s=1,
                    measures=dict(wandering if measures is None else measures),
                    ran_on=None if worker is None else RanOn(label="red", worker=worker),
                )
            )
    return record


def _verdicts(result: dict[str, Any], measure: str) -> set[str]:
    return {item["verdict"] for item in result["comparisons"] if item["measure"] == measure}


def test_counters_get_a_verdict_and_times_do_not(tmp_path: Path) -> None:
    """Two days of one machine: bytes can be compared, a time twice as long may be the machine."""
    first = _record(tmp_path / "a", _request())
    second = _record(tmp_path / "b", _request(seed=2), wal_bytes=8000, ms=20)
    result = compare_records(first, second)
    assert _verdicts(result, "wal_bytes") == {ComparisonVerdict.HIGHER}
    assert _verdicts(result, "update_ms") == {ComparisonVerdict.UNDECIDED}
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
        assert _verdicts(result, measure) == {ComparisonVerdict.UNDECIDED}, measure
    assert _verdicts(result, "hot_frac") == {ComparisonVerdict.HIGHER}


def test_equal_counters_are_equal(tmp_path: Path) -> None:
    """What repeats to the byte is equal, not merely not shown to differ."""
    records = [_record(tmp_path / name, _request()) for name in "ab"]
    assert _verdicts(compare_records(*records), "wal_bytes") == {ComparisonVerdict.EQUAL}


def test_records_without_a_common_cell_are_refused(tmp_path: Path) -> None:
    """The message says what would be comparable."""
    first = _record(tmp_path / "a", _request("fillfactor=100"))
    second = _record(tmp_path / "b", _request("fillfactor=50"))
    with pytest.raises(InputError, match="no cell in common"):
        compare_records(first, second)


def test_few_repetitions_decide_nothing() -> None:
    """Four of one side are too few, whatever the other has."""
    assert (
        compare_unpaired([2.0] * 4 + [2.1], [1.0] * 4, clock=False).verdict
        is ComparisonVerdict.UNDECIDED
    )
    found = compare_unpaired([2.0] * 4 + [2.1], [1.0] * 4 + [1.1], clock=False)
    assert found.verdict is ComparisonVerdict.HIGHER


def test_a_merged_record_has_the_blocks_of_both(tmp_path: Path) -> None:
    """Ten blocks out of five and five, complete, with a result of its own; the sources stay."""
    sources = [_record(tmp_path / name, _request(seed=seed)) for seed, name in enumerate("ab", 1)]
    merged = merge([record.folder for record in sources], tmp_path / "c")
    result = merged.read_result()
    assert result["complete"]
    assert [cell["repetitions"] for cell in result["cells"]] == [10, 10]
    assert {sample.repetition for sample in merged.samples} == set(range(1, 11))
    assert "merged from 2 records" in result["assumed"]["repetitions"]
    assert len(Record.open(sources[0].folder).samples) == 15, "two cells and a control arm"


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


def test_workers_of_merged_records_stay_apart(tmp_path: Path) -> None:
    """Two clusters may have a worker of one name, on two machines."""
    first = _record(tmp_path / "a", _request(), worker="w", cpu="x")
    second = _record(tmp_path / "b", _request(seed=2), worker="w", cpu="y")
    merged = merge([first.folder, second.folder], tmp_path / "c")
    environment = merged.read_environment()
    assert environment is not None
    assert environment.workers is not None
    cpus = {name: worker.machine.cpu for name, worker in environment.workers.items()}
    assert cpus == {f"w, in {first.folder}": "x", f"w, in {second.folder}": "y"}
    named = {sample.ran_on.worker for sample in merged.samples if sample.ran_on is not None}
    assert named == set(cpus)


def test_a_block_of_a_budget_comes_after_the_whole_ones(tmp_path: Path) -> None:
    """A block of some cells only is no planned one: the plan counts whole blocks."""
    first = _record(tmp_path / "a", _request())
    measured = next(sample for sample in first.samples if sample.arm == "measured")
    extra = replace(measured, trial=f"r006{measured.trial.removeprefix('r001')}", repetition=6)
    with Record.create(first.folder, _request()) as record:
        record.append(extra)
    second = _record(tmp_path / "b", _request(seed=2))
    merged = merge([first.folder, second.folder], tmp_path / "c")
    assert merged.request.repetitions == 10
    assert merged.read_result()["complete"]
    assert sorted(cell["repetitions"] for cell in merged.read_result()["cells"]) == [10, 11]


def test_no_trial_is_merged_twice(tmp_path: Path) -> None:
    """The same blocks again are no further evidence: a folder twice, a copy, a part of a merge."""
    a = _record(tmp_path / "a", _request()).folder
    b = _record(tmp_path / "b", _request(seed=2)).folder
    copied = shutil.copytree(a, tmp_path / "copied")
    both = merge([a, b], tmp_path / "both").folder
    with pytest.raises(InputError, match="name each record once"):
        merge([a, tmp_path / "b" / ".." / "a"], tmp_path / "c")
    for other in (copied, both):
        with pytest.raises(InputError, match="leave one of the two out"):
            merge([a, other], tmp_path / "c")
    assert not (tmp_path / "c").exists()
    third = _record(tmp_path / "third", _request(seed=3)).folder
    assert len(merge([both, third], tmp_path / "c").samples) == 45


def test_blocks_that_draw_the_same_are_counted(tmp_path: Path) -> None:
    """Another day with the same seed gives times of its own, and counters that only repeat."""
    a = _record(tmp_path / "a", _request()).folder
    b = _record(tmp_path / "b", _request(repetitions=6), hour=1).folder
    c = _record(tmp_path / "c", _request(seed=2)).folder
    warnings = merge([a, b], tmp_path / "ab").read_result()["warnings"]
    assert any("5 of 11 merged blocks draw the same" in warning for warning in warnings)
    warnings = merge([a, c], tmp_path / "ac").read_result()["warnings"]
    assert not any("draw the same" in warning for warning in warnings)
    warnings = merge([tmp_path / "ac", b], tmp_path / "all").read_result()["warnings"]
    assert any("5 of 16 merged blocks draw the same" in warning for warning in warnings)


def test_predictions_of_a_merged_record_are_of_what_its_trials_drew(tmp_path: Path) -> None:
    """WAL bytes hang on drawn values: those of seeds 1 and 2, not of ten repetitions of seed 1."""
    requests = [_request("fillfactor=80", "filler_length=64", seed=seed) for seed in (1, 2)]
    version = PgVersion(18, 4)

    def drawn(record: Record) -> list[TrialSample]:
        return [s for s in record.samples if s.arm == "measured" and s.cell["update_bid"] == 0]

    def predicted_bytes(request: Request, sample: TrialSample) -> float:
        cells = [dict(cell) for cell in request.cells()]
        update_cost_predicted.fill(request, version, [sample], cells)
        return next(c["predicted_wal_bytes"] for c in cells if c["update_bid"] == 0)

    records = [_record(tmp_path / name, each) for name, each in zip("ab", requests, strict=True)]
    own = [
        predicted_bytes(request, sample)
        for request, record in zip(requests, records, strict=True)
        for sample in drawn(record)
    ]
    merged = merge([record.folder for record in records], tmp_path / "c")
    again = merge(
        [merged.folder, _record(tmp_path / "d", replace(requests[0], seed=3)).folder],
        tmp_path / "e",
    )
    for record in (merged, again):
        request = record.request
        chosen = drawn(record)[:10]
        assert [predicted_bytes(request, sample) for sample in chosen] == own
    naive = [predicted_bytes(requests[0], replace(s, drawn_from=None)) for s in chosen]
    assert naive[:5] == own[:5]
    assert naive[5:] != own[5:]
    (found,) = [c for c in merged.read_result()["cells"] if c["update_bid"] == 0]
    assert found["predicted_wal_bytes"] == median(own)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("fillfactor", ["fillfactor=100", "memory=fits", "autovacuum=off", "measure=counters"]),
        ("custom", ["fillfactor=100", f"profile={EXAMPLES / 'accounts.toml'}"]),
    ],
)
def test_the_twin_plays_the_seeds_that_the_trials_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, settings: list[str]
) -> None:
    """Seeds 1 and 2 with two repetitions each, in whatever record they lie."""
    played: list[list[int]] = []

    def runs_of(_data: object, _version: object, seeds: list[int], **_more: object) -> list[Any]:
        played.append(seeds)
        return []

    monkeypatch.setattr(predicted, "runs_of", runs_of)
    folders = []
    for seed in (1, 2):
        request = make_request(get(name), settings, 1, 2, seed, "18")
        measures = dict.fromkeys((measure.name for measure in get(name).measures), 1.0)
        folders.append(_record(tmp_path / str(seed), request, measures=measures).folder)
    merge(folders, tmp_path / "both")
    assert played == [[1001, 1002, 2001, 2002]]


def test_blocks_with_a_control_arm_are_whole(tmp_path: Path) -> None:
    """A plan of one repetition of `load-methods` has none, and its others do."""
    settings = ("method=copy,insert", "order=ascending", "index=none", "wal_level=replica")
    folders = []
    for seed in (1, 2):
        request = make_request(get("load-methods"), list(settings), 1, 5, seed, "18")
        measures = {"step_ms@0": 5.0, "step_ms@1": 2.0}
        folders.append(_record(tmp_path / str(seed), request, measures=measures).folder)
    merged = merge(folders, tmp_path / "both")
    assert merged.request.repetitions == 10
    assert merged.read_result()["complete"]


def test_the_commands_repeat_what_the_pages_show(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Folders as they were given, and what made the records that were merged."""
    monkeypatch.chdir(tmp_path)
    a, b = (_record(Path(name), _request(seed=seed)) for seed, name in enumerate(("a", "b b"), 1))
    result = compare_records(a, b)
    assert result["command"] == "pgheadroom lab compare a 'b b'"
    merged = merge([a.folder, b.folder], Path("c")).read_result()
    assert merged["command"] == "pgheadroom lab merge a 'b b' -o c"
    _record(Path("d"), _request(seed=3))
    page = showing.page([(merge([Path("c"), Path("d")], Path("e")).read_result(), [])], title="x")
    shown = unescape(page[page.index("The same again</h2>") :])
    wanted = [
        "# c:", "pgheadroom lab merge a 'b b' -o c", "# a, in c:", "pgheadroom lab run --seed 1",
        "# b b, in c:", "pgheadroom lab run --seed 2", "# d:", "pgheadroom lab run --seed 3",
        "pgheadroom lab merge c d -o e",
    ]  # fmt: skip
    assert "\n".join(wanted) in shown
