"""
What a rule about a setting is told, and how it answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pgheadroom.settings.in_force import InForce, shown_bytes, shown_s
from pgheadroom.settings.values import (
    InForceBy,
    KeptSetting,
    LineBasis,
    OpenSetting,
    ServerMachine,
    SettingLine,
)

if TYPE_CHECKING:
    from pgheadroom.settings.measured import CountedLoad
    from pgheadroom.wal.what_if_values import WhatIf

Said = SettingLine | KeptSetting | OpenSetting
MEMORY_ASKED = "a connection does not tell the machine's memory, or the container's"

_BY: dict[str, InForceBy] = {
    "postmaster": "restart",
    "sighup": "reload",
    "backend": "new sessions",
    "superuser-backend": "new sessions",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsCase:
    """
    A machine, its settings, and its load.

    Attributes:
        given: What was said.
        major: The server's version.
        in_force: Its settings.
        is_live: They are a server's; else they are the version's defaults.
        counted: Of the server's counters; None: nothing can be said by them, `uncounted` why.
        uncounted: Why there are none.
        log: The write-ahead log under other checkpoints; None: it was not given.
    """

    given: ServerMachine
    major: int
    in_force: InForce
    is_live: bool
    counted: CountedLoad | None = None
    uncounted: str = "there is no server whose counters could be read"
    log: WhatIf | None = None

    def number(self, name: str) -> float:
        """What is in force, in base units."""
        return self.in_force[name].number

    def shown(self, name: str) -> str:
        """The same for people."""
        return self.in_force[name].shown

    def stands(self, now: float, wanted: float, low: float, high: float) -> bool:
        """
        Whether it stays: within reason where somebody has chosen it, else the rule's own value.

        Args:
            now: What is in force.
            wanted: What the rule says.
            low: From where on it is right as well.
            high: Up to where.
        """
        return low <= now <= high if self.is_live else now == wanted

    def settings(self) -> dict[str, str]:
        """As pg_settings has them, for arithmetic that is shared with the doctor."""
        return {name: setting.value for name, setting in self.in_force.items()}

    def line(
        self,
        name: str,
        value: float | str,
        *,
        basis: LineBasis,
        reason: str,
        changes: str,
        rule: str,
    ) -> SettingLine:
        """A line that changes a setting; a number is in base units."""
        setting = self.in_force[name]
        return SettingLine(
            name=name,
            value=value if isinstance(value, str) else spelled(value, setting.unit),
            now=setting.shown,
            reason=reason,
            changes=changes,
            basis=basis,
            rule=rule,
            in_force_by=_BY.get(setting.context, "reload"),
        )

    def kept(self, name: str, reason: str) -> KeptSetting:
        """It is right as it is."""
        return KeptSetting(name=name, now=self.shown(name), reason=reason)


SettingRule = Callable[[SettingsCase], Iterator[Said]]


def spelled(value: float, unit: str | None) -> str:
    """A value as postgresql.conf has it."""
    if value >= 0 and unit in ("B", "kB", "8kB", "MB"):
        return shown_bytes(int(value))
    if value >= 0 and unit in ("ms", "s", "min"):
        return shown_s(value)
    return f"{value:g}"
