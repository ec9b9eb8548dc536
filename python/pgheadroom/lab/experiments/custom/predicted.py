"""
What the twin predicts of `custom`'s counter window, where the workload is a profile.

A trial plays the profile as `prove` does, but for what a cell changes: fillfactors and other
reloptions of its tables, the server, and the settings that a profile has a field for. Figures are
those of all tables together, WAL is that of the whole server.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pgheadroom.errors import InputError
from pgheadroom.lab import driver, predicted
from pgheadroom.lab.design import LevelValue, Request, TrialCell
from pgheadroom.lab.experiments.custom.load import (
    ReadyWorkload,
    has_gin,
    with_reloptions,
    work_of,
)
from pgheadroom.lab.record import TrialSample
from pgheadroom.outcome import Value
from pgheadroom.profile import Profile, Run
from pgheadroom.profile.model import CHECKSUMS_FROM_MAJOR, ProfileFile
from pgheadroom.profile.unpriced import is_played
from pgheadroom.servers import is_connection
from pgheadroom.types import PgVersion

if TYPE_CHECKING:
    from pgheadroom.predict.twin import Simulation

PREDICTED = (
    "hot_frac",
    "newpage_frac",
    "heap_pages",
    "index_pages",
    "wal_bytes_per_tx",
    "wal_fpi_per_tx",
)
"""Measures that have a predicted counterpart."""

_SETTINGS = ("full_page_writes", "wal_compression", "wal_level", "wal_log_hints")
"""Settings of a cell that a profile has a field for, and that change what is counted."""

_WITHOUT_EFFECT = ("shared_buffers", "work_mem", "maintenance_work_mem", "synchronous_commit")
"""Settings of a cell that change no counter; memory does where a GIN or a bitmap is."""


def fill(
    request: Request,
    version: PgVersion,
    samples: Sequence[TrialSample],
    cells: list[dict[str, Any]],
) -> list[str]:
    """Add the predictions to the cells; returns why cells have none, if some have none."""
    work = work_of(request)
    reasons: list[str] = []
    for cell in cells:
        levels: TrialCell = {name: cell[name] for name in request.levels}
        mine = [s for s in samples if s.arm == "measured" and s.cell == levels]
        runs: list[Simulation] = []
        try:
            there = _version_of(levels, mine, version)
            profile = _played(request, work, levels, there)
            seeds = [driver.seed_of(request, sample) for sample in mine]
            runs = predicted.runs_of(profile, there, seeds)
            if not runs:
                reasons.append("the twin cannot play this profile")
            predicted.fill(cell, runs, _figures(profile, there))
        except _NotPredictedError as error:
            reasons.append(str(error))
            predicted.fill(cell, [], dict.fromkeys(PREDICTED, _nothing))
    return list(dict.fromkeys(reasons))


class _NotPredictedError(Exception):
    """Why a cell has no prediction."""


def _nothing(_: Simulation) -> Value:
    return None


def _version_of(cell: TrialCell, samples: Sequence[TrialSample], version: PgVersion) -> PgVersion:
    """The minor version that a cell ran on, which its samples say where it is a factor."""
    if "server" not in cell:
        return version
    for sample in samples:
        said = sample.assumed.get(f"server {cell['server']}", "")
        if said.startswith("PostgreSQL "):
            return PgVersion.parse(said.removeprefix("PostgreSQL "))
    raise _NotPredictedError(f"which version server={cell['server']} was is not in the record")


def _played(
    request: Request, work: ReadyWorkload, cell: TrialCell, version: PgVersion
) -> ProfileFile:
    """The profile of a cell, without its seed."""
    from pgheadroom.predict.cells import loaded_rows  # noqa: PLC0415 - slow

    profile = work.profile
    if profile is None:
        raise _NotPredictedError("the workload is a script, not a profile")
    if is_connection(request.server):
        raise _NotPredictedError("a borrowed server has settings of its own")
    server = profile.server
    goes_by_clock = (server.autovacuum, server.checkpoint_interval_s, server.max_wal_size_bytes)
    if any(goes_by_clock):
        raise _NotPredictedError("autovacuum and checkpoints go by the machine's pace")
    why_not = predicted.why_not(version, rows=loaded_rows(profile))
    if why_not is not None:
        raise _NotPredictedError(why_not)
    # Checksums as initdb sets them.
    server = replace(server, version=str(version), data_checksums=None)
    server = replace(server, **_settings(cell, profile))
    run = Run(operations=work.transactions, clients=work.clients)
    return replace(_with_fillfactors(profile, cell).in_file(), server=server, run=run)


def _with_fillfactors(profile: Profile, cell: TrialCell) -> Profile:
    """The profile with the reloptions of a cell."""
    reloptions: dict[str, LevelValue] = {
        name: level
        for name, level in cell.items()
        if name != "server" and not name.startswith("setting.")
    }
    builtin = profile.workload.builtin
    if builtin is None:
        try:
            return with_reloptions(profile, reloptions)
        except InputError as error:
            raise _NotPredictedError(str(error)) from error
    fillfactors = dict(builtin.fillfactor)
    for name, level in reloptions.items():
        table, _, option = name.rpartition(".")
        if option != "fillfactor":
            raise _NotPredictedError(f"{name} of pgbench's own tables is not in a profile")
        fillfactors |= dict.fromkeys([table] if table else profile.table_names, int(level))
    changed = replace(builtin, fillfactor=fillfactors)
    return replace(profile, workload=replace(profile.workload, builtin=changed))


def _has_bitmaps(profile: Profile) -> bool:
    """Whether statements find their rows by bitmaps, which work_mem limits."""
    return any(operation.find == "bitmap" for operation in profile.workload.operations)


def _settings(cell: TrialCell, profile: Profile) -> dict[str, Any]:
    """Fields of a profile's server that the settings of a cell are."""
    memory: dict[str, str] = {}
    found: dict[str, Any] = {}
    for name, level in cell.items():
        setting = name.partition(".")[2] if name.startswith("setting.") else ""
        if setting == "work_mem" and (has_gin(profile) or _has_bitmaps(profile)):
            memory[setting] = str(level)
            continue
        if setting == "maintenance_work_mem" and has_gin(profile):
            raise _NotPredictedError(
                f"what {setting} does to a GIN after its load is not predicted"
            )
        if not setting or setting in _WITHOUT_EFFECT:
            continue
        if setting not in _SETTINGS:
            raise _NotPredictedError(f"what {setting} does is not in a profile")
        found[setting] = {"on": True, "off": False}.get(str(level), str(level))
        if setting == "wal_compression":
            found[setting] = str(level)
    if memory:
        found["settings"] = {**profile.server.settings, **memory}
    return found


def _figures(profile: ProfileFile, version: PgVersion) -> dict[str, Callable[[Simulation], Value]]:
    """How each measure follows from a run."""
    server = profile.server
    logs_hints = server.full_page_writes and (
        version.major >= CHECKSUMS_FROM_MAJOR or server.wal_log_hints
    )
    is_counted = all(
        index.method != "brin" and is_played(index, table)
        for table in profile.tables
        for index in table.indexes
    )

    def per_transaction(key: str, of_catalogs: float) -> Callable[[Simulation], Value]:
        def figure(run: Simulation) -> Value:
            found = predicted.per_transaction(run, key)
            if not logs_hints:
                return found
            return predicted.with_catalogs(found, of_catalogs / run.transactions)

        return figure

    return {
        "hot_frac": lambda run: run.outcome.hot_frac,
        "newpage_frac": lambda run: run.outcome.newpage_frac,
        "heap_pages": lambda run: run.outcome.heap_pages,
        "index_pages": (lambda run: run.outcome.index_pages) if is_counted else _nothing,
        "wal_bytes_per_tx": per_transaction("wal_bytes", predicted.CATALOG_BYTES),
        "wal_fpi_per_tx": per_transaction("wal_fpi", predicted.CATALOG_IMAGES),
    }
