"""Forecasts say which of their intervals are wide, and why."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pgheadroom.outcome import Outcome
from pgheadroom.predict import Prediction, predict
from pgheadroom.predict.wide import reasons, sentences
from pgheadroom.profile import parse_profile
from pgheadroom.types import Interval

WHY = reasons(clients=4)


def _profile(pick: dict[str, Any], clients: int) -> dict[str, Any]:
    """A row by this pick, then any row, in one transaction."""
    update = {"table": "t", "kind": "update", "sets": ["n"], "transaction": "both"}
    key = {"name": "t_pkey", "columns": ["id"], "unique": True}
    columns = [{"name": "id", "type": "int4"}, {"name": "n", "type": "int4"}]
    return {
        "schema_version": 1,
        "table": [{"name": "t", "rows": 2000, "columns": columns, "indexes": [key]}],
        "operation": [update | {"pick": pick}, update | {"pick": {"distribution": "uniform"}}],
        "run": {"operations": 4000, "clients": clients},
    }


HOT_ROW = {"distribution": "hot_set", "rows_frac": 0.0005, "weight": 1.0}


def test_a_row_that_everybody_wants_is_said_to_be_unsure() -> None:
    """Its waits are the machine's: wider than for rows that seldom meet, never for one client."""
    hot = predict(parse_profile(_profile(HOT_ROW, 4)))
    (said,) = hot.warnings
    assert f"WAL {_wal_percent(hot):.0f} %" in said
    assert any("from a quiet to a busy one" in str(line) for line in hot.assumed.values())
    uniform = {"distribution": "uniform"}
    assert _wal_percent(predict(parse_profile(_profile(uniform, 4)))) < _wal_percent(hot)
    assert predict(parse_profile(_profile(HOT_ROW, 1))).warnings == ()


def _wal_percent(prediction: Prediction) -> float:
    wal = prediction.cells[0].predicted.wal_bytes
    assert isinstance(wal, Interval)
    return 100 * (wal.high - wal.low) / wal.mid


def _around(mid: float, width: float) -> Interval:
    return Interval(low=mid - width / 2, mid=mid, high=mid + width / 2, level=0.9)


def _part(**values: Interval | float) -> Outcome:
    """A part with 1,000 updates, of which all is exact but what is given."""
    exact = predict(parse_profile(_profile(HOT_ROW, 1))).cells[0].predicted
    return replace(exact, by_table={}, n_tup_upd=1000, **values)


def _said(*outcomes: Outcome) -> str:
    """What is wide of these cells, without why."""
    found = sentences([(outcome, WHY) for outcome in outcomes])
    assert len(found) <= 1, "one sentence has all"
    return found[0].partition(":")[0] if found else ""


@pytest.mark.parametrize(
    ("hot", "wal", "said"),
    [
        (0.04, 9, ""),
        (0.06, 9, "Intervals are wide, the HOT share 6 points"),
        (0.06, 20, "Intervals are wide, the HOT share 6 points, WAL 20 %"),
    ],
)
def test_the_widest_are_named(hot: float, wal: float, said: str) -> None:
    """Beyond five points of HOT and a tenth of WAL, of the widest cell."""
    narrow = _part(hot_frac=_around(0.5, 0.01), wal_bytes=_around(100, 1))
    assert _said(narrow, _part(hot_frac=_around(0.5, hot), wal_bytes=_around(100, wal))) == said


def test_pages_and_wal_without_images_are_named_too() -> None:
    """
    Each figure that the rule is of, in one sentence, with the machine as the reason.

    Heap pages of a profile with 32 clients were 47 % wide, and one of its tables' 77 %, and nothing
    was said: only the HOT share and all WAL were looked at.
    """
    wide = _part(
        heap_pages=_around(100, 47),
        index_pages=_around(100, 27),
        pages_modified=_around(100, 34),
        wal_nonfpi_bytes_per_update=_around(100, 11),
    )
    (said,) = sentences([(wide, WHY)])
    assert said.startswith(
        "Intervals are wide, heap pages 47 %, index pages 27 %, modified pages 34 %, "
        "WAL without images an update 11 %: what 4 clients do to each other depends on the machine"
    )


def test_a_page_of_a_small_table_is_not_named() -> None:
    """Two pages with one more or less are 100 % wide, and nobody's concern; so of 0."""
    assert _said(_part(heap_pages=_around(2, 2), pages_modified=_around(2.5, 5))) == ""
    assert _said(_part(heap_pages=_around(20, 6))) == "Intervals are wide, heap pages 30 %"
    from_none = Interval(low=0, mid=0, high=9, level=0.9)
    assert _said(_part(index_pages=from_none)) == "Intervals are wide, index pages 0 to 9"


def test_of_tables_the_widest_are_named() -> None:
    """Beside the whole where they have another width, alone where the whole is narrow."""
    narrow, pages = _part(heap_pages=_around(1000, 20)), _part(heap_pages=_around(100, 20))
    of_one = replace(narrow, by_table={"a": pages, "b": narrow})
    assert _said(of_one) == "Intervals are wide, heap pages of a 20 %"
    widths = {"a": 20, "b": 60, "c": 40, "d": 30}
    tables = {name: _part(heap_pages=_around(100, width)) for name, width in widths.items()}
    of_all = replace(_part(heap_pages=_around(400, 120)), by_table=tables)
    assert _said(of_all) == "Intervals are wide, heap pages 30 % (of b 60 %, c 40 %, 1 more)"
    only = replace(pages, by_table={"a": pages})
    assert _said(only) == "Intervals are wide, heap pages 20 %", "one table is the whole"


def test_little_of_one_table_is_not_named() -> None:
    """A few of its updates that miss HOT, WAL of less than five pages; of the whole they are."""
    little = _part(wal_bytes=_around(100_000, 40_000), hot_frac=_around(0.5, 0.06))
    little = replace(little, n_tup_upd=80)
    beside = _part()
    assert _said(replace(beside, by_table={"a": little, "b": beside})) == ""
    said = "Intervals are wide, the HOT share 6 points, WAL 40 %"
    assert _said(replace(little, by_table={"a": little})) == said
    more = replace(little, n_tup_upd=8000, wal_bytes=_around(150_000, 42_000))
    said = "Intervals are wide, the HOT share of a 6 points, WAL of a 28 %"
    assert _said(replace(beside, by_table={"a": more, "b": beside})) == said


def test_each_reason_is_told() -> None:
    """Several, each once; where none is known, that the twin approximates."""
    by_clock = reasons(clients=1, by_clock=True, sampled=True)
    wide = _part(heap_pages=_around(100, 47))
    (said,) = sentences([(wide, WHY), (wide, (*WHY, *by_clock))])
    assert said.count("4 clients") == 1
    assert said.endswith(
        "quiet and busy ones; a simulated clock says when autovacuum and checkpoints take part; "
        "runs are samples that stand for the whole."
    )
    assert reasons(clients=1) == ("the twin approximates what is said beside them",)
