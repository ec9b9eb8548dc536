"""
What `check` says of tables that a statement does not name, and of what is there already.

A database with foreign keys is observed once on each server. Each case runs in a transaction that
is taken back: every table's strongest lock in pg_locks, and whether it has another relfilenode,
against what the check shows of it.
"""

from __future__ import annotations

from typing import Any

import observed
import psycopg
import pytest

from pgheadroom.migration import read_migration
from pgheadroom.migration.catalog import NamedTables
from pgheadroom.migration.effect import LOCKS
from pgheadroom.migration.following import follow
from pgheadroom.profile import Profile
from pgheadroom.servers import Cluster, Host, ServerPrograms

pytestmark = pytest.mark.usefixtures("run_parent")

DDL = """
CREATE TABLE p (id int PRIMARY KEY, v varchar(10) UNIQUE, x int);
CREATE TABLE g (id int PRIMARY KEY);
CREATE TABLE t (id int PRIMARY KEY, a int, p_id int CONSTRAINT fk REFERENCES p,
    v varchar(10) CONSTRAINT fv REFERENCES p (v), CONSTRAINT chk CHECK (a > 0));
CREATE TABLE n (id int PRIMARY KEY, p_id int);
ALTER TABLE n ADD CONSTRAINT nf FOREIGN KEY (p_id) REFERENCES p NOT VALID;
CREATE TABLE s (id int PRIMARY KEY, up int CONSTRAINT sf REFERENCES s, b int);
CREATE TABLE pt (id int, k int, g_id int CONSTRAINT ptfk REFERENCES g) PARTITION BY LIST (k);
CREATE TABLE p1 PARTITION OF pt FOR VALUES IN (1);
CREATE TABLE p2 (id int, k int, g_id int);
CREATE TABLE qt (id int PRIMARY KEY) PARTITION BY LIST (id);
CREATE TABLE q1 PARTITION OF qt FOR VALUES IN (1);
CREATE TABLE r (id int PRIMARY KEY, q_id int CONSTRAINT rf REFERENCES qt);
CREATE TABLE h (id int PRIMARY KEY, t_id int CONSTRAINT hf REFERENCES t);
CREATE INDEX t_a ON t (a);
CREATE DOMAIN free AS int;
CREATE DOMAIN small AS int CHECK (VALUE < 100);
CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE TABLE w (id int PRIMARY KEY, s small, m mood, f free);
CREATE TABLE animal (id int, weight int);
CREATE TABLE dog (bark int) INHERITS (animal);
CREATE TABLE puppy (age int) INHERITS (dog);
CREATE TABLE dt (id int, k int) PARTITION BY LIST (k);
CREATE TABLE d1 PARTITION OF dt FOR VALUES IN (1);
CREATE TABLE d_rest PARTITION OF dt DEFAULT;
CREATE TABLE d3 (id int, k int);
INSERT INTO w VALUES (1, 1, 'ok', 1);
INSERT INTO p SELECT k, k, k FROM generate_series(1, 9) k;
INSERT INTO t SELECT k, k, k, k FROM generate_series(1, 9) k;
"""
CASES = (
    # What is there already, or not.
    "ALTER TABLE t ADD COLUMN IF NOT EXISTS a float8 DEFAULT random()",
    "ALTER TABLE t ADD COLUMN IF NOT EXISTS a int UNIQUE CHECK (a > 1) REFERENCES g",
    "ALTER TABLE t ADD COLUMN IF NOT EXISTS c float8 DEFAULT random()",
    "ALTER TABLE t ADD COLUMN IF NOT EXISTS c int UNIQUE REFERENCES g",
    "ALTER TABLE t ADD COLUMN IF NOT EXISTS a int, ADD COLUMN IF NOT EXISTS d int REFERENCES g",
    "ALTER TABLE t ADD COLUMN c int; ALTER TABLE t ADD COLUMN IF NOT EXISTS c int REFERENCES g",
    "ALTER TABLE t DROP COLUMN IF EXISTS zz",
    "ALTER TABLE t DROP a; ALTER TABLE t ADD COLUMN IF NOT EXISTS a float8 DEFAULT random()",
    "CREATE INDEX IF NOT EXISTS t_a ON t (id)",
    "CREATE INDEX IF NOT EXISTS t_a ON p (x)",
    "CREATE INDEX IF NOT EXISTS g ON t (id)",
    "CREATE INDEX IF NOT EXISTS t_z ON t (id)",
    "DROP INDEX t_a; CREATE INDEX IF NOT EXISTS t_a ON t (id)",
    "ALTER INDEX t_a RENAME TO t_z; CREATE INDEX IF NOT EXISTS t_a ON t (id)",
    "DROP INDEX IF EXISTS zz",
    "CREATE TABLE IF NOT EXISTS t (z int REFERENCES g)",
    "CREATE TABLE IF NOT EXISTS p1 PARTITION OF pt FOR VALUES IN (2)",
    "CREATE TABLE IF NOT EXISTS t () INHERITS (g)",
    "CREATE TABLE IF NOT EXISTS z (z int REFERENCES g)",
    "ALTER TABLE t RENAME TO o; CREATE TABLE IF NOT EXISTS t (z int REFERENCES g)",
    "ALTER TABLE IF EXISTS zz ADD c int",
    # Renames before use.
    "ALTER TABLE t RENAME a TO o; ALTER TABLE t ADD a float8 DEFAULT random()",
    "ALTER TABLE t RENAME a TO o; ALTER TABLE t ADD COLUMN IF NOT EXISTS a float8 DEFAULT random()",
    "ALTER TABLE t RENAME a TO o; ALTER TABLE t ADD COLUMN IF NOT EXISTS o float8 DEFAULT random()",
    "ALTER TABLE t RENAME TO o; ALTER TABLE o ADD COLUMN IF NOT EXISTS a int UNIQUE",
    "ALTER TABLE p RENAME TO o; ALTER TABLE t DROP CONSTRAINT fk",
    "ALTER TABLE t RENAME TO o; ALTER TABLE o DROP CONSTRAINT fk",
    "ALTER TABLE t RENAME CONSTRAINT fk TO fk9; ALTER TABLE t DROP CONSTRAINT fk9",
    "ALTER TABLE t RENAME p_id TO q; ALTER TABLE t DROP q",
    # The other table of a foreign key.
    "ALTER TABLE t DROP CONSTRAINT fk",
    "ALTER TABLE t DROP CONSTRAINT chk",
    "ALTER TABLE t DROP CONSTRAINT IF EXISTS zz",
    "ALTER TABLE t DROP CONSTRAINT fk, DROP CONSTRAINT fv",
    "ALTER TABLE n DROP CONSTRAINT nf",
    "ALTER TABLE s DROP CONSTRAINT sf",
    "ALTER TABLE s DROP up",
    "ALTER TABLE r DROP CONSTRAINT rf",
    "ALTER TABLE pt DROP CONSTRAINT ptfk",
    "ALTER TABLE pt DROP g_id",
    "ALTER TABLE t DROP p_id, DROP v",
    "ALTER TABLE p DROP CONSTRAINT p_pkey CASCADE",
    "ALTER TABLE p DROP v CASCADE",
    "ALTER TABLE p DROP x",
    "ALTER TABLE t ALTER p_id TYPE bigint",
    "ALTER TABLE t ALTER v TYPE text",
    "ALTER TABLE t ALTER v TYPE varchar(5)",
    "ALTER TABLE t ALTER id TYPE bigint",
    "ALTER TABLE p ALTER v TYPE varchar(20)",
    "ALTER TABLE p ALTER id TYPE bigint",
    "ALTER TABLE s ALTER up TYPE bigint",
    "ALTER TABLE s ADD FOREIGN KEY (b) REFERENCES s",
    "ALTER TABLE t ADD FOREIGN KEY (a) REFERENCES p",
    "ALTER TABLE pt ATTACH PARTITION p2 FOR VALUES IN (2)",
    "ALTER TABLE pt DETACH PARTITION p1",
    "CREATE TABLE p3 PARTITION OF pt FOR VALUES IN (3)",
    "DROP TABLE t CASCADE",
    "DROP TABLE h",
    "DROP TABLE s",
    "DROP TABLE pt",
    "DROP TABLE p1",
    # The default partition.
    "CREATE TABLE d2 PARTITION OF dt FOR VALUES IN (2)",
    "CREATE TABLE IF NOT EXISTS d1 PARTITION OF dt FOR VALUES IN (1)",
    "ALTER TABLE dt ATTACH PARTITION d3 FOR VALUES IN (3)",
    "ALTER TABLE dt DETACH PARTITION d1",
    "ALTER TABLE dt DETACH PARTITION d_rest",
    "ALTER TABLE dt DETACH PARTITION d_rest; CREATE TABLE d2 PARTITION OF dt FOR VALUES IN (2)",
    "ALTER TABLE dt RENAME TO du; ALTER TABLE d_rest RENAME TO d_other;"
    "CREATE TABLE d2 PARTITION OF du FOR VALUES IN (2)",
    "ALTER TABLE dt DETACH PARTITION d1; DROP TABLE d1",
    "DROP TABLE d1",
    "DROP TABLE d_rest",
    "DROP TABLE dt",
    "ALTER TABLE d1 ALTER id SET NOT NULL",
    "TRUNCATE p CASCADE",
    "TRUNCATE t, h",
    "ALTER TABLE t ALTER p_id SET NOT NULL",
    # Foreign keys that the migration itself makes.
    "CREATE TABLE z (id int, t_id int REFERENCES t); DROP TABLE z",
    "CREATE TABLE z (id int, t_id int REFERENCES t); ALTER TABLE z DROP t_id",
    "CREATE TABLE z (id int, t_id int REFERENCES t); ALTER TABLE z DROP CONSTRAINT z_t_id_fkey",
    "CREATE TABLE z (t_id int REFERENCES t); ALTER TABLE z RENAME t_id TO u;"
    "ALTER TABLE z RENAME TO y; ALTER TABLE y DROP u",
    "CREATE TABLE z (id int PRIMARY KEY); CREATE TABLE y (z_id int REFERENCES z); DROP TABLE y",
    "ALTER TABLE h ADD c int REFERENCES p; ALTER TABLE h DROP CONSTRAINT h_c_fkey",
    "ALTER TABLE h ADD c int REFERENCES p; ALTER TABLE h RENAME c TO d; ALTER TABLE h DROP d",
    "ALTER TABLE h ADD CONSTRAINT hp FOREIGN KEY (id) REFERENCES p (id) NOT VALID;"
    "ALTER TABLE h ALTER id TYPE bigint",
    "ALTER TABLE h ADD c int, ADD FOREIGN KEY (c) REFERENCES p; TRUNCATE p CASCADE",
    "ALTER TABLE h ADD c int, ADD FOREIGN KEY (c) REFERENCES g; ALTER TABLE g DROP id CASCADE",
    "ALTER TABLE h ADD c int; ALTER TABLE h ADD FOREIGN KEY (c) REFERENCES p;"
    "ALTER TABLE h ADD FOREIGN KEY (c) REFERENCES g; ALTER TABLE h DROP CONSTRAINT h_c_fkey1",
    "ALTER TABLE h ADD c int REFERENCES g; ALTER TABLE g DROP CONSTRAINT g_pkey CASCADE",
    "ALTER TABLE h ADD c int REFERENCES h; ALTER TABLE h DROP CONSTRAINT h_c_fkey",
    # Domains.
    "ALTER TABLE w ADD c small",
    "ALTER TABLE w ADD c public.small NOT NULL DEFAULT 1",
    "ALTER TABLE w ADD c small[], ADD d free, ADD e mood",
    "CREATE DOMAIN d AS int; ALTER TABLE w ADD c d",
    "CREATE DOMAIN d AS small; ALTER TABLE w ADD c d",
    "CREATE DOMAIN d AS text NOT NULL; ALTER TABLE g ADD c d DEFAULT ''",
    "CREATE DOMAIN d AS text; ALTER TABLE w ADD c d; ALTER DOMAIN d ADD CHECK (VALUE <> '')",
    "ALTER DOMAIN small ADD CHECK (VALUE > 0)",
    "ALTER DOMAIN small ADD CONSTRAINT c CHECK (VALUE > 0) NOT VALID",
    "ALTER DOMAIN small ADD CONSTRAINT c CHECK (VALUE > 0) NOT VALID;"
    "ALTER DOMAIN small VALIDATE CONSTRAINT c",
    "ALTER DOMAIN free SET NOT NULL",
    "ALTER DOMAIN free ADD CHECK (VALUE > 0); ALTER TABLE g ADD c free",
    "ALTER DOMAIN small DROP CONSTRAINT small_check",
    "ALTER DOMAIN small SET DEFAULT 5",
    # Tables that inherit, and a partitioned table alone.
    "ALTER TABLE animal ADD c int DEFAULT 3",
    "ALTER TABLE animal ALTER weight TYPE bigint",
    "ALTER TABLE dog ALTER bark TYPE bigint",
    "ALTER TABLE animal ALTER weight SET NOT NULL, ALTER weight SET DEFAULT 1",
    "ALTER TABLE animal ADD CHECK (weight > 0)",
    "ALTER TABLE animal RENAME weight TO w",
    "ALTER TABLE animal DROP weight",
    "CREATE INDEX ON animal (id)",
    "TRUNCATE animal",
    "LOCK TABLE animal IN SHARE MODE",
    "CREATE INDEX ON ONLY pt (id)",
)
DROPPED = ("h", "s", "t", "p1", "d1", "d_rest")
_OF_SHOWN = LOCKS[LOCKS.index("SHARE UPDATE EXCLUSIVE") :]
_TABLES = """
    SELECT relname, oid::int8, relfilenode::int8 FROM pg_class
    WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
"""
_HELD = """
    SELECT relation::int8, replace(mode, 'Lock', '') FROM pg_locks
    WHERE pid = pg_backend_pid() AND locktype = 'relation'
"""


def _observed(cluster: Cluster) -> Profile:
    observed.load(cluster, DDL)
    return observed.profile_of(observed.watched(cluster, samples=False), sampled=False)


def _spelled(mode: str) -> str:
    return "".join(f" {c}" if c.isupper() else c for c in mode).strip().upper()


def _done(connection: psycopg.Connection[Any], ddl: str) -> dict[str, tuple[str, bool]]:
    """Each table's strongest lock that is shown, and whether it was rewritten."""
    connection.execute("BEGIN")
    before = connection.execute(_TABLES.encode()).fetchall()
    connection.execute(ddl.encode())
    after = {oid: file for _, oid, file in connection.execute(_TABLES.encode()).fetchall()}
    held: dict[int, list[str]] = {}
    for oid, mode in connection.execute(_HELD.encode()).fetchall():
        held.setdefault(oid, []).append(_spelled(mode))
    connection.execute("ROLLBACK")
    found = {}
    for name, oid, file in before:
        locks = [mode for mode in held.get(oid, ()) if mode in _OF_SHOWN]
        if locks and oid in after:  # what is dropped is shown as dropped
            is_new = after[oid] != file and "TRUNCATE" not in ddl
            found[name] = (max(locks, key=LOCKS.index), is_new)
    return found


def _said(profile: Profile, ddl: str, gone: set[str]) -> dict[str, tuple[str, bool]]:
    catalog = NamedTables(profile)
    follow(catalog, read_migration(ddl))
    found = {}
    for name, altered in catalog.altered.items():
        effects = [effect for _, effect in altered.effects]
        if effects and name not in gone:
            lock = max((effect.lock for effect in effects), key=LOCKS.index)
            found[name] = (lock, any(effect.effort == "rewrite" for effect in effects))
    return found


def test_every_table_that_a_statement_locks_or_rewrites(programs: ServerPrograms) -> None:
    """
    What `check` shows is what happens.

    DROP CONSTRAINT of a foreign key locked another table unsaid, a key to the own table was shown
    twice, and a column that is there was weighed with its constraints as if it were new.
    """
    wrong = []
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        profile = _observed(cluster)
        with cluster.connect() as connection:
            for ddl in CASES:
                done = _done(connection, ddl)
                gone = {name for name in DROPPED if f"DROP TABLE {name}" in ddl}
                gone |= {"p1"} if "DROP TABLE pt" in ddl else set()
                gone |= {"d1", "d_rest"} if "DROP TABLE dt" in ddl else set()
                said = _said(profile, ddl, gone)
                if said != done:
                    wrong.append(f"{ddl}: {done}, said {said}")
    assert wrong == []


def test_a_key_to_the_own_table_is_shown_once(programs: ServerPrograms) -> None:
    """The table is read for it, and locked as the one that refers is."""
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        catalog = NamedTables(_observed(cluster))
        follow(catalog, read_migration("ALTER TABLE s ADD FOREIGN KEY (b) REFERENCES s"))
        (only,) = catalog.altered["s"].effects
        assert (only[1].effort, only[1].what) == ("scan", "a new foreign key")


def test_keys_are_observed_by_name_and_masked(newest: ServerPrograms) -> None:
    """Those of the tables that were chosen, at either end; a mask hides their names too."""
    with Host(newest) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        observed.load(cluster, DDL)
        recording = observed.watched(cluster, samples=False)
    server = observed.profile_of(recording, sampled=False, only=("h",)).server.observed
    assert server is not None
    (key,) = server.foreign_keys or ()
    assert (key.schema, key.table, key.name, key.columns) == ("public", "h", "hf", ("t_id",))
    assert (key.references, key.references_columns) == ("t", ("id",))
    assert (key.references_index, key.is_valid) == ("t_pkey", True)
    masked = observed.profile_of(recording, sampled=False, mask=True).server.observed
    assert masked is not None
    assert len(masked.foreign_keys or ()) == 7
    assert "ptfk" not in str(masked.foreign_keys)
    assert all(found.table.startswith("table_") for found in masked.foreign_keys or ())
