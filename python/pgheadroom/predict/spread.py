"""
Several runs of the twin become one outcome: exact numbers stay, the rest gets intervals.

An interval is meant to hold what one run of a server gives, not the mean of many: the spread of
the twin's runs (Student's t, for a new observation), and the least that chance alone makes of
updates that miss HOT, added as variances. By a simulated clock, of samples and with one client it
is the error of the model instead of chance.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pgheadroom.outcome import KEYS, SHARES, SUMMED, Outcome, Value, mid, middle, outcome_of
from pgheadroom.predict.chance import CHANCE_LEAST, LEVEL, NORMAL, mean_of, students_t
from pgheadroom.predict.least_pages import LeastPages, together
from pgheadroom.profile import Profile
from pgheadroom.profile.standing_in import standing_in
from pgheadroom.types import Interval
from pgheadroom.units import PAGE_BYTES

_STEADY = ("n_tup_ins", "n_tup_upd", "n_tup_del")
"""What the statements decide: equal in all of the twin's runs, it is taken as certain."""

_IMAGE_FRAC = 0.02  # recorded profiles (golden/compressed) were off by 1.04 % at most

# Updates that miss HOT are seldom where there is room: the twin's runs may all have none, or as
# many, by chance. Their number varies at least as a binomial one does; of none that were seen half
# a one is expected (Jeffreys' prior), and of more than a few the runs' own spread tells. What one
# more makes of each figure: a version that comes to another page and an entry in an index, three
# records, and the images of two pages where images are logged.
_CHANCE_MOST = 4.0
_OF_A_MISS: dict[str, float] = {
    "n_tup_hot_upd": 1,
    "n_tup_newpage_upd": 1,
    "heap_pages": 0.02,
    "pages_modified": 2,
    "wal_records": 3,
    "wal_bytes": 200,
    "wal_bytes_per_update": 200,
    "wal_nonfpi_bytes_per_update": 200,
}
_WITH_IMAGES_OF_A_MISS: Mapping[str, float] = _OF_A_MISS | {
    "wal_fpi": 2,
    "wal_fpi_bytes": 2 * PAGE_BYTES,
    "wal_bytes": 200 + 2 * PAGE_BYTES,
    "wal_bytes_per_update": 200 + 2 * PAGE_BYTES,
}
_PER_UPDATE = ("wal_bytes_per_update", "wal_nonfpi_bytes_per_update")

# What is left beside: of the figures that count pages and WAL, in 212 runs of 18.4, 16.14 and 15.18
# with 2 to 8 clients (docs/method/clients.md has how many intervals held without it, and with it).
_REST_FRAC = 0.003

# Half-widths of the model's own error at LEVEL where it is not several clients that make a cell
# statistical: values of which little is known, samples, and a simulated clock that says when
# autovacuum and checkpoints take part. Set by 72 proofs of 36 profiles on 18.4 and 16.14.
_MODEL_SHARE = 0.0015
_MODEL_FRAC: Mapping[str, float] = {
    "heap_pages": 0.005,
    "wal_bytes": 0.0125,
    "wal_fpi_bytes": 0.0125,
    "wal_fpi": 0.0125,
    "wal_bytes_per_update": 0.0125,
}
_MODEL_FRAC_ELSE = 0.01
# By the clock twice as wide, about what nine runs were foreseen with (129 of 130 intervals held).
_BY_CLOCK = 2

# Entries of an expression whose values are made of what is stated of them: five indexes, each
# alone, were off by 10 % of all index pages and 0.4 % of the WAL at most (18.4). Of values of which
# nothing is known the runs go from the least to the most, and this much beyond.
_STATED_FRAC: Mapping[str, float] = {"index_pages": 0.15, "pages_modified": 0.05}
_STATED_FRAC_ELSE = 0.03
_ASSUMED_TIMES = 2.5
# And each index has whole pages: one that begins without entries has its root, or not.
_MADE_UP_PAGES = 1

# In samples, where no client waits for a table to be extended (crates/pgheadroom-twin/src/heap/
# extension_lock.rs): from 16 on who waits makes it grow by a page for others too, to 15 by 20
# pages for each of them, 11 to 40 pages with 4 clients.
_OPEN_PAGES_PER_CLIENT = 0.5
_EXTRA_PAGES_PER_CLIENT = 10
_EXTRA_PAGES_UNTIL_MAJOR = 15
# Pages that are added for others are told to the table's free space map, from 16 on. A table that
# had none gets its three pages then, which hints dirty: logged whole where hints are logged. So on
# 18.4 in three of three profiles with four or eight clients that fill an empty table.
_NEW_MAP_PAGES = 3
# A GIN's page that splits logs two or three pages whole, even without full_page_writes
# (REGBUF_FORCE_IMAGE in ginPlaceToPage, src/backend/access/gin/ginbtree.c). Whether a pending list
# comes to its limit, or a page to its end, hangs on one row, and the twin's runs may agree by
# chance.
_SPLIT_PAGES = 3
_PER_MODIFIED_PAGE = {
    "pages_modified": 1,
    "wal_fpi": 1,
    "wal_fpi_bytes": PAGE_BYTES,
    "wal_bytes": PAGE_BYTES,
}
_UPDATES = ("n_tup_hot_upd", "n_tup_newpage_upd")
_OF_UPDATES = (*_UPDATES, *SHARES)
_OF_THE_HEAP = (*_UPDATES, "heap_pages", *_STEADY, *SHARES)
_COUNTS_OF_PAGES = ("heap_pages", "pages_modified")
_OF_LOAD = ("heap_pages", "index_pages")
_OF_WORK = tuple(key for key in SUMMED if key not in _OF_LOAD)
"""Figures that are 0 of a table, each of them, in which nothing is written."""


@dataclass(frozen=True, slots=True)
class Doubt:
    """Images that a server may store compressed or plain: bytes of their headers, and of them."""

    header_bytes: int = 0
    image_bytes: int = 0


def images_estimated(run: Outcome, doubts: Mapping[str, Doubt]) -> Outcome:
    """
    The outcome of a run in which nothing but compressed images is uncertain.

    Args:
        run: The whole of it.
        doubts: By table.
    """
    tables = {name: _with_images(table, doubts[name]) for name, table in run.by_table.items()}
    of_all = Doubt(
        sum(doubt.header_bytes for doubt in doubts.values()),
        sum(doubt.image_bytes for doubt in doubts.values()),
    )
    return replace(_with_images(run, of_all), by_table=tables)


def _with_images(part: Outcome, doubt: Doubt) -> Outcome:
    half = _IMAGE_FRAC * mid(part.wal_fpi_bytes) + doubt.image_bytes
    updates = mid(part.n_tup_upd)
    whole = half + doubt.header_bytes
    halves = {
        "wal_fpi_bytes": half,
        "wal_bytes": whole,
        "wal_bytes_per_update": whole / updates if updates else 0.0,
        "wal_nonfpi_bytes_per_update": doubt.header_bytes / updates if updates else 0.0,
    }
    found: dict[str, Value] = {key: part.value(key) for key in KEYS}
    for key, width in halves.items():
        at = middle(found[key])
        if at is not None and width > 0:
            found[key] = Interval(low=at - width, mid=at, high=at + width, level=LEVEL)
    return outcome_of(found)


@dataclass(frozen=True, slots=True)
class _Growth:
    """
    Pages that waiting for an extension may add: to either side, and at the end only.

    Where it `waits` the twin's clients do, now and then for many pages, so that its runs lie
    unevenly around their median. `map_pages` are those of free space maps that it may begin, and
    that are then logged whole; `split_pages` those of GINs that may split where no run of the
    twin has it.
    """

    waits: bool = False
    either_side: float = 0.0
    more: float = 0.0
    map_pages: int = 0
    split_pages: int = 0


_NO_GROWTH = _Growth()


@dataclass(frozen=True, slots=True)
class MadeUp:
    """
    How little is known of values of expressions in indexes.

    Attributes:
        times: 0 where the twin evaluates all, 1 where it takes what is stated, more where nothing
            is.
        indexes: How many have such values, by table; not those of which a server has found for
            which values a predicate is true.
    """

    times: float = 0
    indexes: Mapping[str, int] = field(default_factory=dict)


NOTHING = MadeUp()
"""All is known."""


@dataclass(frozen=True, slots=True)
class OfSamples:
    """
    That each run was a sample of the whole, blown up.

    Attributes:
        share: Of the whole in each. What is foreseen is the whole, which varies less than a sample
            and is met by their mean.
        heap_pages: By how many pages the tables may be off, since kinds of pages are drawn for the
            blocks of a sample as for those of the whole.
        index_pages: By how many pages the indexes may be off, since each has whole pages in a
            sample.
        modified_pages: By how many pages and images the whole may be too high, since some are
            there once, but in each sample.
        open_pages: By how many pages a table that grows may be too high, since each client fills
            one whatever the share.
        entire: Tables that were there whole.
    """

    share: float = 1.0
    heap_pages: float = 0.0
    index_pages: float = 0.0
    modified_pages: float = 0.0
    open_pages: float = 0.0
    entire: frozenset[str] = frozenset()


WHOLE = OfSamples()
"""Each run was the whole."""


ByRun = Mapping[str, Sequence[float | None]]
"""What each run has of a figure, by its key: of all tables together, or of one."""


def spread(
    runs: Sequence[Outcome],
    *,
    clients: int,
    major: int,
    samples: OfSamples = WHOLE,
    by_clock: bool = False,
    logs_hints: bool = False,
    made_up: MadeUp = NOTHING,
    beside: Mapping[str, float] | None = None,
    upserted: Collection[str] = (),
    contended: Mapping[str, Mapping[str, int]] | None = None,
    with_gin: Collection[str] = (),
    least: Mapping[str, LeastPages] | None = None,
    of_clients_only: bool = False,
) -> Outcome:
    """
    The outcome of a statistical cell.

    Args:
        runs: The whole of each run of the twin, every figure a number; at least two.
        clients: How many wrote side by side.
        major: The server's major version.
        samples: How much of the whole each run was.
        by_clock: Whether autovacuum and checkpoints went by a simulated clock.
        logs_hints: Whether the first hint on a page is logged with its image.
        made_up: How little is known of values of expressions in indexes.
        beside: Rows of tables whose counts maintenance makes uncertain (`beside_maintenance`).
        upserted: Tables with upserts by several clients (`upserted_of`).
        contended: Rows of a statement whose count the clients' order decides (`contended_of`).
        with_gin: Tables with a GIN.
        least: Pages that tables have for certain (`least_pages_of`).
        of_clients_only: Whether nothing but the order of several clients is uncertain; then a
            table in which nothing is written is certain.
    """
    assert len(runs) >= 2, "one run shows no spread"
    beside = beside or {}
    contended = contended or {}
    least = least or {}
    times = _BY_CLOCK if by_clock else int(clients == 1 or samples.share < 1)
    whole = _values_of(runs)
    parts = {name: _values_of([run.by_table[name] for run in runs]) for name in runs[0].by_table}
    growths = {
        name: _growth(
            part, clients, major, logs_hints, has_gin=name in with_gin, is_sample=samples.share < 1
        )
        for name, part in parts.items()
    }
    tables = {
        name: _spread_of(
            part,
            growths[name],
            WHOLE if name in samples.entire else _of_table(part, samples),
            times,
            (made_up.times, made_up.indexes.get(name, 0)),
            _steady_halves(
                part, beside.get(name, 0), int(name in upserted), [contended.get(name, {})]
            ),
            may_be_still=of_clients_only,
            least=least.get(name, {}),
        )
        for name, part in parts.items()
    }
    growth = replace(
        _growth(whole, clients, major, logs_hints=False, is_sample=samples.share < 1),
        map_pages=sum(one.map_pages for one in growths.values()),
        split_pages=sum(one.split_pages for one in growths.values()),
    )
    sampled = [part for name, part in parts.items() if name not in samples.entire]
    opened = sum(_of_table(part, samples).open_pages for part in sampled)
    of_all = replace(samples, open_pages=opened)
    of_values = (made_up.times, sum(made_up.indexes.values()))
    steady = _steady_halves(whole, sum(beside.values()), len(upserted), list(contended.values()))
    how = (times, of_values, steady, tables)
    certain = together(least)
    return _spread_of(whole, growth, of_all, *how, may_be_still=of_clients_only, least=certain)


def spread_of_window(
    whole: ByRun, parts: Mapping[str, ByRun], *, clients: int, major: int
) -> Outcome:
    """
    The same as `spread` of a window, of whose values nothing else is known.

    Args:
        whole: Of all tables.
        parts: Of each by its name.
        clients: How many wrote side by side.
        major: The server's major version.
    """
    times = int(clients == 1)
    tables = {
        name: _spread_of(part, _growth(part, clients, major, logs_hints=False), times=times)
        for name, part in parts.items()
    }
    # Of one table it is all but the transactions' own WAL.
    (alike,) = parts.values() if len(parts) == 1 else ({},)
    growth = _growth(whole, clients, major, logs_hints=False)
    return _spread_of(whole, growth, times=times, by_table=tables, alike=alike)


def _values_of(runs: Sequence[Outcome]) -> ByRun:
    return {key: [middle(run.value(key)) for run in runs] for key in KEYS}


def over_draws(runs: Sequence[Outcome]) -> Outcome:
    """
    The outcome of a cell in which nothing but a draw of the server's is uncertain.

    Args:
        runs: The whole of runs with other draws; at least two.
    """
    tables = {name: _over_draws([run.by_table[name] for run in runs]) for name in runs[0].by_table}
    return replace(_over_draws(runs), by_table=tables)


def _over_draws(runs: Sequence[Outcome]) -> Outcome:
    found: dict[str, Value] = {}
    for key in KEYS:
        values = [middle(run.value(key)) for run in runs]
        numbers = [value for value in values if value is not None]
        if len(set(values)) == 1 or len(numbers) < len(values):
            found[key] = runs[0].value(key)
            continue
        mean = math.fsum(numbers) / len(numbers)
        variance = math.fsum((value - mean) ** 2 for value in numbers) / (len(numbers) - 1)
        half = students_t(len(numbers) - 1) * math.sqrt(variance * (1 + 1 / len(numbers)))
        found[key] = Interval(low=max(0.0, mean - half), mid=mean, high=mean + half, level=LEVEL)
    return outcome_of(found)


def _steady_halves(
    runs: ByRun,
    beside: float,
    upserted: int,
    contended: Sequence[Mapping[str, int]],
) -> Mapping[str, float]:
    """By how much counts are uncertain that statements decide; those that are certain are none."""
    counted_at_all = [key for key in _STEADY if any(runs[key])]
    halves = dict.fromkeys(counted_at_all, beside) if beside else {}
    if upserted:
        for key in ("n_tup_ins", "n_tup_del"):
            halves[key] = beside + NORMAL * math.sqrt(CHANCE_LEAST * upserted)
    # Half a statement that finds its rows or not: none was seen (`CHANCE_LEAST`).
    for key in _STEADY:
        rows = math.hypot(*(of_table.get(key, 0) for of_table in contended))
        if rows:
            halves[key] = math.hypot(halves.get(key, 0.0), NORMAL * math.sqrt(CHANCE_LEAST) * rows)
    return halves


def made_up_of(profile: Profile) -> MadeUp:
    """How little is known of values of expressions, and of other types, in the indexes."""
    stated = [one for table in profile.tables for index in table.indexes for one in index.stated]
    other = {table.name: len(standing_in(table)) for table in profile.tables}
    if not stated and not any(other.values()):
        return NOTHING
    return MadeUp(
        times=_ASSUMED_TIMES if any(one.assumed for one in stated) else 1,
        indexes={
            table.name: other[table.name]
            + sum(
                any(not (one.true_for or one.false_for) for one in index.stated)
                for index in table.indexes
            )
            for table in profile.tables
        },
    )


def _of_table(runs: ByRun, samples: OfSamples) -> OfSamples:
    return samples if _grows(runs) else replace(samples, open_pages=0.0)


def _grows(runs: ByRun) -> bool:
    """Whether a table takes pages in the run."""
    pairs = zip(runs["n_tup_hot_upd"], runs["n_tup_upd"], strict=True)
    return any(runs["n_tup_ins"]) or any((hot or 0) < (all_ or 0) for hot, all_ in pairs)


def _spread_of(
    runs: ByRun,
    growth: _Growth,
    samples: OfSamples = WHOLE,
    times: float = 0,
    made_up: tuple[float, int] = (0, 0),
    steady: Mapping[str, float] | None = None,
    by_table: Mapping[str, Outcome] | None = None,
    alike: ByRun | None = None,
    *,
    may_be_still: bool = False,
    least: LeastPages | None = None,
) -> Outcome:
    """
    Of a whole or a table.

    `least` are pages that it has for certain; it `may_be_still`, where nothing is written.

    Where `alike` has the only table's values, and nothing else is known of either, equal values of
    the whole have its intervals.
    """
    updates = _mean(runs["n_tup_upd"])
    logs_images = any(runs["wal_fpi"])
    model: Callable[[str, float], float]
    if may_be_still and not steady and not any(any(runs[key]) for key in _OF_WORK):

        def model(_key: str, _mean: float) -> float:
            return 0.0

    elif times:

        def model(key: str, mean: float) -> float:
            return _model(key, mean, updates=updates, times=times)

    else:
        model = _chance(updates, updates - _mean(runs["n_tup_hot_upd"]), logs_images=logs_images)
    steady = steady or {}
    changed = (runs[key] for key in _STEADY if key not in steady)
    pages = {"pages_modified": int(any(all(values) for values in changed)), **(least or {})}
    of_all = _OfAll(updates, logs_images, growth, samples, model, made_up, steady, pages)
    found = {}
    if alike and by_table:
        (table,) = by_table.values()
        found = {key: table.value(key) for key in KEYS if runs[key] == alike[key]}
    found |= {key: _interval(key, runs[key], of_all) for key in KEYS if key not in found}
    return outcome_of(found, by_table)


def _mean(values: Sequence[float | None]) -> float:
    """With 0 where nothing is known."""
    return math.fsum(value or 0 for value in values) / len(values)


def _growth(
    runs: ByRun,
    clients: int,
    major: int,
    logs_hints: bool,
    *,
    has_gin: bool = False,
    is_sample: bool = False,
) -> _Growth:
    if clients == 1 or not _grows(runs):
        return _NO_GROWTH
    images = runs["wal_fpi"]
    agree = len({value or 0 for value in images}) == 1
    split_pages = _SPLIT_PAGES if has_gin and agree else 0
    to_15 = major <= _EXTRA_PAGES_UNTIL_MAJOR
    only_fills = any(runs["n_tup_ins"]) and not any(images)
    return _Growth(
        waits=not is_sample,
        either_side=_OPEN_PAGES_PER_CLIENT * clients if is_sample and not to_15 else 0.0,
        more=_EXTRA_PAGES_PER_CLIENT * clients if is_sample and to_15 else 0.0,
        map_pages=_NEW_MAP_PAGES if logs_hints and only_fills and not to_15 else 0,
        split_pages=split_pages,
    )


@dataclass(frozen=True, slots=True)
class _OfAll:
    """
    What the intervals of all figures depend on.

    `updates` are those of a run; `model` gives the half-width by a figure's key and mean; `made_up`
    are times and indexes of `MadeUp`; `steady` are halves of counts that statements decide; `least`
    are pages that are there for certain.
    """

    updates: float
    logs_images: bool
    growth: _Growth
    samples: OfSamples
    model: Callable[[str, float], float]
    made_up: tuple[float, int]
    steady: Mapping[str, float]
    least: LeastPages


def _interval(key: str, values: Sequence[float | None], of_all: _OfAll) -> Value:
    mean = mean_of(values)
    if mean is None:
        return None
    numbers = [value for value in values if value is not None]
    first, count = numbers[0], len(numbers)
    growth, samples = of_all.growth, of_all.samples
    model = of_all.model(key, mean)
    if key in _COUNTS_OF_PAGES and mean > 0:
        model = math.hypot(model, growth.either_side, samples.heap_pages)
    if key == "index_pages":
        model = math.hypot(model, samples.index_pages)
    times, indexes = of_all.made_up
    if times and key not in _OF_THE_HEAP:
        frac = _STATED_FRAC.get(key, _STATED_FRAC_ELSE)
        pages = _MADE_UP_PAGES * indexes * _of_a_page(key, of_all.updates, of_all.logs_images)
        model = math.hypot(model, times * frac * mean, pages)
    steady = of_all.steady
    if key in _STEADY:
        model = math.hypot(model, steady.get(key, 0.0))
    logged_whole = (growth.map_pages + growth.split_pages) * _PER_MODIFIED_PAGE.get(key, 0)
    is_equal = numbers.count(first) == count
    is_certain = key in _STEADY and key not in steady
    if is_equal and (is_certain or model == logged_whole == 0):
        return first
    below = above = model
    if not is_equal:
        drawn = students_t(count - 1) * math.sqrt((samples.share + 1 / count) / (count - 1))
        if key == "heap_pages" and growth.waits:
            mean = statistics.median(numbers)
            sides = (
                math.sqrt(2) * math.hypot(*(min(0.0, value - mean) for value in numbers)),
                math.sqrt(2) * math.hypot(*(max(0.0, value - mean) for value in numbers)),
            )
        else:
            sides = (math.hypot(*(value - mean for value in numbers)),) * 2
        below, above = (math.hypot(drawn * side, model) for side in sides)
    high = min(1.0, mean + above) if key in SHARES else mean + above
    if key == "heap_pages":
        high += growth.more
    if key == "index_pages":
        high += growth.split_pages
    high += logged_whole
    low = mean - below - samples.modified_pages * _PER_MODIFIED_PAGE.get(key, 0)
    if key in _COUNTS_OF_PAGES:
        low -= samples.open_pages
        mean = max(0.0, mean - samples.open_pages / 2)  # half full, as a page is at any time
    low = max(low, min(of_all.least.get(key, 0), mean, *numbers))
    return Interval(low=max(0.0, low), mid=float(mean), high=max(high, mean), level=LEVEL)


def _of_a_page(key: str, updates: float, logs_images: bool) -> float:
    """What a page of an index more or less is of a figure."""
    if key in ("index_pages", "pages_modified"):
        return 1
    if not logs_images:
        return 0
    if key == "wal_bytes_per_update":
        return PAGE_BYTES / updates if updates else 0
    return _PER_MODIFIED_PAGE.get(key, 0)


def _chance(updates: float, misses: float, *, logs_images: bool) -> Callable[[str, float], float]:
    """Half-width by key and mean: what chance makes of updates that miss HOT, and the rest."""
    half = 0.0
    if updates:
        variance = misses * (1 - misses / updates)
        half = NORMAL * math.sqrt(min(max(variance, CHANCE_LEAST), _CHANCE_MOST))
    of_a_miss = _WITH_IMAGES_OF_A_MISS if logs_images else _OF_A_MISS

    def of_figure(key: str, mean: float) -> float:
        if key in _OF_UPDATES:
            return half / updates if updates and key in SHARES else half * of_a_miss.get(key, 0.0)
        if mean == 0:
            return 0.0
        chance = half * of_a_miss.get(key, 0.0)
        if updates and key in _PER_UPDATE:
            chance /= updates
        return math.hypot(_REST_FRAC * mean, chance)

    return of_figure


def _model(key: str, mean: float, *, updates: float, times: float) -> float:
    """Half-width of the model's error; 0 for what cannot be anything but 0."""
    if key in SHARES:
        return times * _MODEL_SHARE
    if key in _UPDATES:
        return times * _MODEL_SHARE * updates
    return times * _MODEL_FRAC.get(key, _MODEL_FRAC_ELSE) * mean
