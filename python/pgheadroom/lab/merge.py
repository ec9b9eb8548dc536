"""
Several records of one request as one: more blocks, from other days or other machines.

Blocks stay whole, so every paired ratio still compares runs that were interleaved; whole blocks
are numbered first, those that a budget added follow. The sources stay as they are.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pgheadroom.errors import InputError
from pgheadroom.lab import conduct
from pgheadroom.lab.design import Request, Trial, cell_key
from pgheadroom.lab.experiments import get
from pgheadroom.lab.record import Record, Sample, read_json
from pgheadroom.lab.run import write_result
from pgheadroom.types import PgVersion

_MACHINE = ("cpu", "cores", "memory_bytes", "filesystem")


def merge(folders: Sequence[Path], into: Path) -> Record:
    """
    Write one record with the blocks of all.

    Args:
        folders: Two or more records with equal experiment, levels, options, scale and server
            version; seeds may differ.
        into: A new folder.

    Returns:
        The new record, with its result.

    Raises:
        InputError: The records do not fit together, or `into` holds something.
    """
    records = [Record.open(folder) for folder in folders]
    requests = [Request.from_json(record.request) for record in records]
    environments = [_environment(record) for record in records]
    _check(folders, requests, environments)
    blocks = [block for record in records for block in _blocks(record)]
    arms = {
        (cell_key(trial.cell), trial.arm)
        for trial in get(requests[0].experiment).trials(replace(requests[0], repetitions=1))
    }
    whole = [block for block in blocks if {(cell_key(s.cell), s.arm) for _, s in block} == arms]
    blocks = whole + [block for block in blocks if block not in whole]
    merged = replace(requests[0], repetitions=max(len(whole), 1))
    if (into / "request.json").exists():
        raise InputError(f"{into} holds a record already: give --output a new folder")
    with Record.create(into, merged) as record:
        for number, block in enumerate(blocks, start=1):
            for source, sample in block:
                _copy(record, source, sample, number)
        record.write("environment.json", _joined(folders, environments))
        said = f"{len(blocks)} blocks, merged from {len(folders)} records"
        conduct.write(record, said, warnings=_warnings(environments))
        version = PgVersion.parse(str(environments[0]["server"]))
        write_result(get(merged.experiment), merged, record, version)
    return record


def _environment(record: Record) -> dict[str, Any]:
    found = record.read_environment()
    if found is None or not record.samples:
        raise InputError(f"{record.folder} has no finished trial yet: it cannot be merged")
    return found


def _check(
    folders: Sequence[Path],
    requests: Sequence[Request],
    environments: Sequence[Mapping[str, Any]],
) -> None:
    """All but seed and number of repetitions must be equal."""
    for folder, request, environment in zip(folders, requests, environments, strict=True):
        pairs = {
            "experiment": (requests[0].experiment, request.experiment),
            "scale": (requests[0].scale, request.scale),
            "levels": (requests[0].levels, request.levels),
            "options": (requests[0].options, request.options),
            "server": (environments[0]["server"], environment["server"]),
        }
        for name, (first, other) in pairs.items():
            if first != other:
                raise InputError(
                    f"{folders[0]} has {name} {first} and {folder} has {other}: records are "
                    "merged when only seed and repetitions differ; `lab compare` shows others "
                    "side by side"
                )


def _blocks(record: Record) -> list[list[tuple[Path, Sample]]]:
    """The samples of a record by repetition, each with its folder."""
    blocks: dict[int, list[tuple[Path, Sample]]] = {}
    for sample in record.samples:
        blocks.setdefault(sample.repetition, []).append((record.folder, sample))
    return [blocks[number] for number in sorted(blocks)]


def _copy(record: Record, source: Path, sample: Sample, repetition: int) -> None:
    trial = Trial(cell=sample.cell, repetition=repetition, arm=sample.arm)
    record.append(replace(sample, trial=trial.id, repetition=repetition))
    series = source / "series" / f"{sample.trial}.json"
    if series.exists():
        form = read_json(series, kind="series")
        record.write(f"series/{trial.id}.json", form | {"repetition": repetition})


def _joined(folders: Sequence[Path], environments: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The first environment, and what is known of each source."""
    sources = [
        json.dumps(
            {"record": str(folder), **{name: each.get(name) for name in ("command", *_MACHINE)}}
        )
        for folder, each in zip(folders, environments, strict=True)
    ]
    return {**environments[0], "merged_from": sources}


def _warnings(environments: Sequence[Mapping[str, Any]]) -> list[str]:
    """What the sources differ in that ratios survive and medians do not."""
    warnings = []
    for name in _MACHINE:
        values = list(dict.fromkeys(str(each.get(name)) for each in environments))
        if len(values) > 1:
            warnings.append(
                f"The merged records come from machines with different {name} "
                f"({'; '.join(values)}): ratios within blocks stand, medians of times mix them."
            )
    return warnings
