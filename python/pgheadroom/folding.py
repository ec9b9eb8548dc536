"""
Text broken into lines of a width, with a number and its unit on one: not `99.5` here and `%` there.
"""

from __future__ import annotations

import re
import textwrap
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

_UNITS = "%|‰|B|kB|MB|GB|TB|PB|KiB|MiB|GiB|TiB|ns|µs|us|ms|s|min|h|days?|points?|times"
_BETWEEN = re.compile(rf"(?<=[0-9]) (?=(?:{_UNITS})(?![A-Za-z0-9_]))")
_GLUE = "\ue000"
"""Stands for the space between them meanwhile: as wide, and no place to break. Of private use."""


def folded(content: str, console: Console, width: int, style: str = "") -> list[Text]:
    """
    Lines as a console would break them.

    Args:
        content: Of lines that may be longer.
        console: Whose rules hold.
        width: In cells.
        style: Of all of it.
    """
    from rich.text import Text  # noqa: PLC0415 - only printing needs it

    lines = Text(_glued(content)).wrap(console, width)
    return [Text(_unglued(line.plain), style=style) for line in lines]


def wrapped(content: str, width: int, **options: Any) -> list[str]:
    """Lines as `textwrap.wrap` breaks them, with its options."""
    return [_unglued(line) for line in textwrap.wrap(_glued(content), width, **options)]


def _glued(text: str) -> str:
    return text if _GLUE in text else _BETWEEN.sub(_GLUE, text)


def _unglued(text: str) -> str:
    return text.replace(_GLUE, " ")
