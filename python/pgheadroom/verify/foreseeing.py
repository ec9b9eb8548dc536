"""
Foreseen again, for what has happened since: a table that grows is no longer the one of the plan.

A forecast says what a table does after so many rows and updates. What came since is counted, so
the plan's own profile is played once more until there:

    loaded at the old setting |-- it lives --|-- altered, then what was counted since --|
                                                                         [ as now ]

Pages that were there keep their fill, new ones have room; the part of the run that stands for the
window of the measurement is what is foreseen for now, and the pages that came after the setting are
foreseen by themselves.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from pgheadroom.advise.calibrate import calibrate, observed_shares
from pgheadroom.advise.row import tuple_bytes_of
from pgheadroom.advise.runs import Piece, Played, Runner
from pgheadroom.advise.scenario import SAMPLE_PAGES, Scenario
from pgheadroom.errors import TwinError
from pgheadroom.predict import minor_version
from pgheadroom.predict.spread import OfSamples, spread
from pgheadroom.profile import Operation, Profile, Snapshot
from pgheadroom.profile.model import TableProfile
from pgheadroom.types import Interval
from pgheadroom.units import PAGE_BYTES

BUDGET_S = 30.0
"""Seconds of all tables after which the calibration tries no further explanations."""

_SEEDS = 3
_LINE_POINTER_BYTES = 4
_OPERATIONS_MAX = 300_000
_ROWS_MIN = 500
_LIVED_UPDATES_PER_ROW = 2.0  # of the life before: then a page has been round once; arbitrary
_LIVED_GROWTH = 0.5  # part of the rows at the setting that came in it, of a table that grows
_LIVED_MAX = 20.0  # of what came since
_DELETED_FRAC = 0.02  # of what came, for rows of any age to be two tables
_WINDOWS_MIN, _WINDOWS_MAX = 20, 120
_UPDATES_MIN = 300  # in the windows that stand for now, where the run has as many
_NEW_KIND_FRAC = 0.02  # rows changed in a way that the plan never saw
_SNAPSHOTS_MAX = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Since:
    """
    What has happened to a table since its setting was applied, or since the plan for one kept.

    Attributes:
        rows: When it began.
        heap_bytes: When it began; None where nobody looked.
        inserts: Rows since then; updates and deletes likewise.
        window_updates: Updates of the measurement, the last ones.
        length_s: Until now.
        fillfactor_before: At which its pages had been filled.
        fillfactor: In force since then.
    """

    rows: int
    heap_bytes: int | None
    inserts: int
    updates: int
    deletes: int
    window_updates: int
    length_s: float
    fillfactor_before: int
    fillfactor: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """
    What is foreseen for now.

    Attributes:
        hot_frac: HOT updates over updates of the window, old and new pages together.
        newpage_frac: Updates that went to another page, likewise.
        grown_bytes: What the heap has grown by since then.
        heap_bytes: The heap now; None where its size then is not known.
        hot_old_frac: If all pages were filled as those that were there.
        hot_new_frac: If all were filled under the new setting.
        new_rows_frac: Part of the rows that came since.
        is_growth_judged: False where rows are updated as they come: how their versions and the
            next rows alternate decides how many rows a new page takes, by a factor.
    """

    hot_frac: Interval
    newpage_frac: Interval
    grown_bytes: Interval
    heap_bytes: Interval | None
    hot_old_frac: float
    hot_new_frac: float
    new_rows_frac: float
    is_growth_judged: bool


class Unforeseen(Exception):  # noqa: N818 - an answer, not an error of ours
    """Why nothing can be foreseen for the state that the table is in now."""


def foresee(profile: Profile, table: TableProfile, since: Since, runner: Runner) -> Again:
    """
    Play a plan's profile until the state of now.

    Args:
        profile: That the plan was made of, its tables.
        table: One of them, with updates.
        since: What has happened to it.
        runner: Plays.

    Raises:
        Unforeseen: The twin cannot play it, or what happened since is of another kind.
    """
    observed = observed_shares(table)
    version = str(minor_version(profile, None, {}))
    if observed is None:
        raise Unforeseen("the plan's observation has no updates of it")
    try:
        fitted = calibrate(profile, table, observed, version, runner, sample_pages=SAMPLE_PAGES)
        if fitted is None:
            raise Unforeseen("no operation of it could be made out")
        return play_until_now(
            fitted.scenario,
            since,
            version,
            runner,
            off=fitted.off,
            row_bytes=tuple_bytes_of(table) + _LINE_POINTER_BYTES,
        )
    except TwinError as error:
        raise Unforeseen(f"the twin cannot play it: {error}") from None


def play_until_now(
    scenario: Scenario,
    since: Since,
    version: str,
    runner: Runner,
    *,
    off: float = 0.0,
    row_bytes: float,
) -> Again:
    """
    Play a scenario that repeats the plan's observation until the state of now.

    Args:
        scenario: Of the calibration.
        since: What has happened.
        version: The minor version that the twin follows.
        runner: Plays.
        off: By how much the calibration missed the observed HOT share; it widens all intervals.
        row_bytes: Of a version on its page.

    Raises:
        Unforeseen: What happened since is of another kind, or too much.
        TwinError: The twin cannot play it.
    """
    picks = [
        operation.pick.distribution
        for operation in scenario.profile.workload.operations
        if operation.kind == "update" and operation.pick is not None
    ]
    # Picks range over loaded rows or over the last ones, so that rows of any age are two tables.
    joint = "newest" in picks or since.deletes > _DELETED_FRAC * since.inserts
    if joint or not since.inserts:
        found = _Population(scenario, since, version, runner)
        parts, new_frac = [(1.0, found)], 0.0
        pure = (_hot(found.pure(since.fillfactor_before)), _hot(found.pure(since.fillfactor)))
    else:
        old, new, new_frac = _apart(scenario, since, version, runner)
        parts = [(1 - new_frac, old), (new_frac, new)]
        pure = (_hot(old.runs), _hot(new.runs))
    # Each update that goes to a new page takes room there, and as many as the calibration missed.
    doubt = off * since.updates * row_bytes
    growth = _added([population.grown_bytes() for _, population in parts], doubt)
    heap = since.heap_bytes
    return Again(
        hot_frac=_mixed([(part, p.share("hot_frac")) for part, p in parts], off),
        newpage_frac=_mixed([(part, p.share("newpage_frac")) for part, p in parts], off),
        grown_bytes=growth,
        heap_bytes=None if heap is None else _added([_exactly(heap), growth], 0.0),
        hot_old_frac=pure[0],
        hot_new_frac=pure[1],
        new_rows_frac=since.inserts / max(since.rows + since.inserts, 1),
        is_growth_judged="newest" not in picks,
    )


def _apart(
    scenario: Scenario, since: Since, version: str, runner: Runner
) -> tuple[_Population, _Population, float]:
    """Rows that were there and rows that came, updated alike; and these' part of the updates."""
    ratio = since.inserts / since.rows
    now_frac = ratio / (1 + ratio)
    # Over the whole time, while their number rose evenly.
    frac = 1 - math.log1p(ratio) / ratio
    rest = {"inserts": 0, "deletes": 0}
    old: dict[str, Any] = {
        "updates": round(since.updates * (1 - frac)),
        "window_updates": round(since.window_updates * (1 - now_frac)),
    }
    new: dict[str, Any] = {
        "rows": since.inserts,
        "updates": max(1, round(since.updates * frac)),
        "window_updates": max(1, round(since.window_updates * now_frac)),
        "fillfactor_before": since.fillfactor,
    }
    return (
        _Population(scenario, replace(since, **old, **rest), version, runner),
        _Population(scenario, replace(since, **new, **rest), version, runner, lives_before=False),
        now_frac,
    )


def _until_now(
    scenario: Scenario, since: Since, *, lives_before: bool
) -> tuple[Scenario, int, int]:
    """The run until now; after which window the setting comes, and the first that is now."""
    operations, statements = _as_counted(scenario.profile.workload.operations, since)
    net = since.inserts - since.deletes
    # The life before, in parts of what came since.
    lived = _LIVED_UPDATES_PER_ROW * since.rows / max(since.updates, 1)
    if net > 0:
        lived = min(lived, _LIVED_GROWTH * since.rows / net)
    if net < 0 or not lives_before:
        lived = 0.0
    lived = min(lived, _LIVED_MAX)
    now_frac = since.window_updates / max(since.updates, 1) / (1 + lived)
    windows = min(_WINDOWS_MAX, max(_WINDOWS_MIN, math.ceil(2 / max(now_frac, 1e-9))))
    alter_at = max(1, round(windows * lived / (1 + lived)))
    lived = alter_at / (windows - alter_at)
    share = min(scenario.share, _OPERATIONS_MAX / (statements * (1 + lived)))
    share = min(1.0, max(share, _ROWS_MIN / since.rows))
    count = round(statements * (1 + lived) * share)
    if count > 4 * _OPERATIONS_MAX:
        raise Unforeseen("too much has happened since to play it")
    rows = max(1, round((since.rows - net * lived) * share))
    duration_s = max(since.length_s, 1e-3) * (1 + lived)
    updates_in_run = since.updates * (1 + lived) * share
    wanted = max(now_frac, min(_UPDATES_MIN / max(updates_in_run, 1), 0.25 / (1 + lived)))
    first = windows - max(1, round(wanted * windows))
    run = replace(
        scenario.profile.workload.run,
        operations=max(100, count),
        snapshots=_tiled(scenario, duration_s),
    )
    made = replace(
        scenario,
        profile=replace(
            scenario.profile,
            tables=(replace(scenario.table, rows=rows),),
            workload=replace(scenario.profile.workload, operations=operations, run=run),
        ),
        share=share,
        per_s=max(100, count) / duration_s,
        duration_s=duration_s,
        updates_per_row=updates_in_run / max(rows, 1),
        windows=windows,
        steady_from=first,
    )
    return made, alter_at, first


def _as_counted(
    operations: tuple[Operation, ...], since: Since
) -> tuple[tuple[Operation, ...], float]:
    """The plan's operations in the numbers that were counted since, and how many those are."""
    counted = {"insert": since.inserts, "update": since.updates, "delete": since.deletes}
    seen = dict.fromkeys(counted, 0.0)
    for operation in operations:
        if operation.kind in seen:
            seen[operation.kind] += operation.weight * operation.rows_mean
    total = sum(counted.values())
    for kind, rows in counted.items():
        if rows > _NEW_KIND_FRAC * total and not seen[kind]:
            raise Unforeseen(f"{rows} rows were changed by {kind} since, the plan has seen none")
    apart = all(operation.transaction is None for operation in operations)
    whole = total / max(sum(seen.values()), 1e-9)

    def factor(operation: Operation) -> float:
        # Statements of one transaction come together, so that no kind can be scaled by itself.
        if not apart or operation.kind not in seen:
            return whole
        return counted[operation.kind] / seen[operation.kind] if seen[operation.kind] else 0.0

    parts = [(operation, operation.weight * factor(operation)) for operation in operations]
    statements = math.fsum(weight for _, weight in parts)
    if not statements:
        raise Unforeseen("nothing has happened to it since")
    scaled = tuple(
        replace(operation, weight=max(1, round(1e6 * weight / statements)))
        for operation, weight in parts
        if weight
    )
    return scaled, statements


def _tiled(scenario: Scenario, duration_s: float) -> tuple[Snapshot, ...]:
    """Snapshots as often and as long as the scenario has them, over a run of another length."""
    ratio = scenario.duration_s / duration_s
    found = scenario.profile.workload.run.snapshots
    made = [
        Snapshot(
            start_frac=start,
            length_frac=max(0.0, min(one.length_frac * ratio, 1 - start) - 1e-9),
        )
        for turn in range(math.ceil(1 / ratio))
        for one in found
        if (start := (one.start_frac + turn) * ratio) < 1
    ]
    return tuple(made[:: max(1, math.ceil(len(made) / _SNAPSHOTS_MAX))])


class _Population:
    """Rows that are played together, with what happens to them since."""

    def __init__(
        self,
        scenario: Scenario,
        since: Since,
        version: str,
        runner: Runner,
        *,
        lives_before: bool = True,
    ) -> None:
        self._since = since
        self._version = version
        self._runner = runner
        self._lives_before = lives_before
        self._scenario, self._alter_at, _ = _until_now(scenario, since, lives_before=lives_before)
        changes = since.fillfactor_before != since.fillfactor
        self.runs = self._play(since.fillfactor_before, since.fillfactor if changes else None)
        self._outcome = spread(
            [{**run.figures(), "by_table": {}} for run in self.runs],
            clients=1,
            major=int(version.split(".", maxsplit=1)[0]),
            samples=OfSamples(share=self._scenario.share),
            by_clock=True,
        )

    def _play(self, fillfactor: int, later: int | None = None) -> list[Played]:
        at_frac = self._alter_at / self._scenario.windows
        return self._runner.play(
            Piece(
                scenario=self._scenario,
                version=self._version,
                fillfactor=fillfactor,
                seed=seed,
                later=later,
                later_at_frac=at_frac,
            )
            for seed in range(_SEEDS)
        )

    def pure(self, fillfactor: int) -> list[Played]:
        """The same with all pages filled at one setting."""
        return self._play(fillfactor)

    def share(self, name: str) -> Any:
        """Of the updates of the window."""
        return self._outcome.value(name)

    def grown_bytes(self) -> Interval:
        """Pages that came since the setting; of rows that came since, all."""
        found = []
        for run in self.runs:
            pages = run.columns["heap_pages"]
            first = pages[self._alter_at - 1] if self._lives_before else 0
            found.append((pages[-1] - first) * PAGE_BYTES / self._scenario.share)
        mid = math.fsum(found) / len(found)  # of equal numbers it may be off in its last digit
        return Interval(low=min(*found, mid), mid=mid, high=max(*found, mid), level=0.9)


def _hot(runs: list[Played]) -> float:
    found: list[Any] = [run.figures() for run in runs]
    updates = math.fsum(one["n_tup_upd"] for one in found)
    return math.fsum(one["n_tup_hot_upd"] for one in found) / updates if updates else 0.0


def _exactly(value: float) -> Interval:
    return Interval(low=value, mid=value, high=value, level=0.9)


def _added(parts: Sequence[Interval], doubt: float) -> Interval:
    """A sum, each of whose parts may be off by itself, and by something else."""
    mid = math.fsum(part.mid for part in parts)
    low = math.hypot(doubt, *(part.mid - part.low for part in parts))
    high = math.hypot(doubt, *(part.high - part.mid for part in parts))
    return Interval(low=max(0.0, mid - low), mid=mid, high=mid + high, level=0.9)


def _mixed(parts: Sequence[tuple[float, Any]], off: float) -> Interval:
    """A mean of shares by their weights, wider where the calibration missed what was observed."""
    weighed = [
        Interval(
            low=weight * found.low, mid=weight * found.mid, high=weight * found.high, level=0.9
        )
        for weight, value in parts
        for found in (value if isinstance(value, Interval) else _exactly(value or 0.0),)
    ]
    found = _added(weighed, off)
    return Interval(
        low=min(1.0, found.low), mid=min(1.0, found.mid), high=min(1.0, found.high), level=0.9
    )
