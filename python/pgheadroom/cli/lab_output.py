"""
How results of the laboratory go out: one or several, their page, their site.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from pgheadroom.cli import output
from pgheadroom.cli.options import Format
from pgheadroom.cli.output import Terminal
from pgheadroom.errors import InputError
from pgheadroom.files import write_atomically
from pgheadroom.forms import write as written
from pgheadroom.lab.record import Record
from pgheadroom.report import text


def put_results(
    results: Sequence[Mapping[str, Any]],
    form: Format,
    to: Path | None,
    *,
    whole: bool = False,
) -> None:
    """
    Write results to a file or standard output.

    Args:
        results: Results of kind "experiment".
        form: Their form.
        to: The file, or None for standard output.
        whole: In a terminal, also what surrounds the results: factors, measures, environment.

    Raises:
        InputError: The file cannot be written; or CSV or JSON of several results at once.
    """
    from pgheadroom.report import views  # noqa: PLC0415 - slow to import

    if len(results) > 1 and form in (Format.CSV, Format.JSON):
        raise InputError(
            f"--format {form} holds one record, {len(results)} were given: call it once for each"
        )

    def show(console: Console, filed: bool) -> None:
        for result in results:
            _print(result, console, whole=whole or filed)

    output.put(
        form,
        to,
        json=lambda: text.as_json(written(results[0])),
        csv=lambda: text.as_csv(results[0]),
        markdown=lambda: "\n".join(map(views.as_markdown, results)),
        show=show,
    )


def _print(result: Mapping[str, Any], console: Console, *, whole: bool) -> None:
    """Print the answer, what was found, what to beware of, and the tables."""
    from pgheadroom.report import views  # noqa: PLC0415 - slow to import

    console.print(f"{result['title']}, PostgreSQL {result['server']}", style="bold", markup=False)
    answer = views.answer(result)
    if answer is not None:
        console.print(f"= {answer}", markup=False)
    for finding in result["findings"]:
        console.print(f"* {finding}", markup=False)
    for warning in result["warnings"]:
        console.print(f"! {warning}", markup=False)
    for name, how in result.get("assumed", {}).items():
        console.print(f"~ {name}: {how}", markup=False)
    console.print()
    text.print_tables(views.tables(result, brief=not whole), console)


def put_html(
    records: Sequence[Record],
    path: Path,
    *,
    title: str,
    proofs: Sequence[Mapping[str, Any]] = (),
) -> None:
    """
    Write one self-contained page for the results of some records.

    Args:
        records: Experiments.
        path: Where the page goes.
        title: Its title.
        proofs: Proofs to show behind them, as `proof_tables.described` gives them.
    """
    from pgheadroom.report import html  # noqa: PLC0415 - the chart library is slow to import

    output.check_writable(path)
    parts = [(record.read_result(), record.read_series()) for record in records]
    write_atomically(path, html.render([*parts, *((proof, ()) for proof in proofs)], title=title))


def put_site(records: Sequence[Record], folder: Path) -> None:
    """Write the static site of some records into a folder, in the place of an older one."""
    from pgheadroom.cli.site_folder import write_site  # noqa: PLC0415 - this command alone has one
    from pgheadroom.report import site  # noqa: PLC0415 - this command alone has one

    shown = [
        site.SiteRecord(
            folder=record.folder, result=record.read_result(), series=record.read_series()
        )
        for record in records
    ]
    write_site(site.files(shown), folder)


def print_answers(results: Sequence[Mapping[str, Any]]) -> None:
    """Print each result's title and its answer on standard output."""
    from pgheadroom.report import views  # noqa: PLC0415 - slow to import

    console = Terminal(highlight=False)
    for result in results:
        console.print(
            f"{result['title']}, PostgreSQL {result['server']}", style="bold", markup=False
        )
        console.print(f"= {views.answer(result) or 'no figure yet'}", markup=False)
