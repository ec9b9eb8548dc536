"""
The tables that an advice has of one table and of its policy: causes, indexes, curve, prices.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set

from pgheadroom.advise.advice import Advice, Partitions, Prices
from pgheadroom.advise.cold_updates import CAUSES, CauseKind, IndexesTogether, IndexFinding
from pgheadroom.advise.foreseen import Point
from pgheadroom.advise.table_advice import TableAdvice
from pgheadroom.lab import reading
from pgheadroom.lab.result import CellValue
from pgheadroom.outcome import Value, ends, middle, scaled
from pgheadroom.quoting import called
from pgheadroom.report.table import NOTHING, Column, Table
from pgheadroom.units import show_bytes

CAUSE_TITLES: Mapping[CauseKind, str] = {
    "hot": "HOT",
    "indexed_column": "indexed column changed",
    "no_room": "no room on the page",
    "row_grew": "row grew",
    "unknown": "unknown",
}


_MOST_POINTS = 7
_PARTITIONS_SHOWN = 12
"""Points of a curve in a small table."""


_PRICES: tuple[tuple[str, Callable[[Prices], float], str], ...] = (
    ("kept", lambda it: it.kept_gb, "a GB of heap and indexes, kept for a day"),
    ("wal", lambda it: it.wal_gb, "a GB of WAL, full-page images included"),
    (
        "written",
        lambda it: it.written_mpages,
        "a million pages dirtied, once a checkpoint distance",
    ),
    (
        "read",
        lambda it: it.read_mpages,
        "a million pages read by sequential scans and by misses of updates",
    ),
)


FORMULA = (
    "cost a day = kept x GB of heap and indexes + wal x GB of WAL a day + written x million pages "
    "dirtied a day + read x million pages read a day; GB are 10^9 bytes, and the unit is one GB "
    "kept for a day."
)


def causes(table: TableAdvice) -> Table | None:
    """The interval's updates by cause."""
    if not table.causes:
        return None
    return Table(
        title="Why updates were what they were",
        columns=(
            Column(key="cause", title="cause", style="words", lead=True),
            Column(key="frac", title="updates", unit="%", style="share"),
            Column(key="updates", title="updates", unit="rows", minor=True),
            Column(key="wal", title=_wal_title(table), unit="bytes", digits=0),
            Column(key="evidence", title="evidence", style="words", minor=True),
            Column(key="detail", title="what was seen", style="words"),
        ),
        rows=tuple(
            (
                CAUSE_TITLES[cause.kind],
                cause.frac,
                cause.updates,
                cause.wal_bytes,
                cause.evidence,
                cause.detail,
            )
            for cause in sorted(table.causes, key=lambda cause: CAUSES.index(cause.kind))
        ),
    )


def _wal_title(table: TableAdvice) -> str:
    """Where the log was read, HOT updates and the others are told apart by it."""
    # What foreign keys lock is a finding about WAL too, and no measured one.
    was_read = any(one.kind == "wal" and one.evidence == "measured" for one in table.remarks)
    return "WAL, by the log" if was_read else "WAL, estimated"


def blamed(table: TableAdvice) -> Table | None:
    """The indexes that took HOT away, and how much they are read."""
    rows = [
        (
            index.name,
            ", ".join(index.columns),
            index.updates,
            index.certainty,
            index.scans,
            index.total_scans,
            "yes" if index.unique else "no",
        )
        for cause in table.causes
        for index in cause.indexes
    ]
    if not rows:
        return None
    return Table(
        title="Indexes on columns that the updates change",
        columns=(
            Column(key="index", title="index", style="words", lead=True),
            Column(key="columns", title="columns assigned", style="words"),
            Column(
                key="updates",
                title="updates" if len(rows) == 1 else "updates, shared out",
                unit="rows",
            ),
            Column(key="certainty", title="blamed", style="words"),
            Column(key="scans", title="scans"),
            Column(key="total_scans", title="scans before too"),
            Column(key="unique", title="unique", style="words"),
        ),
        rows=tuple(rows),
        note="Scans in the interval, and since the server's statistics began."
        + (
            " What changed columns of several indexes is shared out among them; what goes without "
            "one of them, or all, stands with the indexes that end HOT."
            if len(rows) > 1
            else ""
        ),
    )


_MOST_INDEXES = 15
"""Indexes that end HOT which a terminal lists (arbitrary)."""


def indexes(advice: Advice, *, all_indexes: bool = False) -> Table | None:
    """The indexes of all tables that end HOT, by the WAL that they cost."""
    if not advice.indexes:
        return None
    shown = advice.indexes if all_indexes else advice.indexes[:_MOST_INDEXES]
    names = {table.table: table for table in advice.tables}
    stay = {(found.table, found.name) for found in advice.indexes if found.enforces is not None}
    together: dict[str, list[IndexesTogether]] = {}
    for several in advice.indexes_together or ():
        together.setdefault(several.table, []).append(several)
    last = {found.table: n for n, found in enumerate(shown)}
    rows: list[tuple[CellValue, ...]] = []
    for n, found in enumerate(shown):
        table = names[found.table]
        rows.append(
            (
                found.name,
                called(table.schema, table.name),
                found.by or "not known",
                found.updates_frac,
                found.hot_frac_now,
                found.hot_frac_then,
                _saved(found.wal_bytes_saved_per_day),
                found.scans,
                found.evidence,
                _besides(found, stay),
            )
        )
        if n == last[found.table]:  # after the last one of its table
            rows += [_row_together(several, table) for several in together.get(found.table, ())]
    more = len(advice.indexes) - len(shown)
    besides = any(row[-1] for row in rows)
    return Table(
        title="Indexes that end HOT, by the WAL that they cost",
        columns=(
            Column(key="index", title="index", style="words", lead=True),
            Column(key="table", title="table", style="words"),
            Column(key="by", title="by", style="words"),
            Column(key="updates", title="updates", unit="%", style="share"),
            Column(key="now", title="HOT with it", unit="%", style="share", minor=True),
            Column(key="then", title="HOT without it", unit="%", style="share"),
            Column(key="saved", title="WAL saved", unit="a day", style="text"),
            Column(key="scans", title="scans", minor=True),
            Column(key="evidence", title="evidence", style="words", minor=True),
            *([Column(key="besides", title="note", style="words")] if besides else []),
        ),
        rows=tuple(row if besides else row[:-1] for row in rows),
        note="Without it means without this one alone. Estimated by rule, layout and the "
        "statements' WAL where that was counted; predicted "
        "by the twin where it played the table: HOT in the long run, with the index and without. "
        "Scans are those of the interval: an index is "
        "there to be read, and only its users know what needs it."
        + (f" {more} more have less: --verbose shows them." if more else ""),
    )


def _saved(found: Value) -> str:
    """Bytes a day with their range."""
    if found is None:
        return NOTHING
    low, mid, high = ends(found)
    if low == high:
        return show_bytes(mid)
    return f"{show_bytes(mid)} [{show_bytes(low)}, {show_bytes(high)}]"


def _row_together(several: IndexesTogether, table: TableAdvice) -> tuple[CellValue, ...]:
    """Several indexes of a table: what goes without all of them."""
    return (
        " + ".join(several.names),
        called(table.schema, table.name),
        "",
        several.updates_frac,
        several.hot_frac_now,
        several.hot_frac_then,
        _saved(several.wal_bytes_saved_per_day),
        None,
        several.evidence,
        "without both" if len(several.names) == 2 else f"without all {len(several.names)}",
    )


def _besides(found: IndexFinding, stay: Set[tuple[str, str]]) -> str:
    """What is to be known of an index; `stay` are those that cannot go, by table and name."""
    if found.enforces is not None:
        return f"{found.enforces}: cannot go"
    if found.only_with:
        held = [name for name in found.only_with if (found.table, name) in stay]
        cannot = f", and {', '.join(held)} cannot go" if held else ""
        return f"only together with {', '.join(found.only_with)}{cannot}"
    return "" if found.certainty == "certain" else "possible"


def curve(table: TableAdvice, *, all_points: bool = False) -> Table | None:
    """The table's curve over fillfactor, with the current and the advised point marked."""
    if not table.curve:
        return None
    points = list(table.curve) if all_points else _few(table)
    unit, scale = _byte_unit(max(middle(point.heap_bytes) or 0.0 for point in table.curve))

    columns = [
        Column(key="fillfactor", title="fillfactor", unit="%", lead=True),
        Column(key="mark", title="", style="words", lead=True),
        Column(key="hot_frac", title="HOT", unit="%", style="share"),
        Column(key="heap_bytes", title="heap", unit=unit),
        Column(key="wal_bytes_per_update", title="WAL", unit="bytes/update"),
        Column(key="cost", title="cost a day", unit="GB kept"),
    ]
    rows: list[list[CellValue]] = [
        [
            point.fillfactor,
            mark(table, point),
            point.hot_frac,
            scaled(point.heap_bytes, 1 / scale),
            point.wal_bytes_per_update,
            point.cost,
        ]
        for point in points
    ]
    if all_points:
        more: tuple[tuple[str, str, str | None], ...] = (
            ("newpage_frac", "new-page", "%"),
            ("all_wal_bytes_per_update", "all WAL", "bytes/update"),
            ("index_bytes", "indexes", unit),
            ("pages_modified_per_update", "dirtied", "pages/update"),
            ("seq_scan_pages", "sequential scan", "pages"),
            ("misses_per_update", "misses", "pages/update"),
            ("vacuum_pages_per_update", "vacuum", "pages/update"),
        )
        for key, heading, its_unit in more:
            found = [getattr(point, key) for point in points]
            if all(item is None for item in found):
                continue
            share = key.endswith("_frac")
            columns.append(
                Column(key=key, title=heading, unit=its_unit, style="share" if share else "number")
            )
            for row, item in zip(rows, found, strict=True):
                row.append(scaled(item, 1 / scale) if key == "index_bytes" else item)
    return Table(
        title="The curve over fillfactor, in the long run",
        columns=tuple(columns),
        rows=tuple(map(tuple, rows)),
        note="Predicted by the twin: the long run at each fillfactor. WAL is what the update "
        "statements write, images apart; the cost takes all WAL, by the policy's prices, which "
        "are assumed.",
    )


def mark(table: TableAdvice, point: Point) -> str:
    """Whether a point is the setting in force, or the advised one, and no long run."""
    found = []
    if point.fillfactor == table.fillfactor:
        found.append("now")
    if point.fillfactor == table.advised_fillfactor:
        found.append("advised")
    if not point.is_settled:
        found.append("not settled")
    return ", ".join(found)


def prices(advice: Advice) -> Table:
    """The prices in force."""
    return Table(
        title=f"Prices of the goal {advice.policy.goal}",
        columns=(
            Column(key="price", title="price", style="words", lead=True),
            Column(key="value", title="of", unit="GB kept"),
            Column(key="what", title="for", style="words"),
        ),
        rows=tuple((title, price(advice.policy.prices), what) for title, price, what in _PRICES),
        section="assumed",
        note=f"Assumed, to be replaced by --price: {FORMULA}",
    )


def partitioned(advice: Advice) -> Table | None:
    """Each partitioned table with its partitions, by what is advised for them."""
    if not advice.partitioned:
        return None
    return Table(
        title="Partitioned tables",
        columns=(
            Column(key="table", title="table", style="words", lead=True),
            *(
                Column(key=verdict, title=verdict, style="words")
                for verdict in ("CHANGE", "KEEP", "ABSTAIN")
            ),
            Column(key="advised", title="advised", style="words", unit="fillfactor"),
            Column(key="updates_per_s", title="updates", unit="/s"),
        ),
        rows=tuple(_partitioned_row(advice, item) for item in advice.partitioned),
        note="Partitions by name, those of partitions that are partitioned too; a fillfactor is "
        "set on each, for the partitioned table cannot have one."
        + (_UNKNOWN if any(one.updates_per_s is None for one in advice.partitioned) else ""),
    )


_UNKNOWN = (
    " No updates are shown where partitions came or went, or none was there, and nothing tells how "
    "many these had."
)


def _partitioned_row(advice: Advice, item: Partitions) -> tuple[Value | str, ...]:
    verdicts = {table.table: table.verdict for table in advice.tables}

    def named(verdict: str) -> str | None:
        own = [part for part in item.partitions if verdicts.get(part) == verdict]
        shown = ", ".join(map(reading.printable, own[:_PARTITIONS_SHOWN]))
        more = len(own) - _PARTITIONS_SHOWN
        return (f"{shown} and {more} more" if more > 0 else shown) or None

    name = reading.printable(called(item.schema, item.name))
    return (
        name if item.parent is None else f"{name} (of {reading.printable(item.parent)})",
        named("CHANGE"),
        named("KEEP"),
        named("ABSTAIN"),
        ", ".join(map(str, item.advised_fillfactors)) or None,
        item.updates_per_s,
    )


def _few(table: TableAdvice) -> list[Point]:
    """The current and the advised point, and others evenly between the ends."""
    points = table.curve
    if len(points) <= _MOST_POINTS:
        return list(points)
    step = (len(points) - 1) / (_MOST_POINTS - 1)
    wanted = {round(step * place) for place in range(_MOST_POINTS)}
    return [point for place, point in enumerate(points) if place in wanted or mark(table, point)]


def _byte_unit(largest: float) -> tuple[str, float]:
    for unit, scale in (("GiB", 1024.0**3), ("MiB", 1024.0**2)):
        if largest >= scale:
            return unit, scale
    return "KiB", 1024.0
