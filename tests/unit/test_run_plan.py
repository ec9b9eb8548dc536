"""What a server's run tells the twin, as each run of it takes it."""

from __future__ import annotations

from pgheadroom.predict import Given
from pgheadroom.predict.run_plan import events_of


def test_when_a_vacuum_began_and_ended_is_drawn() -> None:
    """Within what is known of both; every second seed has it at once, where it began."""
    given = Given(
        events=((0.45, "autoanalyze", "jobs"),), vacuums=(((0.4, 0.41), (0.44, 0.46), "jobs"),)
    )
    drawn = [events_of(given, seed) or () for seed in range(8)]
    began = [events[0][0] for events in drawn]
    assert len(set(began)) == 8
    assert all(0.4 <= at <= 0.41 for at in began)
    for seed, events in enumerate(drawn):
        ((ended, _, _),) = (event for event in events if event[1] == "autovacuum")
        assert ended == began[seed] if seed % 2 else 0.44 <= ended <= 0.46
        assert [event[0] for event in events] == sorted(event[0] for event in events)
    assert events_of(Given()) is None
    assert events_of(Given(events=())) == ()
