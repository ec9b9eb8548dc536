"""
`pgheadroom predict --page`: a page's life in the terminal, as JSON, or as an HTML page.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pgheadroom.cli import output
from pgheadroom.cli.options import Format
from pgheadroom.errors import InputError
from pgheadroom.redaction import command_line

if TYPE_CHECKING:
    from pgheadroom.profile import Profile

_FILE_WIDTH = 100


def show_page_life(
    profile: Profile,
    block: int,
    table: str | None,
    fillfactors: Sequence[int] | None,
    *,
    server: str | None,
    tps: float | None,
    form: Format,
    to: Path | None,
    html: Path | None,
) -> None:
    """
    Watch a page and tell its life.

    Raises:
        InputError: As `predict_page`; or a form that a life does not have.
    """
    from pgheadroom.predict.page import predict_page
    from pgheadroom.report import text
    from pgheadroom.report.page_life import text as life_text

    if form not in (Format.TEXT, Format.JSON):
        raise InputError(f"--format {form} with --page: expected text or json")
    watched = predict_page(profile, block, table, fillfactors, server=server, tps=tps)
    if html is not None:
        from pgheadroom.report.page_life import html as life_html

        command = command_line(sys.argv[1:])
        page = life_html.render(watched.life, command=command, server=str(watched.server))
        output.write(page, html)
    if form is Format.JSON:
        content = text.as_json({**watched.life.to_json(), "server": str(watched.server)})
    else:
        width = shutil.get_terminal_size((_FILE_WIDTH, 24)).columns if to is None else _FILE_WIDTH
        unicode = to is not None or _shows_unicode()
        lines = life_text.lines(watched.life, width=min(width, 160), unicode=unicode)
        lines[0] += f", PostgreSQL {watched.server}"
        lines[1:1] = [
            *(f"! {line}" for line in watched.life.warnings),
            *(f"~ {line}" for line in watched.approximations),
        ]
        content = "\n".join(lines) + "\n"
    output.write(content, to)


def _shows_unicode() -> bool:
    """Whether standard output takes the signs of the picture."""
    if os.environ.get("TERM") == "linux":  # the kernel's console has few of them
        return False
    try:
        "●◆○◇→✕·▒▪░█┌─┐│└┘".encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True
