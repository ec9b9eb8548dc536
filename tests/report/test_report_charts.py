"""Charts: valid descriptions that draw, honest axes, and no foreign text in expressions."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import altair as alt
import pytest
import synthetic
import synthetic_lab
import vl_convert

import showing
from pgheadroom.forms import FieldError
from pgheadroom.report import charts as forms
from pgheadroom.report.charts import Chart

RECORDS = Path(__file__).parents[2] / "experiments" / "record"

MADE = {
    "update-cost": lambda: (synthetic.update_cost(), []),
    "update-cost with indexes": lambda: (synthetic.update_cost(indexes=3, scale=10), []),
    "fillfactor": synthetic.fillfactor,
    "fillfactor of one group": lambda: synthetic.fillfactor(memories=("fits",), seconds=3),
    "unknown": lambda: (synthetic.unknown(), []),
    "300 cells": lambda: (synthetic.unknown(cells=300), []),
    "hostile": synthetic.hostile,
    "tprocc": lambda: (recorded("tprocc"), []),
    "tprocc with one number of users": lambda: (recorded("tprocc-throughput"), []),
}


def recorded(name: str) -> dict[str, Any]:
    """The result of a record that comes with the project."""
    text = (RECORDS / name / "result.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def walk(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        for item in value.values():
            yield from walk(item)
    elif isinstance(value, list):
        for item in value:
            yield from walk(item)


def layers(spec: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A chart in parts with a mark each, its frames with any; rows are no part of the grammar."""
    parts = ("datasets", "vconcat", "layer", "spacing")
    for view in (spec, *spec.get("vconcat", ())):
        frame = {key: item for key, item in view.items() if key not in parts}
        yield {"data": {"values": []}, "mark": "point", **frame}
        yield from view.get("layer", ())


@functools.cache
def accepted(layer: str) -> None:
    """Hold a layer to Vega-Lite's grammar; `from_dict` makes objects too, in seven times it."""
    alt.Chart.validate(json.loads(layer))


def titled(charts: list[Chart], title: str) -> Chart:
    return next(chart for chart in charts if chart.title == title)


@pytest.mark.parametrize("name", MADE)
def test_every_chart_draws(name: str) -> None:
    """Vega-Lite accepts each description and draws it, with words for those who cannot see it."""
    charts = showing.charts(*MADE[name]())
    assert charts
    for chart in charts:
        for layer in layers(chart.spec):
            accepted(json.dumps(layer))
        svg = vl_convert.vegalite_to_svg(forms.resolved(chart.spec))
        assert svg.count("<path") > 5
        assert "var(--" not in svg
        assert chart.alt
        assert chart.title
        json.dumps(chart.spec, allow_nan=False)


def test_the_key_chart_comes_first() -> None:
    """What answers the question is the first chart, and there is one such."""
    for made in (MADE["update-cost"], MADE["fillfactor"], MADE["unknown"]):
        sections = [chart.section for chart in showing.charts(*made())]
        assert sections[0] == "key"
        assert sections.count("key") == 1


def test_effect_has_intervals_and_a_line_at_one() -> None:
    """Each ratio is drawn with its interval against 1; undecided ones are hollow."""
    effect = titled(showing.charts(*synthetic.fillfactor()), "Effect against fillfactor 100")
    datasets = effect.spec["datasets"].values()
    assert [{"at": 1.0}] in datasets
    points = [row for rows in datasets for row in rows if "hollow" in row]
    assert all("low" in row and "high" in row for row in points)
    undecided = [row for row in points if "undecided" in row["said"]]
    assert undecided
    assert all(row["hollow"] for row in undecided)
    assert {row["x"] for row in points if row["control"]} == {"100"}


def test_the_effect_is_against_what_was_compared_with() -> None:
    """Without a fillfactor of 100 the reference is the largest; two records have no single one."""
    result, _ = synthetic.fillfactor(memories=("fits",))
    for item in (*result["comparisons"], *result["controls"]):
        item["against"] = {**item["against"], "fillfactor": 90}
    effect = titled(showing.charts(result, []), "Effect against fillfactor 90")
    assert "Paired ratio to fillfactor 90;" in effect.caption
    assert "At 90: the A/A control" in effect.caption
    assert "100" not in effect.caption
    result["comparisons"][0]["against"] = {**result["comparisons"][0]["against"], "fillfactor": 80}
    effect = titled(showing.charts(result, []), "Effect")
    assert "Ratio to what each is compared with;" in effect.caption


def test_bars_begin_at_zero() -> None:
    """A bar whose axis is cut off lies about proportions."""
    for chart in showing.charts(*synthetic.fillfactor()):
        for part in walk(chart.spec):
            mark = part.get("mark")
            if isinstance(mark, dict) and mark.get("type") == "bar":
                assert part["encoding"]["y"]["scale"]["zero"] is True


def test_document_figures_are_marked() -> None:
    """The document's figures stand on our bars, where it has any."""
    with_document = showing.charts(synthetic.update_cost(), [])[0]
    rows = [row for rows in with_document.spec["datasets"].values() for row in rows]
    assert any(row.get("document") == pytest.approx(272.0132) for row in rows)
    assert "document" in with_document.caption
    without = showing.charts(synthetic.update_cost(scale=10), [])[0]
    assert "document" not in without.caption


def test_indexes_get_a_chart_of_time_and_wal() -> None:
    """With the factor `indexes`, time and WAL are drawn against their number, with intervals."""
    result = synthetic.update_cost(indexes=3, scale=10)
    chart = titled(
        showing.charts(result, []), "Time and WAL against the number of additional indexes"
    )
    rows = [row for rows in chart.spec["datasets"].values() for row in rows]
    assert {row["x"] for row in rows} == {0, 1, 2, 3}
    assert any("low" in row for row in rows)


def test_series_mark_their_events() -> None:
    """Checkpoints and autovacuums are lines over the per-second series."""
    charts = showing.charts(*synthetic.fillfactor())
    speed = [chart for chart in charts if chart.title.startswith("Transactions per second")]
    assert len(speed) == 3
    events = [row for rows in speed[0].spec["datasets"].values() for row in rows if "kind" in row]
    assert {row["kind"] for row in events} == {"checkpoint", "autovacuum", "autoanalyze"}


def test_long_series_are_joined() -> None:
    """Half a day by the second is drawn with a point per pixel, and the caption says so."""
    result, series = synthetic.fillfactor(memories=("fits",), seconds=43200)
    chart = next(c for c in showing.charts(result, series) if c.title.startswith("Transactions"))
    assert all(len(rows) <= 300 for rows in chart.spec["datasets"].values())
    assert "144 s (mean)" in chart.caption


@pytest.mark.parametrize(
    "series",
    [
        {"t_s": []},
        {"t_s": [], "tps": []},
        {"t_s": [1], "tps": [None]},
        {"t_s": [1, 2], "tps": [1]},
    ],
)
def test_poor_series_are_left_out(series: dict[str, Any]) -> None:
    """A series without points draws nothing and breaks nothing."""
    result, _ = synthetic.fillfactor()
    for chart in showing.charts(result, [{"cell": {}, "repetition": 1} | series]):
        vl_convert.vegalite_to_svg(forms.resolved(chart.spec))


@pytest.mark.parametrize(
    ("at", "series"),
    [
        ("cell", {"cell": 3}),
        ("t_s", {"t_s": None}),
        (r"t_s\[0\]", {"t_s": ["x", 2]}),
        ("tps", {"tps": 3}),
        (r"events\[0\].t_s", {"events": [{"t_s": None, "kind": "checkpoint", "text": ""}]}),
        (r"events\[0\]", {"events": [3]}),
    ],
)
def test_damaged_series_are_refused(at: str, series: dict[str, Any]) -> None:
    """Where they are read, with the place."""
    with pytest.raises(FieldError, match=f"^{at}: found"):
        showing.series_of([{"cell": {}, "repetition": 1, "t_s": []} | series])


def test_results_without_values_have_no_chart() -> None:
    """No numbers, no picture: an empty frame would look like a finding."""
    for name in ("update-cost", "fillfactor", "x"):
        assert showing.charts({"name": name, "cells": [{}]}, []) == []


def test_foreign_text_is_in_no_expression() -> None:
    r"""
    Names cannot run as expressions.

    Vega-Lite pastes titles of axes into expressions and escapes only the quote, so
    that `\"` ended the string; and a field named a.b would be read as a path.
    """
    result = synthetic.unknown()
    name = 'x\\" + warn(1) + "'
    result["factors"][0]["name"] = name
    result["measures"][0]["name"] = name + "m"
    for cell in result["cells"]:
        cell[name] = cell.pop("step")
        cell[name + "m"] = cell.pop("rows_per_s")
    for chart in showing.charts(result, []):
        bare = {key: item for key, item in chart.spec.items() if key != "datasets"}
        assert '\\"' not in json.dumps(bare).replace("\\\\", "")
        assert "\\\\" not in json.dumps(bare)
        fields = {part["field"] for part in walk(bare) if isinstance(part.get("field"), str)}
        assert fields <= {"x", "mid", "low", "group", "told", "at"}


def test_events_outside_the_window_stay_outside() -> None:
    """
    A vacuum that began before the window is shaded from its start, and none widens the panel.

    On real runs autovacuum was at work when the window opened; its line at -0.7 s stretched the
    panel out of the figure.
    """
    result, series = synthetic.fillfactor(memories=("fits",))
    for item in series:
        item["events"] = [
            {"t_s": -5, "kind": "autovacuum", "duration_s": 8, "text": "began before"},
            {"t_s": -5, "kind": "autovacuum", "duration_s": 1, "text": "ended before"},
            {"t_s": 9999, "kind": "checkpoint", "duration_s": 1, "text": "after"},
        ]
    chart = next(c for c in showing.charts(result, series) if c.title.startswith("Transactions"))
    events = [row for rows in chart.spec["datasets"].values() for row in rows if "kind" in row]
    assert {row["told"] for row in events} == {"autovacuum at -5.0 s, 8.0 s long: began before"}
    assert {(row["begin"], row["until"]) for row in events} == {(0, 3)}
    rules = [
        part for part in walk(chart.spec) if part.get("mark", {}) and "rule" in str(part["mark"])
    ]
    assert all(part["mark"]["clip"] for part in rules)


def test_ratios_that_reach_far_have_a_logarithmic_axis() -> None:
    """With two pairs an interval may reach from 0.05 to 41: a linear axis would hide half of it."""
    result, _ = synthetic.fillfactor(memories=("fits",))
    result["comparisons"][0]["ratio"] = {"low": 0.05, "mid": 1.5, "high": 41.5, "level": 0.95}
    effect = titled(showing.charts(result, []), "Effect against fillfactor 100")
    scales = [part["scale"] for part in walk(effect.spec) if part.get("field") == "mid"]
    assert any(scale.get("type") == "log" for scale in scales)
    assert "logarithmic" in effect.caption


def test_tprocc_goes_by_what_varies() -> None:
    """Users across where there are several; else a bar for each fillfactor, with its interval."""
    several = showing.charts(recorded("tprocc"), [])
    titled(several, "Throughput and processors by users")
    one = showing.charts(recorded("tprocc-throughput"), [])
    shown = titled(one, "Throughput and processors by fillfactor")
    rows = [row for data in shown.spec["datasets"].values() for row in data if "mid" in row]
    assert {row["x"] for row in rows} == {"100", "80", "60", "40"}
    assert all(row["low"] < row["mid"] < row["high"] for row in rows if "low" in row)


def test_caches_are_marked_where_the_grid_reaches_them() -> None:
    """Data over shared_buffers from 0.4 to 3.2; memory, ten or two times as large as these."""

    def marks(memory_over_buffers: float) -> dict[str, float]:
        result = synthetic_lab.clients_scale()
        for cell in result["cells"]:
            cell["data_frac"] = 0.4 * cell["data_scale"]
            cell["memory_frac"] = cell["data_frac"] / memory_over_buffers
        chart = titled(
            showing.charts(result, []), "The knees: where data exceed shared_buffers, and memory"
        )
        assert vl_convert.vegalite_to_svg(forms.resolved(chart.spec))
        rows = [row for data in chart.spec["datasets"].values() for row in data if "at" in row]
        return {row["name"]: row["at"] for row in rows if row["name"]}

    assert marks(10) == {"shared_buffers": 1.0}
    assert marks(2) == {"shared_buffers": 1.0, "memory": pytest.approx(2.0)}


@pytest.mark.parametrize("largest", [0.00004, 0.0016, 0.01, 0.031, 0.04, 0.5, 1.0])
def test_small_shares_have_ticks_that_differ(largest: float) -> None:
    """Up to 0.16 % every tick of five was labelled "0%"."""
    written = forms.share_format(largest)
    decimals = int(written[1])
    step_pct = 100 * largest / 5
    assert round(step_pct, decimals) > 0
    assert (written == ".0%") is (largest >= 0.04)
    assert "~" in written or decimals == 0, "no zeros behind the last digit that counts"
