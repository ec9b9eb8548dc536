"""Updates that statements make inside themselves: functions, triggers and foreign keys."""

from __future__ import annotations

import re

import observed
import pytest

from pgheadroom.profile import Profile
from pgheadroom.servers import Cluster, Host, ServerPrograms

pytestmark = pytest.mark.usefixtures("run_parent")

DDL = """
CREATE TABLE accounts (id int PRIMARY KEY, balance int NOT NULL DEFAULT 0);
CREATE TABLE tallies (id int PRIMARY KEY, n int NOT NULL DEFAULT 0);
CREATE TABLE owners (id int PRIMARY KEY);
CREATE TABLE pets (id int PRIMARY KEY, owner int REFERENCES owners ON DELETE SET NULL);
CREATE TABLE plain (id int PRIMARY KEY, n int NOT NULL DEFAULT 0);
CREATE TABLE viewed (id int PRIMARY KEY, n int NOT NULL DEFAULT 0);
CREATE TABLE watched (id int PRIMARY KEY, n int NOT NULL DEFAULT 0);
CREATE VIEW seen AS SELECT * FROM viewed;
CREATE TABLE "Odd one" (id int PRIMARY KEY, n int);
INSERT INTO accounts SELECT i FROM generate_series(1, 500) i;
INSERT INTO tallies SELECT i FROM generate_series(1, 5) i;
INSERT INTO owners SELECT i FROM generate_series(1, 200) i;
INSERT INTO pets SELECT i, i FROM generate_series(1, 200) i;
INSERT INTO plain SELECT i FROM generate_series(1, 500) i;
INSERT INTO viewed SELECT i FROM generate_series(1, 500) i;
INSERT INTO watched SELECT i FROM generate_series(1, 500) i;
INSERT INTO "Odd one" SELECT i FROM generate_series(1, 500) i;
CREATE EXTENSION pg_stat_statements;
VACUUM ANALYZE
"""
FUNCTIONS = """
CREATE SCHEMA api;
CREATE FUNCTION api.transfer(low int, high int) RETURNS void LANGUAGE sql
    AS 'UPDATE accounts SET balance = balance + 1 WHERE id BETWEEN low AND high';
CREATE FUNCTION watch() RETURNS void LANGUAGE sql
    BEGIN ATOMIC UPDATE watched SET n = n + 1; END;
CREATE PROCEDURE odd() LANGUAGE plpgsql AS $$BEGIN
    UPDATE public."Odd one" AS o SET n = 1;
END$$;
CREATE FUNCTION never_called() RETURNS void LANGUAGE sql
    AS 'UPDATE plain SET n = 0; UPDATE viewed SET n = 0';
CREATE FUNCTION tally() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN
    UPDATE tallies SET n = n + 1 WHERE id = 1; RETURN NULL;
END$$;
CREATE TRIGGER tally AFTER UPDATE ON plain FOR EACH ROW EXECUTE FUNCTION tally();
"""


def _work(cluster: Cluster) -> None:
    with observed.session(cluster) as connection:
        connection.execute("SELECT api.transfer(1, 400)")
        connection.execute("UPDATE accounts SET balance = 0 WHERE id <= 100")
        connection.execute("SELECT FROM watch()")
        connection.execute("CALL odd()")
        connection.execute("UPDATE plain SET n = n + 1 WHERE id <= 300")
        connection.execute("DELETE FROM owners WHERE id <= 150")
        connection.execute("UPDATE seen SET n = 2")


def _hints(profile: Profile) -> dict[str, str | None]:
    """What is said of each updated table, up to the setting."""
    found = {}
    for table in profile.tables:
        facts = observed.facts(profile, table.name)
        said = facts.updates.unattributed_hint
        if facts.counters.n_tup_upd:
            found[facts.name] = None if said is None else re.split(", (for|whose) ", said)[0]
    return found


@pytest.mark.contrib
def test_where_updates_may_be_that_no_source_knows(programs: ServerPrograms) -> None:
    """
    Of updates in functions it was said that no source knows them, and nothing of how to see them.

    It is said where a function that names the table is called, or a trigger calls it, or a foreign
    key sets columns; not of updates through a view, which another setting would not show.
    """
    with Host(programs) as host:
        cluster = host.cluster("main")
        if not observed.start_with_contrib(cluster, {"autovacuum": "off"}):
            pytest.skip(f"{programs} has no contrib modules")
        observed.load(cluster, DDL)
        with cluster.connect() as connection:
            connection.execute(FUNCTIONS.encode())
        recording = observed.watched(cluster, lambda: _work(cluster))
        unknown = "the updates that no source knows may be of "
        assert _hints(observed.profile_of(recording)) == {
            "accounts": unknown + "function transfer",
            "Odd one": unknown + "procedure odd",
            "tallies": unknown + "trigger function tally",
            "pets": unknown + "foreign key pets_owner_fkey",
            "watched": unknown + "function watch",
            "plain": None,
            "viewed": None,
        }
        masked = _hints(observed.profile_of(recording, mask=True))
        assert sorted(filter(None, masked.values())) == [
            unknown + said
            for said in (
                "a foreign key",
                *("a function", "a function"),
                "a procedure",
                "a trigger function",
            )
        ]
        (said,) = [
            observed.facts(observed.profile_of(recording), "accounts").updates.unattributed_hint
        ]
        assert said.endswith("pg_stat_statements.track = all would show it")
        with cluster.connect() as connection:
            connection.execute("ALTER SYSTEM SET pg_stat_statements.track = 'all'")
        observed.reload(cluster)
        profile = observed.profile_of(observed.watched(cluster, lambda: _work(cluster)))
    # A body that was parsed when it was made is counted under no setting.
    found = {name: said for name, said in _hints(profile).items() if said is not None}
    assert found == {"watched": unknown + "function watch"}
    lost = {n: observed.facts(profile, n).updates.unattributed_frac for n in ("watched", "tallies")}
    assert lost == {"watched": 1, "tallies": 0}
    updates = observed.facts(profile, "accounts").updates
    assert (updates.unattributed_frac, sum(c.rows for c in updates.classes)) == (0, 500)
