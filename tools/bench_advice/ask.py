"""
Asking `advise`: an observed profile's file in, a line of the record out.

As a user does it, by the command line; the generator's truth is not at hand there.
"""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path
from typing import Any

from bench_advice.goal import Goal
from bench_advice.workloads import Workload
from pgheadroom.cli.app import run
from pgheadroom.errors import LabError

FAILED = "FAILED"


def ask_or_fail(workload: Workload, profile: Path, goal: Goal) -> dict[str, Any]:
    """As `ask`; a failure is a line with the verdict FAILED, so that it does not hide the rest."""
    try:
        return ask(workload, profile, goal)
    except Exception as error:  # noqa: BLE001 - a bug of the advice is a result here
        return {
            "workload": workload.name,
            "sha256": workload.sha256,
            "goal": goal.name,
            "verdict": FAILED,
            "fillfactor": None,
            "reason": f"{type(error).__name__}: {error}",
        }


def ask(workload: Workload, profile: Path, goal: Goal) -> dict[str, Any]:
    """
    Advice for a workload under a goal.

    Raises:
        LabError: `advise` failed (it has said why), or did not speak of the table.
    """
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        to = Path(folder) / "advice.json"
        # One table must not suffer from a machine that is busy with others.
        options = ["-f", "json", "-o", str(to), "--budget", "10m", *goal.options]
        code = run(["advise", str(profile), *options])
        if code != 0:
            raise LabError(f"advise on {profile.name} ended with exit code {code}; see above")
        advice = json.loads(to.read_text(encoding="utf-8"))
    tables = [table for table in advice["tables"] if table["table"] == "t"]
    if len(tables) != 1:
        raise LabError(f"advise on {profile.name} speaks of {len(tables)} tables t, expected one")
    (table,) = tables
    calibration = table["calibration"]
    return {
        "workload": workload.name,
        "sha256": workload.sha256,
        "goal": goal.name,
        "tool_version": advice["tool_version"],
        "verdict": table["verdict"],
        "fillfactor": table["advised_fillfactor"],
        "gain_frac": table["gain_frac"],
        "reason": table["reason"],
        "agrees": None if calibration is None else calibration["agrees"],
        "took_s": round(time.monotonic() - began, 1),
    }
