"""GIN indexes of a live table: what `observe` counts of their keys, and what follows from it."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import observed
import pytest

from pgheadroom.cli.app import run
from pgheadroom.observe.gins import SAID
from pgheadroom.outcome import middle
from pgheadroom.predict import predict
from pgheadroom.profile import Operation, Profile, Run, to_json
from pgheadroom.profile.change import Change
from pgheadroom.profile.reading import checked_profile
from pgheadroom.profile.unpriced import played_gins, unpriced_of
from pgheadroom.profile.workload import Pick
from pgheadroom.servers import Cluster, Host, ServerPrograms

pytestmark = pytest.mark.usefixtures("run_parent")

ROWS, UPDATES = 6000, 600
# Rank r of so many words as often as 1 / (r + 10); rows of 2 to 12 of them.
WORDS = """
SELECT i AS id, array_agg(DISTINCT 'w' || md5((exp(random() * ln(3000)) * 10)::int::text)) AS words
FROM generate_series(1, {rows}) i, generate_series(1, 2 + i % 11) GROUP BY i
"""
VALUES = {
    "tsvector": "array_to_tsvector(words)",
    "text[]": "words",
    "int4[]": "ARRAY(SELECT ('x' || substr(w, 2, 4))::bit(16)::int4 FROM unnest(words) w)",
    "uuid[]": "ARRAY(SELECT md5(w)::uuid FROM unnest(words) w)",
    "jsonb": "jsonb_build_object('id', id, 'kind', id % 5, 'words', to_jsonb(words))",
}
OPCLASSES = [
    ("tsvector", ""),
    ("text[]", ""),
    ("int4[]", ""),
    ("uuid[]", ""),
    ("jsonb", ""),
    ("jsonb", "jsonb_path_ops"),
]


def _load(cluster: Cluster, ddl: str) -> None:
    observed.load(
        cluster,
        f"""
        SELECT setseed(0.5);
        CREATE TABLE words AS {WORDS.format(rows=ROWS)};
        {ddl};
        VACUUM ANALYZE
        """,
    )


def _round(profile: Profile, updates: int) -> Profile:
    """So many updates of the indexed column, of any rows, without autovacuum and checkpoints."""
    file, table = profile.in_file(), profile.table("t")
    sets = tuple(Change(column=c.name) for c in table.columns if c.name.startswith("v"))
    update = Operation(table="t", kind="update", sets=sets, pick=Pick(distribution="uniform"))
    server = replace(
        file.server,
        observed=None,
        autovacuum=False,
        full_page_writes=False,
        checkpoint_interval_s=None,
        max_wal_size_bytes=None,
    )
    return checked_profile(
        replace(
            file,
            server=server,
            tables=(replace(table, observed=None, pages=(), rows_per_page=None),),
            operations=(update,),
            run=Run(operations=updates),
        )
    )


def _state(cluster: Cluster) -> tuple[int, int]:
    """Pages of the indexes, and bytes of the WAL's records."""
    with observed.session(cluster) as connection:
        connection.execute("SELECT pg_stat_force_next_flush()")
    with cluster.connect() as connection:
        row = connection.execute(
            "SELECT sum(pg_relation_size(indexrelid)) / 8192, (SELECT wal_bytes FROM pg_stat_wal) "
            "FROM pg_index WHERE indrelid = 't'::regclass"
        ).fetchone()
    assert row is not None
    return int(row[0]), int(row[1])


def _update(cluster: Cluster) -> None:
    draws = random.Random(7)
    with observed.session(cluster) as connection:
        for _ in range(UPDATES):
            connection.execute(
                "UPDATE t SET v = (SELECT v FROM t s WHERE s.id = %s) WHERE id = %s",
                (draws.randint(1, ROWS), draws.randint(1, ROWS)),
                prepare=True,
            )


@pytest.mark.parametrize(("kind", "opclass"), OPCLASSES, ids=[" ".join(o) for o in OPCLASSES])
def test_pages_and_wal_of_a_gin_are_foreseen(
    programs: ServerPrograms, kind: str, opclass: str
) -> None:
    """By an observation of the table: within a fifth of the pages, and of the WAL of updates."""
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off", "full_page_writes": "off", "jit": "off"})
        _load(
            cluster,
            f"CREATE TABLE t (id int4 PRIMARY KEY, v {kind}); "
            f"INSERT INTO t SELECT id, {VALUES[kind]} FROM words ORDER BY id; "
            f"CREATE INDEX t_v ON t USING gin (v {opclass}) WITH (gin_pending_list_limit = 128); "
            "DROP TABLE words",
        )
        profile = observed.profile_of(observed.watched(cluster))
        table = profile.table("t")
        (gin,) = played_gins(table)
        assert (gin.name, gin.columns, gin.gin_pending_list_limit) == ("t_v", ("v",), 128)
        assert gin.opclass == ((opclass,) if opclass else ())
        assert unpriced_of(table) == ()
        assert "t_v" not in (table.observed.differs or {}) if table.observed else False
        before = _state(cluster)
        _update(cluster)
        after = _state(cluster)
        version = str(cluster.version)
    (one,), (all_,) = (
        predict(_round(profile, updates), server=version).cells for updates in (1, UPDATES)
    )
    assert middle(one.predicted.index_pages) == pytest.approx(before[0], rel=0.2)
    assert middle(all_.predicted.index_pages) == pytest.approx(after[0], rel=0.2)
    written = after[1] - before[1]
    assert middle(all_.predicted.wal_bytes) == pytest.approx(written, rel=0.2)


@pytest.mark.contrib
def test_operators_of_extensions(programs: ServerPrograms) -> None:
    """An hstore stands as a jsonb of as many strings; strings have their own trigrams."""
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off", "jit": "off"})
        with cluster.connect() as connection:
            found = connection.execute(
                "SELECT count(*) FROM pg_available_extensions WHERE name IN ('hstore', 'pg_trgm')"
            ).fetchone()
        if found != (2,):
            pytest.skip("the server has neither hstore nor pg_trgm")
        _load(
            cluster,
            "CREATE SCHEMA ext; CREATE EXTENSION hstore SCHEMA ext; CREATE EXTENSION pg_trgm; "
            "CREATE TABLE t (id int4 PRIMARY KEY, h ext.hstore, s text); "
            "INSERT INTO t SELECT id, ext.hstore(ARRAY['id', id::text, 'kind', (id % 7)::text]), "
            "words[1] FROM words; "
            "CREATE INDEX t_h ON t USING gin (h); "
            "CREATE INDEX t_s ON t USING gin (s gin_trgm_ops) WITH (fastupdate = off); "
            "CREATE INDEX t_l ON t USING gin (lower(s) gin_trgm_ops)",
        )
        table = observed.profile_of(observed.watched(cluster)).table("t")
    gins = {gin.name: gin for gin in played_gins(table)}
    assert set(gins) == {"t_h", "t_s", "t_l"}
    assert (gins["t_h"].opclass, gins["t_s"].opclass) == ((), ("gin_trgm_ops",))
    assert gins["t_s"].fastupdate is False
    hstore = table.column("h")
    assert (hstore.type, table.column("s").type) == ("jsonb", "text")
    assert hstore.elements is not None
    assert hstore.elements.min == pytest.approx(4, abs=1)
    # Four keys of two names, 7 kinds and as many ids as rows.
    assert hstore.elements.ndistinct > ROWS


MANY = """
CREATE FUNCTION mine(text) RETURNS tsvector LANGUAGE sql IMMUTABLE AS
    $$ SELECT to_tsvector('simple', $1) $$;
CREATE TABLE t (id int4 PRIMARY KEY, s text, many text[], a int4[], j jsonb);
INSERT INTO t SELECT id, array_to_string(words, ' '), words, ARRAY[id % 9, id % 5], '{}'
    FROM words;
CREATE INDEX t_e ON t USING gin (to_tsvector('simple', s)) WHERE id > 100;
CREATE INDEX t_mine ON t USING gin (mine(s));
CREATE INDEX t_many ON t USING gin (many);
CREATE INDEX t_tree ON t (many);
CREATE INDEX t_two ON t USING gin (a, to_tsvector('simple', s));
CREATE INDEX t_empty ON t USING gin (j);
CREATE ROLE monitor LOGIN;
GRANT pg_monitor TO monitor
"""


def _methods(profile: Profile) -> dict[str, str]:
    return {index.name: index.method for index in profile.table("t").indexes}


def _mid(value: Any) -> float:
    return float(value["mid"] if isinstance(value, dict) else value)


@pytest.mark.contrib
def test_a_migration_of_a_table_with_a_gin(programs: ServerPrograms, tmp_path: Path) -> None:
    """
    An index more ends HOT for what it reads, one less sets it free, and the GIN does as before.

    The text that stands for a tsvector's places changes with it, which once made its updates ones
    that no statement explains: after CREATE INDEX over n they were HOT in the figures.
    """
    with Host(programs) as host:
        cluster = host.cluster("main")
        settings = {"autovacuum": "off", "jit": "off"}
        if not observed.start_with_contrib(cluster, settings):
            pytest.skip("the server has no pg_stat_statements")
        _load(
            cluster,
            "CREATE EXTENSION pg_stat_statements; "
            "CREATE TABLE t (id int4 PRIMARY KEY, n int4 NOT NULL, v tsvector) "
            "WITH (fillfactor = 70); INSERT INTO t "
            "SELECT id, 0, to_tsvector('simple', words::text) FROM words ORDER BY id; "
            "CREATE INDEX t_v ON t USING gin (v)",
        )

        def work() -> None:
            _update(cluster)
            with observed.session(cluster) as connection:
                for row in range(1, 3 * UPDATES):
                    connection.execute("UPDATE t SET n = n + 1 WHERE id = %s", (row,), prepare=True)

        profile = observed.profile_of(observed.watched(cluster, work))
    assert "v__rest" in [column.name for column in profile.table("t").columns]
    path = tmp_path / "profile.json"
    path.write_text(json.dumps(to_json(profile)))
    then = {}
    for number, text in enumerate(("CREATE INDEX ON t (n)", "DROP INDEX t_v")):
        migration, answer = tmp_path / f"{number}.sql", tmp_path / f"{number}.json"
        migration.write_text(text)
        run(["check", f"{migration}", "--profile", f"{path}", "-f", "json", "-o", f"{answer}"])
        (table,) = json.loads(answer.read_text())["tables"]
        then[text] = (_mid(table["hot_frac_now"]), _mid(table["hot_frac_then"]))
    assert then["CREATE INDEX ON t (n)"] == pytest.approx((0.75, 0.0), abs=0.05)
    assert then["DROP INDEX t_v"] == pytest.approx((0.75, 1.0), abs=0.05)


def test_a_table_that_has_lived_has_pages_and_elements(newest: ServerPrograms) -> None:
    """Rows per page follow from the mean value, whose bytes are those of its elements."""
    with Host(newest) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off", "jit": "off"})
        _load(
            cluster,
            "CREATE TABLE t (id int4 PRIMARY KEY, v tsvector); "
            "INSERT INTO t SELECT id, to_tsvector('simple', words::text) FROM words ORDER BY id; "
            "CREATE INDEX t_v ON t USING gin (v); DELETE FROM t WHERE id % 3 = 0",
        )
        table = observed.profile_of(observed.watched(cluster)).table("t")
    assert len(table.pages) > 1
    (rest,) = (c for c in table.columns if c.name == "v__rest")
    # Of each word its place: two bytes of a number, and two for it.
    assert rest.width is not None
    assert rest.width.min_bytes == pytest.approx(4 * 7, abs=12)
    assert table.rows == ROWS * 2 // 3


def test_what_cannot_be_counted_stands_as_before(newest: ServerPrograms) -> None:
    """
    No user's function runs, a B-tree over the column keeps it whole, and rights are kept.

    Expressions of PostgreSQL's own functions are evaluated, of a sample of the rows.
    """
    with Host(newest) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off", "jit": "off"})
        _load(cluster, MANY)
        recording = observed.watched(cluster)
        profile = observed.profile_of(recording)
        monitor = observed.profile_of(observed.watched(cluster, user="monitor"))
        unsampled = observed.profile_of(observed.watched(cluster, samples=False), sampled=False)
        masked = observed.profile_of(recording, mask=True)
    table = profile.table("t")
    assert _methods(profile) == {
        "t_pkey": "btree",
        "t_many": "btree",
        "t_e": "gin",
        "t_empty": "gin",
        "t_mine": "btree",
        "t_tree": "btree",
        "t_two": "gin",
    }
    gins = {gin.name: gin for gin in table.indexes}
    text = "to_tsvector('simple'::regconfig, s)"
    assert gins["t_e"].expressions == gins["t_two"].expressions == (text,)
    assert gins["t_two"].columns == ("a",)
    assert gins["t_e"].where == "id > 100"
    (stated,) = gins["t_e"].stated
    assert (stated.type, stated.null_frac, stated.changed_frac) == ("tsvector", 0.0, 1.0)
    assert stated.elements == gins["t_two"].stated[0].elements
    assert stated.elements is not None
    assert stated.elements.max == pytest.approx(12, abs=2)
    differs: Any = table.observed.differs if table.observed is not None else {}
    assert differs["t_e"] == SAID.format(texts=repr(text))
    assert "t_empty" not in differs
    assert set(unpriced_of(table)) == {"t_many (gin)", "t_mine (gin)"}
    assert table.column("many").elements is None
    for less in (monitor, unsampled):
        assert set(_methods(less).values()) == {"btree"}
        assert len(unpriced_of(less.table("t"))) == 5
    (named,) = (one for one in masked.tables if one.rows == ROWS and len(one.indexes) == 7)
    # Texts of expressions are left out, and with them what their values are.
    assert [gin.columns for gin in played_gins(named)] == [(named.columns[4].name,)]


def test_settings_of_gins_are_observed(newest: ServerPrograms) -> None:
    """Those of the server by which the pending list is cleaned, and what an index has instead."""
    with Host(newest) as host:
        cluster = host.cluster("main")
        own = {"gin_pending_list_limit": "256", "work_mem": "1024"}
        cluster.start({"autovacuum": "off", "jit": "off", **own})
        _load(
            cluster,
            "CREATE TABLE t (id int4 PRIMARY KEY, v text[]); "
            "INSERT INTO t SELECT id, words FROM words ORDER BY id; "
            "CREATE INDEX t_v ON t USING gin (v); DROP TABLE words",
        )
        profile = observed.profile_of(observed.watched(cluster))
    settings = profile.server.settings
    assert (settings["gin_pending_list_limit"], settings["work_mem"]) == ("256kB", "1024kB")
    (gin,) = played_gins(profile.table("t"))
    assert gin.gin_pending_list_limit is None
