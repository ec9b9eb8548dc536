"""
Where a command's runs of the twin go: the cores here, or a cluster's workers.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager

from pgheadroom.cli.idle import refuse


def refuse_of_one_server(scheduler: str | None) -> None:
    """
    Refuse a cluster for one server, whom nobody has to wait beside.

    Raises:
        InputError: One was named.
    """
    refuse(
        {"--scheduler": scheduler},
        where="with one server",
        instead="name several, or a --service-file, which its workers look at side by side",
    )


@contextmanager
def executor_at(scheduler: str | None) -> Iterator[Executor | None]:
    """
    An executor for calls that any worker can run, since what they give is the same everywhere.

    Args:
        scheduler: Of a Dask cluster; None: no executor, and the cores here are used.

    Raises:
        HeadroomError: As `Scheduler`.
    """
    if scheduler is None:
        yield None
        return
    from pgheadroom.schedule.scheduler import Scheduler

    with Scheduler(scheduler) as found, found.translated():
        yield found.executor()
