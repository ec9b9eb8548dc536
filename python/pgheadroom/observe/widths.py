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
    """Payload bytes, uniform with the same mean and deviation as far as it does not end at 0."""

    def payload(stored: float) -> float:
        return max(stored - (1 if stored <= SHORT_HEADER_MAX else 4), 0.0)

    mean = min(payload(width.mean_bytes), WIDTH_MAX)
    half = min(width.deviation_bytes * math.sqrt(3), mean, WIDTH_MAX - mean)
    return Width(min_bytes=round(mean - half), max_bytes=round(mean + half))
