"""Measures that were predicted too: one table and one chart set them beside each other."""

from __future__ import annotations

from typing import Any

import altair as alt
import synthetic
import vl_convert

import showing
from pgheadroom.report import charts as forms

TITLE = "Predicted beside measured"


def _foreseen(result: dict[str, Any], names: tuple[str, ...], *, by_group: bool) -> dict[str, Any]:
    """The result with predictions; either the same in all groups of a fillfactor, or not."""
    for name in names:
        known = next(item for item in result["measures"] if item["name"] == name)
        result["measures"].append({**known, "name": f"predicted_{name}", "evidence": "predicted"})
    for number, cell in enumerate(result["cells"]):
        for name in names:
            mid = number + 1 if by_group else 0.5
            cell[f"predicted_{name}"] = mid
            cell[f"predicted_{name}_interval"] = {
                "low": mid - 0.1, "mid": mid, "high": mid + 0.1, "level": 0.9,
            }  # fmt: skip
    return result


def _groups(chart: forms.Chart) -> set[str]:
    return {row["group"] for rows in chart.spec["datasets"].values() for row in rows}


def test_a_prediction_that_groups_share_is_drawn_once() -> None:
    """Three sizes of memory are measured, and one prediction stands beside them: it draws."""
    result, series = synthetic.fillfactor(seconds=3)
    _foreseen(result, ("hot_frac", "heap_pages"), by_group=False)
    chart = next(item for item in showing.charts(result, series) if item.title == TITLE)
    assert _groups(chart) == {
        "measured · fits", "measured · twice", "measured · ten times", "predicted",
    }  # fmt: skip
    alt.Chart.from_dict(chart.spec)
    assert vl_convert.vegalite_to_svg(forms.resolved(chart.spec)).count("<path") > 5
    assert "intervals of 90 % to 97.9 % coverage" in chart.caption


def test_predictions_that_differ_have_groups_of_their_own() -> None:
    """Otherwise one would hide the others."""
    result, series = synthetic.fillfactor(memories=("fits", "twice"), seconds=3)
    _foreseen(result, ("hot_frac",), by_group=True)
    chart = next(item for item in showing.charts(result, series) if item.title == TITLE)
    assert {"predicted · fits", "predicted · twice"} < _groups(chart)


def test_each_measure_stands_beside_its_prediction() -> None:
    """In pairs of columns, evidence named; and not once more among further measures."""
    result, _ = synthetic.fillfactor(memories=("fits",), seconds=3)
    _foreseen(result, ("hot_frac", "wal_bytes_per_tx"), by_group=True)
    tables = showing.tables(result)
    table = next(item for item in tables if item.title == "Measured beside predicted")
    keys = [column.key for column in table.columns if column.group is not None]
    assert keys == [
        "hot_frac", "predicted_hot_frac", "wal_bytes_per_tx", "predicted_wal_bytes_per_tx",
    ]  # fmt: skip
    assert {c.evidence for c in table.columns if c.key.startswith("pred")} == {"predicted"}
    others = [c.key for other in tables if other is not table for c in other.columns]
    assert not [key for key in others if key.startswith("predicted_")]


def test_update_cost_marks_its_predictions() -> None:
    """A circle on each bar, which the caption explains; without predictions there is none."""
    plain = showing.charts(synthetic.update_cost(), [])[0]
    assert "circle" not in plain.caption
    result = synthetic.update_cost()
    chart = showing.charts(_foreseen(result, ("pages_dirtied",), by_group=True), [])[0]
    assert "The circle is predicted." in chart.caption
    alt.Chart.from_dict(chart.spec)
