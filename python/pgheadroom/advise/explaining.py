"""
What an observation leaves open, and what of it may explain that the twin gives other counters.

How often an assigned column really changes, by how much strings grow, for how long horizons are
held: each is named, and is tried by playing it. Which rows are updated comes before (`picks.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from pgheadroom.advise.growing import growing_of
from pgheadroom.advise.inputs import FittedInput
from pgheadroom.advise.knobs import Knobs
from pgheadroom.advise.scenario import writes
from pgheadroom.advise.shares import AGREES_WITHIN, Observed
from pgheadroom.advise.surroundings import may_be_held, observed_hold_s
from pgheadroom.advise.trial import KnobTrial
from pgheadroom.advise.updates import updates_of
from pgheadroom.profile import Profile
from pgheadroom.profile.tables import TableProfile
from pgheadroom.types import PgVersion
from pgheadroom.units import PAGE_BYTES

_BRIN_KEEPS_HOT_FROM = 16
"""From this version on a summarizing index does not end HOT."""

_NO_NEWPAGE = 15
"""The last version that does not count updates to a new page."""

_HOLDS_S = (5.0, 30.0, 120.0, 600.0)
_GROWTHS_BYTES = (2, 4, 8, 16, 32, 64, 128, 256)


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """
    Settings of one input, each of which takes away more HOT than the one before.

    Attributes:
        options: What is set by each, and its knobs.
        is_dear: The more it takes, the longer it plays.
    """

    options: tuple[tuple[FittedInput, Knobs], ...]
    is_dear: bool = False


def tried(
    explanation: Explanation, trial: Callable[[Knobs], KnobTrial | None], observed: Observed
) -> Iterator[tuple[FittedInput, KnobTrial]]:
    """
    Play those of an explanation that may come near, until one agrees.

    If the last does not take enough, none does; else what is sought lies between one that takes too
    little and one that takes too much. Where the later ones play long, upwards from the first.
    """
    low, high = 0, len(explanation.options) - 1
    place = low if explanation.is_dear else high
    while low <= high:
        told, knobs = explanation.options[place]
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
        place = low if explanation.is_dear else (low + high) // 2


def changed_columns(
    profile: Profile, table: TableProfile, observed: Observed
) -> tuple[Knobs, tuple[FittedInput, ...]]:
    """
    How often columns that an index has really change, by the counters, and what was set by them.

    An update that stays on its page and is not HOT has changed one of them; among all that stay,
    that is the share that changes.
    """
    blocking = _blocking(table, PgVersion.parse(profile.server.version).major)
    updates = [o for o in writes(profile, table.name) if o.is_update]
    total = sum(o.weight * o.rows_mean for o in updates)
    if not blocking or not total:
        return Knobs(), ()
    assigning = [
        (o.weight * o.rows_mean / total, columns)
        for o in updates
        if (columns := [c.column for c in o.sets if c.column in blocking and c.changed_frac > 0])
    ]
    share = math.fsum(part for part, _ in assigning)
    changed = _changing(observed)
    if changed is None:
        return Knobs(), ()
    if changed > share + max(AGREES_WITHIN, observed.error(changed)):
        if observed.indexed is None:
            return Knobs(), ()  # on 15 it may as well be room that was missing
        if _is_explained(table) and observed.indexed <= share + observed.error(share):
            return Knobs(), ()  # those that assign one stayed on their page more often than others
        frac = round((changed - share) / (1 - share), 4)
        column = blocking[0]
        # Counters prove the change, but not of which column.
        which = f"{table.name}.{column}"
        if len(blocking) > 1:
            which = f"a column of {table.name}'s indexes, played as {column}"
        why = "assigns (a trigger?)" if _is_explained(table) else "explains"
        told = FittedInput(
            quantity="changed_frac", of=which, value=frac, because=f"no known statement {why}"
        )
        return Knobs(also_changes=(column, frac)), (told,)
    if changed >= share - observed.error(share):
        return Knobs(), ()
    width = max(len(columns) for _, columns in assigning)
    each = round(1 - (1 - changed / share) ** (1 / width), 4)
    names = sorted({column for _, columns in assigning for column in columns})
    return Knobs(changed_frac=dict.fromkeys(names, each)), tuple(
        FittedInput(quantity="changed_frac", of=f"{table.name}.{name}", value=each)
        for name in names
    )


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
        if index.method == "brin" and major >= _BRIN_KEEPS_HOT_FROM:
            continue
        found += [*index.columns, *index.include]
        text = " ".join([*index.expressions, index.where or ""])
        found += [column.name for column in table.columns if column.name in text]
    key = table.key
    return [name for name in dict.fromkeys(found) if key is None or name != key.name]


def explanations(
    profile: Profile, table: TableProfile, observed: Observed, tried: KnobTrial
) -> list[Explanation]:
    """What else may be, by kind: more new pages than foreseen, or fewer."""
    hot, newpage = tried.shares()
    knobs = tried.knobs
    missing = newpage < observed.newpage if observed.newpage is not None else hot > observed.hot
    found: list[Explanation] = []
    if missing:
        blocking = _blocking(table, PgVersion.parse(profile.server.version).major)
        if observed.newpage is None and blocking and hot > 0 and not _is_explained(table):
            frac = round(1 - observed.hot / hot, 4)
            told = FittedInput(
                quantity="changed_frac",
                of=f"{table.name}.{blocking[0]}",
                value=frac,
                because="no known statement explains",
            )
            knob = replace(knobs, also_changes=(blocking[0], frac))
            found.append(Explanation(options=((told, knob),)))
        found += [
            _growing(table.name, column, knobs, tried.scenario.updates_per_row)
            for column in (_strings(profile, table) if growing_of(table).lasts else ())
        ]
        already = observed_hold_s(profile)
        holds = tuple(
            (FittedInput(quantity="held_s", value=hold), replace(knobs, held_s=hold))
            for hold in _HOLDS_S
            if hold > already and may_be_held(profile, hold)
        )
        if holds:
            found.append(Explanation(options=holds, is_dear=True))
    elif observed_hold_s(profile) > 0:
        free = (FittedInput(quantity="held_s", value=0), replace(knobs, held_s=0.0))
        found.append(Explanation(options=(free,)))
    if any(o.is_update and o.rows_mean > 1 for o in writes(profile, table.name)):
        where = FittedInput(quantity="scattered", of=table.name, words="anywhere in the table")
        found.insert(0, Explanation(options=((where, replace(knobs, scattered=True)),)))
    return found


def _growing(table: str, column: str, knobs: Knobs, updates_per_row: float) -> Explanation:
    """Growth of a string, as far as a row that has grown through a run still fits a page."""
    return Explanation(
        options=tuple(
            (
                FittedInput(quantity="grows_bytes", of=f"{table}.{column}", value=size),
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


def _strings(profile: Profile, table: TableProfile) -> list[str]:
    """Strings of varying width that updates assign."""
    assigned = {c.column for o in writes(profile, table.name) for c in o.sets}
    return [c.name for c in table.columns if c.name in assigned and c.form.width]
