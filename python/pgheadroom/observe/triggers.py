"""
Triggers that may change a row before an update writes it, and which columns they assign.

A trigger that sets `updated_at` assigns it as a statement would: an index over it ends HOT. What a
function in PL/pgSQL may assign is read from its text, and what those of PostgreSQL and its own
extensions assign is known; any other trigger may change what it likes, and is named.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pgheadroom import _core
from pgheadroom.profile.observed import ObservedTrigger
from pgheadroom.sources.recording import AnswerRow, Recording

# Which of its arguments are columns that it assigns (contrib/spi, src/backend/utils/adt): all that
# a trigger of this name in C does to the row.
_ARGUMENTS: Mapping[str, slice] = {
    "suppress_redundant_updates_trigger": slice(0),
    "tsvector_update_trigger": slice(1),
    "tsvector_update_trigger_column": slice(1),
    "moddatetime": slice(1),
    "insert_username": slice(1),
    "autoinc": slice(0, None, 2),
    "check_primary_key": slice(0),
    "check_foreign_key": slice(0),
    "lo_manage": slice(0),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Trigger:
    """
    A trigger of one table, by attribute numbers.

    Attributes:
        of: It runs for updates that name one of these (UPDATE OF); none: for all.
        assigns: What it may assign; None: not known.
    """

    of: tuple[int, ...]
    assigns: tuple[int, ...] | None

    def runs_for(self, named: Sequence[int]) -> bool:
        """
        Whether updates start it, by the columns that they name.

        Not by what a trigger before it has assigned (`TriggerEnabled`,
        src/backend/commands/trigger.c).
        """
        return not self.of or not set(self.of).isdisjoint(named)


def find_triggers(recording: Recording) -> dict[int, tuple[Trigger, ...]]:
    """
    The triggers of each table, in the order in which they run.

    Args:
        recording: Unmasked, for functions name columns.
    """
    numbers: dict[int, dict[str, int]] = {}
    for row in recording.rows("columns"):
        if not row["is_dropped"]:
            numbers.setdefault(row["oid"], {})[str(row["name"])] = row["attnum"]
    made: dict[int, list[Trigger]] = {}
    for row in recording.rows("triggers", "shape"):
        assigns = _assigns(row)
        known = numbers.get(row["oid"], {})
        found = Trigger(
            of=tuple(row["attnums"] or ()),
            assigns=None if assigns is None else _numbered(assigns, known),
        )
        made.setdefault(row["oid"], []).append(found)
    return {oid: tuple(found) for oid, found in made.items()}


def _assigns(row: AnswerRow) -> Sequence[str] | None:
    """Columns by name; None: not known."""
    if row["language"] == "plpgsql" and row["source"] is not None:
        return _core.trigger_assigns(str(row["source"]))
    chosen = _ARGUMENTS.get(str(row["function"])) if row["language"] in ("c", "internal") else None
    return None if chosen is None else [str(text) for text in (row["arguments"] or ())[chosen]]


def _numbered(names: Sequence[str], known: Mapping[str, int]) -> tuple[int, ...]:
    """A name that the table does not have is an error when the trigger gets there."""
    return tuple(sorted(known[name] for name in names if name in known))


def triggers_observed(
    recording: Recording, oid: int, triggers: Sequence[Trigger]
) -> tuple[ObservedTrigger, ...] | None:
    """
    As the profile has them; None where they could not be read.

    Args:
        recording: As it was answered, or masked.
        oid: Of the table.
        triggers: The same, as they were found.
    """
    if not recording.answered("triggers", "shape"):
        return None
    if not triggers:
        return ()  # of most tables: all columns of all tables are gone through below
    names = {
        row["attnum"]: str(row["name"]) for row in recording.rows("columns") if row["oid"] == oid
    }

    def named(numbers: Sequence[int]) -> tuple[str, ...]:
        return tuple(names[number] for number in numbers if number in names)

    rows: Iterator[AnswerRow] = (r for r in recording.rows("triggers", "shape") if r["oid"] == oid)
    return tuple(
        ObservedTrigger(
            name=row["name"],
            function=row["function"],
            of_columns=named(found.of) or None,
            assigns=None if found.assigns is None else named(found.assigns),
        )
        for row, found in zip(rows, triggers, strict=True)
    )
