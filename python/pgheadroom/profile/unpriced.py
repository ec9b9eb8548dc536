"""
Indexes whose cost nobody prices: of other methods than B-tree, hash and BRIN; one wording for all.

In an observed profile they stand as B-trees over the same columns. Which updates they end HOT for
is right so; their WAL and their sizes are another method's. In a profile that somebody wrote, and
where an advice plays an observed table, they stand as what they are, end HOT as they do, and their
pages and WAL are in no figure of the twin.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from pgheadroom.profile.tables import IndexProfile, TableProfile

PRICED = ("btree", "brin", "hash")
"""Access methods that the twin plays as what they are."""


def unpriced_of(table: TableProfile) -> tuple[str, ...]:
    """
    An observed table's indexes of other methods, each as `name (method)`.

    So are hash indexes that stand as B-trees, as in profiles of before they were priced.
    """
    listed = () if table.observed is None else table.observed.indexes
    played = [index.name for index in table.indexes if index.method == "hash"]
    hashed = {*played, *(name.rpartition(".")[2] for name in played)}

    def is_other(method: str, name: str) -> bool:
        return method not in PRICED or (method == "hash" and name not in hashed)

    return tuple(
        f"{found.name} ({found.method})" for found in listed if is_other(found.method, found.name)
    )


def as_they_are(table: TableProfile) -> TableProfile:
    """An observed table whose indexes of other methods no longer stand as B-trees."""
    listed = () if table.observed is None else table.observed.indexes
    methods = {found.name: found.method for found in listed}
    made: list[IndexProfile] = []
    for index in table.indexes:
        name = index.name if index.name in methods else index.name.rpartition(".")[2]
        method: Any = methods.get(name, PRICED[0])
        is_other = method not in PRICED and not index.is_key
        made.append(replace(index, method=method) if is_other else index)
    return replace(table, indexes=tuple(made))


def left_out(table: TableProfile) -> tuple[str, ...]:
    """A table's own indexes that are played as what they are and not priced, `name (method)`."""
    return tuple(
        f"{index.name} ({index.method})" for index in table.indexes if index.method not in PRICED
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
