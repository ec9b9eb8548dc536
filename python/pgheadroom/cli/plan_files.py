"""
Plans as files: for `apply`, for a change request, for psql.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pgheadroom.cli import output
from pgheadroom.quoting import printable
from pgheadroom.units import show_count

if TYPE_CHECKING:
    from pgheadroom.plan import Plan


def write_plan(plan: Plan, paths: Sequence[Path], *, none: str) -> None:
    """
    Write a plan, in the form that each name's ending says, and say what is in it.

    Args:
        plan: To be written.
        paths: Where: .md for a change request, .sql for psql, else JSON.
        none: Why there may be no step.
    """
    from pgheadroom.plan import plan_text
    from pgheadroom.plan.text import as_markdown, as_text

    count = len(plan.work)
    for path in paths:
        form = {".md": as_markdown, ".sql": as_text}.get(path.suffix, plan_text)
        output.write(form(plan), path)
        why = "" if count else f", for {none}"
        sys.stderr.write(f"plan: {show_count(count, 'step')} in {path}{why}\n")
    for note in plan.notes:
        sys.stderr.write(f"plan: {printable(note)}\n")
