"""What goes without one index that ends HOT, and without several: as servers have it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median

import observed
import psycopg
import pytest

from pgheadroom.advise import Options, advise
from pgheadroom.advise.advice import Advice
from pgheadroom.observe import find_classes, observe
from pgheadroom.outcome import Value, ends, mid, scaled
from pgheadroom.servers import Cluster, Host, ServerPrograms
from pgheadroom.sources.log import StatementCounts

pytestmark = pytest.mark.usefixtures("run_parent")

ROWS = 400
DDL = "".join(
    f"""
CREATE TABLE {name} (id int4 PRIMARY KEY, a int4, b int4, v int4)
    WITH (fillfactor = 40, autovacuum_enabled = off);
CREATE INDEX {name}_a ON {name} (a) WITH (fillfactor = 50);
CREATE INDEX {name}_b ON {name} (b) WITH (fillfactor = 50);
INSERT INTO {name} SELECT i, i, i, 0 FROM generate_series(1, {ROWS}) i;
"""
    for name in ("same", "apart")
)
WORK = {
    "same": {"UPDATE same SET a = a + 1, b = b + 1 WHERE id = $1": 50},
    "apart": {
        "UPDATE apart SET a = a + 1 WHERE id = $1": 30,
        "UPDATE apart SET b = b + 1 WHERE id = $1": 20,
    },
}
"""By table: statements, and the rows that each updates."""


def work(cluster: Cluster) -> None:
    """Each row once: there is room for all of them, so that only indexes end HOT."""
    with observed.session(cluster) as connection:
        for statements in WORK.values():
            first = 1
            for statement, count in statements.items():
                for row in range(first, first + count):
                    connection.execute(statement.replace("$1", str(row)).encode())
                first += count


@contextmanager
def advised(programs: ServerPrograms) -> Iterator[tuple[Cluster, Advice]]:
    """A server, and what is advised of its work by rule."""
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off", "full_page_writes": "off"})
        observed.load(cluster, DDL + "VACUUM ANALYZE")
        recording = observed.watched(cluster, lambda: work(cluster))
        counts = Counter({text: rows for found in WORK.values() for text, rows in found.items()})
        seen = StatementCounts(source="file", counts=counts, seen=counts.total(), cut=0)
        profile = observe(recording, find_classes(recording, [], [seen]), mask=False, sampled=True)
        yield cluster, advise(profile, Options(budget_s=0.0))


def measured(cluster: Cluster, table: str, dropped: tuple[str, ...]) -> tuple[float, float]:
    """HOT share, and WAL bytes an update, of the same work on a table without some indexes."""
    with cluster.connect() as connection:
        connection.execute(f"VACUUM {table}".encode())  # or statements would prune, and log that
        connection.execute("BEGIN")
        for index in dropped:
            connection.execute(f"DROP INDEX {index}".encode())
        before = counted(connection, table)
        wal_bytes, first = 0.0, 1
        for statement, count in WORK[table].items():
            each = []
            for row in range(first, first + count):
                told = f"EXPLAIN (ANALYZE, WAL, FORMAT JSON) {statement.replace('$1', str(row))}"
                found = connection.execute(told.encode()).fetchone()
                assert found is not None
                each.append(found[0][0]["Plan"]["WAL Bytes"])
            # The one that first meets a page deletes from its indexes what VACUUM has left.
            wal_bytes += median(each) * count
            first += count
        after = counted(connection, table)
        connection.execute("ROLLBACK")
    updates, hot = (now - then for then, now in zip(before, after, strict=True))
    return hot / updates, wal_bytes / updates


def counted(connection: psycopg.Connection[object], table: str) -> tuple[int, int]:
    """Updates and HOT ones of this transaction."""
    found = connection.execute(
        "SELECT pg_stat_get_xact_tuples_updated(%(t)s::regclass),"
        " pg_stat_get_xact_tuples_hot_updated(%(t)s::regclass)",
        {"t": table},
    ).fetchone()
    assert found is not None
    updates, hot = found  # type: ignore[misc]
    return int(updates), int(hot)


def require(found: Value, measured: float, rel: float, programs: ServerPrograms) -> None:
    """On 15 nobody counts what found no room: the interval holds. Else the number is right."""
    low, likely, high = ends(found if found is not None else -1.0)
    assert low * (1 - rel) <= measured <= high * (1 + rel)
    if programs.version.major >= 16:
        assert likely == pytest.approx(measured, rel=rel)


def test_without_one_index_and_without_both_is_as_foretold(programs: ServerPrograms) -> None:
    """
    One statement changes both columns, or two statements one each.

    Dropping one index gives nothing in the first case but its entries, in the second its own part;
    dropping both gives all in either.
    """
    with advised(programs) as (cluster, advice):
        alone = {(one.table, one.name): one for one in advice.indexes}
        both = {one.table: one for one in advice.indexes_together or ()}
        assert {*both} == {"same", "apart"}
        assert len(alone) == 4
        per_day = {table.table: table.updates_per_s * 86_400 for table in advice.tables}
        for table, share in (("same", {"a": 1.0, "b": 1.0}), ("apart", {"a": 0.6, "b": 0.4})):
            now_hot, now_bytes = measured(cluster, table, ())
            assert now_hot == 0
            for column, part in share.items():
                name = f"{table}_{column}"
                found = alone[table, name]
                assert mid(found.updates_frac) == pytest.approx(part)
                other = {"a": "b", "b": "a"}[column]
                assert found.only_with == ((f"{table}_{other}",) if table == "same" else ())
                hot, wal_bytes = measured(cluster, table, (name,))
                assert hot == pytest.approx(0.0 if table == "same" else part)
                require(found.hot_frac_then, hot, 0.001, programs)
                saved = scaled(found.wal_bytes_saved_per_day, 1 / per_day[table])
                require(saved, now_bytes - wal_bytes, 0.15, programs)
            several = both[table]
            assert several.names == (f"{table}_a", f"{table}_b")
            assert mid(several.updates_frac) == pytest.approx(1.0)
            hot, wal_bytes = measured(cluster, table, several.names)
            assert hot == 1
            require(several.hot_frac_then, hot, 0.001, programs)
            saved = scaled(several.wal_bytes_saved_per_day, 1 / per_day[table])
            require(saved, now_bytes - wal_bytes, 0.15, programs)
