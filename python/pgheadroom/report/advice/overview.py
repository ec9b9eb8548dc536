"""
The tables of an advice in a line each, and which of them are treated in full.
"""

from __future__ import annotations

from collections.abc import Sequence

from pgheadroom.advise.advice import Advice
from pgheadroom.advise.foreseen import Point
from pgheadroom.advise.table_advice import TableAdvice
from pgheadroom.lab.result import CellValue
from pgheadroom.outcome import Value
from pgheadroom.report.advice.head import MOST_NAMED, full_name
from pgheadroom.report.advice.values import known_wal, share, short
from pgheadroom.report.table import NOTHING, Column, Table
from pgheadroom.units import show_bytes

_MOST_LISTED = 20
"""Tables up to which a terminal lists those that need nothing (arbitrary: half a screen)."""

_MANY_STILL = 4
"""Tables without an update from which on they are named in one line (arbitrary)."""


def treated(advice: Advice, *, verbose: bool = False) -> list[TableAdvice]:
    """The tables that get a detail: those to change, those whose index is found; or all."""
    return [
        table
        for table in advice.tables
        if verbose
        or table.verdict == "CHANGE"
        or any(remark.kind in ("index", "horizon") for remark in table.remarks)
    ]


def overview(advice: Advice, *, verbose: bool = False, folds: bool = True) -> Table:
    """
    One line a table; those that need nothing only while they are few.

    Args:
        advice: Of all tables.
        verbose: All of them.
        folds: Tables that nothing updated are left to `others`.
    """
    few = verbose or len(advice.tables) <= _MOST_LISTED
    still = {id(table) for table in _still(advice)} if folds and not verbose else set()
    listed = [table for table in advice.tables if id(table) not in still]
    wanted = listed if few else treated(advice)
    return Table(
        title="Tables by gain",
        columns=(
            Column(key="table", title="table", style="words", lead=True),
            Column(key="verdict", title="verdict", style="words"),
            Column(key="fillfactor", title="fillfactor", style="text"),
            Column(key="hot", title="HOT measured", unit="%", style="text"),
            Column(key="hot_then", title="HOT in the long run", unit="%", style="text"),
            Column(key="wal", title="WAL measured", unit="bytes/update", style="text", minor=True),
            Column(
                key="wal_then",
                title="WAL in the long run",
                unit="bytes/update",
                style="text",
                minor=True,
            ),
            Column(key="gain", title="saves", unit="% of cost", style="text"),
            Column(key="size", title="heap", style="text", minor=True),
            Column(key="rate", title="updates/s", style="text", minor=True),
            Column(key="by", title="by", style="words", minor=True),
            Column(key="reason", title="reason", style="words"),
        ),
        rows=tuple(map(_line, wanted)),
        note="Measured at the setting in force; the long run, predicted, at the setting in force "
        "and -> at the advised one. WAL is what the statements that update rows write, over the "
        "rows, images apart; measured only where the interval's log or pg_stat_statements has it. "
        "The heap is as measured, and by how much it is larger at the advised setting, predicted. "
        "A verdict is by the interval's counters, by a rule (an index, the horizon), or by the "
        "twin.",
    )


def others(advice: Advice, *, folds: bool = True) -> list[str]:
    """The tables that the overview leaves out, counted and named shortly."""
    still = _still(advice) if folds else []
    left = {id(table) for table in still}
    said = []
    if len(advice.tables) > _MOST_LISTED:
        left |= {id(table) for table in treated(advice)}
        for verdict in ("KEEP", "ABSTAIN"):
            found = [t for t in advice.tables if t.verdict == verdict and id(t) not in left]
            if found:
                said.append(f"{verdict} {_named(found)}.")
    if still:
        named = _named(still).replace(":", " tables were not updated, and stay as they are:", 1)
        said.append(f"{named}.")
    return said


def _still(advice: Advice) -> list[TableAdvice]:
    """Tables that nothing updated and of which nothing else is to be said, where they are many."""
    found = [
        table
        for table in advice.tables
        if table.verdict == "KEEP" and table.updates == 0 and not table.remarks
    ]
    return found if _MANY_STILL <= len(found) < len(advice.tables) else []


def _named(tables: Sequence[TableAdvice]) -> str:
    """How many, and the first of them by name."""
    more = len(tables) - MOST_NAMED
    rest = f" and {more} more" if more > 0 else ""
    return f"{len(tables)}: {', '.join(map(full_name, tables[:MOST_NAMED]))}{rest}"


def _line(table: TableAdvice) -> tuple[CellValue, ...]:
    now, then = table.point(table.fillfactor), table.point(table.advised_fillfactor)
    change = table.verdict == "CHANGE" and then is not None
    fillfactor = str(table.fillfactor)
    # Of a table without an answer nothing is foreseen.
    hot = wal = NOTHING
    shares = shown_shares(table)
    if now is not None and table.verdict != "ABSTAIN":
        hot, wal = _hot(now, shares, ranged=False), short(now.wal_bytes_per_update)
    if change and then is not None:
        fillfactor += f" -> {table.advised_fillfactor}"
        after = _hot(then, shares)
        stays = _hot(then, shares, ranged=False) == hot
        hot = f"stays {after}" if stays else f"{hot} -> {after}"
        wal += f" -> {short(then.wal_bytes_per_update)}"
    return (
        full_name(table),
        table.verdict,
        fillfactor,
        share(table.hot_frac, beside=shares),
        hot,
        short(known_wal(table.wal_bytes_per_update)),
        wal,
        share(table.gain_frac, ranged=False) if change else NOTHING,
        size(table),
        short(table.updates_per_s),
        table.decided_by,
        table.reason,
    )


def shown_shares(table: TableAdvice) -> tuple[Value, ...]:
    """HOT shares of a table that are read beside each other: measured, now, as advised."""
    found: list[Value] = [table.hot_frac]
    if table.verdict != "ABSTAIN":
        at = (table.fillfactor, table.advised_fillfactor)
        found += [point.hot_frac for setting in at if (point := table.point(setting)) is not None]
    return tuple(found)


def _hot(point: Point, beside: tuple[Value, ...], *, ranged: bool = True) -> str:
    """HOT in the long run; where that was not reached, how far it has come."""
    found = share(point.hot_frac, ranged=ranged, beside=beside)
    return found if point.is_settled else f"{found} (not settled)"


def size(table: TableAdvice) -> str:
    """The heap now, and by how much a change makes it larger where both are played as long."""
    now = NOTHING if table.heap_bytes is None else show_bytes(table.heap_bytes)
    grows = growth(table)
    return now if grows is None else f"{now} {grows}"


def growth(table: TableAdvice) -> str | None:
    """
    How much larger the heap is at the advised setting than at the one in force, both predicted.

    Not beside the size that was measured: a table that grows is larger at the end in any case.
    """
    grows = table.heap_grows_frac
    return None if table.verdict != "CHANGE" or grows is None else f"{100 * grows:+.3g} %"
