"""Deadlocks of a run, as the server's log tells of them: counted, and too many end it."""

from __future__ import annotations

from pathlib import Path

import pytest

from pgheadroom.errors import MeasurementInvalid
from pgheadroom.play import deadlocks
from pgheadroom.play.deadlocks import FEW, Deadlocks

FOUND = "2026-11-23 05:40:58.860 UTC [8314] ERROR:  deadlock detected\n"
ELSE = "2026-11-23 05:40:58.860 UTC [8314] LOG:  checkpoint starting: time\n"


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def monotonic(self) -> float:
        return self.now_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(deadlocks, "time", made)
    return made


def _append(log: Path, text: str) -> None:
    with log.open("a") as file:
        file.write(text)


@pytest.mark.usefixtures("clock")
def test_only_those_of_the_run_count(tmp_path: Path) -> None:
    """What was in the log before does not; a line counts once, and when it is whole."""
    log = tmp_path / "server.log"
    log.write_text(FOUND)
    found = Deadlocks(log)
    found.look()
    assert found.count == 0
    _append(log, ELSE + FOUND + FOUND[:-10])
    found.look()
    assert found.count == 1
    _append(log, FOUND[-10:])
    found.look()
    found.look()
    assert found.count == 2


def test_those_that_follow_each_other_end_the_run(tmp_path: Path, clock: Clock) -> None:
    """A few are borne however fast they come; later one in five seconds is."""
    log = tmp_path / "server.log"
    log.write_text("")
    found = Deadlocks(log)
    _append(log, FOUND * FEW)
    clock.now_s += 1
    found.step()
    assert found.count == FEW
    _append(log, FOUND)
    clock.now_s += 5 * (FEW + 1)
    found.step()
    _append(log, FOUND * FEW)
    clock.now_s += 10
    with pytest.raises(MeasurementInvalid, match="41 deadlocks in 116 s, each after deadlock_time"):
        found.step()


def test_the_log_is_looked_at_now_and_then(tmp_path: Path, clock: Clock) -> None:
    """A step between two looks reads nothing."""
    log = tmp_path / "server.log"
    log.write_text("")
    found = Deadlocks(log)
    _append(log, FOUND)
    clock.now_s += 0.1
    found.step()
    assert found.count == 0
    clock.now_s += 1
    found.step()
    assert found.count == 1
