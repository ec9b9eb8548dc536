"""
Rows as CSV, for every report that has it.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable


def written(head: Iterable[object], rows: Iterable[Iterable[object]]) -> str:
    """
    A heading and rows; what is missing is an empty field.

    Lines end with a line feed, not as RFC 4180 has it, so that the usual Unix tools work, and no
    spreadsheet takes a text for a formula.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for row in (head, *rows):
        writer.writerow([_no_formula(item) if isinstance(item, str) else item for item in row])
    return out.getvalue()


def _no_formula(content: str) -> str:
    return f"'{content}" if content[:1] in ("=", "+", "-", "@", "\t", "\r") else content
