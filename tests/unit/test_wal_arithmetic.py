"""Sizes of records and pages by arithmetic, against what servers wrote."""

from __future__ import annotations

import pytest

from pgheadroom import _core
from pgheadroom.lab.base import plain_rows
from pgheadroom.lab.base import wal_arithmetic as wal
from pgheadroom.lab.base.ascending_btree import AscendingBtree
from pgheadroom.lab.base.copy_model import Copied, batches
from pgheadroom.lab.contrast import differences
from pgheadroom.lab.experiments.load_methods import model as load_model
from pgheadroom.lab.experiments.load_methods.script import keys
from pgheadroom.lab.experiments.read_writes import model as read_writes_model
from pgheadroom.lab.result import ComparedCells
from pgheadroom.types import Interval


@pytest.mark.parametrize(("extends_by_many", "pages"), [(False, 124), (True, 160)])
def test_copy_of_ten_thousand_rows(extends_by_many: bool, pages: int) -> None:
    """13.16 and 15.18 made 124 pages of (int, char(64)), 16.14 and 18.4 160; records are equal."""
    row_bytes = _core.heap_tuple_bytes([("int4", 4), ("bpchar", 64)])
    table = Copied(tuple_bytes=row_bytes, extends_by_many=extends_by_many)
    table.copy(batches(len(str(key)) + 65 for key in range(1, 10_001)))
    assert (table.pages, table.used_pages) == (pages, 124)
    assert (table.wal_records, table.wal_bytes) == (134, 31_930 + 755_422)


def test_inserts_of_one_integer() -> None:
    """1,000 rows by one statement on 18.4: 1,001 records, 59,034 bytes."""
    row_bytes = _core.heap_tuple_bytes([("int4", 4)])
    assert 1000 * wal.insert_bytes(row_bytes) + wal.COMMIT_BYTES == 59_034


def test_ascending_keys_leave_366_on_a_leaf() -> None:
    """20,000 keys on 18.4: 57 pages; every full leaf keeps 366, and a split brings no INSERT."""
    tree = AscendingBtree()
    tree.insert(407)
    assert tree.pages == 2
    tree.insert(1)
    assert tree.pages == 4  # a second leaf, and a root above
    tree.insert(20_000 - 408)
    assert tree.pages == 57
    assert tree.rightmost[0] == 20_000 - 54 * 366
    assert tree.rightmost[1] == 55


def test_a_tree_is_the_same_in_steps() -> None:
    """Adding keys one by one or all at once makes the same tree and the same WAL."""
    at_once, in_steps = AscendingBtree(), AscendingBtree()
    at_once.insert(150_000)
    for step in (1, 406, 1, 60_000, 89_592):
        in_steps.insert(step)
    assert at_once == in_steps
    assert len(at_once.rightmost) == 3


def test_random_keys_fill_leaves_by_halves() -> None:
    """20,000 keys in the order of load-methods on 18.4: 75 pages, 57 in ascending order."""
    for order, pages in (("random", 75), ("ascending", 57)):
        found = load_model.expected(
            keys(20_000, order),
            tuple_bytes=129,
            value_bytes=101,
            method="values",
            index="before",
            extends_by_many=True,
        )
        assert found.index == pages
        assert found.heap == found.vacuumed


@pytest.mark.parametrize(("method", "vacuumed"), [("copy-new", 17_304), ("copy-freeze", 17_242)])
def test_vacuum_cuts_after_freeze_however_little_is_empty(method: str, vacuumed: int) -> None:
    """
    A million rows on 18.4: 62 of 17,304 pages are empty, which VACUUM leaves but after FREEZE.

    It was predicted to leave them there too: pages that VACUUM skips do not count as filled.
    """
    found = load_model.expected(
        range(1, 1_000_001),
        tuple_bytes=129,
        value_bytes=101,
        method=method,
        index="none",
        extends_by_many=True,
    )
    assert (found.heap, found.vacuumed) == (17_304, vacuumed)


def test_a_first_read_of_a_hundred_pages() -> None:
    """18.4 logged 7,500 rows of 104 bytes, 75 a page, with 100 images of 8,173 bytes."""
    found = read_writes_model.expected(
        rows=7500,
        row_bytes=104,
        update_every=None,
        is_settled=False,
        has_free_space_map=True,
        logs_hints=True,
        full_page_writes=True,
        major=18,
    )
    assert (found.wal_records, found.wal_fpi, found.wal_bytes) == (100, 100, 817_300)


@pytest.mark.parametrize(
    ("update_every", "has_free_space_map", "logs_hints", "counts"),
    [
        (None, True, True, (12_347, 24_691, 12_347, 101_650_155)),
        (None, True, False, (12_347, 12_345, 1, 748_897)),
        (None, False, True, (12_351, 24_695, 12_351, 101_683_119)),
        (None, False, False, (12_351, 12_345, 1, 748_897)),
        (10, True, True, (13_582, 27_161, 13_582, 111_940_334)),
        (10, True, False, (13_582, 13_580, 12_347, 91_484_863)),
    ],
)
def test_a_first_read_on_19_sets_the_visibility_map(
    update_every: int | None,
    has_free_space_map: bool,
    logs_hints: bool,
    counts: tuple[int, int, int, int],
) -> None:
    """19rc1 with a million rows: each nearly full page a record of its own, and the maps."""
    found = read_writes_model.expected(
        rows=1_000_000,
        row_bytes=plain_rows.row_bytes(64),
        update_every=update_every,
        is_settled=False,
        has_free_space_map=has_free_space_map,
        logs_hints=logs_hints,
        full_page_writes=True,
        major=19,
    )
    assert (found.pages_dirtied, found.wal_records, found.wal_fpi, found.wal_bytes) == counts


def test_findings_name_differences_and_count_the_rest() -> None:
    """Sixty comparisons are no findings; the few that show a difference are."""
    ratio = Interval(low=1.5, mid=2.0, high=2.5, level=0.95)
    comparisons = [
        ComparedCells(
            measure="ms", cell={"n": n}, against={"n": 1}, ratio=ratio, verdict=verdict, reason="r"
        )
        for n, verdict in ((2, "higher"), (3, "no difference shown"), (4, "undecided"))
    ]
    assert differences(comparisons, "Time", lambda cell: f"n {cell['n']}") == [
        "(n 2) Time against n 1: 2.000 times [1.500, 2.500], higher.",
        "Time: 1 of 2 comparisons show no difference.",
    ]
