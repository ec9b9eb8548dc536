"""Queues on real servers: an application takes rows by SKIP LOCKED, and its profile does so too."""

from __future__ import annotations

from dataclasses import replace

import observed
import pytest

from pgheadroom.advise.knobs import Knobs
from pgheadroom.advise.scenario import make_scenario
from pgheadroom.profile import Profile
from pgheadroom.profile.workload import Run
from pgheadroom.prove import prove
from pgheadroom.servers import Host, ServerPrograms

pytestmark = [pytest.mark.contrib, pytest.mark.usefixtures("run_parent")]

ROWS, TURNS = 1500, 600
TAKE = "SELECT id FROM jobs {where} ORDER BY {order} LIMIT {limit} FOR UPDATE SKIP LOCKED"


def watched(programs: ServerPrograms, ddl: str, turn: list[str], turns: int = TURNS) -> Profile:
    """The profile of a database in which an application ran these statements, turn after turn."""
    with Host(programs) as host:
        cluster = host.cluster("main")
        if not observed.start_with_contrib(cluster, {"autovacuum": "off", "fsync": "off"}):
            pytest.skip(f"{programs.version} has no pg_stat_statements")
        observed.load(cluster, f"CREATE EXTENSION pg_stat_statements; {ddl}; VACUUM ANALYZE")

        def work() -> None:
            with observed.session(cluster) as connection:
                connection.autocommit = True
                for number in range(turns):
                    for statement in turn:
                        connection.execute(statement.replace(":n", str(number)).encode())

        recording = observed.watched(cluster, work)
    assert recording.failures() == ()
    profile = observed.profile_of(recording)
    masked = observed.profile_of(recording, mask=True)
    if "WHERE state" not in "".join(turn):  # the predicates of indexes are masked as well
        assert [one[0] for one in heads(masked)] == [one[0] for one in heads(profile)]
    return profile


def heads(profile: Profile) -> list[tuple[str, str | None, str | None, int]]:
    """What takes rows from the head of a queue: kind, index, condition, rows a statement."""
    return [
        (one.kind, one.pick.using, one.pick.where, int(one.rows_mean))
        for one in profile.workload.operations
        if one.pick is not None and one.is_head
    ]


def check_played(programs: ServerPrograms, profile: Profile) -> None:
    """The twin plays it as a server does, to the row, and `advise` plays it in its steady state."""
    workload = profile.workload
    run = Run(operations=400)
    table = profile.table("jobs")
    # A table loaded anew: what its pages were is another test's.
    short = replace(
        profile,
        server=replace(profile.server, observed=None),
        tables=(replace(table, observed=None, pages=(), rows_per_page=None),),
        workload=replace(workload, run=run),
    )
    proof = prove(short, server=str(programs.bin_dir))
    assert [(f.table, f.key, f.predicted, f.measured) for _, f in proof.beyond] == []
    # Without autovacuum every statement walks what all before it have left at the head.
    cleaned = replace(profile, server=replace(profile.server, autovacuum=True))
    scenario = make_scenario(cleaned, table, Knobs())
    assert scenario is not None
    observed.check_steady(scenario, profile, ROWS)


def _assumed(profile: Profile) -> str:
    return "; ".join(observed.facts(profile, "jobs")["updates"]["assumed"])


PLAIN = f"""
CREATE TABLE jobs (id int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY, due timestamptz NOT NULL
    DEFAULT clock_timestamp(), payload text);
CREATE INDEX jobs_due ON jobs (due, id);
INSERT INTO jobs (due, payload) SELECT now() - interval '1 day' + i * interval '1 s',
    repeat('p', 60) FROM generate_series(1, {ROWS}) i
"""
INSERT = "INSERT INTO jobs (payload) VALUES (repeat('p', 60))"


@pytest.mark.parametrize(
    ("statements", "rows"),
    [
        ([INSERT, f"DELETE FROM jobs WHERE id = ({TAKE}) RETURNING *"], 1),
        ([INSERT] * 4 + [f"DELETE FROM jobs WHERE id = ANY (ARRAY({TAKE}))"], 4),
        ([INSERT] * 4 + [f"WITH q AS ({TAKE}) DELETE FROM jobs USING q WHERE jobs.id = q.id"], 4),
        ([INSERT, TAKE, "DELETE FROM jobs WHERE id = :n + 1"], 1),
    ],
    ids=["one", "array", "with", "two statements"],
)
def test_a_queue_whose_jobs_are_deleted(
    programs: ServerPrograms, statements: list[str], rows: int
) -> None:
    """Each statement is a delete from the head of the index that its ORDER BY walks."""
    where = "WHERE due <= clock_timestamp()"
    turn = [one.format(where=where, order="due, id", limit=rows) for one in statements]
    profile = watched(programs, PLAIN, turn, TURNS // rows)
    assert heads(profile) == [("delete", "jobs_due", None, rows)]
    assert "the range of due is left out: every row is due" in _assumed(profile)
    check_played(programs, profile)


STATES = f"""
CREATE TABLE jobs (id int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY, state int4 NOT NULL DEFAULT 3,
    priority int4 NOT NULL DEFAULT 0, note text);
CREATE INDEX jobs_ready ON jobs (priority, id) WHERE state = 3;
INSERT INTO jobs (note) SELECT repeat('n', 60) FROM generate_series(1, {ROWS}) i
"""


def test_a_queue_whose_jobs_are_taken_then_deleted(programs: ServerPrograms) -> None:
    """The update is one of the head of the partial index, and what it took is deleted."""
    take = TAKE.format(where="WHERE state = 3", order="priority, id", limit=1)
    turn = [
        "INSERT INTO jobs (note) VALUES (repeat('n', 60))",
        f"UPDATE jobs SET state = 4 WHERE id = ({take})",
        "DELETE FROM jobs WHERE id = :n + 1",
    ]
    profile = watched(programs, STATES, turn)
    assert heads(profile) == [("update", "jobs_ready", "state = 0", 1)]
    check_played(programs, profile)


def test_jobs_that_are_taken_out_of_order(programs: ServerPrograms) -> None:
    """By a priority that any has: what was taken, not the oldest, is deleted."""
    ddl = STATES.replace("priority int4 NOT NULL DEFAULT 0", "priority int4 NOT NULL").replace(
        "INSERT INTO jobs (note) SELECT", "INSERT INTO jobs (priority, note) SELECT i * 7919 % 100,"
    )
    take = TAKE.format(where="WHERE state = 3", order="priority, id", limit=1)
    turn = [
        "INSERT INTO jobs (priority, note) VALUES (:n * 7919 % 100, repeat('n', 60))",
        f"UPDATE jobs SET state = 4 WHERE id IN ({take})",
        "DELETE FROM jobs WHERE id = (SELECT id FROM jobs WHERE state = 4)",
    ]
    profile = watched(programs, ddl, turn)
    assert heads(profile) == [
        ("update", "jobs_ready", "state = 0", 1),
        ("delete", "jobs_pkey", "state = 1", 1),
    ]
    check_played(programs, profile)


FLAG = f"""
CREATE TABLE jobs (id int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY, due timestamptz NOT NULL
    DEFAULT clock_timestamp(), locked_at timestamptz, note text,
    state bool GENERATED ALWAYS AS (locked_at IS NULL) STORED);
CREATE INDEX jobs_main ON jobs (due) INCLUDE (id) WHERE state = true;
CREATE INDEX jobs_noted ON jobs (due) WHERE state = true AND note IS NOT NULL;
INSERT INTO jobs (due, note) SELECT now() - interval '1 day' + i * interval '1 s', repeat('n', 60)
    FROM generate_series(1, {ROWS}) i
"""


def test_a_flag_that_is_generated_from_what_the_update_sets(programs: ServerPrograms) -> None:
    """As graphile-worker's jobs: their updates, none of them HOT, were foreseen 99.7 % HOT."""
    take = TAKE.format(where="WHERE state = true", order="due", limit=1)
    turn = [
        "INSERT INTO jobs (note) VALUES (repeat('n', 60))",
        f"UPDATE jobs SET locked_at = clock_timestamp() WHERE id = ({take})",
        "DELETE FROM jobs WHERE id = :n + 1",
    ]
    profile = watched(programs, FLAG, turn)
    assert heads(profile) == [("update", "jobs_main", 'NOT "state"', 1)]
    seen = profile.server.observed
    assert seen is not None
    assert seen.assumed[0] == (
        "each operation is a transaction of its own, but for what a row goes through, which is "
        "one, by one client"
    )
    check_played(programs, profile)


LABELS = f"""
CREATE TYPE job_state AS ENUM ('available', 'running', 'completed');
CREATE TABLE jobs (id int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY, state job_state NOT NULL,
    queue text NOT NULL DEFAULT 'default', scheduled_at timestamptz NOT NULL DEFAULT now(),
    attempt int2 NOT NULL DEFAULT 0, finished_at timestamptz, note text);
CREATE INDEX jobs_fetch ON jobs (queue, scheduled_at, id) WHERE state = 'available';
INSERT INTO jobs (state, scheduled_at, note) SELECT 'available', now() - interval '1 day' +
    i * interval '1 s', repeat('n', 60) FROM generate_series(1, {ROWS}) i
"""


def test_labels_a_queues_name_and_a_with(programs: ServerPrograms) -> None:
    """As River has it: an enum, one queue in front of the index, a WITH, several at a time."""
    take = TAKE.format(
        where="WHERE state = 'available' AND queue = 'default' AND scheduled_at <= now()",
        order="scheduled_at, id",
        limit=5,
    )
    turn = [
        *["INSERT INTO jobs (state, note) VALUES ('available', repeat('n', 60))"] * 5,
        f"WITH q AS ({take}) UPDATE jobs SET state = 'running', attempt = attempt + 1 FROM q "
        "WHERE jobs.id = q.id RETURNING jobs.*",
        "DELETE FROM jobs WHERE id <= 5 * (:n + 1)",
    ]
    profile = watched(programs, LABELS, turn, TURNS // 5)
    assert heads(profile) == [("update", "jobs_fetch", "state = 'available'", 5)]
    check_played(programs, profile)


@pytest.mark.parametrize(
    ("order", "why"),
    [
        ("priority DESC, id", "their order descends"),
        ("note, id", "no index has their order"),
        ("priority + 0, id", "their order is that of an expression"),
    ],
)
def test_a_queue_that_no_profile_has(programs: ServerPrograms, order: str, why: str) -> None:
    """Rows go by age as they did, and the observation says why."""
    ddl = STATES.replace("(note) SELECT", "(priority, note) SELECT i % 3, i ||")
    take = TAKE.format(where="WHERE state = 3", order=order, limit=1)
    turn = [
        "INSERT INTO jobs (note) VALUES (repeat('n', 60))",
        f"UPDATE jobs SET state = 4 WHERE id = ({take})",
        "DELETE FROM jobs WHERE state = 4",
    ]
    profile = watched(programs, ddl, turn, 100)
    assert heads(profile) == []
    assert why in _assumed(profile)
