"""
What a server counted, kept over hours and days: `watch` writes it, `advise` and `doctor` read it.

    kept.py     the file (SQLite): moments, what was answered at each, how long it is kept
    rows.py     the answers' form in it: rows that are equal to the hour's first are not repeated
    span.py     two of its moments, chosen by times as people write them
"""

from pgheadroom.history.kept import History, HistoryOrigin, KeptMoment
from pgheadroom.history.span import HistorySpan, span_of

__all__ = ["History", "HistoryOrigin", "HistorySpan", "KeptMoment", "span_of"]
