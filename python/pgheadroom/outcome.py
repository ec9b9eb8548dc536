"""
What a run of a profile did, as the keys that a proof compares.

Between the two players and whoever compares them: the server's counters, the twin's prediction
and the error of one against the other are all an `Outcome`, with the same keys in the same order.
What a version does not count is None, never 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pgheadroom.forms import in_file
from pgheadroom.types import Interval

Value = float | Interval | None
"""A number where it is exact, an interval where it is statistical, None where there is none."""


def middle(value: Value) -> float | None:
    """The number, or the middle of the interval; None where nothing is known."""
    return value.mid if isinstance(value, Interval) else value


def mid(value: Value) -> float:
    """The same, with 0 where nothing is known."""
    return middle(value) or 0.0


def ends(value: float | Interval) -> tuple[float, float, float]:
    """Low, middle and high, which are one for a number."""
    return value.ends if isinstance(value, Interval) else (value, value, value)


def as_interval(value: Value, *, level: float = 1.0) -> Interval | None:
    """A number as an interval without width."""
    if value is None or isinstance(value, Interval):
        return value
    return Interval.exactly(value, level=level)


def scaled(value: Value, factor: float) -> Value:
    """A value times a factor that is not negative."""
    if isinstance(value, Interval):
        return value.scaled(factor)
    return None if value is None else value * factor


def shifted(value: Value, by: float) -> Value:
    """A value and a number that is certain."""
    if isinstance(value, Interval):
        return value.shifted(by)
    return None if value is None else value + by


COUNTERS = ("n_tup_ins", "n_tup_upd", "n_tup_del", "n_tup_hot_upd", "n_tup_newpage_upd")
SUMMED = (
    *COUNTERS,
    "heap_pages",
    "index_pages",
    "wal_records",
    "wal_bytes",
    "wal_fpi_bytes",
    "wal_fpi",
    "pages_modified",
)
"""Keys whose values add up over tables."""

SHARES = ("hot_frac", "newpage_frac")
"""Keys that are shares of the updates, compared by their difference."""

KEYS = (
    *COUNTERS,
    *SHARES,
    "heap_pages",
    "index_pages",
    "wal_records",
    "wal_bytes",
    "wal_fpi_bytes",
    "wal_fpi",
    "wal_bytes_per_update",
    "wal_nonfpi_bytes_per_update",
    "pages_modified",
)
"""All keys that are compared, in their order."""

MEASURED_ONLY = ("brin_pages",)
"""Keys that only a server has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """
    One player's figures of a window, for all tables together or for one of them.

    Names are PostgreSQL's where it has one; `_frac` are shares of the updates, `_pages` blocks of
    8192 bytes at the end of the window. `by_table` has the parts of a whole and is empty in a part.
    `operations_without_row` are an operation's turns that found no row, by its number from 0, where
    they are more than 1 % of its turns; None where counters do not tell. `failed_transactions` are
    those of several clients that failed to serialize, or in a deadlock, and were rolled back; None
    where there was none.
    """

    n_tup_ins: Value
    n_tup_upd: Value
    n_tup_del: Value
    n_tup_hot_upd: Value
    n_tup_newpage_upd: Value
    hot_frac: Value
    newpage_frac: Value
    heap_pages: Value
    index_pages: Value
    wal_records: Value
    wal_bytes: Value
    wal_fpi_bytes: Value
    wal_fpi: Value
    wal_bytes_per_update: Value
    wal_nonfpi_bytes_per_update: Value
    pages_modified: Value
    brin_pages: Value = field(default=None, metadata=in_file(unless_none=True))
    failed_transactions: Value = field(default=None, metadata=in_file(unless_none=True))
    operations_without_row: Mapping[str, Value] | None = field(
        default_factory=dict, metadata=in_file(only=lambda it: it.operations_without_row != {})
    )
    by_table: Mapping[str, Outcome] = field(
        default_factory=dict, metadata=in_file(unless_empty=True)
    )

    def value(self, key: str) -> Value:
        """The value under a key of `KEYS`."""
        found: Value = getattr(self, key)
        return found

    @property
    def is_exact(self) -> bool:
        """Whether no value, of the whole or of a table, is an interval."""
        return not any(isinstance(self.value(key), Interval) for key in KEYS) and all(
            table.is_exact for table in self.by_table.values()
        )

    def parts(self) -> list[tuple[str | None, Outcome]]:
        """The whole, under None, and its tables by name."""
        return [(None, self), *self.by_table.items()]


def outcome_of(
    found: Mapping[str, Value], by_table: Mapping[str, Outcome] | None = None
) -> Outcome:
    """Figures by their keys as a value: all of `KEYS`, and what only a server has; and parts."""
    # No key is one of a part or a count.
    return Outcome(**found, by_table=by_table or {})  # type: ignore[arg-type]


def summed(parts: Sequence[float | None]) -> float | None:
    """The sum; one that is missing makes it missing."""
    total: float = 0
    for value in parts:
        if value is None:
            return None
        total += value
    return total


def of_sums(sums: Mapping[str, float | None]) -> Outcome:
    """
    The sums of a table, or of a whole, and their quotients.

    Args:
        sums: A value for each of `SUMMED`, and for those that only a server has.
    """
    updates = sums["n_tup_upd"]

    def per_update(value: float | None) -> float | None:
        return None if not updates or value is None else value / updates

    wal_bytes, fpi_bytes = sums["wal_bytes"], sums["wal_fpi_bytes"]
    plain_bytes = None if wal_bytes is None or fpi_bytes is None else wal_bytes - fpi_bytes
    return outcome_of(
        {
            **sums,
            "hot_frac": per_update(sums["n_tup_hot_upd"]),
            "newpage_frac": per_update(sums["n_tup_newpage_upd"]),
            "wal_bytes_per_update": per_update(wal_bytes),
            "wal_nonfpi_bytes_per_update": per_update(plain_bytes),
        }
    )


def put_together(
    by_table: Mapping[str, Mapping[str, float | None]], transactions: Mapping[str, float]
) -> Outcome:
    """
    The whole of a window out of its parts.

    Args:
        by_table: The sums of each table.
        transactions: What the clients' Transaction records add, which belong to no table.
    """
    tables = list(by_table.values())
    keys = [*SUMMED, *(key for key in MEASURED_ONLY if any(key in table for table in tables))]
    whole = {
        key: summed([*(table[key] for table in tables), transactions.get(key, 0)]) for key in keys
    }
    parts = {name: of_sums(table) for name, table in by_table.items()}
    return replace(of_sums(whole), by_table=parts)
