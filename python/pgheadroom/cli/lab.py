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

_RECORDS_HELP = "Records: folders, or s3://BUCKET/PREFIX."

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
_BudgetOption = Annotated[
    str | None,
    typer.Option(
        help="Time to spend, e.g. 30m: no block begins after it, and what the planned "
        "repetitions leave goes to the widest intervals, until all are answered."
    ),
]
_RecordOption = Annotated[
    str | None,
    typer.Option(
        help=f"The record: a folder, or s3://BUCKET/PREFIX; default: a new folder in "
        f"{RECORDS_FOLDER}, or the unfinished one of the same request, which is then gone on with."
    ),
]
_RunOutputOption = Annotated[
    str | None,
    typer.Option(
        "--output",
        "-o",
        help="Write to this file instead of standard output; s3://BUCKET/PREFIX is the record.",
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
    budget: _BudgetOption = None,
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
    record: _RecordOption = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Do not go on with a record.")] = False,
    scheduler: SchedulerOption = None,
    labels: LabelOption = None,
    form: FormatOption = Format.TEXT,
    to: _RunOutputOption = None,
    html: RecordPageOption = None,
) -> None:
    """Run an experiment; stopped in whatever way, the same command goes on where it stopped."""
    from pgheadroom.cli import lab_output, lab_run
    from pgheadroom.lab.experiments import get
    from pgheadroom.lab.record import Record
    from pgheadroom.lab.run import find_record
    from pgheadroom.lab.stored import record_at
    from pgheadroom.object_storage import is_url

    experiment = get(name)
    if to is not None and is_url(to):
        if record is not None:
            raise InputError("--record and -o both name a place for the record: expected one")
        record, to = to, None
    file = None if to is None else Path(to)
    output.check_outputs(file, html)
    given = list(settings or [])
    given += [f"{key}={value}" for key, value in (("io", io), ("script", script)) if value]
    request = lab_run.make_request(experiment, given, scale, repetitions, seed, server)
    if labels and scheduler is None:
        raise InputError("--label is of a cluster's workers: expected --scheduler too")
    with record_at(record or find_record(request, parent=RECORDS_FOLDER, fresh=fresh)) as place:
        lab_run.run_into(
            request,
            place,
            server=server,
            budget_s=None if budget is None else parse_duration_s(budget),
            scheduler=scheduler,
            labels=labels or (),
        )
        finished = Record.open(place)
        own = lab_output.put_pages(finished, place, html, title=experiment.title)
        lab_output.put_results([finished.read_result()], form, file)
    sys.stderr.write(f"Record: {place}\nReport: {own}\n")


@app.command("report", short_help="Show records: answers, tables, a page, a site.")
def report(
    records: Annotated[list[str], typer.Argument(help=_RECORDS_HELP)],
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
    from pgheadroom.lab.stored import records_at

    if site is not None:
        from pgheadroom.cli.site_folder import check_replaceable

        check_replaceable(site)
    with records_at(records) as places:
        opened = [summarise_record(place) for place in places]
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
        folder = places[0] if len(places) == 1 else None
        if html is None and not isinstance(folder, Path):
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
    first: Annotated[str, typer.Argument(help="Record A: what the other is compared with.")],
    second: Annotated[str, typer.Argument(help="Record B; ratios are B over A.")],
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
    from pgheadroom.lab.stored import records_at

    with records_at([first, second]) as places:
        result = compare_records(*map(Record.open, places))
    if html is not None:
        from pgheadroom.report import html as page

        output.write(page.render([page.Shown.of(result)], title=result.title), html)
    lab_output.put_results([result], form, to)


@app.command("merge", short_help="One record out of several of the same request.")
def merge_records(
    records: Annotated[list[str], typer.Argument(help="Records of the same request.")],
    to: Annotated[
        str,
        typer.Option(
            "--output", "-o", help="Where the new one goes: a folder, s3://BUCKET/PREFIX."
        ),
    ],
) -> None:
    """Make one record out of several that differ in seed and repetitions only."""
    from pgheadroom.cli import lab_output
    from pgheadroom.lab import reading
    from pgheadroom.lab.merge import merge
    from pgheadroom.lab.stored import record_at, records_at

    if len(records) < 2:
        raise InputError("one record was given: expected two or more to merge")
    with records_at(records) as sources, record_at(to) as place:
        merged = merge(sources, place)
        result = merged.read_result()
        page = lab_output.put_pages(merged, place, None, title=result.title)
    repetitions = max(reading.number(cell["repetitions"]) or 0 for cell in result.cells)
    sys.stderr.write(
        f"Record: {to}, {len(merged.samples)} trials, up to {repetitions} repetitions of a cell\n"
        f"Report: {page}\n"
    )
