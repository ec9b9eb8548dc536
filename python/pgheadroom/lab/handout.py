"""
Which trials are played next, and where: whole blocks, each on the machines of one label.

Ratios are of trials within a block, so a block must not be spread over machines that differ. A
block is given to the label that first has room for one, and one that was begun stays where it is.
"""

from __future__ import annotations

import itertools
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from pgheadroom.errors import InputError
from pgheadroom.lab import budget
from pgheadroom.lab.design import Request, Trial
from pgheadroom.lab.experiment import Experiment
from pgheadroom.lab.record import Record, TrialSample
from pgheadroom.types import PgVersion

OwnerLabel = str | None
"""What the workers of a block have in common; None is this machine."""


class Handout:
    """
    Blocks for several labels.

    Args:
        blocks: Taken when some label has room.
        owners: By number of a block that was begun, where it was.
    """

    def __init__(self, blocks: Iterable[Sequence[Trial]], owners: Mapping[int, OwnerLabel]) -> None:
        self._blocks = iter(blocks)
        self._owners = dict(owners)
        self._aside: dict[OwnerLabel, deque[Sequence[Trial]]] = {}

    def trials(self, label: OwnerLabel) -> Iterator[Trial]:
        """The trials of a label, until there are none for it."""
        while (block := self._next(label)) is not None:
            yield from block

    def _next(self, label: OwnerLabel) -> Sequence[Trial] | None:
        if self._aside.get(label):
            return self._aside[label].popleft()
        for block in self._blocks:
            owner = self._owners.setdefault(block[0].repetition, label)
            if owner == label:
                return block
            self._aside.setdefault(owner, deque()).append(block)
        return None


def owners_of(samples: Iterable[TrialSample]) -> dict[int, OwnerLabel]:
    """Where each block was begun, by its number."""
    return {
        sample.repetition: None if sample.ran_on is None else sample.ran_on.label
        for sample in samples
    }


def check_owners(
    record: Record,
    remaining: Iterable[Trial],
    owners: Mapping[int, OwnerLabel],
    labels: Sequence[OwnerLabel],
) -> None:
    """
    Make sure that blocks which were begun can go on where they were.

    Raises:
        InputError: One cannot.
    """
    for trial in remaining:
        owner = owners.get(trial.repetition, labels[0])
        if owner in labels:
            continue
        where = "this machine" if owner is None else f"workers with the label {owner}"
        how = "without" if owner is None else "with such workers by"
        raise InputError(
            f"block {trial.repetition} of {record.name} was begun on {where}, and what is "
            f"compared has to run on machines of one kind: go on {how} `scheduler`, or begin anew "
            "by `fresh`",
            mentions=("scheduler", "fresh"),
        )


def planned(trials: Sequence[Trial], ends: float | None) -> Iterator[list[Trial]]:
    """
    Blocks of a plan until the budget is spent; one that has begun is finished, unless it is all.

    Args:
        trials: Those that have not run.
        ends: When no further block begins, by `time.monotonic`; None: never.
    """
    one_block = len({trial.repetition for trial in trials}) == 1
    begun = False
    for _, block in itertools.groupby(trials, key=lambda trial: trial.repetition):
        for part in ([trial] for trial in block) if one_block else (list(block),):
            if begun and ends is not None and time.monotonic() > ends:
                return
            begun = True
            yield part


def further(
    experiment: Experiment, request: Request, record: Record, version: PgVersion, ends: float
) -> Iterator[list[Trial]]:
    """Further blocks, while there is time and something is not answered."""
    number = 1 + max((sample.repetition for sample in record.samples), default=0)
    while time.monotonic() < ends:
        open_ = unanswered(experiment, request, record, version)
        if not open_:
            return
        pilot = [replace(trial, repetition=number) for trial in experiment.one_block(request)]
        yield budget.next_block(request, pilot, open_)
        number += 1


def unanswered(
    experiment: Experiment, request: Request, record: Record, version: PgVersion
) -> list[budget.Open]:
    """What is not answered: comparisons, or the controls of an experiment that has only those."""
    summary = experiment.summarise(request, version, record.samples)
    return budget.unanswered(summary.comparisons or summary.controls)
