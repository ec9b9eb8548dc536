"""The experiments: one module each; `ALL` is what `lab list` shows."""

from __future__ import annotations

import difflib

from pgheadroom.errors import InputError
from pgheadroom.lab.experiment import Experiment
from pgheadroom.lab.experiments.fillfactor import FillfactorSweep
from pgheadroom.lab.experiments.update_cost import UpdateCost

ALL: tuple[Experiment, ...] = (UpdateCost(), FillfactorSweep())


def get(name: str) -> Experiment:
    """
    The experiment of that name.

    Raises:
        InputError: There is none; the nearest name is suggested.
    """
    for experiment in ALL:
        if experiment.name == name:
            return experiment
    names = [experiment.name for experiment in ALL]
    near = difflib.get_close_matches(name, names, n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    raise InputError(f"there is no experiment {name!r}{hint} Known: {', '.join(names)}")
