"""
Why a table's updates were HOT or not, and which indexes ended it, as values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from pgheadroom.outcome import Value

Evidence = Literal["measured", "sampled", "estimated", "predicted", "assumed"]
CauseKind = Literal["hot", "indexed_column", "no_room", "row_grew", "unknown"]
Certainty = Literal["certain", "possible"]

CAUSES: tuple[CauseKind, ...] = ("hot", "indexed_column", "no_room", "row_grew", "unknown")
"""Every update of the interval belongs to one of these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Blamed:
    """
    An index that has taken HOT away, or may have.

    Attributes:
        name: As in the catalog.
        columns: Its columns that the updates assign.
        updates: Updates of the interval that it made non-HOT; shared out where several have.
        certainty: `certain` where the counters agree, `possible` where only statements say so.
        scans: Its index scans in the interval; None where nobody counted.
        total_scans: The same since the statistics began.
        unique: Whether it is unique, so that it cannot just go.
    """

    name: str
    columns: tuple[str, ...]
    updates: Value
    certainty: Certainty
    scans: int | None = None
    total_scans: int | None = None
    unique: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexFinding:
    """
    An index that ends HOT, and what a table without it would save.

    Attributes:
        table: The table's name in the profile.
        name: As in the catalog.
        columns: What ends HOT, each as `{"column", "reads", "assigned"}`: a column of the index, as
            what it reads it (`key`, `INCLUDE`, `expression`, `predicate`, `whole row`), and the
            assigned column, which is another one where the former is generated from it. Empty where
            no known statement assigns one.
        updates_frac: Of the table's updates: those that were not HOT and changed a column of it,
            whether other indexes end HOT for the same ones or not.
        hot_frac_now: Observed, or predicted where `hot_frac_then` is.
        hot_frac_then: Without it.
        wal_bytes_saved_per_day: Without it; None where nobody can say (another access method than
            B-tree, and no statement's WAL was counted).
        evidence: `estimated` by the rule and the layout, or the statements' own WAL; `predicted` by
            the twin.
        certainty: As in `Blamed`.
        enforces: Why it cannot just go, or None; as in `remark_index.Reads`.
        only_with: Other indexes that end HOT for the same updates: without it alone these stay
            non-HOT (`IndexesTogether` has what goes with all).
        scans, total_scans: As in `Blamed`.
    """

    table: str
    name: str
    columns: tuple[Mapping[str, str], ...]
    updates_frac: Value
    hot_frac_now: Value
    hot_frac_then: Value
    wal_bytes_saved_per_day: Value
    evidence: Evidence
    certainty: Certainty
    enforces: str | None
    only_with: tuple[str, ...]
    scans: int | None = None
    total_scans: int | None = None

    @property
    def by(self) -> str:
        """The columns that do it, for people; empty where none is known."""
        return ", ".join(map(_by, self.columns))


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexesTogether:
    """
    Several indexes of a table that end HOT, and what it would save without all of them.

    Attributes:
        table: The table's name in the profile.
        names: As in the catalog, sorted; none of them enforces anything.
        updates_frac: Of the table's updates: those that were not HOT and changed a column of one.
        hot_frac_now, hot_frac_then, wal_bytes_saved_per_day, evidence: As in `IndexFinding`.
    """

    table: str
    names: tuple[str, ...]
    updates_frac: Value
    hot_frac_now: Value
    hot_frac_then: Value
    wal_bytes_saved_per_day: Value
    evidence: Evidence


def _by(found: Mapping[str, str]) -> str:
    name = "the whole row" if found["reads"] == "whole row" else found["column"]
    notes = [] if found["reads"] in ("key", "whole row") else [found["reads"]]
    if found["assigned"] != found["column"]:
        notes.append(f"generated from {found['assigned']}")
    return f"{name} ({', '.join(notes)})" if notes else name


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """
    A part of the interval's updates, and why they were what they were.

    Attributes:
        kind: One of `CAUSES`.
        updates: Rows updated.
        frac: Of all updates of the table.
        evidence: Where the number is from.
        detail: One sentence for people.
        indexes: Those that took HOT away, for `indexed_column`.
        wal_bytes: WAL of these updates in the interval, estimated; None where nobody can say.
    """

    kind: CauseKind
    updates: Value
    frac: Value
    evidence: Evidence
    detail: str
    indexes: tuple[Blamed, ...] = ()
    wal_bytes: Value = None
