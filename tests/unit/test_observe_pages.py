"""How full pages are, out of a sample of rows: kinds of pages for the profile."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pgheadroom.advise import Options, advise
from pgheadroom.observe.pages import redirected, seen_pages
from pgheadroom.profile import parse_profile, read_profile, to_json
from pgheadroom.profile.tables import PageKind, TableProfile

RECORD = Path(__file__).parents[2] / "experiments" / "advice" / "record" / "observed"


def _table(rows: int, **fields: Any) -> TableProfile:
    """Rows of 120 bytes, 65 on a full page."""
    profile = parse_profile(
        {
            "schema_version": 1,
            "table": [
                {
                    "name": "t",
                    "rows": rows,
                    "columns": [
                        {"name": "id", "type": "int4"},
                        {"name": "n", "type": "int4"},
                        {"name": "f", "type": "bpchar(84)"},
                    ],
                    "indexes": [{"name": "t_pkey", "columns": ["id"], "unique": True}],
                }
                | fields
            ],
            "operation": [{"table": "t", "kind": "insert"}],
            "run": {"operations": 1},
        }
    )
    return profile.tables[0]


def _sample(fills: dict[int, int], *, empty: int = 0, **facts: Any) -> dict[str, Any]:
    """All pages of a table whose rows have 117 bytes."""
    pages, rows = sum(fills.values()), sum(n * count for n, count in fills.items())
    return {
        "rows": rows,
        "pages": pages,
        "table_pages": pages + empty,
        "drawn_percent": 100.0,
        "tuple_sum": rows * 117,
        "tuple_squares": rows * 117 * 117,
        "tuple_percentiles": [117] * 5,
        "used_sum": rows * 124,
        "fills": sorted(map(list, fills.items())),
    } | facts


def test_pages_as_a_load_leaves_them_are_not_said() -> None:
    """All full but the last one; and of a few that are not nobody speaks."""
    assert seen_pages(_table(6535), _sample({65: 100, 35: 1}), 101) is None
    assert seen_pages(_table(6500), _sample({65: 97, 64: 3}), 100) is None
    assert seen_pages(_table(6500), None, 100) is None


def test_kinds_are_the_pages_that_there_are() -> None:
    """Empty ones among them, which no row shows."""
    seen = seen_pages(_table(8300), _sample({65: 50, 64: 20, 40: 80, 5: 10}, empty=40), 200)
    assert seen is not None
    assert seen.rows_per_page == 65
    assert {kind.rows: kind.pages_frac for kind in seen.kinds} == pytest.approx(
        {65: 0.25, 64: 0.1, 40: 0.4, 5: 0.05, 0: 0.2}
    )
    assert seen.evidence.startswith("measured: rows on 200 of 200 pages")


def test_pages_that_a_sample_did_not_draw_are_not_empty() -> None:
    """The number of drawn pages has chance in it: a few missing ones say nothing, many do."""
    few = _sample({60: 480}, drawn_percent=50.0, table_pages=1000)
    seen = seen_pages(_table(60_000), few, 1000)
    assert seen is not None
    assert [kind.rows for kind in seen.kinds] == [60]
    many = _sample({60: 300}, drawn_percent=50.0, table_pages=1000)
    seen = seen_pages(_table(36_000), many, 1000)
    assert seen is not None
    assert {kind.rows: kind.pages_frac for kind in seen.kinds} == pytest.approx({60: 0.6, 0: 0.4})


def test_empty_pages_at_the_end_are_cut_off() -> None:
    """By the next VACUUM, where they are a sixteenth of the table, and nobody has forbidden it."""

    def empty_frac(empty: int, *, drawn: float = 100.0, **fields: Any) -> float:
        pages = 300 + empty
        sample = _sample({60: round(3 * drawn)}, drawn_percent=drawn, table_pages=pages)
        seen = seen_pages(_table(18_000, **fields), sample | {"last_page": 299}, pages)
        assert seen is not None
        return sum(kind.pages_frac for kind in seen.kinds if kind.rows == 0)

    assert empty_frac(142) == 0
    assert empty_frac(142, drawn=50.0) == 0
    assert empty_frac(142, reloptions={"vacuum_truncate": "false"}) == pytest.approx(142 / 442)
    assert empty_frac(15) == pytest.approx(15 / 315)


def test_many_kinds_become_eight_with_the_same_rows() -> None:
    """The mean page stays; full pages and those with room for one row stay apart."""
    fills = {rows: 10 + rows for rows in range(20, 66)}
    seen = seen_pages(_table(100_000), _sample(fills), sum(fills.values()))
    assert seen is not None
    assert len(seen.kinds) == 8
    assert {65, 64} <= {kind.rows for kind in seen.kinds}
    mean = sum(rows * count for rows, count in fills.items()) / sum(fills.values())
    found = sum(kind.rows * kind.pages_frac for kind in seen.kinds)
    assert found == pytest.approx(mean, abs=0.3)
    assert sum(kind.pages_frac for kind in seen.kinds) == pytest.approx(1, abs=1e-5)


def _lived(fills: list[list[int]], **facts: Any) -> dict[str, Any]:
    """A sample with line pointers of no row on each page: rows, pages, these."""
    return _sample({}, rows=sum(n * count for n, count, _ in fills)) | {
        "pages": sum(count for _, count, _ in fills),
        "table_pages": sum(count for _, count, _ in fills),
        "tuple_sum": sum(n * count for n, count, _ in fills) * 117,
        "tuple_squares": sum(n * count for n, count, _ in fills) * 117 * 117,
        "used_sum": sum(n * count for n, count, _ in fills) * 124,
        "fills": fills,
        **facts,
    }


def test_line_pointers_of_no_row_are_redirects_where_rows_were_hot_updated() -> None:
    """Pages with room for a version stay apart from those that redirects have filled."""
    fills = [[63, 40, 50], [63, 20, 59], [62, 140, 60]]
    chains = redirected({"n_tup_hot_upd": 36_000, "n_live_tup": 12_460}, None)
    assert chains is not None
    assert chains.rows_frac == pytest.approx(0.944, abs=0.001)
    seen = seen_pages(_table(12_460), _lived(fills), 200, chains)
    assert seen is not None
    assert {(kind.rows, kind.redirects): kind.pages_frac for kind in seen.kinds} == pytest.approx(
        {(63, 50): 0.2, (63, 59): 0.1, (62, 60): 0.7}
    )
    assert "redirects estimated by 36,000 HOT updates (n_tup_hot_upd)" in seen.evidence


def test_unused_line_pointers_are_no_redirects() -> None:
    """Without HOT updates there are none; of a few, as many; nor in recordings that lack them."""
    fills = [[62, 200, 60]]
    none = redirected({"n_tup_hot_upd": 0, "n_live_tup": 12_400}, None)
    few = redirected({"n_tup_hot_upd": 3000, "n_live_tup": 12_400}, None)
    many = redirected({"n_tup_hot_upd": 99_000, "n_live_tup": 12_400}, None)
    table = _table(12_400)
    found = [seen_pages(table, _lived(fills), 200, chains) for chains in (None, none, few)]
    found.append(seen_pages(table, _sample({62: 200}), 200, many))
    kinds = [seen.kinds[0].redirects for seen in found if seen is not None]
    assert kinds == [0, 0, 13, 0]  # 62 * (1 - exp(-3000 / 12,400))


def test_the_others_are_unused() -> None:
    """
    What is of no row and no redirect; where no room is left for a version is a kind of its own.

    With 64 rows of 120 bytes a page has 27 of them and 124 bytes free, which is a version and its
    line pointer's room; with 28 it is full, though a version would take one of them.
    """
    none = redirected({"n_tup_hot_upd": 0, "n_live_tup": 12_800}, None)
    fills = [[64, 100, 24], [64, 60, 27], [64, 40, 28]]
    seen = seen_pages(_table(12_800), _lived(fills), 200, none)
    assert seen is not None
    assert [(kind.rows, kind.unused) for kind in seen.kinds] == [(64, 28), (64, 25)]
    assert [kind.pages_frac for kind in seen.kinds] == pytest.approx([0.2, 0.8])
    few = redirected({"n_tup_hot_upd": 3000, "n_live_tup": 12_400}, None)
    seen = seen_pages(_table(12_400), _lived([[62, 200, 40]]), 200, few)
    assert seen is not None
    assert seen.kinds == (PageKind(pages_frac=1.0, rows=62, redirects=13, unused=27),)


def test_pageinspect_knows_the_redirects() -> None:
    """Counted ones win over statistics, which may have been reset."""
    headers = {"pages": 200, "redirects": 5000, "others": 5000, "unused": 7}
    chains = redirected({"n_tup_hot_upd": 10, "n_live_tup": 12_400}, headers)
    assert chains is not None
    assert chains.rows_frac == 0.5
    assert "measured by the line pointers of 200 pages (pageinspect)" in chains.evidence
    assert redirected(None, None) is None
    assert redirected(None, {"pages": 3, "rooms": []}) is None  # an older recording


def test_full_pages_with_redirects_are_said_where_they_take_room() -> None:
    """At fillfactor 90 all pages are as a load leaves them, but for 59 redirects on each."""
    chains = redirected({"n_tup_hot_upd": 99_000, "n_live_tup": 11_800}, None)
    table = _table(11_800, fillfactor=90)
    seen = seen_pages(table, _lived([[59, 200, 60]]), 200, chains)
    assert seen is not None
    assert seen.kinds == (PageKind(pages_frac=1.0, rows=59, redirects=59),)
    assert seen_pages(table, _lived([[59, 200, 3]]), 200, chains) is None


def test_rows_of_many_lengths_leave_room_when_they_are_loaded() -> None:
    """Of rows of 30 to 250 bytes a page that a load has filled seldom has as many as another."""
    lengths = {
        "tuple_squares": 1e4 * (140**2 + 63**2),
        "tuple_percentiles": [35, 80, 140, 200, 240],
    }
    table = _table(
        10_000,
        columns=[
            {"name": "id", "type": "int4"},
            {"name": "s", "type": "text", "width": {"min_bytes": 2, "max_bytes": 222}},
        ],
    )
    loaded = {55: 30, 56: 90, 57: 60}
    facts = {"rows": 10_000, "tuple_sum": 1_400_000, "used_sum": 1_440_000} | lengths
    assert seen_pages(table, _sample(loaded) | facts, 180) is None
    half = {rows // 2: count for rows, count in loaded.items()}
    seen = seen_pages(table, _sample(half) | facts, 360)
    assert seen is not None
    for kind in seen.kinds:
        assert kind.rows == pytest.approx(seen.rows_per_page / 2, abs=2)


def test_the_mean_page_is_what_the_catalogue_says() -> None:
    """No rows were read: 30.25 a page."""
    seen = seen_pages(_table(30_250), None, 1000)
    assert seen is not None
    assert seen.kinds == (
        PageKind(pages_frac=0.25, rows=31),
        PageKind(pages_frac=0.75, rows=30),
    )
    assert "rows were not read" in seen.evidence


def test_more_empty_pages_than_a_profile_holds() -> None:
    """A few rows in a large file: as empty as the format lets it be."""
    table = _table(200)
    seen = seen_pages(table, _sample({1: 200}, empty=100_000), 100_200)
    assert seen is not None
    kinds = [{"pages_frac": kind.pages_frac, "rows": kind.rows} for kind in seen.kinds]
    _table(200, pages=kinds)  # the format takes it


def test_advice_is_about_tables_loaded_anew() -> None:
    """What a rewrite at a fillfactor gives does not follow from how full the old pages are."""
    (path,) = RECORD.glob("once-now400-????????.json")
    profile = read_profile(path)
    kinds = (PageKind(pages_frac=0.5, rows=1), PageKind(pages_frac=0.5, rows=3))
    (table,) = profile.tables
    lived = replace(profile, tables=(replace(table, pages=kinds, rows_per_page=10),))
    assert to_json(lived) != to_json(profile)
    # With time enough for all, so that nothing hangs on how busy the machine is.
    options = Options(budget_s=1e6, sample_pages=32)
    made, other = (advise(one, options).to_json()["tables"] for one in (profile, lived))
    assert made == other
