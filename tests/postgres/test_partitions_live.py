"""
Statements name a table above, counters the tables below: partitions and tables that inherit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import observed
import planned
import psycopg
import pytest

from pgheadroom.advise.build import partitions_of
from pgheadroom.migration import read_migration
from pgheadroom.migration.catalog import NamedTables
from pgheadroom.migration.following import follow
from pgheadroom.plan import make_plan
from pgheadroom.profile import Profile
from pgheadroom.servers import Cluster, Host, ServerPrograms

pytestmark = pytest.mark.usefixtures("run_parent")

DDL = """
CREATE TABLE events (id int4, month int4, state int4, hits int4, PRIMARY KEY (id, month))
    PARTITION BY RANGE (month);
CREATE TABLE events_1 PARTITION OF events FOR VALUES FROM (1) TO (2) WITH (fillfactor = 25);
CREATE TABLE events_2 PARTITION OF events FOR VALUES FROM (2) TO (3)
    PARTITION BY LIST (id);
CREATE TABLE events_2_rest PARTITION OF events_2 DEFAULT WITH (fillfactor = 25);
CREATE TABLE events_rest PARTITION OF events DEFAULT;
CREATE INDEX events_month ON events (month);
CREATE INDEX events_2_state ON events_2_rest (state);
INSERT INTO events SELECT i, 1 + i % 2, 0, 0 FROM generate_series(1, 2000) i;
CREATE TABLE tasks (id int4, state text, tries int4) PARTITION BY LIST (lower(state));
CREATE TABLE tasks_open PARTITION OF tasks FOR VALUES IN ('open');
CREATE TABLE tasks_done PARTITION OF tasks FOR VALUES IN ('done');
ALTER TABLE tasks_open ADD PRIMARY KEY (id);
INSERT INTO tasks SELECT i, 'Open', 0 FROM generate_series(1, 500) i;
CREATE TABLE above (id int4 PRIMARY KEY, v int4, w int4);
CREATE TABLE below (extra int4, PRIMARY KEY (id)) INHERITS (above);
INSERT INTO above SELECT i, 0, 0 FROM generate_series(1, 100) i;
INSERT INTO below SELECT i, 0, 0, 0 FROM generate_series(101, 600) i;
VACUUM ANALYZE
"""


def _observed(cluster: Cluster, work: Callable[[Cluster], None]) -> Profile:
    return observed.profile_of(observed.watched(cluster, lambda: work(cluster)))


def _seen(programs: ServerPrograms, work: Callable[[Cluster], None]) -> Profile:
    with Host(programs) as host:
        cluster = host.cluster("main")
        if not observed.start_with_contrib(cluster, {"autovacuum": "off"}):
            pytest.skip(f"{programs} has no pg_stat_statements")
        observed.load(cluster, DDL + "; CREATE EXTENSION pg_stat_statements")
        return _observed(cluster, work)


def _classes(profile: Profile, table: str) -> dict[str, float]:
    """Updates of the table by the columns that they assign, as the shares have them."""
    facts = observed.facts(profile, table)
    updates = facts.counters.n_tup_upd
    return {
        ",".join(found.columns): round(found.frac * updates, 1)
        for found in facts.updates.classes
        if found.frac
    }


@pytest.mark.contrib
def test_updates_of_partitions_are_their_own_statements_and_a_share_of_their_parents(
    programs: ServerPrograms,
) -> None:
    """
    A partition's own UPDATEs once hid those of the table above it, which were known to no source.

    What is left of its counter is the table's above, and follows the counters: updates that stay on
    their page and are not HOT have changed an indexed column, and HOT ones have not.
    """

    def work(cluster: Cluster) -> None:
        with observed.session(cluster) as connection:
            connection.execute("UPDATE events_1 SET hits = 1 WHERE id <= 200")
            connection.execute("UPDATE events SET month = month, hits = 2 WHERE id <= 600")
            connection.execute("UPDATE events SET state = 1 WHERE month = 2 AND id <= 400")
            connection.execute("UPDATE ONLY events SET state = 3")

    profile = _seen(programs, work)
    # Its own are known; of those above one has three times the rows of the other.
    assert _classes(profile, "events_1") == {"hits": 100, "month,hits": 225, "state": 75}
    found = _classes(profile, "events_2_rest")
    assert sum(found.values()) == pytest.approx(500, abs=1)
    if programs.version.major >= 16:  # 300 HOT updates, and 200 that are not
        assert found == {"month,hits": 300, "state": 200}
    assert sum(_classes(profile, "events_rest").values()) == 0
    facts = observed.facts(profile, "events_1")
    assert facts.updates.unattributed_frac is None
    # What the statements above wrote is of all partitions, HOT in one and not in another.
    assert {found.wal_bytes for found in facts.updates.classes} == {None}
    (index,) = [one for one in facts.indexes if one.name == "events_1_month_idx"]
    assert index.parent == "events_month"
    own = observed.facts(profile, "events_2_rest").indexes
    assert [one.parent for one in own if one.name == "events_2_state"] == [None]
    assert [one.moved_rows for one in profile.server.observed.partitioned] == [0, None, None]


@pytest.mark.contrib
def test_rows_that_move_to_another_partition_are_no_updates(programs: ServerPrograms) -> None:
    """They are rows of a statement, a delete and an insert of the counters; the key is known."""

    def work(cluster: Cluster) -> None:
        with observed.session(cluster) as connection:
            connection.execute("UPDATE tasks SET tries = 1 WHERE id <= 100")
            connection.execute("UPDATE tasks SET state = 'Done' WHERE id <= 300")

    profile = _seen(programs, work)
    (moved,) = [p.moved_rows for p in profile.server.observed.partitioned if p.name == "tasks"]
    assert moved == 300
    counters = observed.facts(profile, "tasks_open").counters
    assert (counters.n_tup_upd, counters.n_tup_del) == (100, 300)
    assert _classes(profile, "tasks_open") == {"tries": 100}
    assert observed.facts(profile, "tasks_done").counters.n_tup_ins == 300


@pytest.mark.contrib
def test_updates_of_a_new_partition_are_not_taken_for_moves(programs: ServerPrograms) -> None:
    """They are a statement's rows that no table of the profile has, and nor did they move."""

    def work(cluster: Cluster) -> None:
        observed.load(
            cluster,
            "CREATE TABLE tasks_late PARTITION OF tasks FOR VALUES IN ('late');"
            "INSERT INTO tasks SELECT i, 'late', 0 FROM generate_series(1, 80) i;"
            "UPDATE tasks SET tries = 2 WHERE lower(state) = 'late';"
            "UPDATE tasks SET state = CASE WHEN id <= 300 THEN 'Done' ELSE 'OPEN' END"
            " WHERE lower(state) = 'open' AND id <= 400;"
            "UPDATE tasks_open SET state = 'open' WHERE id > 400 AND id <= 450;"
            "DELETE FROM tasks WHERE lower(state) = 'open' AND id > 450",
        )

    profile = _seen(programs, work)
    (moved,) = [p.moved_rows for p in profile.server.observed.partitioned if p.name == "tasks"]
    assert moved == 300
    counters = observed.facts(profile, "tasks_open").counters
    assert (counters.n_tup_upd, counters.n_tup_del) == (150, 350)


@pytest.mark.contrib
def test_only_keeps_a_statement_to_its_table(programs: ServerPrograms) -> None:
    """Of a table with heirs a statement reaches all, but ONLY with the word."""

    def work(cluster: Cluster) -> None:
        with observed.session(cluster) as connection:
            connection.execute("UPDATE ONLY above SET v = 1 WHERE id <= 50")
            connection.execute("UPDATE above SET w = 1 WHERE id > 100 AND id <= 300")
            connection.execute("UPDATE below SET extra = 1 WHERE id <= 200")

    profile = _seen(programs, work)
    assert _classes(profile, "above") == {"v": 50}
    assert _classes(profile, "below") == {"w": 200, "extra": 100}


@pytest.mark.contrib
def test_a_partition_that_is_made_inside_the_interval_is_named(programs: ServerPrograms) -> None:
    """It has no place in the profile, and its rows were lost without a word."""

    def work(cluster: Cluster) -> None:
        observed.load(
            cluster,
            "CREATE TABLE events_3 PARTITION OF events FOR VALUES FROM (3) TO (4);"
            "INSERT INTO events SELECT i, 3, 0, 0 FROM generate_series(1, 50) i;"
            "UPDATE events SET hits = 1 WHERE month = 3;"
            "DROP TABLE events_rest",
        )

    profile = _seen(programs, work)
    left_out = {one.name: one.why for one in profile.server.observed.left_out}
    assert left_out == {
        "events_3": "created inside the interval: its 50 inserts and 50 updates are in no table "
        "here",
        "events_rest": "dropped inside the interval",
    }


@pytest.mark.contrib
def test_updates_of_partitions_that_come_and_go_are_the_statements(
    programs: ServerPrograms,
) -> None:
    """A table whose partitions live shorter than the interval was said to have no updates."""

    def work(cluster: Cluster) -> None:
        observed.load(
            cluster,
            "INSERT INTO events SELECT i, 9, 0, 0 FROM generate_series(1, 20) i;"
            "UPDATE events SET hits = 1 WHERE month = 9;"
            "DROP TABLE events_rest;"
            "CREATE TABLE events_3 PARTITION OF events FOR VALUES FROM (3) TO (4);"
            "INSERT INTO events SELECT i, 3, 0, 0 FROM generate_series(1, 50) i;"
            "UPDATE events SET hits = 1 WHERE month = 3;"
            "CREATE TABLE events_4 PARTITION OF events FOR VALUES FROM (4) TO (5);"
            "INSERT INTO events SELECT i, 4, 0, 0 FROM generate_series(1, 30) i;"
            "UPDATE events SET hits = 1 WHERE month = 4;"
            "DROP TABLE events_4;"
            "UPDATE events SET hits = 1 WHERE month = 1 AND id <= 20",
        )

    profile = _seen(programs, work)
    server = profile.server.observed
    assert server.changed == (
        "partitions of events: 1 came (events_3), 1 went (events_rest) inside the interval; 100 "
        "updates were in partitions that are not in the profile",
    )
    assert {one.name: one.parent for one in server.left_out} == {
        "events_3": "events",
        "events_rest": "events",
    }
    found = {one.name: (one.came, one.went, one.updates_elsewhere) for one in server.partitioned}
    assert found == {
        "events": (1, 1, 100),
        "events_2": (None, None, None),
        "tasks": (None, None, None),
    }
    own = planned.table_advice(profile.table("events_1"), None, "KEEP")
    rates = {one.name: one.updates_per_s for one in partitions_of(server, (own,), profile.tables)}
    assert rates["events"] == pytest.approx(110 / server.interval_s, rel=0.001)


def test_updates_of_partitions_that_went_are_not_called_none(newest: ServerPrograms) -> None:
    """Without statements nobody knows them; those of one that came are its own counters'."""

    def work(cluster: Cluster) -> None:
        observed.load(
            cluster,
            "UPDATE tasks SET tries = 1 WHERE id <= 100;"
            "DROP TABLE tasks_done; DROP TABLE tasks_open;"
            "CREATE TABLE events_3 PARTITION OF events FOR VALUES FROM (3) TO (4);"
            "INSERT INTO events SELECT i, 3, 0, 0 FROM generate_series(1, 50) i;"
            "UPDATE events SET hits = 1 WHERE month = 3",
        )

    with Host(newest) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        observed.load(cluster, DDL)
        profile = _observed(cluster, work)
    server = profile.server.observed
    assert server.changed == (
        "partitions of events: 1 came (events_3) inside the interval; 50 updates were in "
        "partitions that are not in the profile",
        "partitions of tasks: 2 went (tasks_done, tasks_open) inside the interval; how many "
        "updates these had is not known",
    )
    parents = {one.name: one for one in partitions_of(server, (), profile.tables)}
    assert parents["tasks"].updates_per_s is None
    assert parents["events"].updates_per_s == pytest.approx(50 / server.interval_s, rel=0.001)


def test_a_plan_says_once_what_later_partitions_need(programs: ServerPrograms) -> None:
    """A new partition has no fillfactor by itself; a table that inherits is no partition."""
    later = "CREATE TABLE events_3 PARTITION OF events FOR VALUES FROM (3) TO (4)"

    def work(cluster: Cluster) -> None:
        with observed.session(cluster) as connection:
            connection.execute("UPDATE events SET hits = hits + 1 WHERE id <= 300")
            connection.execute("UPDATE events SET hits = hits + 1 WHERE id <= 100 AND month = 2")

    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        observed.load(cluster, DDL)
        profile = _observed(cluster, work)
        settings = {"events_1": 85, "events_2_rest": 70, "below": 90}
        made = tuple(
            planned.table_advice(
                profile.table(name),
                fillfactor,
                "CHANGE",
                (planned.point(25, 1e5, 0.5), planned.point(fillfactor, 1e5, 0.9)),
            )
            for name, fillfactor in settings.items()
        )
        advice = planned.advice_of(profile, made)
        parents = partitions_of(profile.server.observed, made, profile.tables)
        plan = make_plan(replace(advice, partitioned=parents), profile, rewrite="none")
        with cluster.connect() as connection:
            connection.execute(later)
            options = connection.execute(
                "SELECT reloptions FROM pg_class WHERE relname = 'events_3'"
            ).fetchone()
            with pytest.raises(psycopg.DatabaseError, match=r"fillfactor|storage param"):
                connection.execute("ALTER TABLE events SET (fillfactor = 85)")
    assert options == (None,)
    named = {one.name: (one.partitions, one.parent) for one in parents}
    assert named["events"] == (("events_1", "events_2_rest"), None)
    assert named["events_2"] == (("events_2_rest",), "events")
    assert [step.table.name for step in plan.steps] == ["events_1", "events_2_rest", "below"]
    assert [note.split(":")[0] for note in plan.notes] == [
        "Later partitions of events begin at 100",
        "Later partitions of events_2 begin at 100",
    ]
    assert "WITH (fillfactor = 85), that of events_1," in plan.notes[0]


_INDEXES = (
    "CREATE INDEX CONCURRENTLY later ON events (hits)",
    "CREATE INDEX CONCURRENTLY later ON ONLY events (hits)",
    "CREATE INDEX CONCURRENTLY later ON events_1 (hits)",
    "CREATE INDEX later ON events (hits)",
    "DROP INDEX events_1_month_idx",
    "DROP INDEX events_2_rest_month_idx",
    "DROP INDEX CONCURRENTLY events_month",
    "DROP INDEX CONCURRENTLY events_2_state",
    "DROP INDEX events_month",
    "DROP INDEX events_2_state",
    "ALTER INDEX events_1_month_idx RENAME TO part; DROP INDEX part",
    "ALTER INDEX events_month RENAME TO whole; DROP INDEX events_1_month_idx",
    "ALTER TABLE events DETACH PARTITION events_1; DROP INDEX events_1_month_idx",
    "DROP INDEX events_month; CREATE INDEX events_1_month_idx ON events_1 (month);"
    "DROP INDEX events_1_month_idx",
    "ALTER TABLE events_1 DROP CONSTRAINT events_1_pkey",
    "ALTER TABLE tasks_open DROP CONSTRAINT tasks_open_pkey",
)


def test_what_postgresql_refuses_of_partitions_indexes_is_told(programs: ServerPrograms) -> None:
    """CREATE INDEX CONCURRENTLY on a partitioned table once let writers go on, for all that."""
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        observed.load(cluster, DDL)
        profile = _observed(cluster, lambda _: None)
        refused = set()
        for statement in _INDEXES:
            with cluster.connect() as connection:
                try:
                    if "CONCURRENTLY" in statement:
                        connection.execute(statement.encode())
                    else:
                        connection.execute(f"BEGIN; {statement}; ROLLBACK".encode())
                except psycopg.DatabaseError:
                    refused.add(statement)
            if statement not in refused and "CONCURRENTLY" in statement:
                _restore(cluster, statement)
    told = set()
    for statement in _INDEXES:
        catalog = NamedTables(profile)
        follow(catalog, read_migration(statement))
        if any("PostgreSQL refuses" in note.text for note in catalog.notes):
            told.add(statement)
    assert told == refused
    assert len(refused) == 8
    catalog = NamedTables(profile)
    follow(catalog, read_migration("DROP INDEX events_month"))
    gone = {key: [edit.name for edit in one.edits] for key, one in catalog.altered.items()}
    assert {key: names for key, names in gone.items() if names} == {
        "events_1": ["events_1_month_idx"],
        "events_2_rest": ["events_2_rest_month_idx"],
        "events_rest": ["events_rest_month_idx"],
    }


def _restore(cluster: Cluster, statement: str) -> None:
    """As it was before a statement that no transaction takes back."""
    undo = "DROP INDEX later" if statement.startswith("CREATE") else None
    observed.load(cluster, undo or "CREATE INDEX events_2_state ON events_2_rest (state)")
