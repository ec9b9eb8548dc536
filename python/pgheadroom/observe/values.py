"""
Which columns updates really change: the same rows, read before the interval and after it.

An assigned column need not change. `UPDATE ... SET a = $1, b = $2, ...` of every column is how many
frameworks write, and neither statements nor counters say which values were new. Rows whose xmin is
another one after the interval were written in it; a column that differs in none of so many of them
is kept by nearly all updates.

That says how many bytes an update logs, not whether a column ever changes: one that comes back to
its value is the same before and after. So it is asked of columns alone that no index reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pgheadroom.profile.observed import ObservedValues
from pgheadroom.sources.recording import AnswerRow

WRITTEN_MIN = 300
"""
Written rows without a change from which on a column is taken as kept.

With 95 % certainty at most one of a hundred rows that are written so differs (three in 300).
"""

_DIGITS = 5  # of a value's hash in `row_values`
_UNREAD = "?" * _DIGITS


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueChanges:
    """
    What became of the values of rows that were read twice.

    Attributes:
        rows: Read both times.
        written: Of these, written in the interval.
        read: Of the written ones, those whose value was read both times, by attribute number.
        changed: Of those, how many have another value, by attribute number.
    """

    rows: int
    written: int
    read: Mapping[int, int]
    changed: Mapping[int, int]

    def keeps(self, attnum: int, frac: float) -> bool:
        """
        Whether updates keep a column.

        Args:
            attnum: Of the column.
            frac: The part of the explained updates that assign it: of as many of the written rows
                it was assigned.
        """
        return not self.changed.get(attnum, 1) and self.read[attnum] * frac >= WRITTEN_MIN

    def observed(self, names: Mapping[int, str]) -> ObservedValues:
        """For the profile, by the columns' names."""
        return ObservedValues(
            rows=self.rows,
            written=self.written,
            changed={
                names[number]: count for number, count in self.changed.items() if number in names
            },
        )


def read_values(before: AnswerRow | None, after: AnswerRow | None) -> ValueChanges | None:
    """
    Compare two readings of a table.

    Args:
        before: A row of the query `row_values` before the interval.
        after: One after it.

    Returns:
        None without two readings of one file, or where no row is in both.
    """
    if before is None or after is None:
        return None
    if any(before[name] != after[name] for name in ("attnums", "filenode")):
        return None  # another shape, or a rewrite, which gives rows a new xmin
    first = {key: (xmin, hashes) for key, xmin, hashes in before["read"] or ()}
    rows = 0
    attnums = [int(number) for number in after["attnums"]]
    read, changed = dict.fromkeys(attnums, 0), dict.fromkeys(attnums, 0)
    pairs = []
    for key, xmin, hashes in after["read"] or ():
        found = first.get(key)
        if found is None:
            continue
        rows += 1
        if found[0] != xmin:
            pairs.append((found[1], hashes))
    for old, new in pairs:
        for place, attnum in enumerate(attnums):
            here = slice(place * _DIGITS, (place + 1) * _DIGITS)
            if _UNREAD in (old[here], new[here]):
                continue
            read[attnum] += 1
            changed[attnum] += old[here] != new[here]
    if not rows:
        return None
    return ValueChanges(rows=rows, written=len(pairs), read=read, changed=changed)
