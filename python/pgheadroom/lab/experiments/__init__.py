"""The experiments: one module each; `ALL` is what `lab list` shows."""

from __future__ import annotations

import difflib

from pgheadroom.errors import InputError
from pgheadroom.lab.experiment import Experiment
from pgheadroom.lab.experiments.clients_scale import ClientsScale
from pgheadroom.lab.experiments.cluster_decay import ClusterDecay
from pgheadroom.lab.experiments.commit_cost import CommitCost
from pgheadroom.lab.experiments.custom import Custom
from pgheadroom.lab.experiments.fillfactor import FillfactorSweep
from pgheadroom.lab.experiments.fpi_sawtooth import FpiSawtooth
from pgheadroom.lab.experiments.index_walkthrough import IndexWalkthrough
from pgheadroom.lab.experiments.insert_rate import InsertRate
from pgheadroom.lab.experiments.load_methods import LoadMethods
from pgheadroom.lab.experiments.long_transaction import LongTransaction
from pgheadroom.lab.experiments.read_writes import ReadWrites
from pgheadroom.lab.experiments.tprocc import Tprocc
from pgheadroom.lab.experiments.update_cost import UpdateCost

ALL: tuple[Experiment, ...] = (
    UpdateCost(),
    FillfactorSweep(),
    ClusterDecay(),
    Tprocc(),
    IndexWalkthrough(),
    FpiSawtooth(),
    LongTransaction(),
    ClientsScale(),
    ReadWrites(),
    InsertRate(),
    LoadMethods(),
    CommitCost(),
    Custom(),
)


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
