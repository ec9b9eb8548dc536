"""
`pgheadroom doctor`: what an expert looks for on a server, each finding with its price.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pgheadroom.cli import output
from pgheadroom.cli.connection import (
    DbnameOption,
    HostOption,
    PortOption,
    UserOption,
    parameters_of,
)
from pgheadroom.cli.idle import refuse
from pgheadroom.cli.options import Format, FormatOption, HtmlOption, OutputOption
from pgheadroom.errors import InputError, SourceError
from pgheadroom.quoting import printable
from pgheadroom.units import parse_duration_s

if TYPE_CHECKING:
    from rich.console import Console

    from pgheadroom.doctor import Diagnosis

FINDINGS = 1


class FailOn(StrEnum):
    """From which severity on findings fail a check."""

    WARNING = "warning"
    ERROR = "error"


_LengthOption = Annotated[
    str | None,
    typer.Option(
        "--for",
        help="Read counters twice, so far apart, and tell rates of that interval, e.g. 60s "
        "(default: what the statistics have since their start).",
    ),
]
_ExplainOption = Annotated[
    str | None,
    typer.Option("--explain", help="Print what a rule asks, when it is a finding, and why."),
]
_FailOption = Annotated[
    FailOn | None,
    typer.Option("--fail-on", help="Exit code 1 from this severity on: warning or error."),
]
_BaselineOption = Annotated[
    Path | None,
    typer.Option(
        "--baseline", help="What `doctor -f json` wrote before: only what is new or worse."
    ),
]
_AcceptOption = Annotated[
    list[str] | None,
    typer.Option("--accept", help="Set this finding aside until --until; again for more."),
]
_UntilOption = Annotated[
    str | None, typer.Option("--until", help="The last day of what is accepted, e.g. 2027-03-31.")
]
_AllOption = Annotated[
    bool, typer.Option("--all", help="All findings, not one screen; what each does not see.")
]


def doctor_command(
    target: Annotated[str, typer.Argument(help="A connection; without it, as libpq's PG*.")] = "",
    length: _LengthOption = None,
    explain: _ExplainOption = None,
    fail_on: _FailOption = None,
    baseline: _BaselineOption = None,
    accept: _AcceptOption = None,
    until: _UntilOption = None,
    everything: _AllOption = False,
    form: FormatOption = Format.TEXT,
    to: OutputOption = None,
    html: HtmlOption = None,
    host: HostOption = None,
    port: PortOption = None,
    user: UserOption = None,
    dbname: DbnameOption = None,
) -> None:
    """
    Look for what an expert looks for, only reading; each finding with its price and its remedy.

    Exit code 0, whatever is found; with --fail-on 1 from that severity on; 3 where a rule was cut
    off (a timeout, a lock, the end of the connection): what was found until then is printed.
    """
    given = {"--for": length, "--fail-on": fail_on, "--baseline": baseline, "--accept": accept}
    given |= {"--until": until, "--html": html}
    if explain is not None:
        refuse(
            given,
            where="with --explain, which looks at no database",
            instead="give it to the doctor that looks",
        )
        _explain(explain, to)
        return
    wish = _wish(accept, until)
    output.check_outputs(to, html)
    interval_s = None if length is None else parse_duration_s(length)
    found = _examined(target, parameters_of(host, port, user, dbname), interval_s, baseline, wish)
    _put(found, form, to, everything=everything or to is not None)
    if html is not None:
        output.write(_page(found), html)
        output.said(html)
    if found.cut_off:
        raise typer.Exit(SourceError.exit_code)
    if fail_on is not None and found.at_least(fail_on.value):
        raise typer.Exit(FINDINGS)


@dataclass(frozen=True, slots=True)
class Acceptance:
    """Which findings are accepted, and until when."""

    names: tuple[str, ...]
    until: date


def _wish(accept: list[str] | None, until: str | None) -> Acceptance | None:
    if accept is None and until is None:
        return None
    if accept is None or until is None:
        raise InputError("--accept and --until belong together: expected both")
    try:
        last = date.fromisoformat(until)
    except ValueError:
        raise InputError(f"--until {until!r}: expected a day such as 2027-03-31") from None
    return Acceptance(tuple(accept), last)


def _explain(name: str, to: Path | None) -> None:
    from pgheadroom.doctor import rule_named
    from pgheadroom.report import doctor as doctor_report

    output.write("\n".join(doctor_report.explained(rule_named(name))) + "\n", to)


def _examined(
    target: str,
    parameters: dict[str, str],
    interval_s: float | None,
    baseline: Path | None,
    wish: Acceptance | None,
) -> Diagnosis:
    from pgheadroom.doctor import accepting, beside_baseline, examine_live, read_diagnosis

    earlier = None if baseline is None else read_diagnosis(baseline)
    found = examine_live(target, parameters, interval_s=interval_s, say=_say)
    if wish is not None:
        today = date.fromisoformat(found.examined.at[:10])
        found = accepting(found, wish.names, wish.until, today)
    return found if earlier is None else beside_baseline(found, earlier)


def _say(text: str) -> None:
    sys.stderr.write(f"doctor: {printable(text)}\n")
    sys.stderr.flush()


def _put(found: Diagnosis, form: Format, to: Path | None, *, everything: bool) -> None:
    from pgheadroom.report import doctor as doctor_report
    from pgheadroom.report import text

    output.put(
        form,
        to,
        json=lambda: text.as_json(found.to_json()),
        csv=lambda: doctor_report.as_csv(found),
        markdown=lambda: doctor_report.as_markdown(found),
        show=lambda console, _: _print(found, console, everything=everything),
    )


def _print(found: Diagnosis, console: Console, *, everything: bool) -> None:
    from rich.padding import Padding
    from rich.text import Text

    from pgheadroom.report import doctor as doctor_report

    console.print(doctor_report.summary(found), style="bold", markup=False)
    for line in doctor_report.circumstances(found):
        console.print(f"~ {line}", markup=False)
    shown = found.findings if everything else doctor_report.first_screen(found)
    for one in shown:
        console.print()
        head = printable(f"{one.severity}: {one.rule}: {one.object}")
        console.print(head, style=_STYLES[one.severity], markup=False)
        for line in doctor_report.finding_lines(one):
            if doctor_report.is_statement(line):
                console.print(f"  {line}", markup=False, highlight=False, soft_wrap=True)
            else:
                console.print(Padding(Text(line), (0, 0, 0, 2)))
    more = len(found.findings) - len(shown)
    if more:
        console.print()
        console.print(f"and {more} more: --all shows them", markup=False)
    blind = list(doctor_report.blind_lines(found))
    if blind:
        console.print()
    for line in blind:
        console.print(f"! {line}", markup=False)


_STYLES = {"info": "bold", "warning": "bold yellow", "error": "bold red"}


def _page(found: Diagnosis) -> str:
    from pgheadroom.report import doctor as doctor_report
    from pgheadroom.report.html import Shown, render

    shown = Shown(
        heading=doctor_report.heading(found), tables=doctor_report.tables(found), charts=()
    )
    return render([shown], title=found.summary())
