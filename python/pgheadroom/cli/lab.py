"""
`pgheadroom lab`: experiments on real servers.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from pgheadroom.cli import output
from pgheadroom.cli.options import Format, FormatOption, OutputOption, SchedulerOption
from pgheadroom.errors import InputError
from pgheadroom.units import parse_duration_s

RECORDS_FOLDER = Path("pgheadroom-records")

app = typer.Typer(
    help="Experiments on real PostgreSQL servers: run, report, compare, merge.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

LabelOption = Annotated[
    list[str] | None,
    typer.Option(
        "--label",
        help="Of a cluster's workers only those with this label (a resource); again for more. A "
        "block stays with one label.",
    ),
]
RecordPageOption = Annotated[
    Path | None, typer.Option("--html", help="Write the HTML page here too.")
]


@app.command("list", short_help="The experiments, and the servers at hand.")
def list_experiments(
    name: Annotated[
        str | None, typer.Argument(help="Show this experiment's factors and options.")
    ] = None,
) -> None:
    """Show the experiments, their questions and the servers at hand."""
    from pgheadroom.cli.lab_list import show_experiments

    show_experiments(name)


@app.command("run", short_help="Run an experiment, or go on with one.")
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
    scheduler: SchedulerOption = None,
    labels: LabelOption = None,
    form: FormatOption = Format.TEXT,
    to: OutputOption = None,
    html: RecordPageOption = None,
) -> None:
    """Run an experiment; stopped in whatever way, the same command goes on where it stopped."""
    from pgheadroom.cli import lab_output, lab_run
    from pgheadroom.lab.experiments import get
    from pgheadroom.lab.record import Record
    from pgheadroom.lab.run import find_record

    experiment = get(name)
    for path in (to, html):
        if path is not None:
            output.check_writable(path)
    given = list(settings or [])
    given += [f"{key}={value}" for key, value in (("io", io), ("script", script)) if value]
    request = lab_run.make_request(experiment, given, scale, repetitions, seed, server)
    if labels and scheduler is None:
        raise InputError("--label is of a cluster's workers: expected --scheduler too")
    folder = record or find_record(request, parent=RECORDS_FOLDER, fresh=fresh)
    lab_run.run_into(
        request,
        folder,
        server=server,
        budget_s=None if budget is None else parse_duration_s(budget),
        scheduler=scheduler,
        labels=labels or (),
    )
    finished = Record.open(folder)
    pages = [folder / "report.html", *([html] if html else [])]
    lab_output.put_html([finished], *pages, title=experiment.title)
    lab_output.put_results([finished.read_result()], form, to)
    sys.stderr.write(f"Record: {folder}\nReport: {(html or folder / 'report.html').absolute()}\n")


@app.command("report", short_help="Show records: answers, tables, a page, a site.")
def report(
    records: Annotated[list[Path], typer.Argument(help="Record folders.")],
    form: FormatOption = Format.TEXT,
    to: OutputOption = None,
    html: RecordPageOption = None,
    site: Annotated[
        Path | None,
        typer.Option(
            "--site",
            metavar="FOLDER",
            help="Write a static site here instead: an overview with the answers, a page for each "
            "record, the raw data. It replaces a site of ours, nothing else.",
        ),
    ] = None,
    details: Annotated[
        bool, typer.Option("--details", help="Of several records too: findings and tables.")
    ] = False,
    whole: Annotated[
        bool, typer.Option("--all", help="Also factors, measures and the environment.")
    ] = False,
) -> None:
    """
    Show records: the answer and tables of one, the answers of several, and an HTML page.

    The page holds all of the records. CSV, JSON and Markdown come alone, and so does a site
    (--site): the page is then only written where --html asks for it. What is longer than the
    terminal is paged.
    """
    from pgheadroom.cli import lab_output
    from pgheadroom.lab.run import summarise_record

    if site is not None:
        from pgheadroom.cli.site_folder import check_replaceable

        check_replaceable(site)
    opened = [summarise_record(folder) for folder in records]
    results = [record.read_result() for record in opened]
    # A file has room for all; on standard output tables of several records bury the answers.
    is_brief = form is Format.TEXT and to is None and not (details or whole)
    if site is not None:
        if html is not None:
            lab_output.put_html(opened, html, title=results[0].title)
        if is_brief:
            lab_output.print_answers(results)
        else:
            lab_output.put_results(results, form, to, whole=whole)
        lab_output.put_site(opened, site)
        sys.stderr.write(f"Site: {(site / 'index.html').absolute()}\n")
        return
    if html is None and form is not Format.TEXT:
        lab_output.put_results(results, form, to)
        return
    if html is None and len(opened) > 1:
        html = Path("pgheadroom-report.html")
        if html.exists():
            raise InputError(f"{html} exists: say with --html where the page may be written")
    html = html or opened[0].folder / "report.html"
    lab_output.put_html(opened, html, title=results[0].title)
    if is_brief and len(results) > 1:
        lab_output.print_answers(results)
    else:
        lab_output.put_results(results, form, to, whole=whole)
    sys.stderr.write(f"Report: {html.absolute()}\n")


@app.command("compare", short_help="Two records of one experiment side by side.")
def compare(
    first: Annotated[Path, typer.Argument(help="Record A: what the other is compared with.")],
    second: Annotated[Path, typer.Argument(help="Record B; ratios are B over A.")],
    form: FormatOption = Format.TEXT,
    to: OutputOption = None,
    html: RecordPageOption = None,
) -> None:
    """
    Show two records of one experiment side by side: versions, machines, days.

    Counters get a verdict. Times do not, since the runs of two records were not interleaved: make
    what you compare a factor of one run for that.
    """
    from pgheadroom.cli import lab_output
    from pgheadroom.lab.compare import compare_records
    from pgheadroom.lab.record import Record

    result = compare_records(Record.open(first), Record.open(second))
    if html is not None:
        from pgheadroom.report import html as page

        output.write(page.render([page.Shown.of(result)], title=result.title), html)
    lab_output.put_results([result], form, to)


@app.command("merge", short_help="One record out of several of the same request.")
def merge_records(
    records: Annotated[list[Path], typer.Argument(help="Records of the same request.")],
    to: Annotated[Path, typer.Option("--output", "-o", help="The new record's folder.")],
) -> None:
    """Make one record out of several that differ in seed and repetitions only."""
    from pgheadroom.cli import lab_output
    from pgheadroom.lab import reading
    from pgheadroom.lab.merge import merge

    if len(records) < 2:
        raise InputError("one record was given: expected two or more to merge")
    merged = merge(records, to)
    result = merged.read_result()
    lab_output.put_html([merged], to / "report.html", title=result.title)
    repetitions = max(reading.number(cell["repetitions"]) or 0 for cell in result.cells)
    sys.stderr.write(
        f"Record: {to}, {len(merged.samples)} trials, up to {repetitions} repetitions of a cell\n"
        f"Report: {(to / 'report.html').absolute()}\n"
    )
