"""The picture of an advice's card: what is grey, steps, and where labels stand."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from xml.etree import ElementTree

import synthetic_advice

from pgheadroom.outcome import middle
from pgheadroom.report.advice import card_chart, cards
from pgheadroom.report.advice import drawing as advice_drawing


def test_what_the_policy_excludes_is_grey() -> None:
    """The zone ends at the lowest setting within the limit; without a limit there is none."""
    table = synthetic_advice.table()
    states = cards.states(table)
    assert card_chart.excluded(table, None) is None
    limit = card_chart.excluded(table, 0.3)
    now = table.point(table.fillfactor)
    assert limit is not None
    assert now is not None
    for point in table.curve:
        grows = float(middle(point.heap_bytes) or 0) / float(middle(now.heap_bytes) or 1) - 1
        assert (grows <= 0.3) == (point.fillfactor >= limit)
    for growth, drawn in ((0.3, 1), (None, 0)):
        found = card_chart.picture(table, states, growth)
        assert found is not None
        assert found[1].count('class="zone"') == drawn
        assert ("heap limit" in found[1]) == bool(drawn)


def test_few_wide_rows_make_steps() -> None:
    """Where a page has five rows or four, no setting lies between: a slope would show one."""
    table = synthetic_advice.table()
    wide = replace(table, rows=table.rows // 40)
    assert not advice_drawing.is_stepped(table)
    assert advice_drawing.is_stepped(wide)
    for one in (table, wide):
        found = card_chart.picture(one, cards.states(one), None)
        assert found is not None
        match = re.search(r'<polyline class="line" points="([^"]+)"', found[1])
        assert match is not None
        points = [tuple(map(float, point.split(","))) for point in match[1].split()]
        slopes = [a[0] != b[0] and a[1] != b[1] for a, b in itertools.pairwise(points)]
        assert any(slopes) == (one is table)


def test_labels_stand_at_their_marks() -> None:
    """An outcome beside the forecast is labelled there, not where another mark is."""
    table = synthetic_advice.table()
    *before, foreseen = cards.states(table)
    outcome = replace(foreseen, name="outcome", evidence="measured", hot_frac=0.995)
    found = card_chart.picture(table, [*before, foreseen, outcome], None)
    assert found is not None
    groups = [item for item in ElementTree.fromstring(found[1]) if item.findall("*[@class='mark']")]
    assert len(groups) == 4
    (mark,) = groups[-1].findall("*[@class='outcome']")
    (label,) = groups[-1].findall("*[@class='mark']")
    assert (label.text or "").startswith("outcome 99.5")
    assert abs(float(label.get("y") or 0) - float(mark.get("y") or 0) - 5) <= 30


def test_the_curve_crosses_no_label() -> None:
    """Neither of rows that are usual nor of wide ones, whose curve has steps."""
    table = synthetic_advice.table()
    for one in (table, replace(table, rows=table.rows // 40)):
        found = card_chart.picture(one, cards.states(one), None)
        assert found is not None
        tree = ElementTree.fromstring(found[1])
        (line,) = tree.findall("*[@class='line']")
        corners = [tuple(map(float, part.split(","))) for part in line.get("points", "").split()]
        labels = tree.findall(".//*[@class='mark']")
        assert len(labels) == 3
        for label in labels:
            end, at, width = float(label.get("x", "")), float(label.get("y", "")), 60
            for step in range(200):
                x = end - width * step / 200
                for (x0, y0), (x1, y1) in itertools.pairwise(corners):
                    if x0 < x <= x1:
                        y = y0 + (y1 - y0) * (x - x0) / (x1 - x0)
                        assert not at - 10 < y < at + 3, (label.text, x, y)
