"""Arithmetic of `order`: pages of a range, intervals of few ranges, statements by their text."""

from __future__ import annotations

import json
import random

import pytest

from pgheadroom import _core
from pgheadroom.order.cheaper import brin_pages
from pgheadroom.order.pages import (
    fresh_pages,
    measured_pages,
    random_pages,
    range_pages,
    unseen_frac,
)
from pgheadroom.order.ranges import ReadRange
from pgheadroom.order.statements import of_index, understood
from pgheadroom.order.values import (
    IndexOrder,
    OrderPrices,
    OrderReport,
    TableChanges,
    TableOrder,
)
from pgheadroom.report.order import answer
from pgheadroom.types import Interval


def _range(blocks: list[int], *, weight: int = 20, is_cut: bool = False) -> ReadRange:
    return ReadRange(tuple(blocks), (1,) * len(blocks), weight, is_cut)


def test_pages_of_rows_in_order_and_at_random() -> None:
    """By formula as by laying rows out: in order for every first row, and shuffled."""
    blocks = [row // 21 for row in range(21 * 2000)]
    begun = [len(set(blocks[first : first + 1000])) for first in range(21)]
    assert fresh_pages(1000, 21) == pytest.approx(sum(begun) / 21)
    random.Random(3).shuffle(blocks)
    drawn = [len(set(blocks[first : first + 1000])) for first in range(0, 41_000, 1000)]
    assert random_pages(1000, len(blocks), 2000) == pytest.approx(sum(drawn) / 41, rel=0.01)
    assert random_pages(1000, 1000, 50) == 50


def test_few_ranges_tell_bounds() -> None:
    """One range, or one that was cut, says what may be, not what is likely."""
    one = measured_pages([_range([n // 10 for n in range(1000)])], 50, 900)
    assert (one.low, one.mid, one.high) == (50, 100, 900)
    none = measured_pages([], 50, 900)
    assert (none.low, none.high, none.level) == (50, 900, 1.0)
    whole = [_range([n // each for n in range(1000)]) for each in (9, 10, 11)]
    found = measured_pages(whole, 50, 900)
    assert found.low < 100 < found.high < 150
    cut = measured_pages([*whole, _range(list(range(150)), is_cut=True)], 50, 900)
    assert cut.mid == found.mid
    assert cut.low <= found.low
    assert cut.high > (111 + 100 + 91 + 1000) / 4
    assert unseen_frac(whole) == pytest.approx(1 - 0.1 ** (1 / 3))


def test_ranges_count_by_the_rows_of_their_page() -> None:
    """A row begins a range as often as any other, so a full page's range counts more."""
    full, thin = _range([0] * 1000, weight=30), _range(list(range(1000)), weight=10)
    assert measured_pages([full, thin, full], 1, 1000).mid == pytest.approx(
        (30 * 1 + 10 * 1000 + 30 * 1) / 70
    )
    assert range_pages([full, thin], 10) == pytest.approx((30 * 1 + 10 * 10) / 40)


@pytest.mark.parametrize(
    ("text", "columns", "by"),
    [
        ("SELECT v FROM t WHERE k BETWEEN $1 AND $2", ("k",), ("k",)),
        ("SELECT v FROM s.t AS x WHERE x.d = $1 AND x.k >= $2", ("d", "k"), ("d", "k")),
        ("SELECT v FROM t ORDER BY k LIMIT $1", ("k",), ("k",)),
        ("DELETE FROM t WHERE k < $1", ("k", "d"), ("k",)),
        ("SELECT v FROM t WHERE k = $1", ("k",), None),
        ("SELECT v FROM t WHERE k > $1", ("d", "k"), None),
        ("SELECT v FROM other.t WHERE k > $1", ("k",), None),
        ("SELECT v FROM t JOIN u ON u.i = t.i WHERE u.k > $1", ("k",), None),
        ("SELECT v FROM t JOIN u ON u.i = t.i WHERE k > $1", ("k",), None),
        ("SELECT v FROM t JOIN u ON u.i = t.i WHERE t.k > $1", ("k",), ("k",)),
        ("INSERT INTO t SELECT v FROM u WHERE k > $1", ("k",), None),
    ],
)
def test_statements_by_their_text(
    text: str, columns: tuple[str, ...], by: tuple[str, ...] | None
) -> None:
    """One belongs to an index by a range over its columns, the fixed ones before."""
    row = {"queryid": 1, "query": text, "calls": 4, "rows": 8, "blocks": 40, "blocks_read": 2}
    statements, failed = understood([row])
    assert failed == 0
    found = of_index(statements, "s", "t", columns, 2)
    assert [one.reads_by for one in found] == ([] if by is None else [by])
    if found:
        assert found[0].blocks_per_call == 10
        named = "s.t" in text
        assert any("tables of this name" in why for why in found[0].unknown) is not named


def test_what_is_no_statement() -> None:
    """A text that was hidden or cut is counted, not guessed at."""
    common = {"queryid": 1, "calls": 4, "rows": 8, "blocks": 40, "blocks_read": 2}
    texts = ("<insufficient privilege>", None, "SELECT v FROM t WHERE")
    assert understood([{**common, "query": text} for text in texts]) == ([], 3)
    assert "reason" in json.loads(_core.statement_reads("SELEC"))


def test_brin_opens_the_ranges_of_pages_whole() -> None:
    """Never fewer pages than the rows lie on."""
    assert brin_pages(_range([5, 6, 127])) == 128
    assert brin_pages(_range([127, 128, 10_000])) == 3 * 128


def _index(name: str, times: float, scans: int, rows_per_scan: float | None) -> IndexOrder:
    return IndexOrder(
        name=name,
        columns=("k",),
        is_marked=False,
        is_unique=False,
        pages=10,
        correlation=None,
        scans=scans,
        rows_per_scan=rows_per_scan,
        evidence="sampled",
        pages_per_range=Interval.exactly(50 * times),
        pages_fresh=Interval.exactly(50.0),
        pages_random=900.0,
        ranges=40,
        unseen_frac=0.06,
        not_sampled=None,
        statements=(),
        forecast=None,
        pay=None,
        cheaper=(),
    )


@pytest.mark.parametrize(
    ("indexes", "said"),
    [
        (
            [_index("single", 9, 1000, 1.0), _index("ranges", 3, 10, 400.0)],
            "by ranges lies on 150 pages, at least 3.0 times those of a freshly clustered one; "
            "1 more so.",
        ),
        (
            [_index("single", 9, 1000, 1.0)],
            "by single lies on 450 pages, at least 9.0 times those of a freshly clustered one; "
            "scans of it find single rows, which no order helps.",
        ),
        (
            [_index("a", 9, 0, None), _index("b", 8, 0, None)],
            "1 more so; no scan of these was counted.",
        ),
        ([_index("a", 1, 10, 400.0)], "No range that was read lies on twice the pages"),
    ],
)
def test_the_first_line_is_of_what_is_read_by_ranges(indexes: list[IndexOrder], said: str) -> None:
    """An index by which single rows are found stood first, whose order matters to nobody."""
    changes = TableChanges(
        over_s=None,
        is_watched=False,
        inserts=0,
        updates=0,
        hot_updates=0,
        newpage_updates=None,
        deletes=0,
        blocks_hit=0,
        blocks_read=0,
    )
    table = TableOrder(
        schema="public",
        name="t",
        pages=1000,
        rows=20_000,
        pages_read=500,
        changes=changes,
        indexes=tuple(indexes),
    )
    report = OrderReport(
        tool_version="0",
        server="18.4",
        database="d",
        at="2026-11-28T00:00:00Z",
        interval_s=None,
        prices=OrderPrices(),
        tables=(table,),
        small_tables=0,
        missing=(),
        would_help=(),
    )
    assert said in answer(report)
