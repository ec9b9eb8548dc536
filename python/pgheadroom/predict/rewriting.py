"""
Tables that are rewritten in the middle of a run: by VACUUM FULL, or beside the clients.

VACUUM FULL is as servers do it; how long it shuts the clients out is the machine's, and no time
passes on the twin's clock. An online rewrite (pg_repack, pg_squeeze, REPACK (CONCURRENTLY)) is a
model: rows are copied under a snapshot that is held meanwhile, then changes are caught up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from pgheadroom import _core
from pgheadroom.errors import ParameterError
from pgheadroom.outcome import Outcome, Value
from pgheadroom.predict.cells import Cell
from pgheadroom.predict.clock import tps_of
from pgheadroom.predict.convergence import TakesEffect
from pgheadroom.predict.sampling import heap_pages
from pgheadroom.predict.series import Series
from pgheadroom.predict.spread import counted
from pgheadroom.profile import Profile
from pgheadroom.types import Interval

How = Literal["full", "online"]
"""VACUUM FULL, which locks the table; or beside the clients."""

COPY_PAGES_PER_S = 12_800.0
"""Pages that an online rewrite copies a second where nobody says how long it takes: 100 MB;
arbitrary."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewrite:
    """
    A rewrite that is asked for.

    `at_frac` is when, as a part of the run; `takes_s` how long an online one copies (None:
    assumed).
    """

    at_frac: float
    how: How = "full"
    takes_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteWork:
    """
    What the rewrite of one table did, over the runs.

    Pages are those before and after; `versions` were copied, `recently_dead` of them for older
    snapshots only; WAL is that of the table's and its indexes' pages.
    """

    table: str
    heap_pages: tuple[Value, Value]
    index_pages: tuple[Value, Value]
    versions: Value
    recently_dead: Value
    wal_records: Value
    wal_bytes: Value

    def to_json(self) -> dict[str, Any]:
        """The file's form."""
        return {
            "table": self.table,
            "heap_pages_before": _json(self.heap_pages[0]),
            "heap_pages_after": _json(self.heap_pages[1]),
            "index_pages_before": _json(self.index_pages[0]),
            "index_pages_after": _json(self.index_pages[1]),
            "versions": _json(self.versions),
            "recently_dead": _json(self.recently_dead),
            "wal_records": _json(self.wal_records),
            "wal_bytes": _json(self.wal_bytes),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class RewrittenLater:
    """
    A cell's tables altered at the start and rewritten in the middle.

    `at_s` and `until_s` are on the clock of the series, None without one; `until_frac` is
    `at_frac` for VACUUM FULL.
    """

    how: How
    at_frac: float
    until_frac: float
    at_s: float | None
    until_s: float | None
    predicted: Outcome
    tables: tuple[RewriteWork, ...]
    series: Series | None = None
    effect: TakesEffect | None = None

    def to_json(self) -> dict[str, Any]:
        """As a cell, without its fillfactor."""
        found: dict[str, Any] = {
            "how": self.how,
            "evidence": "model" if self.how == "online" else self._evidence(),
            "at_frac": self.at_frac,
            "until_frac": round(self.until_frac, 6),
            "at_s": None if self.at_s is None else round(self.at_s, 3),
            "until_s": None if self.until_s is None else round(self.until_s, 3),
            "tables": [work.to_json() for work in self.tables],
            "predicted": self.predicted.to_json(),
        }
        for key in ("effect", "series"):
            part = getattr(self, key)
            if part is not None:
                found[key] = part.to_json()
        return found

    def _evidence(self) -> str:
        return "exact" if self.predicted.is_exact else "interval"


def rewritten_at(
    cells: Sequence[Cell], rewrite: Rewrite, tps: float | None, assumed: dict[str, Any]
) -> tuple[Cell, ...]:
    """
    The same cells with the tables that are altered rewritten in the middle of the run.

    Args:
        cells: Cells whose tables are altered when the run begins.
        rewrite: When and how.
        tps: Transactions a second that were asked for.
        assumed: Told what an online rewrite takes for granted.

    Raises:
        InputError: A fraction that is not inside the run, or an end behind it.
    """
    if not 0 < rewrite.at_frac < 1:
        raise ParameterError(
            "rewrite", f"{rewrite.at_frac:g}: expected a part of the run above 0 and below 1"
        )
    if rewrite.takes_s is not None and (rewrite.how == "full" or not rewrite.takes_s > 0):
        raise ParameterError(
            "rewrite_for",
            f"{rewrite.takes_s:g}: expected seconds above 0, of `rewrite_how` online",
            mentions=("rewrite_how",),
        )
    found = []
    for cell in cells:
        until = _until(cell.profile, rewrite, tps, assumed)
        planned = tuple((name, rewrite.at_frac, until) for name in cell.later)
        found.append(replace(cell, rewrites=planned))
    return tuple(found)


def _until(
    profile: Profile, rewrite: Rewrite, tps: float | None, assumed: dict[str, Any]
) -> float | None:
    if rewrite.how == "full":
        return None
    takes_s = rewrite.takes_s
    if takes_s is None:
        takes_s = heap_pages(profile) / COPY_PAGES_PER_S
        assumed["rewrite.duration_s"] = (
            f"{takes_s:.3g}: {COPY_PAGES_PER_S:g} pages a second, a guess, --rewrite-for says "
            "better"
        )
    duration_s = duration_of(profile, tps)
    until = rewrite.at_frac + takes_s / duration_s
    if until > 1:
        raise ParameterError(
            "rewrite",
            f"{rewrite.at_frac:g}: the copy would take {takes_s:.3g} s and end after the "
            f"run of {duration_s:.3g} s; expected an earlier moment, a longer run, or a shorter "
            "`rewrite_for`",
            mentions=("rewrite_for",),
        )
    return until


def duration_of(profile: Profile, tps: float | None) -> float:
    """How long a run is on the twin's clock, in seconds."""
    run = profile.workload.run
    if run.duration_s is not None:
        return run.duration_s
    assert run.operations is not None, "a run has one of the two"
    return run.operations / tps_of(profile, tps)[0]


def work_of(runs: Sequence[_core.Simulated]) -> tuple[RewriteWork, ...]:
    """What the rewrites of some runs of one cell did."""
    columns = zip(*(run.rewrites for run in runs), strict=True)
    return tuple(_work(column) for column in columns)


def _work(column: Sequence[dict[str, Any]]) -> RewriteWork:
    def over(key: str) -> Value:
        return counted([int(item[key]) for item in column])

    def pair(key: str) -> tuple[Value, Value]:
        return (
            counted([int(item[key][0]) for item in column]),
            counted([int(item[key][1]) for item in column]),
        )

    return RewriteWork(
        table=str(column[0]["table"]),
        heap_pages=pair("heap_pages"),
        index_pages=pair("index_pages"),
        versions=over("versions"),
        recently_dead=over("recently_dead"),
        wal_records=over("wal_records"),
        wal_bytes=over("wal_bytes"),
    )


def _json(value: Value) -> Any:
    return value.to_json() if isinstance(value, Interval) else value
