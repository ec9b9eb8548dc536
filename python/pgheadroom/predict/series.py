"""
A prediction over simulated time: the figures of each window.

Counters, WAL and modified pages of a window are its own; sizes are those at its end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pgheadroom import _core
from pgheadroom.outcome import KEYS, SUMMED, Outcome, Value, put_together
from pgheadroom.predict.spread import exact, spread
from pgheadroom.types import Interval

WINDOWS_DEFAULT = 60
"""Windows of a series: as many as a terminal shows side by side; arbitrary."""

_LEVELS = ("heap_pages", "index_pages")
"""Keys that are sizes at the end of a window; the others are sums over it."""

_FIRST = ("n_tup_upd", "n_tup_hot_upd", "hot_frac", "heap_pages", "wal_bytes_per_update")
"""What people look for, in front."""


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

    def to_json(self) -> dict[str, Any]:
        """Columns: `t_s`, then each figure; tables under `by_table` where there are several."""
        names = list(self.windows[0].by_table) if self.windows else []
        names = names if len(names) > 1 else []
        return {
            "t_s": [round(t, 3) for t in self.t_s],
            **self._columns(None),
            "by_table": {name: self._columns(name) for name in names},
        }

    def _columns(self, table: str | None) -> dict[str, list[Any]]:
        keys = (*_FIRST, *(key for key in KEYS if key not in _FIRST))
        return {
            key: [
                value.to_json() if isinstance(value, Interval) else value
                for value in self.column(key, table)
            ]
            for key in keys
        }


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
        one = exact(wholes[0]) if len(wholes) == 1 else spread(wholes, clients=clients, major=major)
        windows.append(one)
    return Series(t_s=tuple(times), windows=tuple(windows))


def _window(columns: Mapping[str, Any], window: int) -> dict[str, Any]:
    """One window of one run as the object of a proof."""

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
