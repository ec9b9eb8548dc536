"""
Tables that are rewritten in the middle of a run: by VACUUM FULL, or beside the clients.

VACUUM FULL is as servers do it; how long it shuts the clients out is the machine's, and no time
passes on the twin's clock. An online rewrite (pg_repack, pg_squeeze, REPACK (CONCURRENTLY)) is a
model: rows are copied under a snapshot that is held meanwhile, then changes are caught up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

from pgheadroom import _core
from pgheadroom.errors import ParameterError
from pgheadroom.forms import Stored, in_file
from pgheadroom.outcome import Outcome, Value
from pgheadroom.predict.cells import Cell
from pgheadroom.predict.chance import counted
from pgheadroom.predict.clock import Clock, MomentS
from pgheadroom.predict.convergence import TakesEffect
from pgheadroom.predict.sampling import heap_pages
from pgheadroom.predict.series import InColumns
from pgheadroom.types import Assumed

How = Literal["full", "online"]
"""VACUUM FULL, which locks the table; or beside the clients."""

COPY_PAGES_PER_S = 12_800.0
"""Pages that an online rewrite copies a second where nobody says how long it takes: 100 MB;
arbitrary."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteAsked:
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

    `versions` were copied, `recently_dead` of them for older
    snapshots only; WAL is that of the table's and its indexes' pages.
    """

    table: str
    heap_pages_before: Value
    heap_pages_after: Value
    index_pages_before: Value
    index_pages_after: Value
    versions: Value
    recently_dead: Value
    wal_records: Value
    wal_bytes: Value


@dataclass(frozen=True, slots=True, kw_only=True)
class RewrittenLater:
    """
    A cell's tables altered at the start and rewritten in the middle.

    `at_s` and `until_s` are on the clock of the series, None without one; `until_frac` is
    `at_frac` for VACUUM FULL.
    """

    how: How
    evidence: Literal["exact", "interval", "model"]
    at_frac: float
    until_frac: Annotated[float, Stored(float, dump=lambda part: round(part, 6))]
    at_s: MomentS | None
    until_s: MomentS | None
    tables: tuple[RewriteWork, ...]
    predicted: Outcome
    effect: TakesEffect | None = field(default=None, metadata=in_file(unless_none=True))
    series: InColumns | None = field(default=None, metadata=in_file(unless_none=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class RewrittenCells:
    """Cells whose tables are rewritten in the middle of the run, and what that assumes."""

    cells: tuple[Cell, ...] = ()
    assumed: Assumed = field(default_factory=dict)


def rewritten_at(cells: Sequence[Cell], rewrite: RewriteAsked, clock: Clock) -> RewrittenCells:
    """
    The same cells with the tables that are altered rewritten in the middle of the run.

    Args:
        cells: Cells whose tables are altered when the run begins.
        rewrite: When and how.
        clock: How fast the run goes.

    Raises:
        InputError: A fraction that is not inside the run, or an end behind it; tables that are not
            altered.
    """
    if not cells:
        raise ParameterError(
            "rewrite",
            "goes with `from_fillfactor`, at which the tables were loaded",
            mentions=("from_fillfactor",),
        )
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
    assumed: Assumed = {}
    for cell in cells:
        until = None
        if rewrite.how == "online":
            takes_s = rewrite.takes_s
            if takes_s is None:
                takes_s = heap_pages(cell.profile) / COPY_PAGES_PER_S
                assumed = {"rewrite.duration_s": _guess(takes_s)}
            until = _until(rewrite, takes_s, clock)
        planned = tuple((name, rewrite.at_frac, until) for name in cell.later)
        found.append(replace(cell, rewrites=planned))
    return RewrittenCells(cells=tuple(found), assumed=assumed)


def _guess(takes_s: float) -> str:
    return f"{takes_s:.3g}: {COPY_PAGES_PER_S:g} pages a second, a guess, for nobody said it"


def _until(rewrite: RewriteAsked, takes_s: float, clock: Clock) -> float:
    lasts_s = clock.duration_s
    until = rewrite.at_frac + takes_s / lasts_s
    if until > 1:
        raise ParameterError(
            "rewrite",
            f"{rewrite.at_frac:g}: the copy would take {takes_s:.3g} s and end after the "
            f"run of {lasts_s:.3g} s; expected an earlier moment, a longer run, or a shorter "
            "`rewrite_for`",
            mentions=("rewrite_for",),
        )
    return until


def work_of(runs: Sequence[_core.Simulated]) -> tuple[RewriteWork, ...]:
    """What the rewrites of some runs of one cell did."""
    columns = zip(*(run.rewrites for run in runs), strict=True)
    return tuple(_work(column) for column in columns)


def _work(column: Sequence[dict[str, Any]]) -> RewriteWork:
    def over(key: str) -> Value:
        return counted([int(item[key]) for item in column])

    def end(key: str, n: int) -> Value:
        return counted([int(item[key][n]) for item in column])

    return RewriteWork(
        table=str(column[0]["table"]),
        heap_pages_before=end("heap_pages", 0),
        heap_pages_after=end("heap_pages", 1),
        index_pages_before=end("index_pages", 0),
        index_pages_after=end("index_pages", 1),
        versions=over("versions"),
        recently_dead=over("recently_dead"),
        wal_records=over("wal_records"),
        wal_bytes=over("wal_bytes"),
    )
