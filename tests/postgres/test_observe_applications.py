"""What schemas of public applications have, and `observe` took for something else."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import observed
import pytest

from pgheadroom.errors import MeasurementInvalid
from pgheadroom.observe import find_classes, observe
from pgheadroom.outcome import middle
from pgheadroom.predict import predict
from pgheadroom.profile import Operation, Profile, Run, parse_profile, to_json
from pgheadroom.profile.change import Change
from pgheadroom.profile.reading import checked_profile
from pgheadroom.profile.tables import Values
from pgheadroom.prove import prove
from pgheadroom.servers import Host, ServerPrograms
from pgheadroom.sources.log import read_statements

pytestmark = pytest.mark.usefixtures("run_parent")

CHANGESETS = """
CREATE TABLE changesets (id int8 PRIMARY KEY, changes int4, top int4)
    WITH (fillfactor = 50, autovacuum_enabled = off);
CREATE INDEX changesets_top ON changesets (top);
INSERT INTO changesets SELECT i, 0, 1000 FROM generate_series(1, 500) i;
VACUUM ANALYZE
"""
EDIT = "UPDATE changesets SET changes = changes + 1, top = greatest(top, %s) WHERE id = %s"


@pytest.mark.pg(">= 16, < 19")
def test_counters_say_how_often_an_assigned_column_changes(
    programs: ServerPrograms, tmp_path: Path
) -> None:
    """
    OpenStreetMap assigns a changeset's box with each edit, which seldom makes it larger.

    Its index has all four sides: 12 % HOT were foreseen for the 88 % that the counters had.
    """
    path = tmp_path / "statements.sql"
    path.write_text(EDIT.replace("%s", "$1", 1).replace("%s", "$2") + ";\n", encoding="utf-8")

    def work() -> None:
        with observed.session(cluster) as connection:
            for row in range(1, 501):
                connection.execute(EDIT.encode(), (2000 if row % 10 == 0 else 1, row))

    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        observed.load(cluster, CHANGESETS)
        recording = observed.watched(cluster, work)
    classes = find_classes(recording, [], [read_statements(path)])
    profile = observe(recording, classes, mask=False, sampled=True)
    (update,) = profile.workload.operations
    fracs = {change.column: change.changed_frac for change in update.sets}
    assert fracs == {"changes": 1.0, "top": pytest.approx(0.1, abs=0.01)}
    said = profile.table("changesets").observed
    assert said is not None
    assert any("10.0 % change each such column" in text for text in said.updates.assumed or ())
    (cell,) = predict(profile, server=str(programs.version)).cells
    assert middle(cell.predicted.value("hot_frac")) == pytest.approx(0.9, abs=0.03)


JOBS = """
CREATE TABLE jobs (queue text, id uuid, state int4, PRIMARY KEY (queue, id));
CREATE INDEX jobs_state ON jobs (queue, state);
INSERT INTO jobs SELECT 'mail', md5(i::text)::uuid, 0 FROM generate_series(1, 2000) i;
CREATE TABLE visits (shard int4, site text, n int4, PRIMARY KEY (shard, site));
INSERT INTO visits SELECT i % 4, md5(i::text), 0 FROM generate_series(1, 2000) i;
VACUUM ANALYZE
"""


@pytest.mark.pg(">= 16, < 19")
def test_the_key_is_the_column_that_tells_rows_apart(programs: ServerPrograms) -> None:
    """
    Of pg-boss' (name, id) the name of the queue was the key, as a number that counts the rows.

    No server plans to find rows by it, since other indexes begin with it too.
    """
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        observed.load(cluster, JOBS)
        recording = observed.watched(cluster)
    profile = observed.profile_of(recording)
    jobs, visits = profile.table("jobs"), profile.table("visits")
    assert jobs.key is not None
    assert (jobs.key.name, jobs.key.type) == ("id", "uuid")
    assert jobs.column("queue").type == "text"
    assert visits.key is not None
    assert (visits.key.name, visits.key.type) == ("site", "text")
    assert visits.column("shard").values == Values(kind="random", ndistinct=4)


QUEUE = """
CREATE TYPE job_state AS (name text);
CREATE TABLE queue (id int8 PRIMARY KEY, state job_state NOT NULL, n int4)
    WITH (autovacuum_enabled = off);
INSERT INTO queue SELECT i, '(done)'::job_state, i FROM generate_series(1, 2000) i;
CREATE INDEX queue_failed ON queue (n) WHERE state = '(active)'::job_state;
CREATE INDEX queue_done ON queue (n) WHERE state = '(done)'::job_state;
VACUUM ANALYZE
"""


STATES = """
CREATE SCHEMA work;
CREATE TYPE work.job_state AS ENUM ('created', 'active', 'it''s done', 'failed');
ALTER TYPE work.job_state ADD VALUE 'waits' BEFORE 'active';
CREATE DOMAIN work.known AS work.job_state;
CREATE DOMAIN work.calm AS work.known;
CREATE TABLE work.jobs (id int8 PRIMARY KEY, state work.job_state NOT NULL DEFAULT 'created',
    n int4, was work.job_state, last work.calm DEFAULT 'it''s done')
    WITH (autovacuum_enabled = off);
INSERT INTO work.jobs SELECT i, CASE WHEN i % 10 = 0 THEN 'created'
    WHEN i % 10 = 1 THEN 'active' ELSE 'it''s done' END::work.job_state, i,
    NULL, CASE WHEN i % 4 = 0 THEN 'active' ELSE 'created' END::work.calm
    FROM generate_series(1, 2000) i;
CREATE INDEX jobs_open ON work.jobs (n) WHERE state = ANY ('{created,active}'::work.job_state[]);
CREATE INDEX jobs_in ON work.jobs (n) WHERE state IN ('created', 'active');
CREATE INDEX jobs_not ON work.jobs (state) WHERE state NOT IN ('it''s done', 'failed');
CREATE INDEX jobs_early ON work.jobs (n) WHERE state < 'active' AND n > 5;
VACUUM ANALYZE
"""


def test_an_enum_stands_as_an_enum(programs: ServerPrograms) -> None:
    """
    Labels in their order, how often each stands, which one new rows have; predicates evaluated.

    A profile of a queue had all its rows in a partial index over the state of a few.
    """
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        observed.load(cluster, STATES)
        recording = observed.watched(cluster)
    table = observed.profile_of(recording).table("work.jobs")
    labels = ("created", "waits", "active", "it's done", "failed")
    state, was = table.column("state"), table.column("was")
    assert (state.type, state.labels, was.labels) == ("enum", labels, labels)
    assert state.values.new == "created"
    assert state.values.shares == pytest.approx((0.1, 0, 0.1, 0.8, 0))
    assert (was.null_frac, was.values.shares, was.values.new) == (1, (), None)
    last = table.column("last")
    assert (last.labels, last.values.new) == (labels, "it's done")
    assert last.values.shares == pytest.approx((0.75, 0, 0.25, 0, 0))
    indexes = {index.name.rpartition(".")[2]: index for index in table.indexes}
    assert indexes["jobs_in"].where == "state IN ('created', 'active')"
    assert indexes["jobs_not"].where == "state NOT IN ('it''s done', 'failed')"
    assert indexes["jobs_early"].where == "state < 'active' AND n > 5"
    assert not any(indexes[name].stated for name in ("jobs_in", "jobs_not", "jobs_early"))
    # An array of an enum as one literal names the type, which the profile's server does not have.
    (stands,) = indexes["jobs_open"].stated
    assert stands.columns == ("id", "state")
    assert stands.true_frac == pytest.approx(0.2)

    # Labels are data: with --mask none is in the profile, and what is known of them still is.
    masked = observed.profile_of(recording, mask=True)
    said = json.dumps(to_json(masked))
    assert not [label for label in ("created", "waits", "active", "s done") if label in said]
    hidden = masked.tables[0].columns[1]
    assert hidden.values.shares == state.values.shares
    assert hidden.values.new == hidden.labels[labels.index("created")]


PARTIAL = """
CREATE TABLE jobs (id int8 PRIMARY KEY, n int4, state text, note text)
    WITH (autovacuum_enabled = off);
INSERT INTO jobs SELECT i, i, CASE WHEN i % 25 = 0 THEN 'open' ELSE 'done' END, repeat('n', 20)
    FROM generate_series(1, 6000) i;
CREATE INDEX jobs_open ON jobs (n) WHERE state = 'open';
CREATE INDEX jobs_all ON jobs (n) WHERE state IS NOT NULL;
CREATE INDEX jobs_none ON jobs (n) WHERE state = 'gone';
VACUUM ANALYZE
"""


def test_a_masked_partial_index_has_as_many_rows(programs: ServerPrograms) -> None:
    """
    The predicate's text goes, what is known of it stays: its columns, and the rows of the index.

    A masked profile had all of a table's rows in the index of a few, here 16 pages more, and each
    update that is not HOT put an entry into it.
    """
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        observed.load(cluster, PARTIAL)
        recording = observed.watched(cluster)
    clear, masked = (observed.profile_of(recording, mask=mask) for mask in (False, True))
    (table,) = masked.tables
    assert "open" not in json.dumps(to_json(masked))
    shares = [stated.true_frac for index in table.indexes for stated in index.stated]
    assert shares == [pytest.approx(0.04)]
    pages = {}
    for profile in (clear, masked):
        (one,) = profile.tables
        columns = [column.name for column in one.columns]
        played = _updated(profile, one.name, columns[2])
        proof = prove(played, server=str(programs.bin_dir))
        assert not proof.beyond
        pages[profile is masked] = proof.cells[0].measured.index_pages
    assert pages[True] == pytest.approx(pages[False], abs=2)


OWN = """
CREATE TYPE state AS ENUM ('open', 'done');
CREATE FUNCTION is_done(bits int4, state state) RETURNS bool IMMUTABLE LANGUAGE sql
    AS $$ SELECT state = 'done' AND bits > 0 $$;
CREATE FUNCTION half(n int4) RETURNS int4 IMMUTABLE LANGUAGE sql AS $$ SELECT n / 2 $$;
CREATE TABLE jobs (id int8 PRIMARY KEY, n int4, state state, note text);
INSERT INTO jobs SELECT i, i, 'done', 'n' FROM generate_series(1, 2000) i;
CREATE INDEX jobs_done ON jobs (note) WHERE is_done(n, state);
CREATE INDEX jobs_half ON jobs (half(n));
CREATE INDEX jobs_lower ON jobs (lower(note));
VACUUM ANALYZE
"""


def test_functions_of_its_own_stand_in_no_profile(programs: ServerPrograms) -> None:
    """
    No other server has them; the columns that they read stand for them, and the profile is played.

    River's unique index names one over an enum, and its profile could not be proved.
    """
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        observed.load(cluster, OWN)
        profile = observed.profile_of(observed.watched(cluster))
    table = profile.table("jobs")
    indexes = {index.name: index for index in table.indexes}
    assert indexes["jobs_done"].where == '"n" IS NOT NULL AND "state" IS NOT NULL'
    assert (indexes["jobs_half"].columns, indexes["jobs_half"].expressions) == (("n",), ())
    assert indexes["jobs_lower"].expressions == ("lower(note)",)
    assert set(observed.facts(profile, "jobs")["differs"]) == {"jobs_done", "jobs_half"}
    proof = prove(_updated(profile, "jobs"), server=str(programs.bin_dir))
    assert not proof.beyond


def test_functions_of_extensions_stand_where_their_types_do(programs: ServerPrograms) -> None:
    """Who plays a profile creates the extensions of its types, and no others."""
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        with cluster.connect() as connection:
            row = connection.execute(
                "SELECT count(*) FROM pg_available_extensions WHERE name IN ('hstore', 'pgcrypto')"
            ).fetchone()
        if row != (2,):
            pytest.skip(f"{programs} has no contrib modules")
        observed.load(
            cluster,
            "CREATE EXTENSION hstore; CREATE EXTENSION pgcrypto; "
            "CREATE SCHEMA elsewhere; CREATE EXTENSION ltree SCHEMA elsewhere; "
            "CREATE TABLE jobs (id int8 PRIMARY KEY, n int4, note text, tags hstore, "
            "path elsewhere.ltree); "
            "INSERT INTO jobs SELECT i, i, 'n', 'a=>1', 'a.b' FROM generate_series(1, 2000) i; "
            "CREATE INDEX jobs_tag ON jobs ((tags -> 'a')); "
            "CREATE INDEX jobs_depth ON jobs (elsewhere.nlevel(path)); "
            "CREATE INDEX jobs_hash ON jobs (digest(note, 'sha256')); VACUUM ANALYZE",
        )
        profile = observed.profile_of(observed.watched(cluster))
    indexes = {index.name: index for index in profile.table("jobs").indexes}
    assert indexes["jobs_tag"].expressions == ("(tags OPERATOR(public.->) 'a'::text)",)
    assert (indexes["jobs_depth"].columns, indexes["jobs_depth"].expressions) == (("path",), ())
    assert (indexes["jobs_hash"].columns, indexes["jobs_hash"].expressions) == (("note",), ())
    proof = prove(_updated(profile, "jobs"), server=str(programs.bin_dir))
    assert not proof.beyond


def test_rows_are_found_by_the_key_beside_indexes_that_begin_alike(
    programs: ServerPrograms,
) -> None:
    """Of two by which a row costs the same the planner takes the newer; Miniflux was refused."""
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        observed.load(
            cluster,
            "CREATE TABLE entries (id int8 PRIMARY KEY, n int4, state int4); "
            "INSERT INTO entries SELECT i, i, 0 FROM generate_series(1, 2000) i; "
            "CREATE INDEX entries_n ON entries (n); "
            "CREATE INDEX entries_id_state ON entries (id, state); VACUUM ANALYZE",
        )
        profile = observed.profile_of(observed.watched(cluster))
    names = [index.name for index in profile.table("entries").indexes]
    assert names == ["entries_id_state", "entries_n", "entries_pkey"]
    assert profile.table("entries").key_index == profile.table("entries").indexes[-1]
    differs = observed.facts(profile, "entries")["differs"]
    assert differs == {
        "entries_id_state": "begins as entries_pkey does, by which the profile finds rows; "
        "a server may by this one"
    }
    played = _updated(profile, "entries")
    proof = prove(played, server=str(programs.bin_dir))
    assert not proof.beyond
    (table,) = played.tables
    first = replace(played, tables=(replace(table, indexes=table.indexes[::-1]),))
    with pytest.raises(MeasurementInvalid, match=r"entries_pkey.*the one listed later"):
        prove(checked_profile(first.in_file()), server=str(programs.bin_dir))


def _updated(profile: Profile, name: str, column: str = "n") -> Profile:
    """So many updates of a column of one table, loaded anew, on a server of no other settings."""
    file = profile.in_file()
    table = replace(profile.table(name), observed=None, pages=(), rows_per_page=None)
    return checked_profile(
        replace(
            file,
            server=replace(file.server, observed=None),
            tables=(table,),
            operations=(Operation(table=name, kind="update", sets=(Change(column=column),)),),
            run=Run(operations=200),
        )
    )


@pytest.mark.pg(">= 16, < 19")
def test_a_partial_index_that_never_had_an_entry_has_none(programs: ServerPrograms) -> None:
    """
    Thirteen of pg-boss' indexes are for policies that nobody used, and stood over all rows.

    A profile of it wrote twice the WAL, and had twice the index pages. HOT ends by them all the
    same, for their predicates name the state.
    """
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        observed.load(cluster, QUEUE)
        recording = observed.watched(cluster)
    table = observed.profile_of(recording).table("queue")
    where = {index.name: index.where for index in table.indexes}
    assert where["queue_failed"] == '"state" IS NULL AND "state" IS NOT NULL'
    assert where["queue_done"] == '"state" IS NOT NULL'
    updated = {
        "schema_version": 1,
        "table": [
            {
                "name": "queue",
                "rows": 2000,
                "columns": [
                    {"name": "id", "type": "int8"},
                    {"name": "state", "type": "int4"},
                    {"name": "n", "type": "int4"},
                ],
                "indexes": [
                    {"name": "queue_pkey", "columns": ["id"], "unique": True},
                    {"name": "queue_failed", "columns": ["n"], "where": where["queue_failed"]},
                ],
            }
        ],
        "operation": [{"table": "queue", "kind": "update", "sets": ["state"]}],
        "run": {"operations": 500},
    }
    proof = prove(parse_profile(updated), server=str(programs.bin_dir))
    assert not proof.beyond
    (cell,) = proof.cells
    assert cell.predicted.value("hot_frac") == 0
