"""
Which rows may be the updated ones where nothing observed says so, and what a sample rules out.

A row's xmin is its last insert or update, so a sample counts rows that the interval has written:
uniform updates write nearly as many as there are updates, updates of the last inserted row none but
the inserted ones, a hot row one for all of its updates. That number does not tell the picks apart
well enough to fit one, but one that would write many more, or many fewer, is not what happened.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from pgheadroom.advise.duration import follows_rows
from pgheadroom.advise.scenario import writes
from pgheadroom.profile import Profile
from pgheadroom.profile.tables import TableProfile
from pgheadroom.profile.workload import Pick
from pgheadroom.units import percent

_HOT_SETS = ((0.2, 0.8), (0.05, 0.95))
_WITHIN_FRAC = 0.2  # of the rows written: statements of several rows, the sample's own moment
_SIGMAS = 3.0
_HOT_FRAC_MIN = 0.0005  # of the rows, as where a sample of ages is fitted (`observe/sample.py`)
_STEPS = 60  # of a bisection: halves any interval to nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """
    One way in which updates may pick their rows; `pick` is None for that of the profile.

    `told` is a part of a sentence: "the last inserted".
    """

    told: str
    pick: Pick | None


def readings(profile: Profile, table: TableProfile) -> tuple[Reading, ...]:
    """
    The picks that an observation leaves open, that of the profile first; none where it is known.

    Those are left out by which a sample would have many more rows that the interval wrote, or many
    fewer. Where that leaves none, as many rows are updated as the sample shows; where there can be
    no such number, nothing is known.

    Args:
        profile: Made by `observe`.
        table: One of its tables, with updates.
    """
    assert table.observed is not None, "an observed profile"
    operations = writes(profile, table.name)
    if table.observed.updates.pick.evidence != "assumed" or follows_rows(operations):
        return ()  # the latter are picks among rows that are there, not among those of the load
    found = [Reading(told="any, each as likely", pick=None)]
    if any(operation.kind == "insert" for operation in operations):
        found.append(Reading(told="the last inserted", pick=Pick(distribution="newest")))
    if table.rows < 2:
        return tuple(found)  # hot rows stand beside others
    found += [
        Reading(
            told=f"{percent(weight)} of the updates on {percent(frac)} of the rows",
            pick=Pick(distribution="hot_set", rows_frac=frac, weight=weight),
        )
        for frac, weight in _HOT_SETS
    ]
    seen = _written_rows(table)
    if seen is None:
        return tuple(found)
    possible = tuple(one for one in found if _is_possible(table, one.pick, seen))
    few = None if possible else _few(table, seen)
    return possible or (tuple(found) if few is None else (few,))


def _written_rows(table: TableProfile) -> tuple[float, float] | None:
    """Rows of the table that the interval wrote, and their standard error; None: no sample."""
    sample = None if table.observed is None else table.observed.sample
    if sample is None or not sample.rows or sample.recent_rows is None:
        return None
    part = min(1.0, sample.rows / table.rows)
    share = sample.recent_rows / sample.rows
    error = math.sqrt(max(sample.recent_rows * (1 - share), 1.0)) / part
    return sample.recent_rows / part, error


def _is_possible(table: TableProfile, pick: Pick | None, seen: tuple[float, float]) -> bool:
    """Whether as many rows were written as with this pick; deletes may have taken some of them."""
    assert table.observed is not None, "an observed profile"
    expected = _expected(table, pick)
    found, error = seen
    room = max(_WITHIN_FRAC * expected, _SIGMAS * error)
    deleted = float(table.observed.counters.n_tup_del or 0)
    return expected - deleted - room <= found <= expected + room


def _expected(table: TableProfile, pick: Pick | None) -> float:
    """Rows that inserts and updates of the interval have written, each counted once."""
    assert table.observed is not None, "an observed profile"
    counters, rows = table.observed.counters, float(table.rows)
    updates = float(counters.n_tup_upd or 0)
    inserts = min(float(counters.n_tup_ins or 0), rows)
    if pick is not None and pick.distribution == "newest":
        return max(inserts, 1.0)
    frac, weight = 1.0, 1.0
    if pick is not None and pick.rows_frac is not None and pick.weight is not None:
        frac, weight = pick.rows_frac, pick.weight
    hot = _distinct(frac * rows, weight * updates)
    cold = _distinct((1 - frac) * rows, (1 - weight) * updates)
    return inserts + (1 - inserts / rows) * (hot + cold)


def _distinct(rows: float, updates: float) -> float:
    """Of rows that are as likely each, those that so many updates meet."""
    return -rows * math.expm1(-updates / rows) if rows > 0 else 0.0


def _few(table: TableProfile, seen: tuple[float, float]) -> Reading | None:
    """All updates on so few rows that a sample has as many young ones as were found; or None."""
    assert table.observed is not None, "an observed profile"
    counters = table.observed.counters
    updates = float(counters.n_tup_upd or 0)
    found = seen[0] - float(counters.n_tup_ins or 0)
    if not 0 < found < _distinct(float(table.rows), updates):
        return None
    rows = _root(lambda number: _distinct(number, updates) - found, found, float(table.rows))
    frac = max(rows / table.rows, _HOT_FRAC_MIN)
    if frac >= 1 - _HOT_FRAC_MIN:
        return None
    return Reading(
        told=f"the same {max(rows, 1):,.0f} rows",
        pick=Pick(distribution="hot_set", rows_frac=frac, weight=1.0),
    )


def _root(function: Callable[[float], float], low: float, high: float) -> float:
    """Of a function that ascends, between two ends."""
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if function(middle) < 0:
            low = middle
        else:
            high = middle
    return (low + high) / 2
