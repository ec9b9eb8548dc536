"""
The page of what the doctor says where all is well.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pgheadroom.units import show_bytes

DAY_S = 86_400.0

_HEAD = """# Where all is well

A healthy server has no finding of severity warning or error; where it has one, it has to be true.
These servers have PostgreSQL's own defaults and autovacuum, and were under a steady load.
The doctor looked twice: over the load (`--for`), and as if nothing else had happened for a month.
The clock is ahead, and autovacuum has not come: `statistics-behind` has what changed last.
A fresh server, one set by `settings`, and pgbench without a month are tests besides.

`make doctor-truth` plays them anew, and fails at a warning or an error that is not explained here.
"""


def page(kept: Mapping[str, Any], explained: Mapping[tuple[str, str, str], str]) -> str:
    """The page's text, of what is in the record."""
    lines = [
        _HEAD,
        "| case | server | minutes | tables | rows changed | autovacuum's runs | warnings, errors "
        "| infos |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    for name, case in kept.items():
        severe = _once(case, is_severe=True)
        infos = _once(case, is_severe=False)
        lines.append(
            f"| [{name}](#{name}) | {case['server']} | {case['minutes']:g} | {case['tables']:,} "
            f"| {case['rows_changed']:,} | {case['autovacuums']:,} | {len(severe)} | {len(infos)} |"
        )
    for name, case in kept.items():
        lines += ["", f"## {name}", ""]
        severe = _once(case, is_severe=True)
        if not severe:
            lines.append("No warning, no error.")
        for found in severe:
            why = explained.get((name, found["rule"], found["object"]), "Not explained.")
            lines.append(
                f"- {found['severity']}, {_rule(found)}, {found['object']}: {found['text']} "
                f"{_logged(found, case)}{why}"
            )
        if infos := _once(case, is_severe=False):
            lines += ["", "Worth knowing:", ""]
            lines += [f"- {_rule(each)}, {each['object']}: {each['text']}" for each in infos]
    return "\n".join([*lines, ""])


def _logged(found: Mapping[str, Any], case: Mapping[str, Any]) -> str:
    """The price beside the load's own log."""
    if "logged_bytes" not in found or not found["amount"]:
        return ""
    foreseen = found["amount"] * case["load_s"] / DAY_S
    return (
        f"Of the load that is at least {show_bytes(foreseen)}; its log has "
        f"{show_bytes(found['logged_bytes'])} of B-trees of this table, without images. "
    )


def _rule(found: Mapping[str, Any]) -> str:
    return f"[`{found['rule']}`](../doctor.md#{found['rule']})"


def _once(case: Mapping[str, Any], *, is_severe: bool) -> list[Mapping[str, Any]]:
    """Each finding once, as it was seen first, if it is so severe in any look."""
    severe = {
        (each["rule"], each["object"]) for each in case["findings"] if each["severity"] != "info"
    }
    found: dict[tuple[str, str], Mapping[str, Any]] = {}
    for each in case["findings"]:
        key = (each["rule"], each["object"])
        if (key in severe) == is_severe and not (is_severe and each["severity"] == "info"):
            found.setdefault(key, each)
    return list(found.values())
