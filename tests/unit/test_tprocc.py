"""The TPC-C-derived workload without a server: schedules, uneven keys, the twin's profile."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from pgheadroom.errors import InputError
from pgheadroom.lab.experiments import get
from pgheadroom.lab.experiments.tprocc.run import MIX, latencies
from pgheadroom.lab.experiments.tprocc.schedules import PUBLISHED, TABLES, UPDATED, fillfactors
from pgheadroom.lab.experiments.tprocc.twin import DISTRICTS, RECENT_ORDERS, profile_of
from pgheadroom.lab.experiments.tprocc.uneven import hottest, page_shares, prefixes, stride
from pgheadroom.profile import RowRange, read_profile
from pgheadroom.servers.pgbench import TransactionLog

ROOT = Path(__file__).parents[2]


def test_the_mix_is_the_standards() -> None:
    """45/43/4/4/4 per cent."""
    assert list(MIX.values()) == [45, 43, 4, 4, 4]
    assert next(iter(MIX)) == "new_order"


def test_a_schedule_gives_every_table_a_fillfactor() -> None:
    """A number is for all; BenchmarkSQL names six tables; HammerDB had 10 for two, else 50."""
    assert fillfactors(60) == dict.fromkeys(TABLES, 60)
    benchmarksql = fillfactors("benchmarksql")
    assert [benchmarksql[table] for table in UPDATED] == [50, 79, 90, 85, 85, 95]
    assert benchmarksql["history"] == benchmarksql["item"] == 100
    hammerdb = fillfactors("hammerdb2020")
    assert {table for table in TABLES if hammerdb[table] == 10} == {"warehouse", "district"}
    assert {hammerdb[table] for table in TABLES} == {10, 50}
    assert set(PUBLISHED["benchmarksql"]) == set(UPDATED)
    own = fillfactors("stock:95+customer:90")
    assert own == {**dict.fromkeys(TABLES, 100), "stock": 95, "customer": 90}
    with pytest.raises(InputError, match="named twice"):
        fillfactors("stock:95+stock:90")


def test_a_schedule_of_ones_own_is_a_level() -> None:
    """Beside numbers and names; what is none of them is refused with all three forms."""
    fillfactor = get("tprocc").factors[0]
    assert fillfactor.parse("100,benchmarksql,stock:95+orders:50") == (
        100,
        "benchmarksql",
        "stock:95+orders:50",
    )
    for wrong in ("stock:9", "stock:95+", "bench:50", "stock=95"):
        with pytest.raises(InputError, match=r"whole number from 10 to 100 or a schedule such as"):
            fillfactor.parse(wrong)


def test_uneven_keys_are_those_of_nurand() -> None:
    """Shares by arithmetic against two million draws of the standard's function, page by page."""
    random = np.random.default_rng(1)
    drawn = random.integers(0, 8192, 2_000_000) | random.integers(1, 100_001, 2_000_000)
    # The constant C and the modulus only turn the circle of keys: beyond the last comes the first.
    drawn = (drawn - 1) % 100_000
    counts = np.sort(np.bincount(drawn // 25, minlength=4000))[::-1]
    shares = page_shares(8191, 100_000, 25)
    assert shares.sum() == pytest.approx(1)
    # The OR can exceed the last key, up to 106,495: 0.7 % of the draws, which wrap around.
    for part in (0.01, 0.1, 0.3, 0.7):
        assert hottest(shares, part) == pytest.approx(
            counts[: round(4000 * part)].sum() / 2_000_000, abs=0.01
        )


def test_prefixes_make_the_same_density() -> None:
    """Uniform draws among the first of each, together, fall as the shares do."""
    shares = page_shares(8191, 100_000, 23)
    found = prefixes(shares, 10)
    assert found == sorted(found)
    assert 0 < found[0] < found[-1] <= 1
    for part in (0.05, 0.2, 0.5):
        mixed = sum(min(part / each, 1) for each in found) / len(found)
        assert mixed == pytest.approx(hottest(shares, part), abs=0.03)
    assert prefixes(np.full(50, 0.02), 4) == [1.0] * 4


@pytest.mark.parametrize(("keys", "places"), [(30_000, 10), (60_000, 20), (120_000, 40)])
def test_orders_are_taken_by_turns_from_many_places(keys: int, places: int) -> None:
    """After as many steps as there are places the next key of the first place follows."""
    step = stride(keys, places)
    taken = [i * step % keys for i in range(2000)]
    assert len(set(taken)) == 2000
    # Neighbours come one after the other, each a whole round of places later.
    first = taken.index(1)
    assert places <= first < places + 20
    assert math.gcd(first, keys) == 1
    assert taken[2 * first] == 2


def test_the_profile_is_one_that_the_twin_takes() -> None:
    """Every level, for a run and as loaded; nine tables with their fillfactors."""
    for level in (100, 40, *PUBLISHED):
        for as_loaded in (False, True):
            profile = profile_of(version="18.4", level=level, transactions=700, as_loaded=as_loaded)
            assert {table.name for table in profile.tables} == set(TABLES)
            levels = {table.name: table.fillfactor for table in profile.tables}
            assert levels == fillfactors(level)
            # 45 + 43 + 10 x 4 + 4 + 4 + 20 x 4 for each hundred of the mix.
            assert profile.workload.run.operations == 1512


def test_the_numbers_of_the_profile_follow_from_the_standard() -> None:
    """Mix, hot pages and places as `twin.toml` has them; rows a page are those of a server."""
    path = ROOT / "python/pgheadroom/lab/experiments/tprocc/twin.toml"
    profile = read_profile(path)
    rows = {table.name: table.rows for table in profile.tables}
    operations = profile.workload.operations
    weights = {operation.transaction: operation.weight for operation in operations}
    assert weights == {
        **MIX,
        "delivery": MIX["delivery"] * DISTRICTS,
        "stock_level_items": MIX["stock_level"] * RECENT_ORDERS,
    }
    hot = prefixes(page_shares(8191, rows["stock"], 23), 10)
    for transaction in ("new_order", "stock_level_items"):
        picks = [
            operation.pick
            for operation in operations
            if (operation.transaction, operation.table) == (transaction, "stock")
        ]
        assert [1.0 if p is None or p.rows_frac is None else p.rows_frac for p in picks] == hot
    # A quarter of the customers counts as hot, where their density crosses the mean; four payments
    # in ten name the customer by number, the middle one of a name may be on any page.
    drawn = hottest(page_shares(1023, rows["customer"] // DISTRICTS, 13), 0.25)
    (paid,) = [o.pick for o in operations if (o.transaction, o.table) == ("payment", "customer")]
    assert paid is not None
    assert (paid.rows_frac, paid.weight) == (0.25, 0.4 * drawn + 0.6 * 0.25)
    (order,) = [o.pick for o in operations if (o.table, o.kind) == ("orders", "update")]
    assert order is not None
    assert order.n == stride(rows["orders"], DISTRICTS)


def test_orders_have_five_to_fifteen_lines() -> None:
    """As the standard has it (clause 2.4.1.3); deliveries leave no line out."""
    profile = profile_of(version="18.4", level=100, transactions=100)
    lines = [o for o in profile.workload.operations if o.table == "order_line"]
    drawn = [o for o in lines if o.rows_per_statement == RowRange(min_rows=5, max_rows=15)]
    assert [o.kind for o in drawn] == ["insert", "update", "select"]
    update = drawn[1]
    assert update.pick is not None
    assert update.pick.distribution == "sequential"


def test_latencies_by_transaction() -> None:
    """By the log's script numbers; no percentile where fewer than five lie beyond it."""
    script = np.repeat([0, 1], [500, 50])
    log = TransactionLog(
        ends_s=np.arange(550.0),
        latency_ms=np.concatenate([np.arange(500.0), np.arange(50.0) + 1000]),
        script=script,
    )
    found = latencies(log)
    assert found["new_order_ms_p50"] == pytest.approx(249.5)
    assert found["new_order_ms_p99"] == pytest.approx(494.01)
    assert found["payment_ms_p90"] == pytest.approx(1044.1)
    assert found["payment_ms_p99"] is None
    assert found["stock_level_ms_p50"] is None
    assert len(found) == 3 * len(MIX)
