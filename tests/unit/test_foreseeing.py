"""A forecast again, for the rows and updates that have come since."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from observed_table import counters, profile_of
from test_advise_parts import observed
from test_plan import MARK, MEASURED, forecast

from pgheadroom.advise.calibrate import calibrate
from pgheadroom.advise.knobs import Fit, Knobs
from pgheadroom.advise.runs import Runner
from pgheadroom.advise.scenario import SAMPLE_PAGES, Scenario
from pgheadroom.advise.shares import observed_shares
from pgheadroom.advise.width import ROWS_FRAC
from pgheadroom.forms import read, write
from pgheadroom.plan.record import StepRecord, TableState
from pgheadroom.predict import minor_version
from pgheadroom.profile import parse_profile
from pgheadroom.types import Interval
from pgheadroom.verify import foreseeing
from pgheadroom.verify.foreseeing import foresee, play_until_now
from pgheadroom.verify.since import Since, Unforeseen
from pgheadroom.verify.state import since_of

ROWS = 3000
ROW_BYTES = 240.0
SINCE = Since(
    rows=ROWS,
    heap_bytes=ROWS * 244,
    inserts=ROWS,
    updates=2 * ROWS,
    deletes=0,
    window_updates=300,
    length_s=600.0,
    fillfactor_before=100,
    fillfactor=70,
)


def scenario(
    pick: str = "uniform", *, document_bytes: int = 200, autovacuum: bool = False
) -> Scenario:
    """Rows come, and rows of any age are updated, or the last ones."""
    profile = parse_profile(
        {
            "schema_version": 1,
            "server": {
                "full_page_writes": False,
                "checkpoint_interval_s": 300,
                "autovacuum": autovacuum,
                "autovacuum_naptime_s": 5,
            },
            "table": [
                {
                    "name": "t",
                    "rows": ROWS,
                    "columns": [
                        {"name": "id", "type": "int4"},
                        {"name": "v", "type": "int4"},
                        {"name": "note", "type": f"char({document_bytes})"},
                    ],
                    "indexes": [{"name": "t_pk", "columns": ["id"], "unique": True}],
                }
            ],
            "operation": [
                {"table": "t", "kind": "insert", "weight": 1},
                {
                    "table": "t",
                    "kind": "update",
                    "sets": ["v"],
                    "weight": 2,
                    "pick": {"distribution": pick},
                },
            ],
            "run": {
                "operations": 1000,
                # Held half of the time, so that room counts in the steady state too.
                "snapshot": [{"start_frac": 0.0, "length_frac": 0.5}],
            },
        }
    )
    return Scenario(
        profile=profile,
        share=1.0,
        per_s=10.0,
        duration_s=100.0,
        updates_per_row=1.0,
        windows=10,
        steady_from=5,
        assumed=(),
    )


def test_new_pages_and_old_ones_make_the_share_of_now() -> None:
    """
    What old pages give and what new ones give, by their parts of the rows.

    And what came since takes the room of its rows under the setting, by itself.
    """
    with Runner() as runner:
        for grown in (0.1, 0.5, 1.0, 4.0):
            since = replace(
                SINCE,
                inserts=round(ROWS * grown),
                updates=round(2 * ROWS * grown),
                window_updates=round(400 * grown),
            )
            found = play_until_now(scenario(), since, "18.4", runner, row_bytes=ROW_BYTES)
            assert found.heap_bytes is not None
            assert found.new_rows_frac == pytest.approx(grown / (1 + grown), abs=1e-3)
            parts = found.by_page
            assert parts is not None
            assert parts.hot_old_frac is not None
            assert parts.hot_new_frac is not None
            if grown <= 1:
                assert parts.hot_old_frac < 0.99 < parts.hot_new_frac
            # Rows that were there have moved to new pages, and none the other way.
            assert parts.old_pages_frac < 1 - found.new_rows_frac + 0.01
            mean = parts.hot_new_frac + parts.old_pages_frac * (
                parts.hot_old_frac - parts.hot_new_frac
            )
            assert found.hot_frac.mid == pytest.approx(mean, abs=0.005)
            assert found.heap_bytes.mid == pytest.approx(ROWS * 244 + found.grown_bytes.mid)
            rows_a_page = int(8168 * 0.7 / ROW_BYTES)
            assert found.grown_bytes.mid == pytest.approx(
                since.inserts / rows_a_page * 8192, rel=0.12
            )
        wide = play_until_now(scenario(), since, "18.4", runner, off=0.1, row_bytes=ROW_BYTES)
        assert wide.grown_bytes.high - wide.grown_bytes.mid >= 0.1 * since.updates * ROW_BYTES
        assert wide.hot_frac.low < found.hot_frac.low - 0.05


def test_rows_that_are_updated_when_they_come_are_played_as_they_come() -> None:
    """Their versions take the room of later rows, so the heap grows by more than rows."""
    with Runner() as runner:
        since = replace(SINCE, inserts=1500, updates=3000)
        last = play_until_now(scenario("newest"), since, "18.4", runner, row_bytes=ROW_BYTES)
        any_age = play_until_now(scenario(), since, "18.4", runner, row_bytes=ROW_BYTES)
    assert last.grown_bytes.low > 1.5 * any_age.grown_bytes.high


def test_pages_are_told_apart_where_rows_of_one_age_are_updated() -> None:
    """
    The last rows lie on new pages soon, and all their updates with them; 100 keeps all pages alike.

    They were told as two runs of the whole, one at each setting, and no part of the updates.
    """
    with Runner() as runner:
        found = play_until_now(scenario("newest"), SINCE, "18.4", runner, row_bytes=ROW_BYTES)
        left = replace(SINCE, fillfactor=SINCE.fillfactor_before)
        alike = play_until_now(scenario("newest"), left, "18.4", runner, row_bytes=ROW_BYTES)
    assert found.by_page is not None
    assert found.by_page.old_pages_frac < 0.02
    assert found.by_page.hot_new_frac == pytest.approx(found.hot_frac.mid, abs=0.02)
    assert alike.by_page is None


def test_a_life_before_decides_what_room_the_next_rows_find() -> None:
    """
    Rows that are updated as they come leave room behind, which a vacuum gives to later ones.

    So a table that has hardly lived grows by more; where its life is not known, by either.
    """
    with Runner() as runner:
        since = replace(SINCE, inserts=900, updates=2700, fillfactor_before=100, fillfactor=85)

        def grown(*lives: int | None) -> Interval:
            found = play_until_now(
                scenario("newest", document_bytes=1340, autovacuum=True),
                replace(since, lives=lives),
                "18.4",
                runner,
                row_bytes=1400.0,
            )
            return found.grown_bytes

        young, old, either = grown(0), grown(None), grown(0, None)
    assert young.mid > 1.4 * old.mid
    assert either.low < young.low
    assert either.high > old.high


def test_the_run_has_what_was_counted() -> None:
    """Another mix than the plan saw is played as counted; a kind that it never saw is not."""
    with Runner() as runner:
        few = play_until_now(
            scenario(), replace(SINCE, updates=300), "18.4", runner, row_bytes=ROW_BYTES
        )
        many = play_until_now(scenario(), SINCE, "18.4", runner, row_bytes=ROW_BYTES)
        assert few.grown_bytes.mid < many.grown_bytes.mid
        with pytest.raises(Unforeseen, match="rows were changed by delete"):
            play_until_now(
                scenario(), replace(SINCE, deletes=2000), "18.4", runner, row_bytes=ROW_BYTES
            )
        with pytest.raises(Unforeseen, match="nothing has happened"):
            play_until_now(
                scenario(),
                replace(SINCE, inserts=0, updates=0),
                "18.4",
                runner,
                row_bytes=ROW_BYTES,
            )
        with pytest.raises(Unforeseen, match="too much has happened"):
            play_until_now(
                scenario(), replace(SINCE, updates=10**10), "18.4", runner, row_bytes=ROW_BYTES
            )


def effect(**changes: Any) -> TableState:
    made = {"inserts": 1300, "updates": 700, "deletes": 100, "heap_bytes": 900_000}
    return TableState(**{"fillfactor": 90, "relfilenode": MARK.relfilenode, **made, **changes})


def table(inserts: int, updates: int, deletes: int, **facts: Any) -> Any:
    totals = {"n_tup_ins": inserts, "n_tup_upd": updates, "n_tup_del": deletes}
    made = {"relfilenode": MARK.relfilenode, "main_bytes": 800_000, "totals": totals, **facts}
    return profile_of(counters(10, 5), **made).table("jobs")


def since(applied: StepRecord | None, **changes: Any) -> Since:
    given: dict[str, Any] = {
        "forecast": forecast(),
        "planned": table(1000, 500, 0),
        "now": MEASURED,
        "table": table(4300, 2700, 100),
        "observed_at": "2026-11-22T00:00:00Z",
        "applied": applied,
    } | changes
    return since_of(**given)


DONE = StepRecord(number=1, state="done", finished_at="2026-11-22T01:00:00Z", after=effect())


def test_what_a_plan_was_made_with_need_not_be_found_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The same scenario, the same forecast; a plan of earlier versions is calibrated anew."""
    profile = observed(indexed=True, sets="state", hot=3000, newpage=0)
    planned = profile.tables[0]
    happened = replace(
        SINCE, rows=planned.rows, inserts=0, updates=20_000, heap_bytes=None, lives=(None,)
    )
    shares = observed_shares(planned)
    assert shares is not None
    with Runner() as runner:
        version = str(minor_version(profile).version)
        fitted = calibrate(
            profile, planned, shares, version, runner, sample_pages=SAMPLE_PAGES
        ).calibration.fit
        assert fitted is not None
        assert fitted.knobs != Knobs(), "something was fitted"
        assert fitted == read(Fit, json.loads(json.dumps(write(fitted))))
        anew = foresee(profile, planned, happened, runner)
        monkeypatch.setattr(foreseeing, "calibrate", None)
        assert foresee(profile, planned, happened, runner, fit=fitted) == anew
    foreign = replace(fitted, knobs=replace(fitted.knobs, changed_frac={"nobody": 0.5}))
    with pytest.raises(Unforeseen, match="nobody"), Runner() as runner:
        foresee(profile, planned, happened, runner, fit=foreign)


def test_what_the_twin_does_not_play_widens_a_forecast_for_now_too() -> None:
    """As it does the plan's: a statement that updates many rows wants room for all at once."""
    profile = observed(indexed=True, sets="state", hot=3000, newpage=0)
    planned = profile.tables[0]
    operations = tuple(replace(one, rows_per_statement=10) for one in profile.workload.operations)
    many = replace(profile, workload=replace(profile.workload, operations=operations))
    happened = replace(
        SINCE, rows=planned.rows, inserts=0, updates=20_000, heap_bytes=None, lives=(None,)
    )
    fit = Fit(knobs=Knobs(), off=0.0)
    with Runner() as runner:
        found = foresee(many, planned, happened, runner, fit=fit)
        again = foresee(profile, planned, happened, runner, fit=fit)
    for share in (found.hot_frac, found.newpage_frac):
        assert max(share.high - share.mid, share.mid - share.low) >= ROWS_FRAC
    assert found.hot_frac.high - found.hot_frac.low > again.hot_frac.high - again.hot_frac.low


@pytest.mark.parametrize(
    ("counted", "relfilenode", "lives"),
    [
        ((2100, 700, 100), MARK.oid, (700,)),  # all of its rows were counted: so were its updates
        ((1300, 700, 100), MARK.oid, (700, None)),  # it is older than its statistics
        ((2100, 700, 100), MARK.oid + 5, (0, 700)),  # rewritten at some time
        ((1300, 700, 100), MARK.oid + 5, (0, None)),
    ],
)
def test_how_long_a_table_has_lived_is_what_its_counters_show(
    counted: tuple[int, int, int], relfilenode: int, lives: tuple[int | None, ...]
) -> None:
    """Each life that may have been, for what its pages have room for depends on it."""
    inserts, updates, deletes = counted
    made = effect(inserts=inserts, updates=updates, deletes=deletes, relfilenode=relfilenode)
    mark = replace(MARK, relfilenode=relfilenode)
    found = since(
        replace(DONE, after=made),
        forecast=replace(forecast(), table=mark, measured=replace(MEASURED, rows=1000)),
        planned=table(inserts - 1000, 500, deletes),
        table=table(inserts + 3000, 2700, 100, relfilenode=relfilenode),
    )
    assert found.rows == 2000
    assert found.lives == lives


def test_what_has_happened_is_counted_from_the_setting() -> None:
    """Rows then are those of the plan and what came until the setting."""
    found = since(DONE)
    assert (found.rows, found.heap_bytes) == (MEASURED.rows + 300 - 100, 900_000)
    assert (found.inserts, found.updates, found.deletes) == (3000, 2000, 0)
    assert (found.fillfactor_before, found.fillfactor) == (100, 90)
    assert found.window_updates == 500
    kept = replace(forecast(), verdict="KEEP", fillfactor=100, transition=None)
    found = since(None, forecast=kept)
    assert (found.rows, found.heap_bytes) == (MEASURED.rows, 800_000)
    assert (found.inserts, found.updates, found.deletes) == (3300, 2200, 100)
    assert found.fillfactor_before == found.fillfactor == 100
    moved = replace(DONE, after=effect(relfilenode=7))
    found = since(moved, table=table(4300, 2700, 100, relfilenode=7))
    assert found.fillfactor_before == found.fillfactor == 90, "rewritten by the plan"
    assert found.lives == (0,)


@pytest.mark.parametrize(
    ("applied", "changes", "why"),
    [
        (None, {}, "when the setting was applied"),
        (replace(DONE, after=effect(inserts=None)), {}, "when the setting was applied"),
        (replace(DONE, finished_at="soon"), {}, "since when is not known"),
        (DONE, {"table": table(10, 10, 10)}, "statistics were reset"),
        (DONE, {"planned": table(9000, 500, 0)}, "statistics were reset"),
        (DONE, {"table": table(4300, 2700, 100, relfilenode=7)}, "rewritten by others"),
        (DONE, {"planned": table(1000, 500, 0, totals={})}, "its rows were not counted"),
    ],
)
def test_what_is_not_known_is_said(
    applied: StepRecord | None, changes: dict[str, Any], why: str
) -> None:
    """Then the workload is not comparable, with this reason."""
    with pytest.raises(Unforeseen, match=why):
        since(applied, **changes)
