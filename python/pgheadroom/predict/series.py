"""
A prediction over simulated time: the figures of each window.

Counters, WAL and modified pages of a window are its own; sizes are those at its end.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, overload

from pgheadroom import _core
from pgheadroom.forms import Stored
from pgheadroom.outcome import KEYS, SUMMED, Outcome, Value, middle, outcome_of
from pgheadroom.predict.chance import mean_of
from pgheadroom.predict.spread import ByRun, spread_of_window

_OF_A_WINDOW = ("heap_pages", "index_pages", "pages_modified")
"""Keys that the twin has for a window: sizes at its end; the others are sums since the start."""

_TRANSACTIONS = {"wal_records": "transaction_records", "wal_bytes": "transaction_bytes"}
"""What the clients' Transaction records add, which belong to no table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """
    Windows of equal length, one after the other.

    `t_s` is the end of each; `windows` are their outcomes, all tables together and by table.
    """

    t_s: tuple[float, ...]
    windows: Sequence[Outcome]

    @property
    def tables(self) -> list[str]:
        """The tables' names."""
        if isinstance(self.windows, _OfRuns):
            return list(self.windows.tables)
        return list(self.windows[0].by_table) if self.windows else []

    def column(self, key: str, table: str | None = None) -> tuple[Value, ...]:
        """One figure over time, of a table or of all together."""
        parts = self.windows if table is None else [item.by_table[table] for item in self.windows]
        return tuple(item.value(key) for item in parts)

    def middles(self, key: str, table: str | None = None) -> list[float | None]:
        """The same in numbers: the middles of intervals."""
        if isinstance(self.windows, _OfRuns):
            return self.windows.middles(key, table)
        return [middle(value) for value in self.column(key, table)]

    def numbers(self, key: str, table: str | None = None) -> list[float]:
        """The same, with 0 where nothing is known."""
        return [float(value or 0.0) for value in self.middles(key, table)]


_ByWindow = Mapping[str, Sequence[Sequence[float | None]]]
"""What each run has of a figure: by its key, and window by window."""


class _OfRuns(Sequence[Outcome]):
    """
    The windows of several runs, each made when somebody asks for it.

    Intervals of all figures take a run's own time, and of most cells nobody looks at any.
    """

    def __init__(
        self,
        whole: _ByWindow,
        tables: Mapping[str, _ByWindow],
        make: Callable[[ByRun, Mapping[str, ByRun]], Outcome],
    ) -> None:
        self.tables = tables
        self._whole = whole
        self._make = make
        self._made: list[Outcome | None] = [None] * len(next(iter(whole.values())))

    def middles(self, key: str, table: str | None) -> list[float | None]:
        """The middles of a figure, of a table or of all together, as its intervals have them."""
        part = self._whole if table is None else self.tables[table]
        return list(map(mean_of, part[key]))

    def __len__(self) -> int:
        return len(self._made)

    @overload
    def __getitem__(self, place: int) -> Outcome: ...

    @overload
    def __getitem__(self, place: slice) -> tuple[Outcome, ...]: ...

    def __getitem__(self, place: int | slice) -> Outcome | tuple[Outcome, ...]:
        if isinstance(place, slice):
            return tuple(self[n] for n in range(*place.indices(len(self))))
        made = self._made[place]
        if made is None:
            parts = {name: _at(place, table) for name, table in self.tables.items()}
            made = self._made[place] = self._make(_at(place, self._whole), parts)
        return made

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]  # as a list


def _at(place: int, figures: _ByWindow) -> ByRun:
    return {key: values[place] for key, values in figures.items()}


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
    names = series.tables

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
    by_run = [_figures(run) for run in columns]
    whole, *tables = (_beside([figures[name] for figures in by_run]) for name in by_run[0])
    names = [name for name in by_run[0] if name is not None]
    make = _alone if len(runs) == 1 else partial(spread_of_window, clients=clients, major=major)
    windows = _OfRuns(whole, dict(zip(names, tables, strict=True)), make)
    return Series(t_s=tuple(times), windows=windows)


_Figures = dict[str, Sequence[float | None]]
"""The values of a run by key, window by window."""


def _figures(run: Mapping[str, Any]) -> dict[str | None, _Figures]:
    """Of all tables together, under None and first, and of each."""
    tables: dict[str, dict[str, Sequence[float]]] = {
        name: {key: table[key] if key in _OF_A_WINDOW else _added(table[key]) for key in SUMMED}
        for name, table in run["tables"].items()
    }
    sums: dict[str, Sequence[float]] = {}
    for key in SUMMED:
        parts = [table[key] for table in tables.values()]
        if key in _TRANSACTIONS:
            parts.append(_added(run[_TRANSACTIONS[key]]))
        sums[key] = parts[0] if len(parts) == 1 else list(map(sum, zip(*parts, strict=True)))
    return {None: _with_shares(sums), **{name: _with_shares(sums) for name, sums in tables.items()}}


def _added(sums: Sequence[int]) -> list[int]:
    """What each window adds to a sum since the start."""
    return [after - before for before, after in zip((0, *sums[:-1]), sums, strict=True)]


def _with_shares(sums: Mapping[str, Sequence[float]]) -> _Figures:
    """All of `KEYS`: the sums and their quotients."""
    updates = sums["n_tup_upd"]

    def per_update(values: Iterable[float]) -> list[float | None]:
        return [value / by if by else None for value, by in zip(values, updates, strict=True)]

    plain_bytes = map(operator.sub, sums["wal_bytes"], sums["wal_fpi_bytes"])
    return {
        **sums,
        "hot_frac": per_update(sums["n_tup_hot_upd"]),
        "newpage_frac": per_update(sums["n_tup_newpage_upd"]),
        "wal_bytes_per_update": per_update(sums["wal_bytes"]),
        "wal_nonfpi_bytes_per_update": per_update(plain_bytes),
    }


def _beside(runs: Sequence[_Figures]) -> dict[str, list[tuple[float | None, ...]]]:
    """By key and window: what each run has."""
    return {key: list(zip(*(run[key] for run in runs), strict=True)) for key in KEYS}


def _alone(whole: ByRun, parts: Mapping[str, ByRun]) -> Outcome:
    """A window of a run that says all."""

    def exactly(values: ByRun) -> dict[str, Value]:
        return {key: value for key, (value,) in values.items()}

    by_table = {name: outcome_of(exactly(values)) for name, values in parts.items()}
    return outcome_of(exactly(whole), by_table)
