"""
A finding in a terminal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pgheadroom.quoting import printable

if TYPE_CHECKING:
    from rich.console import Console

    from pgheadroom.doctor import Finding

_STYLES = {"info": "bold", "warning": "bold yellow", "error": "bold red"}


def print_finding(found: Finding, console: Console, server: str | None = None) -> None:
    """What it is, its price, what to do; with its server, where there are several."""
    from rich.padding import Padding
    from rich.text import Text

    from pgheadroom.report import doctor as doctor_report

    console.print()
    where = "" if server is None else f"{server}: "
    head = printable(f"{found.severity}: {where}{found.rule}: {found.object}")
    console.print(head, style=_STYLES[found.severity], markup=False)
    for line in doctor_report.finding_lines(found):
        if doctor_report.is_statement(line):
            console.print(f"  {line}", markup=False, highlight=False, soft_wrap=True)
        else:
            console.print(Padding(Text(line), (0, 0, 0, 2)))
