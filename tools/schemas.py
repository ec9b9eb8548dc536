"""
The JSON Schemas of our files, made from the values that read and write them.

    python tools/schemas.py            writes docs/schema
    python tools/schemas.py --check    says which are not current
"""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pgheadroom.advise.advice import Advice
from pgheadroom.advise.fleet import FleetAdvice
from pgheadroom.doctor.fleet import FleetDiagnosis
from pgheadroom.doctor.values import Diagnosis
from pgheadroom.forms import json_schema
from pgheadroom.lab.design import Request
from pgheadroom.lab.environment_form import Environment
from pgheadroom.lab.record import SecondsSeries, TrialSample
from pgheadroom.lab.result import ExperimentResult
from pgheadroom.layout.values import Layout
from pgheadroom.migration.answer import MigrationCheck
from pgheadroom.order.values import OrderReport
from pgheadroom.page_life import PageLife
from pgheadroom.plan.record import AppliedRecord
from pgheadroom.plan.values import Plan
from pgheadroom.predict.values import Prediction
from pgheadroom.profile.model import ProfileFile
from pgheadroom.prove import Proof
from pgheadroom.settings.values import SettingsAdvice
from pgheadroom.verify.values import Verification
from pgheadroom.wal.names import Names
from pgheadroom.wal.values import WalStats
from pgheadroom.wal.what_if_values import WhatIf
from pgheadroom.watch import WatchLine

FOLDER = Path(__file__).parents[1] / "docs" / "schema"


@functools.cache
def schemas() -> Mapping[str, dict[str, Any]]:
    """Each file's schema, by its name."""
    text = {"type": "string"}
    return {
        "profile": json_schema(ProfileFile, title="Profile", nulls=False),
        "prediction": json_schema(Prediction, title="Prediction"),
        "lab-request": json_schema(Request, title="Request of the laboratory"),
        "lab-environment": json_schema(Environment, title="Environment of a run"),
        "lab-sample": json_schema(TrialSample, title="Sample, a line of samples.jsonl"),
        "lab-series": json_schema(SecondsSeries, title="Series of a window"),
        "lab-result": json_schema(ExperimentResult, title="Result of an experiment"),
        "page-life": json_schema(PageLife, title="What happened to a page", frame={"server": text}),
        "proof": json_schema(Proof, title="Proof"),
        "advice-fleet": json_schema(FleetAdvice, title="Advice for several servers"),
        "advice": json_schema(Advice, title="Advice"),
        "plan": json_schema(Plan, title="Plan", frame={"digest": text}),
        "applied": json_schema(AppliedRecord, title="Applied record"),
        "verification": json_schema(Verification, title="Verification"),
        "doctor": json_schema(Diagnosis, title="Examination of a database"),
        "watch": json_schema(WatchLine, title="Reading of a server, a line of watch"),
        "doctor-fleet": json_schema(FleetDiagnosis, title="Examination of several servers"),
        "order": json_schema(OrderReport, title="Order of tables"),
        "settings": json_schema(SettingsAdvice, title="Settings to change"),
        "migration-check": json_schema(MigrationCheck, title="Check of a migration"),
        "layout": json_schema(Layout, title="Layout"),
        "wal-stats": json_schema(WalStats, title="WAL by relation and cause"),
        "wal-what-if": json_schema(WhatIf, title="WAL under other settings"),
        "wal-names": json_schema(Names, title="Names of relations"),
    }


def main() -> int:
    """Write them, or name those that differ."""
    stale = []
    for name, schema in schemas().items():
        path = FOLDER / f"{name}.schema.json"
        text = json.dumps(schema, indent=1, ensure_ascii=False) + "\n"
        if "--check" not in sys.argv:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(name)
    print("\n".join(stale), end="\n" if stale else "")
    return bool(stale)


if __name__ == "__main__":
    sys.exit(main())
