"""
Answers of a database as estimates.

    listed      relations of some size, one query each for tables and B-trees
    estimates   of those that somebody wants to know of: their size now, and widths of values
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pgheadroom import _core
from pgheadroom.bloat.asking import (
    BTREE_SQL,
    DISTINCT_SQL,
    HEAP_SQL,
    Ask,
    RelationRow,
    common_sql,
    size_sql,
    widths_sql,
)
from pgheadroom.bloat.btree import btree_estimate
from pgheadroom.bloat.heap import heap_estimate
from pgheadroom.bloat.toast import toast_estimate
from pgheadroom.bloat.values import (
    SAMPLED_ROWS_PER_TARGET,
    ColumnFacts,
    Estimate,
    IndexFacts,
    RowCount,
    TableFacts,
)
from pgheadroom.layout.columns import live_column
from pgheadroom.quoting import literal
from pgheadroom.sources.columns import LiveColumn
from pgheadroom.units import PAGE_BYTES

_DEFAULT_FILLFACTOR = {"heap": 100, "btree": 90}


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimated:
    """
    A relation and its estimate.

    Attributes:
        oid: Its own.
        schema, name: Its own; of a TOAST table those of its table.
        table_oid: Of the table that it is, or belongs to.
        estimate: None where somebody holds it, so that its size is not known.
    """

    oid: int
    schema: str
    name: str
    table_oid: int
    estimate: Estimate | None


def heap_rows(
    ask: Ask, pages_min: int, methods: Sequence[str] = ("heap",)
) -> Sequence[RelationRow]:
    """Tables of that many pages at the last VACUUM or ANALYZE, or with such a TOAST table."""
    listed = ", ".join(map(literal, methods))
    return ask(HEAP_SQL.format(pages_min=pages_min, methods=listed))


def btree_rows(ask: Ask, pages_min: int) -> Sequence[RelationRow]:
    """B-trees of that many pages, likewise."""
    return ask(BTREE_SQL.format(pages_min=pages_min))


def estimated_tables(
    ask: Ask, rows: Sequence[RelationRow], *, toast: bool = True
) -> list[Estimated]:
    """
    Tables and their TOAST tables, estimated.

    Args:
        ask: Gives the rows of a query.
        rows: Of `heap_rows`.
        toast: TOAST tables as well.
    """
    sizes = pages_of(ask, [oid for row in rows for oid in (row["oid"], row["toast_oid"]) if oid])
    found = []
    for row in rows:
        pages = sizes.get(row["oid"])
        common = {"schema": row["schema"], "name": row["name"], "table_oid": row["oid"]}
        estimate = None
        if pages is not None:
            count = count_of(row)
            columns = with_widths(ask, row["schema"], row["name"], row["columns"])
            estimate = heap_estimate(
                TableFacts(
                    pages=pages,
                    count=_known_by_layout(count, columns),
                    fillfactor=fillfactor_of(row, "heap"),
                    columns=columns,
                )
            )
        found.append(Estimated(oid=row["oid"], estimate=estimate, **common))
        if toast and row["toast_oid"] is not None and sizes.get(row["toast_oid"], 1) > 0:
            found.append(
                Estimated(
                    oid=row["toast_oid"],
                    estimate=_toast(row, sizes.get(row["toast_oid"])),
                    **common,
                )
            )
    return found


def estimated_btrees(ask: Ask, rows: Sequence[RelationRow]) -> list[Estimated]:
    """
    B-trees, estimated.

    Args:
        ask: Gives the rows of a query.
        rows: Of `btree_rows`.
    """
    sizes = pages_of(ask, [row["oid"] for row in rows])
    distinct = (
        {(each["schema"], each["name"]): each["n_distinct"] for each in _groups(ask(DISTINCT_SQL))}
        if any(row["key_count"] > 1 for row in rows)
        else {}
    )
    found = []
    for row in rows:
        pages = sizes.get(row["oid"])
        estimate = None
        if pages is not None:
            estimate = btree_estimate(_index_facts(ask, row, pages, distinct))
        found.append(
            Estimated(
                oid=row["oid"],
                schema=row["schema"],
                name=row["name"],
                table_oid=row["table_oid"],
                estimate=estimate,
            )
        )
    return found


def coarse_bytes(row: RelationRow) -> float:
    """
    What a rewrite would give back at most, by sums of mean widths alone.

    It is quick, and says whom to look at.

    Args:
        row: Of `heap_rows` or `btree_rows`.
    """
    least = 8.0 if "key_count" in row else 24.0
    for column in row["columns"]:
        if column["is_dropped"] or column["is_virtual"]:
            continue
        frac = column["null_frac"]
        if frac is None:
            frac = 0.0 if column["not_null"] else 1.0
        width = column["typlen"] if column["typlen"] > 0 else (column["avg_width"] or 0)
        least += (1 - frac) * width
    if "key_count" in row and row["is_all_equal_image"]:
        least = 6.0  # of a posting list
    rows, _ = _between(row, _of_table(row))
    if row.get("is_partial"):
        rows = min(rows, max(float(row["reltuples"]), 0.0))
    return float(int(row["relpages"]) * PAGE_BYTES) - rows * least


def pages_of(ask: Ask, oids: Sequence[int]) -> dict[int, int]:
    """
    Pages of relations by OID, as their files are now; not of those that somebody holds.

    Args:
        ask: Gives the rows of a query.
        oids: Theirs.
    """
    if not oids:
        return {}
    return {int(row["oid"]): int(row["pages"]) for row in ask(size_sql(oids))}


def count_of(row: RelationRow) -> RowCount:
    """Rows of a table by its counters, and how many changed since ANALYZE."""
    target = int(row["statistics_target"] or 100)
    analyzed = max(SAMPLED_ROWS_PER_TARGET * target, 1)
    low, high = _between(row, _of_table(row))
    rows = (low + high) / 2
    if row["is_analyzed"]:
        changed: float | None = float(row["n_mod_since_analyze"] or 0)
    else:
        # Counters that VACUUM has set count the rows, though not since when statistics are.
        changed = rows if row["is_vacuumed"] else None
    # A VACUUM that has read less than 2 % of the pages keeps the number of rows that was, whatever
    # it removed (`vac_estimate_reltuples`, vacuum.c), until ANALYZE counts them.
    off = min(changed or 0.0, rows) if row["is_vacuumed_later"] else 0.0
    return RowCount(
        rows=rows,
        changed=changed,
        analyzed=analyzed,
        rows_off=off + (high - low) / 2,
        counts=(low, high),
    )


def _of_table(row: RelationRow) -> str:
    return "table_reltuples" if "table_reltuples" in row else "reltuples"


def _between(row: RelationRow, reltuples: str, counters: str = "") -> tuple[float, float]:
    """
    Rows of a relation at least and at most.

    VACUUM and ANALYZE write what they counted into `reltuples` and into `n_live_tup` alike
    (`pgstat_report_vacuum`, pgstat_relation.c). What differs has come or gone since, or before and
    was told only afterwards, so that it counts twice (`pgstat_relation_flush_cb`): sessions tell
    their counters once a second at most (PGSTAT_MIN_INTERVAL), and only between statements.
    """
    live = float(row[f"{counters}n_live_tup"] or 0)
    counted = float(row[reltuples] if row[reltuples] is not None else -1)
    if counted < 0 or not (row[f"{counters}is_vacuumed"] or row.get(f"{counters}is_analyzed")):
        return live, live
    return min(live, counted), max(live, counted)


def _known_by_layout(count: RowCount, columns: Sequence[ColumnFacts]) -> RowCount:
    """Rows that all have one length need no statistics: then nothing of them can be old."""
    if count.changed is not None and all(
        c.is_always_null or (c.typlen > 0 and not c.is_nullable) for c in columns
    ):
        return replace(count, changed=0.0)
    return count


def _index_facts(ask: Ask, row: RelationRow, pages: int, distinct: Mapping[Any, Any]) -> IndexFacts:
    count = count_of(row)
    of_table = [each for each in row["columns"] if not each["of_index"]]
    of_index = [each for each in row["columns"] if each["of_index"]]
    read = {
        (each.name, each.attnum): each
        for source, relation in (
            (of_table, (row["table_schema"], row["table_name"])),
            (of_index, (row["schema"], row["name"])),
        )
        for each in with_widths(ask, *relation, source, keys=True)
    }
    columns = tuple(read[each["name"], int(each["attnum"])] for each in row["columns"])
    keys = columns[: row["key_count"]]
    if row["is_partial"]:
        count = _of_partial(count, row)
    known = None
    if len(keys) > 1 and all(key.attnum > 0 for key in keys):
        groups = distinct.get((row["table_schema"], row["table_name"]), {})
        known = groups.get(frozenset(key.attnum for key in keys))
    option = str(row["deduplicate_items"] or "on").lower()
    return IndexFacts(
        pages=pages,
        count=count,
        fillfactor=fillfactor_of(row, "btree"),
        columns=columns,
        key_count=int(row["key_count"]),
        is_unique=bool(row["is_unique"]),
        deduplicates=bool(row["is_all_equal_image"]) and option in _ON,
        distinct=known,
    )


_ON = ("on", "true", "yes", "1", "t", "tr", "tru", "y", "ye")


def _of_partial(count: RowCount, row: RelationRow) -> RowCount:
    """
    Entries of a partial index: at ANALYZE, and as many more or less as rows changed since.

    ANALYZE has their share from its sample (`compute_index_stats`, analyze.c).
    """
    if count.changed is None or float(row["reltuples"]) < 0:
        return replace(count, changed=None)
    rows = float(row["reltuples"])
    off = min(count.changed, max(rows, count.changed))
    if count.rows > count.analyzed and rows > 0:
        frac = min(rows / count.rows, 1.0)
        off += 3 * count.rows * (frac * (1 - frac) / count.analyzed) ** 0.5
    return replace(count, rows=rows, rows_off=off)


def _toast(row: RelationRow, pages: int | None) -> Estimate | None:
    if pages is None:
        return None
    may = sum(
        1
        for column in row["columns"]
        if column["storage"] in ("x", "e", "m")
        and not column["is_dropped"]
        and column["null_frac"] != 1.0
    )
    chunks = _between(row, "toast_reltuples", "toast_") if row["toast_is_vacuumed"] else None
    _, rows = _between(row, "reltuples")
    return toast_estimate(pages, chunks, rows * may)


def fillfactor_of(row: RelationRow, kind: str) -> int:
    """In percent: as it is set, or the one of a `heap` or `btree` without."""
    found = row["fillfactor"]
    return _DEFAULT_FILLFACTOR[kind] if found is None else int(str(found), 0)


def with_widths(
    ask: Ask, schema: str, relation: str, columns: Sequence[RelationRow], *, keys: bool = False
) -> tuple[ColumnFacts, ...]:
    """
    Columns with the widths of the values that their statistics have.

    Args:
        ask: Gives the rows of a query.
        schema: Of the relation whose statistics they are in.
        relation: Its name.
        columns: As `HEAP_SQL` and `BTREE_SQL` have them.
        keys: How common values are is wanted as well.
    """
    wanted = [
        (str(column["name"]), str(column["type"]))
        for column in columns
        if column["typlen"] < 0
        and not column["is_user_type"]
        and column["null_frac"] is not None
        and column["null_frac"] < 1
    ]
    found: dict[str, RelationRow] = {}
    if wanted:
        found = {row["name"]: row for row in ask(widths_sql(schema, relation, wanted))}
    if keys:
        others = [str(c["name"]) for c in columns if c["name"] not in found]
        if others:
            found |= {row["name"]: row for row in ask(common_sql(schema, relation, others))}
    return tuple(_column(column, found.get(str(column["name"]), {})) for column in columns)


def _column(column: RelationRow, read: RelationRow) -> ColumnFacts:
    name, typlen = str(column["name"]), int(column["typlen"])
    if column["is_dropped"] or column["is_virtual"]:
        null = _core.Column("bool", is_null=True, name=name)
        return ColumnFacts(name=name, core=null, typlen=1, is_always_null=True, null_frac=1.0)
    null_frac = column["null_frac"]
    if column["not_null"]:
        null_frac = 0.0
    common = tuple(float(each) for each in read.get("common_fracs") or ())
    widths = _listed(read, common, float(null_frac or 0.0))
    bounds = max(len(read.get("widths") or ()), 1)
    avg_width = column["avg_width"]
    if typlen == -2:  # pg_stats has it as `name`, whose values all have 64 bytes
        avg_width = None
        if widths:
            total = sum(weight for _, weight in widths)
            avg_width = int(sum((width + 1) * weight for width, weight in widths) / total)
    return ColumnFacts(
        name=name,
        core=_core_column(column, name, typlen),
        typlen=typlen,
        null_frac=None if null_frac is None else float(null_frac),
        avg_width=None if avg_width is None else int(avg_width),
        n_distinct=None if column.get("is_set") else column["n_distinct"],
        widths=widths,
        sampled=(_sampled_share(common, float(null_frac or 0.0)), bounds),
        common_fracs=common,
        attnum=int(column["attnum"]),
        has_missing=bool(column["has_missing"]),
        is_nullable=not column["not_null"],
    )


def _core_column(column: RelationRow, name: str, typlen: int) -> _core.Column:
    if typlen == -2:
        return _core.Column("cstring", payload_bytes=1, name=name)
    laid = live_column(
        LiveColumn(
            name=name,
            declared=str(column["type"]),
            type=str(column["type"]),
            is_user_type=bool(column["is_user_type"]),
            typlen=typlen,
            typalign=str(column["typalign"]),
            stored_bytes=None if column["avg_width"] is None else float(column["avg_width"]),
            null_frac=0.0,
            evidence=None,
        ),
        "",
    )
    return laid.core


def _sampled_share(common: Sequence[float], null_frac: float) -> float:
    """Of the rows that are not NULL, those that are in no list of common values."""
    present = 1 - null_frac
    return max(present - sum(common), 0.0) / present if present > 0 else 0.0


def _listed(
    read: RelationRow, common: Sequence[float], null_frac: float
) -> tuple[tuple[int, float], ...] | None:
    """Widths with their shares of the rows."""
    known = list(zip(read.get("common_widths") or (), common, strict=False))
    bounds = read.get("widths") or ()
    rest = max(1 - null_frac - sum(common), 0.0)
    known += [(width, rest / len(bounds)) for width in bounds]
    return tuple((int(width), float(weight)) for width, weight in known) or None


def _groups(rows: Iterable[RelationRow]) -> Iterable[RelationRow]:
    """Tables with their groups of columns, by numbers, and how many different values these have."""
    tables: dict[tuple[str, str], dict[frozenset[int], float]] = {}
    for row in rows:
        groups = tables.setdefault((row["schema"], row["name"]), {})
        for columns, count in _pairs(str(row["n_distinct"])):
            groups[frozenset(columns)] = count
    return [
        {"schema": schema, "name": name, "n_distinct": groups}
        for (schema, name), groups in tables.items()
    ]


def _pairs(text: str) -> Iterable[tuple[list[int], float]]:
    """
    `{"1, 2": 10}`; 19 writes `[{"attributes": [1, 2], "ndistinct": 10}]`.

    Source: `pg_ndistinct_out`, pg_ndistinct.c.
    """
    found = json.loads(text)
    if isinstance(found, dict):
        for names, count in found.items():
            yield [int(each) for each in names.split(",")], float(count)
        return
    for each in found:
        yield [int(number) for number in each["attributes"]], float(each["ndistinct"])
