"""
How much a migration costs, by the twin: HOT and WAL of a table before and after.

The verdict is the rule's. What is played is what statements were seen to do: each class as it was
observed, its indexed columns changing as often as counters show, and a stand-in for the updates
that no statement explains, which stays one of a column that no index has. The run is short, so
that a check answers at once: few pages, no search for inputs that would explain an observation.
Where the twin contradicts what was measured at the setting in force, its figures are not given: its
HOT share here, its WAL by the adviser's guard (`pgheadroom.advise.guard`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pgheadroom.advise.guard import Guard, Twins, guard_of
from pgheadroom.advise.hot import HotShape, Part
from pgheadroom.advise.knobs import Knobs
from pgheadroom.advise.own_wal import own_wal
from pgheadroom.advise.row import labels_of
from pgheadroom.advise.runs import PlayedPiece, Runner, ScenarioPiece
from pgheadroom.advise.scenario import Scenario, make_scenario, writes
from pgheadroom.advise.shares import Observed, observed_shares
from pgheadroom.errors import InputError, TwinError
from pgheadroom.migration.shape import Altered, IndexAdded, edited
from pgheadroom.outcome import Value, mid
from pgheadroom.predict.spread import OfSamples, spread
from pgheadroom.profile import Change, Operation, Profile, Snapshot
from pgheadroom.profile.check import check
from pgheadroom.profile.unpriced import PRICED
from pgheadroom.types import PgVersion
from pgheadroom.units import show_share

SAMPLE_PAGES = 30
OPERATIONS_MAX = 6_000
INDEXES = 4
"""Of one run, of a table with up to so many indexes: a twentieth of a second. One with more has as
much less of both, so that each row is updated as often."""

SEEDS = 3
REPEATS_WITHIN = 0.05
"""A HOT share this near to the measured one is repeated: five points; arbitrary."""

_WINDOWS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """
    Of the steady state, before and after; WAL as `own_wal` has it, without full-page images.

    `missing` says what is not priced in it, as a sentence; empty where all is.
    """

    hot_now: Value
    hot_then: Value
    wal_now: Value
    wal_then: Value
    missing: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Side:
    """What was played of a table before, or after."""

    hot: Value
    wal: Value
    done_frac: float


def figures(
    profile: Profile,
    altered: Altered,
    parts: Sequence[Part],
    version: str,
    runner: Runner,
) -> Figures | str:
    """
    Play a table before and after.

    Args:
        profile: Observed.
        altered: The table, with what is done to it.
        parts: Its updates.
        version: The minor version that the twin follows.
        runner: Plays.

    Returns:
        The figures, or why there are none.
    """
    shares = observed_shares(altered.table)
    if shares is None:
        return "its updates were not counted"
    try:
        knobs = Knobs(changed_frac=_changed_frac(altered, parts))
        part = _part(altered)
        pages = math.ceil(part * SAMPLE_PAGES)
        scenario = make_scenario(profile, altered.table, knobs, sample_pages=pages)
        if scenario is None:
            return "no operation of it could be made out"
        scenario = _computing(
            _shortened(scenario, part), altered.before, labels_of(altered.table), knobs
        )
        now = _play(scenario, altered.table.fillfactor, version, runner)
        off = _contradicted(now, shares)
        if off is not None:
            return off
        # Sizes need the state that the table is in, which nobody has searched for here.
        twins = Twins(wal_bytes_per_update=now.wal, heap_bytes=None, done_frac=now.done_frac)
        guard = guard_of(profile, altered.table, twins)
        if guard.reason is not None:
            return guard.reason
        changed = replace(
            scenario.profile,
            tables=(edited(scenario.table, altered.edits),),
            workload=replace(
                scenario.profile.workload,
                operations=_operations(profile, altered, scenario),
            ),
        )
        later = replace(scenario, profile=changed)
        later = _computing(later, altered.after, altered.labels, knobs)
        check(later.profile)
        fillfactor = edited(altered.table, altered.edits).fillfactor
        then = _play(later, fillfactor, version, runner)
    except (TwinError, InputError) as error:
        return f"the twin cannot play it: {error}"
    return Figures(
        hot_now=now.hot,
        hot_then=then.hot,
        wal_now=now.wal,
        wal_then=then.wal,
        missing=_missing(guard, altered),
    )


def _missing(guard: Guard, altered: Altered) -> str:
    """What is not priced: indexes that are there, and those that come."""
    new = [
        f"{edit.name} ({edit.hot.method})"
        for edit in altered.edits
        if isinstance(edit, IndexAdded) and not is_played(edit)
    ]
    # An index that is made anew has the name of the one that goes.
    return replace(guard, unpriced=tuple(dict.fromkeys((*guard.unpriced, *new)))).missing


def is_played(edit: IndexAdded) -> bool:
    """Whether the twin has its pages; a B-tree stands for a hash index with a predicate, say."""
    method = edit.hot.method
    if method == "gin":
        return edit.index is not None and edit.index.method == method
    stands = edit.index is not None and edit.index.method != method
    return method in PRICED and not stands


def _contradicted(now: _Side, shares: Observed) -> str | None:
    """Why the HOT share as it is says that something else is played; without the played one."""
    found = None if now.hot is None else mid(now.hot)
    said = f"a short run does not repeat what was measured, {show_share(shares.hot)} HOT"
    if found is None:
        return said
    off = abs(found - shares.hot)
    if off <= max(REPEATS_WITHIN, shares.error(shares.hot)):
        return None
    return f"{said}: it is off by {100 * off:.0f} points"


def _play(scenario: Scenario, fillfactor: int, version: str, runner: Runner) -> _Side:
    pieces = [
        ScenarioPiece(scenario=scenario, version=version, fillfactor=fillfactor, seed=seed)
        for seed in range(SEEDS)
    ]
    played: list[PlayedPiece] = runner.play(pieces)
    outcome = spread(
        [run.outcome() for run in played],
        clients=1,
        major=PgVersion.parse(version).major,
        samples=OfSamples(share=scenario.share),
        by_clock=True,
    )
    asked = scenario.updates_per_row * scenario.table.rows
    done = math.fsum(sum(run.columns["n_tup_upd"]) for run in played) / len(played)
    return _Side(
        hot=outcome.hot_frac,
        wal=own_wal(played, share=scenario.share),
        done_frac=min(1.0, done / asked) if asked else 1.0,
    )


def _changed_frac(altered: Altered, parts: Sequence[Part]) -> dict[str, float]:
    """How often indexed columns change where they are assigned, by their names in the profile."""
    labels = labels_of(altered.table)
    found: dict[str, float] = {}
    for name in altered.before.blocking:
        assigning = [
            part
            for part in parts
            if name in part.assigned or name in altered.before.computed(part.assigned)
        ]
        total = sum(part.frac for part in assigning)
        label = labels.get(name)
        if total and label is not None:
            kept = sum(part.frac for part in assigning if name in part.steady)
            found[label] = round(1 - kept / total, 4)
    return found


def _computing(
    scenario: Scenario, shape: HotShape, labels: Mapping[str, str], knobs: Knobs
) -> Scenario:
    """Updates change the stored generated columns that read what they assign, too."""
    if not shape.generated:
        return scenario
    names = {label: name for name, label in labels.items()}

    def whole(operation: Operation) -> Operation:
        given = {change.column for change in operation.sets}
        assigned = [names[column] for column in given if column in names]
        more = sorted(labels[name] for name in shape.computed(assigned) if name in labels)
        sets = tuple(
            Change(column=label, changed_frac=knobs.changed_frac.get(label, 1.0))
            for label in more
            if label not in given
        )
        return replace(operation, sets=(*operation.sets, *sets))

    workload = scenario.profile.workload
    made = tuple(whole(o) if o.is_update else o for o in workload.operations)
    workload = replace(workload, operations=made)
    return replace(scenario, profile=replace(scenario.profile, workload=workload))


def _part(altered: Altered) -> float:
    """How much of a run is played of a table that has many indexes, before or after."""
    most = max(len(altered.table.indexes), len(edited(altered.table, altered.edits).indexes))
    return min(1.0, INDEXES / most) if most else 1.0


def _shortened(scenario: Scenario, of_most: float) -> Scenario:
    """The beginning of a run that would take longer than an answer may."""
    run = scenario.profile.workload.run
    count = run.operations or 0
    most = math.ceil(of_most * OPERATIONS_MAX)
    if count <= most:
        return scenario
    part = most / count
    snapshots = tuple(
        Snapshot(
            start_frac=found.start_frac / part,
            length_frac=min(found.length_frac / part, 1 - found.start_frac / part - 1e-9),
        )
        for found in run.snapshots
        if found.start_frac < part * (1 - 1e-6)
    )
    shorter = replace(run, operations=most, snapshots=snapshots)
    workload = replace(scenario.profile.workload, run=shorter)
    return replace(
        scenario,
        profile=replace(scenario.profile, workload=workload),
        duration_s=scenario.duration_s * part,
        updates_per_row=scenario.updates_per_row * part,
        windows=_WINDOWS,
        steady_from=_WINDOWS // 2,
    )


def _operations(profile: Profile, altered: Altered, scenario: Scenario) -> tuple[Operation, ...]:
    """
    As they are; updates that no statement explains stay ones of a column without an index.

    Which operations stand for these is what `observe` has written, not what was made of them since:
    those whose columns no class assigns.
    """
    table = altered.table
    labels = labels_of(table)
    classes = () if table.observed is None else table.observed.updates.classes
    known = [{labels[name] for name in found.columns if name in labels} for found in classes]
    key = {table.key.name} if table.key is not None else set()
    after = edited(table, altered.edits)
    blocked = {name for index in after.indexes for name in (*index.columns, *index.include)}
    free = [c.name for c in table.columns if c.name not in blocked and c.width is None]
    made = []
    written = writes(profile, table.name)
    for was, operation in zip(written, scenario.profile.workload.operations, strict=True):
        # What stands for the rest of a column's bytes changes with it.
        columns = {change.column for change in was.sets} & set(labels.values())
        is_known = not was.is_update or any(columns == found - key for found in known)
        if is_known or not columns & blocked:
            made.append(operation)
        elif free:
            made.append(replace(operation, sets=(Change(column=free[-1]),)))
        else:
            kept = tuple(replace(change, changed_frac=0.0) for change in operation.sets)
            made.append(replace(operation, sets=kept))
    return tuple(made)
