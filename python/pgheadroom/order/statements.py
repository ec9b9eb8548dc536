"""
Which statements read ranges of which table: by their text, as pg_stat_statements keeps it.

A statement belongs to an index whose first column it compares by `<`, `<=`, `>`, `>=` or BETWEEN,
or by which it puts its rows in order; with columns before it compared by `=`, to one that begins
with those. Which plan it took, and what of its pages are this table's, the text does not say.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pgheadroom import _core
from pgheadroom.order.values import RangeStatement
from pgheadroom.sources.statements import NotParsed, writes_of

_SHOWN_MAX = 5
"""Statements of an index that are told; the dearest ones."""
_TEXT_MAX = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadStatement:
    """
    A statement with its counters, and what its text reads.

    Attributes:
        row: Of pg_stat_statements: `queryid, query, calls, rows, blocks, blocks_read`.
        text: Normalised.
        reads: `tables, ranges, equals, ordered, has_limit` of the core.
    """

    row: Mapping[str, Any]
    text: str
    reads: Mapping[str, Any]


def understood(rows: Sequence[Mapping[str, Any]]) -> tuple[list[ReadStatement], int]:
    """
    Statements that read a table by a range or in order; and how many could not be read.

    Args:
        rows: Of pg_stat_statements.
    """
    found: list[ReadStatement] = []
    failed = 0
    for row in rows:
        if row["query"] is None or not row["calls"]:
            failed += row["query"] is None
            continue
        query = str(row["query"]).encode("utf-8", "replace").decode("utf-8")
        reads = json.loads(_core.statement_reads(query))
        if "reason" in reads:
            failed += 1
        elif reads["tables"] and (reads["ranges"] or reads["ordered"]):
            text = next(iter(_core.normalized_statements(query) or [query]), query)
            found.append(ReadStatement(row=row, text=text, reads=reads))
    return found, failed


def of_index(
    statements: Sequence[ReadStatement],
    schema: str,
    table: str,
    columns: Sequence[str],
    namesakes: int,
) -> tuple[RangeStatement, ...]:
    """
    Those that read ranges of an index's order, the dearest first.

    Args:
        statements: Of the database.
        schema: Of the table.
        table: Its name.
        columns: Key of the index.
        namesakes: Tables of this name that there are in the database.
    """
    made = []
    for one in statements:
        named = [
            read
            for read in one.reads["tables"]
            if read["table"] == table and read["schema"] in (None, schema)
        ]
        if not named:
            continue
        by = _reads_by(one.reads, named, columns)
        if by:
            made.append(_made(one, by, named, namesakes))
    made.sort(key=lambda each: -each.calls * each.blocks_per_call)
    return tuple(made[:_SHOWN_MAX])


def batch_rows(
    rows: Sequence[Mapping[str, Any]], schema: str, table: str, namesakes: int
) -> float | None:
    """
    Rows of an INSERT into a table on average over rows; None where no statement tells.

    Args:
        rows: Of pg_stat_statements.
        schema: Of the table.
        table: Its name.
        namesakes: Tables of this name in the database; of several only those with a schema count.
    """
    inserted = squares = 0.0
    for row in rows:
        if row["query"] is None or not row["calls"] or not row["rows"]:
            continue
        query = str(row["query"]).encode("utf-8", "replace").decode("utf-8")
        try:
            writes = writes_of(query)
        except NotParsed:
            continue
        if any(
            write.kind == "insert"
            and write.table == table
            and (write.schema == schema or (write.schema is None and namesakes == 1))
            and not write.is_inner
            for write in writes
        ):
            inserted += float(row["rows"])
            squares += float(row["rows"]) ** 2 / float(row["calls"])
    return squares / inserted if inserted else None


def _reads_by(
    reads: Mapping[str, Any], named: Sequence[Mapping[str, Any]], columns: Sequence[str]
) -> tuple[str, ...]:
    """The column of the index by which it reads on, after those that it holds fixed."""
    called = {str(read["alias"] or read["table"]) for read in named}
    alone = len(reads["tables"]) == len(named)

    def uses(kind: str) -> set[str]:
        return {
            str(use["column"])
            for use in reads[kind]
            if use["of"] in called or (use["of"] is None and alone)
        }

    ranges, equals, ordered = uses("ranges"), uses("equals"), uses("ordered")
    fixed: list[str] = []
    for column in columns:
        if column in ranges or column in ordered:
            return (*fixed, column)
        if column not in equals:
            return ()
        fixed.append(column)
    return ()


def _made(
    one: ReadStatement,
    by: tuple[str, ...],
    named: Sequence[Mapping[str, Any]],
    namesakes: int,
) -> RangeStatement:
    unknown = ["which plan it takes"]
    others = len({(t["schema"], t["table"]) for t in one.reads["tables"]}) - 1
    if others > 0:
        unknown.append(f"what of its pages are of the {others} other table(s) that it names")
    if namesakes > 1 and all(read["schema"] is None for read in named):
        unknown.append(f"which of {namesakes} tables of this name it means")
    calls = int(one.row["calls"])
    text = one.text if len(one.text) <= _TEXT_MAX else f"{one.text[:_TEXT_MAX]} ..."
    return RangeStatement(
        queryid=int(one.row["queryid"]),
        text=text,
        reads_by=by,
        calls=calls,
        rows_per_call=int(one.row["rows"]) / calls,
        blocks_per_call=int(one.row["blocks"]) / calls,
        read_blocks_per_call=int(one.row["blocks_read"]) / calls,
        unknown=tuple(unknown),
    )
