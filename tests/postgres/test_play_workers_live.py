"""
What the log tells of autovacuum's workers, beside what the server itself shows meanwhile.

A session in another database asks pg_stat_activity again and again for a worker's snapshot.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import pytest

from pgheadroom.play import play
from pgheadroom.play.run import DATABASE
from pgheadroom.play.workers import Hold, read_holds
from pgheadroom.profile import parse_profile
from pgheadroom.servers import ServerPrograms

if TYPE_CHECKING:
    from pgheadroom.servers import Cluster

pytestmark = pytest.mark.usefixtures("run_parent")

SEEN = 3
"""Looks that found a snapshot are enough."""
WITHIN_S = 120.0
"""A worker comes each second, so this is met however busy the machine is."""

PROFILE = {
    "schema_version": 1,
    "server": {
        "autovacuum": True,
        "autovacuum_naptime_s": 1,
        # Nothing is ever vacuumed: VACUUM shows a snapshot too, which holds nobody up.
        "settings": {
            "autovacuum_vacuum_threshold": "100000000",
            "autovacuum_vacuum_insert_threshold": "-1",
            "autovacuum_analyze_threshold": "100000000",
        },
    },
    "table": [
        {
            "name": "t",
            "rows": 100,
            "columns": [{"name": "id", "type": "int4"}, {"name": "n", "type": "int4"}],
            "indexes": [{"name": "t_pkey", "columns": ["id"], "unique": True}],
        }
    ],
    "operation": [{"table": "t", "kind": "update", "sets": ["n"]}],
    "run": {"operations": 10},
}
LOOK = f"""
    SELECT 1 FROM pg_stat_activity
    WHERE backend_type = 'autovacuum worker' AND datname = '{DATABASE}'
      AND backend_xmin IS NOT NULL
"""


class _Looks:
    """A run of updates, and looks at workers beside them, in epoch seconds from and to."""

    def __init__(self) -> None:
        self.found: list[tuple[float, float]] = []
        self.holds: tuple[Hold, ...] = ()

    def __call__(self, cluster: Cluster) -> int:
        """Update until enough was seen; how often."""
        watch = threading.Thread(target=self._watch, args=(cluster,))
        update = b"UPDATE t SET n = n + 1 WHERE id = 1"
        # One before the first look and one behind the last, so that what is seen lies in the run.
        updates = 2
        with cluster.connect(DATABASE) as connection:
            connection.execute(update)
            watch.start()
            while watch.is_alive():
                connection.execute(update)
                updates += 1
            watch.join()
            connection.execute(update)
        deadline = time.monotonic() + WITHIN_S
        while time.monotonic() < deadline and not self.are_told():
            time.sleep(0.1)  # the last worker has still to say for which database it is
            self.holds = read_holds(cluster.log_path, 0, 0.0, DATABASE)
        return updates

    def are_told(self) -> bool:
        """Whether the log has a snapshot at each look that found one."""
        return all(
            any(hold.began[0] <= ended_s and began_s <= hold.ended[1] for hold in self.holds)
            for began_s, ended_s in self.found
        )

    def _watch(self, cluster: Cluster) -> None:
        deadline = time.monotonic() + WITHIN_S
        with cluster.connect() as connection:
            while len(self.found) < SEEN and time.monotonic() < deadline:
                began_s = time.time()
                seen = connection.execute(LOOK).fetchone()
                if seen is not None:
                    self.found.append((began_s, time.time()))


def test_workers_hold_what_their_log_tells(programs: ServerPrograms) -> None:
    """Whenever a worker shows a snapshot, the log has it; a run counts them in transactions."""
    looks = _Looks()
    played = play(parse_profile(PROFILE), server=str(programs.bin_dir), work=looks)
    assert len(looks.found) == SEEN
    for began_s, ended_s in looks.found:
        assert any(hold.began[0] <= ended_s and began_s <= hold.ended[1] for hold in looks.holds), (
            began_s,
            ended_s,
            looks.holds,
        )
    assert played.holds
    for hold in played.holds:
        assert 0 <= hold.began[0] <= hold.began[1] <= 1
        assert hold.began[0] <= hold.ended[1] <= 1
