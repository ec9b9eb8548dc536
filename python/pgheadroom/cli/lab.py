"""
`pgheadroom lab`: experiments on real servers.
"""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from pgheadroom.cli import output
from pgheadroom.cli.lab_output import print_answers, put_html, put_results, put_site
from pgheadroom.cli.options import Format, FormatOption, OutputOption
from pgheadroom.cli.site_folder import check_replaceable
from pgheadroom.errors import InputError
from pgheadroom.files import write_atomically
from pgheadroom.input_file import exists, read_text
from pgheadroom.lab.compare import compare_records
from pgheadroom.lab.design import Factor, Request, parse_settings
from pgheadroom.lab.experiment import Experiment
from pgheadroom.lab.experiments import ALL, get
from pgheadroom.lab.merge import merge
from pgheadroom.lab.record import Record
from pgheadroom.lab.run import RECORDS_FOLDER, find_record, summarise_record
from pgheadroom.lab.run import run as run_experiment
from pgheadroom.redaction import command_line
from pgheadroom.servers import at_hand, is_connection
from pgheadroom.servers.conninfo import without_password
from pgheadroom.units import parse_duration_s, show_duration

_SCRIPT_BYTES_MAX = 16 * 1024**2  # the record holds it; arbitrary

app = typer.Typer(
    help="Experiments on real PostgreSQL servers: run, report, compare, merge.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

HtmlOption = Annotated[Path | None, typer.Option("--html", help="Write the HTML page here too.")]


@app.command("list")
def list_experiments(
    name: Annotated[
        str | None, typer.Argument(help="Show this experiment's factors and options.")
    ] = None,
) -> None:
    """Show the experiments, their questions and the servers at hand."""
    console = output.Terminal(highlight=False)
    for experiment in ALL if name is None else (get(name),):
        _describe(console, experiment, whole=name is not None)
    if name is None:
        found = ", ".join(
            f"{programs.version} ({programs.origin}: {programs.bin_dir})" for programs in at_hand()
        )
        console.print(f"Servers at hand: {found or 'none'}", markup=False, soft_wrap=True)


def _describe(console: Console, experiment: Experiment, *, whole: bool) -> None:
    console.print(f"{experiment.name}: {experiment.title}", style="bold", markup=False)
    console.print(f"  Question: {experiment.question}", markup=False)
    console.print(f"  Source: {experiment.source}", markup=False)
    console.print(f"  Time: {experiment.time_needed}", markup=False)
    measures = ", ".join(measure.name for measure in experiment.measures)
    console.print(f"  Measures: {measures}", markup=False)
    names = ", ".join(factor.name for factor in experiment.factors)
    console.print(f"  Factors: {names or experiment.open_factors}", markup=False)
    if whole:
        console.print(
            f"  --scale: {experiment.scale_meaning}; default {experiment.scale_default}",
            markup=False,
        )
        for title, factors in (("Factors", experiment.factors), ("Options", experiment.options)):
            console.print(f"  {title} (--set NAME=VALUE{_many(title)}):", markup=False)
            for factor in factors:
                console.print(f"    {_factor_line(factor)}", markup=False)
            if title == "Factors" and experiment.open_factors:
                console.print(f"    {experiment.open_factors}", markup=False)
    console.print()


def _many(title: str) -> str:
    return ",VALUE... or LOW..HIGH:STEP" if title == "Factors" else ""


def _factor_line(factor: Factor) -> str:
    default = (
        "only when set"
        if factor.default is None
        else "default " + ",".join(str(level) for level in factor.default)
    )
    return f"{factor.name}: {factor.description} ({factor.expected()}; {default})"


@app.command("run")
def run(
    name: Annotated[str, typer.Argument(help="The experiment; `lab list` shows them.")],
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUES", help="Levels of a factor, or an option."),
    ] = None,
    scale: Annotated[int | None, typer.Option(min=1, max=100_000, help="Size of the data.")] = None,
    repetitions: Annotated[
        int | None, typer.Option(min=1, max=10_000, help="Repetitions of each cell.")
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(
            help="Time to spend, e.g. 30m: no block begins after it, and what the planned "
            "repetitions leave goes to the widest intervals, until all are answered."
        ),
    ] = None,
    server: Annotated[
        str,
        typer.Option(
            help="A version (18, 16.14), a folder with server programs, or a connection; "
            "on a connection everything happens in a database of its own."
        ),
    ] = "18",
    io: Annotated[
        str | None, typer.Option(help="As --set io=..., for experiments that have it.")
    ] = None,
    script: Annotated[
        str | None, typer.Option(help="As --set script=..., for experiments that have it.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, max=2**31 - 1, help="Seed of order and draws.")] = 1,
    record: Annotated[
        Path | None,
        typer.Option(
            help=f"Record folder; default: a new one in {RECORDS_FOLDER}, or the unfinished one "
            "of the same request, which is then gone on with."
        ),
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Do not go on with a record.")] = False,
    form: FormatOption = Format.TEXT,
    to: OutputOption = None,
    html: HtmlOption = None,
) -> None:
    """Run an experiment; stopped in whatever way, the same command goes on where it stopped."""
    experiment = get(name)
    for path in (to, html):
        if path is not None:
            output.check_writable(path)
    given = list(settings or [])
    given += [f"{key}={value}" for key, value in (("io", io), ("script", script)) if value]
    request = make_request(experiment, given, scale, repetitions, seed, server)
    folder = record or find_record(request, parent=RECORDS_FOLDER, fresh=fresh)
    run_into(
        request,
        folder,
        server=server,
        budget_s=None if budget is None else parse_duration_s(budget),
    )
    finished = Record.open(folder)
    put_html([finished], folder / "report.html", title=experiment.title)
    if html is not None:
        put_html([finished], html, title=experiment.title)
    put_results([finished.read_result()], form, to)
    sys.stderr.write(f"Record: {folder}\nReport: {(html or folder / 'report.html').absolute()}\n")


def make_request(
    experiment: Experiment,
    settings: list[str],
    scale: int | None,
    repetitions: int | None,
    seed: int,
    server: str,
) -> Request:
    """A request out of what the command line says, with the experiment's defaults."""
    names = [setting.partition("=")[0] for setting in settings]
    levels, options = parse_settings(
        settings,
        experiment.factors_for(names),
        experiment.options,
        name=experiment.name,
        open_factors=experiment.open_factors,
    )
    # The record holds the files themselves: one may change before a run goes on. One that cannot
    # be read is named by the experiment's own check.
    for name in ("script", "schema", "profile"):
        path = Path(str(options.get(name, "")))
        if name in options and exists(path):
            with contextlib.suppress(InputError):
                options[f"{name}_text"] = read_text(
                    path, bytes_max=_SCRIPT_BYTES_MAX, expected=f"a {name}"
                )
    chosen_scale = experiment.scale_default if scale is None else scale
    return Request(
        experiment=experiment.name,
        server=without_password(server) if is_connection(server) else server,
        scale=chosen_scale,
        seed=seed,
        repetitions=repetitions or experiment.repetitions_default(chosen_scale),
        levels=levels,
        options=options,
    )


def run_into(request: Request, folder: Path, *, server: str, budget_s: float | None = None) -> None:
    """Run a request into a record folder with progress on standard error."""
    experiment = get(request.experiment)
    trials = len(experiment.trials(request))
    estimate_s = trials * experiment.trial_s(request)
    going_on = (folder / "request.json").exists()
    sys.stderr.write(
        f"{experiment.name} on PostgreSQL {request.server}: {len(request.cells())} cells, "
        f"{trials} trials, about {show_duration(estimate_s)}"
        f"{'; going on with' if going_on else '; record'} {folder}\n"
    )
    arguments = [argument.replace(server, request.server) for argument in sys.argv[1:]]
    try:
        with output.progress(experiment.name) as report:
            run_experiment(
                request,
                folder,
                server=server,
                command=command_line(arguments),
                report=report,
                budget_s=budget_s,
            )
    except (KeyboardInterrupt, SystemExit):
        sys.stderr.write("Stopped. The same command goes on where it stopped.\n")
        raise


@app.command("report")
def report(
    records: Annotated[list[Path], typer.Argument(help="Record folders.")],
    form: FormatOption = Format.TEXT,
    to: OutputOption = None,
    html: HtmlOption = None,
    site: Annotated[
        Path | None,
        typer.Option(
            "--site",
            metavar="FOLDER",
            help="Write a static site here instead: an overview with the answers, a page for each "
            "record, the raw data. It replaces a site of ours, nothing else.",
        ),
    ] = None,
    whole: Annotated[
        bool, typer.Option("--all", help="Also factors, measures and the environment.")
    ] = False,
) -> None:
    """
    Show records: tables on standard output, and one HTML page for all of them.

    With --site the page is only written where --html asks for it, and standard output has an
    answer for each record, unless --format, --output or --all ask for more.
    """
    if site is not None:
        check_replaceable(site)
    opened = [summarise_record(folder) for folder in records]
    results = [record.read_result() for record in opened]
    if site is not None:
        if html is not None:
            put_html(opened, html, title=str(results[0]["title"]))
        if form is Format.TEXT and to is None and not whole:
            print_answers(results)
        else:
            put_results(results, form, to, whole=whole)
        put_site(opened, site)
        sys.stderr.write(f"Site: {(site / 'index.html').absolute()}\n")
        return
    if html is None and len(opened) > 1:
        html = Path("pgheadroom-report.html")
        if html.exists():
            raise InputError(f"{html} exists: say with --html where the page may be written")
    html = html or opened[0].folder / "report.html"
    put_html(opened, html, title=str(results[0]["title"]))
    put_results(results, form, to, whole=whole)
    sys.stderr.write(f"Report: {html.absolute()}\n")


@app.command("compare")
def compare(
    first: Annotated[Path, typer.Argument(help="Record A: what the other is compared with.")],
    second: Annotated[Path, typer.Argument(help="Record B; ratios are B over A.")],
    form: FormatOption = Format.TEXT,
    to: OutputOption = None,
    html: HtmlOption = None,
) -> None:
    """
    Show two records of one experiment side by side: versions, machines, days.

    Counters get a verdict. Times do not, since the runs of two records were not interleaved: make
    what you compare a factor of one run for that.
    """
    result = compare_records(Record.open(first), Record.open(second))
    if html is not None:
        from pgheadroom.report import html as page  # noqa: PLC0415 - slow to import

        output.check_writable(html)
        write_atomically(html, page.render([(result, [])], title=str(result["title"])))
    put_results([result], form, to)


@app.command("merge")
def merge_records(
    records: Annotated[list[Path], typer.Argument(help="Records of the same request.")],
    to: Annotated[Path, typer.Option("--output", "-o", help="The new record's folder.")],
) -> None:
    """Make one record out of several that differ in seed and repetitions only."""
    if len(records) < 2:
        raise InputError("one record was given: expected two or more to merge")
    merged = merge(records, to)
    result = merged.read_result()
    put_html([merged], to / "report.html", title=str(result["title"]))
    repetitions = max(cell["repetitions"] for cell in result["cells"])
    sys.stderr.write(
        f"Record: {to}, {len(merged.samples)} trials, up to {repetitions} repetitions of a cell\n"
        f"Report: {(to / 'report.html').absolute()}\n"
    )
