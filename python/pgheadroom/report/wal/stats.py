"""
Tables of `wal stats`: who writes the WAL, and why.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from pgheadroom.lab.result import CellValue
from pgheadroom.report import csv_file
from pgheadroom.report.table import Column, Table
from pgheadroom.units import show_bytes, show_count, show_share
from pgheadroom.wal import Count, RelationWal, WalStats
from pgheadroom.wal.cause_names import cause_name
from pgheadroom.wal.values import share_of

RELATIONS_SHOWN = 20
"""On a terminal; files have all. Arbitrary."""

_CAUSES_SHOWN = 3
_CAUSE_FROM = 0.005  # of a relation's bytes; less is not worth a word


def tables(result: WalStats, *, every: bool) -> list[Table]:
    """The tables of the result; not `every`: the largest relations alone."""
    found = [_relations(result, every=every), _causes(result)]
    if result.stretches:
        found.append(_stretches(result))
    if result.transactions:
        found.append(_transactions(result, every=every))
    if any(result.memo.values()):
        found.append(_memo(result))
    if result.gaps:
        found.append(_gaps(result))
    return found


def headline(result: WalStats) -> str:
    """The answer in one sentence or two."""
    if result.total.records == 0:
        return "No record lies in what was asked for."
    total = result.total
    said = (
        f"WAL of PostgreSQL {result.server}, {result.start_lsn} to {result.end_lsn}, timeline "
        f"{result.timeline}: {total.records} records, {show_bytes(total.bytes)}, of it "
        f"{show_share(share_of(total.fpi_bytes, total.bytes))} in {total.fpi} full-page images"
    )
    called = zip(result.relations, labels(result.relations), strict=True)
    largest, name = next((one for one in called if one[0].relfilenode is not None), (None, ""))
    if largest is None:
        return said + "."
    cause = next(iter(largest.by_cause))
    return (
        f"{said}. Most is written by {name}: "
        f"{show_share(share_of(largest.bytes, total.bytes))}, mostly {cause_name(cause)}."
    )


def as_csv(result: WalStats, by: str | None = None) -> str:
    """
    One row a relation and cause; where the log was divided, one row a part.

    Args:
        result: What was read.
        by: What it was read by (`checkpoint`, `transaction`, a length of time).
    """
    names: tuple[str, ...] = (
        "tablespace_oid", "database_oid", "relfilenode", "database", "name", "table", "method",
        "cause", "records", "bytes",
    )  # fmt: skip
    sums = ("records", "bytes", "fpi_bytes")
    if by is None:
        rows = [[row[name] for name in names] for row in result.rows()]
    elif by == "transaction":
        names = ("xid", "from_lsn", "end", "ended_at", *sums)
        rows = [[getattr(one, name) for name in names] for one in result.transactions]
    else:
        names = ("from_lsn", "to_lsn", "begins_at", *sums)
        rows = [[getattr(one, name) for name in names] for one in result.stretches]
    return csv_file.written(names, rows)


def labels(relations: Sequence[RelationWal]) -> list[str]:
    """
    What relations are called, each in its own way; its numbers where it has no name.

    The same name in several databases has the database beside it, and a relation that was
    rewritten, which has several files in the log, each file's number.
    """
    names = Counter(one.name for one in relations)
    in_database = Counter((one.database, one.name) for one in relations)

    def label(relation: RelationWal) -> str:
        if relation.relfilenode is None:
            return "(no relation)"
        if relation.name is None:
            return f"{relation.tablespace_oid}/{relation.database_oid}/{relation.relfilenode}"
        same = in_database[relation.database, relation.name]
        beside = []
        if names[relation.name] > same:
            beside.append(relation.database or "shared")
        if same > 1:
            beside.append(f"file {relation.relfilenode}")
        return f"{relation.name} ({', '.join(beside)})" if beside else relation.name

    return [label(one) for one in relations]


def _relations(result: WalStats, *, every: bool) -> Table:
    shown = result.relations if every else result.relations[:RELATIONS_SHOWN]
    left = result.relations[len(shown) :]
    columns = [
        Column(key="name", title="relation", style="words", lead=True),
        Column(key="bytes", title="WAL", style="text"),
        Column(key="share", title="share", unit="%", style="share"),
        Column(key="causes", title="mostly", style="words"),
        Column(key="records", title="records", minor=True),
        Column(key="fpi", title="images", unit="%", style="share", minor=True),
    ]
    with_table = any(relation.table for relation in shown)
    if with_table:
        columns.insert(1, Column(key="table", title="of", style="words"))
    rows = []
    for relation, name in zip(shown, labels(result.relations), strict=False):
        row: list[CellValue] = [
            name,
            show_bytes(relation.bytes),
            share_of(relation.bytes, result.total.bytes),
            _mostly(relation.by_cause, relation.bytes),
            relation.records,
            share_of(relation.fpi_bytes, relation.bytes),
        ]
        if with_table:
            row.insert(1, relation.table)
        rows.append(tuple(row))
    note = "Images: the share of the relation's WAL that is full-page images."
    if left:
        length = sum(relation.bytes for relation in left)
        note = (
            f"And {show_count(len(left), 'relation')} more, together {show_bytes(length)}. {note}"
        )
    return Table(title="WAL by relation", columns=tuple(columns), rows=tuple(rows), note=note)


def _mostly(causes: Mapping[str, Count], length: int) -> str:
    shares = [(cause, share_of(count.bytes, length)) for cause, count in causes.items()]
    return ", ".join(
        f"{cause_name(cause)} {show_share(share)}"
        for cause, share in shares[:_CAUSES_SHOWN]
        if share >= _CAUSE_FROM
    )


def _causes(result: WalStats) -> Table:
    return Table(
        title="WAL by cause",
        columns=(
            Column(key="cause", title="cause", style="words", lead=True),
            Column(key="bytes", title="WAL", style="text"),
            Column(key="share", title="share", unit="%", style="share"),
            Column(key="records", title="records"),
        ),
        rows=tuple(
            (cause_name(cause), show_bytes(count.bytes), share_of(count.bytes, result.total.bytes),
             count.records)
            for cause, count in result.by_cause.items()
        ),
        note="An image counts under its reason, everything else of a record under the "
        f"record's cause. Outside the sums: {show_bytes(result.overhead_bytes)} of page headers, "
        "padding and rests of switched segments.",
    )  # fmt: skip


def _stretches(result: WalStats) -> Table:
    of_time = any(stretch.begins_at for stretch in result.stretches)
    begin = Column(key="begins_at", title="from", style="words")
    columns = (
        Column(key="from_lsn", title="position", style="words", lead=True),
        *((begin,) if of_time else ()),
        Column(key="bytes", title="WAL", style="text"),
        Column(key="fpi", title="images", unit="%", style="share"),
        Column(key="records", title="records"),
    )
    rows = [
        (
            stretch.from_lsn,
            *((stretch.begins_at,) if of_time else ()),
            show_bytes(stretch.bytes),
            share_of(stretch.fpi_bytes, stretch.bytes),
            stretch.records,
        )
        for stretch in result.stretches
    ]
    return Table(
        title="WAL in slices of time" if of_time else "WAL by checkpoint cycle",
        columns=columns,
        rows=tuple(rows),
        note="A slice begins with the first transaction that ended in it."
        if of_time
        else "A cycle goes from one checkpoint's redo point to the next one's; the first and the "
        "last may be cut off.",
    )


def _transactions(result: WalStats, *, every: bool) -> Table:
    shown = result.transactions if every else result.transactions[:RELATIONS_SHOWN]
    return Table(
        title="Largest transactions",
        columns=(
            Column(key="xid", title="transaction", lead=True),
            Column(key="bytes", title="WAL", style="text"),
            Column(key="fpi", title="images", unit="%", style="share"),
            Column(key="records", title="records"),
            Column(key="end", title="end", style="words"),
            Column(key="ended_at", title="at", style="words"),
            Column(key="from_lsn", title="from", style="words"),
        ),
        rows=tuple(
            (one.xid, show_bytes(one.bytes), share_of(one.fpi_bytes, one.bytes), one.records,
             one.end, one.ended_at, one.from_lsn)
            for one in shown
        ),
        note="With the parts that it committed; a part that was rolled back stands by itself.",
    )  # fmt: skip


def _memo(result: WalStats) -> Table:
    return Table(
        title="In it",
        columns=(
            Column(key="what", title="what", style="words", lead=True),
            Column(key="bytes", title="WAL", style="text"),
        ),
        rows=tuple((what, show_bytes(length)) for what, length in result.memo.items() if length),
        note="Bytes that are in the tables above already.",
    )


def _gaps(result: WalStats) -> Table:
    return Table(
        title="Not read",
        columns=(
            Column(key="from_lsn", title="from", style="words", lead=True),
            Column(key="to_lsn", title="to", style="words"),
            Column(key="path", title="file", style="words"),
            Column(key="why", title="why", style="words"),
        ),
        rows=tuple((gap.from_lsn, gap.to_lsn, gap.path, gap.why) for gap in result.gaps),
        note="The sums hold what is before and behind.",
    )
