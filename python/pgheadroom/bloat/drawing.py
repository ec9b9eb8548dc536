"""
Rows drawn from what statistics say of each column by itself.

Statistics do not say which columns are NULL in the same rows, so there are three ways to draw: each
by itself, as many in the same rows as can be, and as few. What lies between the three is what is
left open. Means are exact, for each column's quantiles are all drawn, in a shuffled order; draws
are the same each time.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pgheadroom import _core
from pgheadroom.bloat.values import ColumnFacts, RowCount
from pgheadroom.bloat.widths import Widths, widths_of

DRAWN = 1000
"""Rows of a draw: the padding of a row, up to 7 bytes, is then known to a tenth of a byte."""
_DEVIATIONS = 3.0
_PADDING_DEVIATION = 2.3  # of 0 to 7 bytes, evenly
BEYOND = 2.0
"""Values of rows that changed since ANALYZE are taken to be up to twice as wide as the widest that
it saw. Arbitrary: nothing bounds them."""
_ROW_MAX = 2032.0  # TOAST_TUPLE_THRESHOLD: of wider rows values lie out of line

Coupling = Literal["by itself", "together", "apart"]
End = Literal["low", "high"]


@dataclass(frozen=True, slots=True)
class Drawn:
    """
    One way in which rows may be.

    Attributes:
        coupling: Of NULLs.
        end: Whether rows are as short, or as long, as statistics allow.
        rows: Columns of each row.
    """

    coupling: Coupling
    end: End
    rows: tuple[tuple[_core.Column, ...], ...]


@dataclass(frozen=True, slots=True)
class Sample:
    """
    All ways in which rows may be.

    Attributes:
        draws: Of them.
        changed_bytes: By how much rows that the statistics do not know may be shorter, or longer,
            than the mean.
        padding_bytes: By how much the mean of what fills rows up to 8 bytes may be off.
        unknown: Columns whose widths are not known one by one.
    """

    draws: tuple[Drawn, ...]
    changed_bytes: tuple[float, float]
    padding_bytes: float
    unknown: tuple[str, ...]


def draw(columns: Sequence[ColumnFacts], count: RowCount) -> Sample:
    """
    Draw rows.

    Args:
        columns: All with statistics, but those that need none: of fixed length and never NULL.
        count: Of the rows.
    """
    widths = {
        column.name: widths_of(column, count)
        for column in columns
        if column.typlen < 0 and not column.is_always_null and column.null_frac != 1.0
    }
    nullable = [c for c in columns if 0 < (c.null_frac or 0.0) < 1]
    couplings: list[Coupling] = ["by itself"]
    if len(nullable) > 1:
        couplings += ["together", "apart"]
    reach = _reach(list(widths.values()))
    draws = []
    ends: tuple[End, ...] = ("low", "high")
    for coupling in couplings:
        for end in ends:
            makers = [
                _Values(column, widths.get(column.name), reach, end, count) for column in columns
            ]
            draws.append(Drawn(coupling, end, tuple(_rows(makers, coupling))))
    return Sample(
        tuple(draws),
        _changed_bytes(columns, widths),
        _padding_bytes(columns, widths),
        tuple(name for name, found in widths.items() if not found.is_known),
    )


def _padding_bytes(columns: Sequence[ColumnFacts], widths: Mapping[str, Widths]) -> float:
    """Of a sample of a hundred widths, three deviations of what fills them up to 8 bytes."""
    found = 0.0
    for column in columns:
        seen = widths.get(column.name)
        if seen is None or not seen.is_known or len({width for width, _ in seen.listed}) == 1:
            continue
        share, bounds = column.sampled
        by_draw = 1 / math.sqrt(DRAWN)
        doubt = _DEVIATIONS * _PADDING_DEVIATION * max(share / math.sqrt(bounds), by_draw)
        found = max(found, doubt)
    return found


def _changed_bytes(
    columns: Sequence[ColumnFacts], widths: Mapping[str, Widths]
) -> tuple[float, float]:
    """By how much a row that nobody has looked at may be shorter, or longer, than the mean."""
    less = more = 0.0
    for column in columns:
        if column.is_always_null:
            continue
        frac = column.null_frac or 0.0
        found = widths.get(column.name)
        least, most = found.reach if found else (max(column.typlen, 0),) * 2
        middle = math.fsum(found.mean) / 2 if found else float(most)
        mean = (1 - frac) * middle
        if found and not (least == most and not column.is_nullable):
            most *= BEYOND
        less += mean - (0.0 if column.is_nullable else least)
        more += most - mean
    return less, min(more, _ROW_MAX)


def _reach(widths: Sequence[Widths]) -> float:
    """
    How far from the middle the means' rests are together, as a part of their sum.

    Each lies evenly over its byte; of several, three deviations are nearer to the middle than all
    at one end.
    """
    spans = [found.span for found in widths if found.span > 0]
    if not spans:
        return 0.5
    whole = math.fsum(spans)
    deviations = _DEVIATIONS * math.sqrt(math.fsum(span**2 for span in spans) / 12)
    return min(0.5, deviations / whole)


class _Values:
    """What a column has, row by row, at one end."""

    def __init__(
        self, column: ColumnFacts, widths: Widths | None, reach: float, end: End, count: RowCount
    ) -> None:
        self.null_frac = _null_frac(column, end, count)
        self._column = column
        self._cache: dict[int, _core.Column] = {}
        self._payloads: Sequence[int] = ()
        self._delta = 0.0
        if widths is not None:
            part = 0.5 - reach if end == "low" else 0.5 + reach
            self._payloads, self._delta = widths.at(part, DRAWN)
        self.null = _core.Column(column.core.type_name, is_null=True)

    def at(self, quantile: int, rest: float) -> _core.Column:
        """The value of a quantile; `rest`, in [0, 1), decides what becomes of parts of a byte."""
        if not self._payloads:
            return self._column.core
        payload = self._payloads[quantile % len(self._payloads)]
        wanted = max(math.floor(payload + self._delta + rest), 0)
        found = self._cache.get(wanted)
        if found is None:
            found = self._cache[wanted] = sized(self._column.core, wanted)
        return found


def sized(column: _core.Column, payload_bytes: int) -> _core.Column:
    """The column with a value of that width, or of the nearest that its type has."""
    from pgheadroom.errors import InputError  # noqa: PLC0415 - of the rare case

    try:
        return _core.Column(column.type_name, payload_bytes=payload_bytes)
    except InputError:
        pass
    like = "cstring" if column.typlen == -2 else "path" if column.typalign == "d" else "bytea"
    return _core.Column(like, payload_bytes=payload_bytes)


def _null_frac(column: ColumnFacts, end: End, count: RowCount) -> float:
    frac = 1.0 if column.is_always_null else (column.null_frac or 0.0)
    if not 0 < frac < 1 or count.rows <= count.analyzed:
        return frac
    doubt = _DEVIATIONS * math.sqrt(frac * (1 - frac) / count.analyzed)
    return min(max(frac + (doubt if end == "low" else -doubt), 0.0), 1.0)


def _rows(makers: Sequence[_Values], coupling: Coupling) -> Iterator[tuple[_core.Column, ...]]:
    random_ = random.Random(1)  # noqa: S311 - the same draws each time, of no secret
    orders: list[list[int]] = []
    nulls: list[Callable[[int], float]] = []
    common = list(range(DRAWN))
    random_.shuffle(common)
    begins = 0.0
    for maker in makers:
        order = list(range(DRAWN))
        random_.shuffle(order)
        orders.append(order)
        own = list(range(DRAWN))
        random_.shuffle(own)
        if coupling == "by itself":
            nulls.append(_from(own, 0.0))
        elif coupling == "together":
            nulls.append(_from(common, 0.0))
        else:
            nulls.append(_from(common, begins))
            if maker.null_frac < 1:
                begins += maker.null_frac
    rests = [random_.random() for _ in range(DRAWN)]
    for number in range(DRAWN):
        yield tuple(
            maker.null
            if nulls[place](number) < maker.null_frac
            else maker.at(orders[place][number], (rests[number] + place * 0.618) % 1.0)
            for place, maker in enumerate(makers)
        )


def _from(order: Sequence[int], begins: float) -> Callable[[int], float]:
    """Where a row is in a column's order, in [0, 1), counted from where its NULLs begin."""
    return lambda number: ((order[number] + 0.5) / DRAWN - begins) % 1.0
