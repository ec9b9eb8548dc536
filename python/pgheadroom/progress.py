"""
How far a long piece of work is: what is called meanwhile, and what the laboratory says of a run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol


class Progress(Protocol):
    """Called while something takes its time: how much is done, of how much, and what it is."""

    def __call__(self, done: int, total: int, what: str, /) -> None:
        """Show it; an error raised here ends what is going on."""


Say = Callable[[str], None]
"""The same of work whose length nobody knows: called with what it is."""


def unsaid(_what: str) -> None:
    """Where nobody hears what it is."""


def unsaid_of(_name: str) -> Say:
    """The same of each of several."""
    return unsaid


@dataclass(frozen=True, slots=True, kw_only=True)
class RunState:
    """State of a run after a trial; `left_s` is an estimate from the trials so far."""

    done: int
    total: int
    left_s: float
    text: str
