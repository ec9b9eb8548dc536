"""
The mean row of a table, over which of its columns are NULL.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pgheadroom import _core
from pgheadroom.layout.columns import LaidColumn

_PATTERNS_EXACT = 6  # nullable columns of which each combination is laid out: 64 of them
_PATTERNS_DRAWN = 200  # of more; the mean is then within some tenths of a byte
DROPPED = _core.Column("bool", is_null=True)
"""A dropped column in a row: a bit of the bitmap of NULLs, whatever its type was."""


@dataclass(frozen=True, slots=True)
class MeanRow:
    """Of all rows: bytes of a row, and of a row on its page with its line pointer."""

    tuple_bytes: float
    page_bytes: float
    with_nulls_frac: float


def mean_row(columns: Sequence[LaidColumn], dropped: int) -> MeanRow:
    """The mean over which columns are NULL, as if each were so by itself; dropped ones always."""
    gone = [DROPPED] * dropped
    tuple_bytes = page_bytes = with_nulls = 0.0
    for weight, nulls in _null_patterns([column.null_frac for column in columns]):
        row = _core.RowLayout(
            [c.null() if is_null else c.core for c, is_null in zip(columns, nulls, strict=True)]
            + gone
        )
        tuple_bytes += weight * row.tuple_bytes
        page_bytes += weight * row.page_bytes
        with_nulls += weight * (any(nulls) or dropped > 0)
    return MeanRow(tuple_bytes, page_bytes, with_nulls)


def _null_patterns(fracs: Sequence[float]) -> Iterable[tuple[float, list[bool]]]:
    """Which columns are NULL together, and in what share of the rows."""
    open_places = [place for place, frac in enumerate(fracs) if 0 < frac < 1]
    settled = [frac >= 1 for frac in fracs]
    if len(open_places) <= _PATTERNS_EXACT:
        for chosen in itertools.product((False, True), repeat=len(open_places)):
            weight, pattern = 1.0, list(settled)
            for place, is_null in zip(open_places, chosen, strict=True):
                pattern[place] = is_null
                weight *= fracs[place] if is_null else 1 - fracs[place]
            yield weight, pattern
        return
    draw = random.Random(1)  # noqa: S311 - the same draws each time, of no secret
    for _ in range(_PATTERNS_DRAWN):
        yield (
            1 / _PATTERNS_DRAWN,
            [
                draw.random() < frac if 0 < frac < 1 else settled[place]
                for place, frac in enumerate(fracs)
            ],
        )
