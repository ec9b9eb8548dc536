"""
What belongs to an index beside its definition, and goes with it: a comment, statistics targets.

`pg_get_indexdef` has neither (`pg_get_indexdef_worker`, ruleutils.c); pg_dump writes them as
statements of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pgheadroom.plan.remedies import PlannedIndex
from pgheadroom.quoting import shown_literal

STATISTICS_MAX = 10_000
"""MAX_STATISTICS_TARGET, statistics.h."""


def marks_again(
    name: str, comment: str | None, statistics: Mapping[str, int] | None
) -> tuple[str, ...]:
    """
    Statements that give an index its comment and statistics targets.

    Args:
        name: Of the index, with its schema, quoted.
        comment: None where it has none.
        statistics: Targets by the number of the column.
    """
    made = [
        f"ALTER INDEX {name} ALTER COLUMN {column} SET STATISTICS {target}"
        for column, target in sorted((statistics or {}).items(), key=lambda one: int(one[0]))
    ]
    if comment is not None:
        made.append(f"COMMENT ON INDEX {name} IS {shown_literal(comment)}")
    return tuple(made)


def has_marks(index: PlannedIndex, row: Mapping[str, Any]) -> bool:
    """Whether the index that was found (remedy_index.sql) has what the planned one had."""
    targets: Mapping[str, int] = row["statistics"] or {}
    return index.comment in (None, row["comment"]) and all(
        targets.get(column) == target for column, target in (index.statistics or {}).items()
    )


def wrong_marks(index: PlannedIndex) -> str | None:
    """What about a file's comment and targets cannot be."""
    for column, target in (index.statistics or {}).items():
        if not (column.isascii() and column.isdigit() and 0 <= target <= STATISTICS_MAX):
            return f"{target} is no statistics target of column {column!r}"
    if index.comment is not None and "\0" in index.comment:
        return "its comment holds a NUL byte"
    return None
