"""
Plans as files.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from pgheadroom.errors import InputError
from pgheadroom.plan.statements import check_steps
from pgheadroom.plan.values import SCHEMA_VERSION, Plan

_FILE_BYTES_MAX = 256 * 1024**2  # thousands of tables give some tens of MB; arbitrary


def plan_text(plan: Plan) -> str:
    """The file's content."""
    return json.dumps(plan.to_json(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def read_plan(path: Path) -> Plan:
    """
    Read a plan and check it.

    Raises:
        InputError: No such file, no plan, another schema version, a field that is not as it must
            be, or a statement that the plan's own fields do not make.
    """
    data = read_object(path, "a plan of pgheadroom advise --plan")
    if data.get("kind") != "plan" or data.get("schema_version") != SCHEMA_VERSION:
        raise InputError(
            f"{path}: found kind {data.get('kind')!r}, schema_version "
            f"{data.get('schema_version')!r}; expected a plan of version {SCHEMA_VERSION}, as "
            "pgheadroom advise --plan writes it"
        )
    plan = Plan.from_json(data)
    check_steps(plan.steps, plan.target.database)
    return plan


def read_object(path: Path, expected: str) -> dict[str, Any]:
    """
    A file that holds one JSON object.

    Raises:
        InputError: It cannot be read, or holds something else.
    """
    try:
        if path.stat().st_size > _FILE_BYTES_MAX:
            raise InputError(f"{path} is larger than {_FILE_BYTES_MAX} bytes: expected {expected}")
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}; expected {expected}") from None
    except (ValueError, RecursionError):
        raise InputError(f"{path} is no JSON: expected {expected}") from None
    if not isinstance(data, dict):
        raise InputError(f"{path} holds no object: expected {expected}")
    return data


def digest(plan: Plan) -> str:
    """By which a record knows its plan again: of what a file would hold, 1 and 1.0 alike."""
    as_read = Plan.from_json(
        {k: v for k, v in plan.to_json().items() if k not in ("kind", "schema_version")}
    )
    text = json.dumps(as_read.to_json(), sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()
