"""
A recording of a live database becomes a profile.

`sources/observing.py` asks and `sources/recording.py` holds what was answered; here it is put
together: what was answered of each table (`answers.py`), differences of counters (`counters.py`),
update classes (`classes.py`), names (`mask.py`), tables (`tables.py`, `columns.py`, `indexes.py`),
samples (`sample.py`), the server (`server.py`), what could not be seen (`access.py`), and the whole
(`build.py`); `live.py` does all of it on a connection. Every derived number carries its evidence:
measured, sampled, estimated or assumed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pgheadroom.on_demand import on_demand

if TYPE_CHECKING:
    from pgheadroom.observe.build import observe
    from pgheadroom.observe.classes import Classes, find_classes
    from pgheadroom.observe.live import observe_live, request_of

__all__ = ["Classes", "find_classes", "observe", "observe_live", "request_of"]

_HOMES = {
    "Classes": "classes",
    "find_classes": "classes",
    "observe": "build",
    "observe_live": "live",
    "request_of": "live",
}

__getattr__ = on_demand(__name__, _HOMES)
