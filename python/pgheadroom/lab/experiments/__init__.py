"""
The experiments that `pgheadroom lab` knows: one folder each, found and not listed.

A folder is an experiment where its `experiment.py` has `EXPERIMENT`; CONTRIBUTING.md has the
recipe for a new one.
"""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from collections.abc import Iterable

from pgheadroom.errors import InputError
from pgheadroom.lab.experiment import Experiment


def found(folders: Iterable[str] = __path__) -> tuple[Experiment, ...]:
    """The experiments below some folders, in the order in which they are listed."""
    names = [module.name for module in pkgutil.iter_modules(folders) if module.ispkg]
    modules = [importlib.import_module(f"{__name__}.{name}.experiment") for name in names]
    return tuple(
        sorted((each.EXPERIMENT for each in modules), key=lambda each: (each.order, each.name))
    )


ALL: tuple[Experiment, ...] = found()


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
