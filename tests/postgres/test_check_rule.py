"""
The rule of `check` against servers: which statements are HOT after each kind of DDL.

One table, observed once on each server. Each case applies its DDL in a transaction, runs one
statement a class, counts HOT updates and takes everything back. The table has room on its pages, so
that indexes alone decide.
"""

from __future__ import annotations

import random
from typing import Any

import observed
import psycopg
import pytest

from pgheadroom.advise.hot import Part, can_be_hot
from pgheadroom.migration import read_migration
from pgheadroom.migration.catalog import NamedTables
from pgheadroom.migration.following import follow
from pgheadroom.migration.shape import Altered
from pgheadroom.profile import Profile
from pgheadroom.servers import Cluster, Host, ServerPrograms

pytestmark = pytest.mark.usefixtures("run_parent")

DDL = """
CREATE TABLE base (id int PRIMARY KEY, a int, b int, c int, d int, t text, j jsonb, r int4range,
    g int GENERATED ALWAYS AS (d + 1) STORED) WITH (fillfactor = 30, autovacuum_enabled = off);
CREATE TABLE kids (id int, base_id int) WITH (autovacuum_enabled = off);
CREATE FUNCTION of_row(base) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 1';
INSERT INTO base SELECT i, i, i, i, i, 't' || i, '{"k": 1}', int4range(i, i + 1)
    FROM generate_series(1, 40) i;
CREATE INDEX base_b ON base (b);
VACUUM ANALYZE
"""
CHANGES = {
    "a": "a = a + 100",
    "b": "b = b + 100",
    "c": "c = c + 100",
    "d": "d = d + 100",
    "t": "t = t || 'x'",
    "j": "j = j || '{\"m\": 2}'",
    "r": "r = int4range(lower(r) + 1000, upper(r) + 1000)",
}
CASES: tuple[tuple[str, str], ...] = (
    ("", ""),
    ("", "CREATE INDEX x ON base (a)"),
    ("", "CREATE INDEX x ON base (a DESC NULLS LAST, c)"),
    ("", "CREATE UNIQUE INDEX x ON base (id, a)"),
    ("", "CREATE INDEX x ON base (c) INCLUDE (a)"),
    ("", "CREATE INDEX x ON base ((a * 0))"),
    ("", "CREATE INDEX x ON base (lower(t) text_pattern_ops)"),
    ("", "CREATE INDEX x ON base (c) WHERE a > 1000000"),
    ("", "CREATE INDEX x ON base (lower(t)) WHERE a IS NOT NULL AND r IS NOT NULL"),
    ("", "CREATE INDEX x ON base USING brin (a)"),
    ("", "CREATE INDEX x ON base USING brin (c) WHERE a > 5"),
    ("", "CREATE INDEX x ON base USING hash (a)"),
    ("", "CREATE INDEX x ON base USING gin (j)"),
    ("", "CREATE INDEX x ON base USING gist (r)"),
    ("", "CREATE INDEX x ON base USING spgist (t)"),
    ("", "CREATE INDEX x ON base ((j ->> 'k'))"),
    ("", "CREATE INDEX x ON base (g)"),
    ("", "CREATE INDEX x ON base (id) INCLUDE (g)"),
    ("", "CREATE INDEX x ON base (id) WHERE g > 5"),
    ("", "CREATE INDEX x ON base (of_row(base))"),
    ("", "CREATE INDEX x ON base (id) WHERE base IS NOT NULL"),
    ("", "ALTER TABLE base ADD CONSTRAINT x UNIQUE (id, a)"),
    ("", "ALTER TABLE base ADD UNIQUE NULLS NOT DISTINCT (id, a) INCLUDE (c)"),
    ("", "ALTER TABLE base ADD CONSTRAINT x EXCLUDE USING gist (r WITH &&) WHERE (a > 0)"),
    ("", "ALTER TABLE base DROP CONSTRAINT base_pkey, ADD PRIMARY KEY (id, c)"),
    (
        "",
        "CREATE UNIQUE INDEX x ON base (a); ALTER TABLE base ADD CONSTRAINT y UNIQUE USING INDEX x",
    ),
    ("", "DROP INDEX base_b"),
    ("", "CREATE INDEX x ON base (a); ALTER INDEX x RENAME TO y; DROP INDEX y"),
    ("", "ALTER TABLE base DROP COLUMN b"),
    ("", "CREATE INDEX x ON base (g); ALTER TABLE base DROP COLUMN d CASCADE"),
    ("", "ALTER TABLE base ALTER a TYPE bigint; CREATE INDEX x ON base (a)"),
    ("", "ALTER TABLE base ALTER b TYPE bigint, ALTER c TYPE text USING 'c' || c"),
    ("", "ALTER TABLE base ADD COLUMN h int GENERATED ALWAYS AS (c * 0) STORED"),
    (
        "",
        "ALTER TABLE base ADD COLUMN h int GENERATED ALWAYS AS (c * 2) STORED;"
        "CREATE INDEX x ON base (h)",
    ),
    ("", "ALTER TABLE base ADD COLUMN h int UNIQUE"),
    ("", "ALTER TABLE base ADD COLUMN h float8 DEFAULT random(); CREATE INDEX x ON base (h)"),
    ("", "ALTER TABLE base RENAME COLUMN a TO z; CREATE INDEX x ON base (z)"),
    (
        "",
        "ALTER TABLE base RENAME a TO z; ALTER TABLE base RENAME c TO a;"
        "ALTER TABLE base RENAME z TO c; CREATE INDEX x ON base (a)",
    ),
    ("", "ALTER TABLE base RENAME a TO z; ALTER TABLE base ADD a int; CREATE INDEX x ON base (a)"),
    ("", "ALTER TABLE base RENAME TO tasks; CREATE INDEX x ON tasks (a)"),
    ("", "ALTER TABLE base ALTER g DROP EXPRESSION; CREATE INDEX x ON base (g)"),
    (">= 17", "CREATE INDEX x ON base (g); ALTER TABLE base ALTER g SET EXPRESSION AS (c + 1)"),
    (">= 18", "ALTER TABLE base ADD h int GENERATED ALWAYS AS (a + 1) VIRTUAL"),
    ("", "ALTER TABLE base SET (fillfactor = 50), ALTER a SET NOT NULL"),
    ("", "ALTER TABLE base ADD CHECK (a > 0), ALTER c SET STATISTICS 500, REPLICA IDENTITY FULL"),
    ("", "CREATE INDEX x ON kids (base_id)"),
    ("", "ALTER TABLE kids ADD FOREIGN KEY (base_id) REFERENCES base (id)"),
    ("", "REINDEX TABLE base"),
    ("", "ALTER TABLE base ADD COLUMN IF NOT EXISTS a int UNIQUE"),
    ("", "ALTER TABLE base DROP COLUMN IF EXISTS zz, ADD COLUMN IF NOT EXISTS h int UNIQUE"),
    ("", "CREATE INDEX IF NOT EXISTS base_b ON base (a)"),
    ("", "CREATE INDEX IF NOT EXISTS kids ON base (a)"),
    ("", "ALTER INDEX base_b RENAME TO y; CREATE INDEX IF NOT EXISTS base_b ON base (a)"),
    ("", "CREATE TABLE IF NOT EXISTS base (a int UNIQUE)"),
    ("", "ALTER TABLE base RENAME a TO z; ALTER TABLE base ADD COLUMN IF NOT EXISTS z int UNIQUE"),
)


def _followed(profile: Profile, ddl: str) -> Altered:
    listed = read_migration(ddl)
    assert [s.problem for s in listed if s.problem is not None] == [], ddl
    catalog = NamedTables(profile)
    # A fillfactor that is in force already, so that a case that leaves the table alone has it.
    follow(catalog, (*read_migration("ALTER TABLE base SET (fillfactor = 30)"), *listed))
    return catalog.altered["base"]


def _expected(altered: Altered) -> dict[str, bool]:
    """By the name that a column has after the DDL: whether an update of it can be HOT."""
    found = {}
    for name, identity in altered.names.items():
        if name in CHANGES:
            part = Part(assigned=frozenset({identity}), frac=1.0)
            found[name] = can_be_hot(altered.after, part)
    return found


def _hot(connection: psycopg.Connection[Any], table: str, row: int, change: str) -> bool:
    """Whether an update of one row is HOT, by the transaction's own counters."""
    query = (
        "SELECT pg_stat_get_xact_tuples_updated(oid), pg_stat_get_xact_tuples_hot_updated(oid) "
        "FROM pg_class WHERE relname = %s AND relkind = 'r'"
    )
    before = connection.execute(query, (table,)).fetchone()
    connection.execute(f"UPDATE {table} SET {change} WHERE id = {row}".encode())
    after = connection.execute(query, (table,)).fetchone()
    assert before is not None
    assert after is not None
    assert after[0] - before[0] == 1
    return bool(after[1] - before[1])


def _measured(connection: psycopg.Connection[Any], ddl: str, names: list[str]) -> dict[str, bool]:
    table = "tasks" if "RENAME TO tasks" in ddl else "base"
    found = {}
    for statement in filter(str.strip, ddl.split(";")):
        connection.execute(statement.encode())
    for row, name in enumerate(names, 1):
        change = CHANGES[name]
        if name in ("a", "c") and "TYPE text" in ddl and name == "c":
            change = "c = c || 'x'"
        if "ADD a int" in ddl and name == "a":
            change = "a = 1"
        found[name] = _hot(connection, table, row, change)
    return found


def _fits(programs: ServerPrograms, condition: str) -> bool:
    return not condition or programs.version.major >= int(condition.removeprefix(">= "))


def _profile(cluster: Cluster) -> Profile:
    """With a statement inside the interval, so that the profile is not idle."""

    def work() -> None:
        with observed.session(cluster) as connection:
            connection.execute("UPDATE base SET c = c WHERE id = 40")

    return observed.profile_of(observed.watched(cluster, work))


def test_each_kind_of_ddl_ends_hot_as_the_rule_says(programs: ServerPrograms) -> None:
    """Every class of statements, after every kind of DDL: HOT or not, as foreseen."""
    wrong = []
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        with cluster.connect() as connection:
            for statement in DDL.rstrip().split(";\n"):
                connection.execute(statement.encode())
        profile = _profile(cluster)
        with cluster.connect() as connection:
            for condition, ddl in CASES:
                if not _fits(programs, condition):
                    continue
                expected = _expected(_followed(profile, ddl))
                connection.execute("BEGIN")
                measured = _measured(connection, ddl, list(expected))
                connection.execute("ROLLBACK")
                wrong += [
                    f"{ddl}: {name}: HOT {measured[name]}, by the rule {expected[name]}"
                    for name in expected
                    if measured[name] != expected[name]
                ]
                assert len(expected) >= 5, ddl
    assert wrong == []


def test_what_is_equal_stays_hot_and_what_is_invalid_counts(programs: ServerPrograms) -> None:
    """An assigned column that keeps its value; an index that a failed build has left."""
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        with cluster.connect() as connection:
            for statement in DDL.rstrip().split(";\n"):
                connection.execute(statement.encode())
            connection.execute("BEGIN")
            assert _hot(connection, "base", 1, "b = b, a = a + 1")
            assert _hot(connection, "base", 2, "b = 2, g = DEFAULT, d = d")
            assert not _hot(connection, "base", 3, "b = b + 1")
            connection.execute("CREATE INDEX x ON base (a)")
            connection.execute(
                "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'x'::regclass"
            )
            assert not _hot(connection, "base", 4, "a = a + 1")
            connection.execute(
                "UPDATE pg_index SET indislive = false WHERE indexrelid = 'x'::regclass"
            )
            connection.execute("SELECT 1")
            connection.execute("CREATE INDEX y ON base (of_row(base))")
            assert not _hot(connection, "base", 5, "a = a")
            connection.execute("ROLLBACK")


NAMED_DDL = f"""
CREATE TABLE jobs (id int PRIMARY KEY, a int, b text, c jsonb, expr int, "lower" text,
    "Mixed Case" int, {"w" * 40} int, {"w" * 39}ü int);
CREATE TABLE {"t" * 60} (id int PRIMARY KEY, a int, b text, {"v" * 60} int);
CREATE TABLE "größe" (id int PRIMARY KEY, "maß" int, b text);
CREATE TABLE part (id int, k int, b text) PARTITION BY LIST (k);
CREATE TABLE part_1 PARTITION OF part FOR VALUES IN (1);
CREATE TABLE part_2 PARTITION OF part FOR VALUES IN (2)
"""
KEYS = {
    "jobs": ("a", "b", "expr", '"lower"', '"Mixed Case"', "w" * 40, f"{'w' * 39}ü", "lower(b)",
             "(a + 1)", "(b || 'x')", "((a + 1)::text)", "(b::varchar)", "(c ->> 'k')", "(a)",
             "((c -> 'k')::text)", "coalesce(b, 'x')", "(nullif(b, ''))", "((ARRAY[a, 1])[1])",
             "(CASE WHEN a > 1 THEN a ELSE expr END)", "(CASE WHEN a > 1 THEN 1 END)",
             "(greatest(a, 1))", "(b COLLATE \"C\")", "(lower(b) COLLATE \"C\")",
             "(a IS NULL)", "md5(b)", "substring(b FROM 1 FOR 3)", "(row(a) IS NULL)",
             "extract(epoch FROM timestamp '2000-01-01' + a * interval '1 s')"),
    "t" * 60: ("a", "b", "v" * 60, "lower(b)", "(a * 2)"),
    '"größe"': ('"maß"', "b", "lower(b)"),
    "part": ("id", "k", "lower(b)", "(id + 1)"),
}  # fmt: skip


def _unnamed(draw: random.Random) -> str:
    """An index or a constraint without a name."""
    table = draw.choice([*KEYS, "jobs", "jobs"])
    keys = [draw.choice(KEYS[table]) for _ in range(draw.choice((1, 1, 2, 3)))]
    if draw.random() < 0.2 and table != "part":
        plain = [key for key in keys if "(" not in key] or ["b"]
        return f"ALTER TABLE {table} ADD UNIQUE ({', '.join(dict.fromkeys(plain))})"
    include = " INCLUDE (b)" if draw.random() < 0.2 else ""
    return f"CREATE INDEX ON {table} ({', '.join(keys)}){include}"


def test_indexes_without_a_name_are_called_as_servers_call_them(newest: ServerPrograms) -> None:
    """Generated DDL: expressions, INCLUDE, long names, names that are taken, partitions."""
    draw = random.Random(7)
    texts = [_unnamed(draw) for _ in range(160)]
    texts[40:40] = ["ALTER TABLE jobs RENAME COLUMN a TO a2", "ALTER TABLE jobs RENAME a2 TO a"]
    renamed = ["ALTER TABLE jobs RENAME TO jobs_2"]
    renamed += [_unnamed(draw).replace(" jobs ", " jobs_2 ") for _ in range(20)]
    dropped = ["CREATE INDEX gone ON part (k)", "DROP INDEX gone", "CREATE INDEX ON part (k)"]
    with Host(newest) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        with cluster.connect() as connection:
            for statement in NAMED_DDL.strip().split(";\n"):
                connection.execute(statement.encode())

        def work() -> None:
            with observed.session(cluster) as connection:
                connection.execute("INSERT INTO jobs (id) VALUES (1)")

        catalog = NamedTables(observed.profile_of(observed.watched(cluster, work)))
        query = (
            "SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid "
            "WHERE c.relnamespace = 'public'::regnamespace"
        )
        with cluster.connect() as connection:
            for text in (*texts, *renamed, *dropped):
                connection.execute(text.encode())
                follow(catalog, read_migration(text))
                known = {name for schema, name in catalog.names.indexes if schema == "public"}
                there = {name for (name,) in connection.execute(query).fetchall()}
                assert known == there, f"{text}: {known ^ there}"


@pytest.mark.pg(">= 18")
def test_a_virtual_column_cannot_be_indexed(programs: ServerPrograms) -> None:
    """Neither as key nor in an expression or predicate: so no rule is needed for it."""
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        with cluster.connect() as connection:
            connection.execute("CREATE TABLE v (a int, h int GENERATED ALWAYS AS (a + 1) VIRTUAL)")
            for what in ("(h)", "((h + 1))", "(a) WHERE h > 1"):
                with pytest.raises(psycopg.errors.FeatureNotSupported, match="virtual generated"):
                    connection.execute(f"CREATE INDEX ON v {what}".encode())
