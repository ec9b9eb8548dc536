"""
One trial of `update-cost`: the document's table, its UPDATE under EXPLAIN, and what was counted.
"""

from __future__ import annotations

from typing import Any

from pgheadroom.errors import MeasurementInvalid
from pgheadroom.lab.counters import table_counters, uncounted
from pgheadroom.lab.design import Request, Trial
from pgheadroom.lab.experiment import TrialOutcome
from pgheadroom.lab.experiments.update_cost import predicted as update_cost_predicted
from pgheadroom.lab.experiments.update_cost.predicted import (
    CHANGE_SPAN,
    ROWS_PER_SCALE,
    ROWS_PER_UPDATED_ROW,
)
from pgheadroom.lab.place import Running
from pgheadroom.types import PgVersion
from pgheadroom.units import setting_bytes

TABLE = "pgbench_accounts"


def base_settings(data_bytes: int, memory_bytes: int) -> dict[str, str]:
    """No checkpoint, vacuum or eviction inside; buffers for the data, at most half the memory."""
    shared_bytes = min(max(int(data_bytes * 1.3), 128 * 1024**2), memory_bytes // 2)
    return {
        "shared_buffers": setting_bytes(shared_bytes),
        "autovacuum": "off",
        "checkpoint_timeout": "1d",
        "max_wal_size": "1TB",
        "synchronize_seqscans": "off",
        "jit": "off",
        "max_parallel_workers_per_gather": "0",
        "bgwriter_lru_maxpages": "0",
        "fsync": "off",
    }


def load(server: Running, *, scale: int, cell: dict[str, Any]) -> None:
    """The document's statements."""
    with server.connect() as connection:
        connection.execute(
            f"CREATE TABLE {TABLE} (aid int PRIMARY KEY, bid int, "
            f"filler char({int(cell['filler_length'])}), abalance int) "
            f"WITH (fillfactor = {int(cell['fillfactor'])})"
        )
        connection.execute(
            f"INSERT INTO {TABLE} (aid, bid, filler, abalance) "
            f"SELECT aid, (aid - 1) / 100000 + 1, '', 0 "
            f"FROM generate_series(1, {scale} * {ROWS_PER_SCALE}) AS aid"
        )
        if server.cluster is None:
            # A borrowed server's autovacuum is on, and would vacuum in the middle of a trial.
            connection.execute(f"ALTER TABLE {TABLE} SET (autovacuum_enabled = off)")
        for number in range(1, int(cell.get("indexes", 0)) + 1):
            connection.execute(f"CREATE INDEX {TABLE}_aid_{number} ON {TABLE} (aid)")
        if (column := cell.get("indexed_column", "none")) != "none":
            connection.execute(f"CREATE INDEX {TABLE}_{column} ON {TABLE} ({column})")
        connection.execute(f"VACUUM (ANALYZE) {TABLE}")
    server.checkpoint()


def warm(server: Running) -> None:
    """
    Read the table and each index into shared buffers.

    The server has no pg_prewarm, and the planner takes one of equal indexes: so the others are
    dropped in a transaction that is rolled back. Nothing of the table or its indexes changes.
    """
    with server.connect() as connection:
        names = [
            name
            for (name,) in connection.execute(
                "SELECT indexrelid::regclass::text FROM pg_index "
                "WHERE indrelid = %s::regclass AND NOT indisprimary ORDER BY 1",
                (TABLE,),
            )
        ]
        connection.execute("SET enable_seqscan = off")
        connection.execute("SET enable_bitmapscan = off")
        for kept in (None, *names):
            with connection.transaction(force_rollback=True):
                for name in names:
                    if name != kept:
                        connection.execute(f"DROP INDEX {name}")
                if kept is None:
                    # The filler makes it an index scan, which reads every heap page as well.
                    connection.execute(f"SELECT max(filler) FROM {TABLE} WHERE aid > 0")
                else:
                    connection.execute(f"ALTER TABLE {TABLE} DROP CONSTRAINT {TABLE}_pkey")
                    connection.execute(f"SELECT count(aid) FROM {TABLE} WHERE aid > 0")


def _change(request: Request, version: PgVersion) -> tuple[str, dict[str, str]]:
    """SQL of what is added to abalance, and what had to be assumed for it."""
    change = request.options["change"]
    if change != "random":
        return str(int(change)), {}
    if version.major >= 17:
        return f"random({-CHANGE_SPAN}, {CHANGE_SPAN})", {}
    return f"(floor(random() * {2 * CHANGE_SPAN + 1})::int - {CHANGE_SPAN})", {
        "random(-5000, 5000)": "before PostgreSQL 17: floor(random() * 10001)::int - 5000, "
        "the same distribution"
    }


def explain_update(server: Running, request: Request, trial: Trial) -> TrialOutcome:
    """
    Run the UPDATE and count.

    Raises:
        MeasurementInvalid: Another plan, other rows, or a checkpoint meanwhile.
    """
    change, assumed = _change(request, server.version)
    statement = (
        f"EXPLAIN (ANALYZE, BUFFERS, WAL, FORMAT JSON) UPDATE {TABLE} "
        f"SET bid = bid + {int(trial.cell['update_bid'])}, abalance = abalance + {change} "
        f"WHERE mod(aid, {ROWS_PER_UPDATED_ROW}) = 1"
    )
    before = table_counters(server, TABLE)
    with server.connect() as connection:
        for setting in ("jit", "synchronize_seqscans"):
            connection.execute(f"SET {setting} = off")
        connection.execute("SET max_parallel_workers_per_gather = 0")
        draw = update_cost_predicted.setseed_of(request, trial)
        connection.execute("SELECT setseed(%s)", (draw,))
        row = connection.execute(statement).fetchone()
    assert row is not None, "EXPLAIN returns one row"
    after = table_counters(server, TABLE)
    plan = row[0][0]["Plan"]
    updated = after.n_tup_upd - before.n_tup_upd
    _verify(plan, updated, request.scale * ROWS_PER_SCALE // ROWS_PER_UPDATED_ROW)
    if after.checkpoints != before.checkpoints:
        raise MeasurementInvalid("a checkpoint began during the UPDATE: its counts mean nothing")
    hot = after.n_tup_hot_upd - before.n_tup_hot_upd
    newpage = (
        None
        if after.n_tup_newpage_upd is None or before.n_tup_newpage_upd is None
        else after.n_tup_newpage_upd - before.n_tup_newpage_upd
    )
    scan = plan["Plans"][0]
    measures: dict[str, float | None] = {
        "pages_dirtied": plan["Shared Dirtied Blocks"],
        "wal_records": plan["WAL Records"],
        "wal_bytes": plan["WAL Bytes"],
        "wal_bytes_per_update": plan["WAL Bytes"] / updated,
        "wal_fpi": plan["WAL FPI"],
        "update_ms": round(plan["Actual Total Time"] - scan["Actual Total Time"], 3),
        "execution_ms": row[0][0]["Execution Time"],
        "n_tup_upd": updated,
        "n_tup_hot_upd": hot,
        "n_tup_newpage_upd": newpage,
        "hot_frac": hot / updated,
        "newpage_frac": None if newpage is None else newpage / updated,
        "heap_pages_before": before.heap_pages,
        "heap_pages": after.heap_pages,
        "index_pages": after.index_pages,
    }
    assumed |= uncounted(server.version)
    return TrialOutcome(measures=measures, assumed={**server.assumed, **assumed})


def _verify(plan: dict[str, Any], updated: int, expected: int) -> None:
    """The plan must be the document's, and every intended row updated exactly once."""
    found = (plan["Node Type"], plan["Plans"][0]["Node Type"])
    if found != ("ModifyTable", "Seq Scan"):
        raise MeasurementInvalid(
            f"the UPDATE ran as {' over '.join(found)}, expected ModifyTable over Seq Scan"
        )
    if updated != expected:
        raise MeasurementInvalid(
            f"{updated} rows were updated, expected {expected}: the table is not as loaded"
        )
