"""
Options of the commands that take counters of other hours, out of a history that `watch` kept.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pgheadroom.cli.idle import refuse

if TYPE_CHECKING:
    from pgheadroom.report.charts import Chart
    from pgheadroom.watch.recalling import Recalled

HistoryOption = Annotated[
    Path | None,
    typer.Option(
        "--history",
        help="Take counters of other hours out of this file, which `watch --history` writes.",
    ),
]
FromOption = Annotated[
    str | None,
    typer.Option(
        "--from",
        help="With --history: from when on, e.g. 09:00 (of its last day that has it) or "
        "'2026-11-27 09:00', UTC (default: its first moment since statistics were reset).",
    ),
]
ToOption = Annotated[
    str | None, typer.Option("--to", help="With --history: until when (default: its last moment).")
]


def recalled(history: Path | None, begin: str | None, end: str | None) -> Recalled | None:
    """
    The interval that is asked for, None where there is no history.

    Raises:
        InputError: The file is no history, or the times are none.
    """
    if history is None:
        refuse(
            {"--from": begin, "--to": end},
            where="without a history",
            instead="--history FILE, which `watch --history FILE` writes, has other hours",
        )
        return None
    from pgheadroom.watch.recalling import Recalled

    found = Recalled(history, begin, end)
    sys.stderr.write(f"history: {found.span.said()}\n")
    return found


def day_of(past: Recalled | None) -> Chart | None:
    """The day of the interval as a chart, where there is one."""
    if past is None:
        return None
    from pgheadroom.report import history as history_report

    return history_report.day(past.moments, past.span)
