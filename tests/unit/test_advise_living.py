"""Tables whose rows come and go, as runs of the twin: as long as it takes, and none runs empty."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from observed_table import counters, profile_of, seen_of, seen_of_server

from pgheadroom.advise.duration import follows_rows
from pgheadroom.advise.guard import Twins, guard_of
from pgheadroom.advise.knobs import Knobs
from pgheadroom.advise.runs import PlayedPiece, Runner, ScenarioPiece
from pgheadroom.advise.scenario import Scenario, make_scenario
from pgheadroom.advise.younger import of_each, younger
from pgheadroom.predict.without_row import turns_of, worst_of
from pgheadroom.profile import Operation, Profile, parse_profile, to_json

QUEUE: list[dict[str, Any]] = [
    {"kind": "insert", "weight": 500, "transaction": "turn"},
    {"kind": "update", "sets": ["state"], "pick": {"distribution": "age", "min": 100, "max": 100}},
    {"kind": "delete", "pick": {"distribution": "oldest"}},
]


def observed_queue(operations: list[dict[str, Any]] = QUEUE, rows: int = 2000) -> Profile:
    """A queue of which an interval of 100 s was seen."""
    profile = profile_of(counters(500, 400, 100), rows=rows)
    data = to_json(profile)
    data["operation"] = [
        {"table": "jobs", "transaction": "turn", "weight": 500} | one for one in operations
    ]
    made = parse_profile(data)
    return replace(made, server=replace(made.server, observed=seen_of_server()))


def scenario_of(profile: Profile) -> Scenario:
    """Its run."""
    found = make_scenario(profile, profile.tables[0], Knobs(), sample_pages=50)
    assert found is not None
    return found


def played(scenario: Scenario) -> PlayedPiece:
    """Once."""
    with Runner() as runner:
        piece = ScenarioPiece(scenario=scenario, version="18.4", fillfactor=100, seed=0)
        (found,) = runner.play([piece])
    return found


def operations_of(profile: Profile) -> tuple[Operation, ...]:
    """Of the workload."""
    return profile.workload.operations


def test_a_queue_is_played_until_its_rows_have_been_replaced() -> None:
    """Five turns a second: each inserts, updates and deletes, so all rows are soon others."""
    scenario = scenario_of(observed_queue())
    assert scenario.per_s == pytest.approx(5 * scenario.share)
    run = played(scenario)
    inserted, deleted = (sum(run.columns[f"n_tup_{kind}"]) for kind in ("ins", "del"))
    assert inserted == deleted >= 3 * scenario.table.rows
    assert worst_of(scenario.profile, turns_of([run.simulated])) is None


def test_picks_among_loaded_rows_end_the_run_before_they_are_gone() -> None:
    """As profiles of earlier versions have them."""
    uniform = [QUEUE[0], QUEUE[1] | {"pick": {"distribution": "uniform"}}, QUEUE[2]]
    profile = observed_queue(uniform)
    assert not follows_rows(operations_of(profile))
    scenario = scenario_of(profile)
    run = played(scenario)
    # A run ends between two checkpoints, of which there is one.
    assert sum(run.columns["n_tup_del"]) < 1.5 * scenario.table.rows
    told = worst_of(scenario.profile, turns_of([run.simulated]))
    assert told is not None
    assert told.startswith("update by uniform finds no row in ")


def test_ages_shrink_with_the_rows_down_to_some_pages() -> None:
    """A run of rows that are updated together stays one, and no age is beyond the rows."""

    def ages(share: float, **options: Any) -> list[int | None]:
        rows = round(200_000 * share)
        made = younger(operations_of(observed_queue(group, 200_000)), rows, share, **options)
        return [one.pick.min_age_rows for one in made if one.kind == "update" and one.pick]

    def at(age: int) -> dict[str, Any]:
        return QUEUE[1] | {"pick": {"distribution": "age", "min": age, "max": age}}

    group = [QUEUE[0], *map(at, (50_002, 50_001, 50_000)), QUEUE[2]]
    assert ages(1.0) == [50_002, 50_001, 50_000]
    assert ages(0.1) == [5_002, 5_001, 5_000]
    assert ages(0.001) == [52, 51, 50]
    assert ages(0.001, kept_rows=120) == [122, 121, 120]
    group = [QUEUE[0], at(150_000), at(60), QUEUE[2]]
    assert ages(0.1, kept_rows=500) == [15_000, 60]
    assert ages(0.0001, kept_rows=500) == [19, 19]


def test_an_operation_without_rows_is_no_answer() -> None:
    """More than one turn in a hundred: nothing of the twin is shown, and the reason is said."""
    profile = observed_queue()
    twins = Twins(wal_bytes_per_update=None, heap_bytes=None, done_frac=0.98)
    assert guard_of(profile, profile.tables[0], twins).reason is None
    twins = replace(twins, without_row="update by age finds no row in 2.0 % of its turns")
    guard = guard_of(profile, profile.tables[0], twins)
    assert guard.reason is not None
    assert guard.reason.endswith("in the twin update by age finds no row in 2.0 % of its turns")
    assert not guard.is_wal_shown


def test_a_table_that_runs_empty_is_no_matter_of_ages() -> None:
    """It was said that these were not known, where more rows had been deleted than inserted."""
    more = [*QUEUE, QUEUE[2] | {"transaction": "more", "weight": 18}]
    profile = observed_queue(more)
    said = "update by oldest finds no row in 61.4 % of its turns"
    twins = Twins(wal_bytes_per_update=None, heap_bytes=None, done_frac=0.98, without_row=said)
    assert guard_of(profile, profile.tables[0], twins).reason == (
        "it runs empty within the run that an answer needs, for 3.6 % more rows were deleted from "
        f"it in the interval than inserted: in the twin {said}"
    )


def filled_queue(age: int, inserting: int) -> Profile:
    """The queue, whose update at that age gives a column a value, and so many sessions insert."""
    pick = {"distribution": "age", "min": age, "max": age}
    profile = observed_queue(
        [QUEUE[0], {"kind": "update", "sets": ["note"], "pick": pick}, QUEUE[2]], rows=30_000
    )
    (table,) = profile.tables
    fills = [{"columns": ["note"], "rows": [age] * 3, "ever_frac": 1.0, "aligned_bytes": [48, 144]}]
    updates = to_json(profile)["table"][0]["observed"]["updates"]
    seen = seen_of(table, updates=updates | {"fills": fills, "inserting": inserting})
    return replace(profile, tables=(replace(table, observed=seen),))


@pytest.mark.parametrize(
    ("age", "inserting", "clients"), [(30, 4, 4), (30, 100, 8), (30, 1, 1), (29_000, 2, 1)]
)
def test_as_many_sessions_insert_as_fill_pages(age: int, inserting: int, clients: int) -> None:
    """
    A row that is updated while its page is being filled finds it as full as its session made it.

    Of orders on 18.4, inserted by four sessions and paid 50 orders later, 98.8 % of the updates
    were HOT at fillfactor 90; the twin has 94.5 % if one session inserts.
    """
    scenario = scenario_of(filled_queue(age, inserting))
    run = scenario.profile.workload.run
    assert run.clients == clients
    assert run.operations % clients == scenario.profile.tables[0].rows % clients == 0
    (pick,) = {o.pick for o in operations_of(scenario.profile) if o.kind == "update"}
    assert pick is not None
    assert pick.min_age_rows == pick.max_age_rows
    if clients > 1:
        assert pick.min_age_rows == age // clients
        assert worst_of(scenario.profile, turns_of([played(scenario).simulated])) is None


@given(
    ages=st.lists(st.integers(0, 5000), min_size=2, max_size=2).map(sorted),
    clients=st.integers(1, 8),
)
def test_a_clients_ages_count_its_own_rows(ages: list[int], clients: int) -> None:
    """Together the clients meet rows as old as one would, to a row of each."""
    low, high = ages
    update = QUEUE[1] | {"pick": {"distribution": "age", "min": low, "max": high}}
    profile = observed_queue([QUEUE[0], update, QUEUE[2]], rows=8000)
    _, one, _ = of_each(operations_of(profile), clients)
    assert one.pick is not None
    assert one.pick.min_age_rows is not None
    assert one.pick.max_age_rows is not None
    assert 0 <= low - clients * one.pick.min_age_rows < clients
    assert 0 <= high - clients * one.pick.max_age_rows < clients
