"""
A tick of `watch` for people: what stands above the tables, and the tables' rows.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from pgheadroom.quoting import called, printable
from pgheadroom.units import show_bytes, show_duration, show_percent
from pgheadroom.watch import (
    HorizonHolder,
    Order,
    RunningVacuum,
    ServerReading,
    TableRate,
    Tick,
    chosen,
)

COLUMNS = ("table", "upd/s", "HOT %", "new page %", "ins/s", "del/s", "dead rows")
_VACUUMS_SHOWN = 3
_HOLDER_FROM_S = 2.0
_ALONE_FROM_S = 60.0
"""A statement that runs now holds the horizon too, for as long as it takes, and one that is alone
on its server keeps nothing: no news. Both arbitrary."""


def heading(now: ServerReading) -> str:
    """Where and when."""
    what = "standby, PostgreSQL" if now.in_recovery else "PostgreSQL"
    return printable(f"{now.database}, {what} {now.server}, {clock(now.at_s)}")


def clock(at_s: float) -> str:
    """A moment, in UTC."""
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(at_s))


def above(tick: Tick) -> Iterator[str]:
    """The lines above the tables: WAL, checkpoints, the horizon, vacuums."""
    now = tick.now
    if now is None:
        return
    yield _wal_line(tick, now)
    yield _horizon_line(now)
    if now.in_recovery:
        yield "standby: updates are counted on the primary"
    for vacuum in now.vacuums[:_VACUUMS_SHOWN]:
        yield printable(f"vacuum: {_vacuum_line(vacuum)}")
    more = len(now.vacuums) - _VACUUMS_SHOWN
    if more > 0:
        yield f"vacuum: and {more} more"


def _wal_line(tick: Tick, now: ServerReading) -> str:
    wal = "?" if tick.wal_bytes_per_s is None else f"{show_bytes(tick.wal_bytes_per_s)}/s"
    word = "WAL replayed" if now.in_recovery else "WAL"
    said = [f"{word} {wal}"]
    if tick.wal_fpi_per_s is not None and not now.in_recovery:
        said.append(f"images {_rate(tick.wal_fpi_per_s)}/s")
    kind = "restartpoints" if now.in_recovery else "checkpoints"
    if tick.checkpoints_timed is None:
        counted = f"{kind} ?"
    else:
        counted = f"{kind} {tick.checkpoints_timed} timed, {tick.checkpoints_requested} requested"
    return f"{', '.join(said)}; {counted}{', one is being written' if now.is_checkpointing else ''}"


def _horizon_line(now: ServerReading) -> str:
    blind = "" if now.monitors else " (others' sessions are not seen without pg_read_all_stats)"
    held = [one for one in now.holders if _is_news(one)]
    if not held:
        return f"horizon: nobody holds it back{blind}"
    more = f" ({len(held) - 1} more)" if len(held) > 1 else ""
    return printable(f"horizon: {_holder_words(held[0], more)}{blind}")


def _is_news(holder: HorizonHolder) -> bool:
    if holder.for_s is None:
        return holder.age_xids > 1
    return holder.for_s >= (_HOLDER_FROM_S if holder.age_xids > 1 else _ALONE_FROM_S)


def _holder_words(holder: HorizonHolder, more: str) -> str:
    """The numbers first: a name may be longer than a line."""
    what = f" ({holder.what})" if holder.what else ""
    since = "" if holder.for_s is None else f", {show_duration(holder.for_s)}"
    where = "" if holder.is_here or holder.database is None else f" of {holder.database}"
    if holder.is_catalog:
        where += ", of catalogs alone"
    back = _counted(holder.age_xids, "transaction")
    return f"{back} back{since}{more}: {holder.kind} {holder.name}{where}{what}"


def _counted(count: int, what: str) -> str:
    """A number of things, its thousands apart."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _vacuum_line(vacuum: RunningVacuum) -> str:
    if vacuum.name is not None:
        name = called(str(vacuum.schema), vacuum.name)
        name = f"TOAST of {name}" if vacuum.is_toast else name
    else:
        name = f"a table of {vacuum.database}" if vacuum.database else "a table"
    said = [f"{name}{' (autovacuum)' if vacuum.is_auto else ''}"]
    if vacuum.phase is not None:
        said.append(vacuum.phase)
    if vacuum.phase == "scanning heap" and vacuum.heap_blks_total:
        done = int(100 * (vacuum.heap_blks_scanned or 0) / vacuum.heap_blks_total)
        said[-1] += f" {done} % of {vacuum.heap_blks_total:,} pages"
    if vacuum.indexes_total:
        said.append(f"index {vacuum.indexes_processed} of {vacuum.indexes_total}")
    if vacuum.index_vacuum_count:
        said.append(f"{vacuum.index_vacuum_count} passes over the indexes done")
    if vacuum.for_s is not None:
        said.append(show_duration(vacuum.for_s))
    return ", ".join(said)


def cells(table: TableRate) -> tuple[str, ...]:
    """A table's row, under `COLUMNS`; what is not known is `-`."""
    return (
        printable(called(table.schema, table.name)),
        _rate(table.updates_per_s),
        _share(table.hot_frac),
        _share(table.newpage_frac),
        _rate(table.inserts_per_s),
        _rate(table.deletes_per_s),
        _whole(table.n_dead_tup),
    )


def _share(share: float | None) -> str:
    return "-" if share is None else show_percent(share, 1)


def _rate(per_s: float) -> str:
    """What happened at all is never shown as nothing."""
    if per_s == 0:
        return "0"
    if per_s < 0.05:
        return "<0.1"
    return f"{per_s:.1f}" if per_s < 99.95 else _whole(per_s)


def _whole(value: float) -> str:
    """With all its digits as long as a column of 80 has room for them."""
    if value < 99_999_999.5:
        return f"{value:,.0f}"
    return f"{value / 1e6:,.0f} M" if value < 1e11 else f"{value / 1e9:,.0f} G"


def text_lines(tick: Tick, order: Order, limit: int) -> Iterator[str]:
    """A tick for a log or a pipe."""
    if tick.now is not None:
        over = "" if tick.interval_s is None else f", rates of {tick.interval_s:.1f} s"
        yield f"{heading(tick.now)}{over}"
        yield from (f"  {line}" for line in above(tick))
    for note in tick.notes:
        yield f"! {printable(note)}"
    tables = chosen(tick.tables, order)
    rows = [COLUMNS, *(cells(table) for table in tables[:limit])]
    if tick.counts:
        yield from _aligned(rows)
        if len(tables) > limit:
            yield f"  and {len(tables) - limit} more tables"
    yield ""


def _aligned(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(len(row[place]) for row in rows) for place in range(len(COLUMNS))]
    for row in rows:
        first = row[0].ljust(widths[0])
        rest = "  ".join(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))
        yield f"  {first}  {rest}"
