"""
What the twin predicts of `fillfactor`'s counter window.

A trial is a profile: pgbench's script on freshly loaded tables, after a checkpoint, its seed that
of the block. What the profile leaves out: that the accounts were read through their index before
the checkpoint, which changes nothing on a freshly vacuumed table; the size of shared_buffers, since
no page is counted as written; and autovacuum by default settings, whose first turn comes after a
part of a minute.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast, get_args

from pgheadroom.lab import driver, predicted
from pgheadroom.lab.base import accounts_predicted as accounts
from pgheadroom.lab.base import accounts_trial as trial
from pgheadroom.lab.design import Request, TrialCell
from pgheadroom.lab.record import TrialSample
from pgheadroom.outcome import Value, shifted
from pgheadroom.profile.model import (
    CHECKSUMS_FROM_MAJOR,
    SCHEMA_VERSION,
    ProfileFile,
    ServerSettings,
)
from pgheadroom.profile.workload import Builtin, PgbenchBuiltin, Run
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

NAPTIME_S = 60
"""PostgreSQL's default of autovacuum_naptime."""

_TPS = 2000
"""What a counter window is taken to go at, as where the length of a trial is guessed."""


def fill(
    request: Request,
    version: PgVersion,
    samples: Sequence[TrialSample],
    cells: list[dict[str, Any]],
) -> list[str]:
    """Add the predictions to the cells; returns why cells have none, if some have none."""
    reasons: list[str] = []
    for cell in cells:
        levels: TrialCell = {name: cell[name] for name in request.levels}
        why_not = _why_not(request, version, levels)
        runs = []
        if why_not is None:
            seeds = [
                driver.seed_of(request, sample)
                for sample in samples
                if sample.arm == "measured" and sample.cell == levels
            ]
            runs = predicted.runs_of(
                profile_of(request, version, int(cell["fillfactor"])),
                version,
                seeds,
                random_seed=request.options["script"] in trial.OWN_SCRIPTS,
            )
            why_not = None if runs else "the twin cannot play this workload"
        if why_not is not None:
            reasons.append(why_not)
        predicted.fill(cell, runs, _figures(request, version.major))
    return list(dict.fromkeys(reasons))


def _figures(request: Request, major: int) -> dict[str, Callable[[Simulation], Value]]:
    """How each measure follows from a run; WAL is that of the whole server."""
    wanted, hints = trial.transactions(request), major >= CHECKSUMS_FROM_MAJOR

    def wal_bytes(run: Simulation) -> Value:
        value = predicted.per_transaction(run, "wal_bytes")
        if request.options["script"] in trial.OWN_SCRIPTS:
            rows = request.scale * trial.ROWS_PER_SCALE
            (more,) = accounts.further_bytes(rows, wanted)
            value = shifted(value, more * predicted.same_page_frac(run.outcome))
        return predicted.with_catalogs(value, predicted.CATALOG_BYTES / wanted) if hints else value

    def wal_fpi(run: Simulation) -> Value:
        value = predicted.per_transaction(run, "wal_fpi")
        return predicted.with_catalogs(value, predicted.CATALOG_IMAGES / wanted) if hints else value

    figures = {name: predicted.of_table(trial.TABLE, name) for name in PREDICTED[:4]}
    return {**figures, "wal_bytes_per_tx": wal_bytes, "wal_fpi_per_tx": wal_fpi}


def _why_not(request: Request, version: PgVersion, cell: TrialCell) -> str | None:
    if request.options["measure"] == "throughput":
        return "a window of a fixed time has as many transactions as the machine makes of it"
    script = str(request.options["script"])
    if script not in (*trial.BUILTIN_SCRIPTS, *trial.OWN_SCRIPTS):
        return "the script is one of your own"
    if script == "select-only":
        return "select-only changes no row"
    if "server" in (cell["memory"], cell["autovacuum"]):
        return "a borrowed server has settings of its own"
    if cell["autovacuum"] == "aggressive":
        return "when autovacuum=aggressive takes its turns depends on the machine's pace"
    wanted = trial.transactions(request)
    if cell["autovacuum"] == "default" and wanted > NAPTIME_S * _TPS:
        return (
            f"{wanted:,} transactions take longer than autovacuum's first nap; "
            "set autovacuum=off for predictions"
        )
    return predicted.why_not(version, rows=request.scale * trial.ROWS_PER_SCALE)


def profile_of(request: Request, version: PgVersion, fillfactor: int) -> ProfileFile:
    """A trial as a profile, without its seed; shared_buffers are the profile's default."""
    script = str(request.options["script"])
    server = ServerSettings(version=str(version), wal_compression="pglz")
    run = Run(operations=trial.transactions(request), clients=int(request.options["clients"]))
    if script not in get_args(Builtin):
        return accounts.accounts_update(request.scale, fillfactor, run, server=server)
    tables = ("pgbench_accounts", "pgbench_branches", "pgbench_tellers")
    builtin = PgbenchBuiltin(
        builtin=cast("Builtin", script),
        scale=request.scale,
        fillfactor=dict.fromkeys(tables, fillfactor),
    )
    return ProfileFile(schema_version=SCHEMA_VERSION, server=server, builtin=builtin, run=run)
