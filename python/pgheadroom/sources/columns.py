"""
The shape of a database's tables: columns, what they hold, fillfactor, B-trees, and a sample.

Reads catalogs, and pg_stats as far as the role may see it; rows only where samples are wanted, at
most 1,000 pages a table, in the words of `observe` (`observing.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pgheadroom.sources.observing import ObservationRequest, ask_with_samples
from pgheadroom.sources.recording import AnswerRow, Recording
from pgheadroom.sources.sampled import sample_summary
from pgheadroom.types import ObservedSample

if TYPE_CHECKING:
    import psycopg

_QUERIES = ("identity", "tables", "columns", "column_statistics", "indexes", "sizes")
_SAMPLE_BUDGET_S = 20.0  # a person waits; arbitrary
_PAGE_BYTES = 8192


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveColumn:
    """
    A column of a live table.

    `declared` is how the server spells its type, `type` what that is stored as: the base type of
    a domain. `stored_bytes` is the mean of values that are not NULL, header included; it and
    `null_frac` are None where they cannot be seen. `evidence` says where they are from.
    """

    name: str
    declared: str
    type: str
    is_user_type: bool
    typlen: int
    typalign: str
    stored_bytes: float | None
    null_frac: float | None
    evidence: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveTable:
    """
    A live table; `rows` is the planner's estimate, None before the first VACUUM or ANALYZE.

    An index is its name and its columns' names, None for an expression. `sample` is as in
    `[table.observed]` of a profile, None without one. `dropped_columns` is how many the table
    once had; `added_columns` names those that rows from before they were added may lack.
    """

    schema: str
    name: str
    rows: int | None
    pages: int | None
    fillfactor: int
    columns: tuple[LiveColumn, ...]
    indexes: tuple[tuple[str, tuple[str | None, ...]], ...]
    sample: ObservedSample | None
    dropped_columns: int = 0
    added_columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnAccess:
    """What the role may see, and what it therefore cannot see."""

    level: str
    missing: tuple[str, ...]


def read_tables(
    connection: psycopg.Connection[Any], *, table: str | None, samples: bool
) -> tuple[tuple[LiveTable, ...], ColumnAccess]:
    """
    Read the user's tables, ordered by schema and name, and what of them could be seen.

    Args:
        connection: From `read_only_session`.
        table: Only the table of this name, or `schema.name`, and its partitions.
        samples: Read rows, at most 1,000 pages a table.

    Raises:
        InputError: No such table.
    """
    request = ObservationRequest(
        duration_s=0.0,
        samples=samples,
        sample_budget_s=_SAMPLE_BUDGET_S,
        tables=() if table is None else (table,),
    )
    recording = ask_with_samples(connection, _QUERIES, request)
    wanted = None
    if table is not None:
        listed = (recording.row("chosen_tables", "shape") or {}).get("tables")
        wanted = {int(oid) for oid in str(listed).split(",")}
    facts = _Facts(recording)
    rows = [
        row
        for row in recording.rows("tables")
        if row["relkind"] == "r" and (wanted is None or row["oid"] in wanted)
    ]
    found = tuple(facts.table(row) for row in rows if not row.get("unreadable"))
    hidden = [f"{row['schema']}.{row['name']}" for row in rows if row.get("unreadable")]
    return found, _access(recording, rows, hidden, samples=samples)


class _Facts:
    """The rows of a recording by table."""

    def __init__(self, recording: Recording) -> None:
        self._columns: dict[int, list[AnswerRow]] = {}
        self._dropped: dict[int, int] = {}
        for row in recording.rows("columns"):
            if row["is_dropped"]:
                self._dropped[row["oid"]] = self._dropped.get(row["oid"], 0) + 1
            else:
                self._columns.setdefault(row["oid"], []).append(row)
        self._statistics = {
            (row["schema"], row["table"], row["name"]): row
            for row in recording.rows("column_statistics")
        }
        self._indexes: dict[int, list[AnswerRow]] = {}
        for row in recording.rows("indexes"):
            if row["method"] == "btree":
                self._indexes.setdefault(row["table_oid"], []).append(row)
        self._sizes = {row["oid"]: row for row in recording.rows("sizes")}
        self._samples = {row["oid"]: row for row in recording.rows("sample")}

    def table(self, row: AnswerRow) -> LiveTable:
        oid = row["oid"]
        sample = self._samples.get(oid)
        size = self._sizes.get(oid)
        listed = self._columns.get(oid, [])
        names = {column["attnum"]: str(column["name"]) for column in listed}
        return LiveTable(
            schema=str(row["schema"]),
            name=str(row["name"]),
            rows=round(row["reltuples"]) if row["reltuples"] >= 0 else None,
            pages=None if size is None else int(size["main_bytes"]) // _PAGE_BYTES,
            fillfactor=int((row["reloptions"] or {}).get("fillfactor", 100)),
            columns=tuple(self._column(row, column, sample) for column in listed),
            indexes=tuple(
                (str(index["name"]), tuple(names.get(number) for number in index["attnums"]))
                for index in self._indexes.get(oid, ())
            ),
            sample=sample_summary(sample),
            dropped_columns=self._dropped.get(oid, 0),
            added_columns=tuple(str(c["name"]) for c in listed if c["has_missing"]),
        )

    def _column(self, row: AnswerRow, column: AnswerRow, sample: AnswerRow | None) -> LiveColumn:
        statistics = self._statistics.get((row["schema"], row["name"], column["name"]))
        stored, null_frac, evidence = None, None, None
        if statistics is not None:
            stored, null_frac = float(statistics["avg_width"]), float(statistics["null_frac"])
            evidence = "estimated by ANALYZE"
        if sample is not None and sample["rows"] and column["attnum"] in sample["attnums"]:
            place = sample["attnums"].index(column["attnum"])
            count = float(sample["counts"][place] or 0)
            null_frac = 1 - count / float(sample["rows"])
            stored = float(sample["sums"][place]) / count if count else stored
            evidence = "sampled"
        if column["not_null"]:
            null_frac = 0.0
        if column["generated"] == "v":  # computed when it is read
            null_frac, stored, evidence = 1.0, None, "measured"
        return LiveColumn(
            name=str(column["name"]),
            declared=str(column["declared"]),
            type=str(column["type"]),
            is_user_type=bool(column["is_user_type"]),
            typlen=int(column["typlen"]),
            typalign=str(column["typalign"]),
            stored_bytes=stored,
            null_frac=null_frac,
            evidence=evidence,
        )


def _access(
    recording: Recording, rows: list[AnswerRow], unreadable: list[str], *, samples: bool
) -> ColumnAccess:
    """The role's level of access, of the three that the documentation names."""
    row = recording.row("access", "shape") or {}
    missing = [
        f"{name}: its name is no text in the database's encoding, shown as \\x..; left out"
        for name in unreadable
    ]
    if not samples:
        missing.append("samples were switched off: row lengths are computed, not measured")
    missing += sorted({f"{line.query}: no answer, {line.failed}" for line in recording.failures()})
    if row.get("reads_data"):
        return ColumnAccess(level="pg_read_all_data", missing=tuple(missing))
    if not all(table["readable"] for table in rows):
        missing.insert(0, "pg_stats and rows of tables without SELECT: widths are of their types")
    level = "pg_monitor" if row.get("monitors") else "none beyond its own"
    return ColumnAccess(level=level, missing=tuple(missing))
