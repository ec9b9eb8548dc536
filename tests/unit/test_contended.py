"""Counts of rows that the order of several clients decides: they are never stated as certain."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from fuzz_profiles.generator import generate

from lengths import examples
from pgheadroom import predict
from pgheadroom.errors import HeadroomError
from pgheadroom.outcome import Outcome
from pgheadroom.predict import twin
from pgheadroom.predict.chance import chance_half
from pgheadroom.predict.contended import (
    contended_of,
    contended_turns_of,
    failed_half,
    may_fail,
    turn_halves,
)
from pgheadroom.predict.failing import failed_of
from pgheadroom.predict.spread import spread
from pgheadroom.predict.uncertain_rows import beside_maintenance, upserted_of
from pgheadroom.predict.without_row import Turns, turns_of
from pgheadroom.profile import Profile, parse_profile
from pgheadroom.types import Interval

_STEADY = ("n_tup_ins", "n_tup_upd", "n_tup_del")
_PROFILES = 15


def _profile(
    *operations: dict[str, Any], rows: int = 9, refers: bool = False, **run: object
) -> Profile:
    keys = {"u": [{"columns": ["v"], "references": "t"}]} if refers else {}
    return parse_profile(
        {
            "schema_version": 1,
            "table": [
                {"name": name, "rows": rows,
                 "columns": [{"name": column, "type": "int4"} for column in ("k", "v")],
                 "indexes": [{"name": f"{name}_i", "columns": ["k"], "unique": True}],
                 "foreign_keys": keys.get(name, [])}
                for name in ("t", "u")
            ],
            "operation": [
                {"table": "t"} | ({"sets": ["v"]} if one["kind"] == "update" else {}) | one
                for one in operations
            ],
            "run": {
                name: value
                for name, value in ({"operations": 99, "clients": 3} | run).items()
                if value is not None
            },
        }
    )  # fmt: skip


_INSERT = {"kind": "insert"}
_SELECT = {"kind": "select"}
_LOCK = {"kind": "lock"}
_UPDATE = {"kind": "update"}
_DELETE = {"kind": "delete"}
_HEAD = {"pick": {"distribution": "head", "using": "t_i"}}
_OLDEST = {"pick": {"distribution": "oldest"}}
_AGE = {"pick": {"distribution": "age", "min": 0, "max": 2}}
_TOGETHER = {"transaction": "one"}
_RR = {"isolation": "repeatable read"}


@pytest.mark.parametrize(
    ("operations", "found"),
    [
        # Random profile 141129-17 of make fuzz: 2,349 were stated, 2,351 deleted on 15.18.
        ([_DELETE | _HEAD | {"rows_per_statement": 2}, _INSERT], {"t": {"n_tup_del": 2}}),
        ([_UPDATE | _HEAD], {"t": {"n_tup_upd": 1}}),
        ([_UPDATE, _INSERT], {}),
        ([_UPDATE, _DELETE], {"t": {"n_tup_upd": 1, "n_tup_del": 1}}),
        ([_UPDATE | _AGE, _INSERT], {}),
        ([_UPDATE | _AGE, _INSERT | {"abort_frac": 0.1}], {"t": {"n_tup_upd": 1}}),
        ([_DELETE | _OLDEST, _INSERT], {"t": {"n_tup_del": 1}}),
        ([_DELETE | _OLDEST | _TOGETHER, _INSERT | _TOGETHER], {}),
        ([_UPDATE | {"rows_per_statement": 4}, _INSERT], {"t": {"n_tup_upd": 4}}),
        ([_UPDATE | {"rows_per_statement": 4}], {}),
        # Each waits for the row that the other has changed.
        ([_UPDATE | _TOGETHER, _UPDATE | _TOGETHER], {"t": {"n_tup_upd": 1}}),
        ([_UPDATE | _TOGETHER, _UPDATE | _TOGETHER | {"table": "u"}], {}),
        (
            [
                _UPDATE | _TOGETHER,
                _UPDATE | _TOGETHER | {"table": "u"},
                _UPDATE | {"table": "u", "transaction": "other"},
                _UPDATE | {"transaction": "other"},
            ],
            {"t": {"n_tup_upd": 1}, "u": {"n_tup_upd": 1}},
        ),
    ],
)
def test_what_the_order_decides_is_named(
    operations: list[dict[str, Any]], found: dict[str, dict[str, int]]
) -> None:
    """One client has its own order, several have the machine's."""
    assert contended_of(_profile(*operations)) == found
    assert contended_of(_profile(*operations, clients=1)) == {}


@pytest.mark.parametrize(
    ("operations", "found"),
    [
        # Random profile 291102-22 of make fuzz: 1,991 updates without a row were stated, 1,992
        # there were on 15.18, as another client had deleted the row a moment before.
        ([_LOCK | _TOGETHER, _UPDATE | _TOGETHER, _INSERT | _TOGETHER, _DELETE | _HEAD | _TOGETHER],
         {0, 1, 2, 3}),
        ([_SELECT, _UPDATE], set()),
        ([_SELECT | _TOGETHER, _DELETE | _TOGETHER | _OLDEST], {0}),
        ([_SELECT | _AGE | _TOGETHER, _DELETE | _OLDEST | _TOGETHER], set()),
        ([_SELECT | _AGE, _DELETE | _OLDEST], {0, 1}),
    ],
)  # fmt: skip
def test_turns_whose_rows_the_order_decides_are_named(
    operations: list[dict[str, Any]], found: set[int]
) -> None:
    """Those that read or lock rows too."""
    assert contended_turns_of(_profile(*operations)) == found
    assert contended_turns_of(_profile(*operations, clients=1)) == set()


def test_turns_without_a_row_that_agree_by_chance_are_an_interval() -> None:
    """Two rows are deleted once each, in whichever turns; and no turn is without a row twice."""
    profile = _profile(_DELETE | _TOGETHER, _SELECT | _TOGETHER, rows=2, clients=2, operations=400)
    found = predict(profile).cells[0].predicted.operations_without_row or {}
    deleted, read = found["0"], found["1"]
    assert isinstance(deleted, Interval)
    assert isinstance(read, Interval)
    assert deleted.low <= 397
    assert deleted.high >= 399
    assert read.high <= 400


def test_transactions_that_fail_by_chance_are_an_interval() -> None:
    """Where two may wait for each other, and where a snapshot may be too old."""
    crossing = [
        _UPDATE | _TOGETHER,
        _UPDATE | _TOGETHER | {"table": "u"},
        _UPDATE | {"table": "u", "transaction": "other"},
        _UPDATE | {"transaction": "other"},
    ]
    assert may_fail(_profile(*crossing))
    assert not may_fail(_profile(*crossing, clients=1))
    assert may_fail(_profile(_UPDATE, **_RR))
    assert may_fail(_profile(_SELECT | _TOGETHER, _DELETE | _HEAD | _TOGETHER, **_RR))
    assert not may_fail(_profile(_SELECT | _TOGETHER, _DELETE | _HEAD | _TOGETHER))
    # A new row of u locks its row of t for the share of its key.
    child = _INSERT | _TOGETHER | {"table": "u"}
    assert may_fail(_profile(child, _LOCK | _TOGETHER, refers=True))
    assert not may_fail(_profile(child, _LOCK | _TOGETHER))
    assert not may_fail(_profile(child, _UPDATE | _TOGETHER, refers=True))
    assert not may_fail(_profile(_UPDATE | _TOGETHER, _UPDATE | _TOGETHER | {"table": "u"}))
    runs = [SimpleNamespace(failed_transactions=3)] * 4
    half = failed_half(_profile(*crossing))
    found = failed_of(runs, 1.0, half)  # type: ignore[arg-type]
    assert isinstance(found, Interval)
    assert found.low < 2
    assert found.high > 4
    assert failed_of(runs, 1.0, 0.0) == 3  # type: ignore[arg-type]


def test_turns_beside_a_truncate_are_an_interval() -> None:
    """Its rows are, and what finds none of them is as many turns."""
    truncate = [{"do": "truncate", "table": "t", "at_frac": 0.5}]
    profile = _profile(_UPDATE, _SELECT, operations=99, maintenance=truncate)
    halves = turn_halves(profile)
    assert set(halves) == {0, 1}
    assert min(halves.values()) >= 4


def test_one_of_a_sample_is_many() -> None:
    """A count of runs that are a hundredth of the whole goes by hundreds."""
    runs = [SimpleNamespace(turns=[(10, 3)], failed_transactions=0)] * 4
    one = turns_of(runs, 0.01, {0: chance_half(0.01)})["0"].without_row  # type: ignore[arg-type]
    assert one == Interval(low=200, mid=300, high=400, level=0.9)
    # Up to the turns of the run that has most.
    runs = [SimpleNamespace(turns=[(turns, turns)]) for turns in (100, 110)]
    two = turns_of(runs, 1.0, {0: 1.0})["0"].without_row  # type: ignore[arg-type]
    assert isinstance(two, Interval)
    assert (two.low, two.high) == (100, 110)


def test_time_deals_turns_out() -> None:
    """Clients of a run by time have different numbers of turns: what each does hangs on them."""
    operations = [_DELETE | _OLDEST | _TOGETHER, _INSERT | _TOGETHER]
    by_time = {"operations": None, "duration_s": 5}
    assert contended_of(_profile(*operations, **by_time)) == {"t": {"n_tup_del": 1}}
    assert contended_of(_profile(_UPDATE, **by_time)) == {}


def test_serialization_failures_are_named() -> None:
    """Who meets a row that was changed since its snapshot fails; an insert does not."""
    profile = _profile(_UPDATE, _INSERT | {"table": "u"}, isolation="repeatable read")
    assert contended_of(profile) == {"t": {"n_tup_upd": 1}}


def test_runs_that_agree_by_chance_are_an_interval() -> None:
    """Two rows more than each of the runs has are inside; other counts stay numbers."""
    profile = _profile(_DELETE | _HEAD | {"rows_per_statement": 2}, _INSERT)
    cell = predict(profile).cells[0].predicted
    for part in (cell, cell.by_table["t"]):
        assert isinstance(part.n_tup_del, Interval)
        assert part.n_tup_del.high - part.n_tup_del.low >= 4
        assert isinstance(part.n_tup_ins, int)


def test_counts_that_are_stated_are_those_of_every_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of whole profiles drawn over the format: what is not named is equal in all runs."""
    played: list[list[Outcome]] = []
    turns: list[list[Any]] = []
    failed: list[list[int]] = []

    def noted(runs: list[Outcome], **others: Any) -> Outcome:
        played.append(runs)
        return spread(runs, **others)

    def turned(runs: list[Any], *others: Any) -> dict[str, Turns]:
        turns.append([run.turns for run in runs])
        failed.append([run.failed_transactions for run in runs])
        return turns_of(runs, *others)

    monkeypatch.setattr(twin, "spread", noted)
    monkeypatch.setattr(twin, "turns_of", turned)
    for number in range(examples(_PROFILES)):
        for clients in (2, 4):
            raw = generate(778, number, clients, ("18", "15"))
            raw["run"]["operations"] = min(raw["run"].get("operations", 400), 400)
            played.clear()
            turns.clear()
            failed.clear()
            try:
                profile = parse_profile(raw)
                predict(profile, seeds=12)
            except HeadroomError:
                continue  # what no server can play
            name = f"778-{number}, {clients} clients"
            for runs in played:
                _check(profile, runs, name)
            for by_run in turns:
                _check_turns(profile, by_run, name)
            if not failed_half(profile):
                assert not any(map(any, failed)), name
    assert played
    assert turns


def _check_turns(profile: Profile, by_run: list[Any], name: str) -> None:
    uncertain, upserted = turn_halves(profile), upserted_of(profile)
    for number, operation in enumerate(profile.workload.operations):
        if operation.table not in upserted and number not in uncertain:
            assert len({turns[number] for turns in by_run}) == 1, (name, number)


def _check(profile: Profile, runs: list[Outcome], name: str) -> None:
    uncertain = contended_of(profile)
    others = {*beside_maintenance(profile), *upserted_of(profile)}
    for table, key in ((table, key) for table in runs[0].by_table for key in _STEADY):
        if table not in others and key not in uncertain.get(table, {}):
            assert len({run.by_table[table].value(key) for run in runs}) == 1, (name, table, key)
