"""
Watching a live database, or reading what the psql script of it wrote, as a profile.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pgheadroom.observe.build import observe
from pgheadroom.observe.classes import find_classes
from pgheadroom.profile import Profile
from pgheadroom.progress import Say
from pgheadroom.sources.log import read_statements
from pgheadroom.sources.log_reading import LogWatch
from pgheadroom.sources.observing import (
    APPLICATION_NAME,
    ObservationRequest,
    look_back,
    watch,
    with_gaps,
)
from pgheadroom.sources.recording import RecordedAnswer, Recording, read_files
from pgheadroom.sources.session import read_only_session

_TICK_S_MAX = 30.0

At = Callable[[str, Recording], None]
"""Called at `start` and `end` of the interval with what was read by then."""


Past = Callable[[Any], Sequence[RecordedAnswer]]
"""Gives the counters at `start`, at each `tick N` and at `end`, for a connection that is open."""


def request_of(length_s: float, *, samples: bool, tables: Sequence[str] = ()) -> ObservationRequest:
    """What to watch, for so long; the horizon is looked at ten times or each half minute."""
    ticks = max(min(round(length_s / 2), 10), round(length_s / _TICK_S_MAX), 1)
    return ObservationRequest(
        duration_s=length_s, ticks=ticks, samples=samples, tables=tuple(tables)
    )


def observe_live(
    conninfo: str,
    parameters: Mapping[str, str],
    request: ObservationRequest,
    *,
    source: Path | None = None,
    mask: bool = False,
    logs: Sequence[Path] = (),
    statements: Sequence[Path] = (),
    past: Past | None = None,
    say: Say,
    at: At | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> Profile:
    """
    Watch a database, or read what the psql script has written, and make the profile.

    Args:
        conninfo: A connection, as libpq takes it.
        parameters: Of the connection, beside it.
        request: What to watch and how long.
        source: The script's folder instead of a connection.
        mask: Put pseudonyms for names.
        logs: Server logs with statements.
        statements: Files of statements.
        past: Gives an interval's counters that were kept, instead of waiting for one.
        say: Called with the progress.
        at: Called at both ends of the interval; an error of its own ends the observation.
        sleep: Waits.

    Raises:
        ConnectionFailed: No server answers.
        InputError: A table that is not there; a file that is none.
    """
    # Files first: a mistake in them should not cost an interval.
    files = [read_statements(path) for path in statements]
    watched_logs = LogWatch(tuple(logs))

    def each(moment: str, recording: Recording) -> None:
        if at is not None:
            at(moment, recording)
        watched_logs.at(moment, recording)

    if source is not None:
        recording = with_gaps(read_files(source))
    else:
        with read_only_session(
            conninfo, {"application_name": APPLICATION_NAME, **parameters}
        ) as connection:
            if past is None:
                recording = watch(connection, request, say, each, sleep)
            else:
                recording = look_back(connection, request, past(connection), say, each)
    return observe(
        recording,
        find_classes(recording, watched_logs.read(recording, say), files),
        mask=mask,
        sampled=bool(recording.rows("sample")) if source is not None else request.samples,
        only=request.tables,
    )
