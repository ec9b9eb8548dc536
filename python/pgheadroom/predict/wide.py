"""
Which intervals of a forecast are so wide that a reader has to know, and why they are.

Before the figures, in one sentence. What a reader could do without is left out: a page more or
less of a small table is much of it and little of anything else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from pgheadroom.outcome import Outcome, Value, mid
from pgheadroom.types import Interval
from pgheadroom.units import PAGE_BYTES

HOT_POINTS = 5.0
"""Wider than this many points the HOT share's interval is said before the figures."""

PERCENT = 10.0
"""Wider than this, in percent of its middle, that of pages and of WAL is."""

PAGES = 5
"""
And only wider than so many pages; WAL of one table than their bytes, its HOT share than so many
updates. Arbitrary: chance and the growth of a table by four clients make up to four.
"""

_TABLES_NAMED = 2


@dataclass(frozen=True, slots=True)
class _Figure:
    """
    A figure that is looked at.

    `of_table` and `of_whole` give the width up to which it is never said.
    """

    key: str
    title: str
    of_table: Callable[[Outcome], float]
    of_whole: Callable[[Outcome], float] = lambda _: 0.0

    def is_wide(self, part: Outcome, *, is_whole: bool) -> bool:
        least = self.of_whole(part) if is_whole else self.of_table(part)
        value = part.value(self.key)
        limit = HOT_POINTS if self.key == "hot_frac" else PERCENT
        return _width(value) > least and self.percent(part) > limit

    def percent(self, part: Outcome) -> float:
        """Its width in points, or in percent of its middle; without end where that is 0."""
        value = part.value(self.key)
        if self.key == "hot_frac":
            return 100 * _width(value)
        return 100 * _width(value) / mid(value) if mid(value) else float("inf")

    def written(self, part: Outcome) -> str:
        percent = self.percent(part)
        if percent == float("inf"):
            value = part.value(self.key)
            assert isinstance(value, Interval), "a number has no width"
            return f"0 to {value.high:.0f}"
        return f"{percent:.0f} {'points' if self.key == 'hot_frac' else '%'}"


def _width(value: Value) -> float:
    return value.high - value.low if isinstance(value, Interval) else 0.0


def _over_updates(part: Outcome, of_run: float) -> float:
    """What a run may be off by, for each of its updates."""
    return of_run / max(1.0, mid(part.n_tup_upd))


def _few_pages(_: Outcome) -> float:
    return PAGES


_FIGURES = (
    _Figure("hot_frac", "the HOT share", lambda part: _over_updates(part, PAGES)),
    _Figure("heap_pages", "heap pages", _few_pages, _few_pages),
    _Figure("index_pages", "index pages", _few_pages, _few_pages),
    _Figure("pages_modified", "modified pages", _few_pages, _few_pages),
    _Figure("wal_bytes", "WAL", lambda _: PAGES * PAGE_BYTES),
    _Figure(
        "wal_nonfpi_bytes_per_update",
        "WAL without images an update",
        lambda part: _over_updates(part, PAGES * PAGE_BYTES),
    ),
)


def reasons(
    *,
    clients: int,
    by_clock: bool = False,
    sampled: bool = False,
    made_up: bool = False,
    images: bool = False,
    draws: bool = False,
) -> tuple[str, ...]:
    """
    Why a cell's intervals may be wide.

    Args:
        clients: How many write side by side.
        by_clock: Whether a simulated clock says when autovacuum and checkpoints take part.
        sampled: Whether runs are samples.
        made_up: Whether values in indexes are.
        images: Whether nothing but the sizes of compressed images is uncertain.
        draws: Whether nothing but what a server draws is.
    """
    of_clients = (
        f"what {clients} clients do to each other depends on the machine, how soon one goes on "
        "that has waited for a row above all, and they hold quiet and busy ones"
    )
    found = (
        (clients > 1, of_clients),
        (by_clock, "a simulated clock says when autovacuum and checkpoints take part"),
        (sampled, "runs are samples that stand for the whole"),
        (made_up, "values in indexes that the twin does not evaluate are made up"),
        (images, "how well a server compresses images of pages is not known"),
        (draws, "a server draws which rows and pages it reads"),
    )
    return tuple(said for holds, said in found if holds) or (
        "the twin approximates what is said beside them",
    )


def sentences(cells: Iterable[tuple[Outcome, Sequence[str]]]) -> tuple[str, ...]:
    """
    What a reader has to know before the figures: one sentence with all that is wide, or none.

    Args:
        cells: The outcome of each, and why its intervals may be wide.
    """
    cells = list(cells)
    named = []
    whys: list[str] = []
    for figure in _FIGURES:
        widest: dict[str | None, Outcome] = {}
        for outcome, why in cells:
            for name, part in _parts(outcome):
                if not figure.is_wide(part, is_whole=name is None):
                    continue
                whys += [each for each in why if each not in whys]
                if name not in widest or figure.percent(part) > figure.percent(widest[name]):
                    widest[name] = part
        if widest:
            named.append(_named(figure, widest))
    if not named:
        return ()
    return (f"Intervals are wide, {', '.join(named)}: {'; '.join(whys)}.",)


def _parts(outcome: Outcome) -> list[tuple[str | None, Outcome]]:
    """The whole, and its tables where it has several."""
    return outcome.parts() if len(outcome.by_table) > 1 else [(None, outcome)]


def _named(figure: _Figure, widest: dict[str | None, Outcome]) -> str:
    """A figure with its width, of all tables together and of those that have another."""
    whole = widest.get(None)
    said = "" if whole is None else figure.written(whole)
    tables = [
        (name, figure.written(part))
        for name, part in sorted(widest.items(), key=lambda item: -figure.percent(item[1]))
        if name is not None and figure.written(part) != said
    ]
    shown = [f"{name} {width}" for name, width in tables[:_TABLES_NAMED]]
    if len(tables) > _TABLES_NAMED:
        shown.append(f"{len(tables) - _TABLES_NAMED} more")
    if whole is None:
        return f"{figure.title} of {' and '.join(shown)}"
    beside = f" (of {', '.join(shown)})" if shown else ""
    return f"{figure.title} {said}{beside}"
