"""
When commands of maintenance ran beside clients, by the log of the server that ran them.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Never

import pytest

from pgheadroom.errors import MeasurementInvalid
from pgheadroom.play.ended import Ended
from pgheadroom.play.maintenance import Maintainer
from pgheadroom.play.snapshots import RunProgress
from pgheadroom.profile import Profile, parse_profile

PID, ASKING = 4711, 4712
START_S = datetime(2026, 11, 27, 22, 30, 0, tzinfo=UTC).timestamp()
TABLE = 'a"b'
LOG = """\
2026-11-27 22:30:02.000 UTC [4711] LOG:  duration: 1000.000 ms  statement: VACUUM "a""b"
2026-11-27 22:30:02.500 UTC [4712] LOG:  duration: 400.000 ms  statement: EXPLAIN (FORMAT JSON) x
2026-11-27 22:30:02.600 UTC [4712] LOG:  duration: 0.300 ms  statement: EXPLAIN (FORMAT JSON) y
2026-11-27 22:30:03.000 UTC [9999] LOG:  duration: 900.000 ms  statement: TRUNCATE "a""b"
2026-11-27 22:30:05.000 UTC [4711] LOG:  duration: 2000.000 ms  statement: TRUNCATE "a""b"
"""


def _connect() -> Never:
    raise AssertionError("nothing is asked")


def _profile() -> Profile:
    table = {
        "name": TABLE,
        "rows": 10,
        "columns": [{"name": "k", "type": "int4"}],
        "indexes": [{"name": "i", "columns": ["k"], "unique": True}],
    }
    commands = [  # the later one first: the file's order is not the run's
        {"do": "truncate", "table": TABLE, "at_frac": 0.2},
        {"do": "vacuum", "table": TABLE, "at_frac": 0.1},
    ]
    data: dict[str, Any] = {
        "schema_version": 1,
        "table": [table],
        "operation": [{"table": TABLE, "kind": "insert"}],
        "run": {"operations": 10, "clients": 2, "maintenance": commands},
    }
    return parse_profile(data)


def _maintainer(folder: Path, progress: Any, ran: list[int]) -> Maintainer:
    made = Maintainer(_profile(), _connect, progress, folder, _ran=ran, _pids=[PID, ASKING])
    (folder / "log").write_text(LOG, encoding="utf-8")
    return made


def test_commands_lie_where_the_server_ran_them(tmp_path: Path) -> None:
    """
    Ten transactions end half a second after each other; asked for were 0.1 and 0.2 of the run.

    What other sessions ran is none of these, VACUUM and what took less than a millisecond hold
    nobody up, and a name may have quotes. A VACUUM that took so long may have waited for a lock
    most of the time, behind all its work.
    """
    ended = Ended([START_S + 0.5 * n + 0.25 for n in range(10)])
    progress = RunProgress(_profile(), None)  # type: ignore[arg-type]
    maintained, holds = _maintainer(tmp_path, progress, [1, 0]).placed(tmp_path / "log", 0, ended)
    assert maintained == ((0.6, 1.0), (0.2, 0.2))
    assert [(hold.began, hold.ended) for hold in holds] == [
        ((0.4, 0.4), (0.5, 0.5)),
        ((0.6, 0.6), (1.0, 1.0)),
    ]


def test_a_short_vacuum_lies_anywhere_within_its_time(tmp_path: Path) -> None:
    """Below 50 ms it has had every lock at once."""
    ended = Ended([START_S + 1.9 + 0.01 * n for n in range(20)])
    progress = RunProgress(_profile(), None)  # type: ignore[arg-type]
    maintainer = _maintainer(tmp_path, progress, [1, 0])
    log = tmp_path / "log"
    log.write_text(LOG.replace("duration: 1000.000 ms", "duration: 45.000 ms"), encoding="utf-8")
    (_, (began, done)), _ = maintainer.placed(log, 0, ended)
    assert began < done - 0.1


def test_a_command_without_a_line_makes_no_proof(tmp_path: Path) -> None:
    """It ran, and nobody knows when."""
    progress = RunProgress(_profile(), None)  # type: ignore[arg-type]
    maintainer = _maintainer(tmp_path, progress, [1, 0, 1])
    with pytest.raises(MeasurementInvalid, match="does not say when it ran VACUUM"):
        maintainer.placed(tmp_path / "log", 0, Ended([START_S]))
