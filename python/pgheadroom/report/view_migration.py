"""
Tables of a `migration_check` result: what becomes of HOT, and what could not be judged.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from typing import Any

from pgheadroom.report.reading import printable
from pgheadroom.report.table import Column, Table
from pgheadroom.report.text import csv_text
from pgheadroom.units import show_bytes

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
    "hot_frac_now",
    "hot_frac_then",
    "wal_bytes_per_update_now",
    "wal_bytes_per_update_then",
    "wal_bytes_per_day_now",
    "wal_bytes_per_day_then",
)
_EFFORTS = {"rewrite": "rewrites it", "scan": "reads all of it", "build": "builds an index"}


def lines(result: Mapping[str, Any]) -> list[str]:
    """What was found, table by table, then what was not judged; for people."""
    found = [
        f"{table['verdict']}: {_name(table)}. {table['text']}"
        + "".join(f" Assumed: {item}." for item in table["assumed"])
        for table in result["tables"]
    ]
    found += [
        _worked(table, work)
        for table in result["tables"]
        for work in table["work"]
        if work["effort"] != "nothing"
    ]
    found += [
        f"{'note' if note['is_judged'] else 'not judged'}, line {note['line']}: "
        + (f"{note['table']}: " if note["table"] else "")
        + str(note["text"])
        for note in result["notes"]
    ]
    found += [
        f"not understood, line {item['line']}: {item['why']}: {_short(item['text'])}"
        for item in result["not_understood"]
    ]
    return [printable(line) for line in found]


def _worked(table: Mapping[str, Any], work: Mapping[str, Any]) -> str:
    """What takes as long as the table is big, and who waits meanwhile."""
    size = "unknown size" if work["main_bytes"] is None else show_bytes(work["main_bytes"])
    waits = "nobody can write" if work["stops_writers"] else "writers go on"
    if work["lock"] == "ACCESS EXCLUSIVE":
        waits = "nobody can read or write"
    head = "writers wait" if work["is_over"] else "work"
    text = (
        f"{head}: {_name(table)} ({size}), line {work['line']}: {work['what']}: "
        f"{_EFFORTS[work['effort']]} under {work['lock']}: {waits} meanwhile"
    )
    return text + (f", unless {work['unless']}" if work["unless"] else "")


def summary(result: Mapping[str, Any]) -> str:
    """One sentence."""
    tables = "table loses" if result["findings"] == 1 else "tables lose"
    text = f"{result['findings']} {tables} HOT; {result['statements']} statements"
    if result["not_understood"]:
        text += f", {len(result['not_understood'])} of them not understood"
    open_ = sum(table["verdict"] == "not judged" for table in result["tables"])
    open_ += sum(not note["is_judged"] for note in result["notes"])
    if open_:
        text += f"; {open_} {'matter' if open_ == 1 else 'matters'} not judged"
    waiting = sum(any(work["is_over"] for work in table["work"]) for table in result["tables"])
    if waiting:
        over = show_bytes(result["rewrite_over_bytes"])
        text += f"; writers of {waiting} {'table' if waiting == 1 else 'tables'} over {over} wait"
    return text


def tables(result: Mapping[str, Any]) -> list[Table]:
    """One row a table, with what was and what would be."""
    if not result["tables"]:
        return []
    return [
        Table(
            title="Tables that the migration changes",
            columns=(
                Column(key="table", title="table", align="left", style="text", lead=True),
                Column(key="verdict", title="verdict", align="left", style="text"),
                Column(key="updates_per_s", title="updates", unit="1/s"),
                Column(
                    key="can_be_hot_now", title="now", unit="%", style="share", group="can be HOT"
                ),
                Column(
                    key="can_be_hot_then", title="then", unit="%", style="share", group="can be HOT"
                ),
                Column(
                    key="hot_frac_measured",
                    title="measured",
                    unit="%",
                    style="share",
                    group="HOT share",
                ),
                Column(
                    key="hot_frac_then", title="then", unit="%", style="share", group="HOT share"
                ),
                Column(key="wal_now", title="now", unit="bytes", digits=0, group="WAL per update"),
                Column(
                    key="wal_then", title="then", unit="bytes", digits=0, group="WAL per update"
                ),
                Column(key="day", title="WAL a day", unit="MB", digits=1, signed=True),
                Column(key="evidence", title="evidence", align="left", style="text"),
            ),
            rows=tuple(
                (
                    _name(table),
                    table["verdict"],
                    table["updates_per_s"],
                    table["can_be_hot_now"],
                    table["can_be_hot_then"],
                    table["hot_frac_measured"],
                    table["hot_frac_then"],
                    table["wal_bytes_per_update_now"],
                    table["wal_bytes_per_update_then"],
                    _more(table),
                    table["evidence"],
                )
                for table in result["tables"]
            ),
            note=(
                "The verdict is by rule: which updates change no column that an index reads. Of "
                "columns that nothing is known of, every value that is assigned is taken to change."
                " WAL without full-page images."
            ),
        )
    ]


def as_csv(result: Mapping[str, Any]) -> str:
    """One row a table; intervals as their middle."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("table", "verdict", "evidence", "lines", *_FIGURES))
    for table in result["tables"]:
        figures = (_middle(table[name]) for name in _FIGURES)
        places = " ".join(map(str, table["lines"]))
        writer.writerow(
            (csv_text(_name(table)), table["verdict"], table["evidence"], places, *figures)
        )
    return out.getvalue()


def _name(table: Mapping[str, Any]) -> str:
    name, schema = str(table["name"]), str(table["schema"])
    return name if schema == "public" else f"{schema}.{name}"


def _middle(value: Any) -> Any:
    return value["mid"] if isinstance(value, Mapping) else value


def _more(table: Mapping[str, Any]) -> float | None:
    now, then = (_middle(table[f"wal_bytes_per_day_{when}"]) for when in ("now", "then"))
    return None if now is None or then is None else (then - now) / 1e6


def _short(text: str) -> str:
    return text if len(text) <= 80 else text[:77] + "..."
