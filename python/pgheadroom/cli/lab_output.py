"""
How results of the laboratory go out: one or several, their page, their site.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from pgheadroom.cli import output
from pgheadroom.cli.options import Format
from pgheadroom.cli.terminal import Terminal
from pgheadroom.errors import InputError
from pgheadroom.lab.record import Record
from pgheadroom.lab.result import ExperimentResult
from pgheadroom.lab.stored import RecordPlace, StoredRecord
from pgheadroom.report import text
from pgheadroom.units import show_count


def put_results(
    results: Sequence[ExperimentResult],
    form: Format,
    to: Path | None,
    *,
    whole: bool = False,
) -> None:
    """
    Write results to a file or standard output.

    Args:
        results: Of experiments.
        form: Their form.
        to: The file, or None for standard output.
        whole: In a terminal, also what surrounds the results: factors, measures, environment.

    Raises:
        InputError: The file cannot be written; or CSV or JSON of several results at once.
    """
    from pgheadroom.report import views

    if len(results) > 1 and form in (Format.CSV, Format.JSON):
        raise InputError(
            f"--format {form} holds one record, {len(results)} were given: call it once for each"
        )

    def show(console: Console, filed: bool) -> None:
        with output.paged(console):
            for result in results:
                _print(result, console, whole=whole or filed)

    output.put(
        form,
        to,
        json=lambda: text.as_json(results[0].to_json()),
        csv=lambda: text.as_csv(results[0]),
        markdown=lambda: "\n".join(map(views.as_markdown, results)),
        show=show,
    )


def _print(result: ExperimentResult, console: Console, *, whole: bool) -> None:
    """Print the answer, what was found, what to beware of, and the tables."""
    from pgheadroom.report import views

    output.print_result(views.heading(result), views.tables(result, brief=not whole), console)


def put_html(records: Sequence[Record], *paths: Path, title: str) -> None:
    """Write one self-contained page for the results of some records, drawn once for all paths."""
    from pgheadroom.report import html

    for path in paths:
        output.check_writable(path)
    shown = [html.Shown.of(each.read_result(), each.read_series()) for each in records]
    page = html.render(shown, title=title)
    for path in paths:
        output.write(page, path)


def put_pages(record: Record, place: RecordPlace, *also: Path | None, title: str) -> str:
    """
    Write the page of one record where the record is, and to other files.

    Returns:
        Where to look at it: the first of the files, else where the record has it.
    """
    files = [path for path in also if path is not None]
    own = record.folder / "report.html"
    put_html([record], own, *files, title=title)
    if isinstance(place, StoredRecord):
        place.put(own.name)
        return str(files[0].absolute()) if files else f"{place}/{own.name}"
    return str((files or [own])[0].absolute())


def put_site(records: Sequence[Record], folder: Path) -> None:
    """Write the static site of some records into a folder, in the place of an older one."""
    from pgheadroom.cli.site_folder import write_site
    from pgheadroom.report import site

    shown = [
        site.SiteRecord(
            folder=record.folder, result=record.read_result(), series=record.read_series()
        )
        for record in records
    ]
    write_site(site.files(shown), folder)


def print_answers(results: Sequence[ExperimentResult]) -> None:
    """Print each result's title, its answer and how much is to beware of on standard output."""
    from pgheadroom.report import views

    console = Terminal(highlight=False)
    with output.paged(console):
        for result in results:
            head = views.heading(result)
            console.print(f"{head.title}, PostgreSQL {head.server}", style="bold", markup=False)
            console.print(f"= {head.answer or 'no figure yet'}", markup=False)
            if head.alarms:
                caveats = show_count(len(head.alarms), "caveat")
                console.print(f"! {caveats}, in the report (or by --details)", markup=False)
