"""Guards: each warns of what it is there for, and is silent otherwise."""

from __future__ import annotations

from dataclasses import replace

from pgheadroom.lab import guards
from pgheadroom.lab.environment_form import Environment
from pgheadroom.lab.record import TrialSample


def _sample(**measures: float | None) -> TrialSample:
    return TrialSample(
        trial=str(measures),
        cell={},
        repetition=1,
        arm="measured",
        started_at="2026-11-20T00:00:00+00:00",
        duration_s=1,
        measures=measures,
    )


def test_a_busy_host_is_named_with_how_often() -> None:
    """One trial in ten is chance, a fifth of them is a machine that is used by others."""
    quiet = [_sample(host_busy_frac=0.01)] * 9
    assert guards.quiet_host([*quiet, _sample(host_busy_frac=0.9)]) == []
    (warning,) = guards.quiet_host([*quiet[:3], _sample(host_busy_frac=0.9)])
    assert "before 1 of 4 trials" in warning
    assert guards.quiet_host([_sample(host_busy_frac=None)]) == []


def test_the_probe_reads_a_share() -> None:
    """The kernel's ticks give a share of all processors, never more."""
    share = guards.host_busy_frac(0.05)
    assert share is None or 0 <= share <= 1


def test_assertions_are_named() -> None:
    """A build with assertions is another program where times are concerned."""
    found = Environment(server="18.4")
    assert guards.assertions(replace(found, build={"debug_assertions": "off"})) == []
    assert guards.assertions(found) == []
    assert len(guards.assertions(replace(found, build={"debug_assertions": "on"}))) == 1


def test_windows_need_length_transactions_and_a_checkpoint() -> None:
    """The three conditions of a throughput that can be believed, each told apart."""
    assert guards.long_enough([_sample(tps=None)], 8) == []
    assert guards.long_enough([_sample(tps=2000.0, checkpoints=1)], 60) == []
    assert len(guards.long_enough([_sample(tps=2000.0, checkpoints=0)], 60)) == 1
    (warning,) = guards.long_enough([_sample(tps=100.0, checkpoints=1)], 60)
    assert "6,000 transactions" in warning
    assert len(guards.long_enough([_sample(tps=100.0, checkpoints=0)], 8)) == 3


def test_more_clients_than_branches_are_named() -> None:
    """Clients queue for the rows of pgbench_branches, which are as many as the scale."""
    assert guards.clients_within_scale(4, 4) == []
    assert "locks of pgbench_branches" in guards.clients_within_scale(4, 8)[0]


def test_a_driver_at_its_limit_is_named() -> None:
    """Each thread of pgbench can use one core."""
    assert guards.driver(10.0, 8.0, 2) == []
    assert "pgbench" in guards.driver(15.0, 8.0, 2)[0]


def test_only_long_windows_are_judged_steady() -> None:
    """Eight seconds cannot tell a trend from noise; a minute that rises all the time can."""
    rising = [100.0 + 10 * second for second in range(80)]
    assert guards.steady(rising[:20]) == []
    assert len(guards.steady(rising)) == 1
    assert guards.steady([1000.0 + second % 3 for second in range(80)]) == []
