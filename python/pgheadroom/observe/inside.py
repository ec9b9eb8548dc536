"""
Where updates may be that no source knows: inside functions, and behind foreign keys.

pg_stat_statements counts by default the statements that clients send, and not those that functions,
triggers and foreign keys run inside them (`pg_stat_statements.track = top`). Which functions update
a table is taken from their texts: its name behind UPDATE or INTO. So it is a hint and no more.
Statements of a body that was parsed when it was made (BEGIN ATOMIC) it counts under no setting
(15.18, 18.6): they have no number, for parsing gives that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pgheadroom.profile.observed import ObservedUpdates
from pgheadroom.sources.recording import Recording

_LARGE_FRAC = 0.05
"""Share of a table's updates from which on it is said where they may be (arbitrary)."""
_NAMED = 3
_TRACK = "pg_stat_statements.track"


@dataclass(frozen=True, slots=True, kw_only=True)
class Inside:
    """
    What may update a table inside a statement; `what` is its kind, `name` its name.

    `is_atomic`: its body is BEGIN ATOMIC, whose statements are counted under no setting.
    """

    what: str
    name: str
    is_atomic: bool = False

    def said(self, *, masked: bool) -> str:
        """For people; a masked profile has no names."""
        return f"a {self.what}" if masked else f"{self.what} {self.name}"


def find_inside(recording: Recording) -> dict[int, tuple[Inside, ...]]:
    """
    What may update each table where nobody counts it; of partitions, their tables' too.

    Only what triggers or counted statements call, and nothing that is counted inside others.

    Args:
        recording: Unmasked, for texts name tables.
    """
    settings = {row["name"]: row["setting"] for row in recording.rows("settings")}
    track = settings.get(_TRACK)
    if track not in ("top", "all") or not recording.answered("statement_counters", "end"):
        return {}
    rows = {row["oid"]: row for row in recording.rows("tables", "shape")}
    found: dict[int, list[Inside]] = {}
    for row in recording.rows("function_calls", "end"):
        if not (row["calls"] or (row["is_trigger"] and row["by_trigger"])):
            continue
        if track == "all" and not row["is_atomic"]:
            continue
        what = "trigger function" if row["is_trigger"] else "function"
        what = "procedure" if row["kind"] == "p" else what
        targets = {(schema, name) for schema, name in row["targets"] or ()}
        for oid, table in rows.items():
            if not targets.isdisjoint(((None, table["name"]), (table["schema"], table["name"]))):
                made = Inside(what=what, name=row["name"], is_atomic=row["is_atomic"])
                found.setdefault(oid, []).append(made)
    for row in recording.rows("foreign_keys") if track == "top" else ():
        if row.get("may_update"):  # not in files of an older script
            made = Inside(what="foreign key", name=row["name"])
            found.setdefault(row["table_oid"], []).append(made)

    def family(oid: int | None) -> list[Inside]:
        own, parent = found.get(oid or 0, []), (rows.get(oid or 0) or {}).get("parent_oid")
        return [*own, *(family(parent) if parent is not None else ())]

    return {oid: tuple(dict.fromkeys(listed)) for oid in rows if (listed := family(oid))}


def hint(updates: ObservedUpdates, inside: Sequence[Inside], *, masked: bool) -> str | None:
    """Where the updates that no source knows may be; None: they are few, or nothing is known."""
    lost = updates.unattributed_frac
    if not inside or lost is None or lost < _LARGE_FRAC:
        return None
    if lost <= (updates.unattributed_resolution or 0.0):
        return None
    hidden = _named([one for one in inside if not one.is_atomic], masked=masked)
    never = _named([one for one in inside if one.is_atomic], masked=masked)
    said = []
    if hidden:
        said.append(
            f"of {hidden}, for {_TRACK} is top, which does not count statements inside others: "
            f"{_TRACK} = all would show it"
        )
    if never:
        said.append(
            f"of {never}, whose body is BEGIN ATOMIC: pg_stat_statements does not count its "
            "statements"
        )
    return f"the updates that no source knows may be {'; or '.join(said)}"


def _named(inside: Sequence[Inside], *, masked: bool) -> str:
    named = list(dict.fromkeys(one.said(masked=masked) for one in inside))
    if len(named) > _NAMED:
        return f"{', '.join(named[:_NAMED])} and {len(named) - _NAMED} more"
    return " and ".join(filter(None, [", ".join(named[:-1]), *named[-1:]]))
