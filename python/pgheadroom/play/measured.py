"""
What the server counted, as the keys that a proof compares.

Counters and sizes are read in the database under test when no client is connected; what a version
does not count is None, never 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pgheadroom import quoting
from pgheadroom.outcome import COUNTERS, Outcome, put_together
from pgheadroom.play.waldump import WalSums, WindowWal

if TYPE_CHECKING:
    import psycopg


@dataclass(frozen=True, slots=True)
class Relations:
    """The relations of some tables, by `tablespace/database/relfilenode` as WAL names them."""

    table_of: Mapping[str, str]


_RELATIONS = """
WITH main AS (SELECT %(table)s::regclass::oid AS oid),
toast AS (SELECT reltoastrelid AS oid FROM pg_class JOIN main USING (oid) WHERE reltoastrelid <> 0),
heap AS (TABLE main UNION ALL TABLE toast),
every AS (TABLE heap UNION ALL
          SELECT indexrelid FROM pg_index JOIN heap ON heap.oid = indrelid
          JOIN pg_class i ON i.oid = indexrelid JOIN pg_am ON pg_am.oid = i.relam
          WHERE amname IN ('btree', 'hash', 'gin', 'brin') AND i.relname <> ALL(%(left_out)s))
SELECT coalesce(nullif(c.reltablespace, 0), d.dattablespace)::bigint,
       d.oid::bigint, pg_relation_filenode(c.oid)::bigint
FROM every JOIN pg_class c USING (oid) JOIN pg_database d ON d.datname = current_database()
"""
_SIZES = """
SELECT pg_relation_size(c.oid, 'main') / 8192,
       coalesce(sum(pg_relation_size(i.indexrelid, 'main'))
           FILTER (WHERE m.amname IN ('btree', 'hash', 'gin') AND x.relname <> ALL(%(left_out)s)),
           0)::bigint / 8192,
       coalesce(sum(pg_relation_size(i.indexrelid, 'main')) FILTER (WHERE m.amname = 'brin'), 0)
           ::bigint / 8192
FROM pg_class c LEFT JOIN pg_index i ON i.indrelid = c.oid
LEFT JOIN pg_class x ON x.oid = i.indexrelid LEFT JOIN pg_am m ON m.oid = x.relam
WHERE c.oid = %(table)s::regclass GROUP BY c.oid
"""


def read_relations(
    connection: psycopg.Connection[Any], names: tuple[str, ...], left_out: Sequence[str] = ()
) -> Relations:
    """
    Find the tables' heaps, TOAST relations and those of their indexes that are priced.

    Args:
        connection: Any session.
        names: The tables.
        left_out: Names of GINs that are not.
    """
    table_of: dict[str, str] = {}
    for name in names:
        given = {"table": quoting.identifier(name), "left_out": list(left_out)}
        for row in connection.execute(_RELATIONS, given):
            table_of[f"{row[0]}/{row[1]}/{row[2]}"] = name
    return Relations(table_of)


def reset_statistics(connection: psycopg.Connection[Any], names: tuple[str, ...]) -> None:
    """
    Let the tables' statistics begin at 0, as they are right after VACUUM ANALYZE.

    A session reports at most once a second: what the load has inserted may be reported after its
    VACUUM ANALYZE, and autovacuum would then find a table full of new rows.
    """
    for name in names:
        connection.execute(
            b"SELECT pg_stat_reset_single_table_counters(c.oid), "
            b"CASE WHEN c.reltoastrelid <> 0 "
            b"THEN pg_stat_reset_single_table_counters(c.reltoastrelid) END "
            b"FROM pg_class c WHERE c.oid = %s::regclass",
            (quoting.identifier(name),),
        )


def read_counters(
    connection: psycopg.Connection[Any], names: tuple[str, ...]
) -> dict[str, tuple[int | None, ...]]:
    """The statistics counters of each table, in the order of `COUNTERS`."""
    newpage = "n_tup_newpage_upd" if connection.info.server_version >= 160000 else "NULL::bigint"
    counters = {}
    for name in names:
        row = connection.execute(
            f"SELECT {', '.join(COUNTERS[:4])}, {newpage} FROM pg_stat_user_tables "
            "WHERE relid = %s::regclass".encode(),
            (quoting.identifier(name),),
        ).fetchone()
        assert row is not None, f"{name} has a row in pg_stat_user_tables"
        counters[name] = tuple(row)
    return counters


def read_sizes(
    connection: psycopg.Connection[Any], names: tuple[str, ...], left_out: Sequence[str] = ()
) -> dict[str, tuple[int, int, int]]:
    """Pages of each table's heap, its priced indexes and its BRIN indexes: main forks."""
    sizes = {}
    for name in names:
        given = {"table": quoting.identifier(name), "left_out": list(left_out)}
        row = connection.execute(_SIZES, given).fetchone()
        assert row is not None, f"{name} is a table"
        sizes[name] = (int(row[0]), int(row[1]), int(row[2]))
    return sizes


def measured(
    before: Mapping[str, tuple[int | None, ...]],
    after: Mapping[str, tuple[int | None, ...]],
    sizes: Mapping[str, tuple[int, int, int]],
    wal: WindowWal,
) -> Outcome:
    """
    What is measured, as a proof has it.

    Args:
        before: Counters of each table when the window began.
        after: Counters at its end.
        sizes: Pages at its end.
        wal: Its WAL.
    """
    by_table: dict[str, dict[str, int | None]] = {}
    for name, start in before.items():
        changes = [
            None if a is None or b is None else b - a
            for a, b in zip(start, after[name], strict=True)
        ]
        by_table[name] = {
            **dict(zip(COUNTERS, changes, strict=True)),
            **dict(zip(("heap_pages", "index_pages", "brin_pages"), sizes[name], strict=True)),
            **_wal(wal.tables[name]),
        }
    return put_together(by_table, _wal(wal.transactions))


def _wal(sums: WalSums) -> dict[str, int]:
    return {
        "wal_records": sums.records,
        "wal_bytes": sums.bytes,
        "wal_fpi_bytes": sums.fpi_bytes,
        "wal_fpi": sums.fpi,
        "pages_modified": len(sums.blocks),
    }
