"""
A prediction over simulated time: the figures of each window.

Counters, WAL and modified pages of a window are its own; sizes are those at its end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pgheadroom import _core
from pgheadroom.forms import Stored
from pgheadroom.outcome import KEYS, SUMMED, Outcome, Value, middle, put_together
from pgheadroom.predict.spread import spread

_LEVELS = ("heap_pages", "index_pages")
"""Keys that are sizes at the end of a window; the others are sums over it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """
    Windows of equal length, one after the other.

    `t_s` is the end of each; `windows` are their outcomes, all tables together and by table.
    """

    t_s: tuple[float, ...]
    windows: tuple[Outcome, ...]

    def column(self, key: str, table: str | None = None) -> tuple[Value, ...]:
        """One figure over time, of a table or of all together."""
        parts = self.windows if table is None else [item.by_table[table] for item in self.windows]
        return tuple(item.value(key) for item in parts)

    def numbers(self, key: str, table: str | None = None) -> list[float]:
        """The same in numbers: the middles of intervals, 0 where nothing is known."""
        return [float(middle(value) or 0.0) for value in self.column(key, table)]


_Column = tuple[Value, ...]


@dataclass(frozen=True, kw_only=True)
class _Times:
    t_s: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class Columns:
    """Each figure over time; what people look for stands in front."""

    n_tup_upd: _Column
    n_tup_hot_upd: _Column
    hot_frac: _Column
    heap_pages: _Column
    wal_bytes_per_update: _Column
    n_tup_ins: _Column
    n_tup_del: _Column
    n_tup_newpage_upd: _Column
    newpage_frac: _Column
    index_pages: _Column
    wal_records: _Column
    wal_bytes: _Column
    wal_fpi_bytes: _Column
    wal_fpi: _Column
    wal_nonfpi_bytes_per_update: _Column
    pages_modified: _Column


@dataclass(frozen=True, kw_only=True)
class SeriesColumns(Columns, _Times):
    """A series as files have it; tables stand by name where there are several."""

    by_table: Mapping[str, Columns]


def _in_columns(series: Series) -> SeriesColumns:
    names = list(series.windows[0].by_table) if series.windows else []

    def columns(table: str | None) -> dict[str, _Column]:
        return {key: series.column(key, table) for key in KEYS}

    return SeriesColumns(
        t_s=tuple(round(t, 3) for t in series.t_s),
        **columns(None),
        by_table={name: Columns(**columns(name)) for name in names if len(names) > 1},
    )


def _in_windows(found: SeriesColumns) -> Series:
    def window(columns: Columns, n: int) -> dict[str, Any]:
        return {key: getattr(columns, key)[n] for key in KEYS}

    several = (found, *found.by_table.values())
    if any(len(getattr(each, key)) != len(found.t_s) for each in several for key in KEYS):
        raise ValueError(f"found columns of other lengths than t_s, expected {len(found.t_s)} each")
    return Series(
        t_s=found.t_s,
        windows=tuple(
            Outcome(
                **window(found, n),
                by_table={
                    name: Outcome(**window(columns, n)) for name, columns in found.by_table.items()
                },
            )
            for n in range(len(found.t_s))
        ),
    )


InColumns = Annotated[Series, Stored(SeriesColumns, _in_windows, _in_columns)]
"""A series that is a part of a file."""


def series_of(runs: Sequence[_core.Simulated], *, clients: int, major: int) -> Series | None:
    """
    The windows of one cell's runs: exact with one run, else with intervals.

    Args:
        runs: Runs of the same length and number of windows.
        clients: How many wrote side by side.
        major: The server's major version.
    """
    columns = [run.series for run in runs]
    times: Sequence[float] = columns[0]["t_s"]
    if not times:
        return None
    windows = []
    for window in range(len(times)):
        wholes = [_window(run, window) for run in columns]
        one = wholes[0] if len(wholes) == 1 else spread(wholes, clients=clients, major=major)
        windows.append(one)
    return Series(t_s=tuple(times), windows=tuple(windows))


def _window(columns: Mapping[str, Any], window: int) -> Outcome:
    """One window of one run."""

    def over(values: Sequence[int]) -> int:
        return values[window] - (values[window - 1] if window else 0)

    tables: dict[str, dict[str, int | None]] = {}
    for name, table in columns["tables"].items():
        tables[name] = {
            key: (
                table[key][window]
                if key in _LEVELS or key == "pages_modified"
                else over(table[key])
            )
            for key in SUMMED
        }
    clients = {
        "wal_records": over(columns["transaction_records"]),
        "wal_bytes": over(columns["transaction_bytes"]),
    }
    return put_together(tables, clients)
