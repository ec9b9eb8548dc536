"""Tables that have lived: what a profile may say of their pages, and where it counts."""

from __future__ import annotations

from typing import Any

import pytest

from pgheadroom._core import redirect_rounds
from pgheadroom.forms import FieldError
from pgheadroom.predict import make_cells, predict
from pgheadroom.predict.sampling import heap_pages, sample_of
from pgheadroom.profile import Profile, parse_profile, to_json
from pgheadroom.profile.pages import redirects_max
from pgheadroom.types import Interval

TABLE: dict[str, Any] = {
    "name": "t",
    "rows": 20_000,
    "columns": [
        {"name": "id", "type": "int4"},
        {"name": "n", "type": "int4"},
        {"name": "filler", "type": "bpchar(84)"},
    ],
    "indexes": [{"name": "t_pkey", "columns": ["id"], "unique": True}],
}
KINDS = [{"pages_frac": 0.6, "rows": 40}, {"pages_frac": 0.4, "rows": 65}]


def _profile(operations: int = 2000, **fields: Any) -> Profile:
    return parse_profile(
        {
            "schema_version": 1,
            "table": [TABLE | fields],
            "operation": [{"table": "t", "kind": "update", "sets": ["n"]}],
            "run": {"operations": operations},
        }
    )


def test_a_full_page_is_known_and_kept() -> None:
    """Rows of one length follow from the layout: 65 of 124 bytes, pointers with them."""
    profile = _profile(pages=KINDS)
    assert profile.tables[0].rows_per_page == 65
    assert profile.assumed["table[0].rows_per_page"] == 65
    assert parse_profile(to_json(profile)) == profile
    assert "pages" not in to_json(_profile())["table"][0]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"pages": []}, r"table\[0\].pages: found \[\], expected at least one kind"),
        ({"rows_per_page": 50}, r"table\[0\].rows_per_page: found 50, expected pages beside it"),
        (
            {"pages": [{"pages_frac": 1, "rows": 66}]},
            r"pages\[0\].rows: found 66, expected at most rows_per_page, which is 65 at fillfactor",
        ),
        ({"pages": [{"pages_frac": 0.5, "rows": 40}]}, "pages_frac whose sum is 1"),
        (
            {"pages": [{"pages_frac": 1, "rows": 0}]},
            r"found '0 rows on the mean page', expected pages with at least 0.1 % of rows_per_page",
        ),
        (  # No block is of the second: a load would have no end.
            {"pages": [{"pages_frac": 1, "rows": 0}, {"pages_frac": 0.01, "rows": 65}]},
            r"found '0 rows on the mean page', expected pages with at least 0.1 % of rows_per_page",
        ),
        ({"pages": KINDS, "rows": 0}, "expected a table with rows"),
        ({"pages": [{"frac": 1, "rows": 4}]}, "frac"),
        ({"pages": [{"pages_frac": 1, "rows": 300}], "rows_per_page": 300}, "291"),
        (
            {"pages": [{"pages_frac": 1, "rows": 40, "redirects": 41}]},
            r"pages\[0\].redirects: found 41, expected at most the page's rows, which are 40",
        ),
        (
            {"pages": [{"pages_frac": 1, "rows": 63, "redirects": 60}]},
            "redirects: found 60, expected at most 59: with 63 rows of 65 at fillfactor 100 a page"
            " has no room for further HOT updates",
        ),
        ({"pages": [{"pages_frac": 1, "rows": 65, "redirects": 1}]}, "found 1, expected at most 0"),
        ({"pages": [{"pages_frac": 1, "rows": 9, "redirects": -1}]}, "redirects: found -1"),
        (
            {"pages": [{"pages_frac": 1, "rows": 64, "unused": 90}]},
            r"pages\[0\].unused: found 90, expected at most \d+, for which 64 rows of 65 leave",
        ),
        ({"pages": [{"pages_frac": 1, "rows": 9, "unused": -1}]}, "unused: found -1"),
    ],
)
def test_contradictions_are_refused(fields: dict[str, Any], said: str) -> None:
    """By the field, with what is expected."""
    with pytest.raises(FieldError, match=said):
        _profile(**fields)


def test_the_heap_has_as_many_pages() -> None:
    """20,000 rows by 50 a page; updates of six in ten pages find room that full ones lack."""
    (lived,) = predict(_profile(pages=KINDS), server="18.4").cells
    (full,) = predict(_profile(), server="18.4").cells
    assert lived.predicted.heap_pages == pytest.approx(20_000 / 50, rel=0.01)
    assert full.predicted.heap_pages == pytest.approx(20_000 / 65, rel=0.05)
    assert lived.predicted.hot_frac is not None
    assert full.predicted.hot_frac is not None
    assert lived.predicted.hot_frac > full.predicted.hot_frac + 0.03


def test_redirects_take_room() -> None:
    """With 63 rows of 65 a page has room for two further versions, behind 59 redirects for none."""
    kind = {"pages_frac": 1.0, "rows": 63}
    plain, redirected = (_profile(10_000, pages=[one]) for one in (kind, kind | {"redirects": 59}))
    assert parse_profile(to_json(redirected)) == redirected
    assert "redirects" not in to_json(plain)["table"][0]["pages"][0]
    (roomy,) = predict(plain, server="18.4").cells
    (narrow,) = predict(redirected, server="18.4").cells
    assert roomy.predicted.heap_pages == pytest.approx(narrow.predicted.heap_pages, rel=0.02)
    assert roomy.predicted.newpage_frac == 0
    assert narrow.predicted.newpage_frac is not None
    assert narrow.predicted.newpage_frac > 0.02


def test_unused_line_pointers_take_room() -> None:
    """64 rows of 65 leave room for a version, beside 28 unused line pointers for none."""
    kinds = ({"pages_frac": 1.0, "rows": 64, "unused": unused} for unused in (20, 28))
    roomy, full = (_profile(3000, pages=[kind]) for kind in kinds)
    assert parse_profile(to_json(full)) == full
    assert "unused" not in to_json(_profile(pages=KINDS))["table"][0]["pages"][0]
    shares = [
        predict(profile, server="18.4").cells[0].predicted.newpage_frac for profile in (roomy, full)
    ]
    assert shares[0] == 0
    assert isinstance(shares[1], float)
    assert shares[1] > 0.03, "the first update of a page leaves it, and room behind"


def test_rounds_of_redirects() -> None:
    """Each row once, half of the room in a round; what has no room is none."""
    rounds = redirect_rounds((65, 100, 3), 62, 62)
    assert all(rounds)
    assert (rounds.count(1), rounds.count(29)) == (2, 1)
    assert redirects_max((65, 100, 3), 65) == 0
    assert redirects_max((59, 90, 3), 59) == 59
    assert sum(number > 0 for number in redirect_rounds((20, 100, 3), 13, 5)) == 5


def test_a_sample_is_of_the_pages_that_are_there() -> None:
    """Of a table that has lived it was cut by the pages that a load would leave: to 130 of 100."""
    profile = _profile(20_000, pages=KINDS)
    assert heap_pages(profile) == pytest.approx(20_000 / 50, abs=2)
    found = predict(profile, server="18.4", sample_pages=100)
    assert "of 101 of 401 heap pages" in found.assumed["twin.sample"]
    (truth,) = predict(profile, server="18.4").cells
    (cell,) = found.cells
    for key in ("heap_pages", "n_tup_hot_upd", "index_pages"):
        span, value = cell.predicted.value(key), truth.predicted.value(key)
        assert span.low <= value <= span.high, key
    assert sample_of(profile, 100).profile.tables[0].pages == profile.tables[0].pages


@pytest.mark.parametrize(
    "kinds", [((0.2, 60), (0.3, 5), (0.5, 20)), ((0.2, 60), (0.3, 0), (0.5, 60))]
)
def test_kinds_of_a_sample_are_drawn_as_those_of_the_whole(
    kinds: tuple[tuple[float, int], ...],
) -> None:
    """All samples have the same blocks, which have a few rows more or fewer than the mean ones."""
    pages = [{"pages_frac": frac, "rows": rows} for frac, rows in kinds]
    profile = _profile(60_000, pages=pages, rows=60_000)
    (whole,) = predict(profile, server="18.4").cells
    (cell,) = predict(profile, server="18.4", sample_pages=200).cells
    found = cell.predicted.heap_pages
    assert isinstance(found, Interval)
    assert isinstance(whole.predicted.heap_pages, int)
    assert found.low <= whole.predicted.heap_pages <= found.high
    assert found.high - found.low < 0.05 * found.mid


def test_another_fillfactor_is_a_table_loaded_anew() -> None:
    """Pages are those of the fillfactor under which the table has lived; this is said."""
    profile = _profile(pages=KINDS)
    lived, anew = make_cells(profile, [100, 80])
    assert lived.profile.tables[0].pages
    assert not anew.profile.tables[0].pages
    made = predict(profile, [100, 80], server="18.4")
    assert "at fillfactor 100 alone" in made.assumed["table[0].pages"]
    heap = [cell.predicted.heap_pages for cell in made.cells]
    assert heap[0] == pytest.approx(400, abs=4)
    assert heap[1] == pytest.approx(20_000 / 52, rel=0.02)


def test_altered_without_a_rewrite_it_keeps_its_pages() -> None:
    """From the fillfactor under which it has lived, pages stay as they are; from others they go."""
    profile = _profile(pages=KINDS)
    (kept,) = predict(profile, [80], from_fillfactor=100, server="18.4").cells
    (anew,) = predict(profile, [80], from_fillfactor=90, server="18.4").cells
    assert kept.predicted.heap_pages == pytest.approx(20_000 / 50, rel=0.02)
    assert anew.predicted.heap_pages < 0.95 * kept.predicted.heap_pages
