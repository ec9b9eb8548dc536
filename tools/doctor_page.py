"""
The page of the doctor's rules, made of the rules and of the catalogue's rows.

    python tools/doctor_page.py            writes docs/doctor.md
    python tools/doctor_page.py --check    says whether it is current
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pgheadroom.defaults import JUDGED_FROM_S, RATES_FROM_S
from pgheadroom.doctor import Rule, all_rules
from pgheadroom.doctor.choosing import WORSE_BY
from pgheadroom.units import show_duration

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "doctor.md"
BOOK = Path(__file__).with_name("doctor_book.toml")

_HEAD = Path(__file__).with_name("doctor_head.txt")


def page() -> str:
    """The page's text."""
    rules = all_rules()
    head = _HEAD.read_text(encoding="utf-8").format(
        rates_from=show_duration(RATES_FROM_S),
        judged_from=show_duration(JUDGED_FROM_S),
        worse_by=f"{WORSE_BY:g}",
    )
    lines = [head, "## Rules", "", "| rule | question | price |", "|---|---|---|"]
    lines += [f"| {_link(rule)} | {rule.question} | {_cell(rule.price)} |" for rule in rules]
    for rule in rules:
        lines += _section(rule)
    lines += ["", "## The catalogue's rows", ""]
    lines += [
        "The checks of a book on PostgreSQL's performance were catalogued, and corrected for "
        "today's versions.",
        "These are the rows that are rated must.",
        "Where a rule answers one, it is named; else it is said what does instead, or that it is "
        "not yet there.",
        "",
        "| row | what | rule, or why none |",
        "|---|---|---|",
    ]
    lines += [
        f"| {row} | {said['what']} | {_answer(row, said, rules)} |" for row, said in book().items()
    ]
    return "\n".join([*lines, ""])


def book() -> Mapping[str, Mapping[str, Any]]:
    """The catalogue's rows, in its order."""
    found: Mapping[str, Mapping[str, Any]] = tomllib.loads(BOOK.read_text(encoding="utf-8"))["rows"]
    return found


def _answer(row: str, said: Mapping[str, Any], rules: tuple[Rule, ...]) -> str:
    named = [_link(rule) for rule in rules if row in rule.book]
    return ", ".join(named) if named else str(said["why"])


def _link(rule: Rule) -> str:
    return f"[`{rule.id}`](#{rule.id})"


def _section(rule: Rule) -> list[str]:
    versions = sorted(rule.sql)
    since = "" if versions[0] == 15 else f" From PostgreSQL {versions[0]} on."
    return [
        "",
        f"### {rule.id}",
        "",
        f"{rule.question}{since}",
        "",
        f"- Finding: {rule.threshold}",
        f"- Severity: {rule.severity}",
        f"- Price: {rule.price}",
        f"- Remedy: {rule.remedy}",
        f"- Blind: {rule.blind}",
        f"- [PostgreSQL's manual]({rule.link})",
    ]


def _cell(text: str) -> str:
    return "none" if text.startswith("no price") else text.partition(";")[0].rstrip(".")


def main() -> int:
    """Write it, or say that it is not current."""
    text = page()
    if "--check" in sys.argv:
        return int(PAGE.read_text(encoding="utf-8") != text)
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
