"""
An observed table with other indexes: both played as advice plays it, calibrated first.

A profile that `observe` wrote is an interval of a table that has lived for long. Played from a
fresh load, as `predict` plays a profile that somebody wrote, its baseline would be another table
than the one observed. Here it is the steady state of the run that repeats the observation.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace

from pgheadroom.advise.calibrate import Fitted, calibrate
from pgheadroom.advise.decide import not_repeated
from pgheadroom.advise.runs import Runner
from pgheadroom.advise.scenario import SAMPLE_PAGES, Scenario
from pgheadroom.advise.settling import LongRun, long_runs
from pgheadroom.advise.shares import observed_shares
from pgheadroom.errors import ParameterError, TwinError
from pgheadroom.outcome import Outcome
from pgheadroom.predict import Prediction, minor_version
from pgheadroom.predict.spread import OfSamples, spread
from pgheadroom.predict.values import PredictedCell, answer_by
from pgheadroom.predict.variants import Difference, IndexChange, changed, difference, name_of
from pgheadroom.profile import Profile
from pgheadroom.profile.tables import TableProfile
from pgheadroom.profile.unpriced import is_played, left_out, said_left_out
from pgheadroom.types import Assumed, PgVersion, Taken
from pgheadroom.units import percent, show_duration

_SEEDS = 3


def what_if(
    profile: Profile,
    changes: Sequence[IndexChange],
    table: str | None = None,
    fillfactors: Sequence[int] | None = None,
    *,
    server: str | None = None,
    executor: Executor | None = None,
) -> Prediction:
    """
    One observed table as it is and with other indexes, in the steady state.

    Args:
        profile: Made by `observe`.
        changes: Of indexes of one table.
        table: Which; None: the one that has the indexes.
        fillfactors: Percent, a pair of cells each; None: that in force.
        server: Version that the twin follows; it wins over the profile's.
        executor: Where to run; a thread a core when None.

    Raises:
        InputError: No such table or index, indexes of several tables, a change that is not
            possible, or a table without counted updates.
        TwinError: The twin cannot play the table, or what it has as it is now contradicts what was
            measured.
    """
    profile = profile.loaded_anew()  # its steady state is looked for, whatever its pages were
    found = _table(profile, changes, table)
    minor = minor_version(profile, server)
    version = minor.version
    shares = observed_shares(found)
    if shares is None:
        raise ParameterError(
            "table",
            f"{found.name}: no updates of it were counted in the interval, so there is "
            "nothing to calibrate on: expected a profile that was observed while it is updated",
        )
    with Runner(executor) as runner:
        fitted = calibrate(profile, found, shares, str(version), runner, sample_pages=SAMPLE_PAGES)
        if fitted is None:
            raise ParameterError(
                "table",
                f"{found.name}: no operation of it could be made out, for rows are found "
                "by a unique index: expected a table that has one",
            )
        _refuse_what_contradicts(found, fitted)
        scenario = fitted.scenario
        variant = replace(scenario, profile=_varied(scenario.profile, changes))
        cells: list[PredictedCell] = []
        unsettled: dict[int, LongRun] = {}
        for fillfactor in fillfactors or (found.fillfactor,):
            now, then = (
                _outcome(one, fillfactor, str(version), runner, unsettled)
                for one in (scenario, variant)
            )
            cells.append(PredictedCell(fillfactor=fillfactor, predicted=now))
            cells.append(
                PredictedCell(
                    fillfactor=fillfactor,
                    predicted=then,
                    variant=name_of(changes),
                    difference=Difference(predicted=difference(then, now)),
                )
            )
    return Prediction(
        server=version,
        storage="local",
        engine="heap",
        evidence="interval",
        assumed={**minor.assumed, **_assumed(found, fitted), **_said(unsettled)},
        answer=answer_by(cells),
        cells=tuple(cells),
    )


def _varied(profile: Profile, changes: Sequence[IndexChange]) -> Profile:
    """
    The profile with other indexes; those of methods that are not priced stay what they are.

    What stands for such an index are the columns that it notices, over which it may have no
    operators: a change is checked with B-trees in their places, as `observe` writes them.
    """
    (table,) = profile.tables
    others = {index.name: index for index in table.indexes if not is_played(index, table)}
    trees = {name: replace(index, method="btree") for name, index in others.items()}
    stands = tuple(trees.get(index.name, index) for index in table.indexes)
    made = changed(replace(profile, tables=(replace(table, indexes=stands),)), changes)
    (varied,) = made.tables
    back = tuple(
        others[index.name] if trees.get(index.name) == index else index for index in varied.indexes
    )
    return replace(made, tables=(replace(varied, indexes=back),))


def _refuse_what_contradicts(table: TableProfile, fitted: Fitted) -> None:
    """A difference from what is not so is none: no figure is shown, as in an advice."""
    reason = fitted.guard.reason
    if reason is None:
        decision = not_repeated(table, fitted.calibration, fitted.off)
        reason = None if decision is None else decision.reason
    if reason is not None:
        raise TwinError(
            f"{table.name}: {reason}; what it would be otherwise is not foreseen from that"
        )


def _table(profile: Profile, changes: Sequence[IndexChange], name: str | None) -> TableProfile:
    """The table whose indexes are changed."""
    if name is not None and name not in profile.table_names:
        raise ParameterError(
            "table",
            f"{name}: the profile has no such table, expected one of "
            f"{', '.join(profile.table_names[:20])}",
        )
    owners: dict[str, TableProfile] = {}
    for change in changes:
        with_it = [
            t
            for t in profile.tables
            if name in (None, t.name) and any(i.name == change.index for i in t.indexes)
        ]
        if not with_it:
            known = [i.name for t in profile.tables if name in (None, t.name) for i in t.indexes]
            near = difflib.get_close_matches(change.index, known, n=1)
            where = "the profile" if name is None else f"table {name}"
            raise change.refused(
                f"{where} has no index {change.index}; "
                f"{f'did you mean {near[0]}? ' if near else ''}"
                f"known here: {', '.join(known[:20]) or 'none'}"
            )
        owners[with_it[0].name] = with_it[0]
    if len(owners) > 1:
        raise changes[0].refused(
            f"the indexes are those of {', '.join(sorted(owners))}, expected "
            "of one table: an observed table is calibrated by itself"
        )
    return next(iter(owners.values()))


def _outcome(
    scenario: Scenario,
    fillfactor: int,
    version: str,
    runner: Runner,
    told: dict[int, LongRun],
) -> Outcome:
    """The steady state, blown up from the sample to the table; `told` takes what is none."""
    long_run = long_runs(scenario, (fillfactor,), version, runner, seeds=_SEEDS)[fillfactor]
    if not long_run.is_settled:
        told[fillfactor] = long_run
    name = scenario.table.name
    figures = [run.figures().blown_up(scenario.share) for run in long_run.runs]
    outcome = spread(
        [replace(one, by_table={name: one}) for one in figures],
        clients=1,
        major=PgVersion.parse(version).major,
        samples=OfSamples(share=scenario.share),
        by_clock=True,
    )
    return outcome


def _said(unsettled: Mapping[int, LongRun]) -> Assumed:
    """At which fillfactors the run was ended before it had settled."""
    return {
        f"not settled at fillfactor {fillfactor}": f"HOT still moved, {percent(seen.low, 1)} to "
        f"{percent(seen.high, 1)} seen until {found.scenario.updates_per_row:.3g} updates a row: "
        "its long run may lie beyond"
        for fillfactor, found in unsettled.items()
        if (seen := found.seen) is not None
    }


def _assumed(table: TableProfile, fitted: Fitted) -> Assumed:
    scenario = fitted.scenario
    steady = 1 - scenario.steady_from / scenario.windows
    found: dict[str, Taken] = {
        "twin.calibration": fitted.calibration.note,
        "run.duration_s": f"the steady state of {table.name} alone: the last "
        f"{show_duration(steady * scenario.duration_s)} of {show_duration(scenario.duration_s)}, "
        f"{scenario.updates_per_row:.3g} updates a row in all",
        **{f"fitted: {one.name}": one.stands for one in fitted.calibration.fitted},
    }
    not_priced = said_left_out(left_out(scenario.table))
    if not_priced:
        found["twin.approximations"] = (not_priced,)
    if scenario.share < 1:
        found["twin.sample"] = (
            f"{scenario.table.rows:,} of {table.rows:,} rows; rows and operations shrink alike"
        )
    return found
