"""
How a proof or a prediction goes out, and its page.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pgheadroom.cli import output
from pgheadroom.cli.options import Format

if TYPE_CHECKING:
    from pgheadroom.predict import Prediction
    from pgheadroom.prove import Proof


def put_proof(
    result: Proof | Prediction,
    form: Format,
    to: Path | None,
    *,
    page: Path | None = None,
    command: str | None = None,
) -> None:
    """
    Write a proof or a prediction to a file or standard output, and its page.

    Args:
        result: What was proved or predicted.
        form: Its form.
        to: The file, or None for standard output.
        page: Where the HTML page goes, if one is wanted.
        command: What repeats it, for the page.

    What is to be read first goes to standard error beside CSV.
    """
    from pgheadroom.report import text, views
    from pgheadroom.report.proof import tables as proof_tables

    head = views.heading(result, command=command)
    if page is not None:
        from pgheadroom.report import html

        shown = html.Shown.of(result, command=command)
        output.write(html.render([shown], title=head.title), page)
    if form is Format.CSV:  # its rows are figures alone
        output.noted(result.warnings)
    output.put(
        form,
        to,
        json=lambda: text.as_json(result.to_json()),
        csv=lambda: proof_tables.as_csv(result),
        markdown=lambda: views.as_markdown(result, command=command),
        show=lambda console, filed: output.print_result(
            head, views.tables(result, brief=not filed), console
        ),
    )
