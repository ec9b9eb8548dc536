"""
Does the twin repeat what was observed at the setting in force? If not: which named input explains?

Nothing that comes out is ever scaled. What an observation leaves open (which rows are updated, how
often an assigned column really changes, by how much strings grow, for how long horizons are held,
how much the table has lived already) may be set to the value with which the twin gives the observed
counters.

That one way of picking rows repeats an interval does not say that another would not: where the pick
is open each is played, and all that agree are kept, for they may part later (`parting.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from pgheadroom.advise.duration import follows_rows
from pgheadroom.advise.explaining import changed_columns, explanations, tried
from pgheadroom.advise.foreseen import Calibration
from pgheadroom.advise.growing import Growing, growing_of
from pgheadroom.advise.guard import DONE_FRAC_MIN, Guard, guard_of
from pgheadroom.advise.inputs import FittedInput
from pgheadroom.advise.knobs import Fit, Knobs
from pgheadroom.advise.own_wal import own_wal
from pgheadroom.advise.picks import Reading, readings
from pgheadroom.advise.runs import Runner, ScenarioPiece
from pgheadroom.advise.scenario import Scenario, make_scenario, writes
from pgheadroom.advise.shares import Observed
from pgheadroom.advise.trial import KnobTrial, twins_of
from pgheadroom.outcome import Value
from pgheadroom.predict.spread import spread
from pgheadroom.profile import Profile
from pgheadroom.profile.tables import TableProfile
from pgheadroom.profile.unpriced import as_they_are, left_out, played_gins
from pgheadroom.types import PgVersion

_SEEDS = 2
_SEEDS_LEFT_OUT = 6
"""Where what an index writes is what was measured beyond the twin's: a difference of two."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fits:
    """A pick of rows with which the twin repeats the observation, and the scenario with it."""

    reading: Reading
    scenario: Scenario


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """
    The scenario with which the twin comes nearest to the observation.

    Attributes:
        scenario: With the inputs that were set.
        calibration: What agrees, and what was set.
        off: By how much the predicted HOT share misses the observed one where they disagree, else
            0: what is foreseen elsewhere is as unsure.
        growth_bytes: By which a row grows at each update, where that explains the observation.
        guard: What of the twin's figures may be shown.
        reading: How updates pick their rows in the scenario; None where that was observed.
        others: Other picks that agree as well, as far as the interval tells.
    """

    scenario: Scenario
    calibration: Calibration
    off: float
    growth_bytes: float
    guard: Guard
    reading: Reading | None = None
    others: tuple[Fits, ...] = ()


def calibrate(
    profile: Profile,
    table: TableProfile,
    observed: Observed,
    version: str,
    runner: Runner,
    *,
    sample_pages: int,
) -> Fitted | None:
    """
    Find the scenario that repeats the observation.

    Args:
        profile: The observed profile.
        table: One of its tables, with updates.
        observed: Its shares.
        version: The minor version that the twin follows.
        runner: Plays.
        sample_pages: Heap pages that are simulated.

    Returns:
        The nearest scenario; None where nothing can be played.

    Raises:
        TwinError: The twin cannot play the table.
    """

    def fitted(whole: TableProfile) -> Fitted | None:
        return _calibrated(profile, table, whole, observed, version, runner, sample_pages)

    found = fitted(as_they_are(table))
    if found is None or found.guard.is_wal_shown or not played_gins(table):
        return found
    # With a GIN as its keys were counted the WAL is not what was measured: its own is the rest.
    return fitted(as_they_are(table, gins=False))


def _calibrated(
    profile: Profile,
    table: TableProfile,
    whole: TableProfile,
    observed: Observed,
    version: str,
    runner: Runner,
    sample_pages: int,
) -> Fitted | None:
    """The nearest scenario, with the table's indexes as `whole` has them."""
    assert table.observed is not None, "an observed profile"
    knobs, fitted = changed_columns(profile, table, observed)
    # A table whose rows come and go is as old as its rows, not as its counters.
    deletes = any(operation.kind == "delete" for operation in writes(profile, table.name))
    is_renewed = deletes and follows_rows(writes(profile, table.name))
    lived = None if is_renewed else _lived(table)

    def trial(knobs: Knobs) -> KnobTrial | None:
        scenario = make_scenario(profile, whole, knobs, sample_pages=sample_pages)
        if scenario is None:
            return None
        pieces = [_piece(scenario, version, table, seed) for seed in range(_SEEDS)]
        played = runner.play(pieces)
        return KnobTrial(scenario, knobs, played, lived=lived, seen=observed.updates / table.rows)

    found = _by_pick(profile, table, knobs, trial)
    if not found:
        return None
    is_open = found[0][0] is not None
    agreeing = _agreeing(profile, table, found, observed) if is_open else []
    reading, best = agreeing[0] if agreeing else found[0]
    if not agreeing:
        reading, best = min(found, key=lambda one: one[1].distance(observed))
        if not best.agrees(observed) and not best.settle(observed):
            best, told = _explained(profile, table, observed, best, trial)
            fitted = fitted if told is None else (*_only_changed(fitted), told)
            if not best.agrees(observed):
                best.settle(observed)
    if reading is not None and reading.pick is not None:
        fitted = (*fitted, FittedInput(quantity="pick", of=table.name, words=reading.told))
    if best.is_moved:
        fitted = (*fitted, FittedInput(quantity="lived", value=round(best.updates_until, 2)))
    # A third run makes a narrower interval, and is one of the curve's.
    seeds = range(_SEEDS, _SEEDS_LEFT_OUT if left_out(whole) else _SEEDS + 1)
    best.played = [
        *best.played,
        *runner.play([_piece(best.scenario, version, table, seed) for seed in seeds]),
    ]
    judged = _judged(profile, table, best, observed, fitted)
    others = tuple(
        Fits(reading=one, scenario=other.scenario) for one, other in agreeing[1:] if one is not None
    )
    if others:
        also = "; ".join(other.reading.told for other in others)
        note = f"{judged.calibration.note}; other rows updated would give it too: {also}"
        judged = replace(judged, calibration=replace(judged.calibration, note=note))
    return replace(judged, reading=reading, others=others)


def _by_pick(
    profile: Profile, table: TableProfile, knobs: Knobs, trial: Callable[[Knobs], KnobTrial | None]
) -> list[tuple[Reading | None, KnobTrial]]:
    """Each pick of rows that is left open, played; that of the profile where none is."""
    first = trial(knobs)
    if first is None:
        return []
    # Rows that come and go, and that the twin cannot follow: a pick of those left explains nothing.
    if twins_of(first).done_frac < DONE_FRAC_MIN:
        return [(None, first)]
    found: list[tuple[Reading | None, KnobTrial]] = []
    for reading in readings(profile, table):
        played = first if reading.pick is None else trial(replace(knobs, pick=reading.pick))
        if played is not None:
            found.append((reading, played))
    return found or [(None, first)]


def _agreeing(
    profile: Profile,
    table: TableProfile,
    played: Sequence[tuple[Reading | None, KnobTrial]],
    observed: Observed,
) -> list[tuple[Reading | None, KnobTrial]]:
    """
    Those that repeat the observation at the table's age, then those that do at another.

    The counters may have been reset, or the table rewritten: its age is as they say, or is not. One
    that contradicts what was measured beside HOT repeats nothing.
    """
    possible = [one for one in played if guard_of(profile, table, twins_of(one[1])).reason is None]
    at_once = [one for one in possible if one[1].agrees(observed)]
    return [*at_once, *(one for one in possible if one not in at_once and one[1].settle(observed))]


def _explained(
    profile: Profile,
    table: TableProfile,
    observed: Observed,
    best: KnobTrial,
    trial: Callable[[Knobs], KnobTrial | None],
) -> tuple[KnobTrial, FittedInput | None]:
    """The nearest of all other explanations, and what it sets; else the trial given."""
    named: FittedInput | None = None
    for explanation in explanations(profile, table, observed, best):
        for told, found in tried(explanation, trial, observed):
            if guard_of(profile, table, twins_of(found)).reason is not None:
                continue  # what explains HOT and contradicts the WAL explains nothing
            if found.distance(observed) < best.distance(observed):
                best, named = found, told
        if best.agrees(observed):
            break
    return best, named


def _piece(scenario: Scenario, version: str, table: TableProfile, seed: int) -> ScenarioPiece:
    return ScenarioPiece(scenario=scenario, version=version, fillfactor=table.fillfactor, seed=seed)


def _only_changed(fitted: tuple[FittedInput, ...]) -> tuple[FittedInput, ...]:
    return tuple(found for found in fitted if found.quantity == "changed_frac")


def _lived(table: TableProfile) -> float | None:
    """
    Updates a row that the table has seen, at least; None where the counters do not tell.

    Totals begin when the statistics do, and a rewrite in between begins the pages anew.
    """
    assert table.observed is not None, "an observed profile"
    totals = table.observed.totals
    total = None if totals is None else totals.n_tup_upd
    if total is None or table.rows < 1:
        return None
    return float(total) / table.rows


def _judged(
    profile: Profile,
    table: TableProfile,
    best: KnobTrial,
    observed: Observed,
    fitted: tuple[FittedInput, ...],
) -> Fitted:
    wholes = [run.outcome(best.first, best.last) for run in best.played]
    guard = guard_of(profile, table, twins_of(best))
    major = PgVersion.parse(best.played[0].piece.version).major
    outcome = spread(wholes, clients=1, major=major, by_clock=True)
    predicted: Value = outcome.hot_frac
    agrees = best.agrees(observed)
    off = 0.0 if agrees else best.distance(observed)
    if guard.reason is not None:
        return _contradicted(best, observed, guard, off)
    age = "in its steady state"
    if best.first != best.scenario.steady_from or best.last != best.scenario.windows:
        age = f"after {best.updates_until:.2g} updates a row"
    note = f"Compared {age}"
    if not agrees:
        note += ": what is foreseen elsewhere may be off by as much"
    note += _grown_once(growing_of(table), best.knobs)
    return Fitted(
        scenario=best.scenario,
        calibration=Calibration(
            observed_hot_frac=observed.hot,
            predicted_hot_frac=predicted,
            observed_newpage_frac=observed.newpage,
            predicted_newpage_frac=outcome.newpage_frac,
            agrees=agrees,
            fitted=fitted,
            note=note,
            observed_wal_bytes_per_update=guard.measured.wal_bytes_per_update,
            predicted_wal_bytes_per_update=(
                own_wal(best.played, best.first, best.last, share=best.scenario.share)
                if guard.is_wal_shown
                else None
            ),
            contradicted=guard.contradicted,
            fit=Fit(knobs=best.knobs, off=off),
        ),
        off=off,
        growth_bytes=sum((1 + size) / 2 for size in best.knobs.grows_bytes.values()),
        guard=guard,
    )


def _contradicted(best: KnobTrial, observed: Observed, guard: Guard, off: float) -> Fitted:
    """What the twin has is not what happens to this table: nothing of it is shown."""
    return Fitted(
        scenario=best.scenario,
        calibration=Calibration(
            observed_hot_frac=observed.hot,
            predicted_hot_frac=None,
            observed_newpage_frac=observed.newpage,
            predicted_newpage_frac=None,
            agrees=False,
            fitted=(),
            note="Nothing of it is shown",
            observed_wal_bytes_per_update=guard.measured.wal_bytes_per_update,
            contradicted=guard.contradicted,
        ),
        off=off,
        growth_bytes=0.0,
        guard=guard,
    )


def _grown_once(growing: Growing, knobs: Knobs) -> str:
    """What is assumed of rows that were longer once they had been updated."""
    if growing.lasts or knobs.grows_bytes or not growing.grown_bytes:
        return ""
    return (
        f"; rows written in the interval are {growing.grown_bytes:,.0f} bytes longer than the "
        "older ones, but not the longer the more updates they have had: taken as grown once and "
        "settled"
    )
