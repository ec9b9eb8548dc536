"""
How full a table's pages are, as kinds of pages of the profile.

Rows count, for what dead rows take is room once their page is pruned. Where rows were sampled,
whole pages were, and their fill is known one by one; elsewhere only the mean page is, by the sizes
in the catalog. Rows have many widths: a page's bytes are counted in rows of the mean one.

    full       as a load leaves it: no room for one more row, where all have one length; else none
               for one among the longest twentieth
    others     as many rows of `rows_per_page` as the page has of those that a full one would have
    redirects  of the line pointers before a page's last row that are of no row, at most one a row;
               how many of them are redirects in all is known by pageinspect, else by HOT updates
    unused     the others of these, where they are more than a load's fillers leave

With h HOT updates a row, any as likely, 1 - exp(-h) of the rows had one.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pgheadroom import _core
from pgheadroom.profile.pages import (
    FILLED_FRAC_MIN,
    OfLoad,
    loaded_rows_per_page,
    redirects_max,
)
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
_CUT_PAGES_MIN = 1000  # REL_TRUNCATE_MINIMUM, src/backend/access/heap/vacuumlazy.c
_CUT_FRAC_MIN = 1 / 16  # REL_TRUNCATE_FRACTION
_TRUE = ("true", "on", "yes", "1")
_ROUNDING = 1e-6
_REDIRECTS_ALL_FROM = 0.75  # of the line pointers of no row; arbitrary
_GAPS_MIN = 0.5  # of a row's bytes, line pointers of no row, else they are not said; arbitrary


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenPages:
    """Kinds of pages, rows of a full one, and by what they are known."""

    kinds: tuple[PageKind, ...]
    rows_per_page: int
    evidence: str


@dataclass(frozen=True, slots=True)
class Redirected:
    """The share of a table's rows that are behind a redirect, and by what it is known."""

    rows_frac: float
    evidence: str


def redirected(counters: AnswerRow | None, page_headers: AnswerRow | None) -> Redirected | None:
    """
    How many rows are behind a redirected line pointer; None where nothing says it.

    Args:
        counters: A row of the query `table_counters`.
        page_headers: A row of the query `page_headers`, None without pageinspect.
    """
    if page_headers is not None and page_headers.get("redirects") is not None:
        redirects, others = int(page_headers["redirects"]), int(page_headers["others"])
        if redirects + others > 0:
            pages = int(page_headers["pages"])
            return Redirected(
                redirects / (redirects + others),
                f"measured by the line pointers of {pages:,} pages (pageinspect)",
            )
    if counters is None or not counters.get("n_live_tup"):
        return None
    updates = int(counters.get("n_tup_hot_upd") or 0)
    return Redirected(
        1 - math.exp(-updates / int(counters["n_live_tup"])),
        f"estimated by {updates:,} HOT updates (n_tup_hot_upd), any row as likely, and by the line "
        "pointers that are of no row",
    )


@dataclass(frozen=True, slots=True)
class _Pages:
    """
    A share of the pages: rows, redirects and unused line pointers of one, and the room beside.

    `room` is for so many further versions.
    """

    share: float
    rows: float
    redirects: float
    unused: float
    room: float

    def with_others(self, others: _Pages) -> _Pages:
        """Both as one kind."""
        share = self.share + others.share

        def mean(one: float, other: float) -> float:
            return (one * self.share + other * others.share) / share

        return _Pages(
            share,
            mean(self.rows, others.rows),
            mean(self.redirects, others.redirects),
            mean(self.unused, others.unused),
            mean(self.room, others.room),
        )


def seen_pages(
    table: TableProfile,
    sample: AnswerRow | None,
    pages: int,
    chains: Redirected | None = None,
) -> SeenPages | None:
    """
    How full the pages are; None where they are as a load leaves them, or where nothing says it.

    Args:
        table: Of the profile, with its columns' widths.
        sample: A row of the query `sample`, None without one.
        pages: Of the table.
        chains: How many rows are behind a redirect.
    """
    if table.rows == 0 or pages == 0:
        return None
    if sample is None or not sample.get("rows"):
        return _mean_page(table, pages)
    if not sample.get("fills"):
        return None
    full = _FullPage(table, sample)
    seen = Counter({(int(fill[0]), _gaps(fill)): int(fill[1]) for fill in sample["fills"]})
    seen[0, 0] += _empty_pages(sample, _cut_off(table, sample))
    share = _share_of_gaps(seen, chains)
    total = seen.total()
    others = sum(count for (rows, _), count in seen.items() if not full.is_full(rows))
    gaps_in_all = sum(gaps * n for (_, gaps), n in seen.items())
    # One of the others may be the last page.
    is_full = others - 1 <= _OTHERS_MIN * total
    if is_full and gaps_in_all / total * _LINE_POINTER_BYTES < _GAPS_MIN * full.row_bytes:
        return None
    per_page = loaded_rows_per_page(table)
    found = [
        full.pages(count / total, rows, (gaps, min(rows, gaps * share)), per_page)
        for (rows, gaps), count in seen.items()
        if count
    ]
    drawn = float(sample["drawn_percent"])
    evidence = "measured" if drawn >= 100 else "sampled"
    said = f"{evidence}: rows on {total:,} of {pages:,} pages; what dead rows take counts as room"
    made = _seen(found, (per_page, table.fillfactor, len(table.columns)), said)
    if chains is not None and any(kind.redirects for kind in made.kinds):
        return replace(made, evidence=f"{said}; redirects {chains.evidence}")
    return made


def _gaps(fill: Sequence[int]) -> int:
    """Line pointers before a page's last row that are of no row; none in older recordings."""
    return int(fill[2]) if len(fill) > 2 else 0


def _share_of_gaps(seen: Mapping[tuple[int, int], int], chains: Redirected | None) -> float:
    """
    How many line pointers of no row are redirects.

    The others are unused. Where there are few of these, all count as redirects: they take the same
    room.

    Args:
        seen: Pages by their rows, and their line pointers of no row.
        chains: How many rows are behind a redirect.
    """
    rows = sum(rows * count for (rows, _), count in seen.items())
    gaps = sum(gaps * count for (_, gaps), count in seen.items())
    if chains is None or gaps == 0:
        return 0.0
    share = chains.rows_frac * rows / gaps
    return 1.0 if share > _REDIRECTS_ALL_FROM else share


class _FullPage:
    """What a load would leave, of rows as they are."""

    def __init__(self, table: TableProfile, sample: AnswerRow) -> None:
        count = float(sample["rows"])
        mean = float(sample["tuple_sum"]) / count
        variance = max(float(sample["tuple_squares"]) / count - mean * mean, 0.0)
        self.row_bytes = float(sample["used_sum"]) / count
        self.fillfactor = table.fillfactor
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

    def pages(self, share: float, rows: int, gaps: tuple[int, float], per_page: int) -> _Pages:
        """
        A share of the pages, of a full `per_page`.

        Args:
            share: Of the pages.
            rows: As many mean rows as have the bytes of a page's.
            gaps: Line pointers of no row, and how many of them are redirects.
            per_page: Rows of a full page.
        """
        all_gaps, redirects = gaps
        found = self.rows_of(rows, per_page)
        unused = max(all_gaps - redirects, 0.0)
        reserve = PAGE_BYTES * (100 - self.fillfactor) // 100
        left = max(_USABLE_BYTES - reserve - per_page * self.row_bytes, 0.0) + reserve
        left += (per_page - found) * self.row_bytes
        left -= (redirects + unused) * _LINE_POINTER_BYTES
        room = _room(left, self.row_bytes, unused)
        return _Pages(share, found, redirects, unused, room)


def _room(free_bytes: float, row_bytes: float, unused: float) -> int:
    """
    How many further versions a page takes.

    Unused line pointers are taken first, but the room for one more has to be there all the same.

    Source: `PageGetHeapFreeSpace`, src/backend/storage/page/bufpage.c (REL_18_STABLE).
    """
    into_unused = (free_bytes - _LINE_POINTER_BYTES) / (row_bytes - _LINE_POINTER_BYTES)
    if into_unused >= unused:
        into_unused = (free_bytes + unused * _LINE_POINTER_BYTES) / row_bytes
    return max(math.floor(into_unused + _ROUNDING), 0)


def _cut_off(table: TableProfile, sample: AnswerRow) -> float:
    """
    Pages behind the last row, which the next VACUUM cuts off, as that of a load does.

    Source: `should_attempt_truncation`, src/backend/access/heap/vacuumlazy.c (REL_18_STABLE).
    """
    last, pages = sample.get("last_page"), int(sample["table_pages"])
    if last is None or table.reloptions.get("vacuum_truncate", "true") not in _TRUE:
        return 0.0
    share = float(sample["drawn_percent"]) / 100
    between = (1 - share) / share  # pages behind it that the sample passed over, on average
    behind = pages - 1 - int(last) - between
    if behind <= _EMPTY_DEVIATIONS * between:
        return 0.0
    return behind if behind >= min(_CUT_PAGES_MIN, pages * _CUT_FRAC_MIN) else 0.0


def _empty_pages(sample: AnswerRow, cut_off: float) -> int:
    """Pages of the sample that have no row, which it does not show, without those at the end."""
    share = float(sample["drawn_percent"]) / 100
    drawn = share * (int(sample["table_pages"]) - cut_off)
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
    shares = ((below, 1 - part), (below + 1, part))
    return _seen(
        [_Pages(share, rows, 0.0, 0.0, per_page - rows) for rows, share in shares if share > 0],
        (per_page, table.fillfactor, len(table.columns)),
        f"estimated: {table.rows:,} rows on {pages:,} pages, all alike; rows were not read",
    )


def _seen(found: Sequence[_Pages], of_load: OfLoad, evidence: str) -> SeenPages:
    kinds: defaultdict[tuple[int, int, int], float] = defaultdict(float)
    per_page = of_load[0]
    for pages in _enough(_merged(found), per_page):
        rows = round(pages.rows)
        redirects = min(round(pages.redirects), redirects_max(of_load, rows))
        unused = min(round(pages.unused), _core.unused_max(of_load, rows, redirects))
        said = unused if unused > per_page - rows - redirects else 0
        kinds[rows, redirects, said] += pages.share
    made = tuple(
        PageKind(pages_frac=round(share, 6), rows=rows, redirects=redirects, unused=unused)
        for (rows, redirects, unused), share in sorted(kinds.items(), reverse=True)
    )
    return SeenPages(kinds=made, rows_per_page=per_page, evidence=evidence)


def _merged(found: Sequence[_Pages]) -> list[_Pages]:
    """At most so many kinds: neighbours whose rooms differ least, by their logarithm, are one."""
    alike: dict[tuple[float, float], _Pages] = {}
    for pages in found:
        key = (pages.room, pages.rows)
        alike[key] = pages.with_others(alike[key]) if key in alike else pages
    left = [alike[key] for key in sorted(alike)]

    def apart(n: int) -> float:
        one, other = left[n : n + 2]
        a, b = one.share, other.share
        return a * b / (a + b) * math.log((1 + one.room) / (1 + other.room)) ** 2

    while len(left) > _KINDS_MAX:
        n = min(range(len(left) - 1), key=apart)
        left[n : n + 2] = [left[n].with_others(left[n + 1])]
    return left


def _enough(found: Sequence[_Pages], per_page: int) -> list[_Pages]:
    """The same with fewer empty pages, where a profile does not hold so many."""
    mean = sum(pages.rows * pages.share for pages in found)
    wanted = 1.1 * FILLED_FRAC_MIN * per_page
    if mean >= wanted:
        return list(found)
    made = [replace(pages, share=pages.share * wanted / mean) for pages in found if pages.rows > 0]
    rest = 1 - sum(pages.share for pages in made)
    return [*made, _Pages(rest, 0.0, 0.0, 0.0, per_page)]
