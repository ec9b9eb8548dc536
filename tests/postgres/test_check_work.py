"""
What `check` says of locks, rewrites and scans, against servers.

Each statement runs in a transaction that is taken back: a new relfilenode is a rewrite, pg_locks
has the session's strongest lock, and a sequential scan has read the table, for itself or an index.
"""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from pgheadroom.migration import read_migration
from pgheadroom.migration.actions import (
    Action,
    AddIndex,
    DropColumn,
    DropIndex,
    NamedRelation,
    Rename,
    SetColumn,
    SetExpression,
    SetFillfactor,
    Work,
)
from pgheadroom.migration.effect import STOPS_WRITERS, joined
from pgheadroom.migration.work import effect_of
from pgheadroom.servers import Host, ServerPrograms

pytestmark = pytest.mark.usefixtures("run_parent")

SETUP = """
CREATE TABLE p (id int PRIMARY KEY)
CREATE TABLE t (id int PRIMARY KEY, i int, nn int NOT NULL, v10 varchar(10), v varchar, tx text,
    n numeric(10, 2), n0 numeric, ch char(5), ts timestamp, tz timestamptz, ts3 timestamp(3),
    ip cidr, p_id int, u int, vb varbit(5), iv interval, sm int2, r real, js json, s int,
    b bigint, ar varchar(5)[], g int GENERATED ALWAYS AS (s + 1) STORED)
INSERT INTO p SELECT generate_series(1, 20)
INSERT INTO t SELECT k, k, k, 'a', 'a', 'a', 1, 1, 'a', now(), now(), now(), '10.0.0.0/8', 1, k,
    '101', '1 s', 1, 1, '{}', k, k, '{a}' FROM generate_series(1, 20) k
CREATE INDEX t_i ON t (i)
CREATE INDEX t_v10 ON t (v10)
CREATE INDEX t_tx ON t (tx)
CREATE UNIQUE INDEX t_u ON t (u)
ALTER TABLE t ADD CONSTRAINT chk CHECK (i > 0) NOT VALID
ALTER TABLE t ADD CONSTRAINT fk FOREIGN KEY (p_id) REFERENCES p NOT VALID
CREATE FUNCTION mine() RETURNS int LANGUAGE plpgsql VOLATILE AS 'BEGIN RETURN 1; END'
CREATE FUNCTION mine_tr() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'
CREATE TRIGGER trg AFTER UPDATE ON t FOR EACH ROW EXECUTE FUNCTION mine_tr()
CREATE RULE rl AS ON DELETE TO t DO ALSO NOTHING
CREATE POLICY pol ON t USING (true)
CREATE TABLE parent (id int, k int) PARTITION BY LIST (k)
CREATE TABLE child_1 PARTITION OF parent FOR VALUES IN (1)
CREATE TABLE child_2 (id int, k int)
INSERT INTO child_2 SELECT k, 2 FROM generate_series(1, 20) k
"""

T = NamedRelation(schema=None, name="t")
P = NamedRelation(schema=None, name="p")
PARENT = NamedRelation(schema=None, name="parent")
ONE, TWO = (NamedRelation(schema=None, name=f"child_{n}") for n in (1, 2))


def _column(name: str, kind: str, **facts: Any) -> SetColumn:
    return SetColumn(**{"table": T, "name": name, "type": kind, "is_new": True} | facts)


def _typed(name: str, kind: str, **facts: Any) -> SetColumn:
    return _column(name, kind, is_new=False, **facts)


def _index(**facts: Any) -> AddIndex:
    return AddIndex(**{"table": T, "name": "x", "kind": "index", "columns": ("i",)} | facts)


def _work(kind: Any, **facts: Any) -> Work:
    return Work(**{"table": T, "kind": kind} | facts)


def _i(name: str) -> NamedRelation:
    return NamedRelation(schema=None, name=name)


# A version, the statement, the action that a parser makes of it.
CASES: tuple[tuple[int, str, Action], ...] = (
    (0, "ALTER TABLE t ADD c int", _column("c", "int")),
    (0, "ALTER TABLE t ADD c int NOT NULL DEFAULT 5", _column("c", "int", default="constant")),
    (
        0,
        "ALTER TABLE t ADD c timestamptz DEFAULT now()",
        _column("c", "timestamptz", default="stable"),
    ),
    (0, "ALTER TABLE t ADD c float8 DEFAULT random()", _column("c", "float8", default="volatile")),
    (
        0,
        "ALTER TABLE t ADD c uuid DEFAULT gen_random_uuid()",
        _column("c", "uuid", default="volatile"),
    ),
    (0, "ALTER TABLE t ADD c int DEFAULT mine()", _column("c", "int", default="unknown")),
    (0, "ALTER TABLE t ADD c bigserial", _column("c", "bigserial", default="volatile")),
    (
        0,
        "ALTER TABLE t ADD c int GENERATED ALWAYS AS IDENTITY",
        _column("c", "int", default="volatile"),
    ),
    (
        0,
        "ALTER TABLE t ADD c int GENERATED ALWAYS AS (i * 2) STORED",
        _column("c", "int", generated="stored", reads=("i",)),
    ),
    (
        18,
        "ALTER TABLE t ADD c int GENERATED ALWAYS AS (i * 2) VIRTUAL",
        _column("c", "int", generated="virtual", reads=("i",)),
    ),
    (0, "ALTER TABLE t ALTER i TYPE bigint", _typed("i", "bigint")),
    (0, "ALTER TABLE t ALTER sm TYPE int", _typed("sm", "int")),
    (0, "ALTER TABLE t ALTER b TYPE int8", _typed("b", "int8")),
    (0, "ALTER TABLE t ALTER b TYPE int", _typed("b", "int")),
    (0, "ALTER TABLE t ALTER v10 TYPE varchar(20)", _typed("v10", "varchar(20)")),
    (0, "ALTER TABLE t ALTER v10 TYPE varchar", _typed("v10", "varchar")),
    (0, "ALTER TABLE t ALTER v10 TYPE text", _typed("v10", "text")),
    (0, "ALTER TABLE t ALTER v10 TYPE varchar(5)", _typed("v10", "varchar(5)")),
    (0, "ALTER TABLE t ALTER v10 TYPE text USING v10::text", _typed("v10", "text")),
    (
        0,
        "ALTER TABLE t ALTER v10 TYPE text USING lower(v10)",
        _typed("v10", "text", has_using=True),
    ),
    (0, "ALTER TABLE t ALTER v TYPE text", _typed("v", "text")),
    (0, "ALTER TABLE t ALTER tx TYPE character varying", _typed("tx", "character varying")),
    (0, "ALTER TABLE t ALTER tx TYPE varchar(50)", _typed("tx", "varchar(50)")),
    (0, 'ALTER TABLE t ALTER tx TYPE text COLLATE "C"', _typed("tx", "text", collation="C")),
    (0, "ALTER TABLE t ALTER ar TYPE varchar(9)[]", _typed("ar", "varchar(9)[]")),
    (0, "ALTER TABLE t ALTER n TYPE numeric(12, 2)", _typed("n", "numeric(12, 2)")),
    (0, "ALTER TABLE t ALTER n TYPE numeric", _typed("n", "numeric")),
    (0, "ALTER TABLE t ALTER n TYPE numeric(12, 3)", _typed("n", "numeric(12, 3)")),
    (0, "ALTER TABLE t ALTER n TYPE decimal(8, 2)", _typed("n", "decimal(8, 2)")),
    (0, "ALTER TABLE t ALTER n0 TYPE numeric(40, 2)", _typed("n0", "numeric(40, 2)")),
    (0, "ALTER TABLE t ALTER ch TYPE char(9)", _typed("ch", "char(9)")),
    (0, "ALTER TABLE t ALTER ch TYPE text", _typed("ch", "text")),
    (0, "ALTER TABLE t ALTER ts TYPE timestamptz", _typed("ts", "timestamptz")),
    (0, "ALTER TABLE t ALTER tz TYPE timestamp", _typed("tz", "timestamp")),
    (0, "ALTER TABLE t ALTER ts3 TYPE timestamp(6)", _typed("ts3", "timestamp(6)")),
    (0, "ALTER TABLE t ALTER ts TYPE timestamp(3)", _typed("ts", "timestamp(3)")),
    (0, "ALTER TABLE t ALTER iv TYPE interval(6)", _typed("iv", "interval(6)")),
    (0, "ALTER TABLE t ALTER ip TYPE inet", _typed("ip", "inet")),
    (0, "ALTER TABLE t ALTER ip TYPE text", _typed("ip", "text")),
    (0, "ALTER TABLE t ALTER vb TYPE varbit(9)", _typed("vb", "varbit(9)")),
    (0, "ALTER TABLE t ALTER r TYPE float8", _typed("r", "float8")),
    (0, "ALTER TABLE t ALTER js TYPE jsonb", _typed("js", "jsonb")),
    (0, "ALTER TABLE t ALTER u TYPE oid", _typed("u", "oid")),
    (0, "ALTER TABLE t ALTER g DROP EXPRESSION", SetExpression(table=T, name="g", reads=None)),
    (
        17,
        "ALTER TABLE t ALTER g SET EXPRESSION AS (s + 2)",
        SetExpression(table=T, name="g", reads=("s",)),
    ),
    (0, "ALTER TABLE t ALTER i SET NOT NULL", _work("set not null", column="i")),
    (0, "ALTER TABLE t ALTER nn DROP NOT NULL", _work("drop not null", column="nn")),
    (0, "ALTER TABLE t ALTER i SET DEFAULT 5", _work("set default", column="i")),
    (0, "ALTER TABLE t ALTER i SET STATISTICS 50", _work("set statistics", column="i")),
    (0, "ALTER TABLE t ALTER tx SET STORAGE EXTERNAL", _work("set storage", column="tx")),
    (0, "ALTER TABLE t ADD CHECK (i > 0)", _work("add check")),
    (0, "ALTER TABLE t ADD CHECK (i > 0) NOT VALID", _work("add check", not_valid=True)),
    (18, "ALTER TABLE t ADD NOT NULL i", _work("add not null")),
    (18, "ALTER TABLE t ADD NOT NULL i NOT VALID", _work("add not null", not_valid=True)),
    (
        0,
        "ALTER TABLE t ADD FOREIGN KEY (p_id) REFERENCES p",
        _work("add foreign key", other=P, columns=("p_id",)),
    ),
    (
        0,
        "ALTER TABLE t ADD FOREIGN KEY (p_id) REFERENCES p NOT VALID",
        _work("add foreign key", other=P, columns=("p_id",), not_valid=True),
    ),
    (0, "ALTER TABLE t VALIDATE CONSTRAINT chk", _work("validate constraint")),
    (0, "ALTER TABLE t VALIDATE CONSTRAINT fk", _work("validate constraint")),
    (0, "ALTER TABLE t DROP CONSTRAINT t_pkey", DropIndex(index=_i("t_pkey"), table=T)),
    (0, "DROP INDEX t_i", DropIndex(index=_i("t_i"))),
    (0, "CREATE INDEX x ON t (i)", _index()),
    (0, "CREATE INDEX x ON t USING brin (i)", _index(method="brin")),
    (0, "ALTER TABLE t ADD UNIQUE (i)", _index(kind="unique constraint")),
    (0, "ALTER TABLE t ADD EXCLUDE (i WITH =)", _index(kind="exclusion constraint")),
    (0, "ALTER TABLE t DROP COLUMN v", DropColumn(table=T, name="v")),
    (0, "ALTER TABLE t SET (fillfactor = 70)", SetFillfactor(table=T, fillfactor=70)),
    (0, "ALTER TABLE t RENAME COLUMN i TO i9", Rename(what="column", old=T, new="i9", column="i")),
    (0, "ALTER TABLE t SET UNLOGGED", _work("set unlogged")),
    (0, "CLUSTER t USING t_pkey", _work("cluster")),
    (
        0,
        "ALTER TABLE t ADD CONSTRAINT c UNIQUE USING INDEX t_u",
        _work("unique using index", index=_i("t_u")),
    ),
    (
        0,
        "ALTER TABLE t ADD PRIMARY KEY USING INDEX t_u, DROP CONSTRAINT t_pkey",
        _work("primary key using index", index=_i("t_u")),
    ),
    (0, "ALTER TABLE t CLUSTER ON t_i", _work("set clustering")),
    (0, "ALTER TABLE t SET WITHOUT CLUSTER", _work("set clustering")),
    (0, "REINDEX TABLE t", _work("reindex")),
    (0, "REINDEX INDEX t_i", _work("reindex", index=_i("t_i"))),
    (0, "TRUNCATE t", _work("truncate")),
    (0, "LOCK TABLE t IN SHARE ROW EXCLUSIVE MODE", _work("lock", mode="SHARE ROW EXCLUSIVE")),
    (0, "ALTER TABLE t DISABLE TRIGGER ALL", _work("set trigger")),
    (0, "ALTER TABLE t ENABLE ROW LEVEL SECURITY", _work("set row security")),
    (0, "ALTER TABLE t REPLICA IDENTITY FULL", _work("replica identity")),
    (0, "CREATE TRIGGER z AFTER UPDATE ON t EXECUTE FUNCTION mine_tr()", _work("set trigger")),
    (0, "ALTER TRIGGER trg ON t RENAME TO trg_9", _work("rename")),
    (0, "DROP TRIGGER trg ON t", _work("other")),
    (0, "ALTER TABLE t DISABLE TRIGGER trg", _work("set trigger")),
    (0, "CREATE RULE r9 AS ON INSERT TO t DO ALSO NOTHING", _work("rule")),
    (0, "ALTER TABLE t DISABLE RULE rl", _work("other")),
    (0, "DROP RULE rl ON t", _work("other")),
    (0, "CREATE POLICY po ON t USING (true)", _work("policy")),
    (0, "ALTER POLICY pol ON t USING (false)", _work("policy")),
    (0, "ALTER POLICY pol ON t RENAME TO pol_9", _work("rename")),
    (0, "DROP POLICY pol ON t", _work("other")),
    (0, "ALTER TABLE t FORCE ROW LEVEL SECURITY", _work("set row security")),
    (0, "COMMENT ON TABLE t IS 'x'", _work("comment")),
    (0, "COMMENT ON COLUMN t.i IS 'x'", _work("comment")),
    (0, "CREATE STATISTICS st9 ON i, nn FROM t", _work("statistics")),
    (0, "ALTER TABLE t ALTER i SET (n_distinct = 5)", _work("set statistics", column="i")),
    (0, "ALTER TABLE t SET (autovacuum_enabled = off)", _work("storage parameter")),
    (0, "ALTER TABLE t SET (toast_tuple_target = 200)", _work("storage parameter")),
    (0, "ALTER TABLE t SET (user_catalog_table = on)", _work("other")),
    (0, "ALTER TABLE t RENAME CONSTRAINT chk TO chk_9", _work("rename")),
    (0, "CREATE PUBLICATION pb FOR TABLE t", _work("publication")),
    (0, "CREATE TABLE heir () INHERITS (t)", _work("inherited")),
    (
        0,
        "CREATE TABLE child_3 PARTITION OF parent FOR VALUES IN (3)",
        _work("new partition", table=PARENT),
    ),
    (0, "ANALYZE t", _work("analyze")),
    (0, "ANALYZE t (i)", _work("analyze")),
    (0, "ALTER TABLE t OWNER TO CURRENT_USER", _work("set owner")),
    (
        0,
        "ALTER TABLE parent ATTACH PARTITION child_2 FOR VALUES IN (2)",
        _work("attach partition", table=PARENT, other=TWO),
    ),
    (
        0,
        "ALTER TABLE parent DETACH PARTITION child_1",
        _work("detach partition", table=PARENT, other=ONE),
    ),
)
EFFORTS = ("nothing", "probe", "scan", "build", "rewrite")
TYPES = {
    "i": "integer",
    "sm": "smallint",
    "b": "bigint",
    "v10": "character varying(10)",
    "v": "character varying",
    "tx": "text",
    "n": "numeric(10,2)",
    "n0": "numeric",
    "ch": "character(5)",
    "ts": "timestamp without time zone",
    "tz": "timestamp with time zone",
    "ts3": "timestamp(3) without time zone",
    "ip": "cidr",
    "u": "integer",
    "vb": "bit varying(5)",
    "iv": "interval",
    "r": "real",
    "js": "json",
    "ar": "character varying(5)[]",
}
"""Of the columns of t, as servers spell them."""

WEAKEST_FIRST = (
    "RowShare",
    "RowExclusive",
    "ShareUpdateExclusive",
    "Share",
    "ShareRowExclusive",
    "Exclusive",
    "AccessExclusive",
)
LOCKS = tuple(
    "".join(f" {c}" if c.isupper() else c for c in mode).strip().upper() for mode in WEAKEST_FIRST
)
_TABLE = (
    "SELECT oid::int4, relfilenode::int8 FROM pg_class WHERE relname = %s AND relkind IN ('r', 'p')"
)
_LOCKS = """
    SELECT replace(mode, 'Lock', '') FROM pg_locks
    WHERE pid = pg_backend_pid() AND locktype = 'relation' AND relation = %s
"""


def _run(
    connection: psycopg.Connection[Any], text: str, table: str
) -> tuple[str | None, bool, bool]:
    """The table's strongest lock, whether it was rewritten, and whether it was read."""
    connection.execute("BEGIN")
    connection.execute("SET LOCAL timezone = 'Europe/Berlin'")
    row = connection.execute(_TABLE, (table,)).fetchone()
    assert row is not None
    oid, file = row
    scans = "SELECT pg_stat_get_xact_numscans(%s)"
    before = connection.execute(scans, (oid,)).fetchone()
    connection.execute(text.encode())
    after = connection.execute(scans, (oid,)).fetchone()
    held = {mode for (mode,) in connection.execute(_LOCKS, (oid,)).fetchall()}
    now = connection.execute(
        "SELECT relfilenode::int8 FROM pg_class WHERE oid = %s", (oid,)
    ).fetchone()
    connection.execute("ROLLBACK")
    assert now is not None
    assert before is not None
    assert after is not None
    strongest = next((mode for mode in reversed(WEAKEST_FIRST) if mode in held), None)
    return strongest, bool(now[0] != file), bool(after[0] > before[0])


def _types(connection: psycopg.Connection[Any]) -> dict[str, str]:
    return dict(
        connection.execute(
            "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute "
            "WHERE attrelid = 't'::regclass AND attnum > 0"
        ).fetchall()
    )


@pytest.mark.each
def test_locks_rewrites_and_scans_are_postgresqls(programs: ServerPrograms) -> None:
    """Of each statement on each table that it concerns."""
    wrong = []
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        with cluster.connect() as connection:
            for line in SETUP.strip().replace(",\n    ", ", ").replace("\n    ", " ").splitlines():
                connection.execute(line.encode())
            types = _types(connection)
            assert {name: types[name] for name in TYPES} == TYPES
            for since, text, action in CASES:
                if programs.version.major < since:
                    continue
                named = action.old if isinstance(action, Rename) else getattr(action, "table", T)
                tables = [((named or T).name, False)]
                if isinstance(action, Work) and action.other is not None:
                    tables.append((action.other.name, True))
                old = types.get(action.name) if isinstance(action, SetColumn) else None
                for table, is_other in tables:
                    effect = effect_of(action, old_type=old, is_partition=is_other)
                    assert effect is not None, text
                    lock, is_rewritten, is_read = _run(connection, text, table)
                    expected = (
                        effect.lock.title().replace(" ", ""),
                        effect.effort == "rewrite",
                    )
                    if (lock, is_rewritten) != expected and text != "TRUNCATE t":
                        wrong.append(f"{text}: {table}: {lock}, rewritten {is_rewritten}: {effect}")
                    # The other table of a statement may be read by an index, or not counted.
                    reads = effect.effort not in ("nothing", "probe")
                    if reads != is_read and text != "TRUNCATE t" and not is_other:
                        wrong.append(f"{text}: {table}: read {is_read}: {effect}")
    assert wrong == []


@pytest.mark.parametrize(("since", "text", "action"), CASES, ids=[text for _, text, _ in CASES])
def test_a_parser_gives_the_actions_that_servers_were_asked_about(
    since: int, text: str, action: Action
) -> None:
    """What the statement does to its table has the lock and the effort that were measured."""
    (statement,) = read_migration(text)
    assert statement.problem is None, since
    expected = effect_of(action, old_type=TYPES.get(getattr(action, "name", "")))
    assert expected is not None
    found = [
        effect_of(made, old_type=TYPES.get(getattr(made, "name", ""))) for made in statement.actions
    ]
    efforts = [effect.effort for effect in found if effect is not None]
    locks = [effect.lock for effect in found if effect is not None]
    assert expected.lock == max(locks, key=LOCKS.index)
    assert max(efforts, key=EFFORTS.index) == expected.effort


# Several parts, with the passes over `bare` that the server makes of them.
SEVERAL = (
    ("ALTER TABLE bare ALTER a TYPE bigint, ALTER b TYPE bigint", "bare", 1),
    ("ALTER TABLE bare ALTER a TYPE bigint, ADD CHECK (b > 0), ALTER b SET NOT NULL", "bare", 1),
    ("ALTER TABLE bare ADD c float8 DEFAULT random(), ADD d uuid DEFAULT gen_random_uuid()",
     "bare", 1),
    ("ALTER TABLE bare ADD CHECK (a > 0), ALTER b SET NOT NULL, ADD CHECK (b > 0)", "bare", 1),
    ("ALTER TABLE bare VALIDATE CONSTRAINT chk, ADD c int", "bare", 1),
    ("ALTER TABLE bare ALTER a SET STATISTICS 9, ALTER b SET DEFAULT 1", "bare", 0),
    ("ALTER TABLE bare ADD FOREIGN KEY (b) REFERENCES p, ALTER a SET STATISTICS 9", "bare", None),
    ("ALTER TABLE bare ADD FOREIGN KEY (b) REFERENCES p, ADD c int", "bare", None),
    ("ALTER TABLE bare ADD FOREIGN KEY (b) REFERENCES p, ADD c int", "p", None),
    ("ALTER TABLE bare ALTER a TYPE bigint, ADD UNIQUE (b)", "bare", None),
)  # fmt: skip


def test_a_statement_of_several_parts_takes_the_strictest_lock_and_one_pass(
    programs: ServerPrograms,
) -> None:
    """Each part's own lock was shown, and each part's rewrite as one more."""
    wrong = []
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        with cluster.connect() as connection:
            connection.execute("CREATE TABLE p (id int PRIMARY KEY)")
            connection.execute("CREATE TABLE bare (a int, b int)")
            connection.execute("INSERT INTO p SELECT generate_series(1, 9)")
            connection.execute("INSERT INTO bare SELECT k, k FROM generate_series(1, 9) k")
            connection.execute("ALTER TABLE bare ADD CONSTRAINT chk CHECK (a > 0) NOT VALID")
            for text, table, passes in SEVERAL:
                (statement,) = read_migration(text)
                found = []
                for action in statement.actions:
                    is_other = table == "p"
                    if is_other and not (isinstance(action, Work) and action.other is not None):
                        continue
                    effect = effect_of(action, old_type="integer", is_partition=is_other)
                    assert effect is not None, text
                    found.append(effect)
                whole = joined(found)
                lock, is_rewritten, is_read = _run(connection, text, table)
                locks = {effect.lock.title().replace(" ", "") for effect in whole}
                rewrites = [effect for effect in whole if effect.effort == "rewrite"]
                long = [effect for effect in whole if effect.effort != "nothing"]
                if (
                    locks != {lock}
                    or len(rewrites) != is_rewritten
                    or (table == "bare" and bool(long) != is_read)
                ):
                    wrong.append(f"{text}: {table}: {lock}, {is_rewritten}, {is_read}: {whole}")
                if passes is not None:
                    assert len(long) == passes, text
                    assert _scans(connection, text) == passes, text
    assert wrong == []


def _scans(connection: psycopg.Connection[Any], text: str) -> int:
    """Passes over the table, which has no index that would be built by one more."""
    query = "SELECT pg_stat_get_xact_numscans('bare'::regclass)"
    connection.execute("BEGIN")
    before = connection.execute(query).fetchone()
    connection.execute(text.encode())
    after = connection.execute(query).fetchone()
    connection.execute("ROLLBACK")
    assert before is not None
    assert after is not None
    return int(after[0] - before[0])


def test_queries_wait_for_an_index_that_is_built_anew(newest: ServerPrograms) -> None:
    """REINDEX takes SHARE on the table, but ACCESS EXCLUSIVE on the index, which planning needs."""
    with Host(newest) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        with cluster.connect() as holder, cluster.connect() as reader:
            holder.execute("CREATE TABLE t (a int, b int)")
            holder.execute("CREATE INDEX i ON t (a)")
            reader.execute("SET lock_timeout = '20ms'")
            for text in ("REINDEX TABLE t", "REINDEX INDEX i"):
                (action,) = read_migration(text)[0].actions
                effect = effect_of(action, old_type=None)
                assert effect is not None
                assert "queries of the table wait" in str(effect.beside)
                holder.execute("BEGIN")
                holder.execute(text.encode())
                with pytest.raises(psycopg.errors.LockNotAvailable):
                    reader.execute("SELECT count(*) FROM t WHERE b = 1")
                holder.execute("ROLLBACK")


def test_what_stops_writers_is_what_conflicts_with_them(newest: ServerPrograms) -> None:
    """Each lock mode, with a writer beside it that does not wait."""
    with Host(newest) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        with cluster.connect() as holder, cluster.connect() as writer:
            holder.execute("CREATE TABLE t (a int)")
            writer.execute("SET lock_timeout = '20ms'")
            for mode in WEAKEST_FIRST:
                spelled = "".join(f" {c}" if c.isupper() else c for c in mode).strip().upper()
                holder.execute("BEGIN")
                holder.execute(f"LOCK TABLE t IN {spelled} MODE".encode())
                try:
                    writer.execute("INSERT INTO t VALUES (1)")
                    waits = False
                except psycopg.errors.LockNotAvailable:
                    waits = True
                holder.execute("ROLLBACK")
                assert waits == (spelled in STOPS_WRITERS), spelled


def test_a_lock_is_kept_and_concurrently_refused_in_a_transaction(programs: ServerPrograms) -> None:
    """A writer waits while VALIDATE CONSTRAINT runs in the transaction of its ADD CONSTRAINT."""
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        with cluster.connect() as holder, cluster.connect() as writer:
            for text in (
                "CREATE TABLE t (a int)",
                "CREATE INDEX i ON t (a)",
                "CREATE TABLE pt (a int) PARTITION BY LIST (a)",
                "CREATE TABLE p1 PARTITION OF pt FOR VALUES IN (1)",
            ):
                holder.execute(text.encode())
            writer.execute("SET lock_timeout = '20ms'")
            holder.execute("BEGIN")
            holder.execute("ALTER TABLE t ADD CONSTRAINT c CHECK (a > 0) NOT VALID")
            holder.execute("ALTER TABLE t VALIDATE CONSTRAINT c")
            holder.execute("ALTER TABLE pt ALTER a SET NOT NULL")  # another table meanwhile
            with pytest.raises(psycopg.errors.LockNotAvailable):
                writer.execute("INSERT INTO t VALUES (1)")
            holder.execute("ROLLBACK")
            holder.execute("BEGIN")
            holder.execute("SAVEPOINT a")
            holder.execute("LOCK t")
            holder.execute("ROLLBACK TO a")
            writer.execute("INSERT INTO t VALUES (1)")
            holder.execute("ROLLBACK")
            for text in (
                "CREATE INDEX CONCURRENTLY j ON t (a)",
                "DROP INDEX CONCURRENTLY i",
                "REINDEX TABLE CONCURRENTLY t",
                "ALTER TABLE pt DETACH PARTITION p1 CONCURRENTLY",
            ):
                (_, statement) = read_migration(f"BEGIN; {text}")
                assert statement.transaction == 1
                holder.execute("BEGIN")
                with pytest.raises(psycopg.errors.ActiveSqlTransaction):
                    holder.execute(text.encode())
                holder.execute("ROLLBACK")
