"""
Where a run took place, as its record keeps it: `environment.json`.

What describes a server and a machine is `environment.py`; this has the values and what is the same
in all trials of a run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from pgheadroom.forms import Filed, Kept, Text, changed, in_file, kept, read, unframed
from pgheadroom.lab.design import SCHEMA_VERSION
from pgheadroom.lab.result import Surroundings

AT_DEFAULT = "default"
"""Stands among the values that vary for a trial that leaves a setting at the server's default."""

HARDWARE = ("cpu", "cores", "memory_bytes", "filesystem")
"""Of a machine: what times may differ by."""

Settings = Mapping[str, str | None]
Varying = Mapping[str, tuple[str | None, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFound:
    """
    A trial's server: every setting that is not at its default, and how it was built.

    `fsync` says in words what it was where that changed within the trial.
    """

    server_version: str
    settings: Settings
    build: Settings
    settings_that_vary: Varying | None = None
    fsync: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """The machine of a run; what cannot be read is None, and nothing is guessed."""

    kernel: str | None
    cpu: str | None
    cores: int | None
    memory_bytes: int | None
    filesystem: str | None
    disk_syncs_per_s: float | None
    load_average_1min: float | None
    python: str
    tool_version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerMachine:
    """The machine of a cluster's worker, its host's name, and the label that it played under."""

    label: str
    host: str
    machine: Machine


@kept
class Environment(Kept, Filed):
    """
    Where a run took place: `environment.json`, with all that it says besides.

    `settings` and `build` hold what every trial had alike, `settings_that_vary` the values of each
    other setting. `merged_from` and `merged_machines` have the command and the machine of each
    record that this one was made of. `workers` has those of a cluster by their names, and of the
    machine there is what all of them have alike.
    """

    KIND = "lab_environment"
    VERSION = SCHEMA_VERSION

    server: Text
    command: str | None = None
    server_version: str | None = None
    settings: Settings | None = None
    build: Settings | None = None
    settings_that_vary: Varying | None = field(default=None, metadata=in_file(unless_none=True))
    fsync: str | None = field(default=None, metadata=in_file(unless_none=True))
    kernel: str | None = None
    cpu: str | None = None
    cores: int | None = None
    memory_bytes: int | None = None
    filesystem: str | None = None
    disk_syncs_per_s: float | None = None
    load_average_1min: float | None = None
    python: str | None = None
    tool_version: str | None = None
    merged_from: Settings | None = field(default=None, metadata=in_file(unless_none=True))
    merged_machines: Settings | None = field(default=None, metadata=in_file(unless_none=True))
    workers: Mapping[str, WorkerMachine] | None = field(
        default=None, metadata=in_file(unless_none=True)
    )

    @staticmethod
    def of(found: ServerFound, machine: Machine, *, server: str, command: str) -> Environment:
        """The environment of a run after its first trial."""
        return Environment(
            server=server,
            command=command,
            server_version=found.server_version,
            settings=found.settings,
            build=found.build,
            settings_that_vary=found.settings_that_vary,
            fsync=found.fsync,
            kernel=machine.kernel,
            cpu=machine.cpu,
            cores=machine.cores,
            memory_bytes=machine.memory_bytes,
            filesystem=machine.filesystem,
            disk_syncs_per_s=machine.disk_syncs_per_s,
            load_average_1min=machine.load_average_1min,
            python=machine.python,
            tool_version=machine.tool_version,
        )

    def surroundings(self) -> Surroundings:
        """The same as a result has it, which says server and command elsewhere."""
        elsewhere = ("command", "server")
        kept = {name: value for name, value in unframed(self).items() if name not in elsewhere}
        return read(Surroundings, kept, exact=True)

    def hardware(self) -> dict[str, str | int | None]:
        """What times of two runs may differ by."""
        return {name: getattr(self, name) for name in HARDWARE}


def joined(known: Environment, further: ServerFound) -> Environment:
    """
    The environment of a run after one more trial: what is the same in all, and what varies.

    Args:
        known: The environment so far; what it says besides the server's settings stays.
        further: The server of the trial.

    Returns:
        An environment whose `settings` and `build` hold what every trial so far has alike, and
        `settings_that_vary` all values of each other setting, in the order in which they came.
    """
    vary: dict[str, tuple[str | None, ...]] = {}
    for name in sorted({name for each in (known, further) for name in _names(each)}):
        values = tuple(dict.fromkeys([*values_of(known, name), *values_of(further, name)]))
        if len(values) > 1:
            vary[name] = values
    return changed(
        known,
        server_version=known.server_version or further.server_version,
        settings={name: item for name, item in (known.settings or {}).items() if name not in vary},
        build={name: item for name, item in (known.build or {}).items() if name not in vary},
        settings_that_vary=vary or None,
        fsync=known.fsync or further.fsync,
    )


def with_worker(known: Environment, name: str, worker: WorkerMachine) -> Environment:
    """
    The environment of a run that a further worker takes part in.

    Args:
        known: The environment so far.
        name: The worker's.
        worker: Its machine.

    Returns:
        An environment with the worker, that says of the machine what is the same everywhere.
    """
    workers = dict(known.workers or {})
    if name in workers:
        return known
    alike = {
        item.name: value
        for item in fields(Machine)
        if (value := getattr(known, item.name)) == getattr(worker.machine, item.name)
    }
    of_machines = {item.name: alike.get(item.name) for item in fields(Machine)}
    return changed(known, workers=workers | {name: worker}, **of_machines)


def _names(found: Environment | ServerFound) -> set[str]:
    parts = (found.settings, found.build, found.settings_that_vary)
    return {name for part in parts for name in part or {}}


def values_of(found: Environment | ServerFound, name: str) -> list[str | None]:
    """What a setting has been: several values where it varied, `AT_DEFAULT` if not named."""
    if found.settings_that_vary is not None and name in found.settings_that_vary:
        return list(found.settings_that_vary[name])
    parts = (found.settings or {}, found.build or {})
    return [next((part[name] for part in parts if name in part), AT_DEFAULT)]
