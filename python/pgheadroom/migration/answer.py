"""
What a check of a migration answers: by table what becomes of HOT and what statements lock.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from pgheadroom.forms import Filed, in_file
from pgheadroom.migration.shape import Note
from pgheadroom.outcome import Value

CheckVerdict = Literal["loses HOT", "gains HOT", "as before", "not judged"]
CheckEvidence = Literal["predicted", "estimated", "by rule", "measured"]
"""
Of what is said of afterwards: played by the twin; the measured share, scaled by the rule; the rule
alone, without figures; nothing updated the table while it was observed.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadTable:
    """Another table that a statement reads, and its size as observed."""

    table: str
    main_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class HotEnd:
    """What ends HOT: an index, the column, as what it reads it, and what assigns it."""

    index: str
    column: str
    reads: str
    assigned: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AssigningClass:
    """Updates that assign these columns, as a part of all."""

    columns: tuple[str, ...]
    frac: float


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenMatter:
    """What is not judged; the line is None where it is no statement's."""

    line: int | None
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NotUnderstood:
    """A statement that is not understood, in its beginning, and why."""

    line: int
    text: str
    why: str


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
            another one.
        unless: What would make it otherwise, where that is not known.
        main_bytes: The table's size as observed.
        is_over: It stops writers for as long as a table over the limit takes.
        called: What the table is called when it runs, where the migration renamed it before.
    """

    line: int
    lock: str
    lock_since: int | None
    effort: str
    stops_writers: bool
    what: str
    does: str
    beside: str | None
    waits_for: ReadTable | None
    unless: str | None
    main_bytes: int | None
    is_over: bool
    called: str | None = field(default=None, metadata=in_file(unless_none=True))


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
        not_judged: What is left open.
        updates_per_s: As observed.
        can_be_hot_now, can_be_hot_then: Updates that change no column that an index reads, by
            the rule; None where no statement is known. Now as many at least as were HOT.
        lost_frac, gained_frac: Updates that can be HOT no more, or from now on.
        lost_by: What ends HOT.
        assigned_frac: Updates that assign a column that ends HOT only from now on; None where no
            statement is known.
        assigning: The classes of updates that do.
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
    verdict: CheckVerdict
    text: str
    evidence: CheckEvidence | None
    updates_per_s: float
    can_be_hot_now: float | None = None
    can_be_hot_then: float | None = None
    lost_frac: float | None = None
    gained_frac: float | None = None
    lost_by: tuple[HotEnd, ...] = ()
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
    assigning: tuple[AssigningClass, ...] = ()
    assumed: tuple[str, ...] = ()
    not_judged: tuple[OpenMatter, ...] = ()
    work: tuple[Worked, ...] = ()

    @property
    def over(self) -> tuple[Worked, ...]:
        """Statements that stop writers of a table over the limit."""
        return tuple(found for found in self.work if found.is_over)


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrationCheck(Filed):
    """
    What a migration would do.

    Attributes:
        tool_version: Of ours.
        server: Its version, as observed.
        statements: How many the migration has.
        commands: How many commands of psql that run nothing.
        not_understood: Statements that nobody could read.
        findings: How many tables lose HOT.
        strict_findings: What else a careful user has to look into, in words: what is not judged or
            not understood, and tables that writers have to wait for.
        rewrite_over_bytes: From which size on a table is big.
        tables: Those that it changes, what loses HOT first.
        notes: What concerns no table of the profile, or several.
    """

    KIND = "migration_check"

    tool_version: str
    server: str
    statements: int
    commands: int
    not_understood: tuple[NotUnderstood, ...]
    findings: int
    strict_findings: tuple[str, ...]
    rewrite_over_bytes: int
    tables: tuple[TableCheck, ...]
    notes: tuple[Note, ...]

    @property
    def not_judged(self) -> int:
        """How many matters are not judged, of tables and beside them."""
        beside = sum(not note.is_judged for note in self.notes)
        return sum(len(table.not_judged) for table in self.tables) + beside

    @property
    def waiting(self) -> int:
        """How many big tables' writers have to wait."""
        return sum(any(work.is_over for work in table.work) for table in self.tables)
