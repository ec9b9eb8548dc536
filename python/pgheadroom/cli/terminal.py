"""
What a person looks at: a console that no foreign text acts on.
"""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.text import Text

from pgheadroom.folding import folded
from pgheadroom.quoting import printable_lines


class Terminal(Console):
    """A console for foreign text, which leaves a closed pipe to the program's own handling."""

    def print(self, *objects: Any, **options: Any) -> None:
        """Print; in plain text nothing acts on the terminal, whatever names are in it."""
        shown = [printable_lines(item) if isinstance(item, str) else item for item in objects]
        # Plain text is broken here: the console parts a number from its unit.
        is_broken = not (options.get("soft_wrap") or options.get("no_wrap"))
        if is_broken and options.get("markup") is False and shown and isinstance(shown[0], str):
            shown[0] = Text("\n").join(folded(shown[0], self, self.width))
        super().print(*shown, **options)

    def on_broken_pipe(self) -> None:
        """Raise as any other writer would (`| head` is no error of ours)."""
        raise BrokenPipeError
