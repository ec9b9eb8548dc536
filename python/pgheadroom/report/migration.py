"""
Tables of a check of a migration: what becomes of HOT, and what could not be judged.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from pgheadroom.lab.reading import printable
from pgheadroom.migration.answer import MigrationCheck, TableCheck, Worked
from pgheadroom.outcome import middle
from pgheadroom.quoting import called
from pgheadroom.report import csv_file
from pgheadroom.report.table import Column, Table
from pgheadroom.types import Interval
from pgheadroom.units import share_digits, show_bytes, show_bytes_more

_T = TypeVar("_T")

_FIGURES = (
    "updates_per_s",
    "can_be_hot_now",
    "can_be_hot_then",
    "lost_frac",
    "gained_frac",
    "assigned_frac",
    "unknown_frac",
    "fillfactor_now",
    "fillfactor_then",
    "hot_frac_measured",
    "hot_frac_estimated_then",
    "hot_frac_now",
    "hot_frac_then",
    "wal_bytes_per_update_now",
    "wal_bytes_per_update_then",
    "wal_bytes_per_day_now",
    "wal_bytes_per_day_then",
)
_ALIKE_MIN = 4
"""From so many tables on of which the same is to be said it is said once; arbitrary."""


def lines(result: MigrationCheck) -> list[str]:
    """What was found, table by table, then what was not judged; for people."""
    found = [
        f"{alike[0].verdict}: {_names(alike)}. {alike[0].text}"
        + "".join(f" Assumed: {item}." for item in alike[0].assumed)
        for alike in _alike(result.tables, _judged)
    ]
    pairs = [
        (table, work) for table in result.tables for work in table.work if work.effort != "nothing"
    ]
    found += [_worked(alike) for alike in _alike(pairs, lambda pair: _done(pair[1]))]
    found += [
        f"{'note' if note.is_judged else 'not judged'}, line {note.line}: "
        + (f"{note.table}: " if note.table else "")
        + str(note.text)
        for note in result.notes
    ]
    found += [
        f"not understood, line {item.line}: {item.why}: {_short(item.text)}"
        for item in result.not_understood
    ]
    return [printable(line) for line in found]


def _alike(items: Sequence[_T], key: Callable[[_T], Hashable]) -> list[list[_T]]:
    """Items of one key together where they are many, each alone elsewhere; in order."""
    groups: dict[Hashable, list[_T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    made: list[list[_T]] = []
    for group in groups.values():
        made += [group] if len(group) >= _ALIKE_MIN else [[item] for item in group]
    return made


def _judged(table: TableCheck) -> Hashable:
    return table.verdict, table.text, tuple(table.assumed)


def _done(work: Worked) -> Hashable:
    """What is said of work, apart from its table; big tables are named one by one."""
    waits_for = work.waits_for
    other = None if waits_for is None else waits_for.table
    said = (work.line, work.what, work.does, work.lock, work.lock_since, work.beside, work.unless)
    return (work.is_over, work.called, other, *said)


def _names(tables: Sequence[TableCheck]) -> str:
    names = [called(table.schema, table.name) for table in tables]
    if len(names) < _ALIKE_MIN:
        return ", ".join(names)
    return f"{len(names)} tables ({', '.join(names[:3])} and {len(names) - 3} more)"


def _worked(alike: Sequence[tuple[TableCheck, Worked]]) -> str:
    """What takes as long as the table is big, and who waits meanwhile."""
    work = alike[0][1]
    sizes = [each.main_bytes for _, each in alike]
    known = [size for size in sizes if size is not None]
    size = show_bytes(sum(known)) if known else "unknown size"
    if len(alike) > 1:
        size += " together" + (", others of unknown size" if len(known) < len(sizes) else "")
    waits = "nobody can write" if work.stops_writers else "writers go on"
    if work.lock == "ACCESS EXCLUSIVE":
        waits = "nobody can read or write"
    head = "writers wait" if work.is_over else "work"
    text = (
        f"{head}: {_names([table for table, _ in alike])}{_called(work)} ({size}), "
        f"line {work.line}: "
        f"{work.what}: {work.does}{_while(work)} under {_lock(work)}"
    )
    beside = f" ({work.beside})" if work.beside else ""
    text += f"{beside}: {waits} meanwhile"
    return text + (f", unless {work.unless}" if work.unless else "")


def _called(work: Worked) -> str:
    return "" if work.called is None else f", {work.called} by then"


def _lock(work: Worked) -> str:
    since = work.lock_since
    if since is None:
        return str(work.lock)
    return f"the {work.lock} that line {since} took and its transaction keeps"


def _while(work: Worked) -> str:
    other = work.waits_for
    if other is None or work.effort == "wait":
        return ""
    size = other.main_bytes
    shown = "unknown size" if size is None else show_bytes(size)
    return f" while {other.table} ({shown}) is read,"


def summary(result: MigrationCheck) -> str:
    """One sentence."""
    tables = "table loses" if result.findings == 1 else "tables lose"
    count = result.statements
    text = f"{result.findings} {tables} HOT; {count} {'statement' if count == 1 else 'statements'}"
    if result.not_understood:
        text += f", {len(result.not_understood)} of them not understood"
    open_, waiting = result.not_judged, result.waiting
    if open_:
        text += f"; {open_} {'matter' if open_ == 1 else 'matters'} not judged"
    if waiting:
        over = show_bytes(result.rewrite_over_bytes)
        text += f"; writers of {waiting} {'table' if waiting == 1 else 'tables'} over {over} wait"
    return text


def tables(result: MigrationCheck) -> list[Table]:
    """One row a table, with what was and what would be; without columns that no table fills."""
    shown = [alike[0] for alike in _alike(result.tables, _judged) if len(alike) == 1]
    if not shown:
        return []
    columns = [
        column
        for column in _COLUMNS
        if column.key not in _WHERE_KNOWN or any(_cell(t, column.key) is not None for t in shown)
    ]
    shares = {column.key for column in columns if column.style == "share"}
    known = [middle(_cell(table, key)) for table in shown for key in shares]
    digits = share_digits(share for share in known if share is not None)
    return [
        Table(
            title="Tables that the migration changes",
            columns=tuple(
                replace(column, digits=digits) if column.key in shares else column
                for column in columns
            ),
            rows=tuple(tuple(_cell(table, column.key) for column in columns) for table in shown),
            note=(
                "The verdict is by rule: which updates change no column that an index reads. Of "
                "columns that nothing is known of, every value that is assigned is taken to change."
                " Estimated is the measured share, times what the rule leaves of it. "
                "WAL without full-page images."
            ),
        )
    ]


def _cell(table: TableCheck, key: str) -> Any:
    if key == "table":
        return called(table.schema, table.name)
    return _more(table) if key == "day" else getattr(table, key)


def _column(key: str, title: str, group: str | None = None, **facts: Any) -> Column:
    return Column(key=key, title=title, group=group, **facts)


def _text_column(key: str, title: str, *, lead: bool = False) -> Column:
    return Column(key=key, title=title, style="words", lead=lead)


_SHARE: dict[str, Any] = {"unit": "%", "style": "share"}
_BYTES: dict[str, Any] = {"unit": "bytes", "digits": 0}
_COLUMNS = (
    _text_column("table", "table", lead=True),
    _text_column("verdict", "verdict"),
    _column("updates_per_s", "updates", unit="1/s"),
    _column("can_be_hot_now", "now", "can be HOT", **_SHARE),
    _column("can_be_hot_then", "then", "can be HOT", **_SHARE),
    _column("hot_frac_measured", "measured", "HOT share", **_SHARE),
    _column("hot_frac_estimated_then", "then, estimated", "HOT share", **_SHARE),
    _column("hot_frac_now", "now", "HOT in the long run", **_SHARE),
    _column("hot_frac_then", "then", "HOT in the long run", **_SHARE),
    _column("wal_bytes_per_update_now", "now", "WAL per update", **_BYTES),
    _column("wal_bytes_per_update_then", "then", "WAL per update", **_BYTES),
    _column("day", "WAL a day", style="text"),
    _text_column("evidence", "evidence"),
)
_WHERE_KNOWN = frozenset(
    {
        "hot_frac_estimated_then",
        "hot_frac_now",
        "hot_frac_then",
        "wal_bytes_per_update_now",
        "wal_bytes_per_update_then",
        "day",
    }
)


def as_csv(result: MigrationCheck) -> str:
    """One row a table; intervals as their middle."""
    rows = [
        (
            *(
                called(table.schema, table.name),
                table.verdict,
                table.evidence,
                " ".join(map(str, table.lines)),
            ),
            *(middle(getattr(table, name)) for name in _FIGURES),
        )
        for table in result.tables
    ]
    return csv_file.written(("table", "verdict", "evidence", "lines", *_FIGURES), rows)


def _more(table: TableCheck) -> str | None:
    now, then = middle(table.wal_bytes_per_day_now), middle(table.wal_bytes_per_day_then)
    if now is None or then is None:
        return None
    return "as before" if _overlap(table) else show_bytes_more(then - now)


def _overlap(table: TableCheck) -> bool:
    """Whether what is played before and after differs by chance alone."""
    now, then = table.wal_bytes_per_update_now, table.wal_bytes_per_update_then
    if not (isinstance(now, Interval) and isinstance(then, Interval)):
        return bool(now == then)
    return bool(now.low <= then.high and then.low <= now.high)


def _short(text: str) -> str:
    return text if len(text) <= 80 else text[:77] + "..."
