"""
What a check of a migration answers: by table what becomes of HOT and what statements lock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

import pgheadroom
from pgheadroom.migration.actions import Statement
from pgheadroom.migration.shape import Note
from pgheadroom.outcome import Value
from pgheadroom.types import Interval

Verdict = Literal["loses HOT", "gains HOT", "as before", "not judged"]
Evidence = Literal["predicted", "estimated", "by rule", "measured"]
"""
Of what is said of afterwards: played by the twin; the measured share, scaled by the rule; the rule
alone, without figures; nothing updated the table while it was observed.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Worked:
    """
    What one statement does to a table while it runs.

    Attributes:
        line: Of the statement.
        lock: The strongest on the table while it runs, in PostgreSQL's words.
        lock_since: The line of an earlier statement of its transaction that took that lock; None:
            it does itself.
        effort: What takes the longer the bigger the table is.
        stops_writers: The lock conflicts with that of a writer.
        what: What is done.
        does: The effort, for people.
        beside: What else waits, for people.
        waits_for: The table that is read meanwhile and decides how long it takes, where that is
            another one: `{"table": ..., "main_bytes": ...}`.
        unless: What would make it otherwise, where that is not known.
        main_bytes: The table's size as observed.
        is_over: It stops writers for as long as a table over the limit takes.
    """

    line: int
    lock: str
    lock_since: int | None
    effort: str
    stops_writers: bool
    what: str
    does: str
    beside: str | None
    waits_for: Mapping[str, Any] | None
    unless: str | None
    main_bytes: int | None
    is_over: bool

    def to_json(self) -> dict[str, Any]:
        """The file's form."""
        return {item.name: getattr(self, item.name) for item in fields(self)}


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCheck:
    """
    One table that the migration changes.

    Attributes:
        table: Its name in the profile.
        schema: Of the server.
        name: Of the server.
        lines: Of the statements that concern it.
        verdict: What becomes of HOT.
        text: Why, in a sentence or two.
        evidence: What the verdict and the figures of afterwards rest on; None where nothing is
            judged.
        not_judged: What is left open, as `{"line": ..., "text": ...}`; the line is None where it is
            no statement's.
        updates_per_s: As observed.
        can_be_hot_now, can_be_hot_then: Updates that change no column that an index reads, by
            the rule; None where no statement is known.
        lost_frac, gained_frac: Updates that can be HOT no more, or from now on.
        lost_by: What ends HOT: `{"index": ..., "column": ..., "reads": ..., "assigned": ...}`.
        assigned_frac: Updates that assign a column that ends HOT only from now on; None where no
            statement is known.
        assigning: The classes of updates that do, as `{"columns": [...], "frac": ...}`.
        unknown_frac: Updates that no known statement explains.
        fillfactor_now, fillfactor_then: Percent.
        hot_frac_measured: Of the interval.
        hot_frac_estimated_then: The measured share times what the rule leaves of the updates that
            can be HOT, where no long run was played.
        hot_frac_now, hot_frac_then: In the long run, as played; None where nothing was.
        wal_bytes_per_update_now, wal_bytes_per_update_then: Without full-page images.
        wal_bytes_per_day_now, wal_bytes_per_day_then: At the observed rate.
        assumed: What was taken for granted.
        work: What statements lock, rewrite and scan.
    """

    table: str
    schema: str
    name: str
    lines: tuple[int, ...]
    verdict: Verdict
    text: str
    evidence: Evidence | None
    updates_per_s: float
    can_be_hot_now: float | None = None
    can_be_hot_then: float | None = None
    lost_frac: float | None = None
    gained_frac: float | None = None
    lost_by: tuple[Mapping[str, str], ...] = ()
    assigned_frac: float | None
    unknown_frac: float | None
    fillfactor_now: int
    fillfactor_then: int
    hot_frac_measured: float | None = None
    hot_frac_estimated_then: float | None = None
    hot_frac_now: Value = None
    hot_frac_then: Value = None
    wal_bytes_per_update_now: Value = None
    wal_bytes_per_update_then: Value = None
    wal_bytes_per_day_now: Value = None
    wal_bytes_per_day_then: Value = None
    assigning: tuple[Mapping[str, Any], ...] = ()
    assumed: tuple[str, ...] = ()
    not_judged: tuple[Mapping[str, Any], ...] = ()
    work: tuple[Worked, ...] = ()

    @property
    def over(self) -> tuple[Worked, ...]:
        """Statements that stop writers of a table over the limit."""
        return tuple(found for found in self.work if found.is_over)

    def to_json(self) -> dict[str, Any]:
        """The file's form."""
        return {item.name: _plain(getattr(self, item.name)) for item in fields(self)}


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrationCheck:
    """
    What a migration would do.

    `findings` are the tables that lose HOT; `strict_findings` what else a careful user has to look
    into, in words: what is not judged or not understood, and tables that writers have to wait for.
    """

    server: str
    statements: tuple[Statement, ...]
    tables: tuple[TableCheck, ...]
    notes: tuple[Note, ...]
    rewrite_over_bytes: int

    @property
    def findings(self) -> tuple[TableCheck, ...]:
        """Tables that lose HOT."""
        return tuple(found for found in self.tables if found.verdict == "loses HOT")

    @property
    def strict_findings(self) -> tuple[str, ...]:
        """What fails a strict check besides."""
        open_ = [f"{found.name}: not judged" for found in self.tables if found.not_judged]
        open_ += [f"line {n.line}: {n.table or n.text}" for n in self.notes if not n.is_judged]
        open_ += [f"line {s.line}: not understood" for s in self.statements if s.problem]
        open_ += [
            f"{found.name}, line {work.line}: writers wait"
            for found in self.tables
            for work in found.over
        ]
        return tuple(dict.fromkeys(open_))

    def to_json(self) -> dict[str, Any]:
        """The file's form."""
        problems = [s for s in self.statements if s.problem is not None]
        return {
            "schema_version": 1,
            "kind": "migration_check",
            "tool_version": pgheadroom.__version__,
            "server": self.server,
            "statements": sum(not s.is_command for s in self.statements),
            "commands": sum(s.is_command for s in self.statements),
            "not_understood": [
                {"line": s.line, "text": s.text[:200], "why": s.problem} for s in problems
            ],
            "findings": len(self.findings),
            "strict_findings": list(self.strict_findings),
            "rewrite_over_bytes": self.rewrite_over_bytes,
            "tables": [table.to_json() for table in self.tables],
            "notes": [
                {"line": n.line, "table": n.table, "text": n.text, "is_judged": n.is_judged}
                for n in self.notes
            ],
        }


def _plain(value: Any) -> Any:
    if isinstance(value, Interval | Worked):
        return value.to_json()
    return [_plain(item) for item in value] if isinstance(value, tuple) else value
