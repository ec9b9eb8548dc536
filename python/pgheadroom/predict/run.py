"""
A profile and fillfactors become a prediction: the twin alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

import pgheadroom
from pgheadroom.outcome import Outcome
from pgheadroom.predict.cells import Fillfactor, make_cells
from pgheadroom.predict.twin import SEEDS_DEFAULT, Report, Simulation, predict_cells
from pgheadroom.predict.version import minor_version
from pgheadroom.profile import Profile
from pgheadroom.types import PgVersion


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedCell:
    """What the twin expects at one fillfactor: exact numbers, or intervals where it is random."""

    fillfactor: Fillfactor
    predicted: Outcome

    def to_json(self) -> dict[str, Any]:
        """As in a proof, without what a server measured."""
        return {"fillfactor": self.fillfactor, "predicted": self.predicted.to_json()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """
    A curve over fillfactors, or one cell.

    `server` is the minor version that the twin followed; `assumed` has each default of the
    profile by its field's path, and what the twin approximated.
    """

    server: PgVersion
    assumed: Mapping[str, Any]
    cells: tuple[PredictedCell, ...]

    def to_json(self) -> dict[str, Any]:
        """The file's form."""
        return {
            "schema_version": 1,
            "kind": "prediction",
            "tool_version": pgheadroom.__version__,
            "server": str(self.server),
            "assumed": dict(self.assumed),
            "cells": [cell.to_json() for cell in self.cells],
        }


def predict(
    profile: Profile,
    fillfactors: Sequence[int] | None = None,
    table: str | None = None,
    *,
    server: str | None = None,
    seeds: int = SEEDS_DEFAULT,
    executor: Executor | None = None,
    report: Report | None = None,
) -> Prediction:
    """
    Predict what a profile does, without a server.

    Args:
        profile: The profile.
        fillfactors: Percent, 10 to 100, one cell each; None: the profile's own, one cell.
        table: The table to vary; every table that has updates when None.
        server: Version, or a folder with server programs, whose minor the twin follows; it wins
            over the profile's version.
        seeds: Orders of the clients' transactions that are tried in a statistical cell.
        executor: Where to run (`concurrent.futures`); a thread a core when None.
        report: Called with the rows and transactions that are done, and their number.

    Raises:
        InputError: A fillfactor, table or version that is none; a run whose length nobody knows.
        TwinError: The twin cannot play the profile; the message names the field.
    """
    cells = make_cells(profile, fillfactors, table)
    told: dict[str, Any] = {}
    version = minor_version(profile, server, told)
    assumed = profile.assumed_on(version.major) | told
    found = predict_cells(cells, version, seeds=seeds, executor=executor, report=report)
    note(assumed, found, seeds)
    run = profile.workload.run
    if run.duration_s is not None:
        assumed["run.operations"] = (
            f"{found[0].transactions}: rate_per_s times duration_s, and Poisson's spread of it"
        )
    return Prediction(
        server=version,
        assumed=assumed,
        cells=tuple(
            PredictedCell(fillfactor=cell.fillfactor, predicted=simulation.outcome)
            for cell, simulation in zip(cells, found, strict=True)
        ),
    )


def note(assumed: dict[str, Any], found: Sequence[Simulation], seeds: int) -> None:
    """Say under `assumed` what the twin approximated, and how its intervals were made."""
    lines = list(dict.fromkeys(line for item in found for line in item.approximations))
    if lines:
        assumed["twin.approximations"] = lines
    if any(not item.outcome.is_exact for item in found):
        assumed["twin.interleavings"] = seeds
