"""
pgbench as the driver of a trial, and what surrounds a window in which times are believed.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from pgheadroom.errors import MeasurementInvalid
from pgheadroom.lab.design import Request, Trial
from pgheadroom.lab.place import Running
from pgheadroom.lab.record import Origin, TrialSample
from pgheadroom.servers.pgbench import PgbenchReport, parse_report

TIMEOUT_S = 86_400 + 600
"""The longest window that an experiment can ask for, and time to end."""

THREADS_MAX = 2
"""One thread of pgbench drives tens of thousands of transactions a second; more would take
processors from the server (arbitrary, `guards.driver` says when it was too few)."""


def threads(clients: int) -> int:
    """Threads of pgbench for so many clients."""
    return min(clients, THREADS_MAX)


def seed_of(request: Request, trial: Trial | TrialSample) -> int:
    """
    Seed of a trial's random numbers: the block's, the same for all arms of a block.

    Args:
        request: What the trial runs for.
        trial: A trial that is to run, or the sample of one that has; one that was merged keeps the
            seed that it ran with.
    """
    origin = trial.drawn_from if isinstance(trial, TrialSample) else None
    if origin is None:
        origin = Origin(seed=request.seed, repetition=trial.repetition)
    return origin.seed * 1000 + origin.repetition


def run_pgbench(
    server: Running, arguments: Sequence[str], *, clients: int, seed: int
) -> PgbenchReport:
    """
    Run pgbench without its own vacuum.

    Args:
        server: A running server with the tables of the scripts.
        arguments: Scripts, variables, length.
        clients: How many.
        seed: Of its random numbers.

    Raises:
        LabError: pgbench failed.
        MeasurementInvalid: A transaction failed.
    """
    output = server.run_client(
        [
            "pgbench",
            "-n",
            *("-c", str(clients)),
            *("-j", str(threads(clients))),
            f"--random-seed={seed}",
            *arguments,
        ],
        timeout_s=TIMEOUT_S,
    )
    report = parse_report(output)
    if report.failed_transactions:
        raise MeasurementInvalid(f"{report.failed_transactions} transactions of pgbench failed")
    return report


class Used:
    """Processor seconds of child processes, the driver's, known once its block has ended."""

    seconds: float = 0.0


@contextmanager
def processor_time() -> Iterator[Used]:
    """Measure the processor time of the programs that run and end inside the block."""
    used, before = Used(), resource.getrusage(resource.RUSAGE_CHILDREN)
    yield used
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used.seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def durable(server: Running) -> None:
    """
    Switch fsync on, which counters do not need; a time without it is no time.

    What copying the cluster left for the system to write is written first. A borrowed server is
    left as it is.
    """
    if server.cluster is not None:
        os.sync()
        with server.connect() as connection:
            connection.execute("ALTER SYSTEM SET fsync = on")
            connection.execute("SELECT pg_reload_conf()")
    server.checkpoint()
