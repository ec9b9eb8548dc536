"""
A profile and fillfactors become a prediction: the twin alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

import pgheadroom
from pgheadroom.outcome import Outcome, Value
from pgheadroom.predict.cells import Fillfactor, is_variant, make_cells
from pgheadroom.predict.twin import SEEDS_DEFAULT, Report, Simulation, Storage, predict_cells
from pgheadroom.predict.variants import IndexChange, difference
from pgheadroom.predict.version import minor_version
from pgheadroom.profile import Profile
from pgheadroom.types import PgVersion


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedCell:
    """
    What the twin expects at one fillfactor: exact numbers, or intervals where it is random.

    `variant` is as in `Cell`; `difference` is set in a variant's cell: its figures minus those of
    the unchanged profile (see `variants.difference`).
    """

    fillfactor: Fillfactor
    predicted: Outcome
    variant: str | None = None
    difference: Mapping[str, Value] | None = None

    def to_json(self) -> dict[str, Any]:
        """As in a proof, without what a server measured."""
        found: dict[str, Any] = {"fillfactor": self.fillfactor}
        if self.variant is not None:
            found["variant"] = self.variant
        found["predicted"] = self.predicted.to_json()
        if self.difference is not None:
            found["difference"] = {"predicted": dict(self.difference)}
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """
    A curve over fillfactors, or one cell.

    `server` is the minor version that the twin followed; `assumed` has each default of the
    profile by its field's path, and what the twin approximated; `storage` is where pages are kept.
    """

    server: PgVersion
    storage: Storage
    assumed: Mapping[str, Any]
    cells: tuple[PredictedCell, ...]

    def to_json(self) -> dict[str, Any]:
        """The file's form."""
        return {
            "schema_version": 1,
            "kind": "prediction",
            "tool_version": pgheadroom.__version__,
            "server": str(self.server),
            "storage": self.storage,
            "assumed": dict(self.assumed),
            "cells": [cell.to_json() for cell in self.cells],
        }


def predict(
    profile: Profile,
    fillfactors: Sequence[int] | None = None,
    table: str | None = None,
    *,
    server: str | None = None,
    changes: Sequence[IndexChange] = (),
    storage: Storage = "local",
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
        changes: What is changed of the profile's indexes in a variant, which stands beside the
            unchanged profile at each fillfactor.
        storage: Where pages are kept.
        seeds: Orders of the clients' transactions that are tried in a statistical cell.
        executor: Where to run (`concurrent.futures`); a thread a core when None.
        report: Called with the rows and transactions that are done, and their number.

    Raises:
        InputError: A fillfactor, table, index or version that is none; a change that is not
            possible; a run whose length nobody knows.
        TwinError: The twin cannot play the profile; the message names the field.
    """
    cells = make_cells(profile, fillfactors, table, changes)
    told: dict[str, Any] = {}
    version = minor_version(profile, server, told)
    assumed = profile.assumed_on(version.major) | told
    found = predict_cells(
        cells, version, storage=storage, seeds=seeds, executor=executor, report=report
    )
    note(assumed, found, seeds)
    run = profile.workload.run
    if run.duration_s is not None:
        assumed["run.operations"] = (
            f"{found[0].transactions}: rate_per_s times duration_s, and Poisson's spread of it"
        )
    return Prediction(
        server=version,
        storage=storage,
        assumed=assumed,
        cells=tuple(
            PredictedCell(
                fillfactor=cell.fillfactor,
                predicted=found[n].outcome,
                variant=cell.variant,
                difference=difference(found[n].outcome, found[n - 1].outcome)
                if is_variant(cell)
                else None,
            )
            for n, cell in enumerate(cells)
        ),
    )


def note(assumed: dict[str, Any], found: Sequence[Simulation], seeds: int) -> None:
    """Say under `assumed` what the twin approximated, and how its intervals were made."""
    lines = list(dict.fromkeys(line for item in found for line in item.approximations))
    if lines:
        assumed["twin.approximations"] = lines
    if any(not item.outcome.is_exact for item in found):
        assumed["twin.interleavings"] = seeds
