"""What servers accept is read, and the functions that the core takes for PostgreSQL's own are."""

from __future__ import annotations

import psycopg
import pytest

from pgheadroom.servers import Host, ServerPrograms
from pgheadroom.sources.statements import NotParsed, facts_of, grammar_version, split, writes_of

pytestmark = pytest.mark.usefixtures("run_parent")

TABLES = "CREATE TABLE t (a int PRIMARY KEY, b text, c int[], d point); CREATE TABLE s (a int)"
# Each with what it writes; a server too old for one refuses it, and is not asked further.
STATEMENTS = {
    "UPDATE t SET (b, a) = (SELECT 'x', 1) WHERE a = 1 RETURNING *": ["update b,a"],
    "UPDATE t AS x SET b = x.b, c[1:2] = '{1,2}', d[0] = 5 FROM s WHERE s.a = x.a": [
        "update b,c,d"
    ],
    "UPDATE t * SET b = E'\\'' || $$;$$ || U&'\\0061'": ["update b"],
    "INSERT INTO t AS x VALUES (1, 'y') ON CONFLICT (a) DO UPDATE SET b = x.b || excluded.b": [
        "upsert b"
    ],
    "WITH u AS (UPDATE t SET b = '' RETURNING a), v AS (DELETE FROM s) SELECT * FROM u": [
        "update b",
        "delete ",
    ],
    "MERGE INTO t USING s ON t.a = s.a WHEN MATCHED AND s.a > 1 THEN DELETE "
    "WHEN MATCHED THEN UPDATE SET b = 'z' WHEN NOT MATCHED THEN INSERT (a) VALUES (s.a)": [
        "delete ",
        "merge b",
        "insert ",
    ],
    "MERGE INTO t USING s ON t.a = s.a WHEN NOT MATCHED BY SOURCE THEN UPDATE SET b = 'z' "
    "RETURNING merge_action(), t.a": ["merge b"],  # 17
    "UPDATE t SET b = 'n' RETURNING WITH (OLD AS o, NEW AS n) o.b, n.b": ["update b"],  # 18
    "EXPLAIN (ANALYZE, BUFFERS) UPDATE t SET b = 'e'": ["update b"],
    "PREPARE p (int) AS UPDATE t SET a = $1 WHERE a = $1": ["update a"],
    "COPY (UPDATE t SET b = 'c' RETURNING a) TO '/dev/null'": ["update b"],
    "SELECT JSON_OBJECT('a': 1 NULL ON NULL), 0x1F + 1_000 FOR UPDATE": [],  # 16
    "UPDATE t SET b = JSON_SERIALIZE(JSON('{}'))": ["update b"],  # 17
}


@pytest.mark.each
def test_what_a_server_accepts_is_read(programs: ServerPrograms) -> None:
    """A statement that runs is understood, with literals and without, in all that it assigns."""
    accepted = 0
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        with cluster.connect() as connection:
            for statement in TABLES.split("; "):
                connection.execute(statement.encode())
            for statement, expected in STATEMENTS.items():
                try:
                    connection.execute(statement.encode())
                except psycopg.errors.SyntaxError:
                    assert programs.version.major < grammar_version(), statement
                    continue
                except (psycopg.errors.FeatureNotSupported, psycopg.errors.UndefinedFunction):
                    pass  # it parsed
                accepted += 1
                for text in (statement, *split(statement)):
                    found = [f"{w.kind} {','.join(w.columns)}" for w in writes_of(text)]
                    assert found == expected, text
    assert accepted >= len(STATEMENTS) - 4


def test_functions_of_postgresql_are_known_with_their_volatility(
    programs: ServerPrograms,
) -> None:
    """A default that a server computes for each row must never pass for one computed once."""
    query = (
        "SELECT proname, max(strpos('isv', provolatile::text)) FROM pg_proc "
        "WHERE pronamespace = 'pg_catalog'::regnamespace AND prokind <> 'p' GROUP BY 1"
    )
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        with cluster.connect() as connection:
            rows = connection.execute(query.encode()).fetchall()
    kinds = ["constant", "stable", "volatile"]
    found = {}
    for name, volatility in rows:
        (fact,) = facts_of(f'ALTER TABLE t ADD a int DEFAULT pg_catalog."{name}"()')
        found[name] = (fact["default"], kinds[volatility - 1])
    less = {
        name: pair
        for name, pair in found.items()
        if pair[0] != "unknown" and kinds.index(pair[0]) < kinds.index(pair[1])
    }
    assert less == {}
    if programs.version.major == grammar_version():
        assert [name for name, pair in found.items() if pair[0] != pair[1]] == []


EXTENSIONS = (
    "citext", "cube", "earthdistance", "fuzzystrmatch", "hstore", "intarray", "ltree", "pg_trgm",
    "pgcrypto", "unaccent", "uuid-ossp",
)  # fmt: skip
# A function of somebody's own may well have such a name: none of them is taken for an extension's.
ANYBODYS = {
    "boolop", "cube", "defined", "delete", "difference", "each", "earth", "exist", "idx", "index",
    "intset", "latitude", "longitude", "slice", "sort", "subarray", "uniq",
}  # fmt: skip


@pytest.mark.contrib
def test_functions_of_extensions_are_known_with_their_volatility(programs: ServerPrograms) -> None:
    """
    Migrations of Lemmy call ltree's: their code is PostgreSQL's, and runs no SQL of anybody's.

    Each as the server's catalog has it, so that none that is computed anew passes for a constant.
    """
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        with cluster.connect() as connection:
            there = connection.execute(b"SELECT name FROM pg_available_extensions").fetchall()
            wanted = [name for name in EXTENSIONS if (name,) in there]
            if not wanted:
                pytest.skip(f"{programs}: no extensions")
            for name in wanted:
                connection.execute(f'CREATE EXTENSION IF NOT EXISTS "{name}"'.encode())
            rows = connection.execute(
                b"SELECT proname, max(strpos('isv', provolatile::text)) FROM pg_proc p "
                b"JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid "
                b"AND d.deptype = 'e' AND d.refclassid = 'pg_extension'::regclass "
                b"JOIN pg_extension e ON e.oid = d.refobjid WHERE extname <> 'plpgsql' GROUP BY 1"
            ).fetchall()
            if "ltree" in wanted:
                connection.execute(b"CREATE TABLE comment (path ltree, depth int)")
                connection.execute(LTREE.encode())
    kinds = ["constant", "stable", "volatile"]
    for name, volatility in rows:
        (fact,) = facts_of(f'ALTER TABLE t ADD a int DEFAULT "{name}"()')
        if name in ANYBODYS:
            assert fact["default"] == "unknown", name
        else:
            assert kinds.index(fact["default"]) >= volatility - 1, name
    assert len(rows) > 100
    assert [fact for fact in facts_of(LTREE) if fact["action"] == "Problem"] == []


LTREE = (
    "UPDATE comment SET depth = nlevel(path), path = subpath(path, 0, -1) || 'a'::ltree "
    "WHERE subltree(path, 0, 1) = text2ltree('0') AND path ~ '0.*'"
)


def test_what_is_newer_than_the_grammar_is_named() -> None:
    """REPACK and FOR PORTION OF are PostgreSQL 19's: the word where the grammar stops is said."""
    for text, word in (
        ("UPDATE t FOR PORTION OF at FROM 1 TO 2 SET a = 1", "FOR"),
        ("REPACK t; UPDATE", "REPACK"),
    ):
        with pytest.raises(NotParsed, match=rf"grammar does not know its syntax \(at {word}\)"):
            writes_of(text)
