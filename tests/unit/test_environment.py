"""The environment of a run: what all its trials had alike, and what each had otherwise."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

from pgheadroom.forms import read, unframed
from pgheadroom.lab import guards
from pgheadroom.lab.environment_form import (
    Environment,
    Machine,
    ServerFound,
    WorkerMachine,
    joined,
    with_worker,
)

MACHINE = Machine(
    kernel=None,
    cpu="x",
    cores=2,
    memory_bytes=None,
    filesystem=None,
    disk_syncs_per_s=None,
    load_average_1min=None,
    python="3.11",
    tool_version="0",
)


def _trial(**settings: str) -> ServerFound:
    build = {"block_size": "8192", "debug_assertions": "off"}
    return ServerFound(server_version="PostgreSQL 18.4", settings=settings, build=build)


def _run(first: ServerFound) -> Environment:
    return Environment.of(first, MACHINE, server="18.4", command="pgheadroom lab run x")


def test_settings_that_differ_between_trials_are_no_longer_the_runs() -> None:
    """
    What one trial had is not what the run had: values are listed in the order of the trials.

    A trial that leaves a setting alone has the server's default, which is a value like another.
    """
    first = _run(_trial(jit="off", shared_buffers="16MB", work_mem="1"))
    trials = [
        _trial(jit="off", shared_buffers="64MB", work_mem="1"),
        _trial(jit="off", shared_buffers="16MB", debug_io_direct="data", work_mem="1"),
        _trial(jit="off", shared_buffers="8MB"),
    ]
    found = reduce(joined, trials, first)
    assert found.settings == {"jit": "off"}
    assert found.settings_that_vary == {
        "debug_io_direct": ("default", "data"),
        "shared_buffers": ("16MB", "64MB", "8MB"),
        "work_mem": ("1", "default"),
    }
    assert (found.cpu, found.build) == ("x", first.build)


def test_equal_trials_leave_the_environment_as_it_is() -> None:
    """Nothing varies, so nothing is said to; a further trial changes no file."""
    first = _run(_trial(jit="off"))
    assert joined(first, _trial(jit="off")) == first
    varied = joined(first, _trial(jit="on"))
    assert joined(varied, _trial(jit="off")) == varied != first


def test_a_setting_that_changes_within_trials_stays_varying() -> None:
    """Fsync is off and on in each trial: the next one adds no value, and nothing calls it off."""
    timed = replace(_trial(jit="off"), settings_that_vary={"fsync": ("off", "on")}, fsync="said")
    assert joined(_run(timed), timed) == _run(timed)
    found = joined(_run(_trial(jit="off", fsync="off")), timed)
    assert found.settings_that_vary == {"fsync": ("off", "on")}
    assert (found.settings, found.fsync) == ({"jit": "off"}, "said")


def test_checksums_and_assertions_of_several_servers_vary_too() -> None:
    """What is fixed at initdb or build is a setting of each cluster; assertions are still named."""
    other = replace(_trial(), build={"block_size": "8192", "debug_assertions": "on"})
    found = joined(_run(_trial()), other)
    assert found.build == {"block_size": "8192"}
    assert found.settings_that_vary == {"debug_assertions": ("off", "on")}
    (warning,) = guards.assertions(found)
    assert "One of the servers" in warning


def test_what_else_a_record_says_of_its_run_stays_there() -> None:
    """
    A run goes on in a record of a later version, or one that a person has written notes into.

    What a trial changes is changed where it stands; what nothing varies in stays away.
    """
    written = {
        "schema_version": 1,
        "kind": "lab_environment",
        "server": "18.4",
        "room": "cold",
        "settings": {"jit": "off", "work_mem": "1"},
        "cores": 2,
    }
    known = read(Environment, written, exact=True)
    found = joined(known, _trial(jit="on", work_mem="1"))
    expected = {**written, "server_version": "PostgreSQL 18.4", "settings": {"work_mem": "1"}}
    varying = {"block_size": ["default", "8192"], "debug_assertions": ["default", "off"]}
    expected |= {"build": {}, "settings_that_vary": varying | {"jit": ["off", "on"]}}
    assert found == expected
    assert list(found)[:6] == list(written), "in the order of the file"


def test_workers_of_a_cluster_are_named_with_their_machines() -> None:
    """What they have alike is the run's, anything else stands with each; a file keeps it."""
    small = WorkerMachine(label="red", host="h1", machine=MACHINE)
    large = WorkerMachine(label="blue", host="h2", machine=replace(MACHINE, cores=64))
    found = with_worker(_run(_trial(jit="off")), "w1", small)
    assert (found.cores, found.workers) == (2, {"w1": small})
    assert with_worker(found, "w1", small) == found
    both = with_worker(found, "w2", large)
    assert (both.cpu, both.cores, both.workers) == ("x", None, {"w1": small, "w2": large})
    again = read(Environment, unframed(both.to_json()), exact=True)
    assert again.workers == both.workers
    assert with_worker(again, "w3", small).workers == {"w1": small, "w2": large, "w3": small}


def test_workers_whose_times_say_less_are_warned_of() -> None:
    """Unlike ones of one label, unlike labels, two on one host; of others nothing is said."""
    other = replace(MACHINE, cpu="y")

    def warned(*workers: tuple[str, str, Machine]) -> list[str]:
        named = {
            f"w{number}": WorkerMachine(label=label, host=host, machine=machine)
            for number, (label, host, machine) in enumerate(workers)
        }
        return guards.several_machines(replace(_run(_trial()), workers=named))

    assert guards.several_machines(_run(_trial())) == []
    assert warned(("red", "h1", MACHINE), ("red", "h2", MACHINE)) == []
    (said,) = warned(("red", "h1", MACHINE), ("red", "h2", other))
    assert "label red are unlike (cpu x, y): trials of a block ran on either" in said
    (said,) = warned(("red", "h1", MACHINE), ("blue", "h2", other))
    assert "labels red, blue are unlike (cpu x, y): ratios within blocks stand" in said
    (said,) = warned(("red", "h1", MACHINE), ("red", "h1", MACHINE))
    assert said.startswith("Workers w0, w1 were on one host")
