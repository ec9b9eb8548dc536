"""
Indexes over types that profiles do not have, for which others of their stored form stand.
"""

from __future__ import annotations

from pgheadroom.profile.stating import reads
from pgheadroom.profile.tables import IndexProfile, TableProfile
from pgheadroom.profile.unpriced import is_played


def standing_in(table: TableProfile) -> tuple[IndexProfile, ...]:
    """
    Indexes that read columns which stand for others, whose order and equality are not known.

    Included columns are not compared, and methods without a price have no figures.
    """
    other = {column.name for column in table.columns if column.stands_for is not None}
    if not other:
        return ()
    return tuple(
        index
        for index in table.indexes
        if other & _compared(index, table) and is_played(index, table)
    )


def _compared(index: IndexProfile, table: TableProfile) -> set[str]:
    """The columns of its keys and of its predicate."""
    found = set(index.columns)
    for text in (*index.expressions, *filter(None, (index.where,))):
        found |= set(reads(text, table) or ())
    return found
