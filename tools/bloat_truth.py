"""
Bloat as it is estimated, beside what a rewrite gives back and what other queries say.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bloat_shapes import SHAPES, Shape
from psycopg.rows import dict_row

from pgheadroom.bloat.reading import (
    Estimated,
    btree_rows,
    estimated_btrees,
    estimated_tables,
    heap_rows,
)
from pgheadroom.bloat.values import RelationKind
from pgheadroom.servers import Cluster
from pgheadroom.types import Interval

SETTINGS = {
    "autovacuum": "off",
    "jit": "off",  # as a session of the doctor has it
    "fsync": "off",
    "full_page_writes": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "shared_buffers": "256MB",
    "max_wal_size": "8GB",
    "synchronous_commit": "off",
    "max_parallel_maintenance_workers": "0",
}
_PAGES_MIN = 20  # less has no share to speak of: a page is 5 % of it
_FREE = """
SELECT free_percent + dead_tuple_percent AS percent FROM pgstattuple({oid}::regclass)"""
_FREE_INDEX = """
SELECT 100 - coalesce(nullif(avg_leaf_density, 'NaN'), 0) AS percent,
       leaf_pages, internal_pages, empty_pages, deleted_pages
FROM pgstatindex({oid}::regclass)"""
_TARGETS = """
SELECT c.oid::int8 AS oid, c.relname AS name,
       CASE c.relkind WHEN 'i' THEN 'btree' WHEN 't' THEN 'toast' ELSE 'heap' END AS kind,
       (pg_relation_size(c.oid) / 8192)::int8 AS pages
FROM pg_class c LEFT JOIN pg_index i ON i.indexrelid = c.oid
WHERE c.oid = {table} OR i.indrelid = {table}
   OR c.oid = (SELECT reltoastrelid FROM pg_class WHERE oid = {table})
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """
    A relation: estimate, truth, others.

    Attributes:
        shape: Whose it is.
        name: Its own; of a TOAST table that of its table.
        kind: What it is.
        pages: It had.
        estimate_frac: Share of them that a rewrite gives back, estimated.
        reasons: Why that is wide.
        truth_frac: The same, by VACUUM FULL of its table.
        free_frac: By pgstattuple, or 1 less the density of pgstatindex: before, and after that
            VACUUM FULL; None where the module is not there.
        others_frac: What the other estimation queries say; None where they say nothing.
    """

    shape: Shape
    name: str
    kind: RelationKind
    pages: int
    estimate_frac: Interval
    reasons: tuple[str, ...]
    truth_frac: float
    free_frac: tuple[float, float] | None = None
    others_frac: float | None = None

    @property
    def is_right(self) -> bool:
        """The interval has the truth in it."""
        return self.estimate_frac.low <= self.truth_frac <= self.estimate_frac.high


@dataclass(frozen=True, slots=True, kw_only=True)
class Queries:
    """Other estimation queries by kind of relation: `tblname` or `idxname`, and `bloat_pct`."""

    texts: Mapping[str, str] = field(default_factory=dict)


def measured(
    cluster: Cluster,
    dbname: str,
    *,
    shapes: Sequence[Shape] = SHAPES,
    queries: Queries = Queries(),
    has_pgstattuple: bool = False,
) -> Iterator[Found]:
    """
    Make each shape, estimate it, measure it.

    Args:
        cluster: A running server of ours, with `SETTINGS`.
        dbname: An empty database.
        shapes: Which.
        queries: Other estimation queries.
        has_pgstattuple: The module is to be asked too.
    """
    with cluster.connect(dbname, prepare_threshold=None, row_factory=dict_row) as connection:

        def ask(text: str) -> Sequence[Mapping[str, Any]]:
            return list(connection.execute(text.encode()).fetchall())

        def run(text: str) -> None:
            for statement in filter(str.strip, text.split(";\n")):
                connection.execute(statement.encode())
                connection.execute("SELECT pg_stat_force_next_flush()")

        if has_pgstattuple:
            run("CREATE EXTENSION IF NOT EXISTS pgstattuple;\n")
        run("SELECT setseed(0.5);\n")
        for shape in shapes:
            run(shape.sql)
            run(f"ANALYZE {shape.name};\n")
            run(shape.later)
            yield from _of_shape(shape, ask, run, queries, has_pgstattuple=has_pgstattuple)
            run(f"DROP TABLE {shape.name};\n")


def _of_shape(
    shape: Shape,
    ask: Callable[[str], Sequence[Mapping[str, Any]]],
    run: Callable[[str], None],
    queries: Queries,
    *,
    has_pgstattuple: bool,
) -> Iterator[Found]:
    (own,) = ask(f"SELECT '{shape.name}'::regclass::oid::int8 AS oid")
    estimates = estimates_of(ask)
    before = {row["oid"]: row for row in ask(_TARGETS.format(table=own["oid"]))}
    others = {kind: _others(ask, text) for kind, text in queries.texts.items()}
    free = {}
    for oid, row in before.items():
        if has_pgstattuple and row["pages"] >= _PAGES_MIN:
            free[oid] = _free(ask, oid, row)
    run(f"VACUUM FULL {shape.name};\n")
    after = {row["oid"]: row for row in ask(_TARGETS.format(table=own["oid"]))}
    for oid, row in before.items():
        estimated = estimates.get(oid)
        if row["pages"] < _PAGES_MIN or estimated is None:
            continue
        assert estimated.estimate is not None
        yield Found(
            shape=shape,
            name=shape.name if row["kind"] == "toast" else row["name"],
            kind=row["kind"],
            pages=row["pages"],
            estimate_frac=estimated.estimate.given_back_frac,
            reasons=estimated.estimate.reasons,
            truth_frac=1 - after[oid]["pages"] / row["pages"],
            free_frac=(free[oid], _free(ask, oid, after[oid])) if oid in free else None,
            others_frac=others.get(row["kind"], {}).get(row["name"]),
        )


def estimates_of(ask: Callable[[str], Sequence[Mapping[str, Any]]]) -> dict[int, Estimated]:
    """Of all tables and indexes there."""
    return {
        found.oid: found
        for found in (
            *estimated_tables(ask, heap_rows(ask, 0)),
            *estimated_btrees(ask, btree_rows(ask, 0)),
        )
    }


def _free(
    ask: Callable[[str], Sequence[Mapping[str, Any]]], oid: int, row: Mapping[str, Any]
) -> float:
    text = _FREE_INDEX if row["kind"] == "btree" else _FREE
    if not row["pages"]:
        return 0.0
    (found,) = ask(text.format(oid=oid))
    if row["kind"] != "btree":
        return float(found["percent"]) / 100
    # Pages that are empty or deleted are not in the density of leaves.
    leaf, gone = found["leaf_pages"], found["empty_pages"] + found["deleted_pages"]
    whole = leaf + gone
    return (float(found["percent"]) / 100 * leaf + gone) / whole if whole else math.nan


def _others(
    ask: Callable[[str], Sequence[Mapping[str, Any]]], text: str
) -> dict[str, float | None]:
    found = {}
    for row in ask(f"SELECT * FROM ({text.strip().rstrip(';')}\n) other"):
        share = row["bloat_pct"]
        found[str(row.get("idxname") or row["tblname"])] = (
            None if share is None else float(share) / 100
        )
    return found
