"""The compiled core as Python sees it: sizes, classes, errors (its stub: `make types`)."""

from __future__ import annotations

import pytest

from pgheadroom import _core
from pgheadroom.errors import InputError

SEED_ROW = [("int4", 4), ("int4", 4), ("char(64)", 64), ("int4", 4)]


def test_seed_row_lies_where_postgresql_puts_it() -> None:
    """Offsets, padding and length of the seed's row; the whole page arithmetic rests on them."""
    row = _core.RowLayout(SEED_ROW)
    assert row.tuple_bytes == 104
    assert row.hoff_bytes == 24
    assert row.page_bytes == 108
    assert [column.offset_bytes for column in row.columns] == [24, 28, 32, 100]
    assert [column.header_bytes for column in row.columns] == [0, 0, 1, 0]
    assert (row.inner_padding_bytes, row.tail_padding_bytes, row.null_bitmap_bytes) == (3, 0, 0)
    assert _core.heap_tuple_bytes(SEED_ROW) == 104


@pytest.mark.parametrize(
    ("tuple_bytes", "fillfactor", "rows", "spare"),
    [(104, 100, 75, 0), (104, 80, 60, 15), (168, 100, 47, 0), (168, 80, 37, 10), (93, 100, 81, 0)],
)
def test_page_arithmetic(tuple_bytes: int, fillfactor: int, rows: int, spare: int) -> None:
    """Rows per page and spare versions of the worked examples."""
    assert _core.rows_per_page(tuple_bytes, fillfactor) == rows
    assert _core.spare_versions(tuple_bytes, fillfactor) == spare
    assert _core.heap_pages(rows * 10 + 1, tuple_bytes, fillfactor) == 11


def test_index_arithmetic() -> None:
    """Index entries and the pages of a fresh build, as golden numbers have them."""
    assert _core.index_tuple_bytes([("int4", 4)]) == 16
    assert _core.index_tuple_bytes([("int8", 8), ("int8", 8)]) == 24
    assert _core.btree_build_pages(1_000_000, 16) == 2745
    assert _core.btree_build_pages(0, 16) == 1
    assert _core.btree_build_pages(1_000_000, 16, 70) > 2745


def test_best_order_saves_padding() -> None:
    """The order that is proposed is a permutation and makes the row as short as it can be."""
    types = ["bool", "int8", "int2", "int4"]
    row = _core.RowLayout([_core.Column(name) for name in types])
    order = row.best_order()
    assert order == [1, 3, 2, 0]
    best = _core.RowLayout([row.columns[position].column for position in order])
    assert (row.tuple_bytes, best.tuple_bytes, best.inner_padding_bytes) == (48, 39, 0)
    assert not row.needs_toast
    assert _core.RowLayout([("text", 2005)]).needs_toast


def test_columns_are_values() -> None:
    """Columns compare by what they hold, so they can be keys and be tested for equality."""
    column = _core.Column("character(64)", name="filler")
    assert column == _core.Column("bpchar(64)", payload_bytes=64, name="filler")
    assert len({column, _core.Column("char(64)", name="filler")}) == 1
    assert column != _core.Column("char(64)", is_null=True, name="filler")
    assert (column.name, column.type_name, column.typlen) == ("filler", "bpchar(64)", -1)
    assert (column.typalign, column.typstorage) == ("i", "x")
    assert repr(column) == 'Column("bpchar(64)", payload_bytes=64, name="filler")'
    with pytest.raises(AttributeError):
        column.name = "other"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: _core.Column("int3"), "unknown column type"),
        (lambda: _core.Column("text"), "give its payload"),
        (lambda: _core.Column("int4", payload_bytes=5), "expected 4 to 4"),
        (lambda: _core.Column("int4", payload_bytes=-1), "payload_bytes is -1"),
        (lambda: _core.heap_tuple_bytes([("char(0)", 0)]), "modifier"),
        (lambda: _core.rows_per_page(104, 9), "fillfactor is 9: expected 10 to 100"),
        (lambda: _core.rows_per_page(8161, 100), "8161 bytes does not fit a page"),
        (lambda: _core.rows_per_page(-1, 100), "tuple_bytes is -1"),
        (lambda: _core.heap_pages(-1, 104, 100), "rows is -1"),
        (lambda: _core.heap_pages(2**62, 104, 100), "32 TiB"),
        (lambda: _core.index_tuple_bytes([("text", 3000)]), "too wide for a B-tree"),
        (lambda: _core.index_tuple_bytes([("name", 64)]), "keeps a cstring"),
        (lambda: _core.heap_tuple_bytes([("cstring", 5)]), "table does not hold"),
        (lambda: _core.btree_build_pages(1, 12), "index_tuple_bytes is 12"),
        (lambda: _core.RowLayout([("int4", 4)] * 1601), "at most 1600"),
    ],
)
def test_errors_are_input_errors(call: object, message: str) -> None:
    """What PostgreSQL could not store is the user's to repair; the message says how."""
    assert callable(call)
    with pytest.raises(InputError, match=message):
        call()
