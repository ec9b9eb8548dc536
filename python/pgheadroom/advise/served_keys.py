"""
Foreign keys whose rows are found by an index: what else goes with it, though nobody has read it.

Source: `ri_Check_Pk_Match` and the actions, src/backend/utils/adt/ri_triggers.c (REL_18_STABLE): a
deleted row's key is looked for in the table that refers to it, with an equality for each column.
"""

from __future__ import annotations

from collections.abc import Sequence

from pgheadroom.profile import Profile, TableProfile
from pgheadroom.profile.observed import ObservedIndex
from pgheadroom.profile.observed_server import ObservedForeignKey
from pgheadroom.quoting import called


def served_text(profile: Profile, table: TableProfile, name: str) -> str:
    """
    What deletes elsewhere would read without an index, behind a blank; empty where it is nothing.

    Args:
        profile: An observed one.
        table: Of it, with `observed`.
        name: Of the index, as in the catalog.
    """
    assert profile.server.observed is not None, "remarks are on observed profiles"
    assert table.observed is not None, "remarks are on observed tables"
    facts = table.observed
    own = {called(facts.schema, facts.name), facts.parent}
    mine = next((one for one in facts.indexes if one.name == name), None)
    if mine is None:
        return ""
    others = [one for one in facts.indexes if one.name != name]
    found = [
        key
        for key in profile.server.observed.foreign_keys or ()
        if called(key.schema, key.table) in own
        and _serves(mine, key.columns)
        and not any(_serves(other, key.columns) for other in others)
    ]
    return _text(name, found)


def _serves(index: ObservedIndex, columns: Sequence[str]) -> bool:
    """Whether all rows of a key are found by it. One with a predicate may not have them."""
    first = index.columns[: len(columns)]
    return index.method in ("btree", "hash") and index.predicate is None and {*first} == {*columns}


def _text(index: str, keys: Sequence[ObservedForeignKey]) -> str:
    if not keys:
        return ""
    names = ", ".join(key.name for key in keys)
    tables = sorted({called(key.references_schema, key.references) for key in keys})
    noun = "a foreign key" if len(keys) == 1 else "foreign keys"
    return (
        f" {index} serves {noun} ({names}): without it each row deleted from {' or '.join(tables)} "
        "reads this whole table."
    )
