"""
Several servers, read side by side: one that does not answer stops nothing, and is tried again.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Self

from pgheadroom.fleet import AT_ONCE, FleetServer
from pgheadroom.schedule import run_pieces
from pgheadroom.watch.rates import Tick
from pgheadroom.watch.watcher import Watcher


class Watchers:
    """
    A watcher for each server.

    Args:
        servers: Which.

    Attributes:
        names: What to call each: host and port, or its service; what was asked for where two would
            have the same.
    """

    def __init__(self, servers: Sequence[FleetServer]) -> None:
        self._watchers = [Watcher(each.conninfo, each.parameters) for each in servers]
        found = [watcher.name for watcher in self._watchers]
        self.names = tuple(
            name if found.count(name) == 1 else server.name
            for name, server in zip(found, servers, strict=True)
        )
        self._pool = ThreadPoolExecutor(max_workers=min(AT_ONCE, len(servers)))
        self._open = ExitStack()

    def __enter__(self) -> Self:
        for watcher in self._watchers:
            self._open.enter_context(watcher)
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
        if kind is not None:
            # In the middle of a reading: nobody waits for a server that does not answer.
            for watcher in self._watchers:
                watcher.hang_up()
        self._pool.shutdown(wait=True)
        self._open.close()

    def tick(self) -> tuple[Tick, ...]:
        """Read each once more, in their order; what goes wrong at one is a note of its own."""
        places = range(len(self._watchers))
        found = dict(
            run_pieces(
                lambda place: self._watchers[place].tick(),
                places,
                executor=self._pool,
                in_flight=len(self._watchers),
            )
        )
        return tuple(found[place] for place in places)
