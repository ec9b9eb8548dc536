"""Pages of a rewrite, by the layout of pages."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pgheadroom import _core
from pgheadroom.bloat.btree import Keys, _entries, btree_estimate, built_pages, keys_of
from pgheadroom.bloat.drawing import Drawn
from pgheadroom.bloat.heap import heap_estimate, heap_pages
from pgheadroom.bloat.values import ColumnFacts, IndexFacts, RowCount, TableFacts
from pgheadroom.bloat.widths import SHORT_MAX, stored_bytes, widths_of

ALL_READ = RowCount(rows=20_000, changed=0.0, analyzed=30_000)


@given(st.integers(1, 10**7), st.integers(0, 250), st.integers(10, 100))
def test_rows_of_one_length(rows: int, payload: int, fillfactor: int) -> None:
    """The core's pages of a load are those of a rewrite: both follow the same rule."""
    tuple_bytes = _core.heap_tuple_bytes([("int4", 4), ("text", payload)])
    page_bytes = -(-tuple_bytes // 8) * 8 + 4
    assert heap_pages(rows, [page_bytes], fillfactor) == _core.heap_pages(
        rows, tuple_bytes, fillfactor
    )


@given(st.integers(1, 10**6), st.integers(2, 30), st.integers(50, 100))
def test_different_keys(rows: int, eighths: int, fillfactor: int) -> None:
    """The core builds the same B-tree, within a page or half a percent of inner pages."""
    exact = _core.btree_build_pages(rows, 8 * eighths, fillfactor)
    found = built_pages(rows, [8 * eighths], Keys((), rows), fillfactor)
    assert abs(found - exact) <= 1.01 + 0.005 * exact, (found, exact)


@given(
    st.lists(st.tuples(st.integers(0, 1000), st.floats(0.001, 1)), min_size=2, max_size=50),
    st.floats(0, 1),
)
def test_means_are_those_of_the_statistics(listed: list[tuple[int, float]], part: float) -> None:
    """Values are weighted anew until they have the mean that ANALYZE counted."""
    total = sum(weight for _, weight in listed)
    mean = sum(stored_bytes(width) * weight for width, weight in listed) / total
    column = ColumnFacts(
        name="t",
        core=_core.Column("text", payload_bytes=1),
        typlen=-1,
        null_frac=0.0,
        avg_width=int(mean),
        widths=tuple(listed),
        attnum=1,
    )
    found = widths_of(column, ALL_READ)
    assert found.is_known
    payloads, lacks = found.at(part, 1000)
    reached = sum(map(stored_bytes, payloads)) / len(payloads) + lacks
    assert found.mean[0] - 1e-6 <= reached <= found.mean[1] + 1e-6
    assert int(mean) - 1e-6 <= reached <= int(mean) + 1 + 1e-6
    assert abs(lacks) <= 1 + 0.01 * max(width for width, _ in listed)


def column(name: str, type_name: str, **facts: object) -> ColumnFacts:
    typlen = _core.Column(type_name, payload_bytes=None).typlen if type_name != "text" else -1
    core = _core.Column(type_name, payload_bytes=1 if typlen < 0 else None, name=name)
    made = ColumnFacts(name=name, core=core, typlen=typlen, attnum=1)
    return replace(made, **facts)  # type: ignore[arg-type]


def test_rows_that_need_no_statistics() -> None:
    """Fixed lengths and never NULL: the number is exact, whatever ANALYZE did."""
    columns = (column("a", "int8", null_frac=0.0), column("b", "int4", null_frac=0.0))
    table = TableFacts(pages=1000, count=ALL_READ, fillfactor=100, columns=columns)
    found = heap_estimate(table)
    assert found.rewritten_pages.low == found.rewritten_pages.high
    assert found.rewritten_pages.mid == _core.heap_pages(20_000, 36, 100)
    assert found.reasons == ()
    assert found.given_back_bytes.mid == (1000 - found.rewritten_pages.mid) * 8192


def test_old_statistics_widen() -> None:
    """What changed may be of any width, and the interval says why it is wide; never narrower."""
    text = column(
        "t", "text", null_frac=0.0, avg_width=60, widths=((20, 0.5), (97, 0.5)), n_distinct=-1.0
    )
    widths = []
    for changed in (0.0, 400.0, 4000.0):
        count = RowCount(rows=20_000, changed=changed, analyzed=30_000)
        table = TableFacts(pages=1000, count=count, fillfactor=100, columns=(text,))
        found = heap_estimate(table)
        widths.append(found.given_back_frac.width)
        assert bool(found.reasons) == (not found.is_narrow)
    assert widths[0] < widths[1] < widths[2]
    assert widths[2] > 0.1


def test_keys_that_a_sample_knows() -> None:
    """Read whole, n_distinct is exact; of a sample there may be many more, never fewer by much."""
    key = column("v", "int4", null_frac=0.0, n_distinct=1000.0)

    def index(rows: float) -> IndexFacts:
        return IndexFacts(
            pages=10_000,
            count=RowCount(rows=rows, changed=0.0, analyzed=30_000),
            fillfactor=90,
            columns=(key,),
            key_count=1,
            is_unique=False,
            deduplicates=True,
        )

    exact, reasons = keys_of(index(20_000))
    assert {way.others for way in exact} == {1000.0}
    assert reasons == []
    sampled, reasons = keys_of(index(20_000_000))
    assert min(way.others for way in sampled) == pytest.approx(1000, rel=0.01)
    assert max(way.others for way in sampled) > 1000
    assert not btree_estimate(index(20_000)).reasons
    unique = IndexFacts(
        pages=10_000,
        count=ALL_READ,
        fillfactor=90,
        columns=(key,),
        key_count=1,
        is_unique=True,
        deduplicates=True,
    )
    assert keys_of(unique) == ([Keys((), 20_000)], [])


@given(
    st.integers(1, 240).flatmap(
        lambda mean: st.tuples(st.just(mean), st.integers(0, min(mean - 1, 60)))
    ),
    st.lists(st.sampled_from(("int2", "int4", "int8")), max_size=3),
    st.booleans(),
)
def test_entries_of_widths_that_are_a_mean(
    widths: tuple[int, int], others: list[str], has_null: bool
) -> None:
    """
    Of a column only the mean is known: entries of that mean are within what is counted with.

    An entry's header is twice as long where a column is NULL, and each is rounded by itself.
    """
    mean, apart = widths
    assume((mean - apart <= SHORT_MAX) == (mean + apart <= SHORT_MAX))
    fixed = [_core.Column(name, name=f"c{n}") for n, name in enumerate(others)]
    fixed += [_core.Column("int4", is_null=True, name="none")] if has_null else []

    def row(width: int, after: list[_core.Column]) -> tuple[_core.Column, ...]:
        return (*fixed, _core.Column("text", payload_bytes=width, name="t"), *after)

    behind = [_core.Column("int8", name="behind")]
    for after in ([], behind):
        drawn = Drawn(coupling="by itself", end="low", rows=(row(mean, after),))
        (low,), (high,) = _entries(drawn, ["t"], deduplicates=False)
        sizes = [_core.index_tuple_bytes(row(mean + each, after)) for each in (-apart, apart)]
        assert low <= sum(sizes) / len(sizes) <= high
