"""
How a proof or a prediction goes out, and its page.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from pgheadroom.cli import output
from pgheadroom.cli.options import Format
from pgheadroom.files import write_atomically
from pgheadroom.report import text


def put_proof(
    result: Mapping[str, Any],
    form: Format,
    to: Path | None,
    *,
    page: Path | None = None,
    command: str | None = None,
) -> None:
    """
    Write a proof or a prediction to a file or standard output, and its page.

    Args:
        result: Of kind "proof" or "prediction".
        form: Its form.
        to: The file, or None for standard output.
        page: Where the HTML page goes, if one is wanted.
        command: What repeats it, for the page.
    """
    from pgheadroom.report import views  # noqa: PLC0415 - slow to import
    from pgheadroom.report.proof import tables as proof_tables  # noqa: PLC0415 - slow to import

    shown = proof_tables.described(result, command=command)
    if page is not None:
        from pgheadroom.report import html  # noqa: PLC0415 - the chart library is slow to import

        write_atomically(page, html.render([(shown, ())], title=str(shown["title"])))
    output.put(
        form,
        to,
        json=lambda: text.as_json(result),
        csv=lambda: proof_tables.as_csv(result),
        markdown=lambda: views.as_markdown(shown),
        show=lambda console, filed: _print(shown, console, brief=not filed),
    )


def _print(shown: Mapping[str, Any], console: Console, *, brief: bool) -> None:
    """Print what `proof_tables.described` gives: title, findings, tables."""
    from pgheadroom.report import views  # noqa: PLC0415 - slow to import

    console.print(f"{shown['title']}, PostgreSQL {shown['server']}", style="bold", markup=False)
    for finding in shown["findings"]:
        console.print(f"* {finding}", markup=False)
    for warning in shown["warnings"]:
        console.print(f"! {warning}", markup=False)
    for line in shown["assumed"].get("twin.approximations", ()):
        console.print(f"~ {line}", markup=False)
    console.print()
    text.print_tables(views.tables(shown, brief=brief), console)
