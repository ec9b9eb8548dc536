"""`check` against servers: what it foresees of a migration is what happens once it is applied."""

from __future__ import annotations

from collections import Counter

import observed
import pytest

from pgheadroom.migration import check_migration, read_migration
from pgheadroom.observe import find_classes, observe
from pgheadroom.servers import Cluster, Host, ServerPrograms
from pgheadroom.sources.log import StatementCounts
from pgheadroom.types import Interval

pytestmark = pytest.mark.usefixtures("run_parent")

ROWS = 1500
DDL = f"""
CREATE TABLE orders (id int4 PRIMARY KEY, state int4, kind int4, v int4, note text)
    WITH (fillfactor = 75, autovacuum_enabled = off);
CREATE TABLE steady (id int4 PRIMARY KEY, state int4, v int4)
    WITH (fillfactor = 75, autovacuum_enabled = off);
INSERT INTO orders SELECT i, 0, 0, 0, repeat('n', 60) FROM generate_series(1, {ROWS}) i;
INSERT INTO steady SELECT i, 0, 0 FROM generate_series(1, {ROWS}) i;
VACUUM ANALYZE
"""
MIGRATION = """
SET lock_timeout = '5s';
CREATE INDEX orders_state ON orders (kind) INCLUDE (state);
ALTER TABLE steady ADD CONSTRAINT steady_once UNIQUE (id, state);
CREATE INDEX orders_brin ON orders USING brin (v);
"""
CHANGES = "UPDATE orders SET state = state + 1 WHERE id = %s"
OTHERS = "UPDATE orders SET v = v + 1 WHERE id = %s"
# A framework that sets what it has read: assigned, and never changed.
SAME = "UPDATE steady SET state = 0, v = v + 1 WHERE id = %s"


def _work(cluster: Cluster, updates: range) -> Counter[str]:
    """So many updates of the one table and half as many of the other, all rows in turn."""
    done: Counter[str] = Counter()
    with observed.session(cluster) as connection:
        for n in updates:
            for text in (CHANGES if n % 7 < 4 else OTHERS, SAME)[: 1 + n % 2]:
                connection.execute(text.encode(), (n * 1571 % ROWS + 1,))
                done[text.replace("%s", "1")] += 1
    return done


def _hot_frac(cluster: Cluster, table: str) -> tuple[int, int]:
    with cluster.connect() as connection:
        row = connection.execute(
            "SELECT n_tup_hot_upd, n_tup_upd FROM pg_stat_user_tables WHERE relname = %s",
            (table,),
        ).fetchone()
    assert row is not None
    return int(row[0]), int(row[1])


def test_hot_goes_as_foreseen(programs: ServerPrograms) -> None:
    """Observe, check, apply, measure: HOT as foreseen, or better where nothing changes."""
    statements = read_migration(MIGRATION)
    with Host(programs) as host:
        cluster = host.cluster("main")
        # Checkpoints are near, so that the twin's run is as short as the one below.
        cluster.start({"autovacuum": "off", "checkpoint_timeout": "30s"})
        observed.load(cluster, DDL)
        counts: Counter[str] = Counter()
        recording = observed.watched(cluster, lambda: counts.update(_work(cluster, range(77))))
        files = [StatementCounts(source="file", counts=counts, seen=3, cut=0)]
        profile = observe(recording, find_classes(recording, [], files), mask=False, sampled=True)
        found = check_migration(profile, statements)
        observed.load(cluster, MIGRATION)
        # What is foreseen is the steady state: of six updates a row the last three.
        _work(cluster, range(3 * ROWS))
        before = {table: _hot_frac(cluster, table) for table in ("orders", "steady")}
        _work(cluster, range(3 * ROWS, 6 * ROWS))
        measured = {}
        for table, (hot, updates) in before.items():
            hot_then, updates_then = _hot_frac(cluster, table)
            measured[table] = (hot_then - hot) / (updates_then - updates)
    assert [s.problem for s in statements] == [None] * 4
    by_name = {table.name: table for table in found.tables}
    orders, steady = by_name["orders"], by_name["steady"]
    assert orders.verdict == "loses HOT"
    then = orders.hot_frac_then
    assert isinstance(then, Interval)
    # 3 of 7 assign no column of a B-tree; on 15 their BRIN index ends HOT too.
    assert measured["orders"] <= (0.43 if programs.version.major >= 16 else 0.0)
    assert then.low - 0.02 <= measured["orders"] <= then.high + 0.02
    assert orders.assigned_frac == pytest.approx(
        4 / 7 if programs.version.major >= 16 else 1.0, abs=0.01
    )
    # The most that can be lost is foreseen; a value that stays the same loses nothing.
    assert steady.verdict == "loses HOT"
    assert "if every value that is assigned changes" in steady.text
    assert isinstance(steady.hot_frac_then, Interval)
    assert steady.hot_frac_then.mid < 0.05
    assert measured["steady"] > 0.98


TAGGED = f"""
CREATE TABLE docs (id int4 PRIMARY KEY, n int4, tags text[], other text[])
    WITH (autovacuum_enabled = off);
INSERT INTO docs SELECT i, 0, ARRAY(SELECT 'tag' || (i * 7 + j * j) % 200
    FROM generate_series(1, 5) j), ARRAY['a' || i % 7] FROM generate_series(1, {ROWS}) i;
CREATE INDEX docs_tags ON docs USING gin (tags) WITH (fastupdate = off);
VACUUM ANALYZE docs
"""
COUNTS = "UPDATE docs SET n = n + 1 WHERE id = %s"
TAGS = (
    "UPDATE docs SET tags = ARRAY['tag' || (random() * 200)::int, 'tag' || (random() * 200)::int, "
    "'x' || (random() * 9)::int, 'y' || (random() * 9)::int, 'z' || id] WHERE id = %s"
)


def test_a_new_gin_is_priced_where_its_keys_are_known(programs: ServerPrograms) -> None:
    """
    A GIN over a column that has one already has its WAL; another is said not to be priced.

    It stood as a B-tree, and a migration that ends HOT was foreseen with half of its WAL.
    """

    def work(updates: range) -> Counter[str]:
        done: Counter[str] = Counter()
        with observed.session(cluster) as connection:
            for n in updates:
                text = COUNTS if n % 3 else TAGS
                connection.execute(text.encode(), (n * 1571 % ROWS + 1,))
                done[text.replace("%s", "1")] += 1
        return done

    def check(text: str) -> tuple[float, str]:
        migration = read_migration(f"CREATE INDEX docs_n ON docs (n); {text}")
        (table,) = check_migration(profile, migration).tables
        then = table.wal_bytes_per_update_then
        assert isinstance(then, Interval)
        return then.mid, " ".join(map(str, table.assumed))

    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off", "full_page_writes": "off"})
        observed.load(cluster, TAGGED)
        work(range(2 * ROWS))
        counts: Counter[str] = Counter()
        recording = observed.watched(cluster, lambda: counts.update(work(range(ROWS))))
        files = [StatementCounts(source="file", counts=counts, seen=2, cut=0)]
        profile = observe(recording, find_classes(recording, [], files), mask=False, sampled=True)
        alone, _ = check("")
        again = "CREATE INDEX more ON docs USING gin (tags) WITH (fastupdate = off);"
        slow, said = check(again)
        quick, _ = check("CREATE INDEX more ON docs USING gin (tags array_ops);")
        unknown, unpriced = check("CREATE INDEX more ON docs USING gin (other);")
        some, partial = check("CREATE INDEX more ON docs USING gin (tags) WHERE n > 5;")
        observed.load(cluster, f"CREATE INDEX docs_n ON docs (n); {again}")
        work(range(ROWS))
        with observed.session(cluster) as connection:
            (before,) = connection.execute("SELECT pg_current_wal_insert_lsn()").fetchone() or ("",)
            work(range(ROWS, 3 * ROWS))
            (wal,) = connection.execute(
                "SELECT pg_current_wal_insert_lsn() - %s::pg_lsn", (before,)
            ).fetchone() or (0,)
    assert "more (gin)" not in said
    assert "more (gin)" in unpriced
    assert "more (gin)" in partial
    assert slow == pytest.approx(float(wal) / (2 * ROWS), rel=0.25)
    assert slow > quick > alone
    assert slow > 1.3 * max(unknown, some)
