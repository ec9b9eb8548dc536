"""Record folders with made-up results in them, as a site is made of."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import synthetic
import synthetic_lab

import showing
from pgheadroom.lab.result import ExperimentResult
from pgheadroom.report.site import SiteRecord

FOLDERS = (
    "one/2026-01-02-update-cost",
    "two/2026-01-02-update-cost",
    "one/<b>\"fill' factor",
    "one/hostile",
    "one/unfinished",
)
"""The first two have the same name; the third is not fit for an address."""


def record(
    folder: Path, result: Mapping[str, Any], series: Sequence[Mapping[str, Any]] = ()
) -> SiteRecord:
    """A record folder with the files that one has."""
    (folder / "series").mkdir(parents=True)
    for name in ("request", "environment"):
        (folder / f"{name}.json").write_text(json.dumps({"kind": f"lab_{name}"}))
    (folder / "result.json").write_text(json.dumps(result))
    (folder / "samples.jsonl").write_text('{"trial": "r001_measured"}\n')
    for number, item in enumerate(series):
        (folder / "series" / f"r{number:03d}_measured.json").write_text(json.dumps(item))
    shown = showing.of(result)
    assert isinstance(shown, ExperimentResult)
    return SiteRecord(folder=folder, result=shown, series=showing.series_of(series))


def records(parent: Path) -> list[SiteRecord]:
    """One record in each of `FOLDERS`."""
    known = synthetic_lab.update_cost()
    results: list[tuple[Any, Any]] = [
        (known, []),
        (known | {"server": "16.14"}, []),
        synthetic.fillfactor(memories=("fits",), seconds=20),
        synthetic.hostile(),
        (synthetic.unknown() | {"complete": False, "warnings": ["1 trial is missing."]}, []),
    ]
    return [
        record(parent / name, result, series)
        for name, (result, series) in zip(FOLDERS, results, strict=True)
    ]
