"""Tables whose rows lie in bad order by an index that ranges are read by."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pgheadroom.bloat.asking import Ask
from pgheadroom.doctor.rule import Facts, QueryRow, Rule, bytes_a_day
from pgheadroom.doctor.values import Blind, Finding, Remedy
from pgheadroom.order.asking import statements_sql
from pgheadroom.order.choosing import BACK_DAYS_MAX, TIMES_FROM, chosen
from pgheadroom.order.counted import CountedTime
from pgheadroom.order.live import OrderWish, table_order
from pgheadroom.order.pages import fresh_pages, random_pages
from pgheadroom.order.values import IndexOrder, TableOrder
from pgheadroom.quoting import printable
from pgheadroom.sources.statements_at import STATEMENTS_AT_SQL
from pgheadroom.units import PAGE_BYTES, percent, show_bytes, show_duration

if TYPE_CHECKING:
    import psycopg

    from pgheadroom.plan.remedies import RemedyStep

_PAGES_MIN = 1280
_A_DAY_MIN = 1024.0**3
_ENTRIES_MIN = 2.0
_FETCHED_MIN = 0.5
_TABLES_MAX = 3
_SAMPLE_PAGES = 4000
"""32 MiB of a table: three ranges at least, of rows that each lie on a page of their own."""
_SHOWN = 100

_SQL = """
SELECT i.indexrelid::int8 AS oid, c.oid::int8 AS table_oid, n.nspname::text AS schema,
       c.relname::text AS name, ic.relname::text AS index, c.relpages,
       c.reltuples::float8 AS reltuples,
       pg_stat_get_numscans(i.indexrelid)::int8 AS scans,
       pg_stat_get_tuples_returned(i.indexrelid)::int8 AS entries,
       -- By plain scans of the index; bitmaps' are counted of the table, of all indexes together.
       pg_stat_get_tuples_fetched(i.indexrelid)::int8 AS fetched,
       pg_stat_get_tuples_fetched(c.oid)::int8 AS fetched_by_bitmaps,
       pg_stat_get_blocks_fetched(c.oid)::int8 AS blocks,
       pg_stat_get_blocks_hit(c.oid)::int8 AS blocks_hit,
       pg_stat_get_tuples_inserted(c.oid)::int8 AS inserts,
       pg_stat_get_tuples_updated(c.oid)::int8 AS updates,
       pg_stat_get_tuples_hot_updated(c.oid)::int8 AS hot_updates,
       {newpage} AS newpage_updates,
       pg_stat_get_tuples_deleted(c.oid)::int8 AS deletes
FROM pg_index i
JOIN pg_class ic ON ic.oid = i.indexrelid AND ic.relkind = 'i'
JOIN pg_am am ON am.oid = ic.relam AND am.amname = 'btree'
JOIN pg_class c ON c.oid = i.indrelid
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE i.indisvalid AND c.relkind IN ('r', 'm') AND c.relpersistence <> 't'
  AND c.relpages >= 1280 AND c.reltuples > 0
  AND n.nspname <> 'information_schema' AND n.nspname !~ '^pg_'
"""
_COUNTERS = (
    *("scans", "entries", "fetched", "fetched_by_bitmaps", "blocks", "blocks_hit"),
    *("inserts", "updates", "hot_updates", "newpage_updates", "deletes"),
)


def _fetched_frac(row: QueryRow) -> float:
    """Share of an index's entries whose rows can have been looked for in the table."""
    fetched = int(row["fetched"]) + int(row["fetched_by_bitmaps"])
    return min(fetched / max(int(row["entries"]), 1), 1.0)


def _may_save(facts: Facts, row: QueryRow) -> float:
    """Bytes a day that order can save at most, by counters alone."""
    scans, entries = int(row["scans"]), int(row["entries"])
    if entries < _ENTRIES_MIN * max(scans, 1) or _fetched_frac(row) < _FETCHED_MIN:
        return 0.0
    read = max(int(row["blocks"]) - int(row["blocks_hit"]), 0)
    each = entries / scans
    rows, pages = float(row["reltuples"]), int(row["relpages"])
    least = fresh_pages(round(each), rows / pages)
    most = max(random_pages(round(each), rows, pages), least)
    by_scans = scans * (most - least) * read / max(int(row["blocks"]), 1)
    a_day = facts.a_day(row, min(by_scans, read * (1 - least / most)))
    return (a_day or 0.0) * PAGE_BYTES


def _look(facts: Facts, rows: Sequence[QueryRow], ask: Ask) -> list[QueryRow]:
    """Tables that may be worth it, the dearest first: rows of all their indexes, and statements."""
    by_table: dict[int, list[QueryRow]] = defaultdict(list)
    for row in rows:
        by_table[row["table_oid"]].append(row)
    saves = {
        oid: max(_may_save(facts, row) for row in of_table) for oid, of_table in by_table.items()
    }
    worth = sorted(
        (oid for oid, most in saves.items() if most >= _A_DAY_MIN), key=lambda oid: -saves[oid]
    )
    if not worth:
        return []
    schema = next((row["schema"] for row in ask(STATEMENTS_AT_SQL)), None)
    statements = None if schema is None else ask(statements_sql(schema))
    found: list[QueryRow] = [
        {"indexes": by_table[oid], "statements": statements} for oid in worth[:_TABLES_MAX]
    ]
    left = len(worth) - len(found)
    return [*found, {"left": left}] if left else found


def _read(
    facts: Facts, rows: Sequence[QueryRow], connection: psycopg.Connection[Any]
) -> list[QueryRow]:
    """Read ranges of these tables, as `order` does; what puts one in order is a plan's step."""
    found: list[QueryRow] = []
    for row in rows:
        first = None if "left" in row else row["indexes"][0]
        if first is None:
            found.append(row)
            continue
        wish = OrderWish(
            tables=(f"{first['schema']}.{first['name']}",),
            pages=_SAMPLE_PAGES,
            pages_min=_PAGES_MIN,
        )
        table = table_order(connection, wish, _counted(facts, row))
        if isinstance(table, str):
            found.append({"why": table})
            continue
        index = chosen(table, is_named=False)
        if not isinstance(index, str):
            found.append(_with_step(connection, row, table, index))
        elif all(one.evidence != "sampled" for one in table.indexes):
            why = next((one.not_sampled for one in table.indexes if one.not_sampled), index)
            found.append({"why": f"{table.called}: {why}"})
    return found


def _counted(facts: Facts, row: QueryRow) -> CountedTime:
    """What was counted, as `order` takes it."""
    indexes = row["indexes"]
    return CountedTime(
        tables={int(indexes[0]["table_oid"]): indexes[0]},
        indexes={int(each["oid"]): each for each in indexes},
        statements=row["statements"] or (),
        over_s=facts.length_s(indexes[0]),
        is_watched=facts.interval_s is not None,
    )


def _with_step(
    connection: psycopg.Connection[Any], row: QueryRow, table: TableOrder, index: IndexOrder
) -> QueryRow:
    from pgheadroom.doctor.cluster_steps import (  # noqa: PLC0415 - loads the advice
        order_numbers,
        order_said,
        step_or_why,
    )

    counted = next(each for each in row["indexes"] if each["index"] == index.name)
    numbers = order_numbers(index, table.rows, int(counted["table_oid"]), int(counted["oid"]))
    bare = replace(
        RULE.finding("info", table.called, order_said(index), remedy=Remedy(text="")),
        numbers=numbers,
    )
    step = step_or_why(connection, bare)
    return {
        "table": table,
        "index": index,
        "counted": counted,
        "bare": bare,
        "step": step,
        "has_statements": row["statements"] is not None,
    }


def _decide(facts: Facts, rows: Sequence[QueryRow]) -> Iterator[Finding | Blind]:
    for row in rows:
        if "left" in row:
            yield Blind(rule=RULE.id, why=f"{row['left']:,} more tables were not read")
            continue
        if "why" in row:
            yield Blind(rule=RULE.id, why=row["why"])
            continue
        found = _finding(facts, row)
        if found is not None:
            yield found


def _finding(facts: Facts, row: QueryRow) -> Finding | None:
    """What order saves is told where that is much, even by the interval's low end."""
    index: IndexOrder = row["index"]
    bare: Finding = row["bare"]
    counted = row["counted"]
    pay = index.pay
    assert pay is not None, "chosen by what it pays"
    fetched = _fetched_frac(counted)
    times = pay.scans_a_day * pay.read_frac * fetched * PAGE_BYTES
    # Never more than was read of the table, by whatever statement.
    read = max(int(counted["blocks"]) - int(counted["blocks_hit"]), 0)
    most = (facts.a_day(counted, float(read)) or 0.0) * PAGE_BYTES
    lost_frac = 1 - index.pages_fresh.mid / index.pages_per_range.mid
    low, mid = (
        min(pages * times, most * lost_frac)
        for pages in (pay.saved_pages_per_scan.low, pay.saved_pages_per_scan.mid)
    )
    if low < _A_DAY_MIN:
        return None
    scans = int(counted["scans"])
    return replace(
        bare,
        text=f"{bare.text} {scans:,} scans gave {pay.rows_per_scan:,.0f} entries each "
        f"{facts.over(counted)}: in order a scan would read {pay.saved_pages_per_scan.mid:,.0f} "
        f"pages less; {percent(pay.read_frac)} of the table's pages were not in shared buffers."
        f"{_statements(row)}",
        numbers={
            **bare.numbers,
            "index": index.name,
            "scans": scans,
            "rows_per_scan": round(pay.rows_per_scan, 1),
            "saved_pages_per_scan": round(pay.saved_pages_per_scan.mid, 1),
            "read_frac": round(pay.read_frac, 4),
            "saved_bytes_a_day": round(mid),
            "pays_back_days": None if pay.pays_back_days is None else pay.pays_back_days.mid,
        },
        price=bytes_a_day(
            mid, "pages that scans of the index read, above those of a table in order"
        ),
        remedy=_remedy(row["step"]),
    )


def _statements(row: QueryRow) -> str:
    """Which they are, where that is known."""
    if not row["has_statements"]:
        return " Which statements these are pg_stat_statements would say."
    listed = [f"queryid {one.queryid} ({_short(one.text)})" for one in row["index"].statements[:2]]
    return f" Statements that range by it: {'; '.join(listed)}." if listed else ""


def _short(text: str) -> str:
    text = printable(" ".join(text.split()))
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]} ..."


def _remedy(step: RemedyStep | str) -> Remedy:
    """As the plan's step has it."""
    else_ = (
        "New rows go anywhere again: `pgheadroom order` foresees after which time it pays once "
        "more, and what is cheaper (sorted INSERTs, a covering index, BRIN, partitions)."
    )
    if isinstance(step, str):
        return Remedy(text=f"Put it in order by hand, for {step}. {else_}")
    seconds = step.duration_s
    by = "" if step.command is None else f": {step.command}"
    return Remedy(
        sql=step.statements,
        text=f"Put the rows in order{by}. {else_}",
        lock=f"{step.lock}: {step.blocks}",
        cost=f"at most {show_bytes(step.copied_bytes)} of new table and indexes: "
        f"{show_duration(seconds.low)} to {show_duration(seconds.high)} (assumed rates), "
        f"{show_bytes(step.wal_bytes)} of WAL, {show_bytes(step.disk_bytes)} of disk meanwhile",
    )


RULE = Rule(
    id="rows-out-of-order",
    question="Which tables do ranges of an index read many pages of, for rows that lie apart?",
    book=("B7.43", "B9.13"),
    sql={
        15: _SQL.format(newpage="NULL::int8"),
        16: _SQL.format(newpage="pg_stat_get_tuples_newpage_updated(c.oid)::int8"),
    },
    look=_look,
    reads=_read,
    decide=_decide,
    counters=_COUNTERS,
    key=("oid",),
    is_rate=True,
    threshold="Tables of 10 MiB and more, and indexes whose scans give two entries and more, at "
    "least half of which are looked up in the table. A range of 1,000 rows, read in the table, "
    f"lies on {TIMES_FROM:g} times the pages of a freshly clustered one, at the ends of both "
    "intervals; that costs 1 GiB a day of pages that were not in shared buffers; and by the "
    f"prices that [order](order.md) assumes clustering pays back within {BACK_DAYS_MAX:g} days. "
    "A table that lies in the order of the index that it is marked to be clustered by is left.",
    severity="info: whether a table may be locked for it, or is written too much to stay in "
    "order, its owner knows.",
    price="Bytes a day of pages that are read for ranges, above those of a table in order: pages "
    "of ranges that were read, scans and entries of the index, the share of the table's pages "
    "that were not in shared buffers; never more than was read of the table.",
    remedy="REPACK (CONCURRENTLY) ... USING INDEX from 19 on, pg_squeeze or pg_repack in the "
    "index's order where they are installed and the table has what they need, else CLUSTER.",
    blind="Up to 4,000 pages each of three tables are read, where the role may SELECT from them. "
    "A mean of entries a scan hides ranges among many lookups of single rows. Pages that the "
    "operating system had in memory count as read. Partial indexes, those that begin with an "
    "expression, and other methods than btree. Statements are named where pg_stat_statements has "
    "them.",
    link="https://www.postgresql.org/docs/current/sql-cluster.html",
)
