"""
The record: cells, repeats, observed profiles and advice, as files in the repository.

    cells.jsonl       a line a cell: workload with its hash, fillfactor, server, figures
    repeats.jsonl     the current fillfactor's cells once more
    observed/NAME-HASH.json   what `observe` made of the live table
    advice.jsonl      what `advise` said to it, a line a workload and goal

A line is appended when it is whole; the torn last line of a run that was killed is dropped. Lines
of another hash are of an older generator: they are no cells of these workloads.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bench_advice.workloads import Workload
from pgheadroom.errors import InputError
from pgheadroom.files import write_atomically

Line = dict[str, Any]


class Record:
    """A record folder; made where it is missing."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "observed").mkdir(parents=True, exist_ok=True)

    def append(self, name: str, line: Mapping[str, Any]) -> None:
        """Add a line to `NAME.jsonl`."""
        path = self.folder / f"{name}.jsonl"
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        if text and not text.endswith("\n"):
            write_atomically(path, text[: text.rfind("\n") + 1])
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line, separators=(",", ":")) + "\n")

    def lines(self, name: str) -> Iterator[Line]:
        """
        The whole lines of `NAME.jsonl`.

        Raises:
            InputError: A line before the last is not JSON.
        """
        path = self.folder / f"{name}.jsonl"
        if not path.exists():
            return
        found = path.read_text(encoding="utf-8").split("\n")
        for number, text in enumerate(found[:-1], start=1):
            try:
                yield json.loads(text)
            except ValueError:
                raise InputError(
                    f"{path}, line {number}: not JSON; expected a record's line"
                ) from None

    def cells(self, workload: Workload, name: str = "cells") -> dict[int, Line]:
        """A workload's figures by fillfactor."""
        return {
            line["fillfactor"]: line["measured"]
            for line in self.lines(name)
            if line["workload"] == workload.name and line["sha256"] == workload.sha256
        }

    def observed_path(self, workload: Workload) -> Path:
        """Where a workload's observed profile lies."""
        return self.folder / "observed" / f"{workload.name}-{workload.sha256[:8]}.json"

    def observed(self, workload: Workload) -> Line | None:
        """What was observed of a workload; None if nothing was yet."""
        path = self.observed_path(workload)
        if not path.exists():
            return None
        found: Line = json.loads(path.read_text(encoding="utf-8"))
        return found

    def write_observed(self, workload: Workload, profile: Mapping[str, Any]) -> None:
        """Keep an observed profile."""
        text = json.dumps(profile, separators=(",", ":"), ensure_ascii=False)
        write_atomically(self.observed_path(workload), text + "\n")
