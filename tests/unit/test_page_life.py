"""A page's life: what the twin notes of one page, in words and pictures."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import Any

import pytest

from pgheadroom.errors import InputError
from pgheadroom.page_life import PageLife, read_life
from pgheadroom.predict.page import predict_page
from pgheadroom.profile import Profile, parse_profile
from pgheadroom.report.page_life import drawing as life_drawing
from pgheadroom.report.page_life import html as life_html
from pgheadroom.report.page_life import text as life_text


def _profile(operations: int = 2000, fillfactor: int = 100) -> Profile:
    data: dict[str, Any] = {
        "schema_version": 1,
        "server": {"version": "18.4", "full_page_writes": False},
        "table": [
            {
                "name": "t",
                "rows": 300,
                "fillfactor": fillfactor,
                "columns": [
                    {"name": "id", "type": "int4"},
                    {"name": "n", "type": "int4"},
                    {"name": "pad", "type": "bpchar(64)"},
                ],
                "indexes": [{"name": "t_pkey", "columns": ["id"], "unique": True}],
            }
        ],
        "operation": [{"table": "t", "kind": "update", "sets": ["n"]}],
        "run": {"operations": operations, "seed": 3},
    }
    return parse_profile(data)


@pytest.fixture(scope="module")
def life() -> PageLife:
    """A page that updates leave, and that readers then prune again and again."""
    return predict_page(_profile(), 0).life


def test_events_follow_from_each_other(life: PageLife) -> None:
    """Each event's page is the one before with what the event says, and no other change."""
    for before, event in zip(life.events, life.events[1:], strict=False):
        if event.number != before.number + 1:
            continue
        old, new = before.page, event.page
        if event.kind == "hot_update":
            assert new.items[event.details["new"] - 1].heap_only
            assert new.items[event.details["old"] - 1].next == event.details["new"]
            assert new.pd_upper == old.pd_upper - 104
        elif event.kind == "pruned":
            assert new.pd_upper - old.pd_upper == event.details["freed_bytes"]
            for root, to in event.details["redirected"]:
                assert new.items[root - 1].to == to
            assert all(new.items[item - 1].kind == "dead" for item in event.details["dead"])
        elif event.kind == "update_left":
            assert new.is_full
            assert new.items[event.details["old"] - 1].replaced
            assert new.pd_upper == old.pd_upper


def test_a_page_is_the_sum_of_its_parts(life: PageLife) -> None:
    """Header, line pointers, free space and tuples are 8192 bytes, whatever happened."""
    for event in life.events:
        page = event.page
        stored = sum(page.items[number - 1].stored_bytes for number in page.storage)
        assert page.pd_upper + stored == 8192
        assert page.pd_lower == 24 + 4 * len(page.items)
        tuples = [n for n, item in enumerate(page.items, start=1) if item.kind == "normal"]
        assert sorted(page.storage) == tuples


def test_the_middle_is_counted_when_left_out(life: PageLife) -> None:
    """Memory is bounded: of many events the first and the last are kept, and numbered."""
    assert life.left_out > 0
    assert len(life.events) < 600
    assert life.events[-1].number == life.event_count + 1
    gap = life.events[life.first_count].number - life.events[life.first_count - 1].number
    assert gap == life.left_out + 1
    assert f"{life.event_count - 45} events more" in "\n".join(life_text.lines(life))


def test_watching_changes_nothing() -> None:
    """The run is the same, watched or not, and the same each time."""
    one, other = (predict_page(_profile(200, 90), 1).life for _ in range(2))
    assert one == other
    assert one.left_out == 0


def test_a_page_may_appear_during_the_run() -> None:
    """A page that an update adds begins empty; one that never comes is refused by number."""
    new = predict_page(_profile(), 4).life
    assert new.events[0].page.items == ()
    assert new.events[1].kind == "update_arrived"
    with pytest.raises(InputError, match=r"^page 900: t has \d pages at the end"):
        predict_page(_profile(), 900)


@pytest.mark.parametrize("width", [60, 79, 100, 160])
def test_text_fits_its_width(life: PageLife, width: int) -> None:
    """No line is wider than the terminal, and without Unicode every character is ASCII."""
    for line in life_text.lines(life, width=width, unicode=False):
        assert len(line) <= width
        assert line.isascii()
    for line in life_text.lines(life, width=width, unicode=True):
        assert len(line) <= width


def test_the_gauge_moves_with_what_happens(life: PageLife) -> None:
    """Of 8192 bytes it was full in every line of a page that is kept full."""
    lines = [
        line for line in life_text.lines(life, unicode=False) if re.match(r" +\d+ +\d+ ", line)
    ]
    filled = {int(line.split()[2]): line.split()[3].count("=") for line in lines}
    most = max(event.page.free_bytes for event in life.events)
    assert filled == {free: round(free * 8 / most) for free in filled}
    assert len(set(filled.values())) > 2


@pytest.mark.parametrize("width", [life_drawing.NARROW, 1000])
def test_the_timeline_counts_events(life: PageLife, width: int) -> None:
    """Below it are their numbers, which have room; those left out leave none in the gap."""
    drawn = life_drawing.timeline(life, width)
    below = re.findall(r'x="([\d.]+)" y="274" text-anchor="middle">(\d+)<', drawn)
    numbers = [int(number) for _, number in below]
    assert set(numbers) <= {event.number - 1 for event in life.events}
    assert len(numbers) >= 3
    places = [float(x) for x, _ in below]
    assert all(after - before >= 50 for before, after in pairwise(places))
    assert max(places) <= width


def test_html_loads_nothing(life: PageLife) -> None:
    """The page stands alone: no script, no address, foreign names escaped."""
    named = PageLife(
        table="<script>alert(1)</script>",
        block=life.block,
        events=life.events,
        first_count=life.first_count,
        left_out=life.left_out,
        prune_below_bytes=life.prune_below_bytes,
    )
    page = life_html.render(named, command="pgheadroom predict p.toml --page 0", server="18.4")
    assert "<script" not in page
    assert not re.search(r"(src|href)=", page)
    assert "script-src" not in page
    assert page.count("<svg") == len(life.events) + 9
    assert f"{life.left_out} events left out" in page


def test_drawings_are_numbers_alone(life: PageLife) -> None:
    """Drawings are marked safe for HTML, so nothing foreign may be in them."""
    drawn = life_drawing.timeline(life) + life_drawing.strip(life.end, None)
    texts = re.findall(r">([^<]+)<", drawn)
    assert all(re.fullmatch(r"[\w ;.,]+", text) for text in texts)


def test_a_single_event_can_be_drawn() -> None:
    """A page to which nothing happens is drawn once."""
    text = json.dumps(
        {
            "block": 7,
            "events": [
                {
                    "number": 1,
                    "transaction": 0,
                    "kind": "start",
                    "page": {
                        "items": [{"is": "redirect", "to": 2}, {"is": "dead"}],
                        "storage": [],
                        "lower": 32,
                        "upper": 8192,
                        "free_bytes": 8156,
                        "is_full": False,
                        "all_visible": False,
                    },
                }
            ],
            "first_count": 1,
            "left_out": 0,
            "prune_below_bytes": 819,
        }
    )
    life = read_life(text, "t")
    lines = life_text.lines(life, unicode=False)
    assert "Nothing happened to it." in lines
    assert any("1>2" in line and "2x" in line for line in lines)
    assert "<svg" in life_html.render(life, command="", server="15.18")
