"""
Indexes whose cost nobody prices: methods that are neither B-tree nor BRIN, one wording for all.

In an observed profile they stand as B-trees over the same columns. Which updates they end HOT for
is right so; their WAL and their sizes are another method's. In a profile that somebody wrote they
stand as what they are, end HOT as they do, and their pages and WAL are in no figure.
"""

from __future__ import annotations

from collections.abc import Iterable

from pgheadroom.profile.tables import TableProfile

PRICED = ("btree", "brin")
"""Access methods that the twin plays as what they are."""


def unpriced_of(table: TableProfile) -> tuple[str, ...]:
    """An observed table's indexes of other methods, each as `name (method)`."""
    listed = () if table.observed is None else table.observed.indexes
    return tuple(f"{found.name} ({found.method})" for found in listed if found.method not in PRICED)


def said_left_out(tables: Iterable[TableProfile]) -> str:
    """What is in no figure of a profile's own indexes, as a sentence; empty where all are."""
    listed = [
        f"{index.name} ({index.method}) of {table.name}"
        for table in tables
        for index in table.indexes
        if index.method not in PRICED
    ]
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
