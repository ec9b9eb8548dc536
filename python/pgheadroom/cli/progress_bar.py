"""
A bar of progress, on standard error where that is a terminal.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from pgheadroom.progress import RunState
from pgheadroom.quoting import printable
from pgheadroom.units import show_duration


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
