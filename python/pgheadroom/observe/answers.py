"""
The rows of a recording by the table that they are of, read once.
"""

from __future__ import annotations

from collections.abc import Mapping

from pgheadroom.dataclass import dataclass
from pgheadroom.sources.recording import Recording, Row


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """The rows of a recording by table, read once."""

    major: int
    interval_s: float
    columns: Mapping[int, tuple[Row, ...]]
    statistics: Mapping[tuple[str, str, str], Row]
    indexes: Mapping[int, tuple[Row, ...]]
    definitions: Mapping[int, Row]
    before: Mapping[int, Row]
    after: Mapping[int, Row]
    sizes_before: Mapping[int, Row]
    sizes: Mapping[int, Row]
    index_before: Mapping[int, Row]
    index_after: Mapping[int, Row]
    samples: Mapping[int, Row]
    row_ages: Mapping[int, Row]
    values_before: Mapping[int, Row]
    values_after: Mapping[int, Row]
    free_space: Mapping[int, Row]
    page_headers: Mapping[int, Row]


def read_answers(recording: Recording, *, major: int, interval_s: float) -> Answers:
    """Sort a recording's rows by table."""

    def by_oid(query: str, moment: str) -> dict[int, Row]:
        return {int(row["oid"]): row for row in recording.rows(query, moment)}

    def lists(query: str, field: str) -> dict[int, tuple[Row, ...]]:
        found: dict[int, list[Row]] = {}
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
        free_space=by_oid("free_space", "end"),
        page_headers=by_oid("page_headers", "end"),
    )
