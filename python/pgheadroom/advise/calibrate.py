"""
Does the twin repeat what was observed at the setting in force? If not: which named input explains?

Nothing that comes out is ever scaled. What an observation leaves open (how often an assigned
column really changes, by how much strings grow, for how long horizons are held, how much the table
has lived already) may be set to the value with which the twin gives the observed counters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pgheadroom.advise.advice import Calibration
from pgheadroom.advise.growing import Growing, growing_of
from pgheadroom.advise.guard import Guard, Twins, guard_of
from pgheadroom.advise.own_wal import own_wal
from pgheadroom.advise.runs import Piece, Played, Runner
from pgheadroom.advise.scenario import (
    Fit,
    Knobs,
    Scenario,
    follows_rows,
    make_scenario,
    observed_hold_s,
    writes,
)
from pgheadroom.advise.updates import updates_of
from pgheadroom.outcome import Value
from pgheadroom.predict.spread import spread
from pgheadroom.predict.without_row import turns_of, worst_of
from pgheadroom.profile import Kind, Profile
from pgheadroom.profile.model import Pick, TableProfile
from pgheadroom.types import Interval, PgVersion
from pgheadroom.units import PAGE_BYTES

AGREES_WITHIN = 0.02
"""HOT shares this near to each other agree, whatever the intervals: two points."""

BRIN_KEEPS_HOT_FROM = 16
"""From this version on a summarizing index does not end HOT."""

_NO_NEWPAGE = 15
"""The last version that does not count updates to a new page."""

_SEEDS = 2
_HOLDS_S = (5.0, 30.0, 120.0, 600.0)
_GROWTHS_BYTES = (2, 4, 8, 16, 32, 64, 128, 256)
_Z = 1.645  # of a two-sided 90 %
_CLUSTERED = 1.5  # updates of one statement or page go together: wider than a binomial's; arbitrary


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """
    The interval's updates of a table, as shares.

    `hot`, `newpage` and `indexed` add up to 1; `newpage` and `indexed` (same page, not HOT) are
    None on 15, which does not count them.
    """

    updates: int
    hot: float
    newpage: float | None
    indexed: float | None

    def error(self, share: float) -> float:
        """What chance alone may do to a share of so many updates, to either side at 90 %."""
        share = min(max(share, 1 / (self.updates + 1)), 1 - 1 / (self.updates + 1))
        return _CLUSTERED * _Z * math.sqrt(share * (1 - share) / self.updates)


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
    """

    scenario: Scenario
    calibration: Calibration
    off: float
    growth_bytes: float
    guard: Guard


def observed_shares(table: TableProfile) -> Observed | None:
    """The interval's shares; None without updates, or where a counter went backwards."""
    assert table.observed is not None, "an observed profile"
    counters: Mapping[str, Any] = table.observed.counters
    updates, hot = counters.get("n_tup_upd"), counters.get("n_tup_hot_upd")
    if not updates or hot is None:
        return None
    newpage = counters.get("n_tup_newpage_upd")
    # Sessions report their counters one by one: HOT may be ahead of the rest by a few.
    hot = min(hot, updates)
    if newpage is None:
        return Observed(updates=updates, hot=hot / updates, newpage=None, indexed=None)
    newpage = min(newpage, updates - hot)
    return Observed(
        updates=updates,
        hot=hot / updates,
        newpage=newpage / updates,
        indexed=(updates - hot - newpage) / updates,
    )


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
    assert table.observed is not None, "an observed profile"
    fitted: dict[str, Any] = {}
    knobs = _changed(profile, table, observed, fitted)
    # A table whose rows come and go is as old as its rows, not as its counters.
    deletes = any(operation.kind == "delete" for operation in writes(profile, table.name))
    is_renewed = deletes and follows_rows(writes(profile, table.name))
    lived = None if is_renewed else _lived(table)

    def trial(knobs: Knobs) -> _Trial | None:
        scenario = make_scenario(profile, table, knobs, sample_pages=sample_pages)
        if scenario is None:
            return None
        pieces = [_piece(scenario, version, table, seed) for seed in range(_SEEDS)]
        played = runner.play(pieces)
        return _Trial(scenario, knobs, played, lived=lived, seen=observed.updates / table.rows)

    best = trial(knobs)
    if best is None:
        return None
    if not best.agrees(observed) and not best.settle(observed):
        for kind in _explanations(profile, table, observed, best):
            for name, found in _tried(kind, trial, observed):
                if guard_of(profile, table, _twins(found)).reason is not None:
                    continue  # what explains HOT and contradicts the WAL explains nothing
                if found.distance(observed) < best.distance(observed):
                    best = found
                    fitted = {**_only_changed(fitted), **name}
            if best.agrees(observed):
                break
        if not best.agrees(observed):
            best.settle(observed)
    if best.is_moved:
        fitted["updates a row that the table has lived through"] = round(best.updates_until, 2)
    # A third run makes a narrower interval, and is one of the curve's.
    best.played = [
        *best.played,
        *runner.play([_piece(best.scenario, version, table, _SEEDS)]),
    ]
    return _judged(profile, table, best, observed, fitted)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    """
    Explanations of a kind, each of which takes away more HOT than the one before.

    Attributes:
        options: What is told of each, and its knobs.
        is_dear: The more it takes, the longer it plays.
    """

    options: tuple[tuple[dict[str, Any], Knobs], ...]
    is_dear: bool = False


def _tried(
    kind: _Kind, trial: Callable[[Knobs], _Trial | None], observed: Observed
) -> Iterator[tuple[dict[str, Any], _Trial]]:
    """
    Play those of a kind that may come near, until one agrees.

    If the last does not take enough, none does; else what is sought lies between one that takes too
    little and one that takes too much. Where the later ones play long, upwards from the first.
    """
    low, high = 0, len(kind.options) - 1
    place = low if kind.is_dear else high
    while low <= high:
        told, knobs = kind.options[place]
        found = trial(knobs)
        if found is None:
            return
        yield told, found
        if found.agrees(observed):
            return
        if found.is_beyond(observed):
            high = place - 1
        else:
            low = place + 1
        place = low if kind.is_dear else (low + high) // 2


def _piece(scenario: Scenario, version: str, table: TableProfile, seed: int) -> Piece:
    return Piece(scenario=scenario, version=version, fillfactor=table.fillfactor, seed=seed)


def _only_changed(fitted: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in fitted.items() if key.startswith("changed_frac")}


class _Trial:
    """One setting of the knobs, played."""

    def __init__(
        self,
        scenario: Scenario,
        knobs: Knobs,
        played: Sequence[Played],
        *,
        lived: float | None,
        seen: float,
    ) -> None:
        self.scenario = scenario
        self.knobs = knobs
        self.played = played
        per_window = scenario.updates_per_row / scenario.windows
        self._span = max(1, round(seen / per_window)) if per_window > 0 else 1
        self._span = min(self._span, scenario.windows)
        self.first, self.last = self._window(lived)
        self.is_moved = False

    def _window(self, lived: float | None) -> tuple[int, int]:
        """The windows that show the table as old as it is; the steady half if nobody knows."""
        whole = self.scenario.updates_per_row
        if lived is None or whole <= 0 or lived >= whole / 2:
            return self.scenario.steady_from, self.scenario.windows
        last = max(1, math.ceil(lived / whole * self.scenario.windows))
        return self._until(last)

    def _until(self, last: int) -> tuple[int, int]:
        """As many windows as the interval had updates a row, up to this one."""
        last = min(self.scenario.windows, max(last, self._span))
        return last - self._span, last

    @property
    def updates_until(self) -> float:
        """Updates a row until the middle of the windows that are compared."""
        middle = (self.first + self.last) / 2
        return self.scenario.updates_per_row * middle / self.scenario.windows

    def shares(self, first: int | None = None, last: int | None = None) -> tuple[float, float]:
        """HOT and new-page share over windows, the mean of the runs."""
        first = self.first if first is None else first
        last = self.last if last is None else last
        found = [run.figures(first, last) for run in self.played]
        updates = math.fsum(run["n_tup_upd"] for run in found)
        if not updates:
            return 0.0, 0.0
        return (
            math.fsum(run["n_tup_hot_upd"] for run in found) / updates,
            math.fsum(run["n_tup_newpage_upd"] for run in found) / updates,
        )

    def distance(self, observed: Observed, place: int | None = None) -> float:
        """How far from the observation, in shares of the updates; at another moment if named."""
        first, last = (None, None) if place is None else self._until(place)
        hot, newpage = self.shares(first, last)
        if observed.newpage is None:
            return abs(hot - observed.hot)
        return max(abs(hot - observed.hot), abs(newpage - observed.newpage))

    def agrees(self, observed: Observed) -> bool:
        return self.distance(observed) <= max(AGREES_WITHIN, observed.error(observed.hot))

    def is_beyond(self, observed: Observed) -> bool:
        """Whether fewer updates are HOT than observed: more of the same would only be farther."""
        hot, _ = self.shares()
        return hot < observed.hot - max(AGREES_WITHIN, observed.error(observed.hot))

    def settle(self, observed: Observed) -> bool:
        """Compare at the moment that looks most as observed, if one does."""
        places = range(self._span, self.scenario.windows + 1)
        near = min(places, key=lambda place: self.distance(observed, place))
        if self.distance(observed, near) > max(AGREES_WITHIN, observed.error(observed.hot)):
            return False
        self.first, self.last = self._until(near)
        self.is_moved = True
        return True


def _lived(table: TableProfile) -> float | None:
    """
    Updates a row that the table has seen, at least; None where the counters do not tell.

    Totals begin when the statistics do, and a rewrite in between begins the pages anew.
    """
    assert table.observed is not None, "an observed profile"
    total = (table.observed.totals or {}).get("n_tup_upd")
    if total is None or table.rows < 1:
        return None
    return float(total) / table.rows


def _changed(
    profile: Profile, table: TableProfile, observed: Observed, fitted: dict[str, Any]
) -> Knobs:
    """
    How often columns that an index has really change, by the counters.

    An update that stays on its page and is not HOT has changed one of them; among all that stay,
    that is the share that changes.
    """
    blocking = _blocking(table, PgVersion.parse(profile.server.version).major)
    updates = [o for o in writes(profile, table.name) if o.kind == "update"]
    total = sum(o.weight * o.rows_mean for o in updates)
    if not blocking or not total:
        return Knobs()
    assigning = [
        (o.weight * o.rows_mean / total, columns)
        for o in updates
        if (columns := [c.column for c in o.sets if c.column in blocking and c.changed_frac > 0])
    ]
    share = math.fsum(part for part, _ in assigning)
    changed = _changing(observed)
    if changed is None:
        return Knobs()
    if changed > share + max(AGREES_WITHIN, observed.error(changed)):
        if observed.indexed is None:
            return Knobs()  # on 15 it may as well be room that was missing
        frac = round((changed - share) / (1 - share), 4)
        column = blocking[0]
        # Counters prove the change, but not of which column.
        which = f"{table.name}.{column}"
        if len(blocking) > 1:
            which = f"a column of {table.name}'s indexes, played as {column}"
        why = "assigns (a trigger?)" if _is_explained(table) else "explains"
        fitted[f"changed_frac of {which}, which no known statement {why}"] = frac
        return Knobs(also_changes=(column, frac))
    if changed >= share - observed.error(share):
        return Knobs()
    width = max(len(columns) for _, columns in assigning)
    each = round(1 - (1 - changed / share) ** (1 / width), 4)
    names = sorted({column for _, columns in assigning for column in columns})
    for name in names:
        fitted[f"changed_frac of {table.name}.{name}"] = each
    return Knobs(changed_frac=dict.fromkeys(names, each))


def _changing(observed: Observed) -> float | None:
    """The share of updates that changed an indexed column; on 15 not more than this."""
    if observed.indexed is None:
        return 1 - observed.hot
    stayed = observed.hot + observed.indexed
    return observed.indexed / stayed if stayed * observed.updates >= 1 else None


def _blocking(table: TableProfile, major: int) -> list[str]:
    """Columns of the profile whose change ends HOT, the key aside, in the order of the indexes."""
    found: list[str] = []
    for index in table.indexes:
        if index.method == "brin" and major >= BRIN_KEEPS_HOT_FROM:
            continue
        found += [*index.columns, *index.include]
        text = " ".join([*index.expressions, index.where or ""])
        found += [column.name for column in table.columns if column.name in text]
    key = table.key
    return [name for name in dict.fromkeys(found) if key is None or name != key.name]


def _explanations(
    profile: Profile, table: TableProfile, observed: Observed, tried: _Trial
) -> list[_Kind]:
    """What else may be, by kind: more new pages than foreseen, or fewer."""
    hot, newpage = tried.shares()
    knobs = tried.knobs
    missing = newpage < observed.newpage if observed.newpage is not None else hot > observed.hot
    found: list[_Kind] = []
    if missing:
        blocking = _blocking(table, PgVersion.parse(profile.server.version).major)
        if observed.newpage is None and blocking and hot > 0 and not _is_explained(table):
            frac = round(1 - observed.hot / hot, 4)
            told = f"changed_frac of {table.name}.{blocking[0]}, which no known statement explains"
            knob = replace(knobs, also_changes=(blocking[0], frac))
            found.append(_Kind(options=(({told: frac}, knob),)))
        found += [
            _growing(table.name, column, knobs, tried.scenario.updates_per_row)
            for column in (_strings(profile, table) if growing_of(table).lasts else ())
        ]
        already = observed_hold_s(profile)
        holds = tuple(
            ({"seconds that a horizon is held": hold}, replace(knobs, held_s=hold))
            for hold in _HOLDS_S
            if hold > already
        )
        found.append(_Kind(options=holds, is_dear=True))
    elif observed_hold_s(profile) > 0:
        free = ({"seconds that a horizon is held": 0}, replace(knobs, held_s=0.0))
        found.append(_Kind(options=(free,)))
    if any(o.kind == "update" and o.rows_mean > 1 for o in writes(profile, table.name)):
        where = {f"rows of {table.name} that one statement updates": "anywhere in the table"}
        found.insert(0, _Kind(options=((where, replace(knobs, scattered=True)),)))
    return [*(_Kind(options=(one,)) for one in _picks(profile, table, knobs)), *found]


def _growing(table: str, column: str, knobs: Knobs, updates_per_row: float) -> _Kind:
    """Growth of a string, as far as a row that has grown through a run still fits a page."""
    return _Kind(
        options=tuple(
            (
                {f"grows_bytes of {table}.{column}": f"1 to {size}"},
                replace(knobs, grows_bytes={column: size}),
            )
            for size in _GROWTHS_BYTES
            if (1 + size) / 2 * updates_per_row <= PAGE_BYTES
        )
    )


def _is_explained(table: TableProfile) -> bool:
    """
    Whether statements account for all updates.

    Then no column changes that none of them assigns, unless counters prove it (a trigger): 15 has
    no such counter.
    """
    found = updates_of(table, _NO_NEWPAGE)
    return found is not None and found.is_explained


def _picks(
    profile: Profile, table: TableProfile, knobs: Knobs
) -> list[tuple[dict[str, Any], Knobs]]:
    """Other rows that may be the updated ones, where no sample of ages says which."""
    assert table.observed is not None, "an observed profile"
    if table.observed.updates.pick.evidence != "assumed":
        return []
    if follows_rows(writes(profile, table.name)):
        return []  # those are picks among rows that are loaded, and soon gone
    picks = [
        Pick(distribution="hot_set", rows_frac=frac, weight=weight)
        for frac, weight in ((0.2, 0.8), (0.05, 0.95))
    ]
    if any(operation.kind == "insert" for operation in writes(profile, table.name)):
        picks.insert(0, Pick(distribution="newest"))
    return [
        ({f"rows of {table.name} that are updated": _told(pick)}, replace(knobs, pick=pick))
        for pick in picks
    ]


def _told(pick: Pick) -> str:
    if pick.distribution == "newest":
        return "the last inserted"
    return f"{pick.weight:.0%} of the updates on {pick.rows_frac:.0%} of the rows"


def _strings(profile: Profile, table: TableProfile) -> list[str]:
    """Strings of varying width that updates assign."""
    assigned = {c.column for o in writes(profile, table.name) for c in o.sets}
    return [c.name for c in table.columns if c.name in assigned and c.kind is Kind.STRING]


def _judged(
    profile: Profile,
    table: TableProfile,
    best: _Trial,
    observed: Observed,
    fitted: dict[str, Any],
) -> Fitted:
    wholes = [{**run.figures(best.first, best.last), "by_table": {}} for run in best.played]
    guard = guard_of(profile, table, _twins(best))
    major = int(best.played[0].piece.version.split(".")[0])
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


def _contradicted(best: _Trial, observed: Observed, guard: Guard, off: float) -> Fitted:
    """What the twin has is not what happens to this table: nothing of it is shown."""
    return Fitted(
        scenario=best.scenario,
        calibration=Calibration(
            observed_hot_frac=observed.hot,
            predicted_hot_frac=None,
            observed_newpage_frac=observed.newpage,
            predicted_newpage_frac=None,
            agrees=False,
            fitted={},
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


def _twins(best: _Trial) -> Twins:
    """What the twin has in the state that the table is taken to be in."""
    scenario, runs = best.scenario, best.played
    pages = math.fsum(_pages(run, "heap_pages", best) for run in runs) / len(runs)
    asked = scenario.updates_per_row * scenario.table.rows
    done = math.fsum(sum(run.columns["n_tup_upd"]) for run in runs) / len(runs)
    steady = 1 - scenario.steady_from / scenario.windows
    last = math.fsum(run.figures()["n_tup_upd"] for run in runs) / len(runs)
    return Twins(
        wal_bytes_per_update=own_wal(runs, best.first, best.last, share=scenario.share),
        heap_bytes=pages * PAGE_BYTES / scenario.share,
        index_bytes=_between(
            [_pages(run, "index_pages", best) * PAGE_BYTES / scenario.share for run in runs]
        ),
        done_frac=min(1.0, done / asked, last / (asked * steady)) if asked else 1.0,
        without_row=worst_of(scenario.profile, turns_of([run.simulated for run in runs])),
    )


def _pages(run: Played, of: str, best: _Trial) -> float:
    """
    Pages that the run has then, of as many rows as were observed.

    A run goes on for several updates a row, and a table that takes rows in has grown by then; what
    was measured is the table before that. One that loses rows keeps its pages.
    """
    loaded = best.scenario.table.rows
    came = sum(run.columns["n_tup_ins"][: best.last]) - sum(run.columns["n_tup_del"][: best.last])
    found: float = run.columns[of][best.last - 1] * loaded / (loaded + max(came, 0))
    return found


def _between(found: Sequence[float]) -> Value:
    """The mean of runs, from the least to the most."""
    mid = math.fsum(found) / len(found)
    return Interval.reaching(found, mid=mid, level=0.9)
