"""
`pgheadroom advise`: per table why updates miss HOT, what to set, what that changes and costs.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pgheadroom.cli import output
from pgheadroom.cli.advising import advice_of
from pgheadroom.cli.connection import (
    DbnameOption,
    HostOption,
    LogOption,
    PortOption,
    ServiceFileOption,
    StatementsOption,
    UserOption,
    WalFilesOption,
    WalOption,
    parameters_of,
    profile_or_connection,
)
from pgheadroom.cli.history import FromOption, HistoryOption, ToOption, day_of, recalled
from pgheadroom.cli.idle import refuse
from pgheadroom.cli.on_cluster import refuse_of_one_server
from pgheadroom.cli.options import (
    Format,
    FormatOption,
    HtmlOption,
    OutputOption,
    SchedulerOption,
    TablesOption,
)
from pgheadroom.cli.output import check_outputs, said
from pgheadroom.cli.plan_files import write_plan
from pgheadroom.defaults import BUDGET_S
from pgheadroom.errors import InputError, SourceError
from pgheadroom.redaction import command_line
from pgheadroom.units import parse_duration_s

if TYPE_CHECKING:
    from pgheadroom.advise import Advice, Policy
    from pgheadroom.profile import Profile
    from pgheadroom.watch.recalling import Recalled


_TargetsArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[TARGET]...",
        help="A profile that `observe` wrote, the folder of its psql script, or a connection "
        "(without it, as libpq's PG*), which is then observed first; "
        "several are one page.",
    ),
]
_GoalOption = Annotated[
    str, typer.Option(metavar="NAME", help="balanced, wal, size or latency: what to save.")
]
_PriceOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=N",
        help="Instead of the goal's: kept_gb, wal_gb, written_mpages, read_mpages; again for "
        "more. The unit is one GB kept for a day.",
    ),
]
_MaxGrowthOption = Annotated[
    str | None,
    typer.Option(metavar="SHARE", help="The heap may grow by this part: 0.1 or 10%."),
]
_BudgetOption = Annotated[
    str,
    typer.Option(
        metavar="TIME",
        help="Processor time for simulations, all cores together; the tables with most WAL at "
        "stake come first, and what has not ended then is named. 0: by counters and rules alone.",
    ),
]
_LengthOption = Annotated[
    str | None,
    typer.Option("--for", help="How long to observe a connection, e.g. 2m (default: 5m)."),
]
_NoSampleOption = Annotated[
    bool, typer.Option("--no-sample", help="Of a connection: read no rows.")
]
_VerboseOption = Annotated[
    bool, typer.Option("--verbose", "-v", help="Every table in full, not only changes.")
]
_PlanOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--plan",
        help="Write the statements with their undo here, for `apply` (JSON); a name that ends "
        "in .md has them for a change request, in .sql for psql; again for more.",
    ),
]
_RewriteOption = Annotated[
    str | None,
    typer.Option(
        metavar="HOW",
        help="In the plan: none, auto (the best the server has), or repack, pg_squeeze, "
        "pg_repack, vacuum-full (default: none).",
    ),
]


def advise_command(
    targets: _TargetsArgument = None,
    service_file: ServiceFileOption = None,
    scheduler: SchedulerOption = None,
    goal: _GoalOption = "balanced",
    price: _PriceOption = None,
    max_growth: _MaxGrowthOption = None,
    table: TablesOption = None,
    budget: _BudgetOption = f"{BUDGET_S:g}s",
    length: _LengthOption = None,
    no_sample: _NoSampleOption = False,
    log: LogOption = None,
    statements: StatementsOption = None,
    wal: WalOption = False,
    wal_files: WalFilesOption = None,
    history: HistoryOption = None,
    begin: FromOption = None,
    end: ToOption = None,
    host: HostOption = None,
    port: PortOption = None,
    user: UserOption = None,
    dbname: DbnameOption = None,
    verbose: _VerboseOption = False,
    plan: _PlanOption = None,
    rewrite: _RewriteOption = None,
    form: FormatOption = Format.TEXT,
    to: OutputOption = None,
    html: HtmlOption = None,
) -> None:
    """
    Advise a fillfactor for each table, with the curve it is picked from; nothing is changed.

    Several connections or profiles, or a service file, are one page with the servers as rows; exit
    code 3 where one of them does not answer.
    """
    # Help does without the work.
    from pgheadroom.advise import make_policy
    from pgheadroom.plan import check_rewrite

    check_outputs(to, html)
    check_outputs(*(plan or ()))
    _refuse_idle(plan, rewrite, form, verbose=verbose)
    how = rewrite or "none"
    check_rewrite(how)
    policy = make_policy(goal, _prices(price or []), _share(max_growth))
    budget_s = parse_duration_s(budget, may_be_zero=True)
    past = recalled(history, begin, end)
    parameters = parameters_of(host, port, user, dbname)
    if service_file is not None or len(targets or ()) > 1:
        of_one: dict[str, object] = {"--plan": plan, "--log": log, "--statements": statements}
        of_one |= {"--wal": wal, "--wal-files": wal_files, "--history": history}
        wanted = Wanted(policy, budget_s, tuple(table or ()), length, no_sample, verbose, of_one)
        named = (tuple(targets or ()), parameters, service_file, scheduler)
        _advise_several(named, wanted, form, to, html)
        return
    refuse_of_one_server(scheduler)
    profile = _profile(
        next(iter(targets or ()), ""),
        parameters,
        past=past,
        length=length,
        no_sample=no_sample,
        tables=tuple(table or ()),
        logs=tuple(log or ()),
        statements=tuple(statements or ()),
        wal=wal,
        wal_files=tuple(wal_files or ()),
    )
    # What only an advice takes, so that a wrong profile or connection is told at once.
    from pgheadroom.advise import Options
    from pgheadroom.plan import check_plannable, make_plan

    if plan:
        check_plannable(profile)
    options = Options(policy=policy, budget_s=budget_s, tables=tuple(table or ()))
    found = advice_of(profile, options, "advise")
    put_advice(found, form, to, html=html, verbose=verbose, past=past)
    said(html)
    if plan:
        write_plan(make_plan(found, profile, rewrite=how), plan, none="no table is to change")


def _refuse_idle(
    plan: list[Path] | None, rewrite: str | None, form: Format, *, verbose: bool
) -> None:
    """What would do nothing beside the others."""
    if not plan:
        refuse({"--rewrite": rewrite}, where="without a plan", instead="--plan FILE writes one")
    if form in (Format.JSON, Format.CSV):
        refuse(
            {"--verbose": verbose},
            where=f"with --format {form.value}",
            instead="it has every table in full; --format text and markdown have both forms",
        )


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is wanted of each of several."""

    policy: Policy
    budget_s: float
    tables: tuple[str, ...]
    length: str | None
    no_sample: bool
    verbose: bool
    of_one: Mapping[str, object]


def _advise_several(
    named: tuple[tuple[str, ...], dict[str, str], Path | None, str | None],
    wanted: Wanted,
    form: Format,
    to: Path | None,
    html: Path | None,
) -> None:
    from pgheadroom.advise import Options
    from pgheadroom.cli import advise_fleet, observe, observe_fleet

    observe_fleet.refuse_of_one(wanted.of_one, "an advise of that one")
    found = advise_fleet.advised(
        observe_fleet.Several(*named),
        Options(policy=wanted.policy, budget_s=wanted.budget_s, tables=wanted.tables),
        length=wanted.length or observe.LENGTH,
        no_sample=wanted.no_sample,
    )
    advise_fleet.put(found, form, to, html, verbose=wanted.verbose)
    said(html)
    if found.cut_off:
        raise typer.Exit(SourceError.exit_code)


def _profile(
    target: str,
    parameters: dict[str, str],
    *,
    past: Recalled | None,
    length: str | None,
    no_sample: bool,
    tables: tuple[str, ...],
    logs: tuple[Path, ...],
    statements: tuple[Path, ...],
    wal: bool,
    wal_files: tuple[Path, ...],
) -> Profile:
    """The profile that a target names, or a connection's, observed now."""
    from pgheadroom.cli import observe
    from pgheadroom.profile import read_profile

    path = profile_or_connection(target, parameters)
    asked: dict[str, object] = {"--for": length, "--no-sample": no_sample}
    of_log = {"--wal": wal, "--wal-files": wal_files}
    if past is not None:
        refuse(
            {"--for": length, "--log": logs, **of_log},
            where="with --history, whose interval is over",
            instead="without it, an interval is observed now",
        )
    if path is not None:
        refuse(
            {"--history": past},
            where=f"here, for {target} is observed already",
            instead="it belongs to a connection, whose tables are read as they are now",
        )
    if path is not None and not path.is_dir():
        refuse(
            {**asked, "--log": logs, "--statements": statements, **of_log},
            where=f"here, for {target} is a profile",
            instead="it belongs to `pgheadroom observe`, which made it",
        )
        return read_profile(path)
    if path is not None:
        refuse(
            {**asked, **of_log},
            where=f"here, for {target} is what the psql script wrote",
            instead="give it to `pgheadroom observe --print-sql`, which prints the script",
        )
    profile = observe.observed(
        target if path is None else "",
        parameters,
        source=path,
        length=length or observe.LENGTH,
        tables=tables,
        mask=False,
        no_sample=no_sample,
        logs=logs,
        statements=statements,
        wal=wal,
        wal_files=wal_files,
        past=past,
    )
    observe.summarize(profile)
    return profile


def put_advice(
    found: Advice,
    form: Format,
    to: Path | None,
    *,
    html: Path | None = None,
    verbose: bool = False,
    past: Recalled | None = None,
) -> None:
    """Write the advice and its page; what shows it is loaded when there is something to show."""
    from pgheadroom.report import text
    from pgheadroom.report.advice import csv as advice_csv
    from pgheadroom.report.advice import text as advice_text

    if html is not None:
        from pgheadroom.report.advice import html as advice_html

        page = advice_html.render(found, command=command_line(sys.argv[1:]), day=day_of(past))
        output.write(page, html)
    output.put(
        form,
        to,
        json=lambda: text.as_json(found.to_json()),
        csv=lambda: advice_csv.as_csv(found),
        markdown=lambda: advice_text.as_markdown(found, verbose=verbose),
        show=lambda console, _: advice_text.print_advice(found, console, verbose=verbose),
    )


def _prices(given: list[str]) -> dict[str, float]:
    found = {}
    for item in given:
        name, _, number = item.partition("=")
        try:
            found[name] = float(number)
        except ValueError:
            raise InputError(f"--price {item}: expected NAME=NUMBER, such as wal_gb=5") from None
    return found


def _share(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        return float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        raise InputError(f"--max-growth {text}: expected a share such as 0.1 or 10%") from None
