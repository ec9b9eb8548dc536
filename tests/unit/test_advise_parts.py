"""What `advise` decides by itself: the run for a table, its calibration, the verdict by cost."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from typing import Any

import observed_table as made
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from curve_points import point_of
from lengths import examples
from pgheadroom.advise import Options, advise
from pgheadroom.advise.advice import Advice
from pgheadroom.advise.calibrate import calibrate
from pgheadroom.advise.counters import without_curve
from pgheadroom.advise.curve import Costed, beside, candidates, misses
from pgheadroom.advise.decide import decide
from pgheadroom.advise.explaining import changed_columns
from pgheadroom.advise.foreseen import Calibration
from pgheadroom.advise.hot import parts_of, shape_of
from pgheadroom.advise.knobs import Knobs
from pgheadroom.advise.policy import Policy, make_policy
from pgheadroom.advise.reasons import why_change, why_keep
from pgheadroom.advise.runs import Runner
from pgheadroom.advise.scenario import SAMPLE_PAGES, make_scenario
from pgheadroom.advise.shares import observed_shares
from pgheadroom.advise.surroundings import may_be_held
from pgheadroom.advise.table_advice import TableAdvice
from pgheadroom.advise.updates import updates_of
from pgheadroom.errors import InputError
from pgheadroom.profile import Profile, parse_profile
from pgheadroom.types import Interval
from pgheadroom.units import show_shares

INTERVAL_S = 20.0
SERVER: dict[str, Any] = {
    "interval_s": INTERVAL_S,
    "server_version": "18.4",
    "database": "app",
    "database_oid": 5,
    "system_identifier": "7",
    "observed_at": "2026-11-22T00:00:00Z",
    "in_recovery": False,
    "is_idle": False,
    "broken": [],
    "changed": [],
    "partitioned": [],
    "masked": False,
    "modules": {},
    "assumed": [],
    "access": {"levels": ["pg_monitor"], "missing": []},
    "counters": {"wal_bytes_per_s": 1000.0},
    "horizon": {"stood_still": [], "holders": [], "series": []},
}


def observed(
    *,
    rows: int = 4000,
    updates: int = 4000,
    hot: int = 4000,
    newpage: int | None = 0,
    fillfactor: int = 100,
    width_bytes: int = 60,
    indexed: bool = False,
    sets: str = "v",
    lived: float = 10.0,
    server: dict[str, Any] | None = None,
    more: tuple[dict[str, Any], ...] = (),
) -> Profile:
    """A table `t` as `observe` writes it, updated uniformly."""
    indexes = [{"name": "t_pkey", "columns": ["id"], "unique": True}]
    if indexed:
        indexes.append({"name": "t_state", "columns": ["state"], "unique": False})
    counters: dict[str, Any] = {"n_tup_upd": updates, "n_tup_hot_upd": hot, "seq_scan": 0}
    if newpage is not None:
        counters["n_tup_newpage_upd"] = newpage
    table = {
        "name": "t",
        "rows": rows,
        "fillfactor": fillfactor,
        "columns": [
            {"name": "id", "type": "int4"},
            {"name": "v", "type": "int4"},
            {"name": "state", "type": "int4"},
            {
                "name": "note",
                "type": "text",
                "width": {"min_bytes": width_bytes, "max_bytes": width_bytes},
            },
        ],
        "indexes": indexes,
        "observed": {
            "schema": "public",
            "name": "t",
            "oid": 16384,
            "relfilenode": 16384,
            "main_bytes": rows * (width_bytes + 40),
            "counters": counters,
            "totals": {"n_tup_upd": int(lived * rows)},
            "per_s": {"n_tup_upd": updates / INTERVAL_S},
            "columns": [{"name": n, "type": "integer"} for n in ("id", "v", "state", "note")],
            "indexes": [],
            "free_space": [],
            "sample": None,
            "toast": None,
            "updates": {
                "source": None,
                "classes": [],
                "unattributed_frac": 1.0,
                "unattributed_resolution": 0.1,
                "pick": {"evidence": "sampled", "why": ""},
            },
        },
    }
    return parse_profile(
        {
            "schema_version": 1,
            "server": {
                "version": "18.4" if newpage is not None else "15.18",
                "autovacuum": True,
                "autovacuum_naptime_s": 60,
                "checkpoint_interval_s": 300,
                "max_wal_size": "1GB",
                "observed": SERVER | (server or {}),
            },
            "table": [table],
            "operation": [
                {
                    "table": "t",
                    "kind": "update",
                    "weight": max(updates, 1),
                    "sets": [sets],
                    "pick": {"distribution": "uniform"},
                },
                *more,
            ],
            "run": {"duration_s": 20, "rate_per_s": 200},
        }
    )


def one(profile: Profile, **options: Any) -> TableAdvice:
    """The advice on its only table."""
    (table,) = advise(profile, Options(budget_s=600, **options)).tables
    return table


def calibrated(profile: Profile) -> Calibration:
    """What `advise` finds of its only table before it plays other settings."""
    (table,) = profile.tables
    shares = observed_shares(table)
    assert shares is not None
    with Runner() as runner:
        fitted = calibrate(profile, table, shares, "18.4", runner, sample_pages=SAMPLE_PAGES)
    assert fitted is not None
    return fitted.calibration


# The run for a table


def test_a_sample_keeps_rates_a_row_and_thresholds_by_rows() -> None:
    """A tenth of the rows gets a tenth of the operations, and of autovacuum's fixed thresholds."""
    profile = observed(rows=400_000, updates=40_000, hot=40_000)
    scenario = make_scenario(profile, profile.tables[0], Knobs(), sample_pages=100)
    assert scenario is not None
    share = scenario.share
    assert share == pytest.approx(scenario.table.rows / 400_000)
    assert scenario.per_s == pytest.approx(40_000 / INTERVAL_S * share)
    options = scenario.table.reloptions
    assert options["autovacuum_vacuum_threshold"] == str(round(50 * share))
    assert scenario.profile.server.max_wal_size_bytes is None


def test_a_run_ends_between_two_checkpoints_and_so_begins_its_steady_half() -> None:
    """Windows are parts of half a distance, so no checkpoint lies at the edge of what counts."""
    profile = observed(rows=20_000)
    scenario = make_scenario(profile, profile.tables[0], Knobs())
    assert scenario is not None
    distance = scenario.profile.server.checkpoint_interval_s
    assert distance == 300
    assert scenario.duration_s % distance == pytest.approx(distance / 2, rel=0.01)
    halves = 2 * int(scenario.duration_s / distance) + 1
    assert scenario.windows % halves == 0
    parts = scenario.windows // halves
    assert parts > 1, "rows are updated often: windows are parts of half a distance"
    assert scenario.steady_from % parts == 0
    assert scenario.steady_from // parts % 2 == 1


@pytest.mark.parametrize(
    ("counters", "expected_s"),
    [
        ({"checkpoint": {"num_timed": 3, "num_requested": 1}}, 30.0),  # not below the least
        ({"wal_bytes_per_s": 2**30 / 1.9 / 100}, 100.0),  # max_wal_size is reached first
        ({"wal_bytes_per_s": 0.0}, 300.0),
    ],
)
def test_checkpoints_as_counted_else_by_settings(
    counters: dict[str, Any], expected_s: float
) -> None:
    """Three or more inside the interval are counted; otherwise time and WAL decide."""
    profile = observed(server={"counters": counters})
    scenario = make_scenario(profile, profile.tables[0], Knobs())
    assert scenario is not None
    assert scenario.profile.server.checkpoint_interval_s == pytest.approx(expected_s)


def test_a_held_horizon_is_held_as_long_and_as_often() -> None:
    """Snapshots over the whole run, as long each as the observed one, half of the time."""
    still = {"stood_still": [{"start_frac": 0.1, "length_frac": 0.5}], "holders": [], "series": []}
    profile = observed(server={"horizon": still})
    scenario = make_scenario(profile, profile.tables[0], Knobs())
    assert scenario is not None
    held = scenario.profile.workload.run.snapshots
    assert len(held) == math.ceil(scenario.duration_s / 20), "10 s of every 20"
    assert sum(one.length_frac for one in held) == pytest.approx(0.5, rel=0.02)
    free = make_scenario(profile, profile.tables[0], Knobs(held_s=0.0))
    assert free is not None
    assert free.profile.workload.run.snapshots == ()


# Shares and calibration


def test_counters_that_were_read_one_after_the_other_stay_shares() -> None:
    """HOT may be ahead of all updates by what a session reported between the two readings."""
    shares = observed_shares(observed(updates=100, hot=103, newpage=2).tables[0])
    assert shares is not None
    assert (shares.hot, shares.newpage, shares.indexed) == (1.0, 0.0, 0.0)


def test_how_often_an_indexed_column_changes_comes_from_the_counters() -> None:
    """One in four of the updates that stayed was not HOT: the column changes in one of four."""
    profile = observed(indexed=True, sets="state", updates=4000, hot=3000, newpage=0, fillfactor=70)
    found = one(profile)
    assert found.calibration is not None
    (fitted,) = found.calibration.fitted
    assert (fitted.name, fitted.value, fitted.unit) == ("changed_frac of t.state", 0.25, "frac")
    assert found.calibration.agrees, found.calibration.note
    assert found.verdict == "KEEP", found.reason


def test_updates_that_no_statement_explains_are_named() -> None:
    """Not HOT on a page with room, though no statement assigns an indexed column."""
    profile = observed(indexed=True, sets="v", updates=4000, hot=2000, newpage=0, fillfactor=70)
    found = calibrated(profile)
    (fitted,) = found.fitted
    assert "no known statement" in fitted.because
    assert found.agrees, found.note


@pytest.mark.parametrize("explained", [True, False])
def test_columns_that_no_statement_assigns_do_not_change_where_all_statements_are_known(
    explained: bool,
) -> None:
    """
    15 does not count new pages: updates that missed HOT may seem to have changed an index's column.

    Where pg_stat_statements has counted them all and none assigns such a column, none has changed,
    and a check of a migration must not find one in the workload.
    """
    profile = observed(indexed=True, sets="v", updates=4000, hot=3700, newpage=None, fillfactor=70)
    table = profile.tables[0]
    assert table.observed is not None
    seen = {"kind": "update", "columns": ["v"], "frac": 1.0, "calls": 4000}
    updates = {
        **table.observed["updates"],
        "source": "pg_stat_statements",
        "classes": [{**seen, "rows": 4000 if explained else 3000}],
        "unattributed_frac": 0.0 if explained else 0.25,
    }
    table = replace(table, observed=made.seen_of(table, updates=updates))
    with Runner() as runner:
        shares = observed_shares(table)
        assert shares is not None
        fitted = calibrate(
            replace(profile, tables=(table,)), table, shares, "15.18", runner, sample_pages=100
        )
    assert fitted is not None
    played = {c.column for o in fitted.scenario.profile.workload.operations for c in o.sets}
    assert ("state" in played) is not explained
    assert any("t.state" in one.of for one in fitted.calibration.fitted) is not explained


@pytest.mark.parametrize(
    ("cold", "explained", "changes"),
    [(1800, True, False), (1800, False, True), (2400, True, True)],
)
def test_no_column_is_invented_where_statements_may_explain_what_stayed(
    cold: int, explained: bool, changes: bool
) -> None:
    """
    A job is taken (an update that goes to a new page), then its indexed payload is written there.

    Those that assign the index's column stay on their page more often than the others, so their
    share of what stayed is larger than of all; that another column had changed in 16 % of the
    updates was invented. More of them than statements assign it do prove another.
    """
    more = {"table": "t", "kind": "update", "weight": 2000, "sets": ["state"]}
    profile = observed(
        indexed=True, updates=4000, hot=1000, newpage=3000 - cold, sets="v", more=(more,)
    )
    operations = (
        replace(profile.workload.operations[0], weight=2000),
        *profile.workload.operations[1:],
    )
    workload = replace(profile.workload, operations=operations)
    table = profile.tables[0]
    assert table.observed is not None
    seen = {"kind": "update", "frac": 0.5, "calls": 2000, "rows": 2000 if explained else None}
    updates = {
        **table.observed["updates"],
        "source": "pg_stat_statements",
        "classes": [{**seen, "columns": ["v"]}, {**seen, "columns": ["state"]}],
        "unattributed_frac": 0.0 if explained else None,
    }
    indexes = [made.index("t_state", ["state"])]
    table = replace(table, observed=made.seen_of(table, updates=updates, indexes=indexes))
    shares = observed_shares(table)
    assert shares is not None
    whole = replace(profile, tables=(table,), workload=workload)
    found, fitted = changed_columns(whole, table, shares)
    assert (found.also_changes is not None) is changes
    assert bool(fitted) is changes
    listed = updates_of(table, 18)
    assert listed is not None
    hidden = sum(part.frac for part in parts_of(listed, shape_of(table, 18)) if part.hidden)
    assert (hidden > 0) is changes


def test_new_pages_in_spite_of_room_are_explained_by_a_held_horizon() -> None:
    """Half of each page is free, yet half of the updates leave it: somebody keeps old versions."""
    found = calibrated(observed(rows=400, updates=400, hot=200, newpage=200, fillfactor=50))
    assert found.fitted[0].name == "seconds that a horizon is held"


def looks(*oldest: str | None) -> dict[str, Any]:
    """A horizon that nobody held for long, looked at every two seconds."""
    series = [
        {"at_s": 2.0 * n, "age_xids": 0 if xid is None else 50, "oldest_xid": xid}
        for n, xid in enumerate(oldest)
    ]
    return {"series": series, "holders": [], "stood_still": []}


def test_a_horizon_that_was_seen_to_move_explains_nothing() -> None:
    """Whatever else made updates leave their pages: each look found no holder, and would have."""
    server = {"horizon": looks(*[None] * 11)}
    seen = observed(rows=400, updates=400, hot=200, newpage=200, fillfactor=50, server=server)
    assert "held_s" not in {one.quantity for one in calibrated(seen).fitted}


@pytest.mark.parametrize(
    ("oldest", "holds_s"),
    [
        ([], [5, 30, 600]),
        ([None] * 8 + ["7"] * 3, []),
        ([str(n) for n in range(11)], []),
        (["1", "1", "2", "2", "3", "3", "4", "4", "5", "5", "6"], [5]),
        (["1"] * 5 + ["2"] * 6, [5, 30, 600]),
    ],
)
def test_for_how_long_a_horizon_may_have_been_held(
    oldest: list[str | None], holds_s: list[int]
) -> None:
    """One holder after another, by who was found at each look; without looks nobody knows."""
    profile = observed(server={"horizon": looks(*oldest)})
    assert [hold for hold in (5, 30, 600) if may_be_held(profile, hold)] == holds_s


@pytest.mark.long(reason="two minutes of calibration; a table of a tenth of its rows stands for it")
def test_a_held_horizon_alone_explains_new_pages_of_a_larger_table() -> None:
    """The same where pages are many enough for their number to say no more than that."""
    found = calibrated(observed(updates=4000, hot=2000, newpage=2000, fillfactor=50))
    assert [one.quantity for one in found.fitted] == ["held_s"]


def test_short_rows_of_a_table_that_settled_keep_their_setting() -> None:
    """Once pages have given rows away there is room at fillfactor 100 too."""
    found = one(observed(updates=4000, hot=3990, newpage=10))
    assert (found.verdict, found.advised_fillfactor) == ("KEEP", 100), found.reason


# The verdict


def _decide(
    costs: dict[int, tuple[float, ...]],
    *,
    policy: Policy | None = None,
    off: float = 0.0,
    growth_bytes: float = 0.0,
    hot: float = 0.9,
    repeated: float = 0.9,
    width: float = 0.0,
) -> tuple[str, int | None]:
    table = observed().tables[0]
    calibration = Calibration(
        observed_hot_frac=hot,
        predicted_hot_frac=repeated,
        observed_newpage_frac=0.1,
        predicted_newpage_frac=0.1,
        agrees=not off,
        fitted=(),
        note="",
    )
    curve = [
        Costed(point=point_of(f, hot=1 - f / 1000, heap_bytes=1e9 * 100 / f), costs=values)
        for f, values in costs.items()
    ]
    found = decide(
        table,
        calibration,
        off,
        curve,
        policy or make_policy(),
        growth_bytes=growth_bytes,
        width=width,
    )
    return found.verdict, found.fillfactor


def test_the_highest_of_equally_good_settings_is_advised() -> None:
    """80 saves a trifle more than 90: not worth its room."""
    costs = {100: (10.0,) * 3, 90: (7.03,) * 3, 80: (7.0,) * 3, 50: (9.0,) * 3}
    assert _decide(costs) == ("CHANGE", 90)


@settings(max_examples=examples(60), deadline=None, derandomize=True)
@given(st.floats(0.0, 1.0), st.floats(0.0, 1.0), st.floats(-0.004, 0.004))
@example(0.99996, 0.9999, -0.001)
def test_no_reason_has_a_figure_instead_of_itself(now: float, then: float, wal: float) -> None:
    """A reason was "100.0 % HOT in the long run instead of 100.0 %, WAL per update -0 %"."""
    before = point_of(100, hot=now)
    after = replace(point_of(90, hot=then), wal_bytes_per_update=100.0 * (1 + wal))
    gain = Interval(low=0.002, mid=0.003, high=0.004, level=0.9)
    pair = Costed(point=before, costs=(10.0,) * 3), Costed(point=after, costs=(9.7,) * 3)
    for said in (why_change(*pair, gain), why_keep(*pair, gain, make_policy())):
        shares = re.findall(r"([\d.]+)% HOT in the long run instead of ([\d.]+)%", said)
        assert all(one != other for one, other in shares)
        assert f"{show_shares(now, then)[1]} HOT in the long run" in said
        assert not re.search(r"[+-]0(\.0)?%", said)


def test_a_gain_below_the_threshold_or_inside_the_error_is_no_change() -> None:
    """1.5 % is too little; 5 % that varies by as much from run to run may be none."""
    assert _decide({100: (10.0,) * 3, 90: (9.85,) * 3}) == ("KEEP", 100)
    assert _decide({100: (10.0,) * 3, 90: (9.0, 9.5, 10.0)}) == ("KEEP", 100)
    assert _decide({100: (10.0,) * 3, 90: (9.4, 9.5, 9.6)}) == ("CHANGE", 90)


def test_what_the_calibration_missed_widens_the_error() -> None:
    """A gain of 5 % is no reason when the HOT share was off by six points; ten are too many."""
    costs = {100: (10.0,) * 3, 90: (9.5,) * 3}
    assert _decide(costs, off=0.06) == ("KEEP", 100)
    assert _decide(costs, off=0.11) == ("ABSTAIN", None)
    assert _decide(costs, width=0.02) == ("CHANGE", 90)
    assert _decide(costs, width=0.06) == ("KEEP", 100), "what the twin does not play is an error"


def test_no_more_is_saved_than_updates_that_missed_hot() -> None:
    """The twin has ten points of misses, of which one was observed: a tenth of the gain is sure."""
    costs = {100: (10.0,) * 3, 90: (9.2,) * 3}
    assert _decide(costs) == ("CHANGE", 90)
    assert _decide(costs, hot=0.99) == ("KEEP", 100)


def test_what_is_lost_later_is_not_lost_now() -> None:
    """
    A settled table was told 95: 19 % saved by misses that come once, a while later.

    A table of sessions had 99.98 % HOT measured and repeated by the twin, which foresaw 99.2 % for
    the long run: the mean over a time in which pages whose line pointers have grown give up one
    more row each. The saving was that time's.
    """
    costs = {100: (10.0,) * 3, 90: (8.1,) * 3}
    assert _decide(costs) == ("CHANGE", 90)
    assert _decide(costs, hot=0.9998, repeated=0.9998) == ("KEEP", 100)


def test_growth_is_limited_where_it_is_asked_for() -> None:
    """50 is best, but doubles the heap."""
    costs = {100: (10.0,) * 3, 90: (9.0,) * 3, 50: (7.0,) * 3}
    assert _decide(costs) == ("CHANGE", 50)
    assert _decide(costs, policy=make_policy("balanced", None, 0.2)) == ("CHANGE", 90)


def test_growing_rows_use_any_room_up() -> None:
    """200 updates a second on 4,000 rows that grow by 3 bytes each time: gone within minutes."""
    costs = {100: (10.0,) * 3, 70: (7.0,) * 3}
    assert _decide(costs, growth_bytes=3.0) == ("KEEP", 100)
    assert _decide(costs, growth_bytes=1e-9) == ("CHANGE", 70)


@pytest.mark.parametrize(
    ("server", "said"),
    [
        ({"in_recovery": True}, "standby"),
        ({"broken": ["the server was restarted inside the interval"]}, "restarted"),
        ({"is_idle": True}, "nothing was written"),
        ({"changed": ["t was rewritten inside the interval"]}, "rewritten"),
    ],
)
def test_an_interval_that_says_nothing_gives_abstain(server: dict[str, Any], said: str) -> None:
    """Each with its reason, and without playing anything."""
    profile = observed(hot=2000, newpage=2000)
    found = without_curve(profile.tables[0], made.seen_of_server(**server), make_policy())
    assert found is not None
    assert found.verdict == "ABSTAIN"
    assert said in found.reason


def test_few_updates_and_trifles_are_told_apart() -> None:
    """Nothing at stake: KEEP. Something may be, but too little was seen: ABSTAIN."""
    idle = observed(updates=0, hot=0, newpage=0)
    trifle = observed(updates=10, hot=10)
    scarce = observed(updates=90, hot=10, newpage=80)
    found = [
        without_curve(p.tables[0], made.seen_of_server(), make_policy())
        for p in (idle, trifle, scarce)
    ]
    assert [one.verdict for one in found if one is not None] == ["KEEP", "KEEP", "ABSTAIN"]


def test_wide_rows_are_tried_where_one_more_row_fits() -> None:
    """With six rows a page a step of ten per cent may change nothing."""
    wide = observed(rows=600, width_bytes=1200).tables[0]
    assert candidates(wide)[0] == 100
    assert set(candidates(wide)) >= {91, 76, 61, 45}, "the most with which one row less fits"
    narrow = observed(fillfactor=93).tables[0]
    assert set(candidates(narrow)) >= {100, 93, 90, 50}
    curve = [Costed(point=point_of(f), costs=(abs(f - 80.0),)) for f in candidates(narrow)]
    assert beside(curve) == (85, 75)


def test_misses_follow_the_size() -> None:
    """Half of 1,000 bytes is cached and stays so: of 2,000 a quarter."""
    table = observed().tables[0]
    facts = dict(table.observed or {})
    facts["main_bytes"] = 1000
    facts["counters"] = dict(facts["counters"]) | {"heap_blks_read": 2000, "heap_blks_hit": 2000}
    table = replace(table, observed=made.seen_of(table, **facts))
    assert misses(table, 1000) == pytest.approx(0.5)
    assert misses(table, 2000) == pytest.approx(0.75)
    assert misses(table, 500) == 0


# The whole


def test_a_profile_written_by_hand_is_refused() -> None:
    """Nothing was observed: there is `predict` for that."""
    profile = observed()
    plain = replace(profile, server=replace(profile.server, observed=None))
    with pytest.raises(InputError, match="pgheadroom observe"):
        advise(plain)
    with pytest.raises(InputError, match="not in the profile"):
        advise(profile, Options(tables=("nothere",)))


def test_without_time_tables_are_judged_by_counters_alone() -> None:
    """The budget is spent: ABSTAIN, and how to get more."""
    (table,) = advise(observed(hot=2000, newpage=2000), Options(budget_s=0.0)).tables
    assert table.verdict == "ABSTAIN"
    assert "a larger budget" in table.reason


def test_the_same_observation_gives_the_same_advice() -> None:
    """Seeds are fixed, and the file's form keeps everything."""
    profile = observed(updates=4000, hot=3900, newpage=100)
    first, second = (advise(profile, Options(budget_s=600)) for _ in range(2))
    assert first == second
    assert Advice.from_json(json.loads(json.dumps(first.to_json()))) == first
    assert isinstance(first.tables[0].curve[0].cost, Interval)
