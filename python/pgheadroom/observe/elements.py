"""
What a GIN's keys are, out of the rows of a sample: elements of a profile.

Of n sampled values are known how many keys one has, how many different ones they are (V), how many
of those stand once (V1) and twice, and how often two values share one. A profile's elements have
three numbers for that:

    min, max    as many draws as give so many different keys a value, with their deviation
    alike       so that two values share as many keys (the sum of the squared shares)
    ndistinct   so that all rows have as many different keys as V grown to the table says

V grows with the rows. Words go on coming: V x (rows / n)^(V1 / V) (Heaps' law, for V1 / V is the
slope of its curve). Elements that are all alike come to an end: V / (1 - e^-m), where V1 / V is
m / (e^m - 1). Which of the two it is, or what between, the number that stand twice says.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from pgheadroom.profile.elements import (
    ELEMENTS_MAX,
    SKEWED_MAX,
    WIDTH_MAX,
    Elements,
    Steps,
    at_least_once,
    steps_of,
)
from pgheadroom.sources.recording import AnswerRow

_DRAWS_MAX = {"tsvector": 4.0}
_DRAWS_MAX_ELSE = 1.25
"""
Draws for each key of a value: one drawn again is no further key, but takes room in an array and in
a jsonb, in a tsvector none (arbitrary).
"""
_EVEN_FROM = 0.5  # of the different ones that are alike: then all are taken as such (arbitrary)
VALUES = 2**40
"""Different values of a column of elements: each row draws its own (arbitrary, far beyond rows)."""
_STEPS = 50  # halvings of a search
_TYPES = {"tsvector_ops": "tsvector", "jsonb_ops": "jsonb", "jsonb_path_ops": "jsonb"}
_FIXED = {2: "int2[]", 4: "int4[]", 8: "int8[]"}
_ARRAYS = ("int2[]", "int4[]", "int8[]", "text[]", "varchar[]")


@dataclass(frozen=True, slots=True, kw_only=True)
class KeysSeen:
    """
    Keys of a GIN over a column, or an expression, in a sample of rows.

    `bytes_mean` is of a key, each as often as values have it; None where keys are hashes.
    """

    opclass: str
    values: int
    null_frac: float
    mean: float
    deviation: float
    distinct: int
    once: int
    twice: int
    squared_shares: float
    bytes_mean: float | None
    typlen: int

    @property
    def evidence(self) -> str:
        """For people."""
        return (
            f"sampled: {self.values} values with {self.mean:.2f} keys each, {self.distinct} "
            "different"
        )


def read_keys(rows: Iterable[AnswerRow]) -> dict[tuple[int, int], KeysSeen]:
    """What was counted, by the index and the place of its key, from 1; rows of `elements`."""
    found = {}
    for row in rows:
        values = int(row["values"] or 0)
        if not values:
            continue
        keys = float(row["keys"])
        mean = keys / values
        variance = max(float(row["squares"]) / values - mean * mean, 0.0)
        pairs = float(values) * (values - 1)
        found[int(row["index_oid"]), int(row["place"])] = KeysSeen(
            opclass=str(row["opclass"]),
            values=values,
            null_frac=1 - values / float(row["rows"]),
            mean=mean,
            deviation=math.sqrt(variance),
            distinct=int(row["distinct"]),
            once=int(row["once"]),
            twice=int(row["twice"]),
            squared_shares=float(row["pairs"]) / pairs if pairs else 0.0,
            bytes_mean=float(row["bytes"]) / keys
            if keys and row["opclass"] != "jsonb_path_ops"
            else None,
            typlen=int(row["typlen"]),
        )
    return found


def element_type(canonical: str | None, seen: KeysSeen) -> str | None:
    """The profile's type of a column, or an expression, with such keys; None without one."""
    if seen.opclass != "array_ops":
        # Keys and values of an hstore take the bytes of as many strings in an array of jsonb.
        return _TYPES.get(seen.opclass, "jsonb")
    if canonical in _ARRAYS:
        return canonical
    return _FIXED.get(seen.typlen, "text[]" if seen.typlen != 1 else None)


def fitted(seen: KeysSeen, base: str, *, rows: int, payload_bytes: float | None) -> Elements:
    """
    Elements of a profile like the keys that were seen.

    Args:
        seen: In a sample.
        base: The type in the profile.
        rows: Of the table, those of NULL left out.
        payload_bytes: Of a value without its length header; None: not known.
    """
    mean = max(seen.mean, 1.0)
    distinct = max(_grown(seen, max(rows, seen.values)), mean, 1.0)
    alike, ndistinct, draws = _fit(
        mean,
        distinct,
        seen.squared_shares,
        rows=max(rows, seen.values),
        draws_max=mean * _DRAWS_MAX.get(base, _DRAWS_MAX_ELSE),
    )
    most = {"int2[]": 2**15, "int4[]": 2**31}.get(base, SKEWED_MAX)
    ndistinct = min(max(ndistinct, 1), most)
    half = min(seen.deviation * draws / mean * math.sqrt(3), draws - 1)
    least = max(round(draws - half), 1)
    return Elements(
        min=min(least, ELEMENTS_MAX),
        max=min(max(round(draws + half), least), ELEMENTS_MAX),
        ndistinct=ndistinct,
        alike=None if alike >= ndistinct else alike,
        width=_width(seen, base, ndistinct, draws, payload_bytes),
    )


def _width(
    seen: KeysSeen, base: str, ndistinct: int, draws: float, payload_bytes: float | None
) -> int | None:
    if base in ("int2[]", "int4[]", "int8[]"):
        return None
    bytes_ = seen.bytes_mean
    if bytes_ is None:  # keys are hashes: as long as fills the value
        bytes_ = ((payload_bytes or 0.0) - 4) / draws - 4
    elif seen.typlen > 0 and seen.opclass == "array_ops":
        bytes_ -= 4  # a string's header is in its place
    return min(max(round(bytes_), len(str(ndistinct - 1)), 1), WIDTH_MAX)


def _grown(seen: KeysSeen, rows: int) -> float:
    """Different keys of all rows, by those of the sample."""
    if rows <= seen.values or not seen.once:
        return float(seen.distinct)
    factor, slope = rows / seen.values, seen.once / seen.distinct
    words: float = seen.distinct * factor**slope
    if slope >= 1:
        return words
    mean = _where(lambda m: m / math.expm1(m), slope, low=1e-9, high=50.0)
    alike = seen.distinct / -math.expm1(-mean) * -math.expm1(-mean * factor)
    # Of each that stands once as many stand twice, by either.
    by_words, by_alike = (1 - slope) / 2, mean / 2
    found = seen.twice / seen.once
    part = (found - by_words) / (by_alike - by_words) if by_alike > by_words else 0.0
    part = min(max(part, 0.0), 1.0)
    return float(words ** (1 - part) * alike**part)


def _fit(
    mean: float, distinct: float, squared: float, *, rows: int, draws_max: float
) -> tuple[int, int, float]:
    """`alike`, `ndistinct` and draws a value."""
    if distinct <= 1:
        return 1, 1, 1.0

    def found(alike: float) -> tuple[int, float, _Expected]:
        def keys(ndistinct: float) -> float:
            steps = _steps(ndistinct, alike)
            return _expected(steps, _draws(steps, mean), rows).distinct

        low = max(distinct, 1.0 if alike == math.inf else alike, mean)
        ndistinct = round(_where(keys, distinct, low=low, high=low * 1000, by_ratio=True))
        ndistinct = max(ndistinct, math.ceil(low))
        steps = _steps(ndistinct, alike)
        draws = _draws(steps, mean)
        return ndistinct, draws, _expected(steps, draws, rows)

    def shared(alike: float) -> float:
        _, draws, expected = found(alike)
        # Fewer than so many alike, and values would have too many that are drawn again.
        return math.inf if draws > draws_max else expected.squared_shares

    # The more are alike, the fewer are shared.
    alike = _where(shared, squared, low=1.0, high=max(distinct, 2.0), by_ratio=True)
    ndistinct, draws, _ = found(alike)
    if alike < _EVEN_FROM * min(distinct, ndistinct):
        return max(round(alike), 1), ndistinct, draws
    ndistinct, draws, _ = found(math.inf)
    if draws > draws_max:  # nearly all values have nearly all of them

        def all_alike(ndistinct: float) -> float:
            return _draws(_steps(ndistinct, math.inf), mean)

        ndistinct = round(_where(all_alike, draws_max, low=distinct, high=distinct * 100))
        draws = all_alike(ndistinct)
    return ndistinct, ndistinct, draws


@dataclass(frozen=True, slots=True, kw_only=True)
class _Expected:
    mean: float
    distinct: float
    squared_shares: float


def _steps(ndistinct: float, alike: float) -> Steps:
    count = max(round(ndistinct), 1)
    most = count if alike >= count else max(round(alike), 1)
    return steps_of(Elements(min=1, max=1, ndistinct=count, alike=most))


def _expected(steps: Steps, draws: float, rows: int) -> _Expected:
    """Keys of a value, different ones of all rows, and how many two values share."""
    mean = distinct = squared = 0.0
    for size, each in steps.shares():
        share = at_least_once(each, draws)
        mean += size * share
        distinct += size * at_least_once(share, rows)
        squared += size * share * share
    return _Expected(mean=mean, distinct=distinct, squared_shares=squared)


def _draws(steps: Steps, mean: float) -> float:
    """Draws that give so many different elements."""
    return _where(steps.different, mean, low=mean, high=mean * 16)


def _where(
    of: Callable[[float], float], wanted: float, *, low: float, high: float, by_ratio: bool = False
) -> float:
    """Where a function that rises, or falls, all the way has a value; the nearer end outside."""
    rises = of(high) > of(low)
    for _ in range(_STEPS):
        middle = math.sqrt(low * high) if by_ratio else (low + high) / 2
        if (of(middle) < wanted) is rises:
            low = middle
        else:
            high = middle
        if high - low < 1e-4 * high:
            break
    return (low + high) / 2
