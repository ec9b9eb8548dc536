"""Histories, most of several sessions, played again on a server: as they were recorded."""

from __future__ import annotations

import json

import pytest
import record_scenarios
from scenario_script import Script
from scenarios import read_all

from pgheadroom.play import play
from pgheadroom.servers import ServerPrograms

pytestmark = [pytest.mark.contrib, pytest.mark.usefixtures("run_parent")]


@pytest.mark.parametrize(
    "name",
    [
        "deadlock-two-rows",
        "multixact-three-sharers",
        "prune-recently-dead",
        "savepoint-frees-the-waiter",
        "wait-for-delete",
    ],
)
def test_a_history_is_as_it_was_recorded(name: str, programs: ServerPrograms) -> None:
    """Rows, failures, who waited for whom, counters, WAL and places, whatever the machine does."""
    expected = record_scenarios.EXPECTED / str(programs.version) / f"scenario-{name}.json"
    if not expected.exists():
        pytest.skip(f"nothing is recorded on {programs.version}")
    scenario = next(read_all([name]))
    assert scenario.steps is not None
    script = Script(scenario.profile, scenario.steps)
    server = str(programs.bin_dir)
    played = play(scenario.profile, server=server, with_places=True, work=script)
    again = json.loads(json.dumps(record_scenarios.content_of(scenario, played, script)))
    recorded = json.loads(expected.read_text(encoding="utf-8"))
    for content in (again, recorded):
        del content["origin"]
        del content["profile"]["server"]["version"]
    assert again == recorded
