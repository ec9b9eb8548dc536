"""
`pgheadroom doctor`: what an expert looks for on a server, each finding with its price.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pgheadroom.cli import doctor_fleet, output
from pgheadroom.cli.connection import (
    DbnameOption,
    HostOption,
    PortOption,
    ServersArgument,
    ServiceFileOption,
    UserOption,
    parameters_of,
)
from pgheadroom.cli.doctor_lines import print_finding
from pgheadroom.cli.doctor_plan import (
    PlanOption,
    RewriteToolOption,
    SettingsOption,
    StandbyOption,
    asked_of,
    planned,
)
from pgheadroom.cli.history import FromOption, HistoryOption, ToOption, day_of, recalled
from pgheadroom.cli.idle import refuse
from pgheadroom.cli.on_cluster import executor_at, refuse_of_one_server
from pgheadroom.cli.options import (
    Format,
    FormatOption,
    HtmlOption,
    OutputOption,
    SchedulerOption,
)
from pgheadroom.errors import InputError, SourceError
from pgheadroom.quoting import printable
from pgheadroom.units import parse_duration_s

if TYPE_CHECKING:
    from rich.console import Console

    from pgheadroom.doctor import Diagnosis
    from pgheadroom.doctor.fleet import FleetDiagnosis
    from pgheadroom.progress import Say
    from pgheadroom.watch.recalling import Recalled

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
    targets: ServersArgument = None,
    service_file: ServiceFileOption = None,
    scheduler: SchedulerOption = None,
    length: _LengthOption = None,
    explain: _ExplainOption = None,
    fail_on: _FailOption = None,
    baseline: _BaselineOption = None,
    accept: _AcceptOption = None,
    until: _UntilOption = None,
    history: HistoryOption = None,
    begin: FromOption = None,
    end: ToOption = None,
    everything: _AllOption = False,
    plan: PlanOption = None,
    rewrite: RewriteToolOption = None,
    settings: SettingsOption = False,
    standby: StandbyOption = None,
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

    Several connections, or a service file, are one page with the servers as rows. Exit code 0,
    whatever is found; with --fail-on 1 from that severity on; 3 where a rule was cut off (a
    timeout, a lock, the end of the connection, Ctrl-C) or a server of several did not answer: what
    was found is printed. With --plan the remedies whose effect can be measured become steps of a
    plan, which `apply` carries out and `verify` holds against what they claim.
    """
    given: dict[str, object] = {"--for": length, "--fail-on": fail_on, "--baseline": baseline}
    given |= {"--accept": accept, "--until": until, "--html": html, "--service-file": service_file}
    given |= {"--history": history, "--from": begin, "--to": end, "--scheduler": scheduler}
    given |= {"--plan": plan, "--rewrite": rewrite, "--settings": settings, "--standby": standby}
    if explain is not None:
        refuse(
            given,
            where="with --explain, which looks at no database",
            instead="give it to the doctor that looks",
        )
        _explain(explain, to)
        return
    wish = _wish(accept, until)
    output.check_outputs(to, html, *(plan or ()))
    interval_s = None if length is None else parse_duration_s(length)
    asked = asked_of(plan, rewrite, settings=settings, standbys=standby, interval_s=interval_s)
    past = _past(history, begin, end, length, plan)
    parameters = parameters_of(host, port, user, dbname)
    everything = everything or to is not None
    found: Diagnosis | FleetDiagnosis
    if service_file is not None or len(targets or ()) > 1:
        refuse(
            {"--baseline": baseline, "--history": history, "--plan": plan},
            where="with several servers, for it is of one database",
            instead="give it to a doctor of that one",
        )
        found = _fleet(targets or (), parameters, service_file, interval_s, wish, scheduler)
        doctor_fleet.put(found, form, to, html, everything=everything)
    else:
        refuse_of_one_server(scheduler)
        target = next(iter(targets or ()), "")
        then = _setting_aside(baseline, wish)
        if asked is None:
            found = _examined(target, parameters, interval_s, then, past)
        else:
            found = planned(target, parameters, asked, then, _say)
        _put(found, form, to, everything=everything)
        if html is not None:
            output.write(_page(found, past), html)
    if html is not None:
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


def _fleet(
    targets: Sequence[str],
    parameters: dict[str, str],
    service_file: Path | None,
    interval_s: float | None,
    wish: Acceptance | None,
    scheduler: str | None,
) -> FleetDiagnosis:
    from pgheadroom.doctor.fleet import examine_fleet
    from pgheadroom.fleet import asked_of, services_from

    def saying(server: str) -> Say:
        return lambda words: _say(f"{server}: {words}")

    servers = asked_of(targets, parameters, service_file)
    with services_from(service_file), executor_at(scheduler) as executor:
        return examine_fleet(
            servers,
            interval_s=interval_s,
            say=saying,
            then=lambda found: _accepted(found, wish),
            executor=executor,
        )


def _accepted(found: Diagnosis, wish: Acceptance | None) -> Diagnosis:
    from pgheadroom.doctor import accepting

    if wish is None:
        return found
    today = date.fromisoformat(found.examined.at[:10])
    return accepting(found, wish.names, wish.until, today)


def _past(
    history: Path | None,
    begin: str | None,
    end: str | None,
    length: str | None,
    plan: list[Path] | None,
) -> Recalled | None:
    """An interval that is over, which is not watched again, and of which there is no plan."""
    past = recalled(history, begin, end)
    if past is not None:
        refuse(
            {"--for": length},
            where="with --history, whose interval is over",
            instead="without it, an interval is watched now",
        )
        refuse(
            {"--plan": plan},
            where="with --history, for a plan is of what is now",
            instead="--for watches an interval",
        )
    return past


def _setting_aside(
    baseline: Path | None, wish: Acceptance | None
) -> Callable[[Diagnosis], Diagnosis]:
    """What makes of all findings those that count; the baseline is read before anybody looks."""
    from pgheadroom.doctor import beside_baseline, read_diagnosis

    earlier = None if baseline is None else read_diagnosis(baseline)

    def counting(looked: Diagnosis) -> Diagnosis:
        found = _accepted(looked, wish)
        return found if earlier is None else beside_baseline(found, earlier)

    return counting


def _examined(
    target: str,
    parameters: dict[str, str],
    interval_s: float | None,
    then: Callable[[Diagnosis], Diagnosis],
    past: Recalled | None,
) -> Diagnosis:
    from pgheadroom.doctor import examine_live

    looked = examine_live(
        target,
        parameters,
        interval_s=interval_s,
        past=None if past is None else past.for_doctor,
        say=_say,
    )
    return then(looked)


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
    from pgheadroom.report import doctor as doctor_report

    console.print(doctor_report.summary(found), style="bold", markup=False)
    for line in doctor_report.circumstances(found):
        console.print(f"~ {line}", markup=False)
    shown = found.findings if everything else doctor_report.first_screen(found)
    for one in shown:
        print_finding(one, console)
    more = len(found.findings) - len(shown)
    if more:
        console.print()
        console.print(f"and {more} more: --all shows them", markup=False)
    blind = list(doctor_report.blind_lines(found))
    if blind:
        console.print()
    for line in blind:
        console.print(f"! {line}", markup=False)


def _page(found: Diagnosis, past: Recalled | None) -> str:
    from pgheadroom.report import doctor as doctor_report
    from pgheadroom.report.html import Shown, render

    day = day_of(past)
    shown = Shown(
        heading=doctor_report.heading(found),
        tables=doctor_report.tables(found),
        charts=() if day is None else (day,),
    )
    return render([shown], title=found.summary())
