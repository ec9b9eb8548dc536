"""
Widths of a live table's values, and the names of their types, as a profile has them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from pgheadroom.profile.column_types import EXTENSIONS, SHORT_HEADER_MAX
from pgheadroom.profile.spelling import canonical_type
from pgheadroom.profile.tables import Width
from pgheadroom.sources.recording import AnswerRow

WIDTH_MAX = 1024**2


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnWidth:
    """Stored bytes of a value, header included; the deviation is 0 where it is not known."""

    mean_bytes: float
    deviation_bytes: float
    evidence: str


def catalog_type(row: AnswerRow) -> str | None:
    """The type of a row of the query `columns`, built in or of an extension that profiles know."""
    spelled = str(row["type"])
    if not row["is_user_type"]:
        return canonical_type(spelled)
    name = spelled.rpartition(".")[2]
    return name if name in EXTENSIONS else None


def string_width(width: ColumnWidth) -> Width:
    """
    Payload bytes, all lengths between two alike, as near as can be to the mean and the deviation.

    n neighbouring lengths have a deviation of sqrt((n * n - 1) / 12). Taken as lengths between two
    bounds, 0.47 bytes would be three of them, and a third of the rows longer than any is: by one
    byte, or by eight where a column behind is aligned. None is below 0.
    """

    def payload(stored: float) -> float:
        return max(stored - (1 if stored <= SHORT_HEADER_MAX else 4), 0.0)

    mean = min(payload(width.mean_bytes), WIDTH_MAX)

    def of(lengths: int) -> Width:
        half = min((lengths - 1) / 2, mean, WIDTH_MAX - mean)
        least = round(mean - half)
        return Width(min_bytes=least, max_bytes=min(least + round(2 * half), WIDTH_MAX))

    def miss(found: Width) -> float:
        lengths = found.max_bytes - found.min_bytes + 1
        deviation = math.sqrt((lengths * lengths - 1) / 12)
        off = (found.min_bytes + found.max_bytes) / 2 - mean
        return off**2 + (deviation - width.deviation_bytes) ** 2

    fewer = math.floor(math.sqrt(12 * width.deviation_bytes**2 + 1))
    return min(of(fewer), of(fewer + 1), key=miss)
