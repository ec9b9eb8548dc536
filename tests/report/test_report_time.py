"""Predictions over simulated time: sentences, tables, charts and the page."""

from __future__ import annotations

import io
import re
from functools import cache
from typing import Any

import pytest
import vl_convert
from rich.console import Console

import showing
from pgheadroom.predict import Prediction, RewriteAsked, Timing, predict
from pgheadroom.profile import parse_profile
from pgheadroom.report import charts, text, views
from pgheadroom.report.proof import heading, time_tables

Json = dict[str, Any]
HOSTILE = "t <script>alert(1)</script>"
SERVER = {"autovacuum": True, "autovacuum_naptime_s": 2, "checkpoint_interval_s": 30}


@cache
def _result(shape: str) -> Prediction:
    """A prediction of a small table."""
    levels, before, server, name = {
        "one cell": (None, None, SERVER, "t"),
        "curve": ([100, 90, 80, 70, 60, 50, 40, 30], None, SERVER, "t"),
        "change": ([90, 80], 100, {}, "t"),
        "full": ([90, 80], 100, {}, "t"),
        "online": ([90, 80], 100, {}, HOSTILE),
        "hostile": (None, None, SERVER, HOSTILE),
    }[shape]
    rewrite = {
        "full": RewriteAsked(at_frac=0.25),
        "online": RewriteAsked(at_frac=0.25, how="online", takes_s=20),
    }.get(shape)
    profile = parse_profile(
        {
            "schema_version": 1,
            "server": server,
            "table": [
                {
                    "name": name,
                    "rows": 1000,
                    "columns": [
                        {"name": "id", "type": "int4"},
                        {"name": "n", "type": "int4"},
                        {"name": "filler", "type": "bpchar(84)"},
                    ],
                    "indexes": [{"name": "t_pkey", "columns": ["id"], "unique": True}],
                }
            ],
            "operation": [
                {
                    "table": name,
                    "kind": "update",
                    "sets": ["n"],
                    "pick": {"distribution": "uniform"},
                }
            ],
            "run": {"operations": 4000},
        }
    )
    return predict(
        profile,
        levels,
        server="18.4",
        seeds=3,
        timing=Timing(tps=50, windows=8),
        from_fillfactor=before,
        rewrite=rewrite,
    )


SHAPES = ("one cell", "curve", "change", "full", "online", "hostile")


def _text(result: Json, *, width: int = 100, brief: bool = True) -> str:
    stream = io.StringIO()
    console = Console(file=stream, width=width, highlight=False, no_color=True)
    text.print_tables(showing.tables(result, brief=brief), console)
    return stream.getvalue()


def test_what_the_server_does_is_said() -> None:
    """How long the run is, and how often autovacuum and checkpoints come."""
    said = heading.findings(_result("one cell"))
    assert re.search(
        r"In 80 s the server does by itself: .*autoanalyze.* and 2 checkpoints", said[-1]
    )


def test_a_change_is_the_answer() -> None:
    """From where to where, when it has taken effect, and what a rewrite would give."""
    result = _result("change")
    said = heading.findings(result)
    assert len(said) == 2
    assert re.match(
        r"From 100 to 90 without a rewrite: HOT (comes to \S+ % within \d+ s \(|is \S+ % from the "
        "first window on)",
        said[0],
    )
    assert "if rewritten at the start" in said[0]
    assert "not rewritten" in (views.heading(result).question or "")
    assert "Loaded at 100, altered when the run begins" in _text(result)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("width", [80, 120])
def test_fits_the_terminal(shape: str, width: int) -> None:
    """No line is wider, lines over time included."""
    shown = _text(_result(shape), width=width)
    assert max(map(len, shown.splitlines())) <= width
    assert "Over simulated time" in shown
    assert any(block in shown for block in "▁█")


def test_a_long_curve_shows_a_few_cells() -> None:
    """Evenly, both ends, and how many there are besides."""
    shown = _text(_result("curve"), width=120)
    assert re.findall(r"^ fillfactor (\d+) *$", shown, re.MULTILINE) == ["100", "60", "30"]
    assert "5 more fillfactors" in shown
    assert time_tables.chosen([showing.cell({})] * 8, 3) == [0, 4, 7]
    assert time_tables.chosen([showing.cell({})] * 2, 3) == [0, 1]


@pytest.mark.parametrize("shape", SHAPES)
def test_charts_draw(shape: str) -> None:
    """Lines over time compile; they come first where they are the answer."""
    drawn = showing.charts(_result(shape), [])
    (chart,) = [chart for chart in drawn if chart.title == "Over simulated time"]
    svg = vl_convert.vegalite_to_svg(charts.resolved(chart.spec))
    assert "<svg" in svg
    assert "<script" not in svg
    assert chart.section == ("time" if shape == "curve" else "key")
    panels = [view["title"]["text"] for view in chart.spec["vconcat"]]
    assert panels[0].startswith("HOT updates")
    assert ("What the server does by itself" in panels) == (
        shape not in ("change", "full", "online")
    )


def test_both_states_are_drawn() -> None:
    """Altered and rewritten, window by window."""
    chart = showing.charts(_result("change"), [])[0]
    (line,) = chart.spec["vconcat"][0]["layer"]
    rows = chart.spec["datasets"][line["data"]["name"]]
    assert {row["side"] for row in rows} == {"altered", "rewritten"}
    assert len(rows) == 2 * 2 * 8


@pytest.mark.parametrize(
    ("shape", "when"), [("full", "by VACUUM FULL at 20 s"), ("online", "online from 20 to 40 s")]
)
def test_the_moment_of_a_rewrite_is_shown(shape: str, when: str) -> None:
    """In the sentence, the table, the lines of a terminal, and as a mark in each panel."""
    result = _result(shape)
    assert all(re.search(rf"if rewritten .*{when}", said) for said in heading.findings(result)[:2])
    shown = _text(result, width=120)
    assert f"Rewritten {when}" in shown
    assert f"fillfactor 80, rewritten {when}" in shown
    assert ("A model." in shown) == (shape == "online")
    (chart,) = [one for one in showing.charts(result, []) if one.title == "Over simulated time"]
    for panel in chart.spec["vconcat"]:
        line, *marks = panel["layer"]
        rows = chart.spec["datasets"][line["data"]["name"]]
        assert {row["side"] for row in rows} == {"altered", "rewritten", "rewritten later"}
        assert len(marks) == (2 if shape == "online" else 1)
        (mark,) = chart.spec["datasets"][marks[0]["data"]["name"]]
        assert (mark["x"], mark["told"]) == (20, f"rewritten {when}")


def test_growth_is_said() -> None:
    """The worst cell of each table, in a sentence; what is steady needs none."""
    growth = {"pages_added_frac": 0.2, "by_rows_frac": 0.0, "verdict": "without bound"}
    steady = {"pages_added_frac": 0.0, "by_rows_frac": 0.0, "verdict": "steady"}
    cells = [showing.cell({"growth": {"t": found}}) for found in (steady, growth)]
    assert time_tables.findings(cells, [90, 80]) == [
        "t at fillfactor 80 grows without bound, as fast at the end as before: the last quarter of "
        "the run adds 20.0 % to its heap."
    ]
    assert time_tables.findings(cells[:1], [90]) == []


@pytest.mark.parametrize(
    ("growth", "said"),
    [
        (
            {"verdict": "converging", "limit_pages": 1000.0, "heap_pages": 900.0},
            "t is on its way to the size that a rewrite gives, 1000 pages: the last quarter of the "
            "run adds 20.0 % to its heap, 25 % of that by more rows.",
        ),
        (
            {"verdict": "converging", "limit_pages": 1000.0, "heap_pages": 1004.0},
            "t has come to the size that a rewrite gives, 1000 pages: the last quarter of the run "
            "adds 20.0 % to its heap, 25 % of that by more rows.",
        ),
        (
            {"verdict": "undecided"},
            "t still grows, and a longer run would tell whether it stops: the last quarter of the "
            "run adds 20.0 % to its heap, 25 % of that by more rows.",
        ),
    ],
)
def test_where_growth_leads(growth: Json, said: str) -> None:
    """Size and way, never an end that the run does not show."""
    cell = {"growth": {"t": {"pages_added_frac": 0.2, "by_rows_frac": 0.05} | growth}}
    assert time_tables.findings([showing.cell(cell)], [90]) == [said]


@pytest.mark.parametrize(
    ("rewritten", "later", "said"),
    [
        (None, None, "From 100 to 85 without a rewrite: HOT comes to 98.1 % within 210 s (0.29 "
         "updates a row)."),
        (0.98101, None, "within 210 s (0.29 updates a row), and the same if rewritten at the "
         "start."),
        (0.981, 0.981, "and the same if rewritten at the start or by VACUUM FULL at 60 s."),
        (1.0, 1.0, "; 100.0 % if rewritten at the start or by VACUUM FULL at 60 s."),
        (1.0, 0.99, "; 100.0 % if rewritten at the start, 99.0 % if rewritten by VACUUM FULL at "
         "60 s."),
    ],
)  # fmt: skip
def test_what_a_rewrite_would_give(rewritten: float | None, later: float | None, said: str) -> None:
    """Equal shares are said once; no share is said to be an effect of the setting."""
    effect = {"verdict": "converges", "after_s": 210.0, "after_updates_per_row": 0.29}
    effect |= {"final_hot_frac": 0.981, "rewritten_hot_frac": rewritten}
    cell: Json = {"from_fillfactor": 100, "effect": effect}
    if later is not None:
        cell["rewritten_later"] = {
            "how": "full", "at_s": 60.0, "until_s": 60.0, "effect": {"final_hot_frac": later}
        }  # fmt: skip
    (found,) = time_tables.findings([showing.cell(cell)], [85])
    assert found.endswith(said)


def test_the_page_holds_it_all() -> None:
    """Chart and tables under their own heading; a table's name cannot become a script."""
    page = showing.page([(_result("hostile"), ())], title="t")
    assert "Over time" in page
    assert "Window by window" in page
    assert "<script>alert" not in page
