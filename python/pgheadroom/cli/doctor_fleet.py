"""
`pgheadroom doctor` of several servers: one page, the servers as rows.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pgheadroom.cli import output
from pgheadroom.cli.doctor_lines import print_finding
from pgheadroom.cli.options import Format

if TYPE_CHECKING:
    from rich.console import Console

    from pgheadroom.doctor.fleet import FleetDiagnosis


def put(
    found: FleetDiagnosis, form: Format, to: Path | None, html: Path | None, *, everything: bool
) -> None:
    """Write it in one of its forms, and its page."""
    from pgheadroom.report import doctor_fleet as fleet_report
    from pgheadroom.report import text

    output.put(
        form,
        to,
        json=lambda: text.as_json(found.to_json()),
        csv=lambda: fleet_report.as_csv(found),
        markdown=lambda: fleet_report.as_markdown(found),
        show=lambda console, _: _print(found, console, everything=everything),
    )
    if html is not None:
        from pgheadroom.report.html import Shown, render

        shown = Shown(
            heading=fleet_report.heading(found), tables=fleet_report.tables(found), charts=()
        )
        output.write(render([shown], title=found.summary()), html)


def _print(found: FleetDiagnosis, console: Console, *, everything: bool) -> None:
    from pgheadroom.report import doctor_fleet as fleet_report
    from pgheadroom.report import text
    from pgheadroom.report.doctor import SCREEN

    console.print(found.summary(), style="bold", markup=False)
    text.print_tables([fleet_report.servers_table(found)], console)
    every = found.findings()
    shown = every if everything else every[:SCREEN]
    for server, one in shown:
        print_finding(one, console, server)
    if len(every) > len(shown):
        console.print()
        console.print(f"and {len(every) - len(shown)} more: --all shows them", markup=False)
    unseen = list(fleet_report.unseen_lines(found))
    if unseen:
        console.print()
    for line in unseen:
        console.print(f"! {line}", markup=False)
