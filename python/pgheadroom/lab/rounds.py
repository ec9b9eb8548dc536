"""
Trials that measure several times: rounds of churn, windows between checkpoints, phases.

Such a trial keeps `measure@n` for its n-th round in one flat sample. `expand` turns it into one
sample a round, whose cell has the round as one more factor, so that everything that summarises or
compares cells works on rounds as it does on cells.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from pgheadroom.lab.design import Request, TrialCell
from pgheadroom.lab.record import TrialSample

Measures = Mapping[str, float | None]


def flat(rounds: Mapping[int, Measures]) -> dict[str, float | None]:
    """The measures of all rounds under the names that a sample keeps."""
    return {f"{name}@{number}": value for number, m in rounds.items() for name, value in m.items()}


def expand(samples: Iterable[TrialSample], factor: str) -> list[TrialSample]:
    """
    One sample a round out of each sample, with the round's number as `factor` in its cell.

    Measures without a round belong to the trial as a whole and are left out.
    """
    expanded: list[TrialSample] = []
    for sample in samples:
        by_round: dict[int, dict[str, float | None]] = {}
        for key, value in sample.measures.items():
            name, separator, number = key.rpartition("@")
            if separator:
                by_round.setdefault(int(number), {})[name] = value
        expanded.extend(
            replace(
                sample,
                trial=f"{sample.trial}@{number}",
                cell={**sample.cell, factor: number},
                measures=measures,
            )
            for number, measures in sorted(by_round.items())
        )
    return expanded


def asked(
    request: Request, samples: Iterable[TrialSample], factor: str, names: Sequence[str] = ()
) -> list[TrialSample]:
    """
    One sample for each round that is a level of `factor`, out of each sample.

    Args:
        request: What was asked; a trial plays rounds that nobody asked for, too.
        samples: One for each trial.
        factor: The round, as the cells have it.
        names: What the cells call the rounds from 0 on; nothing: by their numbers.
    """
    expanded = expand(samples, factor)
    for sample in expanded if names else ():
        sample.cell[factor] = names[int(sample.cell[factor])]
    return [sample for sample in expanded if sample.cell[factor] in request.levels[factor]]


def trial_cells(request: Request, factor: str) -> list[TrialCell]:
    """The cells without the round: one trial plays all rounds of each."""
    found: list[TrialCell] = []
    for cell in request.cells():
        whole = {name: level for name, level in cell.items() if name != factor}
        if whole not in found:
            found.append(whole)
    return found


def summed(
    samples: Sequence[TrialSample], factor: str, measure: str, *, label: str
) -> list[TrialSample]:
    """
    One sample a trial with the sum of a measure over its rounds.

    A trial in which a round after the first lacks the measure is left out. The round is `label`.

    Args:
        samples: Every round of each trial (`expand`); `asked` leaves out rounds, and a sum over
            its samples would be of fewer rounds than the label says.
        factor: The round, as the cells have it.
        measure: What is summed.
        label: What the cells of the sums have as `factor`.
    """
    totals: dict[tuple[int, str, str], list[float | None]] = {}
    of_trial: dict[tuple[int, str, str], TrialSample] = {}
    for sample in samples:
        if sample.cell[factor] == 0:
            continue  # the state before the first round: nothing was done yet
        key = (sample.repetition, sample.arm, sample.trial.rpartition("@")[0])
        totals.setdefault(key, []).append(sample.measures.get(measure))
        of_trial[key] = sample
    found: list[TrialSample] = []
    for key, values in totals.items():
        present = [value for value in values if value is not None]
        if len(present) == len(values):
            cell = {**of_trial[key].cell, factor: label}
            found.append(replace(of_trial[key], cell=cell, measures={measure: sum(present)}))
    return found
