"""
One profile through both players, and how it ended.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from pgheadroom.accuracy import Figure, figures
from pgheadroom.errors import HeadroomError, LabError, MeasurementInvalid
from pgheadroom.predict import predict
from pgheadroom.profile import Profile, read_profile
from pgheadroom.prove import Proof, prove
from pgheadroom.types import Interval

Ending = Literal["equal", "unequal", "refused", "failed"]
"""`failed`: neither played nor refused before the server was asked; nothing may end so."""

_BUG = "a bug of pgheadroom"
_LACKS = "this server was built without"
"""What compresses a column."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """
    How a profile ended; `differing` are exact figures that are off, `said` is a refusal.

    `held` and `missed` are intervals of the proof, by figure; those of a prediction that was told
    nothing of the server's run are `alone`, where they were asked for.
    """

    ending: Ending
    said: str = ""
    differing: tuple[str, ...] = ()
    held: Counter[str] = field(default_factory=Counter)
    missed: Counter[str] = field(default_factory=Counter)
    alone_held: Counter[str] = field(default_factory=Counter)
    alone_missed: Counter[str] = field(default_factory=Counter)


def carry_out(profile: dict[str, Any], folder: Path, *, alone: bool = False) -> Trial:
    """
    Play a profile by both.

    Args:
        profile: As a file has it.
        folder: For the file.
        alone: Whether it is predicted without the server's run as well, where that is possible.
    """
    path = folder / "profile.json"
    path.write_text(json.dumps(profile))
    try:
        proof = prove(read_profile(path))
    except HeadroomError as error:
        is_late = isinstance(error, LabError) and not isinstance(error, MeasurementInvalid)
        is_failure = (is_late and _LACKS not in str(error)) or _BUG in str(error)
        return Trial(ending="failed" if is_failure else "refused", said=str(error))
    except Exception as error:  # noqa: BLE001 - whatever it is, it is what is looked for
        return Trial(ending="failed", said=f"{type(error).__name__}: {error}")
    trial = _judged(proof)
    if alone:
        trial = _beside_alone(trial, read_profile(path), proof)
    return trial


def _beside_alone(trial: Trial, profile: Profile, proof: Proof) -> Trial:
    """The same, and how intervals did that know nothing of the run."""
    try:
        prediction = predict(profile, server=str(proof.server))
    except HeadroomError:
        return trial  # a run whose length nobody knows
    held, missed = Counter[str](), Counter[str]()
    for ours, theirs in zip(prediction.cells, proof.cells, strict=True):
        for figure in figures(ours.predicted, theirs.measured):
            if isinstance(figure.predicted, Interval) and figure.holds is not None:
                (held if figure.holds else missed)[figure.key] += 1
    return replace(trial, alone_held=held, alone_missed=missed)


def _judged(proof: Proof) -> Trial:
    differing, held, missed = [], Counter[str](), Counter[str]()
    for figure in _figures(proof):
        if isinstance(figure.predicted, Interval):
            if figure.holds is not None:
                (held if figure.holds else missed)[figure.key] += 1
        elif figure.measured is not None and figure.predicted != figure.measured:
            place = "" if figure.table is None else f"{figure.table}."
            differing.append(f"{place}{figure.key} {figure.predicted} for {figure.measured}")
    for cell in proof.cells:
        measured = cell.measured.operations_without_row or {}
        for name, count in (cell.predicted.operations_without_row or {}).items():
            found = measured.get(name)
            if not isinstance(count, Interval) and found is not None and found != count:
                differing.append(f"operations_without_row.{name} {count} for {found}")
    ending: Ending = "unequal" if differing else "equal"
    return Trial(ending=ending, differing=tuple(differing), held=held, missed=missed)


def _figures(proof: Proof) -> Iterator[Figure]:
    for cell in proof.cells:
        yield from figures(cell.predicted, cell.measured)
