"""Designs: what --set accepts, which trials there are, and their order."""

from __future__ import annotations

from collections import Counter

import pytest

from pgheadroom.errors import InputError
from pgheadroom.lab.design import (
    Factor,
    Measure,
    Request,
    Trial,
    interleave,
    parse_settings,
)
from pgheadroom.lab.experiments import ALL, get

FACTORS = (
    Factor(name="fillfactor", description="", default=(100, 80), bounds=(10, 100)),
    Factor(name="memory", description="", default=("fits",), words=("fits", "twice")),
    Factor(name="indexes", description="", bounds=(0, 8)),
)
OPTIONS = (
    Factor(name="io", description="", default=("auto",), words=("auto", "direct"), single=True),
    Factor(name="script", description="", default=("x",), single=True),
)


def _parse(*settings: str) -> tuple[dict[str, object], dict[str, object]]:
    levels, options = parse_settings(settings, FACTORS, OPTIONS, name="test")
    return dict(levels), dict(options)


def test_defaults_leave_out_factors_that_are_only_on_request() -> None:
    """A plain run has the source's matrix and nothing more."""
    levels, options = _parse()
    assert levels == {"fillfactor": (100, 80), "memory": ("fits",)}
    assert options == {"io": "auto", "script": "x"}


@pytest.mark.parametrize(
    ("text", "levels"),
    [
        ("fillfactor=70", (70,)),
        ("fillfactor=100,90,80", (100, 90, 80)),
        ("fillfactor=50..70:10", (50, 60, 70)),
        ("fillfactor=98..100,50", (98, 99, 100, 50)),
    ],
)
def test_levels_are_lists_and_ranges(text: str, levels: tuple[int, ...]) -> None:
    """Both bounds of a range belong to it."""
    assert _parse(text)[0]["fillfactor"] == levels


def test_all_stands_for_every_word() -> None:
    """A factor of words can be varied without typing them."""
    assert _parse("memory=all")[0]["memory"] == ("fits", "twice")


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("fillfactor", "expected NAME=VALUE"),
        ("fillfator=90", "did you mean fillfactor"),
        ("fillfactor=9", "a whole number from 10 to 100"),
        ("fillfactor=101", "a whole number from 10 to 100"),
        ("fillfactor=ninety", "a whole number from 10 to 100"),
        ("fillfactor=80..70", "a whole number from 10 to 100"),
        ("fillfactor=80,80", "twice"),
        ("memory=thrice", "one of fits, twice"),
        ("memory=", "one of fits, twice"),
        ("io=auto,direct", "one of auto, direct"),
        ("io=all", "one of auto, direct"),
    ],
)
def test_wrong_settings_say_what_was_expected(setting: str, message: str) -> None:
    """Each mistake is named with what would have been right."""
    with pytest.raises(InputError, match=message):
        _parse(setting)


def test_a_setting_given_twice_is_refused() -> None:
    """The second must not silently replace the first."""
    with pytest.raises(InputError, match="set twice"):
        _parse("fillfactor=90", "fillfactor=80")


def test_interleaving_reverses_every_second_block() -> None:
    """ABBA: each arm's mean position is the same, so a linear drift cancels."""
    blocks = [
        [Trial(cell={"x": level}, repetition=repetition) for level in range(5)]
        for repetition in range(1, 5)
    ]
    order = interleave(blocks, seed=3)
    positions: Counter[object] = Counter()
    for position, trial in enumerate(order):
        positions[trial.cell["x"]] += position
    assert len(set(positions.values())) == 1
    assert [trial.repetition for trial in order] == sorted(trial.repetition for trial in order)
    assert order == interleave(blocks, seed=3)
    assert order != interleave(blocks, seed=4)


def test_a_request_survives_its_file() -> None:
    """request.json is how a stopped run is recognised."""
    levels, options = parse_settings(["fillfactor=90"], FACTORS, OPTIONS, name="test")
    request = Request(
        experiment="test",
        server="18",
        scale=1,
        seed=1,
        repetitions=2,
        levels=levels,
        options=options,
    )
    assert Request.from_json(request.to_json()) == request
    with pytest.raises(InputError, match="damaged"):
        Request.from_json({"experiment": "test"})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"scale": -1}, "scale: found -1, expected a whole number from 0 to 100000"),
        ({"seed": True}, "seed: found True, expected a whole number"),
        ({"sead": 1}, "sead: unknown field; did you mean seed"),
        ({"levels": {"a": [1.5]}}, r"levels\.a\[0\]: found 1\.5, expected a text or a whole"),
        ({"repetitions": 10_001}, "repetitions: found 10001, expected a whole number from 0"),
        ({"levels": {"a": [*range(400)]}, "repetitions": 251}, "400 cells 251 times, expected at"),
    ],
)
def test_a_damaged_request_says_where(changes: dict[str, object], message: str) -> None:
    """Each bound alone let 10,000,000,000 trials be planned, for ever."""
    whole = Request(
        experiment="test", server="18", scale=1, seed=1, repetitions=250,
        levels={"a": tuple(range(400))},
    ).to_json()  # fmt: skip
    assert Request.from_json(whole).to_json() == whole
    with pytest.raises(InputError, match=message):
        Request.from_json(whole | changes)


@pytest.mark.parametrize("experiment", ALL, ids=lambda experiment: experiment.name)
def test_all_leaves_out_what_is_for_borrowed_servers(experiment: object) -> None:
    """`all` must be runnable on a throw-away server, which has no settings of its own."""
    for factor in experiment.factors:  # type: ignore[attr-defined]
        if factor.words:
            assert "server" not in factor.parse("all")


@pytest.mark.parametrize("experiment", ALL, ids=lambda experiment: experiment.name)
def test_every_experiment_plans_each_cell_once_a_repetition(experiment: object) -> None:
    """
    Trial names are unique, every cell runs in every block, and names fit a file system.

    A trial that plays rounds measures several cells: those that have all of its levels.
    """
    known = get(experiment.name)  # type: ignore[attr-defined]
    levels, options = parse_settings([], known.factors, known.options, name=known.name)
    request = Request(
        experiment=known.name,
        server="18",
        scale=1,
        seed=1,
        repetitions=3,
        levels=levels,
        options=options,
    )
    trials = known.trials(request)
    assert len({trial.id for trial in trials}) == len(trials)
    measured = [trial for trial in trials if trial.arm == "measured"]
    for cell in request.cells():
        assert sum(trial.cell.items() <= cell.items() for trial in measured) == 3
    assert all(len(trial.id) < 200 and "/" not in trial.id for trial in trials)


def test_an_unknown_experiment_is_named_with_its_neighbour() -> None:
    """A typing error is answered with the right name."""
    with pytest.raises(InputError, match="did you mean update-cost"):
        get("update-cots")


@pytest.mark.parametrize(
    ("unit", "clock", "is_clock"),
    [
        ("ms", None, True),
        ("1/min", None, True),
        ("pages/h", None, True),
        ("pages", None, False),
        (None, None, False),
        (None, True, True),
        ("s", False, False),
    ],
)
def test_a_measure_of_time_is_known_by_its_unit(
    unit: str | None, clock: bool | None, is_clock: bool
) -> None:
    """A rate by any unit of time too; what the unit does not tell, the measure says."""
    measure = Measure(name="x", description="", unit=unit, clock=clock)
    assert measure.is_clock is is_clock


def test_what_a_window_of_fixed_length_counts_goes_by_the_clock() -> None:
    """Measures without a unit of time that a machine's pace decides; a new one belongs here."""
    by_pace = {
        f"{experiment.name}.{measure.name}"
        for experiment in ALL
        for measure in experiment.measures
        if measure.clock
    }
    assert by_pace == {
        "clients-scale.buffer_hit_frac",
        "clients-scale.checkpoints",
        "cluster-decay.checkpoints",
        "commit-cost.ceiling_frac",
        "commit-cost.checkpoints",
        "commit-cost.commits_per_sync",
        "commit-cost.wal_bytes_per_commit",
        "commit-cost.wal_syncs_per_commit",
        "custom.checkpoints",
        "fillfactor.autovacuums",
        "fillfactor.buffer_hit_frac",
        "fillfactor.checkpoints",
        "insert-rate.checkpoints",
        "tprocc.autovacuums",
        "tprocc.checkpoints",
        "tprocc.cpu_frac",
    }
    described = {
        f"{experiment.name}.{measure.name}"
        for experiment in ALL
        for measure in experiment.measures
        if "throughput window" in measure.description and not measure.is_clock
    }
    assert not described
