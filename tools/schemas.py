"""
The JSON Schemas of our files, made from the values that read and write them.

    python tools/schemas.py            writes docs/schema
    python tools/schemas.py --check    says which are not current
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pgheadroom import page_life
from pgheadroom.advise import advice
from pgheadroom.forms import json_schema
from pgheadroom.lab import design, environment_form, record, result
from pgheadroom.layout import values as layout
from pgheadroom.migration import answer as migration
from pgheadroom.plan import record as applied
from pgheadroom.plan import values as plan
from pgheadroom.predict import values as prediction
from pgheadroom.profile.model import ProfileFile
from pgheadroom.prove import SCHEMA_VERSION as PROOF_VERSION
from pgheadroom.prove import Proof
from pgheadroom.verify import values as verification
from pgheadroom.wal import names as wal_names
from pgheadroom.wal import values as wal
from pgheadroom.wal import what_if_values

FOLDER = Path(__file__).parents[1] / "docs" / "schema"


def schemas() -> Mapping[str, dict[str, Any]]:
    """Each file's schema, by its name."""
    plan_frame = _frame("plan", plan.SCHEMA_VERSION) | {"digest": {"type": "string"}}
    return {
        "profile": json_schema(ProfileFile, title="Profile", nulls=False),
        "prediction": json_schema(
            prediction.Prediction,
            title="Prediction",
            frame=_frame("prediction", prediction.SCHEMA_VERSION),
        ),
        "lab-request": _lab(design.Request, "Request of the laboratory", "lab_request"),
        "lab-environment": _lab(
            environment_form.Environment, "Environment of a run", "lab_environment"
        ),
        "lab-sample": json_schema(record.TrialSample, title="Sample, a line of samples.jsonl"),
        "lab-series": _lab(record.SecondsSeries, "Series of a window", "series"),
        "lab-result": _lab(result.ExperimentResult, "Result of an experiment", "experiment"),
        "page-life": json_schema(
            page_life.PageLife,
            title="What happened to a page",
            frame=_frame("page-life", page_life.SCHEMA_VERSION) | {"server": {"type": "string"}},
        ),
        "proof": json_schema(Proof, title="Proof", frame=_frame("proof", PROOF_VERSION)),
        "advice": json_schema(
            advice.Advice, title="Advice", frame=_frame("advice", advice.SCHEMA_VERSION)
        ),
        "plan": json_schema(plan.Plan, title="Plan", frame=plan_frame),
        "applied": json_schema(
            applied.AppliedRecord,
            title="Applied record",
            frame=_frame("applied", applied.SCHEMA_VERSION),
        ),
        "verification": json_schema(
            verification.Verification,
            title="Verification",
            frame=_frame("verification", verification.SCHEMA_VERSION),
        ),
        "migration-check": json_schema(
            migration.MigrationCheck,
            title="Check of a migration",
            frame=_frame("migration_check", migration.SCHEMA_VERSION),
        ),
        "layout": json_schema(
            layout.Layout, title="Layout", frame=_frame("layout", layout.SCHEMA_VERSION)
        ),
        "wal-stats": json_schema(
            wal.WalStats,
            title="WAL by relation and cause",
            frame=_frame("wal_stats", wal.SCHEMA_VERSION),
        ),
        "wal-what-if": json_schema(
            what_if_values.WhatIf,
            title="WAL under other settings",
            frame=_frame("wal_what_if", what_if_values.SCHEMA_VERSION),
        ),
        "wal-names": json_schema(
            wal_names.Names,
            title="Names of relations",
            frame=_frame("wal_names", wal_names.SCHEMA_VERSION),
        ),
    }


def _lab(form: Any, title: str, kind: str) -> dict[str, Any]:
    return json_schema(form, title=title, frame=_frame(kind, design.SCHEMA_VERSION))


def _frame(kind: str, version: int) -> dict[str, Any]:
    return {"schema_version": {"const": version}, "kind": {"const": kind}}


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
