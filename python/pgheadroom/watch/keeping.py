"""
What `watch` keeps for other hours: the counters that `observe` reads, and those of doctor's rules.

Both are asked for by their own queries and kept as they were answered, so that whoever reads the
history later gets what a live server would have said then. A moment takes as long as a pass of
`observe` and one of the doctor's rules that count; it is kept every few minutes.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pgheadroom.doctor import all_rules
from pgheadroom.errors import HeadroomError
from pgheadroom.history import History, HistoryOrigin
from pgheadroom.history.kept import KeptAnswer
from pgheadroom.sources.observing import ask, read_counters
from pgheadroom.sources.recording import RecordedAnswer, Recording

if TYPE_CHECKING:
    import psycopg

OF_OBSERVE = "observe/"
OF_DOCTOR = "doctor/"
EVERY_S = 300.0
"""How often a moment is kept: a day has 288 of them. Arbitrary."""
KEEP_S = 7 * 86_400.0


class Keeper:
    """
    Keeps moments of one database in a file.

    Args:
        path: The file; begun where there is none.
        connection: The watcher's.
        every_s: How often.
        keep_s: How long.

    Raises:
        InputError: The file is no history, damaged, or of another database.
    """

    def __init__(
        self,
        path: Path,
        connection: psycopg.Connection[Any],
        *,
        every_s: float = EVERY_S,
        keep_s: float = KEEP_S,
    ) -> None:
        self._every_s = every_s
        self._keep_s = keep_s
        self._due_s = time.monotonic()
        self._history = History.extend(path, origin_of(connection))
        self._before = self._last_kept()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *arguments: object) -> None:
        self._history.__exit__(*arguments)

    def _last_kept(self) -> Recording | None:
        """What an earlier run kept last: what happened since then is the next moment's."""
        moments = self._history.moments()
        if not moments:
            return None
        return Recording(tuple(recorded(self._history.answers(moments[-1]), "start")))

    def keep_if_due(self, connection: psycopg.Connection[Any]) -> str | None:
        """
        Keep a moment where the time has come.

        Returns:
            Why it could not be kept; None: it was, or it is not time.
        """
        if time.monotonic() < self._due_s:
            return None
        self._due_s = time.monotonic() + self._every_s
        try:
            self.keep(connection)
        except HeadroomError as error:
            return f"history: {error}"
        return None

    def keep(self, connection: psycopg.Connection[Any]) -> None:
        """
        Keep a moment.

        Raises:
            DiskFull: No room.
            InputError: The file cannot be written.
        """
        recording = read_counters(connection)
        answers = {
            f"{OF_OBSERVE}{line.query}": KeptAnswer(rows=line.rows, failed=line.failed)
            for line in recording.lines
            if line.moment == "start"
        }
        answers |= _of_rules(connection)
        instant = recording.row("instant", "start")
        if instant is None:
            return  # it did not answer; the next one may
        self._history.add(
            float(instant["at_epoch_s"]),
            _life(recording),
            _changes(self._before, recording),
            answers,
            keep_s=self._keep_s,
        )
        self._before = recording


def recorded(answers: Mapping[str, KeptAnswer], moment: str) -> list[RecordedAnswer]:
    """What was kept of `observe`'s answers, as those of a pass."""
    return [
        RecordedAnswer(
            query=name.removeprefix(OF_OBSERVE),
            moment=moment,
            rows=answer.rows,
            failed=answer.failed,
        )
        for name, answer in answers.items()
        if name.startswith(OF_OBSERVE)
    ]


def origin_of(connection: psycopg.Connection[Any]) -> HistoryOrigin:
    """Which database this is."""
    found = ask(connection, ("identity", "cluster"))
    identity = found.row("identity", "shape") or {}
    return HistoryOrigin(
        system_identifier=str((found.row("cluster", "shape") or {}).get("system_identifier", "")),
        database_oid=int(identity["database_oid"]),
        database=str(identity["database"]),
        server=str(identity["server_version"]).split()[0],
    )


def _of_rules(connection: psycopg.Connection[Any]) -> dict[str, KeptAnswer]:
    """The rows of the doctor's rules that count something."""
    import psycopg as driver  # noqa: PLC0415 - loads libpq
    from psycopg.rows import dict_row  # noqa: PLC0415 - loads libpq

    major = connection.info.server_version // 10000
    found: dict[str, KeptAnswer] = {}
    for rule in all_rules():
        query = rule.text_for(major)
        if not rule.counters or query is None:
            continue
        try:
            with connection.cursor(row_factory=dict_row) as cursor:
                rows = tuple(cursor.execute(query.encode()).fetchall())
        except driver.Error as error:
            if connection.broken or connection.closed or error.sqlstate is None:
                raise
            failed = f"{error.sqlstate} {type(error).__name__}"
            found[f"{OF_DOCTOR}{rule.id}"] = KeptAnswer(rows=(), failed=failed)
        else:
            found[f"{OF_DOCTOR}{rule.id}"] = KeptAnswer(rows=rows)
    return found


def _life(recording: Recording) -> str:
    """From when on each kind of counter counts; a crash begins all of them anew."""
    kinds = ("database_counters", "wal_counters", "checkpoint_counters")
    resets = [(recording.row(kind, "start") or {}).get("stats_reset_epoch_s") for kind in kinds]
    return json.dumps(resets)


_CHANGES = ("n_tup_upd", "n_tup_hot_upd", "n_tup_newpage_upd")


def _changes(before: Recording | None, now: Recording) -> dict[str, float | None]:
    """
    What happened since the moment before, of all tables and of the server, for a chart.

    Table by table, since one that is dropped takes its counts with it. None where there is none
    before, statistics were reset, or a counter went back.
    """
    found: dict[str, float | None] = dict.fromkeys((*_CHANGES, "wal_bytes"))
    if before is None or _life(before) != _life(now):
        return found
    earlier = {row["oid"]: row for row in before.rows("table_counters", "start")}
    for name in _CHANGES:
        changes = []
        for row in now.rows("table_counters", "start"):
            count, first = row.get(name), earlier.get(row["oid"], {}).get(name, 0)
            changes.append(None if count is None or first is None else count - first)
        found[name] = _sum(changes)
    first, last = (_position(recording) for recording in (before, now))
    if first is not None and last is not None:
        found["wal_bytes"] = _sum([last - first])
    return found


def _position(recording: Recording) -> int | None:
    position = (recording.row("instant", "start") or {}).get("wal_position_bytes")
    return None if position is None else int(position)


def _sum(changes: list[int | None]) -> float | None:
    known = [change for change in changes if change is not None and change >= 0]
    return float(sum(known)) if len(known) == len(changes) else None
