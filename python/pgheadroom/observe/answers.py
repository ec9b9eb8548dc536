"""
The rows of a recording by the table that they are of, read once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pgheadroom.sources.recording import AnswerRow, Recording


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """The rows of a recording by table, read once."""

    major: int
    interval_s: float
    columns: Mapping[int, tuple[AnswerRow, ...]]
    statistics: Mapping[tuple[str, str, str], AnswerRow]
    indexes: Mapping[int, tuple[AnswerRow, ...]]
    definitions: Mapping[int, AnswerRow]
    before: Mapping[int, AnswerRow]
    after: Mapping[int, AnswerRow]
    sizes_before: Mapping[int, AnswerRow]
    sizes: Mapping[int, AnswerRow]
    index_before: Mapping[int, AnswerRow]
    index_after: Mapping[int, AnswerRow]
    samples: Mapping[int, AnswerRow]
    row_ages: Mapping[int, AnswerRow]
    values_before: Mapping[int, AnswerRow]
    values_after: Mapping[int, AnswerRow]
    elements: tuple[AnswerRow, ...]
    free_space: Mapping[int, AnswerRow]
    page_headers: Mapping[int, AnswerRow]


def read_answers(recording: Recording, *, major: int, interval_s: float) -> Answers:
    """Sort a recording's rows by table."""

    def by_oid(query: str, moment: str) -> dict[int, AnswerRow]:
        return {int(row["oid"]): row for row in recording.rows(query, moment)}

    def lists(query: str, field: str) -> dict[int, tuple[AnswerRow, ...]]:
        found: dict[int, list[AnswerRow]] = {}
        for row in recording.rows(query):
            found.setdefault(int(row[field]), []).append(row)
        return {oid: tuple(rows) for oid, rows in found.items()}

    return Answers(
        major=major,
        interval_s=interval_s,
        columns=lists("columns", "oid"),
        statistics={
            (row["schema"], row["table"], row["name"]): row
            for row in recording.rows("column_statistics")
        },
        indexes=lists("indexes", "table_oid"),
        definitions=by_oid("index_definitions", "shape"),
        before=by_oid("table_counters", "start"),
        after=by_oid("table_counters", "end"),
        sizes_before=by_oid("sizes", "start"),
        sizes=by_oid("sizes", "end"),
        index_before=by_oid("index_counters", "start"),
        index_after=by_oid("index_counters", "end"),
        samples=by_oid("sample", "end"),
        row_ages=by_oid("row_ages", "end"),
        values_before=by_oid("row_values", "start"),
        values_after=by_oid("row_values", "end"),
        elements=tuple(recording.rows("elements", "end")),
        free_space=by_oid("free_space", "end"),
        page_headers=by_oid("page_headers", "end"),
    )
