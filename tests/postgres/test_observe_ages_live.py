"""Ages of updates on real servers: a queue whose every write is known, and its profile played."""

from __future__ import annotations

import observed
import pytest

from pgheadroom.advise.runs import Piece, Runner
from pgheadroom.advise.scenario import Knobs, make_scenario
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
    with Runner() as runner:
        piece = Piece(scenario=scenario, version=profile.server.version, fillfactor=100, seed=0)
        (played,) = runner.play([piece])
    assert all(without == 0 for _, without in played.simulated.turns)
    inserted, deleted = (sum(played.columns[f"n_tup_{kind}"]) for kind in ("ins", "del"))
    assert inserted == deleted > ROWS
