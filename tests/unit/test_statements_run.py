"""
When statements of a session ran, by the lines that it has the server log.
"""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from pgheadroom.play.ended import Ended
from pgheadroom.play.statements_run import ran_in

# As 18.4 wrote them.
LOG = """\
2026-11-27 22:30:31.123 UTC [4711] LOG:  duration: 20.250 ms  statement: TRUNCATE "t"
2026-11-27 22:30:31.124 UTC [4712] LOG:  duration: 0.401 ms  statement: SELECT 1
2026-11-27 22:30:31.200 UTC [4711] LOG:  checkpoint starting: immediate force wait
2026-11-27 22:30:31.300 UTC [4711] LOG:  duration: 1.500 ms  execute <unnamed>: SELECT c.oid
\tFROM pg_class c
2026-11-27 22:30:31.400 UTC [4711] ERROR:  duration: 1.500 ms  statement: of no line of ours
"""
END_S = datetime(2026, 11, 27, 22, 30, 31, 123_000, tzinfo=UTC).timestamp()


def test_lines_of_these_backends_alone_are_read() -> None:
    """And of a statement of several lines the first."""
    truncate, select = ran_in(LOG.splitlines(), {4711})
    assert (truncate.backend_pid, truncate.sql) == (4711, 'TRUNCATE "t"')
    assert select.sql == "SELECT c.oid"
    assert ran_in(LOG.splitlines(), set()) == ()


def test_times_are_known_to_a_millisecond() -> None:
    """The line is written when the statement is done, its time cut off."""
    (truncate, _) = ran_in(LOG.splitlines(), {4711})
    low, high = truncate.ended_s
    assert low == END_S
    assert abs(high - low - 0.001) < 1e-6
    for began, ended in zip(truncate.began_s, truncate.ended_s, strict=True):
        assert abs(ended - began - 0.02025) < 1e-6


@given(st.lists(st.floats(0, 1), min_size=1))
def test_shares_are_those_of_the_transactions_that_had_ended(ends_s: list[float]) -> None:
    """Who ran from before all to behind all has them all, and nobody ends before it began."""
    (truncate, _) = ran_in(LOG.splitlines(), {4711})
    (began, ended) = truncate.shares(Ended([END_S - 0.5 + end_s for end_s in ends_s]))
    assert 0 <= began[0] <= began[1] <= 1
    assert began[0] <= ended[0] <= ended[1] <= 1
