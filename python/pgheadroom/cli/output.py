"""
Where output goes: the format, the file, the HTML page; progress on standard error.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from pgheadroom.cli.options import Format
from pgheadroom.errors import InputError
from pgheadroom.files import write_atomically
from pgheadroom.quoting import printable, printable_lines
from pgheadroom.report import text
from pgheadroom.units import show_duration

if TYPE_CHECKING:
    from pgheadroom.lab.record import Record
    from pgheadroom.progress import Progress

# Modules of what one command shows are loaded when it is shown: others start without them.


class Terminal(Console):
    """A console for foreign text, which leaves a closed pipe to the program's own handling."""

    def print(self, *objects: Any, **options: Any) -> None:
        """Print; in plain text nothing acts on the terminal, whatever names are in it."""
        shown = (printable_lines(item) if isinstance(item, str) else item for item in objects)
        super().print(*shown, **options)

    def on_broken_pipe(self) -> None:
        """Raise as any other writer would (`| head` is no error of ours)."""
        raise BrokenPipeError


def write_out(content: str) -> None:
    """Write to standard output: a terminal gets what it can show, a pipe gets all as it is."""
    sys.stdout.write(printable_lines(content) if sys.stdout.isatty() else content)


def rendered(result: Mapping[str, Any], form: Format) -> str:
    """A result in one of the forms that are plain text; `TEXT` is for the terminal instead."""
    if form is Format.JSON:
        return text.as_json(result)
    if form is Format.CSV:
        return text.as_csv(result)
    from pgheadroom.report import views  # noqa: PLC0415 - see above

    lines = [f"# {result['title']}, PostgreSQL {result['server']}", ""]
    answer = views.answer(result)
    if answer is not None:
        lines += [f"**{text.markdown_text(answer)}**", ""]
    lines += [f"- {line}" for line in (*result["findings"], *result["warnings"])]
    return "\n".join([*lines, "", text.as_markdown(views.tables(result))])


def put(
    results: Sequence[Mapping[str, Any]],
    form: Format,
    output: Path | None,
    *,
    whole: bool = False,
) -> None:
    """
    Write results to a file or standard output.

    Args:
        results: Results of kind "experiment".
        form: Their form.
        output: The file, or None for standard output.
        whole: In a terminal, also what surrounds the results: factors, measures, environment.

    Raises:
        InputError: The file cannot be written; or CSV or JSON of several results at once.
    """
    if len(results) > 1 and form in (Format.CSV, Format.JSON):
        raise InputError(
            f"--format {form} holds one record, {len(results)} were given: call it once for each"
        )
    if form is Format.TEXT:
        _put_text(results, output, whole=whole)
        return
    content = "\n".join(rendered(result, form) for result in results)
    if output is None:
        write_out(content)
    else:
        check_writable(output)
        write_atomically(output, content)


def _put_text(results: Sequence[Mapping[str, Any]], output: Path | None, *, whole: bool) -> None:
    if output is None:
        for result in results:
            print_result(result, Terminal(highlight=False), whole=whole)
        return
    check_writable(output)
    stream = io.StringIO()
    for result in results:
        print_result(result, Terminal(file=stream, width=120, highlight=False), whole=True)
    write_atomically(output, stream.getvalue())


def print_result(result: Mapping[str, Any], console: Console, *, whole: bool) -> None:
    """Print the answer, what was found, what to beware of, and the tables."""
    from pgheadroom.report import views  # noqa: PLC0415 - see above

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


def check_writable(path: Path) -> None:
    """Raise InputError for a path that cannot become a file."""
    if path.is_dir():
        raise InputError(f"{path} is a folder: expected a file to write")
    if not path.absolute().parent.is_dir():
        raise InputError(f"{path.parent} does not exist: make the folder first")


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
        proofs: Proofs to show behind them, as `view_proof.described` gives them.
    """
    from pgheadroom.report import html  # noqa: PLC0415 - the chart library is slow to import

    check_writable(path)
    parts = [(record.read_result(), record.read_series()) for record in records]
    write_atomically(path, html.render([*parts, *((proof, ()) for proof in proofs)], title=title))


def put_site(records: Sequence[Record], folder: Path) -> None:
    """Write the static site of some records into a folder, in the place of an older one."""
    from pgheadroom.cli.site_folder import write_site  # noqa: PLC0415 - see above
    from pgheadroom.report import site  # noqa: PLC0415 - see above

    shown = [
        site.SiteRecord(
            folder=record.folder, result=record.read_result(), series=record.read_series()
        )
        for record in records
    ]
    write_site(site.files(shown), folder)


def print_answers(results: Sequence[Mapping[str, Any]]) -> None:
    """Print each result's title and its answer on standard output."""
    from pgheadroom.report import views  # noqa: PLC0415 - see above

    console = Terminal(highlight=False)
    for result in results:
        console.print(
            f"{result['title']}, PostgreSQL {result['server']}", style="bold", markup=False
        )
        console.print(f"= {views.answer(result) or 'no figure yet'}", markup=False)


def put_proof(
    result: Mapping[str, Any],
    form: Format,
    output: Path | None,
    *,
    page: Path | None = None,
    command: str | None = None,
) -> None:
    """
    Write a proof or a prediction to a file or standard output, and its page.

    Args:
        result: Of kind "proof" or "prediction".
        form: Its form.
        output: The file, or None for standard output.
        page: Where the HTML page goes, if one is wanted.
        command: What repeats it, for the page.
    """
    from pgheadroom.report import view_proof  # noqa: PLC0415 - see above

    shown = view_proof.described(result, command=command)
    if page is not None:
        from pgheadroom.report import html  # noqa: PLC0415 - the chart library is slow to import

        write_atomically(page, html.render([(shown, ())], title=str(shown["title"])))
    if form is Format.JSON:
        content = text.as_json(result)
    elif form is Format.CSV:
        content = view_proof.as_csv(result)
    elif form is Format.MARKDOWN:
        content = rendered(shown, form)
    elif output is None:
        print_proof(shown, Terminal(highlight=False))
        return
    else:
        stream = io.StringIO()
        print_proof(shown, Terminal(file=stream, width=120, highlight=False), brief=False)
        content = stream.getvalue()
    if output is None:
        write_out(content)
    else:
        write_atomically(output, content)


def put_forms(
    form: Format,
    to: Path | None,
    *,
    json: Callable[[], str],
    csv: Callable[[], str],
    markdown: Callable[[], str],
    show: Callable[[Console], None],
) -> None:
    """
    Write a result in one of its forms to a file or standard output.

    Args:
        form: The form.
        to: The file, or None for standard output.
        json: Makes that form.
        csv: Makes that form.
        markdown: Makes that form.
        show: Prints the text form, on the terminal or into the file.
    """
    made = {Format.JSON: json, Format.CSV: csv, Format.MARKDOWN: markdown}
    if form is not Format.TEXT:
        content = made[form]()
    elif to is None:
        show(Terminal(highlight=False))
        return
    else:
        stream = io.StringIO()
        show(Terminal(file=stream, width=120, highlight=False))
        content = stream.getvalue()
    if to is None:
        write_out(content)
    else:
        write_atomically(to, content)


def print_proof(shown: Mapping[str, Any], console: Console, *, brief: bool = True) -> None:
    """Print what `view_proof.described` gives: title, findings, tables."""
    from pgheadroom.report import views  # noqa: PLC0415 - see above

    console.print(f"{shown['title']}, PostgreSQL {shown['server']}", style="bold", markup=False)
    for finding in shown["findings"]:
        console.print(f"* {finding}", markup=False)
    for line in shown["assumed"].get("twin.approximations", ()):
        console.print(f"~ {line}", markup=False)
    console.print()
    text.print_tables(views.tables(shown, brief=brief), console)


def put_advice(
    result: Mapping[str, Any],
    form: Format,
    output: Path | None,
    *,
    page: Path | None = None,
    command: str | None = None,
    verbose: bool = False,
) -> None:
    """
    Write an advice to a file or standard output, and its page.

    Args:
        result: Of kind "advice", as `Advice.to_json` gives it; the JSON form is this value.
        form: Its form.
        output: The file, or None for standard output.
        page: Where the HTML page goes, if one is wanted.
        command: What repeats it, for the page.
        verbose: As text and Markdown: every table in full.
    """
    from pgheadroom.advise.advice import Advice  # noqa: PLC0415 - see above
    from pgheadroom.report import advice_text, view_advice  # noqa: PLC0415 - see above

    advice = Advice.from_json(result)
    if page is not None:
        from pgheadroom.report import advice_html  # noqa: PLC0415 - the template library is slow

        write_atomically(page, advice_html.render(advice, command=command))
    put_forms(
        form,
        output,
        json=lambda: text.as_json(result),
        csv=lambda: view_advice.as_csv(advice),
        markdown=lambda: advice_text.as_markdown(advice, verbose=verbose),
        show=lambda console: advice_text.print_advice(advice, console, verbose=verbose),
    )


@contextmanager
def progress(label: str) -> Iterator[Callable[[Progress], None]]:
    """
    Show progress on standard error: a bar on a terminal, plain lines elsewhere.

    Yields:
        What to call with each step.
    """
    if sys.stderr.isatty():
        with Bar(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[left]}"),
            TimeElapsedColumn(),
            console=Console(stderr=True),
            transient=False,
        ) as bar:
            task = bar.add_task(printable(label), total=None, left="")

            def show(step: Progress) -> None:
                left = f"about {show_duration(step.left_s)} left" if step.left_s > 0 else ""
                bar.update(task, total=step.total, completed=step.done, left=left)

            yield show
        return

    shown = -1.0

    def say(step: Progress) -> None:
        nonlocal shown
        share = step.done / step.total if step.total else 1.0
        # A line each twentieth of the way: enough to see that it lives, few enough for a log.
        if shown < 0 or share >= shown + 0.05 or step.done == step.total:
            shown = share
            left = f", about {show_duration(step.left_s)} left" if step.left_s > 0 else ""
            sys.stderr.write(f"{printable(label)}: {step.done}/{step.total}{left}\n")
            sys.stderr.flush()

    yield say
