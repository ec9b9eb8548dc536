"""The environment of a run: what all its trials had alike, and what each had otherwise."""

from __future__ import annotations

from functools import reduce
from typing import Any

from pgheadroom.lab import guards
from pgheadroom.lab.environment import joined


def _trial(**settings: str) -> dict[str, Any]:
    build = {"block_size": "8192", "debug_assertions": "off"}
    return {"server_version": "PostgreSQL 18.4", "settings": settings, "build": build}


def test_settings_that_differ_between_trials_are_no_longer_the_runs() -> None:
    """
    What one trial had is not what the run had: values are listed in the order of the trials.

    A trial that leaves a setting alone has the server's default, which is a value like another.
    """
    first = {"server": "18.4", "cpu": "x", **_trial(jit="off", shared_buffers="16MB", work_mem="1")}
    trials = [
        _trial(jit="off", shared_buffers="64MB", work_mem="1"),
        _trial(jit="off", shared_buffers="16MB", debug_io_direct="data", work_mem="1"),
        _trial(jit="off", shared_buffers="8MB"),
    ]
    found = reduce(joined, trials, first)
    assert found["settings"] == {"jit": "off"}
    assert found["settings_that_vary"] == {
        "debug_io_direct": ["default", "data"],
        "shared_buffers": ["16MB", "64MB", "8MB"],
        "work_mem": ["1", "default"],
    }
    assert (found["cpu"], found["build"]) == ("x", first["build"])


def test_equal_trials_leave_the_environment_as_it_is() -> None:
    """Nothing varies, so nothing is said to; a further trial changes no file."""
    first = {"server": "18.4", **_trial(jit="off")}
    assert joined(first, _trial(jit="off")) == first
    varied = joined(first, _trial(jit="on"))
    assert joined(varied, _trial(jit="off")) == varied


def test_a_setting_that_changes_within_trials_stays_varying() -> None:
    """Fsync is off and on in each trial: the next one adds no value, and nothing calls it off."""
    timed = {**_trial(jit="off"), "settings_that_vary": {"fsync": ["off", "on"]}, "fsync": "said"}
    assert joined(timed, timed) == timed
    found = joined(_trial(jit="off", fsync="off"), timed)
    assert found["settings_that_vary"] == {"fsync": ["off", "on"]}
    assert (found["settings"], found["fsync"]) == ({"jit": "off"}, "said")


def test_checksums_and_assertions_of_several_servers_vary_too() -> None:
    """What is fixed at initdb or build is a setting of each cluster; assertions are still named."""
    other = _trial()
    other["build"] = {"block_size": "8192", "debug_assertions": "on"}
    found = joined(_trial(), other)
    assert found["build"] == {"block_size": "8192"}
    assert found["settings_that_vary"] == {"debug_assertions": ["off", "on"]}
    (warning,) = guards.assertions(found)
    assert "One of the servers" in warning
