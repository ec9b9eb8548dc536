"""A prediction over time: its pace, windows, what the server does by itself, convergence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pgheadroom.errors import InputError
from pgheadroom.outcome import KEYS, middle, put_together
from pgheadroom.predict import PredictedCell, RewriteAsked, Timing, predict
from pgheadroom.predict.cells import loaded_at, loaded_rows, make_cells
from pgheadroom.predict.chance import counted
from pgheadroom.predict.clock import TPS_PER_CLIENT, clock_of, has_clockwork
from pgheadroom.predict.convergence import takes_effect
from pgheadroom.predict.growth import Growth, growth_of
from pgheadroom.predict.series import Series
from pgheadroom.profile import Profile, parse_profile, read_profile
from pgheadroom.report.proof import time_tables
from pgheadroom.types import Interval

Json = dict[str, Any]
EXAMPLES = Path(__file__).parents[2] / "examples"
UPDATE: Json = {
    "table": "t",
    "kind": "update",
    "sets": ["n"],
    "pick": {"distribution": "uniform"},
}


def _profile(
    run: Json | None = None,
    server: Json | None = None,
    fillfactor: int = 100,
    operations: list[Json] | None = None,
) -> Profile:
    return parse_profile(
        {
            "schema_version": 1,
            "server": server or {},
            "table": [
                {
                    "name": "t",
                    "rows": 4000,
                    "fillfactor": fillfactor,
                    "columns": [
                        {"name": "id", "type": "int4"},
                        {"name": "n", "type": "int4"},
                        {"name": "filler", "type": "bpchar(84)"},
                    ],
                    "indexes": [{"name": "t_pkey", "columns": ["id"], "unique": True}],
                }
            ],
            "operation": operations or [UPDATE],
            "run": run or {"operations": 4000},
        }
    )


def test_where_the_pace_is_from() -> None:
    """The profile's rate, what somebody says, else a millisecond in each client."""
    at_rate = clock_of(_profile({"duration_s": 5, "rate_per_s": 30}))
    assert (at_rate.per_s, at_rate.duration_s, at_rate.said) == (30, 5, "run.rate_per_s")
    assert at_rate.pace == ("arrivals", 5)
    asked = clock_of(_profile({"operations": 140}), 70)
    assert (asked.per_s, asked.duration_s, asked.pace) == (70, 2, ("even", 70))
    assert asked.said == "70 transactions a second, as asked for"
    guessed = clock_of(_profile({"operations": 40, "clients": 4}))
    assert guessed.per_s == 4 * TPS_PER_CLIENT
    assert guessed.duration_s == 40 / guessed.per_s
    assert "a guess" in guessed.said
    assert clock_of(_profile({"duration_s": 5, "clients": 4}), 9).duration_s == 5


@pytest.mark.parametrize("tps", [0, -1, float("nan"), float("inf")])
def test_paces_that_are_none(tps: float) -> None:
    """Refused with the option's name."""
    with pytest.raises(InputError, match=r"^tps"):
        clock_of(_profile(), tps)


def test_a_rate_and_tps_contradict() -> None:
    """One of the two."""
    with pytest.raises(InputError, match="rate_per_s = 30"):
        clock_of(_profile({"duration_s": 5, "rate_per_s": 30}), 40)


@pytest.mark.parametrize(
    ("server", "expected"),
    [
        ({}, False),
        ({"autovacuum": True}, True),
        ({"checkpoint_interval_s": 30}, True),
        ({"max_wal_size": "1GB"}, True),
    ],
)
def test_what_goes_by_the_clock(server: Json, expected: bool) -> None:
    """Autovacuum and checkpoints."""
    assert has_clockwork(_profile(server=server)) is expected


def test_windows_add_up_to_the_run() -> None:
    """Counters and WAL of the windows are the run's; sizes end where it does; nothing drawn."""
    (cell,) = predict(_profile(), server="18.4", timing=Timing(windows=9)).cells
    assert cell.series is not None
    assert cell.predicted.is_exact
    assert len(cell.series.t_s) == 9
    assert cell.series.t_s[-1] == 4
    for key in ("n_tup_upd", "n_tup_hot_upd", "wal_records", "wal_bytes", "wal_fpi"):
        values = cell.series.column(key)
        assert all(isinstance(value, int) for value in values)
        assert sum(values) == cell.predicted.value(key)  # type: ignore[arg-type]
    assert cell.series.column("heap_pages")[-1] == cell.predicted.heap_pages
    assert cell.by_itself is None


def test_middles_are_those_of_the_windows() -> None:
    """Of several runs they are known before any interval is made, and the same afterwards."""
    profile = _profile(run={"operations": 400, "clients": 2, "seed": 3})
    (cell,) = predict(profile, server="18.4", timing=Timing(windows=5), seeds=4).cells
    series = cell.series
    assert series is not None
    assert series.tables == [table.name for table in profile.tables]
    for key in KEYS:
        series.middles(key, "t")
    assert series.windows._made == [None] * 5  # type: ignore[attr-defined]
    for table in (None, *series.tables):
        for key in KEYS:
            before = series.middles(key, table)
            assert before == [middle(value) for value in series.column(key, table)]
    made = replace(series, windows=tuple(series.windows))
    assert made == series
    assert series.windows[-2:] == made.windows[-2:]
    assert made.tables == series.tables
    assert all(made.middles(key) == series.middles(key) for key in KEYS)
    assert any(isinstance(value, Interval) for value in series.column("wal_bytes"))


def test_a_clock_alone_changes_no_figure() -> None:
    """One client without autovacuum and checkpoints stays exact, with windows or without."""
    (without,) = predict(_profile(), server="18.4").cells
    (beside,) = predict(_profile(), server="18.4", timing=Timing(tps=3, windows=4)).cells
    assert without.predicted == beside.predicted
    assert without.series is None


def test_autovacuum_gives_intervals_and_says_what_it_assumes() -> None:
    """Over seeds; a pace that nobody gave stands under `assumed`."""
    server = {"autovacuum": True, "autovacuum_naptime_s": 1}
    found = predict(_profile({"operations": 8000}, server), server="18.4", seeds=4)
    assert "1000 transactions a second" in found.assumed["run.duration_s"]
    assert any("simulated clock" in line for line in found.assumed["twin.approximations"])
    (cell,) = found.cells
    assert isinstance(cell.predicted.wal_bytes, Interval)
    assert cell.by_itself is not None
    assert cell.by_itself.duration_s == 8
    kinds = {item.kind for item in cell.by_itself.happened}
    assert "autoanalyze" in kinds
    assert "checkpoint" not in kinds


def test_more_autovacuum_with_lower_thresholds() -> None:
    """A reloption overrides the setting, and more dead rows are gone sooner."""

    def vacuums(settings: Json) -> float:
        server = {"autovacuum": True, "autovacuum_naptime_s": 1, "settings": settings}
        (cell,) = predict(_profile({"operations": 8000}, server), server="18.4", seeds=2).cells
        assert cell.by_itself is not None
        return sum(item.kind == "autovacuum" for item in cell.by_itself.happened)

    assert vacuums({"autovacuum_vacuum_scale_factor": "0.02"}) > vacuums(
        {"autovacuum_vacuum_scale_factor": "0.5"}
    )


def test_counts_over_runs() -> None:
    """One number if all agree; else the range, with the coverage that a range of n has."""
    assert counted([3, 3, 3]) == 3
    assert counted([2, 4, 3]) == Interval(low=2, mid=3, high=4, level=0.5)


def test_cells_are_loaded_at_another_fillfactor() -> None:
    """The later setting is the cell's own; the profile that is loaded has the old one."""
    cells = make_cells(_profile(), [80, 70])
    loaded = loaded_at(cells, 100)
    assert [cell.fillfactor for cell in loaded] == [80, 70]
    assert [cell.later for cell in loaded] == [{"t": 80}, {"t": 70}]
    assert {cell.profile.table("t").fillfactor for cell in loaded} == {100}
    assert loaded_rows(loaded[0].profile) == 4000
    with pytest.raises(InputError, match=r"^fillfactor 5"):
        loaded_at(cells, 5)


def test_pages_stay_until_rows_move() -> None:
    """Altered, a full table loses its first updates of each page; rewritten it loses none."""
    found = predict(
        _profile({"operations": 20_000}),
        [80],
        server="18.4",
        timing=Timing(windows=20),
        from_fillfactor=100,
    )
    (cell,) = found.cells
    assert cell.rewritten is not None
    assert cell.effect is not None
    assert cell.series is not None
    first, *_, last = cell.series.column("hot_frac")
    assert isinstance(first, float)
    assert isinstance(last, float)
    assert first < 0.95
    assert last > 0.99
    assert cell.rewritten.predicted.hot_frac == 1
    assert cell.effect.verdict == "converges"
    assert cell.effect.after_s is not None
    assert 0 < cell.effect.after_s < 15
    assert cell.effect.after_updates_per_row == pytest.approx(cell.effect.after_s * 1000 / 4000)
    assert cell.predicted.heap_pages < cell.rewritten.predicted.heap_pages  # type: ignore[operator]


def _rewritten(rewrite: RewriteAsked, **run: Any) -> PredictedCell:
    """A table loaded at 100, altered to 80 when the run begins, and rewritten in the middle."""
    (cell,) = predict(
        _profile({"operations": 20_000} | run),
        [80],
        server="18.4",
        seeds=2,
        timing=Timing(windows=20),
        from_fillfactor=100,
        rewrite=rewrite,
    ).cells
    return cell


def test_vacuum_full_in_the_middle() -> None:
    """From there on the table is as one that was loaded at the new setting; its WAL is counted."""
    cell = _rewritten(RewriteAsked(at_frac=0.25))
    later, start = cell.rewritten_later, cell.rewritten
    assert later is not None
    assert start is not None
    assert later.series is not None
    assert cell.series is not None
    assert (later.at_s, later.until_s) == (5.0, 5.0)
    pages = later.series.column("heap_pages")
    assert pages[:5] == cell.series.column("heap_pages")[:5]
    assert set(pages[5:]) == {start.predicted.heap_pages}
    (work,) = later.tables
    assert (work.heap_pages_before, work.heap_pages_after) == (pages[4], start.predicted.heap_pages)
    assert work.versions == 4000
    assert isinstance(work.wal_bytes, int)
    before, at, after = (later.series.windows[n].value("wal_bytes") for n in (4, 5, 6))
    assert isinstance(at, int)
    assert at > work.wal_bytes > max(before, after)  # type: ignore[type-var]
    assert later.effect is not None
    assert later.effect.final_hot_frac == 1
    assert later.evidence == "exact"
    assert start.effect is not None
    assert start.effect.verdict == "at once"


def test_an_online_rewrite_holds_a_snapshot() -> None:
    """While rows are copied nothing is pruned: HOT falls; the new table then has all rows."""
    cell = _rewritten(RewriteAsked(at_frac=0.25, how="online", takes_s=5))
    later, start = cell.rewritten_later, cell.rewritten
    assert later is not None
    assert start is not None
    assert later.series is not None
    assert (later.at_s, later.until_s) == (5.0, 10.0)
    hot = [value for value in later.series.column("hot_frac") if isinstance(value, float)]
    assert min(hot[6:9]) < 0.6
    assert min(hot[10:]) > 0.95
    assert later.predicted.n_tup_upd == 20_000
    assert later.predicted.heap_pages == pytest.approx(start.predicted.heap_pages, rel=0.1)
    (work,) = later.tables
    assert isinstance(work.wal_records, int)
    assert work.wal_records > 4000 + 5000  # rows copied, and changes of 5 s caught up
    assert later.evidence == "model"


@pytest.mark.parametrize(
    ("rewrite", "said"),
    [
        (RewriteAsked(at_frac=0.0), "^rewrite 0"),
        (RewriteAsked(at_frac=1.0), "^rewrite 1"),
        (RewriteAsked(at_frac=0.5, takes_s=1.0), "^rewrite_for 1"),
        (RewriteAsked(at_frac=0.5, how="online", takes_s=-1.0), "^rewrite_for -1"),
        (RewriteAsked(at_frac=0.9, how="online", takes_s=5.0), "end after the run"),
    ],
)
def test_rewrites_that_are_none(rewrite: RewriteAsked, said: str) -> None:
    """A moment outside the run, an end behind it, and a duration of what has none."""
    with pytest.raises(InputError, match=said):
        _rewritten(rewrite)


def test_a_rewrite_needs_what_it_is_compared_with() -> None:
    """Without a setting before there is nothing to converge from."""
    with pytest.raises(InputError, match="from_fillfactor"):
        predict(_profile(), [80], server="18.4", rewrite=RewriteAsked(at_frac=0.5))


def _grown(operations: list[Json], fillfactor: int, snapshot: list[Json] | None = None) -> Growth:
    run: Json = {"operations": 20_000} | ({"snapshot": snapshot} if snapshot else {})
    profile = _profile(run, fillfactor=fillfactor, operations=operations)
    found = predict(profile, server="18.4", seeds=2, timing=Timing(windows=20))
    (cell,) = found.cells
    assert cell.growth is not None
    return cell.growth["t"]


def test_a_snapshot_for_ever_is_growth_without_bound() -> None:
    """Nothing is pruned while it is held, so each update adds room; without it nothing grows."""
    held = _grown([UPDATE], 80, [{"start_frac": 0.05, "length_frac": 0.95}])
    assert (held.verdict, held.by_rows_frac) == ("without bound", 0)
    assert held.pages_added_frac > 0.2
    assert _grown([UPDATE], 80).verdict == "steady"


def test_orders_grow_with_their_rows() -> None:
    """Inserted, updated once, never touched again: half of each page at 50, row by row."""
    newest = UPDATE | {"pick": {"distribution": "newest"}}
    grown = _grown([{"table": "t", "kind": "insert"}, newest], 50)
    assert grown.verdict == "with its rows"
    assert grown.by_rows_frac > 0.75 * grown.pages_added_frac > 0.15


def test_a_heap_on_its_way_to_a_rewritten_ones_size_converges() -> None:
    """
    Growing rows at 85 on pages loaded at 100: 1.2 % more in the last quarter, as fast as before.

    That was called growth without bound, although the rewritten table was as large and kept still.
    """
    profile = read_profile(EXAMPLES / "wide-rows.toml")
    found = predict(profile, [85], server="18.4", timing=Timing(windows=60), from_fillfactor=100)
    assert found.cells[0].growth is not None
    growth = found.cells[0].growth["documents"]
    assert growth.pages_added_frac > 0.01
    assert growth.verdict == "converging"
    rewritten = found.cells[0].rewritten
    assert rewritten is not None
    assert growth.limit_pages == rewritten.predicted.heap_pages


def test_growth_that_has_just_begun_is_undecided() -> None:
    """Four passes fill the pages, the fifth needs new ones: two regimes, and no end of either."""
    pages = [143] * 45 + [143 + 8 * n for n in range(1, 16)]
    found = growth_of(_series([0] * 60, pages), {"t": 1000})["t"]
    assert (found.verdict, found.heap_pages) == ("undecided", 263)


def test_growth_that_slows_down() -> None:
    """Each quarter adds less than half of what the one before did."""
    pages = [100, 140, 160, 170, 175, 180, 182, 184]
    assert growth_of(_series([9000] * 8, pages), {"t": 1000})["t"].verdict == "slowing"
    assert growth_of(_series([9000] * 2, pages[:2]), {"t": 1000}) == {}


def _series(
    hot: Sequence[int], pages: Sequence[int] | None = None, inserted: int = 0, updates: int = 10_000
) -> Series:
    windows = []
    for n, number in enumerate(hot):
        sums: dict[str, int | None] = dict.fromkeys(
            ("n_tup_del", "n_tup_newpage_upd", "index_pages", "wal_records", "wal_bytes"), 0
        )
        sums |= {"wal_fpi_bytes": 0, "wal_fpi": 0, "pages_modified": 1}
        sums |= {"n_tup_ins": inserted, "n_tup_upd": updates, "n_tup_hot_upd": number}
        sums |= {"heap_pages": 100 if pages is None else pages[n]}
        windows.append(put_together({"t": sums}, {}))
    return Series(t_s=tuple(float(n + 1) for n in range(len(hot))), windows=tuple(windows))


@pytest.mark.parametrize(
    ("hot", "verdict", "after_s"),
    [
        ([9000] * 8, "at once", 0.0),
        ([5000, 7000, 8900, 9000, 9010, 9000, 8990, 9000], "converges", 2.0),
        ([5000, 5500, 6000, 6500, 7000, 7500, 8000, 8500], "does not converge", None),
        ([9000, 7000, 9000, 7000, 9000, 7000, 9000, 7000], "does not converge", None),
    ],
)
def test_verdicts(hot: list[int], verdict: str, after_s: float | None) -> None:
    """Within a point of the share over the last quarter, and staying there."""
    found = takes_effect(_series(hot), None, rows=1000)
    assert (found.verdict, found.after_s) == (verdict, after_s)
    assert not found.still_grows
    assert found.rewritten_hot_frac is None


def test_few_updates_a_window_may_be_off_by_chance() -> None:
    """Fifty updates a window scatter by more than a point without any change."""
    found = takes_effect(_series([45, 46, 44, 46, 45, 44, 46, 45], updates=50), None, rows=1000)
    assert found.verdict == "at once"


def test_growth_is_recognised_unless_rows_explain_it() -> None:
    """Pages of the last quarter beyond a per cent, rows that were added aside."""
    pages = [100, 104, 108, 112, 116, 120, 124, 128]
    grown = takes_effect(_series([9000] * 8, pages), None, rows=1000)
    assert grown.still_grows
    assert grown.pages_added_frac == pytest.approx(128 / 120 - 1)
    filled = takes_effect(_series([9000] * 8, pages, inserted=40), None, rows=960)
    assert not filled.still_grows


def test_a_table_without_updates() -> None:
    """Nothing to see."""
    assert takes_effect(_series([0] * 8, updates=0), None, rows=10).verdict == "no updates"


def test_sparklines() -> None:
    """From the least to the most in eight heights; gaps stay gaps; long ones are joined."""
    assert time_tables.sparkline([0, 1, 2, 3, 4, 5, 6, 7]) == "▁▂▃▄▅▆▇█"
    assert time_tables.sparkline([1, None, 2]) == "▁ █"
    assert time_tables.sparkline([None]) == ""
    assert len(set(time_tables.sparkline([0.7, 0.7, 0.7]))) == 1
    assert time_tables.sparkline([1.0] * 60 + [2.0] * 60, width=4) == "▁▁██"
