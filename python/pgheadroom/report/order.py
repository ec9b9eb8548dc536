"""
The order of tables as tables: pages of a range now, fresh and at random; what reads ranges.
"""

from __future__ import annotations

from pgheadroom.order.paying import ROWS_MIN
from pgheadroom.order.values import IndexOrder, OrderReport, TableOrder
from pgheadroom.quoting import printable
from pgheadroom.report import csv_file
from pgheadroom.report.heading import Heading
from pgheadroom.report.table import Column, Table
from pgheadroom.types import Interval
from pgheadroom.units import percent, show_bytes, show_count, show_duration

_PAGE_BYTES = 8192
_NOTED_MAX = 6
_TIMES_FROM = 2.0
"""From here on a table is named in the first line: a range reads twice the pages that it has to."""


def heading(report: OrderReport) -> Heading:
    """What stands above the tables."""
    return Heading(
        kind="Order",
        title=f"Order of tables, database {printable(report.database)}",
        server=report.server,
        answer=answer(report),
        findings=tuple(_findings(report)),
        warnings=tuple(printable(f"not seen: {each}") for each in report.missing),
        alarms=tuple(printable(f"not seen: {each}") for each in report.missing),
        assumed=tuple(circumstances(report)),
        meta=(("At", report.at), ("Counted", _counted(report))),
        tool_version=report.tool_version,
    )


def answer(report: OrderReport) -> str:
    """In a sentence: where a range reads many more pages than it has to."""
    worst = [
        (index.times_fresh.low, table, index)
        for table in report.tables
        for index in table.indexes
        if index.evidence == "sampled" and index.times_fresh.low >= _TIMES_FROM
    ]
    if not report.tables:
        return "No table of 1 MiB or more has a B-tree."
    if not any(index.evidence == "sampled" for table in report.tables for index in table.indexes):
        return "No range was read: what a range reads now is not known."
    if not worst:
        return "No range that was read lies on twice the pages of a freshly clustered one."
    worst.sort(key=lambda each: (not _reads_ranges(each[2]), -each[0]))
    times, table, index = worst[0]
    more = len(worst) - 1
    rest = f"; {more:,} more so" if more else ""
    if not _reads_ranges(index):
        found = f"no scan of {'these' if more else 'it'} was counted"
        if any(each.scans for *_, each in worst):
            found = f"scans of {'these' if more else 'it'} find single rows, which no order helps"
        rest += f"; {found}"
    return (
        f"A range of 1,000 rows of {table.called} by {printable(index.name)} lies on "
        f"{index.pages_per_range.mid:.0f} pages, at least {times:.1f} times those of a freshly "
        f"clustered one{rest}."
    )


def _reads_ranges(index: IndexOrder) -> bool:
    return (index.rows_per_scan or 0.0) >= ROWS_MIN


def circumstances(report: OrderReport) -> list[str]:
    """How it was obtained."""
    read = sum(table.pages_read for table in report.tables)
    lines = [_counted(report)]
    if read:
        lines.append(
            f"{read:,} pages were read, as SELECT reads them: it may prune pages and set hint bits"
        )
    if report.small_tables:
        lines.append(f"{show_count(report.small_tables, 'table')} below 1 MiB left out")
    lines += [f"would show more: {printable(each)}" for each in report.would_help]
    return lines


def _counted(report: OrderReport) -> str:
    if report.interval_s is not None:
        return f"counters of {show_duration(report.interval_s)}"
    over_s = next((table.changes.over_s for table in report.tables), None)
    if over_s is None:
        return "counters since an unknown time"
    long = f"{over_s / 86_400:.0f} days" if over_s >= 172_800 else show_duration(over_s)
    return f"counters of the {long} that the statistics reach back"


def _findings(report: OrderReport) -> list[str]:
    found = []
    for table in report.tables:
        for index in table.indexes:
            unseen = index.unseen_frac
            if unseen is not None and index.not_sampled is not None and index.ranges < 3:
                found.append(
                    f"{table.called}, {printable(index.name)}: {show_count(index.ranges, 'range')} "
                    f"read, {printable(index.not_sampled)}: the ends are what is possible"
                )
    return found[:_NOTED_MAX]


def tables(report: OrderReport) -> list[Table]:
    """All tables of the report, in the order in which they are read."""
    if not report.tables:
        return []
    found = [_order(report)]
    further = (_forecast(report), _paying(report), _cheaper(report), _statements(report))
    return [*found, *(table for table in further if table.rows)]


def _order(report: OrderReport) -> Table:
    rows = tuple(
        (
            table.called,
            _named(index),
            _now(index),
            index.pages_fresh,
            index.pages_random,
            index.ranges,
            index.correlation,
            index.scans,
            index.rows_per_scan,
        )
        for table in report.tables
        for index in table.indexes
    )
    return Table(
        title="Pages that a range of 1,000 rows lies on",
        columns=(
            Column(key="table", title="table", style="words", lead=True),
            Column(key="index", title="index", style="words", lead=True),
            Column(key="now", title="now", unit="pages", digits=1),
            Column(key="fresh", title="clustered", unit="pages", digits=1),
            Column(key="random", title="at random", unit="pages", digits=0),
            Column(key="ranges", title="ranges read", minor=True),
            Column(key="correlation", title="correlation", digits=3, minor=True),
            Column(key="scans", title="scans", minor=True),
            Column(key="rows_per_scan", title="rows a scan", digits=1, minor=True),
        ),
        rows=rows,
        note=_note(report),
    )


def _now(index: IndexOrder) -> Interval | str:
    now = index.pages_per_range
    return now if index.evidence == "sampled" else f"{now.low:.1f} to {now.high:.1f}"


def _named(index: IndexOrder) -> str:
    return printable(f"{index.name} ({', '.join(index.columns)})") + (
        ", CLUSTER" if index.is_marked else ""
    )


def _note(report: OrderReport) -> str:
    parts = []
    some = [
        index.unseen_frac
        for table in report.tables
        for index in table.indexes
        if index.unseen_frac is not None
    ]
    if some:
        parts.append(
            "A part of a table that no range has hit may lie otherwise: one of "
            f"{percent(max(some))} of the rows would have been hit in 9 of 10 looks."
        )
    whys: dict[str, list[str]] = {}
    for table in report.tables:
        for index in table.indexes:
            if index.not_sampled is not None and not index.ranges:
                whys.setdefault(index.not_sampled, []).append(index.name)
    parts += [
        f"Not read, {printable(why)}: {printable(', '.join(names[:_NOTED_MAX]))}"
        + (f" and {len(names) - _NOTED_MAX} more." if len(names) > _NOTED_MAX else ".")
        for why, names in whys.items()
    ]
    return " ".join(parts)


def _forecast(report: OrderReport) -> Table:
    """How the order goes on."""
    shown = [
        (table, index, index.forecast)
        for table in report.tables
        for index in table.indexes
        if index.forecast is not None
    ]
    days = [point.after_days for point in shown[0][2].points] if shown else []
    assumed = dict.fromkeys(each for *_, forecast in shown for each in forecast.assumed)
    return Table(
        title="Pages of a range if rows go on changing so",
        columns=(
            Column(key="table", title="table", style="words", lead=True),
            Column(key="index", title="index", style="words", lead=True),
            *(
                Column(key=f"after_{each:g}", title=f"in {each:g} days", unit="pages", digits=1)
                for each in days
            ),
            Column(key="added", title="a new row adds", unit="pages", digits=3, minor=True),
        ),
        rows=tuple(
            (
                table.called,
                printable(index.name),
                *(point.pages_per_range for point in forecast.points),
                forecast.pages_per_new_row,
            )
            for table, index, forecast in shown
        ),
        note=f"Taken for granted: {'; '.join(assumed)}. Where what a new row adds is not known, "
        "the ends are rows in order, and at random.",
    )


def _paying(report: OrderReport) -> Table:
    """When clustering pays."""
    shown = [
        (table, index, index.pay)
        for table in report.tables
        for index in table.indexes
        if index.pay is not None
    ]
    prices = report.prices
    assumed = ", ".join(name.replace("_", "-") for name in prices.is_assumed)
    return Table(
        title="What clustering by an index saves",
        columns=(
            Column(key="table", title="table", style="words", lead=True),
            Column(key="index", title="index", style="words", lead=True),
            Column(key="scans", title="scans a day", digits=0),
            Column(key="saved", title="saved a scan", unit="pages", digits=1),
            Column(key="saved_s", title="saved a day", unit="s", digits=2),
            Column(key="cost", title="costs", unit="s", digits=1),
            Column(key="back", title="pays back in", unit="days", digits=1),
            Column(key="every", title="best every", unit="days", digits=1),
            Column(key="why", title="why not", style="words", minor=True),
        ),
        rows=tuple(
            (
                table.called,
                printable(index.name),
                pay.scans_a_day,
                pay.saved_pages_per_scan,
                pay.saved_s_a_day,
                pay.cost_s,
                pay.pays_back_days,
                pay.every_days,
                pay.why,
            )
            for table, index, pay in shown
        ),
        note=f"Prices: {prices.page_read_ms:g} ms a page read, {prices.page_hit_ms:g} ms one in "
        f"shared buffers, {prices.page_write_ms:g} ms one written, a second of the lock as "
        f"{prices.lock_cost:g} s of work"
        + (f" (assumed: {assumed})" if assumed else "")
        + ". Pages that are read are as many as the table's own counters have; each entry that a "
        "scan gives is taken for a row that is fetched.",
    )


_WAYS = {
    "sorted_insert": "sorted INSERT",
    "covering_index": "covering index",
    "brin": "BRIN",
    "partitions": "partitions",
}


def _cheaper(report: OrderReport) -> Table:
    """What to try before CLUSTER."""
    rows = tuple(
        (
            table.called,
            printable(index.name),
            _WAYS[one.kind],
            one.pages_per_range,
            None if one.size_bytes is None else show_bytes(one.size_bytes),
            printable(one.text),
        )
        for table in report.tables
        for index in table.indexes
        for one in index.cheaper
    )
    return Table(
        title="Cheaper than CLUSTER, each foreseen",
        columns=(
            Column(key="table", title="table", style="words", lead=True),
            Column(key="index", title="index", style="words", lead=True),
            Column(key="way", title="way", style="words"),
            Column(key="pages", title="a range", unit="pages", digits=1),
            Column(key="size", title="adds", style="text"),
            Column(key="text", title="what it is", style="words"),
        ),
        rows=rows,
    )


def _statements(report: OrderReport) -> Table:
    rows = tuple(
        (
            table.called,
            printable(index.name),
            printable(one.text),
            one.calls,
            one.rows_per_call,
            one.blocks_per_call,
            one.read_blocks_per_call,
            printable("; ".join(one.unknown)),
        )
        for table in report.tables
        for index in table.indexes
        for one in index.statements
    )
    return Table(
        title="Statements that read ranges, by their text",
        columns=(
            Column(key="table", title="table", style="words", lead=True),
            Column(key="index", title="index", style="words", lead=True),
            Column(key="text", title="statement", style="words"),
            Column(key="calls", title="calls"),
            Column(key="rows", title="rows a call", digits=1),
            Column(key="blocks", title="pages a call", digits=1),
            Column(key="read", title="of these read", digits=1),
            Column(key="unknown", title="not known", style="words", minor=True),
        ),
        rows=rows,
        note="Pages of all tables and indexes that a statement names, as pg_stat_statements counts "
        "them.",
    )


def as_csv(report: OrderReport) -> str:
    """A row an index."""
    rows = report.rows()
    names = list(rows[0]) if rows else ["schema", "table", "index"]
    return csv_file.written(names, [tuple(row[name] for name in names) for row in rows])


def table_line(table: TableOrder) -> str:
    """A table in a line."""
    return f"{table.called}: {table.rows:,} rows, {show_bytes(table.pages * _PAGE_BYTES)}"
