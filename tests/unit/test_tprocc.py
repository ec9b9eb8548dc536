"""The TPC-C-derived workload without a server: schedules, what the twin says, latencies."""

from __future__ import annotations

import numpy as np
import pytest

from pgheadroom.errors import InputError
from pgheadroom.lab.experiments import get
from pgheadroom.lab.experiments.tprocc import predicted
from pgheadroom.lab.experiments.tprocc.run import MIX, latencies
from pgheadroom.lab.experiments.tprocc.schedules import PUBLISHED, TABLES, UPDATED, fillfactors
from pgheadroom.servers.pgbench import TransactionLog


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


def _workload(**changed: object) -> predicted.PredictedLoad:
    given = {
        "version": "18.4",
        "level": 100,
        "warehouses": 1,
        "users": 1,
        "at_home": False,
        "age": 0,
        "transactions": 1000,
        "seed": 1,
        **changed,
    }
    return predicted.PredictedLoad(**given)  # type: ignore[arg-type]


def test_what_the_twin_says_is_what_a_server_did() -> None:
    """`golden/expected/18.4/tprocc.json`: one user, a thousand transactions, nothing aged."""
    found = predicted.figures(_workload())
    assert found["predicted_data_bytes"] == 8192 * 14337
    assert found["predicted_customer_hot_frac"] == 165 / 989
    assert found["predicted_orders_hot_frac"] == 455 / 570
    assert found["predicted_order_line_hot_frac"] == 4444 / 5663
    assert found["predicted_stock_hot_frac"] == 2692 / 4461
    assert found["predicted_warehouse_hot_frac"] == found["predicted_district_hot_frac"] == 1
    nonfpi, wal = (found[f"predicted_wal_{name}_per_tx"] for name in ("nonfpi_bytes", "bytes"))
    assert nonfpi == pytest.approx(4925, rel=0.003)
    assert wal == pytest.approx(31_533, rel=0.003)


def test_of_many_warehouses_a_few_are_played(monkeypatch: pytest.MonkeyPatch) -> None:
    """With their share of the transactions; sizes are those of all, items counted once."""
    monkeypatch.setattr(predicted, "WAREHOUSES_MAX", 1)
    few = predicted.figures(_workload(warehouses=1, users=2, transactions=100))
    many = predicted.figures(_workload(warehouses=10, users=2, transactions=1000))
    assert few["predicted_stock_hot_frac"] == many["predicted_stock_hot_frac"]
    items = 8192 * 1576
    assert few["predicted_data_bytes"] is not None
    assert many["predicted_data_bytes"] == (few["predicted_data_bytes"] - items) * 10 + items


def test_latencies_by_transaction() -> None:
    """By the log's script numbers; no percentile where fewer than five lie beyond it."""
    script = np.repeat([0, 1], [500, 50])
    log = TransactionLog(
        ends_s=np.arange(550.0),
        latency_ms=np.concatenate([np.arange(500.0), np.arange(50.0) + 1000]),
        script=script,
        client=np.zeros_like(script),
        failed_ends_s=np.array([]),
        failed_client=np.array([], dtype=np.int64),
    )
    found = latencies(log)
    assert found["new_order_ms_p50"] == pytest.approx(249.5)
    assert found["new_order_ms_p99"] == pytest.approx(494.01)
    assert found["payment_ms_p90"] == pytest.approx(1044.1)
    assert found["payment_ms_p99"] is None
    assert found["stock_level_ms_p50"] is None
    assert len(found) == 3 * len(MIX)
