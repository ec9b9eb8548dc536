"""
Regret: what a rule's fillfactor costs over the least that was measured.

A workload is scored when its current fillfactor, all candidates and what every rule names are
measured; until then it is left out and counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench_advice.goal import LOSS_FRAC, TIE_FRAC, Goal, candidates, cost_of
from bench_advice.record import Record
from bench_advice.rules import RULES, counters_of
from bench_advice.workloads import Workload

ADVICE = "pgheadroom advise"
LEAVE = "leave it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """
    A workload under a goal.

    `costs` are by fillfactor; `chosen` is what each rule sets, the current one where it is silent;
    `silent` are the rules that left the setting. `verdict` is that of the advice, None without.
    """

    workload: Workload
    costs: Mapping[int, float]
    chosen: Mapping[str, int]
    silent: frozenset[str]
    verdict: str | None

    @property
    def least(self) -> float:
        """The least measured cost."""
        return min(self.costs.values())

    @property
    def best(self) -> int:
        """The best fillfactor: the highest whose cost is the least, or nearly."""
        return max(f for f, cost in self.costs.items() if cost <= self.least * (1 + TIE_FRAC))

    def regret(self, rule: str) -> float:
        """Cost at the rule's fillfactor over the least, minus 1."""
        return self.costs[self.chosen[rule]] / self.least - 1

    def loss(self, rule: str) -> float:
        """Cost at the rule's fillfactor over that of the current one, minus 1."""
        return self.costs[self.chosen[rule]] / self.costs[self.workload.fillfactor] - 1

    @property
    def keep_is_right(self) -> bool:
        """Whether a change is worth at most what counts as a loss."""
        return self.regret(LEAVE) <= LOSS_FRAC


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """A rule over all workloads; shares of 1."""

    median: float
    p90: float
    worst: float
    mean: float
    harmed: int
    silent: int


def advice_of(record: Record, workload: Workload, goal: Goal) -> Mapping[str, Any] | None:
    """The last advice for a workload under a goal; None without one."""
    found = [
        line
        for line in record.lines("advice")
        if line["sha256"] == workload.sha256 and line["goal"] == goal.name
    ]
    return found[-1] if found else None


def score(record: Record, workload: Workload, goal: Goal) -> Scored | None:
    """Score a workload; None while cells or the observation are missing."""
    seen = record.observed(workload)
    cells = record.cells(workload)
    if seen is None or set(candidates(workload)) - set(cells):
        return None
    counters = counters_of(seen["table"][0])
    named = {name: rule(counters) for name, rule in RULES.items()} | {LEAVE: None}
    advice = advice_of(record, workload, goal)
    if advice is not None:
        change = advice["verdict"] == "CHANGE"
        named[ADVICE] = advice["fillfactor"] if change else None
    chosen = {name: workload.fillfactor if f is None else f for name, f in named.items()}
    if set(chosen.values()) - set(cells):
        return None
    return Scored(
        workload=workload,
        costs={fillfactor: cost_of(cell, goal.prices) for fillfactor, cell in cells.items()},
        chosen=chosen,
        silent=frozenset(name for name, found in named.items() if found is None),
        verdict=None if advice is None else advice["verdict"],
    )


def summarise(scored: Sequence[Scored], rule: str) -> Summary:
    """A rule's regrets in figures; at least one workload."""
    regrets = np.array([item.regret(rule) for item in scored])
    return Summary(
        median=float(np.median(regrets)),
        p90=float(np.quantile(regrets, 0.9)),
        worst=float(regrets.max()),
        mean=float(regrets.mean()),
        harmed=sum(1 for item in scored if item.loss(rule) > LOSS_FRAC),
        silent=sum(1 for item in scored if rule in item.silent),
    )


def noise(record: Record, workloads: Sequence[Workload], goal: Goal) -> list[float]:
    """By how much a repeated cell's cost differs from the first one's, of each workload."""
    found = []
    for workload in workloads:
        first = record.cells(workload).get(workload.fillfactor)
        again = record.cells(workload, "repeats").get(workload.fillfactor)
        if first is not None and again is not None:
            found.append(cost_of(again, goal.prices) / cost_of(first, goal.prices) - 1)
    return found
