"""
Playing a profile on a real server and measuring what it did.

    load.py      tables, rows, indexes, as the profile says
    values.py    SQL for a column's values and for what an update does to them
    scripts.py   one pgbench script a transaction; the order of the random draws
    plans.py     whether the server finds rows as the profile wants, before the run
    run.py       a throw-away server, the window, snapshots held by others
    deadlocks.py those that the server finds meanwhile, and when there are too many
    waldump.py   the window's WAL by relation, as the server's own pg_waldump shows it
    walinspect.py   the same where only the server's pg_walinspect is at hand
    wal_source.py   which of the two
    evaluating.py  what expressions of indexes make of the profile's rows, for the twin
    places.py    where every row version and index entry lies, out of the relation files
    measured.py  counters, sizes and WAL as the keys that a proof compares

The twin plays the same profile without a server; where the two differ, one of them is wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pgheadroom.on_demand import on_demand

if TYPE_CHECKING:
    from pgheadroom.play.run import DATABASE, Played, play

__all__ = ["DATABASE", "Played", "play"]

__getattr__ = on_demand(__name__, dict.fromkeys(__all__, "run"))
