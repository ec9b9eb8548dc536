"""
What a person looks at: a console that no foreign text acts on, a bar of progress.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from pgheadroom.progress import RunState
from pgheadroom.quoting import printable, printable_lines
from pgheadroom.units import show_duration


class Terminal(Console):
    """A console for foreign text, which leaves a closed pipe to the program's own handling."""

    def print(self, *objects: Any, **options: Any) -> None:
        """Print; in plain text nothing acts on the terminal, whatever names are in it."""
        shown = (printable_lines(item) if isinstance(item, str) else item for item in objects)
        super().print(*shown, **options)

    def on_broken_pipe(self) -> None:
        """Raise as any other writer would (`| head` is no error of ours)."""
        raise BrokenPipeError


@contextlib.contextmanager
def bar(label: str) -> Iterator[Callable[[RunState], None]]:
    """Show progress as a bar on standard error; yields what to call with each step."""
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[left]}"),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=False,
    ) as shown:
        task = shown.add_task(printable(label), total=None, left="")

        def show(step: RunState) -> None:
            left = f"about {show_duration(step.left_s)} left" if step.left_s > 0 else ""
            shown.update(task, total=step.total, completed=step.done, left=left)

        yield show
