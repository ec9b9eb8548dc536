"""Types of extensions in `check`: what another type of a column makes anew."""

from __future__ import annotations

import observed
import pytest

from pgheadroom.migration import read_migration
from pgheadroom.migration.catalog import NamedTables
from pgheadroom.migration.following import follow
from pgheadroom.profile import Profile
from pgheadroom.servers import Host, ServerPrograms

pytestmark = pytest.mark.usefixtures("run_parent")

DDL = """
CREATE SCHEMA ext;
CREATE EXTENSION citext SCHEMA ext;
CREATE TABLE t (id int PRIMARY KEY, c ext.citext, bare ext.citext, tx text, v varchar);
CREATE INDEX t_c ON t (c);
CREATE INDEX t_tx ON t (tx);
INSERT INTO t SELECT i, 'a', 'b', 'c', 'd' FROM generate_series(1, 20) i
"""
CHANGES = (
    "ALTER TABLE t ALTER c TYPE text",
    "ALTER TABLE t ALTER bare TYPE text",
    "ALTER TABLE t ALTER bare TYPE varchar",
    "ALTER TABLE t ALTER bare TYPE varchar(40)",
    "ALTER TABLE t ALTER tx TYPE ext.citext",
    "ALTER TABLE t ALTER v TYPE ext.citext",
    "ALTER TABLE t ALTER c TYPE bytea USING c::text::bytea",
)
_FILES = (
    "SELECT relname, pg_relation_filenode(oid) FROM pg_class WHERE relname IN ('t', 't_c', 't_tx')"
)


def _said(profile: Profile, ddl: str) -> str:
    catalog = NamedTables(profile)
    follow(catalog, read_migration(ddl))
    ((_, effect),) = catalog.of_key("t").effects
    if effect.effort == "build" and effect.unless == "no index has it":
        (column,) = [word for word in ("c", "tx") if f"column {word} " in effect.what] or ["none"]
        return "build" if column in ("c", "tx") else "nothing"
    return effect.effort


@pytest.mark.contrib
def test_citext_is_text_on_disk_in_whatever_schema_it_is(programs: ServerPrograms) -> None:
    """
    `format_type` names it with its schema, and `check` took it for a type that it did not know.

    So another type was said to rewrite the table, which builds its indexes anew at most.
    """
    wrong = []
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        with cluster.connect() as connection:
            if not connection.execute(
                "SELECT FROM pg_available_extensions WHERE name = 'citext'"
            ).fetchall():
                pytest.skip(f"{programs} has no contrib modules")
        observed.load(cluster, DDL)
        profile = observed.profile_of(observed.watched(cluster, samples=False), sampled=False)
        with cluster.connect(autocommit=False) as connection:
            for ddl in CHANGES:
                before = dict(connection.execute(_FILES.encode()).fetchall())
                connection.execute(ddl.encode())
                after = dict(connection.execute(_FILES.encode()).fetchall())
                connection.rollback()
                moved = {name for name in before if after[name] != before[name]}
                done = "rewrite" if "t" in moved else "build" if moved else "nothing"
                if (said := _said(profile, ddl)) != done:
                    wrong.append(f"{ddl}: {done}, said {said}")
    assert wrong == []
