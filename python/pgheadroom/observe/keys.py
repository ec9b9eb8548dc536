"""
Foreign keys as they were read, by the names of their tables and columns; domains.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from pgheadroom.profile.observed_server import ObservedDomain, ObservedForeignKey
from pgheadroom.sources.recording import AnswerRow, Recording


def foreign_keys(
    recording: Recording, chosen: Collection[int], left_out: Mapping[tuple[int, str], str]
) -> tuple[ObservedForeignKey, ...] | None:
    """
    Those with an end at a chosen table; None where they could not be read.

    Args:
        recording: As it was answered, or masked.
        chosen: OIDs of tables.
        left_out: Why the profile does not play some, by their table and name.
    """
    if not recording.answered("foreign_keys", "shape"):
        return None
    tables = {row["oid"]: row for row in recording.rows("tables", "shape")}
    columns = {
        (row["oid"], row["attnum"]): str(row["name"]) for row in recording.rows("columns", "shape")
    }
    indexes = {row["oid"]: str(row["name"]) for row in recording.rows("indexes", "shape")}
    found = []
    for row in recording.rows("foreign_keys", "shape"):
        own, other = tables.get(row["table_oid"]), tables.get(row["references_oid"])
        if own is None or other is None or not {own["oid"], other["oid"]} & set(chosen):
            continue
        found.append(
            ObservedForeignKey(
                schema=own["schema"],
                table=own["name"],
                name=row["name"],
                columns=_names(row, "attnums", own, columns),
                references_schema=other["schema"],
                references=other["name"],
                references_columns=_names(row, "references_attnums", other, columns),
                references_index=indexes.get(row["references_index_oid"]),
                is_valid=row["is_valid"],
                left_out=left_out.get((int(row["table_oid"]), str(row["name"]))),
            )
        )
    return tuple(found)


def domains(recording: Recording) -> tuple[ObservedDomain, ...] | None:
    """
    All domains; None where they could not be read.

    Args:
        recording: As it was answered, or masked.
    """
    if not recording.answered("domains", "shape"):
        return None
    return tuple(
        ObservedDomain(schema=row["schema"], name=row["name"], is_constrained=row["is_constrained"])
        for row in recording.rows("domains", "shape")
    )


def _names(
    row: AnswerRow, field: str, table: AnswerRow, columns: dict[tuple[Any, Any], str]
) -> tuple[str, ...]:
    return tuple(columns[table["oid"], n] for n in row[field] if (table["oid"], n) in columns)
