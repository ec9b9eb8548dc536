"""
What IF NOT EXISTS and IF EXISTS leave of a statement, by what is there.

A column that is there keeps a statement from adding it, with every constraint behind it, while the
table's lock is taken all the same (`ATExecAddColumn`, tablecmds.c); an index of that name too, and
whatever else has it (`index_create`, index.c). CREATE TABLE IF NOT EXISTS does nothing at all then,
and takes no lock of what it refers to (`transformCreateStmt`, parse_utilcmd.c).

What is there is known from the profile and from the statements before. After one that is not
understood (a DO block may rename or make what it likes) it is known no more, and said so.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Protocol

from pgheadroom.migration import actions
from pgheadroom.migration.actions import Action, NamedRelation, Remarkable, Work
from pgheadroom.migration.names import NamesNow
from pgheadroom.migration.shape import Altered


class TakeNote(Protocol):
    """Takes a note: the table, the text, and whether nothing is left open by it."""

    def __call__(self, table: NamedRelation, text: str, *, is_judged: bool) -> None:
        """Take it."""


class Conditions:
    """
    The actions of one statement as what is there leaves them.

    Args:
        names: As the statement finds them.
        tables_of: The observed tables behind a name.
        say: Takes notes.
        leave_open: Says of observed tables what cannot be judged.
        blind: The line of an earlier statement that is not understood.
        absent: Indexes that are surely not there, for all that it may have done.
    """

    def __init__(
        self,
        names: NamesNow,
        tables_of: Callable[[NamedRelation], Sequence[Altered]],
        say: TakeNote,
        leave_open: Callable[[Sequence[Altered], str], None],
        blind: int | None,
        absent: Collection[NamedRelation],
    ) -> None:
        self._names = names
        self._tables_of = tables_of
        self._say = say
        self._leave_open = leave_open
        self._blind = blind
        self._absent = absent
        self._left_out: set[tuple[NamedRelation, str]] = set()
        self._is_made = True

    def kept(self, action: Action) -> Action | None:
        """What an action is by what is there; None: nothing."""
        if isinstance(action, Remarkable) and action.kind == "new":
            return self._table(action)
        if isinstance(action, Work) and not self._is_made:
            return None  # of a table that is not made
        if isinstance(action, Work | actions.AddIndex) and action.comes_with is not None:
            assert action.table is not None, "what stands behind a column is of its table"
            if (action.table, action.comes_with) in self._left_out:
                return None
        if isinstance(action, actions.SetColumn) and action.is_new:
            return self._new_column(action)
        if isinstance(action, actions.DropColumn):
            return self._old_column(action)
        if isinstance(action, actions.AddIndex) and action.name is not None:
            return self._index(action, action.name)
        if isinstance(action, actions.Rename) and self._blind is None:
            return self._renamed(action)
        return action

    def unless(self, action: Action) -> str | None:
        """What would make a conditional action another one, where that is not known."""
        if self._blind is None:
            return None
        if isinstance(action, actions.SetColumn) and action.if_not_exists:
            return f"column {action.name} is there by then, which line {self._blind} may decide"
        if isinstance(action, actions.AddIndex) and action.if_not_exists:
            if replace(action.table, name=action.name or "") in self._absent:
                return None
            return f"index {action.name} is there by then, which line {self._blind} may decide"
        if isinstance(action, Work | actions.AddIndex) and action.comes_with is not None:
            return (
                f"column {action.comes_with} is there by then, which line {self._blind} may decide"
            )
        return None

    def _table(self, action: Remarkable) -> Action | None:
        name, is_there = action.table, self._names.table(action.table) is not None
        self._is_made = not is_there or self._blind is not None
        if not is_there:
            return action
        if self._blind is not None:
            self._leave_open(self._tables_of(name), f"whether it is {name} {self._decides()}")
        elif action.if_not_exists:
            self._say(name, "the table is there already, and nothing is made", is_judged=True)
        else:
            self._say(name, f"PostgreSQL refuses a second table {name}", is_judged=False)
        return None

    def _new_column(self, action: actions.SetColumn) -> Action | None:
        tables = self._tables_of(action.table)
        if not any(action.name in altered.names for altered in tables):
            return action
        if self._blind is not None:
            what = f"whether column {action.name} is the one that was observed"
            self._leave_open(tables, f"{what} {self._decides()}")
            return action
        if action.if_not_exists:
            self._left_out.add((action.table, action.name))
            return Work(table=action.table, kind="column is there", column=action.name)
        text = f"PostgreSQL refuses a second column {action.name}, which the profile has"
        self._leave_open(tables, text)
        return action

    def _old_column(self, action: actions.DropColumn) -> Action:
        tables = self._tables_of(action.table)
        if not tables or any(action.name in altered.names for altered in tables):
            return action
        if not action.if_exists and self._blind is None:
            text = f"column {action.name} is not in the profile"
            self._say(action.table, text, is_judged=True)
        return Work(table=action.table, kind="column is absent", column=action.name)

    def _index(self, action: actions.AddIndex, name: str) -> Action:
        place = self._names.table(action.table)
        schema = action.table.schema if place is None else place[0]
        if schema is None or not self._names.is_taken(schema, name):
            return action
        if self._blind is not None:
            tables = self._tables_of(action.table)
            self._leave_open(tables, f"whether index {name} is the observed one {self._decides()}")
            return action
        if action.if_not_exists:
            return Work(
                table=action.table,
                kind="index is there",
                column=name,
                concurrently=action.concurrently,
            )
        text = f"PostgreSQL refuses a second relation {name}, which the profile has"
        self._leave_open(self._tables_of(action.table), text)
        return action

    def _renamed(self, action: actions.Rename) -> Action | None:
        """A name that is taken is refused, and the statement does nothing."""
        place = self._names.table(action.old)
        if place is None or action.what == "index":
            return action
        if action.column is not None:
            tables = self._tables_of(action.old)
            if any(action.new in altered.names for altered in tables):
                text = f"PostgreSQL refuses a second column {action.new}, which the profile has"
                self._leave_open(tables, text)
                return None
        elif self._names.is_taken(action.schema or place[0], action.new):
            text = f"PostgreSQL refuses a second relation {action.new}"
            self._say(action.old, text, is_judged=False)
            return None
        return action

    def _decides(self) -> str:
        return f"depends on line {self._blind}, which is not understood"
