"""
Plans as files, with a digest over what they hold.

The digest is a checksum without a key: by it an edited, cut or merged file is noticed, and two
people know that they speak of the same plan. Whoever edits a file and works the digest out anew is
not kept out by it; from them protects that `apply` makes every statement itself.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pgheadroom.errors import InputError
from pgheadroom.input_file import read_text
from pgheadroom.plan.steps import check_plan
from pgheadroom.plan.values import Plan
from pgheadroom.quoting import printable_json

_FILE_BYTES_MAX = 256 * 1024**2  # thousands of tables give some tens of MB; arbitrary


def plan_text(plan: Plan) -> str:
    """The file's content."""
    made = {**plan.to_json(), "digest": digest(plan)}
    return printable_json(json.dumps(made, indent=1, ensure_ascii=False, allow_nan=False)) + "\n"


def said_kind(data: Mapping[str, Any]) -> str:
    """What a JSON file says that it is, for a message; a profile, for one, has no kind."""
    if "kind" not in data:
        return "no kind"
    return f"kind {data['kind']!r}, schema_version {data.get('schema_version')!r}"


def read_plan(path: Path) -> Plan:
    """
    Read a plan and check it.

    Raises:
        InputError: No such file, no plan, another schema version, a field that is not as it must
            be, another digest, or a statement that the plan's own fields do not make.
    """
    data = read_object(path, "a plan of `pgheadroom advise --plan`")
    if data.get("kind") != Plan.KIND or data.get("schema_version") != Plan.VERSION:
        older = data.get("kind") == Plan.KIND and data.get("schema_version") == 1
        raise InputError(
            f"{path}: found {said_kind(data)}; expected a plan of version {Plan.VERSION}, as "
            "`pgheadroom advise --plan` writes it"
            + (
                ". Version 1 has no digest, so nobody can tell whether it was changed: make the "
                "plan anew, and undo what it has set by its undo statements with psql"
                if older
                else ""
            )
        )
    try:
        plan = Plan.from_json(data)
        check_plan(plan)
        found, expected = data.get("digest"), digest(plan)
    except RecursionError:
        raise InputError(f"{path} is nested too deep: expected a plan") from None
    if found != expected:
        raise InputError(
            f"{path} was changed since it was written: its digest is {str(found)[:64]!r}, that of "
            f"what it holds {expected!r}. Expected a plan as `pgheadroom advise --plan` wrote it: "
            "make it anew, with other settings if those were meant, or run statements of yours "
            "with psql. Nothing was changed"
        )
    return plan


def read_object(path: Path, expected: str) -> dict[str, Any]:
    """
    A file that holds one JSON object.

    Raises:
        InputError: It cannot be read, or holds something else.
    """
    text = read_text(path, bytes_max=_FILE_BYTES_MAX, expected=expected)
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        raise InputError(f"{path} is no JSON: expected {expected}") from None
    if not isinstance(data, dict):
        raise InputError(f"{path} holds no object: expected {expected}")
    return data


def digest(plan: Plan) -> str:
    """SHA-256 of what the file holds, however it is laid out: 1 and 1.0 alike, keys in order."""
    made = Plan.from_json(plan.to_json()).to_json()
    text = json.dumps(made, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()
