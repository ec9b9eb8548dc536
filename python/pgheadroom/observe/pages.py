"""
How full a table's pages are, as kinds of pages of the profile.

Rows count, for what dead rows take is room once their page is pruned. Where rows were sampled,
whole pages were, and their fill is known one by one; elsewhere only the mean page is, by the sizes
in the catalog. Rows have many widths: a page's bytes are counted in rows of the mean one.

    full       as a load leaves it: no room for one more row, where all have one length; else none
               for one among the longest twentieth
    others     as many rows of `rows_per_page` as the page has of those that a full one would have
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from pgheadroom import _core
from pgheadroom.profile.pages import FILLED_FRAC_MIN, loaded_rows_per_page
from pgheadroom.profile.tables import PageKind, TableProfile
from pgheadroom.sources.recording import AnswerRow
from pgheadroom.units import PAGE_BYTES

_KINDS_MAX = 8  # of which the HOT share of aged tables is as with all of them; arbitrary
_OTHERS_MIN = 0.03  # of the pages are not full, else the table is as a load leaves it; arbitrary
_MEAN_FRAC_MAX = 0.93  # of a full page's rows, where only the mean page is known; arbitrary
_MEAN_PAGES_MIN = 20  # fewer are mostly the last one; arbitrary
_USABLE_BYTES = PAGE_BYTES - 24  # SizeOfPageHeaderData
_LINE_POINTER_BYTES = 4
_VARIES_FROM = 0.01  # deviation of the rows' lengths over their mean; arbitrary
_EMPTY_DEVIATIONS = 4.0  # of the number of pages that a sample draws


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenPages:
    """Kinds of pages, rows of a full one, and by what they are known."""

    kinds: tuple[PageKind, ...]
    rows_per_page: int
    evidence: str


def seen_pages(table: TableProfile, sample: AnswerRow | None, pages: int) -> SeenPages | None:
    """
    How full the pages are; None where they are as a load leaves them, or where nothing says it.

    Args:
        table: Of the profile, with its columns' widths.
        sample: A row of the query `sample`, None without one.
        pages: Of the table.
    """
    if table.rows == 0 or pages == 0:
        return None
    if sample is None or not sample.get("rows"):
        return _mean_page(table, pages)
    if not sample.get("fills"):
        return None
    full = _FullPage(table, sample)
    seen = Counter({int(rows): int(count) for rows, count in sample["fills"]})
    seen[0] += _empty_pages(sample)
    total = seen.total()
    others = sum(count for rows, count in seen.items() if not full.is_full(rows))
    # One of them may be the last page.
    if others - 1 <= _OTHERS_MIN * total:
        return None
    per_page = loaded_rows_per_page(table)
    found: Counter[int] = Counter()
    for rows, count in seen.items():
        found[full.rows_of(rows, per_page)] += count
    drawn = float(sample["drawn_percent"])
    evidence = "measured" if drawn >= 100 else "sampled"
    return _seen(
        {rows: count / total for rows, count in found.items() if count},
        per_page,
        f"{evidence}: rows on {total:,} of {pages:,} pages; what dead rows take counts as room",
    )


class _FullPage:
    """What a load would leave, of rows as they are."""

    def __init__(self, table: TableProfile, sample: AnswerRow) -> None:
        count = float(sample["rows"])
        mean = float(sample["tuple_sum"]) / count
        variance = max(float(sample["tuple_squares"]) / count - mean * mean, 0.0)
        self.row_bytes = float(sample["used_sum"]) / count
        reserve = PAGE_BYTES * (100 - table.fillfactor) // 100
        room = _USABLE_BYTES - reserve
        self.varies = variance**0.5 > _VARIES_FROM * mean
        if not self.varies:
            self.rows = float(_core.rows_per_page(round(mean), table.fillfactor))
            self.least = self.rows
            return
        # The row that did not fit: longer ones do so more often.
        missed = (variance / (mean * mean) + 1) / 2
        self.rows = max(room / self.row_bytes - missed, 1.0)
        longest = float((sample.get("tuple_percentiles") or [mean])[-1])
        longest = math.ceil(longest / 8) * 8 + _LINE_POINTER_BYTES
        self.least = (room - longest) / self.row_bytes - 0.5  # rounded to whole rows

    def is_full(self, rows: int) -> bool:
        """Whether a page with the bytes of so many mean rows is as a load leaves it."""
        return rows >= self.least

    def rows_of(self, rows: int, per_page: int) -> int:
        """The rows of such a page where a full one has `per_page`."""
        if self.is_full(rows):
            return per_page
        most = per_page - 1 if per_page > 1 else per_page
        least = 1 if rows > 0 else 0
        return max(least, min(most, round(rows * per_page / self.rows)))


def _empty_pages(sample: AnswerRow) -> int:
    """Pages of the sample that have no row, which it does not show."""
    share = float(sample["drawn_percent"]) / 100
    drawn = share * int(sample["table_pages"])
    missing = drawn - int(sample["pages"])
    by_chance = math.sqrt(max(drawn * (1 - share), 0.0))
    return round(missing) if missing > max(_EMPTY_DEVIATIONS * by_chance, 0.5) else 0


def _mean_page(table: TableProfile, pages: int) -> SeenPages | None:
    per_page = loaded_rows_per_page(table)
    mean = table.rows / pages
    if pages < _MEAN_PAGES_MIN or mean > _MEAN_FRAC_MAX * per_page:
        return None
    below = math.floor(mean)
    part = mean - below
    return _seen(
        {rows: share for rows, share in ((below, 1 - part), (below + 1, part)) if share > 0},
        per_page,
        f"estimated: {table.rows:,} rows on {pages:,} pages, all alike; rows were not read",
    )


def _seen(shares: Mapping[int, float], per_page: int, evidence: str) -> SeenPages | None:
    shares = _enough(_merged(shares, per_page), per_page)
    kinds = tuple(
        PageKind(pages_frac=round(share, 6), rows=rows)
        for rows, share in sorted(shares.items(), reverse=True)
    )
    return SeenPages(kinds=kinds, rows_per_page=per_page, evidence=evidence)


def _merged(shares: Mapping[int, float], per_page: int) -> dict[int, float]:
    """At most so many kinds: neighbours whose rooms differ least, by their logarithm, are one."""
    left = sorted((float(rows), share) for rows, share in shares.items())

    def apart(n: int) -> float:
        (low, a), (high, b) = left[n], left[n + 1]
        return a * b / (a + b) * math.log((1 + per_page - low) / (1 + per_page - high)) ** 2

    while len(left) > _KINDS_MAX:
        n = min(range(len(left) - 1), key=apart)
        (low, a), (high, b) = left[n], left[n + 1]
        left[n : n + 2] = [((low * a + high * b) / (a + b), a + b)]
    found: dict[int, float] = {}
    for rows, share in left:
        found[round(rows)] = found.get(round(rows), 0.0) + share
    return found


def _enough(shares: Mapping[int, float], per_page: int) -> dict[int, float]:
    """The same with fewer empty pages, where a profile does not hold so many."""
    mean = sum(rows * share for rows, share in shares.items())
    wanted = 1.1 * FILLED_FRAC_MIN * per_page
    if mean >= wanted:
        return dict(shares)
    found = {rows: share * wanted / mean for rows, share in shares.items() if rows}
    found[0] = 1 - sum(found.values())
    return found
