"""
What an observation leaves open and a calibration may set, and what that makes of operations.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated

from pgheadroom.advise.duration import HORIZON_S
from pgheadroom.forms import between
from pgheadroom.profile import Change, Operation
from pgheadroom.profile.workload import Pick
from pgheadroom.units import PAGE_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class Knobs:
    """
    Named physical inputs that an observation leaves open, and that a calibration may set.

    Attributes:
        changed_frac: By column: in which part of the updates that assign it its value changes.
        also_changes: A column and in which part of all updates its value changes, for updates that
            no known statement explains; None: none.
        grows_bytes: By column: by how many bytes its strings grow at most, from 1 on.
        pick: How updates pick rows; None: as observed.
        held_s: For how long a transaction holds the cleanup horizon, one after another; 0: each
            for its own time only.
        scattered: Whether the rows of one statement lie anywhere, each as if updated by itself;
            else they are neighbours.
    """

    changed_frac: Mapping[str, Annotated[float, between(0, 1)]] = field(default_factory=dict)
    also_changes: tuple[str, Annotated[float, between(0, 1)]] | None = None
    grows_bytes: Mapping[str, Annotated[int, between(1, PAGE_BYTES)]] = field(default_factory=dict)
    pick: Pick | None = None
    held_s: Annotated[float, between(0, HORIZON_S)] | None = None
    scattered: bool = False

    @property
    def columns(self) -> frozenset[str]:
        """Those that are named, of the profile."""
        also = () if self.also_changes is None else (self.also_changes[0],)
        return frozenset((*self.changed_frac, *self.grows_bytes, *also))


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """
    With what a calibration has come nearest to an observation: the scenario is made of it again.

    `off` is by how much the HOT share, or that of new pages, is missed with it; 0 where they agree.
    """

    knobs: Knobs
    off: Annotated[float, between(0, 1)]


def scattered(operation: Operation) -> Operation:
    """As many statements as it updates rows, each of one row."""
    if not operation.is_update or operation.rows_mean <= 1 or operation.is_head:
        return operation
    weight = max(1, round(operation.weight * operation.rows_mean))
    return replace(operation, weight=weight, rows_per_statement=1)


def turned(operation: Operation, knobs: Knobs) -> Operation:
    """The operation as the knobs have it; what takes rows from a queue does so in any case."""
    if not operation.is_update or operation.is_head:
        return operation
    sets = tuple(_change(change, knobs) for change in operation.sets)
    if knobs.also_changes is not None:
        column, frac = knobs.also_changes
        if all(change.column != column for change in sets):
            sets += (Change(column=column, changed_frac=frac),)
    pick = operation.pick if knobs.pick is None else knobs.pick
    return replace(operation, sets=sets, pick=pick)


def _change(change: Change, knobs: Knobs) -> Change:
    frac = knobs.changed_frac.get(change.column)
    if frac is not None and change.changed_frac > 0:
        change = replace(change, changed_frac=frac)
    grows = knobs.grows_bytes.get(change.column)
    if grows:
        change = replace(change, grows_min_bytes=1, grows_max_bytes=grows)
    return change
