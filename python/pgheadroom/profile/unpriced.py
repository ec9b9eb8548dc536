"""
Indexes whose cost nobody prices: GiST, SP-GiST, GIN of unknown keys; one wording for all.

In an observed profile they stand as B-trees over the same columns, GINs too where nobody has
counted their keys. Which updates they end HOT for is right so; their WAL and their sizes are
another method's. In a profile that somebody wrote, and where an advice plays an observed table,
they stand as what they are, end HOT as they do, and their pages and WAL are in no figure of the
twin.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from pgheadroom import _core
from pgheadroom.profile.model import Profile
from pgheadroom.profile.stating import not_evaluated
from pgheadroom.profile.tables import IndexProfile, TableProfile

PRICED = ("btree", "brin", "hash")
"""Access methods that the twin plays as what they are; GIN where it knows the keys."""

_UNKNOWN_KEYS = "unknown"


def is_played(index: IndexProfile, table: TableProfile) -> bool:
    """Whether the twin plays an index as what it is: `gin_operators` in profile/index_load.rs."""
    if index.method != "gin":
        return index.method in PRICED
    # What is stated of an expression that the twin evaluates has no effect.
    stated = {
        one.expression: one
        for one in index.stated
        if not_evaluated(one.expression, table.columns) is not None
    }
    # Of a stated value of one element nobody says how many it really has.
    if any(text in stated and stated[text].elements is None for text in index.expressions):
        return False
    keys = [table.column(name).type for name in index.columns]
    # What the twin evaluates itself are strings, if it is of a type that GIN has.
    keys += [stated[text].type if text in stated else "text" for text in index.expressions]
    named = [*index.opclass, *("" for _ in keys)]
    return all(_core.knows_gin_keys(key, name) for key, name in zip(keys, named, strict=False))


def unpriced_of(table: TableProfile) -> tuple[str, ...]:
    """
    An observed table's indexes of other methods, each as `name (method)`.

    So are hash indexes and GINs that stand as B-trees: of a GIN whose keys nobody has counted, and
    in profiles of before they were priced.
    """
    listed = () if table.observed is None else table.observed.indexes
    found = [i for i in table.indexes if i.method in ("hash", "gin") and is_played(i, table)]
    played = {(i.method, name) for i in found for name in (i.name, i.name.rpartition(".")[2])}

    def is_other(method: str, name: str) -> bool:
        if method in ("hash", "gin"):
            return (method, name) not in played
        return method not in PRICED

    return tuple(
        f"{found.name} ({found.method})" for found in listed if is_other(found.method, found.name)
    )


def as_they_are(table: TableProfile, *, gins: bool = True) -> TableProfile:
    """
    An observed table whose indexes of other methods no longer stand as B-trees.

    Args:
        table: With `observed`.
        gins: Play those whose keys are known; else none of them has pages.
    """
    listed = () if table.observed is None else table.observed.indexes
    methods = {found.name: found.method for found in listed}
    made: list[IndexProfile] = []
    for index in table.indexes:
        name = index.name if index.name in methods else index.name.rpartition(".")[2]
        method: Any = methods.get(name, PRICED[0])
        if method in PRICED or index.is_key or (gins and index in played_gins(table)):
            made.append(index)
            continue
        # How many keys its rows have was not observed.
        opclass = (_UNKNOWN_KEYS,) if method == "gin" else ()
        made.append(replace(index, method=method, opclass=opclass))
    return replace(table, indexes=tuple(made))


def played_gins(table: TableProfile) -> tuple[IndexProfile, ...]:
    """GINs of a table that the twin plays."""
    return tuple(i for i in table.indexes if i.method == "gin" and is_played(i, table))


def left_out(table: TableProfile) -> tuple[str, ...]:
    """A table's own indexes that are played as what they are and not priced, `name (method)`."""
    return tuple(
        f"{index.name} ({index.method})" for index in table.indexes if not is_played(index, table)
    )


def left_out_gins(profile: Profile) -> tuple[str, ...]:
    """GINs of a profile whose pages and WAL are in no figure, for their keys are not known."""
    return tuple(
        index.name
        for table in profile.tables
        for index in table.indexes
        if index.method == "gin" and not is_played(index, table)
    )


def said_left_out(names: Iterable[str]) -> str:
    """What is in no figure of indexes that are played as what they are; empty where all is."""
    listed = list(names)
    if not listed:
        return ""
    one = len(listed) == 1
    return (
        f"{', '.join(listed)} {'is' if one else 'are'} not priced: which updates "
        f"{'it ends' if one else 'they end'} HOT for is played, "
        f"{'its' if one else 'their'} own pages and WAL are in no figure"
    )


def said_unpriced(names: Iterable[str]) -> str:
    """What that means, as a sentence; empty where all are priced."""
    listed = list(names)
    if not listed:
        return ""
    one = len(listed) == 1
    return (
        f"{', '.join(listed)} {'is' if one else 'are'} not priced: WAL and size are those of "
        f"{'a B-tree' if one else 'B-trees'} over the same columns"
    )
