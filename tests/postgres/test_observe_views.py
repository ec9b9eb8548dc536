"""Updates through views: of the table behind them, or named."""

from __future__ import annotations

import json
from collections import Counter

import observed
import pytest

from pgheadroom.advise import Options, advise
from pgheadroom.observe import find_classes, observe
from pgheadroom.outcome import mid
from pgheadroom.profile import to_json
from pgheadroom.servers import Cluster, Host, ServerPrograms
from pgheadroom.sources.log import StatementCounts

pytestmark = pytest.mark.usefixtures("run_parent")

DDL = """
CREATE TABLE jobs (gone int4, id int8 PRIMARY KEY, owner int4, state int2, note text)
    WITH (fillfactor = 50, autovacuum_enabled = off);
ALTER TABLE jobs DROP COLUMN gone;
CREATE INDEX jobs_state ON jobs (state);
CREATE TABLE other (id int8 PRIMARY KEY, state int2);
CREATE VIEW plain AS SELECT * FROM jobs;
CREATE VIEW renamed AS SELECT note AS state, state AS "in the queue", id AS number, owner + 1 AS id
    FROM jobs WHERE EXISTS (SELECT id, state FROM other WHERE other.id = jobs.owner) OR owner > 0;
CREATE VIEW above AS SELECT number, state AS words FROM renamed;
CREATE VIEW told AS SELECT id, state FROM jobs;
CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    UPDATE jobs SET note = 'told' WHERE id = old.id; RETURN new; END $$;
CREATE TRIGGER tell INSTEAD OF UPDATE ON told FOR EACH ROW EXECUTE FUNCTION tell();
CREATE VIEW ruled AS SELECT id, state FROM jobs;
CREATE RULE ruled AS ON UPDATE TO ruled DO INSTEAD UPDATE jobs SET owner = 1 WHERE id = old.id;
CREATE VIEW joined AS SELECT jobs.id, other.state FROM jobs JOIN other USING (id);
CREATE TRIGGER tell INSTEAD OF UPDATE ON joined FOR EACH ROW EXECUTE FUNCTION tell();
CREATE VIEW twofold AS SELECT id, note, (SELECT note FROM (SELECT id, 'x' AS note FROM other) o
    LIMIT 1) AS more FROM jobs;
INSERT INTO jobs SELECT i, 1, 0, 'n' FROM generate_series(1, 500) i;
VACUUM ANALYZE
"""
"""Numbers in `jobs`: id 2, owner 3, state 4, note 5."""

STATEMENTS = {
    "UPDATE plain SET state = state + 1 WHERE id = $1": (4,),
    "UPDATE renamed SET state = 'x' WHERE number = $1": (5,),
    'UPDATE renamed SET "in the queue" = 3 WHERE number = $1': (4,),
    "UPDATE above SET words = 'y' WHERE number = $1": (5,),
    "UPDATE twofold SET note = 'z' WHERE id = $1": (5,),
    "UPDATE told SET state = 2 WHERE id = $1": None,
    "UPDATE ruled SET state = 2 WHERE id = $1": None,
    "UPDATE joined SET state = 2 WHERE id = $1": None,
}


NAMED = {
    "told": "it updates a view whose INSTEAD OF trigger or rule does the rest",
    "ruled": "it updates a view whose INSTEAD OF trigger or rule does the rest",
    "joined": "it updates a view whose INSTEAD OF trigger or rule does the rest",
}


def counted(statements: dict[str, int]) -> StatementCounts:
    """As if they had been in a file."""
    counts = Counter(statements)
    return StatementCounts(source="file", counts=counts, seen=len(counts), cut=0)


def test_an_update_through_a_view_is_one_of_the_table_behind_it(programs: ServerPrograms) -> None:
    """
    By the column behind the assigned one, through views over views, whatever it is called there.

    What a trigger or a rule does instead is named, and taken for nobody's.
    """
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        load(cluster)
        recording = observed.watched(cluster)
        with cluster.connect() as connection:
            found = connection.execute("SELECT 'jobs'::regclass::oid::int8").fetchone()
            for statement in STATEMENTS:  # the server takes each of them
                connection.execute(statement.replace("$1", "1").encode())
    assert found is not None
    for statement, attnums in STATEMENTS.items():
        for text in (statement, statement.replace("UPDATE ", "UPDATE public.")):
            classes = find_classes(recording, [], [counted({text: 3})])
            (report,) = classes.reports
            if attnums is None:
                assert classes.by_table == {}
                view = statement.split()[1]
                assert report.lost == {NAMED[view]: 3}
            else:
                assert report.lost == {}, text
                assert {*classes.by_table} == {found[0]}
                (made,) = classes.by_table[found[0]]
                assert (made.attnums, made.calls) == (attnums, 3), text


def test_what_updates_through_views_do_is_advised_on(programs: ServerPrograms) -> None:
    """40 of a column that no index has are HOT, 30 of the indexed one are not: by the server."""
    words = "UPDATE above SET words = 'y' WHERE number = $1"
    state = 'UPDATE renamed SET "in the queue" = 3 WHERE number = $1'

    def work() -> None:
        with observed.session(cluster) as connection:
            for row in range(1, 41):
                connection.execute(words.replace("$1", str(row)).encode())
            for row in range(41, 71):
                connection.execute(state.replace("$1", str(row)).encode())

    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        load(cluster)
        recording = observed.watched(cluster, work)
    classes = find_classes(recording, [], [counted({words: 40, state: 30})])
    profile = observe(recording, classes, mask=False, sampled=True)
    seen = profile.table("jobs").observed
    assert seen is not None
    assert (seen.counters.n_tup_upd, seen.counters.n_tup_hot_upd) == (70, 40)
    assert {one.columns for one in seen.updates.classes} == {("note",), ("state",)}
    (index,) = advise(profile, Options(budget_s=0.0)).indexes
    assert index.name == "jobs_state"
    assert mid(index.updates_frac) == pytest.approx(30 / 70)
    masked = observe(recording, classes, mask=True, sampled=True)
    told = json.dumps(to_json(masked))
    assert not any(name in told for name in ("renamed", "above", "queue", "words"))


def load(cluster: Cluster) -> None:
    """The functions have semicolons of their own."""
    with cluster.connect() as connection:
        for statement in DDL.split(";\n"):
            connection.execute(statement.encode())
