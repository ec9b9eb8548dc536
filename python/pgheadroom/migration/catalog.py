"""
Whose tables the statements of a migration are, by the names that these have by then.
"""

from __future__ import annotations

from dataclasses import replace

from pgheadroom.migration import actions
from pgheadroom.migration.actions import Action, MigrationStatement, NamedRelation
from pgheadroom.migration.names import NamesNow
from pgheadroom.migration.shape import Altered, Note, altered_of
from pgheadroom.migration.weighing import goes_on_to_heirs
from pgheadroom.profile import Profile
from pgheadroom.types import PgVersion


class NamedTables:
    """
    The profile's tables by the names that they have while the migration goes on.

    Attributes:
        profile: As it was given, observed.
        major: Its server's.
        taken: Names of tables and indexes in the profile, and of those that come into it.
        names: Which tables and indexes names mean now.
        altered: Tables that statements have touched, by their names in the profile.
        notes: What is said beside the tables.
        blind: The line of a statement that is not understood, after which nothing is sure.
        absent: Indexes that are surely not there since the last of these: they were dropped.
    """

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self.major = PgVersion.parse(profile.server.version).major
        self.taken = {t.name for t in profile.tables} | {
            index.name for table in profile.tables for index in table.indexes
        }
        self.names = NamesNow(profile)
        self.altered: dict[str, Altered] = {}
        self.notes: list[Note] = []
        self.blind: int | None = None
        self.absent: set[NamedRelation] = set()

    def take_absent(self, statement: MigrationStatement) -> None:
        """Learn which indexes are not there after a statement, whatever was there before it."""
        for action in statement.actions:
            if isinstance(action, actions.DropIndex) and action.table is None:
                self.absent.add(action.index)
            if isinstance(action, actions.AddIndex) and action.name is not None:
                self.absent.discard(replace(action.table, name=action.name))
        if statement.problem is not None:
            self.absent.clear()

    def of_key(self, key: str) -> Altered:
        """A table by its name in the profile."""
        if key not in self.altered:
            self.altered[key] = altered_of(self.profile.table(key), self.major)
        return self.altered[key]

    def of(self, target: NamedRelation, line: int) -> list[Altered]:
        """The observed tables behind a name; none for one that is not known, which is noted."""
        place = self.names.table(target)
        if place is None:
            if not self.names.is_new(target) and not self.names.is_gone(target):
                self.note(line, target, "not in the profile: nothing is known of its updates")
            return []
        return [self.of_key(key) for key in self.names.tables[place]]

    def reached(self, target: NamedRelation, line: int, action: Action) -> list[Altered]:
        """Those of `of`, and their heirs where an action goes on to these."""
        found = self.of(target, line)
        if not goes_on_to_heirs(action) or getattr(action, "table", target) != target:
            return found
        heirs = self.names.heirs_of([altered.table.name for altered in found])
        return [*found, *(self.of_key(key) for key in heirs)]

    def note(self, line: int, table: object, text: str, *, is_judged: bool = False) -> None:
        """Say something of a table, or of the migration where it is None; once."""
        name = None if table is None else str(table)
        note = Note(line=line, table=name, text=text, is_judged=is_judged)
        if note not in self.notes:
            self.notes.append(note)
