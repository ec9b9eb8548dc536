"""
What a person looks at: a console that no foreign text acts on.
"""

from __future__ import annotations

from typing import Any

from rich.console import Console

from pgheadroom.quoting import printable_lines


class Terminal(Console):
    """A console for foreign text, which leaves a closed pipe to the program's own handling."""

    def print(self, *objects: Any, **options: Any) -> None:
        """Print; in plain text nothing acts on the terminal, whatever names are in it."""
        shown = (printable_lines(item) if isinstance(item, str) else item for item in objects)
        super().print(*shown, **options)

    def on_broken_pipe(self) -> None:
        """Raise as any other writer would (`| head` is no error of ours)."""
        raise BrokenPipeError
