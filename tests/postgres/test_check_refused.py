"""
What PostgreSQL refuses for the NULLs that rows have, against servers.

Each migration runs in a transaction that is taken back, and a check of it says before whether it
fails. Prisma writes `ADD COLUMN ... NOT NULL` for a required field, which fails wherever there are
rows; nothing was said of it.
"""

from __future__ import annotations

import observed
import psycopg
import pytest

from pgheadroom.errors import InputError
from pgheadroom.migration import check_migration, read_migration
from pgheadroom.migration.catalog import NamedTables
from pgheadroom.migration.following import follow
from pgheadroom.profile import Profile
from pgheadroom.servers import Cluster, Host, ServerPrograms

pytestmark = pytest.mark.usefixtures("run_parent")

DDL = """
CREATE DOMAIN counted AS int DEFAULT 7;
CREATE DOMAIN bare AS int;
CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE TABLE t (id int NOT NULL UNIQUE, a int, b int, u int) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT k, k, nullif(k % 4, 0), k FROM generate_series(1, 400) k;
CREATE TABLE pt (id int NOT NULL, k int) PARTITION BY LIST (k);
CREATE TABLE p1 PARTITION OF pt FOR VALUES IN (1);
INSERT INTO pt SELECT k, 1 FROM generate_series(1, 40) k;
CREATE TABLE none (id int);
CREATE TABLE old (id int);
CREATE TABLE heir (more int) INHERITS (old);
INSERT INTO heir SELECT k FROM generate_series(1, 40) k;
VACUUM ANALYZE;
"""
CASES = (
    "ALTER TABLE t ADD c int NOT NULL",
    "ALTER TABLE t ADD c mood NOT NULL",
    "ALTER TABLE t ADD c int, ADD d int NOT NULL",
    "ALTER TABLE t ADD c int NOT NULL DEFAULT NULL",
    "ALTER TABLE t ADD c int NOT NULL DEFAULT 1",
    "ALTER TABLE t ADD c timestamptz NOT NULL DEFAULT now()",
    "ALTER TABLE t ADD c serial NOT NULL",
    "ALTER TABLE t ADD c int NOT NULL GENERATED ALWAYS AS IDENTITY",
    "ALTER TABLE t ADD c int NOT NULL GENERATED ALWAYS AS (a + 1) STORED",
    "ALTER TABLE t ADD c counted NOT NULL",
    "ALTER TABLE t ADD c bare",
    "ALTER TABLE none ADD c int NOT NULL",
    "ALTER TABLE pt ADD c int NOT NULL",
    "ALTER TABLE old ADD c int NOT NULL",
    "TRUNCATE t; ALTER TABLE t ADD c int NOT NULL",
    "DELETE FROM t; ALTER TABLE t ADD c int NOT NULL",
    "ALTER TABLE t ADD c int; ALTER TABLE t ALTER c SET NOT NULL",
    "ALTER TABLE t ADD c int, ALTER c SET NOT NULL",
    "ALTER TABLE t ADD c int; UPDATE t SET c = a; ALTER TABLE t ALTER c SET NOT NULL",
    "ALTER TABLE t ADD c int; ALTER TABLE t RENAME c TO e; ALTER TABLE t ALTER e SET NOT NULL",
    "ALTER TABLE t ADD c counted; ALTER TABLE t ALTER c SET NOT NULL",
    "ALTER TABLE t ADD c int DEFAULT 3; ALTER TABLE t ALTER c SET NOT NULL",
    "ALTER TABLE t ADD c int; ALTER TABLE t ALTER c TYPE text USING 'x'; "
    "ALTER TABLE t ALTER c SET NOT NULL",
    "ALTER TABLE t ALTER a SET NOT NULL",
    "ALTER TABLE t ALTER b SET NOT NULL",
    "ALTER TABLE t RENAME b TO z; ALTER TABLE t ALTER z SET NOT NULL",
    "UPDATE t SET b = 0 WHERE b IS NULL; ALTER TABLE t ALTER b SET NOT NULL",
    "DELETE FROM t WHERE b IS NULL; ALTER TABLE t ALTER b SET NOT NULL",
    "ALTER TABLE t ALTER b TYPE text USING coalesce(b, 0)::text; "
    "ALTER TABLE t ALTER b SET NOT NULL",
    "ALTER TABLE t DROP b; ALTER TABLE t ADD b int NOT NULL DEFAULT 2",
    "ALTER TABLE t ADD PRIMARY KEY (id)",
    "ALTER TABLE t ADD PRIMARY KEY (id, b)",
    "ALTER TABLE t ADD c int; ALTER TABLE t ADD PRIMARY KEY (c, id)",
    "ALTER TABLE t ADD c int UNIQUE",
    "ALTER TABLE t ADD c int CHECK (c > 0)",
)
NEWER = (
    "ALTER TABLE t ADD CONSTRAINT n NOT NULL b",
    "ALTER TABLE t ADD CONSTRAINT n NOT NULL a",
    "ALTER TABLE t ADD CONSTRAINT n NOT NULL b NOT VALID",
)


def _observed(cluster: Cluster) -> Profile:
    observed.load(cluster, DDL)

    def work() -> None:
        with observed.session(cluster) as connection:
            connection.execute("UPDATE t SET u = u WHERE id = 40")

    return observed.profile_of(observed.watched(cluster, work))


def _is_refused(connection: psycopg.Connection, ddl: str) -> bool:
    try:
        with connection.transaction(force_rollback=True):
            for statement in ddl.split(";"):
                connection.execute(statement.encode())
    except psycopg.errors.NotNullViolation:
        return True
    return False


@pytest.mark.each
def test_what_nulls_refuse_is_said(programs: ServerPrograms) -> None:
    """By a note that counts under --strict, which a migration that goes through does not have."""
    cases = CASES + (NEWER if programs.version.major >= 18 else ())
    wrong = []
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        profile = _observed(cluster)
        with cluster.connect() as connection:
            for ddl in cases:
                checked = check_migration(profile, read_migration(ddl))
                said = [note.text for note in checked.notes if "PostgreSQL refuses" in note.text]
                is_refused = _is_refused(connection, ddl)
                if is_refused != bool(said) or bool(said) > bool(checked.strict_findings):
                    wrong.append(f"{ddl}: refused {is_refused}, said {said}")
    assert wrong == []


SET_AGAIN = (
    ("ALTER TABLE t ALTER id SET NOT NULL", "t", False),
    ("ALTER TABLE t ALTER a SET NOT NULL", "t", True),
    ("ALTER TABLE t ALTER a SET NOT NULL; ALTER TABLE t ALTER a SET NOT NULL", "t", False),
    ("ALTER TABLE t ALTER id DROP NOT NULL; ALTER TABLE t ALTER id SET NOT NULL", "t", True),
    ("ALTER TABLE pt ALTER id SET NOT NULL", "p1", False),
)
"""Migrations, with whether their last statement reads the table: as servers of 15, 16 and 18 do."""


def test_not_null_that_is_so_already_reads_nothing(programs: ServerPrograms) -> None:
    """Lemmy's migrations set it again; a scan under ACCESS EXCLUSIVE was foreseen."""
    wrong = []
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        profile = _observed(cluster)
        with cluster.connect() as connection:
            for ddl, table, expected in SET_AGAIN:
                *before, last = ddl.split(";")
                query = f"SELECT pg_stat_get_xact_numscans('{table}'::regclass)"
                connection.execute("BEGIN")
                for statement in before:
                    connection.execute(statement.encode())
                first = connection.execute(query.encode()).fetchone()
                connection.execute(last.encode())
                reads = connection.execute(query.encode()).fetchone() != first
                connection.execute("ROLLBACK")
                catalog = NamedTables(profile)
                follow(catalog, read_migration(ddl))
                (*_, (_, effect)) = catalog.altered[table].effects
                if (reads, effect.effort == "scan") != (expected, expected):
                    wrong.append(f"{ddl}: read {reads}, said {effect}")
    assert wrong == []
    catalog = NamedTables(profile)
    follow(catalog, read_migration("DO $$ BEGIN END $$; ALTER TABLE t ALTER id SET NOT NULL"))
    ((_, effect),) = catalog.altered["t"].effects
    assert effect.effort == "scan"
    assert "line 1" in str(effect.unless)


def test_after_a_block_nobody_knows_the_rows(newest: ServerPrograms) -> None:
    """DO may have filled them: it is not understood, and that is what is said."""
    with Host(newest) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        profile = _observed(cluster)
    text = "DO $$ BEGIN DELETE FROM t; END $$; ALTER TABLE t ADD c int NOT NULL"
    checked = check_migration(profile, read_migration(text))
    assert not [note for note in checked.notes if "refuses" in note.text]
    assert checked.strict_findings == ("line 1: not understood",)


def test_writes_to_a_table_without_a_key_are_no_idle_interval(newest: ServerPrograms) -> None:
    """They belong to no operation that could be played: "nothing was written" was said, exit 2."""
    with Host(newest) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        observed.load(cluster, "CREATE TABLE bare (a int); INSERT INTO bare VALUES (1)")

        def work() -> None:
            with observed.session(cluster) as connection:
                connection.execute("UPDATE bare SET a = a + 1")

        written = observed.profile_of(observed.watched(cluster, work))
        idle = observed.profile_of(observed.watched(cluster))
    listed = read_migration("ALTER TABLE bare ADD c int")
    (table,) = check_migration(written, listed).tables
    assert table.updates_per_s > 0
    with pytest.raises(InputError, match="nothing was written"):
        check_migration(idle, listed)
