"""
What the role could see, what it could not, and the statements that would change that.

Three levels: `pg_monitor` (counters, sizes, definitions, statement texts), `SELECT` (pg_stats and
samples of rows), `contrib` (statement statistics, what pages have free). A level that is only
partly there is named with what is missing of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pgheadroom import quoting
from pgheadroom.profile.observed_server import Access
from pgheadroom.sources.recording import Recording

_MODULES: Mapping[str, str] = {
    "pg_stat_statements": "which columns updates assign, by how many rows",
    "pg_freespacemap": "free space of pages as the free space map has it",
    "pageinspect": "free space of pages as it is (superusers only)",
}


def read_access(recording: Recording, *, sampled: bool) -> Access:
    """
    Say what could be seen.

    Args:
        recording: Masked or not; what is said names no object.
        sampled: Samples were wanted.
    """
    row = recording.row("access", "shape") or {}
    identity = recording.row("identity", "shape") or {}
    role = quoting.shown_identifier(str(identity.get("role") or "role"))
    levels: list[str] = []
    missing: list[str] = []
    grants: list[str] = []
    if row.get("monitors") or row.get("reads_stats"):
        levels.append("pg_monitor")
    else:
        missing.append(
            "without pg_monitor: other sessions' statements and horizons, texts in "
            "pg_stat_statements"
        )
        grants.append(f"GRANT pg_monitor TO {role};")
    _tables(recording, row, levels, missing, grants, role)
    _modules(recording, levels, missing, grants)
    if not sampled:
        missing.append("samples were switched off: row lengths, skew and free space of pages")
    settings = {s["name"]: s["setting"] for s in recording.rows("settings")}
    if settings.get("track_counts") == "off":
        missing.append("track_counts is off: the server counts no inserts, updates and deletes")
    missing += _failures(recording)
    return Access(
        levels=tuple(levels),
        missing=tuple(missing),
        would_help=tuple(grants),
        is_superuser=row.get("is_superuser"),
    )


def _tables(
    recording: Recording,
    row: Mapping[str, Any],
    levels: list[str],
    missing: list[str],
    grants: list[str],
    role: str,
) -> None:
    tables = [t for t in recording.rows("tables", "shape") if t["relkind"] == "r"]
    hidden = [t for t in tables if not t["readable"]]
    if not hidden:
        levels.append("pg_read_all_data" if row.get("reads_data") else "SELECT")
    else:
        missing.append(
            f"{len(hidden)} of {len(tables)} tables without SELECT: their widths are estimated "
            "from types and pages, skew and row lengths are unknown"
        )
        grants.append(f"GRANT pg_read_all_data TO {role};")
    guarded = [t for t in tables if t["row_security"] and t["readable"]]
    if guarded and not (row.get("is_superuser") or row.get("bypasses_rls")):
        missing.append(
            f"{len(guarded)} of {len(tables)} tables have row security: they are sampled, and in "
            "pg_stats, for their owner or a role with BYPASSRLS only; their widths are estimated "
            "from types and pages, skew and row lengths are unknown"
        )
        grants.append(f"ALTER ROLE {role} BYPASSRLS;")
    other = [t for t in tables if t["access_method"] != "heap"]
    if other:
        missing.append(f"{len(other)} tables are not of the access method heap: not sampled")


def _modules(
    recording: Recording, levels: list[str], missing: list[str], grants: list[str]
) -> None:
    installed = {e["name"] for e in recording.rows("extensions") if e["usable"]}
    unusable = {e["name"] for e in recording.rows("extensions") if not e["usable"]}
    there = [name for name in _MODULES if name in installed]
    if there:
        levels.append("contrib: " + ", ".join(there))
    for name, gives in _MODULES.items():
        if name in unusable:
            missing.append(f"{name} is in a schema that this role may not use: {gives}")
        elif name not in installed:
            missing.append(f"{name} is not installed: {gives}")
            if name != "pageinspect":
                grants.append(f"CREATE EXTENSION {name};")


def _failures(recording: Recording) -> list[str]:
    """Each query that had no answer, once, with its reasons."""
    found: dict[str, dict[str, int]] = {}
    for line in recording.failures():
        reasons = found.setdefault(line.query, {})
        reasons[str(line.failed)] = reasons.get(str(line.failed), 0) + 1
    return [
        f"{query}: no answer, "
        + ", ".join(
            f"{why} ({count} times)" if count > 1 else why for why, count in reasons.items()
        )
        for query, reasons in sorted(found.items())
    ]
