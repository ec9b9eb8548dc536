"""
What an index costs that nobody needs: its pages, and the WAL of an entry for each row version.

Every insert, and every update that is not HOT, makes an entry in every index of its table.
"""

from __future__ import annotations

from dataclasses import dataclass

from pgheadroom.doctor.rule import Facts, QueryRow, bytes_a_day, bytes_held
from pgheadroom.doctor.values import Price, Severity
from pgheadroom.units import PAGE_BYTES, show_bytes

_INSERT_LEAF_BYTES = 48
"""An INSERT_LEAF record beside the entry: XLogRecord 24, block header and locator 20, main data 4
(xlogrecord.h, xl_btree_insert in nbtxlog.h)."""
_TUPLE_HEADER_BYTES = 8  # IndexTupleData
_ENTRY_BYTES_MAX = 2704  # BTMaxItemSize of 8 kB pages
_WARN_BYTES = 1024**3
"""An index that nobody needs is a warning from 1 GiB of pages or of WAL a day on: a byte of WAL is
written, sent to each standby and archived. Arbitrary as every such line."""

COLUMNS = """
       c.relpages, c.reltuples::float8 AS reltuples, am.amname AS method,
       i.indpred IS NOT NULL AS is_partial, c.relpersistence <> 'p' AS is_unlogged,
       (SELECT CASE WHEN bool_and(a.attlen > 0) THEN sum(a.attlen) END
        FROM pg_attribute a WHERE a.attrelid = i.indexrelid)::float8 AS key_bytes,
       pg_stat_get_tuples_inserted(i.indrelid) AS n_tup_ins,
       pg_stat_get_tuples_updated(i.indrelid) AS n_tup_upd,
       pg_stat_get_tuples_hot_updated(i.indrelid) AS n_tup_hot_upd"""
"""Of a query over pg_index i, its pg_class c and pg_am am."""
LEAF_COLUMNS = """
       w.relpages, w.reltuples, w.idx_scan, am.amname AS method,
       i.indpred IS NOT NULL AS is_partial, w.is_unlogged,
       (SELECT CASE WHEN bool_and(a.attlen > 0) THEN sum(a.attlen) END
        FROM pg_attribute a WHERE a.attrelid = i.indexrelid)::float8 AS key_bytes,
       w.n_tup_ins, w.n_tup_upd, w.n_tup_hot_upd"""
"""The same of all its partitions together, of a query that joins `LEAVES` besides."""
LEAVES = """
CROSS JOIN LATERAL (
    WITH RECURSIVE part AS (
        SELECT i.indexrelid AS oid
        UNION ALL
        SELECT h.inhrelid FROM part JOIN pg_inherits h ON h.inhparent = part.oid)
    SELECT coalesce(sum(lc.relpages), 0)::int8 AS relpages,
           coalesce(sum(greatest(lc.reltuples, 0)), 0)::float8 AS reltuples,
           coalesce(sum(pg_stat_get_numscans(li.indexrelid)), 0)::int8 AS idx_scan,
           bool_or(lc.relpersistence <> 'p') AS is_unlogged,
           sum(pg_stat_get_tuples_inserted(li.indrelid))::int8 AS n_tup_ins,
           sum(pg_stat_get_tuples_updated(li.indrelid))::int8 AS n_tup_upd,
           sum(pg_stat_get_tuples_hot_updated(li.indrelid))::int8 AS n_tup_hot_upd
    FROM part
    JOIN pg_index li ON li.indexrelid = part.oid
    JOIN pg_class lc ON lc.oid = part.oid AND lc.relkind = 'i') w"""
PAGES = """(
    WITH RECURSIVE part AS (
        SELECT {oid} AS oid
        UNION ALL
        SELECT h.inhrelid FROM part JOIN pg_inherits h ON h.inhparent = part.oid)
    SELECT coalesce(sum(lc.relpages), 0)::int8
    FROM part JOIN pg_class lc ON lc.oid = part.oid AND lc.relkind = 'i')"""
"""Pages of an index, or of all partitions of it."""
WHOLE = "coalesce(pg_partition_root({oid})::oid, {oid})"
"""The index of the partitioned table that an index is a part of, or itself."""
UNLOGGED = "no price: the table is unlogged, and its index entries are not in the WAL"
COUNTERS = ("n_tup_ins", "n_tup_upd", "n_tup_hot_upd")


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexCost:
    """
    What an index costs.

    Attributes:
        size_bytes: Its pages, at the last VACUUM or ANALYZE.
        entries_a_day: Made in it; None where nothing tells it.
        wal_bytes_a_day: Of these, without full-page images; None also where nothing is logged.
        judges_rates: A rate says how severe it is.
    """

    size_bytes: int
    entries_a_day: float | None
    wal_bytes_a_day: float | None
    judges_rates: bool = True

    @property
    def severity(self) -> Severity:
        """By what it costs."""
        rate = self.wal_bytes_a_day if self.judges_rates else None
        dearest = max(self.size_bytes, rate or 0.0)
        return "warning" if dearest >= _WARN_BYTES else "info"

    @property
    def text(self) -> str:
        """For people."""
        shown = f"{show_bytes(self.size_bytes)} of pages"
        if self.wal_bytes_a_day is None:
            return shown
        return f"{shown}, and {show_bytes(self.wal_bytes_a_day)} of WAL a day"

    @property
    def price(self) -> Price:
        """WAL a day where that can be told, else its pages."""
        if self.wal_bytes_a_day is None:
            return bytes_held(self.size_bytes, "pages at the last VACUUM or ANALYZE (relpages)")
        return bytes_a_day(
            self.wal_bytes_a_day,
            "WAL of one entry for each insert and each update that was not HOT, by the table's "
            "counters; without full-page images",
        )


def cost_of(facts: Facts, row: QueryRow) -> IndexCost:
    """What the index of a row costs; the row has `COLUMNS`."""
    size_bytes = int(row["relpages"]) * PAGE_BYTES
    if row["is_partial"] or row["n_tup_ins"] is None or facts.is_standby:
        return IndexCost(size_bytes=size_bytes, entries_a_day=None, wal_bytes_a_day=None)
    entries = row["n_tup_ins"] + row["n_tup_upd"] - row["n_tup_hot_upd"]
    entries_a_day = facts.a_day(row, float(entries))
    wal = None
    if entries_a_day is not None and row["method"] == "btree" and not row["is_unlogged"]:
        wal = entries_a_day * (_INSERT_LEAF_BYTES + _entry_bytes(row))
    return IndexCost(
        size_bytes=size_bytes,
        entries_a_day=entries_a_day,
        wal_bytes_a_day=wal,
        judges_rates=facts.judges_rates,
    )


def _entry_bytes(row: QueryRow) -> float:
    """Of its types where all have a length, else what the index's pages hold in the mean."""
    if row["key_bytes"] is not None:
        return float(-(-(_TUPLE_HEADER_BYTES + row["key_bytes"]) // 8) * 8)
    rows = float(row["reltuples"] or 0)
    mean = int(row["relpages"]) * PAGE_BYTES * 0.9 / rows if rows > 0 else 16.0
    return min(max(mean, 16.0), float(_ENTRY_BYTES_MAX))
