"""
A live database's counters, tick by tick: what the screen, scripts and a monitoring system are told.

    queries     what the server is asked, by version
    reading     one reading of it
    rates       two readings as what happened between them
    watcher     a session that reads, and connects again when the server was away
    line        the same as an object, for scripts
    several     a watcher for each of several servers, side by side
    prometheus  a reading in Prometheus' text format

Nothing is written to the database. A rate is told only where both readings count from the same
beginning: after a restart, a reset of statistics, or a clock that was set, a tick has none.
"""

from pgheadroom.watch.line import WatchLine, line_of
from pgheadroom.watch.prometheus import exposition
from pgheadroom.watch.rates import TableRate, Tick
from pgheadroom.watch.reading import HorizonHolder, RunningVacuum, ServerReading, TableCounts
from pgheadroom.watch.several import Watchers
from pgheadroom.watch.sorting import SORTS, Order, chosen
from pgheadroom.watch.watcher import APPLICATION_NAME, Watcher

__all__ = [
    "APPLICATION_NAME",
    "SORTS",
    "HorizonHolder",
    "Order",
    "RunningVacuum",
    "ServerReading",
    "TableCounts",
    "TableRate",
    "Tick",
    "WatchLine",
    "Watcher",
    "Watchers",
    "chosen",
    "exposition",
    "line_of",
]
