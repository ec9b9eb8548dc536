"""
Options that several commands share.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Format(StrEnum):
    """Forms of a command's data."""

    TEXT = "text"
    JSON = "json"
    CSV = "csv"
    MARKDOWN = "markdown"


FormatOption = Annotated[
    Format,
    typer.Option("--format", "-f", help="Form of the data: text, json, csv or markdown."),
]
OutputOption = Annotated[
    Path | None, typer.Option("--output", "-o", help="Write the data to this file instead.")
]
HtmlOption = Annotated[
    Path | None, typer.Option("--html", help="Write a page with charts here too.")
]
SchedulerOption = Annotated[
    str | None,
    typer.Option(
        "--scheduler",
        help="Work on a Dask cluster: tcp://HOST:PORT or tls://HOST:PORT of its scheduler.",
    ),
]
TablesOption = Annotated[
    list[str] | None,
    typer.Option("--table", "-t", help="Only this table (or schema.table); again for more."),
]
