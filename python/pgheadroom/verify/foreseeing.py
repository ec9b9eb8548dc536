"""
Foreseen again, for what has happened since: a table that grows is no longer the one of the plan.

A forecast says what a table does after so many rows and updates. What came since is counted, so
the plan's own profile is played once more until there:

    loaded at the old setting |-- it lives --|-- altered, then what was counted since --|
                                                                         [ as now ]

Pages that were there keep their fill, new ones have room; the part of the run that stands for the
window of the measurement is what is foreseen for now, and the pages that came after the setting are
foreseen by themselves.

How long it lived decides what room its pages have for the next rows, so it is as long as the
counters say; where they do not reach back so far, every life that may have been is played.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pgheadroom.advise.calibrate import calibrate
from pgheadroom.advise.row import tuple_bytes_of
from pgheadroom.advise.runs import Piece, Played, Runner
from pgheadroom.advise.scenario import (
    SAMPLE_PAGES,
    Fit,
    Scenario,
    follows_rows,
    make_scenario,
    tiled,
)
from pgheadroom.advise.shares import observed_shares
from pgheadroom.advise.width import width_of
from pgheadroom.advise.younger import younger
from pgheadroom.errors import TwinError
from pgheadroom.outcome import as_interval
from pgheadroom.predict import minor_version
from pgheadroom.predict.spread import OfSamples, spread
from pgheadroom.profile import Operation, Profile, Snapshot
from pgheadroom.profile.tables import TableProfile
from pgheadroom.profile.workload import by_transaction
from pgheadroom.types import Interval, PgVersion
from pgheadroom.units import PAGE_BYTES
from pgheadroom.verify.room import LINE_POINTER_BYTES, Came, Old, free_bytes, with_unknown_room
from pgheadroom.verify.values import ByPage

BUDGET_S = 30.0
"""Seconds of all tables after which the calibration tries no further explanations."""

_SEEDS = 3
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
        lives: Updates that its pages had seen when it began, each number that may be; None: so many
            that more make no difference.
        vacuums: Of the table since then, by hand or not; None: not known.
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
    lives: tuple[int | None, ...] = (None,)
    vacuums: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """
    What is foreseen for now.

    Attributes:
        hot_frac: HOT updates over updates of the window, old and new pages together.
        newpage_frac: Updates that went to another page, likewise.
        grown_bytes: What the heap has grown by since then, with what nobody knows of the room that
            its pages had.
        heap_bytes: The heap now; None where its size then is not known.
        new_rows_frac: Part of the rows that came since.
        by_page: Old pages and new ones by themselves; None where nothing was altered, so that all
            are filled alike.
    """

    hot_frac: Interval
    newpage_frac: Interval
    grown_bytes: Interval
    heap_bytes: Interval | None
    new_rows_frac: float
    by_page: ByPage | None


class Unforeseen(Exception):  # noqa: N818 - an answer, not an error of ours
    """Why nothing can be foreseen for the state that the table is in now."""


def foresee(
    profile: Profile,
    table: TableProfile,
    since: Since,
    runner: Runner,
    *,
    fit: Fit | None = None,
) -> Again:
    """
    Play a plan's profile until the state of now.

    Args:
        profile: That the plan was made of, its tables.
        table: One of them, with updates.
        since: What has happened to it.
        runner: Plays.
        fit: Of the plan's calibration; None: it is calibrated anew.

    Raises:
        Unforeseen: The twin cannot play it, or what happened since is of another kind.
    """
    version = str(minor_version(profile, None, {}))
    try:
        scenario, off = (
            _calibrated(profile, table, version, runner)
            if fit is None
            else (_made_again(profile, table, fit), fit.off)
        )
        return play_until_now(
            scenario,
            since,
            version,
            runner,
            off=math.hypot(off, width_of(profile, table).half),
            row_bytes=tuple_bytes_of(table) + LINE_POINTER_BYTES,
        )
    except TwinError as error:
        raise Unforeseen(f"the twin cannot play it: {error}") from None


def _calibrated(
    profile: Profile, table: TableProfile, version: str, runner: Runner
) -> tuple[Scenario, float]:
    """What repeats the plan's observation, of a plan that does not say it; and by how much not."""
    observed = observed_shares(table)
    if observed is None:
        raise Unforeseen("the plan's observation has no updates of it")
    fitted = calibrate(profile, table, observed, version, runner, sample_pages=SAMPLE_PAGES)
    if fitted is None:
        raise Unforeseen("no operation of it could be made out")
    return fitted.scenario, fitted.off


def _made_again(profile: Profile, table: TableProfile, fit: Fit) -> Scenario:
    """The scenario of the plan's calibration."""
    unknown = fit.knobs.columns - {column.name for column in table.columns}
    if unknown:
        raise Unforeseen(f"the plan names column {sorted(unknown)[0]}, which it does not have")
    scenario = make_scenario(profile, table, fit.knobs, sample_pages=SAMPLE_PAGES)
    if scenario is None:
        raise Unforeseen("no operation of it could be made out")
    return scenario


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
        off: By how much the calibration missed the observed HOT share, and by how much the twin
            may be off for what it does not play; it widens all intervals.
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
    # Picks range over loaded rows or over the last ones, so that rows of any age are two tables;
    # those that follow the rows meet all of them.
    followed = follows_rows(scenario.profile.workload.operations)
    joint = followed or "newest" in picks or since.deletes > _DELETED_FRAC * since.inserts
    if joint or not since.inserts:
        found = _Population(scenario, since, version, runner)
        parts = [(1.0, found)]
    else:
        old, new, new_frac = _apart(scenario, since, version, runner)
        parts = [(1 - new_frac, old), (new_frac, new)]
    # Each update that goes to a new page takes room there, and as many as may have been missed.
    doubt = off * since.updates * row_bytes
    growth = _added([population.grown_bytes() for _, population in parts], doubt)
    growth = _with_unknown_room(
        growth, [population for _, population in parts], scenario, since, row_bytes
    )
    heap = since.heap_bytes
    return Again(
        hot_frac=_mixed([(part, p.share("hot_frac")) for part, p in parts], off),
        newpage_frac=_mixed([(part, p.share("newpage_frac")) for part, p in parts], off),
        grown_bytes=growth,
        heap_bytes=None if heap is None else _added([_exactly(heap), growth], 0.0),
        new_rows_frac=since.inserts / max(since.rows + since.inserts, 1),
        by_page=None if since.fillfactor_before == since.fillfactor else _by_page(parts),
    )


def _by_page(populations: Sequence[tuple[float, _Population]]) -> ByPage:
    """Old pages and new ones; a population's updates count by its weight."""
    old = hot_old = hot_new = 0.0
    for weight, population in populations:
        found = [run.figures() for run in population.runs]
        updates = math.fsum(one["n_tup_upd"] for one in found)
        if not updates:
            continue
        on_old = math.fsum(one["old_page_upd"] for one in found) / updates
        hot_there = math.fsum(one["old_page_hot_upd"] for one in found) / updates
        old += weight * on_old
        hot_old += weight * hot_there
        hot_new += weight * (math.fsum(one["n_tup_hot_upd"] for one in found) / updates - hot_there)
    old = min(old, 1.0)
    return ByPage(
        old_pages_frac=old,
        hot_old_frac=min(hot_old / old, 1.0) if old > 0 else None,
        hot_new_frac=min(hot_new / (1 - old), 1.0) if old < 1 else None,
    )


def _with_unknown_room(
    growth: Interval,
    populations: Sequence[_Population],
    scenario: Scenario,
    since: Since,
    row_bytes: float,
) -> Interval:
    """Growth as played, with what the run cannot know."""
    enabled = str(scenario.table.reloptions.get("autovacuum_enabled", "true")).lower()
    is_off = enabled in ("off", "false", "no", "0")
    old = Old(
        heap_bytes=since.heap_bytes,
        rows=since.rows,
        fillfactor=since.fillfactor_before,
        played_free_bytes=min(
            (one.free_bytes(row_bytes) for one in populations if not one.is_new), default=0.0
        ),
    )
    came = Came(
        inserts=since.inserts,
        deletes=since.deletes,
        moved=math.fsum(one.moved for one in populations),
        played_vacuums=max(one.vacuums for one in populations),
        vacuums=since.vacuums,
        is_vacuumed=scenario.profile.server.autovacuum and not is_off,
        fillfactor=since.fillfactor,
    )
    return with_unknown_room(growth, old, came, row_bytes)


def _apart(
    scenario: Scenario, since: Since, version: str, runner: Runner
) -> tuple[_Population, _Population, float]:
    """Rows that were there and rows that came, updated alike; and these' part of the updates."""
    ratio = since.inserts / since.rows
    now_frac = ratio / (1 + ratio)
    # Over the whole time, while their number rose evenly.
    frac = 1 - math.log1p(ratio) / ratio
    rest: dict[str, Any] = {"inserts": 0, "deletes": 0}
    old: dict[str, Any] = {
        "updates": round(since.updates * (1 - frac)),
        "window_updates": round(since.window_updates * (1 - now_frac)),
    }
    new: dict[str, Any] = {
        "rows": since.inserts,
        "updates": max(1, round(since.updates * frac)),
        "window_updates": max(1, round(since.window_updates * now_frac)),
        "fillfactor_before": since.fillfactor,
        "lives": (0,),  # it has no life before
    }
    return (
        _Population(scenario, replace(since, **old, **rest), version, runner),
        _Population(scenario, replace(since, **new, **rest), version, runner, is_new=True),
        now_frac,
    )


def _until_now(
    scenario: Scenario, since: Since, updates_before: int | None
) -> tuple[Scenario, int, int]:
    """The run until now; after which window the setting comes, and the first that is now."""
    operations, statements = _as_counted(scenario.profile.workload.operations, since)
    net = since.inserts - since.deletes
    # The life before, in parts of what came since.
    lived = _LIVED_UPDATES_PER_ROW * since.rows / max(since.updates, 1)
    if updates_before is not None:
        lived = min(lived, updates_before / max(since.updates, 1))
    if net > 0:
        lived = min(lived, _LIVED_GROWTH * since.rows / net)
    if net < 0:
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
        snapshots=_thinned(tiled(scenario, duration_s)),
    )
    made = replace(
        scenario,
        profile=replace(
            scenario.profile,
            tables=(replace(scenario.table, rows=rows),),
            workload=replace(
                scenario.profile.workload,
                operations=younger(operations, rows, rows / scenario.table.rows),
                run=run,
            ),
        ),
        share=share,
        per_s=max(100, count) / duration_s,
        duration_s=duration_s,
        updates_per_row=updates_in_run / max(rows, 1),
        sized_s=None,
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
    # A transaction comes as often as its first operation.
    first = {id(transaction[0]) for transaction in by_transaction(operations)}
    statements = math.fsum(weight for operation, weight in parts if id(operation) in first)
    if not statements:
        raise Unforeseen("nothing has happened to it since")
    scaled = tuple(
        replace(operation, weight=max(1, round(1e6 * weight / statements)))
        for operation, weight in parts
        if weight
    )
    return scaled, statements


def _thinned(found: Sequence[Snapshot]) -> tuple[Snapshot, ...]:
    """So many that they can be played."""
    return tuple(found[:: max(1, math.ceil(len(found) / _SNAPSHOTS_MAX))])


class _Population:
    """Rows that are played together, with what happens to them since, for each life before."""

    def __init__(
        self,
        scenario: Scenario,
        since: Since,
        version: str,
        runner: Runner,
        *,
        is_new: bool = False,
    ) -> None:
        changes = since.fillfactor_before != since.fillfactor
        self._first = since.fillfactor_before
        self._later = since.fillfactor if changes else None
        self._version = version
        self._runner = runner
        self.is_new = is_new
        self._lives = [_until_now(scenario, since, life)[:2] for life in since.lives]
        self._played = [
            self._play(life, alter_at, self._first, self._later) for life, alter_at in self._lives
        ]
        self._outcomes = [
            spread(
                [{**run.figures(), "by_table": {}} for run in runs],
                clients=1,
                major=PgVersion.parse(version).major,
                samples=OfSamples(share=life.share),
                by_clock=True,
            )
            for runs, (life, _) in zip(self._played, self._lives, strict=True)
        ]

    def _play(
        self, life: Scenario, alter_at: int, fillfactor: int, later: int | None
    ) -> list[Played]:
        return self._runner.play(
            Piece(
                scenario=life,
                version=self._version,
                fillfactor=fillfactor,
                seed=seed,
                later=later,
                later_at_frac=alter_at / life.windows,
            )
            for seed in range(_SEEDS)
        )

    @property
    def runs(self) -> list[Played]:
        """Of all lives."""
        return [run for runs in self._played for run in runs]

    def share(self, name: str) -> Interval:
        """Of the updates of the window, whichever life it had."""
        return _any_of(
            [
                as_interval(outcome.value(name), level=0.9) or _exactly(0.0)
                for outcome in self._outcomes
            ]
        )

    def grown_bytes(self) -> Interval:
        """Pages that came since the setting; of rows that came since, all."""
        return _any_of(
            [
                self._grown(runs, life.share, alter_at)
                for runs, (life, alter_at) in zip(self._played, self._lives, strict=True)
            ]
        )

    def free_bytes(self, row_bytes: float) -> float:
        """What pages had free or dead when it began, the least of all runs."""
        return min(
            free_bytes(
                run.columns["heap_pages"][alter_at - 1] * PAGE_BYTES / life.share,
                (life.table.rows + self._came(run, alter_at)) / life.share,
                row_bytes,
                self._first,
            )
            for run, life, alter_at in self._each()
        )

    @property
    def moved(self) -> float:
        """Versions that went to another page since."""
        return self._mean(
            sum(run.columns["n_tup_newpage_upd"][self._start(alter_at) :]) / life.share
            for run, life, alter_at in self._each()
        )

    @property
    def vacuums(self) -> float:
        """Autovacuums since."""
        return self._mean(
            sum(
                kind == "autovacuum" and began_s >= life.duration_s * alter_at / life.windows
                for kind, _, is_toast, began_s, *_ in run.simulated.happened
                if not is_toast
            )
            for run, life, alter_at in self._each()
        )

    def _each(self) -> Iterator[tuple[Played, Scenario, int]]:
        for runs, (life, alter_at) in zip(self._played, self._lives, strict=True):
            for run in runs:
                yield run, life, alter_at

    def _start(self, alter_at: int) -> int:
        return 0 if self.is_new else alter_at

    @staticmethod
    def _came(run: Played, alter_at: int) -> int:
        columns = run.columns
        return sum(columns["n_tup_ins"][:alter_at]) - sum(columns["n_tup_del"][:alter_at])

    @staticmethod
    def _mean(found: Iterable[float]) -> float:
        values = list(found)
        return math.fsum(values) / len(values)

    def _grown(self, runs: Sequence[Played], share: float, alter_at: int) -> Interval:
        found = []
        for run in runs:
            pages = run.columns["heap_pages"]
            first = 0 if self.is_new else pages[alter_at - 1]
            found.append((pages[-1] - first) * PAGE_BYTES / share)
        mid = math.fsum(found) / len(found)  # of equal numbers it may be off in its last digit
        return Interval.reaching(found, mid=mid, level=0.9)


def _exactly(value: float) -> Interval:
    return Interval.exactly(value, level=0.9)


def _any_of(found: Sequence[Interval]) -> Interval:
    """What holds each of them."""
    low, high = min(one.low for one in found), max(one.high for one in found)
    mid = math.fsum(one.mid for one in found) / len(found)
    return Interval(low=low, mid=min(max(mid, low), high), high=high, level=0.9)


def _added(parts: Sequence[Interval], doubt: float) -> Interval:
    """A sum, each of whose parts may be off by itself, and by something else."""
    mid = math.fsum(part.mid for part in parts)
    low = math.hypot(doubt, *(part.mid - part.low for part in parts))
    high = math.hypot(doubt, *(part.high - part.mid for part in parts))
    return Interval(low=max(0.0, mid - low), mid=mid, high=mid + high, level=0.9)


def _mixed(parts: Sequence[tuple[float, Interval]], off: float) -> Interval:
    """A mean of shares by their weights, wider where the calibration missed what was observed."""
    return _added([found.scaled(weight) for weight, found in parts], off).clipped(0.0, 1.0)
