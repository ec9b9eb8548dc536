"""
What pgstattuple_approx measures, where it is installed and the role may: instead of statistics.

It reads the pages that are not all-visible, and takes the free space map's word for the others
(`statapprox_heap`, contrib/pgstattuple/pgstatapprox.c). What it calls used holds more than rows:
line pointers of rows that are gone, and what a fresh page leaves free as well. So a bound remains,
which knows nothing of columns.
"""

from __future__ import annotations

from dataclasses import dataclass

from pgheadroom.bloat.asking import Ask
from pgheadroom.bloat.values import Estimate, estimate_of
from pgheadroom.units import PAGE_BYTES

_LINE_POINTER_BYTES = 4
_PADDING_MAX = 7
_ROW_MIN = 28  # header and line pointer
_ROW_MAX = 2036  # TOAST_TUPLE_THRESHOLD, or a whole chunk, with a line pointer
_MAP_STEP = PAGE_BYTES / 256  # the map's unit (FSM_CAT_STEP)

_MODULE = """
SELECT quote_ident(n.nspname) AS schema
FROM pg_extension e
JOIN pg_namespace n ON n.oid = e.extnamespace
JOIN pg_proc p ON p.pronamespace = n.oid AND p.proname = 'pgstattuple_approx'
WHERE e.extname = 'pgstattuple' AND has_function_privilege(p.oid, 'EXECUTE')
"""
# Who holds the table, or waits for it so, would make us wait.
_MEASURE = """
SELECT CASE WHEN NOT EXISTS (
         SELECT FROM pg_locks l
         WHERE l.locktype = 'relation' AND l.mode = 'AccessExclusiveLock' AND l.relation = c.oid
           AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()))
         AND (c.relpages - c.relallvisible)::int8 * 8192 <= {budget}
       THEN (SELECT to_jsonb(m) FROM {schema}.pgstattuple_approx(c.oid) m) END AS found,
       (c.relpages - c.relallvisible)::int8 * 8192 AS read_bytes
FROM pg_class c WHERE c.oid = {oid}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApproxStat:
    """
    Bytes of a table, as pgstattuple_approx has them.

    Attributes:
        table_bytes: All of it.
        free_bytes: On its pages.
        dead_bytes: Of dead rows, line pointers and padding left out.
        dead_rows: How many.
        rows: Live ones.
        read_bytes: It had to read, at most.
    """

    table_bytes: float
    free_bytes: float
    dead_bytes: float
    dead_rows: float
    rows: float
    read_bytes: float


def module_schema(ask: Ask) -> str | None:
    """Where pgstattuple_approx is, quoted; None where it is not, or the role may not run it."""
    return next((str(row["schema"]) for row in ask(_MODULE)), None)


def measure(ask: Ask, schema: str, oid: int, budget_bytes: float) -> ApproxStat | None:
    """
    Measure a table or TOAST table; None where somebody holds it, or it takes more than the budget.

    Args:
        ask: Gives the rows of a query.
        schema: Of `module_schema`.
        oid: Of the table.
        budget_bytes: Of pages that are read.
    """
    text = _MEASURE.format(schema=schema, oid=int(oid), budget=round(max(budget_bytes, 0)))
    row = next(iter(ask(text)), None)
    if row is None or row["found"] is None or not row["found"]["table_len"]:
        return None
    found = row["found"]
    return ApproxStat(
        table_bytes=float(found["table_len"]),
        free_bytes=float(found["approx_free_space"]),
        dead_bytes=float(found["dead_tuple_len"]),
        dead_rows=float(found["dead_tuple_count"]),
        rows=float(found["approx_tuple_count"]),
        read_bytes=max(float(row["read_bytes"]), 0.0),
    )


def as_measured(estimate: Estimate, found: ApproxStat, fillfactor: int) -> Estimate:
    """
    The estimate within what was measured.

    Args:
        estimate: By statistics.
        found: By the module.
        fillfactor: Of the table, percent; 100 for TOAST.
    """
    pages = found.table_bytes / PAGE_BYTES
    whole = found.table_bytes
    empty = found.free_bytes + found.dead_bytes
    used = whole - empty
    row_bytes = max(used / found.rows, _ROW_MIN) if found.rows > 0 else _ROW_MIN
    # Of rows that are gone line pointers may be left, and padding of those that are dead.
    idle = _LINE_POINTER_BYTES * empty / row_bytes
    idle += (_LINE_POINTER_BYTES + _PADDING_MAX) * found.dead_rows
    least = max(used - idle - pages * _MAP_STEP, 0.0)
    saved = PAGE_BYTES * (100 - fillfactor) // 100
    room = PAGE_BYTES - saved
    # A fresh page keeps free what no further row fits into: less than the longest.
    left = _ROW_MAX if estimate.kind == "toast" else _ROW_MAX / 2
    low, high = least / room, used / max(room - left, room / 2) + 1
    own = estimate.rewritten_pages
    if max(low, own.low) <= min(high, own.high):
        low, high = max(low, own.low), min(high, own.high)
    reasons = ("pgstattuple_approx does not tell what a fresh copy leaves free",)
    return estimate_of(estimate.kind, estimate.pages, low, (low + high) / 2, high, reasons)
