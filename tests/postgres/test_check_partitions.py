"""
What `check` says when partitions come and go: the partitioned table's lock, the default's rows.

Each case runs in a transaction that is taken back; its locks on partitioned tables and its scans of
tables are held against what the check says.
"""

from __future__ import annotations

import re
from typing import Any

import observed
import psycopg
import pytest

from pgheadroom.migration import read_migration
from pgheadroom.migration.catalog import NamedTables
from pgheadroom.migration.effect import LOCKS
from pgheadroom.migration.following import follow
from pgheadroom.profile import Profile
from pgheadroom.servers import Host, ServerPrograms

pytestmark = pytest.mark.usefixtures("run_parent")

DDL = """
CREATE TABLE ev (id int, day int) PARTITION BY RANGE (day);
CREATE TABLE ev_1 PARTITION OF ev FOR VALUES FROM (1) TO (2);
CREATE TABLE ev_2 PARTITION OF ev FOR VALUES FROM (2) TO (3) PARTITION BY LIST (id);
CREATE TABLE ev_2_1 PARTITION OF ev_2 FOR VALUES IN (1);
CREATE TABLE ev_rest PARTITION OF ev DEFAULT;
CREATE TABLE ev_old (id int, day int);
CREATE TABLE bare (id int, day int) PARTITION BY RANGE (day);
CREATE TABLE bare_1 PARTITION OF bare FOR VALUES FROM (1) TO (2);
CREATE TABLE deep (id int, day int) PARTITION BY RANGE (day);
CREATE TABLE deep_1 PARTITION OF deep FOR VALUES FROM (1) TO (2);
CREATE TABLE deep_rest PARTITION OF deep DEFAULT PARTITION BY LIST (id);
CREATE TABLE deep_rest_1 PARTITION OF deep_rest FOR VALUES IN (1);
INSERT INTO ev VALUES (1, 1), (1, 2), (1, 99);
INSERT INTO deep VALUES (1, 1), (1, 99)
"""
EV_3 = "CREATE TABLE ev_3 PARTITION OF ev FOR VALUES FROM (3) TO (4)"
EV_4 = "CREATE TABLE ev_4 PARTITION OF ev FOR VALUES FROM (4) TO (5)"
BARE_2 = "CREATE TABLE bare_2 PARTITION OF bare FOR VALUES FROM (2) TO (3)"
CASES = (
    EV_3,
    "CREATE TABLE IF NOT EXISTS ev_1 PARTITION OF ev FOR VALUES FROM (1) TO (2)",
    BARE_2,
    "CREATE TABLE deep_2 PARTITION OF deep FOR VALUES FROM (2) TO (3)",
    "ALTER TABLE ev ATTACH PARTITION ev_old FOR VALUES FROM (3) TO (4)",
    "ALTER TABLE ev DETACH PARTITION ev_1",
    "ALTER TABLE deep DETACH PARTITION deep_1",
    "ALTER TABLE ev DETACH PARTITION ev_1; DROP TABLE ev_1",
    "DROP TABLE ev_1",
    "DROP TABLE ev_2_1",
    "DROP TABLE ev_2",
    "DROP TABLE ev_rest",
    "DROP TABLE bare_1",
    "DROP TABLE deep_1",
    "ALTER TABLE bare ATTACH PARTITION ev_old DEFAULT",
    f"ALTER TABLE bare ATTACH PARTITION ev_old DEFAULT; {BARE_2}",
    f"CREATE TABLE bare_rest PARTITION OF bare DEFAULT; {BARE_2}",
    f"CREATE TABLE bare_rest PARTITION OF bare DEFAULT; {BARE_2}; DROP TABLE bare_rest",
    "ALTER TABLE bare ATTACH PARTITION ev_old DEFAULT; DROP TABLE bare_1",
    f"ALTER TABLE bare ATTACH PARTITION ev_old DEFAULT;"
    f" ALTER TABLE bare DETACH PARTITION ev_old; {BARE_2}",
    f"DROP TABLE ev_rest; ALTER TABLE ev ATTACH PARTITION ev_old DEFAULT; {EV_3}",
    f"DROP TABLE ev_rest; CREATE TABLE ev_rest PARTITION OF ev DEFAULT; {EV_3}; {EV_4}",
    "CREATE TABLE lone (id int, day int) PARTITION BY RANGE (day);"
    " ALTER TABLE lone ATTACH PARTITION ev_old DEFAULT",
    "ALTER TABLE ev_old RENAME TO ev_older;"
    " CREATE TABLE ev_old (id int, day int) PARTITION BY RANGE (day);"
    " ALTER TABLE ev_old ATTACH PARTITION ev_older DEFAULT;"
    " CREATE TABLE ev_old_1 PARTITION OF ev_old FOR VALUES FROM (1) TO (2)",
    "CREATE TABLE ev_2_rest PARTITION OF ev_2 DEFAULT PARTITION BY LIST (day);"
    " ALTER TABLE ev_2_rest ATTACH PARTITION ev_old DEFAULT",
)
_STRENGTH = {str(lock): number for number, lock in enumerate(LOCKS)}
_TABLES = """
    SELECT oid, relname, relkind::text FROM pg_class
    WHERE relkind IN ('r', 'p') AND relnamespace = 'public'::regnamespace
"""
_LOCKED = """
    SELECT relation, replace(mode, 'Lock', '') FROM pg_locks
    WHERE pid = pg_backend_pid() AND locktype = 'relation'
"""
_SCANS = "SELECT oid, pg_stat_get_xact_numscans(oid) FROM pg_class WHERE relkind = 'r'"


def _spelled(mode: str) -> str:
    return "".join(f" {c}" if c.isupper() else c for c in mode).strip().upper()


def _done(connection: psycopg.Connection[Any], ddl: str) -> tuple[dict[str, str], set[str]]:
    """
    The strongest lock of each partitioned table that is left, and the tables that were read.

    Of tables that were there before, by the names that they had.
    """
    connection.execute("BEGIN")
    there = {oid: (name, kind) for oid, name, kind in connection.execute(_TABLES.encode())}
    # What the session has not reported yet is counted too.
    before = dict(connection.execute(_SCANS.encode()).fetchall())
    connection.execute(ddl.encode())
    locks: dict[str, str] = {}
    left = {oid for oid, *_ in connection.execute(_TABLES.encode())}
    for oid, mode in connection.execute(_LOCKED.encode()).fetchall():
        name, kind = there.get(oid, ("", ""))
        lock = _spelled(mode)
        is_told = kind == "p" and oid in left
        if is_told and _STRENGTH[lock] > _STRENGTH["ROW EXCLUSIVE"]:
            locks[name] = max(lock, locks.get(name, lock), key=_STRENGTH.__getitem__)
    after = connection.execute(_SCANS.encode()).fetchall()
    scanned = {there[o][0] for o, scans in after if o in there and scans > before.get(o, 0)}
    connection.execute("ROLLBACK")
    return locks, scanned


def _said(profile: Profile, ddl: str) -> tuple[dict[str, str], set[str]]:
    catalog = NamedTables(profile)
    follow(catalog, read_migration(ddl))
    locks: dict[str, str] = {}
    for note in catalog.notes:
        found = re.search(r"locks it with ([A-Z ]+) until", note.text)
        if found is not None and note.table is not None:
            earlier = locks.get(note.table, found[1])
            locks[note.table] = max(found[1], earlier, key=_STRENGTH.__getitem__)
    read = {
        altered.table.name
        for altered in catalog.altered.values()
        if any(effect.effort == "scan" for _, effect in altered.effects)
    }
    return locks, read


def test_what_is_locked_and_read_when_partitions_come_and_go(programs: ServerPrograms) -> None:
    """
    DROP TABLE of a partition locks the partitioned table, and a default partition is read: unsaid.

    And CREATE TABLE IF NOT EXISTS of a partition that is there, which locks nothing, was said to.
    """
    wrong = []
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        observed.load(cluster, DDL)
        profile = observed.profile_of(observed.watched(cluster, samples=False), sampled=False)
        with cluster.connect() as connection:
            for ddl in CASES:
                done, said = _done(connection, ddl), _said(profile, ddl)
                if said != done:
                    wrong.append(f"{ddl}: {done}, said {said}")
            with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
                connection.execute("ALTER TABLE ev DETACH PARTITION ev_1 CONCURRENTLY")
    assert wrong == []
    catalog = NamedTables(profile)
    follow(catalog, read_migration("ALTER TABLE ev DETACH PARTITION ev_1 CONCURRENTLY"))
    (note,) = catalog.notes
    assert not note.is_judged
    assert "default partition, which is ev_rest" in note.text
