"""A table that does not fit is refused beforehand: the process was aborted for want of memory."""

from __future__ import annotations

import pytest

from pgheadroom.errors import TwinError
from pgheadroom.predict import memory, predict
from pgheadroom.profile import Profile, parse_profile


def pgbench(scale: int, clients: int = 1) -> Profile:
    """Pgbench's own tables."""
    return parse_profile(
        {
            "schema_version": 1,
            "server": {"version": "18.4"},
            "pgbench": {"builtin": "simple-update", "scale": scale},
            "run": {"operations": 100, "clients": clients},
        }
    )


def test_what_does_not_fit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """With what would; nothing is simulated."""
    monkeypatch.setattr(memory, "available_bytes", lambda: 10**9)
    wanted = r"scale 500 needs about 11\.2 GiB.*at most scale 37 here"
    with pytest.raises(TwinError, match=wanted) as told:
        predict(pgbench(500))
    assert told.value.exit_code == 5
    monkeypatch.setattr(memory.os, "sched_getaffinity", lambda _: {0, 1})
    with pytest.raises(TwinError, match=r"2 runs at once.*at most scale 18 here"):
        predict(pgbench(20, clients=2))


def test_what_fits_is_played(monkeypatch: pytest.MonkeyPatch) -> None:
    """Exactly so much is enough; and where nobody says what is free, nothing is refused."""
    monkeypatch.setattr(memory, "available_bytes", lambda: 27_000_000)
    assert predict(pgbench(1)).cells[0].predicted is not None
    monkeypatch.setattr(memory, "available_bytes", lambda: None)
    assert predict(pgbench(1)).cells[0].predicted is not None


def test_this_machine_says_what_is_available() -> None:
    """From the kernel, and not more than the machine has."""
    found = memory.available_bytes()
    assert found is not None
    assert 0 < found < 2**50
