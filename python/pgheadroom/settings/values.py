"""
What is said about settings, as values: lines to change, what stays as it is, what has to be asked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pgheadroom.forms import Filed
from pgheadroom.tabular import Row, Tabular

Disk = Literal["ssd", "hdd", "network"]
LoadKind = Literal["web", "oltp", "dw", "mixed"]
LineBasis = Literal["measured", "rule", "given"]
"""From what a value follows: a count on this server, a rule of thumb, what somebody asked for."""
InForceBy = Literal["restart", "reload", "new sessions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerMachine:
    """
    What a connection cannot tell, said by whoever asks; None: nobody has said it.

    Attributes:
        memory_bytes: Of the machine, or of the container, for PostgreSQL.
        cores: Processor cores.
        disk: Under the data directory.
        connections: Sessions at once.
        workload: What kind it is.
    """

    memory_bytes: int | None = None
    cores: int | None = None
    disk: Disk | None = None
    connections: int | None = None
    workload: LoadKind | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingLine:
    """
    A setting that would be changed.

    Attributes:
        name: Of the setting.
        value: As postgresql.conf has it, without quotes.
        now: What is in force, or the version's default where there is no server.
        reason: From what the value follows, with its numbers.
        changes: What it changes, and what that costs.
        basis: What kind of reason it is.
        rule: Its section of docs/settings.md, and rows of the catalogue of rules.
        in_force_by: What it takes.
        sql: The statement; None where it would not reach it, which `note` says.
        undo: What takes the statement back.
        set_by: Who has set what is in force: file and line where the role sees them.
        note: Who has set it so that something else has to be done; None: nothing stands before.
    """

    name: str
    value: str
    now: str
    reason: str
    changes: str
    basis: LineBasis
    rule: str
    in_force_by: InForceBy
    sql: str | None = None
    undo: str | None = None
    set_by: str = "default"
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptSetting:
    """
    A setting that is right as it is.

    Attributes:
        name: Of the setting.
        now: What is in force.
        reason: Why that is right.
    """

    name: str
    now: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenSetting:
    """
    A setting of which nothing can be said before something else is known.

    Attributes:
        name: Of the setting.
        by: What would tell it: an option.
        reason: Why it cannot be said without.
    """

    name: str
    by: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsAdvice(Filed, Tabular):
    """
    What would be changed, and why.

    Attributes:
        tool_version: Of ours.
        server: Its version.
        database: Where counters were read; None: there was no server.
        given: What was said beside.
        counted: Over which time counters were taken, in words; None: none were.
        lines: What to change.
        kept: What is right as it is.
        asked: What could not be said.
        remarks: What a reader has to know about all of it.
    """

    KIND = "settings"

    tool_version: str
    server: str
    database: str | None
    given: ServerMachine
    counted: str | None
    lines: tuple[SettingLine, ...]
    kept: tuple[KeptSetting, ...]
    asked: tuple[OpenSetting, ...]
    remarks: tuple[str, ...] = ()

    def rows(self) -> list[Row]:
        """A row a line."""
        return [
            {
                "name": line.name,
                "value": line.value,
                "now": line.now,
                "basis": line.basis,
                "reason": line.reason,
                "changes": line.changes,
                "rule": line.rule,
                "in_force_by": line.in_force_by,
                "sql": line.sql,
                "undo": line.undo,
                "set_by": line.set_by,
                "note": line.note,
            }
            for line in self.lines
        ]

    def summary(self) -> str:
        """What it is, in a line."""
        looked = len(self.lines) + len(self.kept)
        where = f" in {self.database}" if self.database is not None else ""
        return f"{len(self.lines)} of {looked} settings to change{where}, PostgreSQL {self.server}"
