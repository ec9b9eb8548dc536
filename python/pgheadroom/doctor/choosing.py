"""
Which findings count: those that a baseline does not have, and that nobody has accepted.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path

from pgheadroom.doctor.values import SEVERITIES, AcceptedFinding, Diagnosis, Finding
from pgheadroom.errors import InputError, ParameterError
from pgheadroom.forms import FieldError, read, unframed
from pgheadroom.input_file import read_text

_FILE_BYTES_MAX = 64 * 1024**2  # some ten thousand findings; arbitrary
WORSE_BY = 2.0
"""A finding of the same severity is worse from twice its price on: rates of a day and of another
differ by less in most databases, and one that has doubled is worth a look. Arbitrary."""


def read_diagnosis(path: Path) -> Diagnosis:
    """
    Read what an examination has written as JSON.

    Raises:
        InputError: It is no such file.
    """
    text = read_text(path, bytes_max=_FILE_BYTES_MAX, expected="what `doctor` wrote as JSON")
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"{path} is no JSON: {error}") from None
    if not isinstance(data, dict) or data.get("kind") != Diagnosis.KIND:
        kind = data.get("kind") if isinstance(data, dict) else type(data).__name__
        raise InputError(f"{path} is of kind {kind!r}: expected {Diagnosis.KIND!r}")
    if data.get("schema_version") != Diagnosis.VERSION:
        found = data.get("schema_version")
        raise InputError(f"{path} has schema version {found!r}: expected {Diagnosis.VERSION}")
    try:
        return read(Diagnosis, unframed(data))
    except FieldError as error:
        raise InputError(f"{path}: {error}") from None


def beside_baseline(diagnosis: Diagnosis, baseline: Diagnosis) -> Diagnosis:
    """
    Leave out what an earlier examination found too, unless it is worse now.

    Raises:
        ParameterError: The baseline is of another database.
    """
    here, there = diagnosis.examined.database, baseline.examined.database
    if here != there:
        raise ParameterError("baseline", f"is of the database {there!r}: expected {here!r}")
    # What was accepted then counts again when its day is over, so nothing of it is left out here.
    earlier = {found.key: found for found in baseline.findings}
    kept = [
        found
        for found in diagnosis.findings
        if found.key not in earlier or is_worse(found, earlier[found.key])
    ]
    known = len(diagnosis.findings) - len(kept)
    return replace(diagnosis, findings=tuple(kept), known=known)


def is_worse(found: Finding, earlier: Finding) -> bool:
    """Whether it is more severe, or twice as dear."""
    if found.severity != earlier.severity:
        return SEVERITIES.index(found.severity) > SEVERITIES.index(earlier.severity)
    now, before = found.price, earlier.price
    if now.amount is None or before.amount is None or now.unit != before.unit:
        return False
    return now.amount >= WORSE_BY * before.amount and now.amount > 0


def accepting(diagnosis: Diagnosis, accepted: Sequence[str], until: date, today: date) -> Diagnosis:
    """
    Set findings aside that somebody has accepted until a day.

    Args:
        diagnosis: What was found.
        accepted: `RULE:OBJECT` each.
        until: The last day.
        today: The server's.

    Raises:
        ParameterError: What is accepted is not so spelt.
    """
    for name in accepted:
        rule, _, about = name.partition(":")
        if not rule or not about:
            raise ParameterError("accept", f"{name!r}: expected RULE:OBJECT")
    if today > until:
        over = f"what was accepted until {until.isoformat()} counts again: {', '.join(accepted)}"
        return replace(diagnosis, notes=(*diagnosis.notes, over))
    wanted = set(accepted)
    aside = [found for found in diagnosis.findings if ":".join(found.key) in wanted]
    unmatched = wanted - {":".join(found.key) for found in aside}
    notes = [f"accepted, but not found: {name}" for name in sorted(unmatched)]
    return replace(
        diagnosis,
        findings=tuple(found for found in diagnosis.findings if found not in aside),
        accepted=(
            *diagnosis.accepted,
            *(AcceptedFinding(finding=found, until=until.isoformat()) for found in aside),
        ),
        notes=(*diagnosis.notes, *notes),
    )
