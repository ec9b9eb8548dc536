"""
An index as the catalogs have it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pgheadroom.sources.recording import AnswerRow


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexRow:
    """An index as the catalogs have it; `depends` are the columns whose change it notices."""

    row: AnswerRow
    definition: AnswerRow | None
    keys: tuple[int, ...]
    included: tuple[int, ...]
    depends: tuple[int, ...]

    @property
    def is_plain(self) -> bool:
        """Over columns alone, all rows."""
        return not self.row["has_expressions"] and not self.row["has_predicate"]

    def blocks_hot(self, major: int) -> bool:
        """Whether a change of one of its columns ends HOT."""
        return bool(self.row["is_live"]) and not (self.row["is_summarizing"] and major >= 16)


def read_index(row: AnswerRow, definition: AnswerRow | None, attnums: Sequence[int]) -> IndexRow:
    """
    Put an index together.

    Args:
        row: Of the query `indexes`.
        definition: Of `index_definitions`, for one with expressions or a predicate.
        attnums: All columns of the table, which an expression over the whole row stands for.
    """
    count = int(row["key_count"])
    listed = [int(number) for number in row["attnums"]]
    named = {int(number) for number in row["depends_on"] or ()}
    # An index without a plain column depends on its whole table in any case (index_create,
    # src/backend/catalog/index.c); else the whole row stands in its expressions.
    if 0 in named and (any(number > 0 for number in listed) or named == {0}):
        named = set(attnums)
    depends = {number for number in (*listed, *named) if number > 0}
    return IndexRow(
        row=row,
        definition=definition,
        keys=tuple(listed[:count]),
        included=tuple(listed[count:]),
        depends=tuple(sorted(depends)),
    )
