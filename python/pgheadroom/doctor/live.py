"""
Examining a database that a connection names.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pgheadroom.doctor.examining import APPLICATION_NAME, PastInterval, examine
from pgheadroom.doctor.late_tables import LateTables
from pgheadroom.doctor.rule import Rule
from pgheadroom.doctor.rules import all_rules
from pgheadroom.doctor.values import Diagnosis
from pgheadroom.progress import Say
from pgheadroom.sources.session import read_only_session


def examine_live(
    target: str,
    parameters: Mapping[str, str],
    *,
    interval_s: float | None = None,
    rules: Sequence[Rule] | None = None,
    past: Callable[[Any], PastInterval] | None = None,
    say: Say = lambda _: None,
    sleep: Callable[[float], None] = time.sleep,
) -> Diagnosis:
    """
    Examine a database, only reading.

    Args:
        target: A connection, as libpq takes it.
        parameters: Of the connection, beside it.
        interval_s: Between two readings of counters; None: one reading.
        rules: Which look; None: all.
        past: Gives the counters of an interval that is over, for a connection that is open.
        say: Told what happens, for people.
        sleep: Waits.

    Raises:
        ConnectionFailed: No server answers.
    """
    named = {"application_name": APPLICATION_NAME, **parameters}
    looking = all_rules() if rules is None else rules
    with read_only_session(target, named) as connection:
        kept = None if past is None else past(connection)
        if interval_s is None:
            return examine(connection, looking, past=kept, say=say)
        late = LateTables(connection, looking, say, sleep)
        found = examine(connection, looking, interval_s=interval_s, say=say, sleep=late.wait)
    return late.tell(found)
