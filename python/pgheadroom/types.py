"""
The values that flow between the stages: versions, intervals.

Frozen, comparable, and in files as they are declared (`forms.write`).
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated

from pgheadroom.errors import InputError
from pgheadroom.forms import Expected, Kept, Stored, between, in_file, kept

_VERSION = re.compile(r"(?<![\d.])(\d{2,})(?:\.(\d+))?(?:((?:alpha|beta|rc)\d+|devel)|\b)")


@functools.total_ordering
@dataclass(frozen=True, slots=True)
class PgVersion:
    """
    A PostgreSQL version with its minor: 18.4 is `PgVersion(18, 4)`.

    `pre` names a pre-release as PostgreSQL does ("rc1", "beta2", "devel"), whose minor is 0.
    """

    major: int
    minor: int
    pre: str = ""

    @classmethod
    def parse(cls, text: str) -> PgVersion:
        """
        Read the version out of `"18.4"`, `"postgres (PostgreSQL) 15.18 (Debian ...)"`, `"19rc1"`.

        Raises:
            InputError: No version in the text, or one before 10 (three-part versions).
        """
        match = _VERSION.search(text)
        if match is None or int(match[1]) > 99:
            raise InputError(f"no PostgreSQL version in {text!r}: expected one such as 18.4")
        return cls(int(match[1]), int(match[2] or 0), match[3] or "")

    @classmethod
    def of_server(cls, server_version_num: int, server_version: str) -> PgVersion:
        """
        From what a server says: 180004 is 18.4, and 190000 with "19rc1 (Debian ...)" is 19rc1.

        The text only adds the name of a pre-release: forks write there what they like.
        """
        major, minor = divmod(server_version_num, 10000)
        match = _VERSION.match(server_version)
        return cls(major, minor, (match[3] or "") if match and int(match[1]) == major else "")

    def __lt__(self, other: object) -> bool:
        """A pre-release comes before its release, and "beta2" before "rc1"."""
        if not isinstance(other, PgVersion):
            return NotImplemented
        return self._place() < other._place()

    def _place(self) -> tuple[int, int, bool, str]:
        return self.major, self.minor, not self.pre, self.pre

    def __str__(self) -> str:
        return f"{self.major}{self.pre}" if self.pre else f"{self.major}.{self.minor}"


def _version(text: str) -> PgVersion:
    try:
        return PgVersion.parse(text)
    except InputError as error:
        raise ValueError(str(error)) from None


Version = Annotated[PgVersion, Stored(str, _version, str)]
"""A version that is a part of a file, as text."""

NUMBER_MAX = 2.0**64
"""No counter of PostgreSQL's goes further."""

AnyCount = Annotated[float, between(0, NUMBER_MAX)]
ByteCount = Annotated[float, between(0, 2**31)]
"""Of something that lies on a page, or of a value: a gigabyte is the most."""

Span = tuple[float, float]
"""From and to when something may have happened: two moments, or two shares of a run."""

PlainValue = bool | int | float | str | None
"""What a file has in one place."""

Taken = PlainValue | tuple[str, ...] | Mapping[str, PlainValue]
"""What stands in the place of something that nobody said: as a file would have it, or in words."""

_TAKEN = Expected("a value, a list of strings, or a table of values", whole=True)
Assumed = Mapping[str, Annotated[Taken, _TAKEN]]
"""
What a result takes for granted, by what that is: the path of a profile's field
(`table[0].fillfactor`), or a part of the run (`twin.sample`, `cells[1].events`).
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """
    An estimate with its uncertainty.

    `level` is the coverage that the interval really has: a median's interval from five samples
    covers 93.75 %, not 95 %. The unit is the unit of the measure it belongs to.
    """

    low: float
    mid: float
    high: float
    level: float

    def __post_init__(self) -> None:
        if not self.low <= self.mid:
            raise ValueError(f"interval low {self.low} is above its middle {self.mid}")
        if not self.mid <= self.high:
            raise ValueError(f"interval high {self.high} is below its middle {self.mid}")
        if not 0 < self.level <= 1:
            raise ValueError(f"interval level {self.level} is not in (0, 1]")

    @classmethod
    def exactly(cls, value: float, *, level: float = 1.0) -> Interval:
        """A number as an interval without width."""
        return cls(low=value, mid=value, high=value, level=level)

    @classmethod
    def reaching(cls, values: Iterable[float], *, mid: float, level: float) -> Interval:
        """From the least to the most of the values and of the middle."""
        found = (*values, mid)
        return cls(low=min(found), mid=mid, high=max(found), level=level)

    @classmethod
    def within(cls, low: float, high: float, *, mid: float, level: float) -> Interval:
        """Between two ends, its middle the nearest there to what is likely."""
        return cls(low=low, mid=min(max(mid, low), high), high=high, level=level)

    @classmethod
    def summed(cls, parts: Sequence[Interval], *, doubt: float = 0.0, level: float) -> Interval:
        """A sum whose parts are off each by itself, and all by a doubt: the root of squares."""
        mid = math.fsum(part.mid for part in parts)
        low = math.hypot(doubt, *(part.mid - part.low for part in parts))
        high = math.hypot(doubt, *(part.high - part.mid for part in parts))
        return cls(low=mid - low, mid=mid, high=mid + high, level=level)

    @property
    def ends(self) -> tuple[float, float, float]:
        """Low, middle and high."""
        return self.low, self.mid, self.high

    @property
    def width(self) -> float:
        """From end to end."""
        return self.high - self.low

    def scaled(self, factor: float) -> Interval:
        """The interval times a factor that is not negative."""
        return Interval(
            low=self.low * factor, mid=self.mid * factor, high=self.high * factor, level=self.level
        )

    def shifted(self, by: float) -> Interval:
        """The interval and a number that is certain."""
        return Interval(low=self.low + by, mid=self.mid + by, high=self.high + by, level=self.level)

    def clipped(self, low: float, high: float) -> Interval:
        """The interval within what its values can be."""
        least, mid, most = (min(max(end, low), high) for end in self.ends)
        return Interval(low=least, mid=mid, high=most, level=self.level)

    def excludes(self, value: float) -> bool:
        """Whether `value` lies outside the interval."""
        return not self.low <= value <= self.high

    def overlaps(self, other: Interval, slack: float = 0.0) -> bool:
        """Whether the two share a number, or are no farther apart than some slack."""
        return self.low <= other.high + slack and self.high >= other.low - slack

    def beyond(self, other: Interval) -> float:
        """How far it lies above another, below it negative; 0 where they overlap."""
        if self.low > other.high:
            return self.low - other.high
        return self.high - other.low if self.high < other.low else 0.0


@kept
class TupleBytes(Kept):
    """Lengths of rows' versions; percentiles where the query drew them."""

    mean: ByteCount
    deviation: ByteCount
    evidence: str | None = None
    p05: ByteCount | None = field(default=None, metadata=in_file(unless_none=True))
    p50: ByteCount | None = field(default=None, metadata=in_file(unless_none=True))
    p95: ByteCount | None = field(default=None, metadata=in_file(unless_none=True))


@kept
class ObservedSample(Kept):
    """What a sample of pages shows; `ages` are rows by age: [k, rows, bytes], from 2^k xids on."""

    tuple_bytes: TupleBytes
    pages: AnyCount | None = None
    rows: AnyCount | None = None
    page_bytes_mean: ByteCount | None = None
    recent_rows: AnyCount | None = None
    drawn_percent: Annotated[float, between(0, 100)] | None = None
    since_xids: Annotated[int, between(0, 2**32)] | None = None
    ages: tuple[tuple[Annotated[int, between(0, 64)], AnyCount, AnyCount], ...] | None = None
