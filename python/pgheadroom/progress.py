"""
How far a long piece of work is.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """State of a run after a trial; `left_s` is an estimate from the trials so far."""

    done: int
    total: int
    left_s: float
    text: str
