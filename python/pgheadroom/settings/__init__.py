"""
Settings of a server: what follows from its machine by rule, and from its load by measurement.

    arithmetic.py   checkpoints, memory, what autovacuum has to do: shared with the doctor
    in_force.py     settings as they are: of a server, or a version's defaults
    measured.py     counters of a live server, over an interval or since they began
    memory.py  machine.py  checkpoints.py  vacuum.py   the rules, each setting once
    deciding.py     all of them together
    placing.py      how a value comes into force: ALTER SYSTEM and its undo, or who stands before
    live.py         asks a server
    values.py       lines, what was kept, what has to be asked
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pgheadroom.on_demand import on_demand

if TYPE_CHECKING:
    from pgheadroom.settings.deciding import settings_for
    from pgheadroom.settings.live import settings_live
    from pgheadroom.settings.values import ServerMachine, SettingLine, SettingsAdvice

__all__ = ["ServerMachine", "SettingLine", "SettingsAdvice", "settings_for", "settings_live"]

_HOMES = {
    "ServerMachine": "settings.values",
    "SettingLine": "settings.values",
    "SettingsAdvice": "settings.values",
    "settings_for": "settings.deciding",
    "settings_live": "settings.live",
}

__getattr__ = on_demand(__name__, _HOMES, below="pgheadroom")
