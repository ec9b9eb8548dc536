"""Ages of updates on real servers: a queue whose every write is known, and its profile played."""

from __future__ import annotations

import observed
import pytest

from pgheadroom.advise.knobs import Knobs
from pgheadroom.advise.runs import Runner, ScenarioPiece
from pgheadroom.advise.scenario import make_scenario
from pgheadroom.servers import Cluster, Host, ServerPrograms

pytestmark = [pytest.mark.contrib, pytest.mark.usefixtures("run_parent")]

ROWS, AGE, TURNS = 1500, 400, 1000
QUEUE = f"""
CREATE TABLE queue (id int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY, state int4, note text);
INSERT INTO queue (state, note) SELECT 0, repeat('n', 60) FROM generate_series(1, {ROWS});
CREATE TABLE spread (place int4 PRIMARY KEY, state int4);
INSERT INTO spread SELECT i * 7919 % 10007, 0 FROM generate_series(1, {ROWS}) i;
VACUUM ANALYZE
"""
TURN = f"""
DO $$ BEGIN
  FOR i IN 1..{TURNS} LOOP
    INSERT INTO queue (state, note) VALUES (0, repeat('n', 60)); COMMIT;
    UPDATE queue SET state = 1 WHERE id = {ROWS} + i - {AGE}; COMMIT;
    DELETE FROM queue WHERE id = i; COMMIT;
    INSERT INTO spread VALUES (({ROWS} + i) * 7919 % 10007, 0); COMMIT;
    UPDATE spread SET state = 1 WHERE place = ({ROWS} + i - {AGE}) * 7919 % 10007; COMMIT;
  END LOOP;
END $$
"""


def run_turns(cluster: Cluster) -> None:
    """Each write a transaction of its own."""
    with observed.session(cluster) as connection:
        connection.execute(TURN.encode())


def test_a_queue_is_observed_and_played_in_its_steady_state(programs: ServerPrograms) -> None:
    """Rows are met at their age, none is missed, and the queue is as long at the end."""
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off", "fsync": "off"})
        observed.load(cluster, QUEUE)
        recording = observed.watched(cluster, lambda: run_turns(cluster))
    assert recording.failures() == ()
    profile = observed.profile_of(recording)
    ages = observed.facts(profile, "queue")["updates"]["ages"]
    assert ages["evidence"] == "sampled"
    assert ages["rows"][2] == pytest.approx(AGE, rel=0.05)
    # Keys in no order tell no age, and none is made up.
    unknown = observed.facts(profile, "spread")["updates"]["ages"]
    assert unknown["evidence"] == "unknown"
    assert "rows" not in unknown
    scenario = make_scenario(profile, profile.table("queue"), Knobs())
    assert scenario is not None
    insert, update, delete = scenario.profile.workload.operations
    assert (insert.transaction, update.transaction) == (delete.transaction,) * 2
    assert update.pick.distribution == "age"
    assert delete.pick.distribution == "oldest"
    observed.check_steady(scenario, profile, ROWS)


PAID, SENT, RECEIVED = 20, 300, 900
ORDERS = f"""
CREATE EXTENSION pg_stat_statements;
CREATE TABLE orders (id int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY, status text NOT NULL,
    paid_at timestamptz, sent_at timestamptz, parcel text, received_at timestamptz, note text);
INSERT INTO orders (status, paid_at, sent_at, parcel, received_at, note)
SELECT CASE WHEN i <= {2 * ROWS - RECEIVED} THEN 'received' WHEN i <= {2 * ROWS - SENT} THEN 'sent'
            WHEN i <= {2 * ROWS - PAID} THEN 'paid' ELSE 'new' END,
       CASE WHEN i <= {2 * ROWS - PAID} THEN now() END,
       CASE WHEN i <= {2 * ROWS - SENT} THEN now() END,
       CASE WHEN i <= {2 * ROWS - SENT} THEN 'JD' || 1000000000000 + i END,
       CASE WHEN i <= {2 * ROWS - RECEIVED} THEN now() END,
       CASE WHEN i % 5 = 0 THEN 'leave at the door' END
FROM generate_series(1, {2 * ROWS}) i;
VACUUM ANALYZE
"""
LIVES = f"""
DO $$ DECLARE n int8; BEGIN
  FOR i IN 1..{TURNS} LOOP
    INSERT INTO orders (status, note)
        VALUES ('new', CASE WHEN i % 5 = 0 THEN 'leave at the door' END) RETURNING id INTO n;
    COMMIT;
    UPDATE orders SET status = 'received', received_at = now() WHERE id = n - {RECEIVED}; COMMIT;
    UPDATE orders SET status = 'sent', sent_at = now(), parcel = 'JD' || 1000000000000 + n
        WHERE id = n - {SENT}; COMMIT;
    UPDATE orders SET status = 'paid', paid_at = now() WHERE id = n - {PAID}; COMMIT;
  END LOOP;
END $$
"""


def test_what_a_rows_updates_fill_is_observed_and_played(programs: ServerPrograms) -> None:
    """
    An order is paid, sent and received: each update has its age and its growth, by sampled rows.

    Played at their mean length, and at whichever age, rows of such a table would hardly ever leave
    their page. The order in which statements are listed says nothing.
    """
    with Host(programs) as host:
        cluster = host.cluster("main")
        settings = {"autovacuum": "off", "fsync": "off", "pg_stat_statements.track": "all"}
        if not observed.start_with_contrib(cluster, settings):
            pytest.skip(f"{programs.version} has no pg_stat_statements")
        observed.load(cluster, ORDERS)

        def lives() -> None:
            with observed.session(cluster) as connection:
                connection.execute(LIVES.encode())

        lives()
        recording = observed.watched(cluster, lives)
    profile = observed.profile_of(recording)
    updates = observed.facts(profile, "orders")["updates"]
    assert [fill["columns"] for fill in updates["fills"]] == [
        ["paid_at"],
        ["sent_at", "parcel"],
        ["received_at"],
    ]
    for fill, age in zip(updates["fills"], (PAID, SENT, RECEIVED), strict=True):
        assert fill["rows"][1] == pytest.approx(age, rel=0.05, abs=3)
    scenario = make_scenario(profile, profile.table("orders"), Knobs())
    assert scenario is not None
    assert any("until the updates" in said for said in scenario.assumed)
    counters = observed.facts(profile, "orders")["counters"]
    measured = counters["n_tup_hot_upd"] / counters["n_tup_upd"]
    with Runner() as runner:
        piece = ScenarioPiece(
            scenario=scenario, version=profile.server.version, fillfactor=100, seed=0
        )
        played = runner.play([piece])[0].outcome().hot_frac
    print(measured, played, updates["fills"])
    assert played == pytest.approx(measured, abs=0.05)
