"""Databases to observe: a known shape, a known number of changes inside the interval."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from footprint import DEADLINE_S

from pgheadroom.advise.runs import Runner, ScenarioPiece
from pgheadroom.advise.scenario import Scenario
from pgheadroom.observe import find_classes, observe
from pgheadroom.profile import Profile
from pgheadroom.servers import Cluster
from pgheadroom.sources.observing import ObservationRequest, watch
from pgheadroom.sources.recording import Recording
from pgheadroom.sources.session import read_only_session

DDL = """
CREATE TABLE jobs (id int8 PRIMARY KEY, owner int4, state int2, payload text, touched timestamptz)
    WITH (fillfactor = 80, autovacuum_enabled = off);
CREATE INDEX jobs_owner ON jobs (owner) INCLUDE (state) WHERE touched > '2001-02-03';
CREATE INDEX jobs_lower ON jobs (lower(payload));
CREATE INDEX jobs_brin ON jobs USING brin (touched);
INSERT INTO jobs SELECT i, i % 50, 0, repeat('p', 40 + (i % 21)::int), '2002-01-01'
    FROM generate_series(1, 5000) i;
CREATE TABLE quiet (id int4 PRIMARY KEY, note text);
INSERT INTO quiet SELECT i, CASE WHEN i % 4 > 0 THEN repeat('n', 30) END
    FROM generate_series(1, 400) i;
CREATE TABLE parts (id int4, region int4, v int4, PRIMARY KEY (region, id))
    PARTITION BY LIST (region);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES IN (1) WITH (autovacuum_enabled = off);
CREATE TABLE parts_2 (v int4, region int4 NOT NULL, id int4 NOT NULL);
ALTER TABLE parts ATTACH PARTITION parts_2 FOR VALUES IN (2);
INSERT INTO parts SELECT i, 1 + i % 2, 0 FROM generate_series(1, 1000) i;
VACUUM ANALYZE;
"""


def conninfo(cluster: Cluster, user: str = "postgres", dbname: str = "postgres") -> str:
    """As a user would write it."""
    env = cluster.client_env()
    return f"host={env['PGHOST']} port={env['PGPORT']} user={user} dbname={dbname}"


@contextmanager
def session(cluster: Cluster) -> Iterator[psycopg.Connection[Any]]:
    """A session whose counters are whole when it is closed; its server process ends later."""
    with cluster.connect(prepare_threshold=None) as connection:
        yield connection
        connection.execute("SELECT pg_stat_force_next_flush()")


def load(cluster: Cluster, ddl: str = DDL) -> None:
    """Run the statements, each by itself."""
    with session(cluster) as connection:
        for statement in filter(str.strip, ddl.split(";")):
            connection.execute(statement.encode())


def wait_until(cluster: Cluster, query: str, awaited: str) -> None:
    """Until a query of one truth value, each time in a new session, is true."""
    deadline = time.monotonic() + DEADLINE_S
    while True:
        with cluster.connect() as connection:
            if connection.execute(query.encode()).fetchone() == (True,):
                return
        assert time.monotonic() < deadline, f"not within {DEADLINE_S:.0f} s: {awaited}"
        time.sleep(0.02)


def reload(cluster: Cluster) -> None:
    """Have the server read its files anew; who connects then finds them in force."""
    with cluster.connect() as connection:
        (before,) = connection.execute("SELECT pg_conf_load_time()::text").fetchall()[0]
        connection.execute("SELECT pg_reload_conf()")
    wait_until(cluster, f"SELECT pg_conf_load_time() > '{before}'", "the files are read")


def change(cluster: Cluster) -> None:
    """120 HOT and 30 indexed updates, 20 upserts, 40 inserts, 10 deletes; 60 of a partition."""
    with session(cluster) as connection:
        for row in range(1, 121):
            connection.execute("UPDATE jobs SET state = state WHERE id = %s", (row * 40,))
        for row in range(1, 31):
            connection.execute(
                "UPDATE jobs SET owner = owner + 1, touched = now() WHERE id = %s", (row * 40,)
            )
        for row in range(1, 41):
            connection.execute("INSERT INTO jobs VALUES (%s, 1, 1, 'p', now())", (10_000 + row,))
        connection.execute("DELETE FROM jobs WHERE id > 4990 AND id <= 5000")
        connection.execute("UPDATE parts SET v = v + 1 WHERE region = 2 AND id <= 120")


def watched(
    cluster: Cluster,
    work: Callable[[], None] = lambda: None,
    *,
    user: str = "postgres",
    dbname: str = "postgres",
    samples: bool = True,
) -> Recording:
    """Watch for 0.4 s; the work is done in their middle, and its counters are whole then."""
    done: list[str] = []

    def at_tick(text: str) -> None:
        if not done:
            work()
        done.append(text)

    with read_only_session(conninfo(cluster, user, dbname), {}) as connection:
        request = ObservationRequest(duration_s=0.4, ticks=2, samples=samples)
        return watch(connection, request, at_tick)


def profile_of(recording: Recording, **options: Any) -> Profile:
    """The profile, unmasked if not said otherwise."""
    chosen: dict[str, Any] = {"mask": False, "sampled": True} | options
    return observe(recording, find_classes(recording, [], []), **chosen)


def facts(profile: Profile, table: str) -> Any:
    """What was observed of a table."""
    return profile.table(table).observed


def start_with_contrib(cluster: Cluster, settings: dict[str, str]) -> bool:
    """Start with pg_stat_statements if the server has it; whether it has."""
    cluster.start(settings)
    with cluster.connect() as connection:
        found = connection.execute(
            "SELECT count(*) FROM pg_available_extensions WHERE name = 'pg_stat_statements'"
        ).fetchone()
    if found is None or not found[0]:
        return False
    cluster.stop()
    cluster.start(settings | {"shared_preload_libraries": "pg_stat_statements"})
    return True


def check_steady(scenario: Scenario, profile: Profile, rows: int) -> None:
    """As the twin plays it, each turn finds its row, and what comes in goes out."""
    with Runner() as runner:
        piece = ScenarioPiece(
            scenario=scenario, version=profile.server.version, fillfactor=100, seed=0
        )
        (played,) = runner.play([piece])
    assert all(without == 0 for _, without in played.simulated.turns)
    inserted, deleted = (sum(played.columns[f"n_tup_{kind}"]) for kind in ("ins", "del"))
    assert inserted == deleted > rows
