"""
What the twin foresees of autovacuum at two settings, held against a server that plays both.

    python tools/doctor_foreseen.py --server 18 --server 16

A table is written at a steady rate and watched for twenty seconds, as `doctor --for` does; then the
same work is played from a fresh load on at the settings that were in force, and at others. The page
is docs/accuracy/doctor-foreseen.md; 1 where an interval does not hold.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psycopg

from pgheadroom.doctor.foreseeing import AS_IT_IS, Foreseen, Way, WaysAsked, foresee
from pgheadroom.doctor.late_tables import profile_of
from pgheadroom.observe import request_of
from pgheadroom.profile import Profile
from pgheadroom.servers import Cluster, Host, ServerPrograms, find_client, find_programs
from pgheadroom.sources.observing import watch
from pgheadroom.sources.session import read_only_session

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "accuracy" / "doctor-foreseen.md"
Session = psycopg.Connection[Any]
_SETTINGS = {
    "autovacuum": "on",
    "autovacuum_naptime": "1s",
    "checkpoint_timeout": "30s",
    "max_wal_size": "4GB",
    "full_page_writes": "off",
}
_WATCH_S = 20.0
_WARM_S = 10.0
_LOOK_EVERY_S = 0.2
_AT_ONCE = 4
"""Servers side by side, each of which has little to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """
    A table and its work, and when autovacuum comes to it.

    Attributes:
        what: The case, in words.
        make: The table `t`, with rows; statements end with `;` and a line break.
        script: Of pgbench.
        rate_per_s: Transactions of it.
        other: How autovacuum is set otherwise.
        then: The statement that sets it so.
        settings: Of the server, beside the common ones.
    """

    what: str
    make: str
    script: str
    rate_per_s: int
    other: Way
    then: str
    settings: Mapping[str, str] = field(default_factory=dict)


def _table(rows: int, width: int, scale: str, *, fillfactor: int = 100, index: bool = False) -> str:
    made = (
        f"CREATE TABLE t (id int PRIMARY KEY, v int NOT NULL, filler char({width}) NOT NULL) WITH "
        f"(fillfactor = {fillfactor}, autovacuum_vacuum_scale_factor = {scale});\n"
        f"INSERT INTO t SELECT i, i, '' FROM generate_series(1, {rows}) i;\n"
    )
    return made + ("CREATE INDEX t_v ON t (v);\n" if index else "") + "VACUUM ANALYZE t;\n"


def _update(rows: int) -> str:
    return f"\\set id random(1, {rows})\nUPDATE t SET v = v + 1 WHERE id = :id;\n"


def _scaled(scale: str) -> dict[str, Any]:
    name = "autovacuum_vacuum_scale_factor"
    return {"other": Way(options={name: scale}), "then": f"ALTER TABLE t SET ({name} = {scale})"}


CASES = (
    Case(
        what="updates that are HOT, 10,000 rows",
        make=_table(10_000, 300, "0.02", fillfactor=50),
        script=_update(10_000),
        rate_per_s=200,
        **_scaled("0.2"),
    ),
    Case(
        what="updates that are not HOT, 10,000 rows",
        make=_table(10_000, 300, "0.02", index=True),
        script=_update(10_000),
        rate_per_s=200,
        **_scaled("0.2"),
    ),
    Case(
        what="updates that are not HOT, 10,000 rows, at a cost limit that is too low",
        settings={"autovacuum_vacuum_cost_limit": "20", "autovacuum_vacuum_cost_delay": "100ms"},
        make=_table(10_000, 300, "0.05", index=True),
        script=_update(10_000),
        rate_per_s=200,
        other=Way(settings={"autovacuum_vacuum_cost_limit": "200"}),
        then="ALTER SYSTEM SET autovacuum_vacuum_cost_limit = 200",
    ),
    Case(
        what="rows that come and go, 10,000 at a time",
        make=_table(10_000, 300, "0.02") + "CREATE SEQUENCE s;\n",
        script="SELECT nextval('s') AS n \\gset\nBEGIN;\n"
        "INSERT INTO t VALUES (:n + 10000, 0, '');\nDELETE FROM t WHERE id = :n;\nCOMMIT;\n",
        rate_per_s=200,
        **_scaled("0.2"),
    ),
    Case(
        what="updates that are HOT, 1,000 short rows",
        make=_table(1_000, 100, "0.2"),
        script=_update(1_000),
        rate_per_s=100,
        **_scaled("2"),
    ),
    Case(
        what="updates that are not HOT, 60,000 rows of 930 bytes",
        make=_table(60_000, 900, "0.02", index=True),
        script=_update(60_000),
        rate_per_s=300,
        **_scaled("0.1"),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The later half of a play: the most dead rows at a time; vacuums a day."""

    dead_rows: int
    vacuums: int
    length_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A case at one setting; `foreseen` says why not where nothing is."""

    version: str
    case: Case
    setting: str
    foreseen: Foreseen | str
    measured: Measured

    @property
    def is_right(self) -> bool:
        """Nothing is claimed, or the interval has what was measured."""
        if isinstance(self.foreseen, str):
            return True
        low, _, high = self.foreseen.dead_rows
        return low <= self.measured.dead_rows <= high


def _run(session: Session, statements: str) -> None:
    for statement in filter(str.strip, statements.split(";\n")):
        session.execute(statement.encode())


@contextmanager
def _at_work(cluster: Cluster, programs: ServerPrograms, case: Case) -> Iterator[None]:
    """From a fresh load on."""
    with cluster.connect() as session:
        _run(session, "DROP TABLE IF EXISTS t;\nDROP SEQUENCE IF EXISTS s;\n" + case.make)
    pgbench, _ = find_client("pgbench", programs)
    with TemporaryDirectory(prefix="pgh-work-") as folder:
        script = Path(folder) / "work.sql"
        script.write_text(case.script, encoding="utf-8")
        command = [pgbench, "-n", "-f", script, "-R", str(case.rate_per_s), "-T", "3600"]
        work = subprocess.Popen(
            [*command, "postgres"],
            env=cluster.client_env(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            yield
        finally:
            work.terminate()
            work.wait()


def _watched(cluster: Cluster, programs: ServerPrograms, case: Case) -> Profile:
    env = cluster.client_env()
    target = f"host={env['PGHOST']} port={env['PGPORT']} user=postgres dbname=postgres"
    with _at_work(cluster, programs, case):
        time.sleep(_WARM_S)
        with read_only_session(target, {}) as connection:
            request = request_of(_WATCH_S, samples=False, tables=("t",))
            recording = watch(connection, request, lambda _: None)
    return profile_of(recording, ("t",))


def _played(
    cluster: Cluster, programs: ServerPrograms, case: Case, then: str, play_s: float
) -> Measured:
    with cluster.connect() as session, _at_work(cluster, programs, case):
        _run(session, then)
        session.execute("SELECT pg_reload_conf()")
        most, half, vacuums = 0, 0, 0
        begin_s = time.monotonic()
        while (passed_s := time.monotonic() - begin_s) < play_s:
            row = session.execute(
                "SELECT n_dead_tup, autovacuum_count FROM pg_stat_user_tables WHERE relname = 't'"
            ).fetchone()
            assert row is not None, "the table is there"
            vacuums = row[1]
            if passed_s < play_s / 2:
                half = vacuums
            else:
                most = max(most, row[0])
            time.sleep(_LOOK_EVERY_S)
    return Measured(dead_rows=most, vacuums=vacuums - half, length_s=play_s / 2)


def lines_of(programs: ServerPrograms, case: Case, play_s: float) -> list[Line]:
    """A case on a server: what is foreseen, and what comes."""
    with Host(programs, label="doctor-foreseen") as host:
        cluster = host.cluster("foreseen")
        cluster.start({**_SETTINGS, **case.settings})
        profile = _watched(cluster, programs, case)
        ways = (AS_IT_IS, case.other)
        (answer,) = foresee(profile, [WaysAsked(table=profile.tables[0].name, ways=ways)])
        made = []
        for number, then in enumerate(("", case.then)):
            made.append(
                Line(
                    version=str(programs.version),
                    case=case,
                    setting=then or "as it was set",
                    foreseen=answer if isinstance(answer, str) else answer[number],
                    measured=_played(cluster, programs, case, then, play_s),
                )
            )
            sys.stderr.write(f"{_cells(made[-1])}\n")
        return made


def _cells(line: Line) -> str:
    measured, foreseen = line.measured, line.foreseen
    rate = f"{measured.vacuums * 86_400 / measured.length_s:,.0f} ({measured.vacuums} counted)"
    setting = line.setting if line.setting == "as it was set" else f"`{line.setting}`"
    cells = [line.case.what, setting]
    if isinstance(foreseen, str):
        cells += [f"nothing: {foreseen}", f"{measured.dead_rows:,}", "", rate]
    else:
        low, _, high = foreseen.dead_rows
        mark = "" if line.is_right else " **not held**"
        cells += [f"{low:,} to {high:,}", f"{measured.dead_rows:,}{mark}"]
        least, most = foreseen.vacuums_per_day
        cells += [f"{least:,.0f} to {most:,.0f}", rate]
    return f"| {' | '.join(cells)} |"


def page(lines: Sequence[Line], play_s: float) -> str:
    """The page of all lines."""
    text = [
        "# Dead rows that the doctor foresees, held against servers",
        "",
        "What `doctor --for` foresees of a table at two settings of autovacuum, and what a server "
        "then had.",
        "It is written by `python tools/doctor_foreseen.py`, from real runs: a table at work was "
        f"watched for {_WATCH_S:.0f} s, and then the same work was played twice from a fresh load "
        f"on, for {play_s:.0f} s each.",
        "",
        "- Dead rows are the most at a time that `n_dead_tup` shows, in the later half of a play; "
        "the interval is to hold it.",
        "- Vacuums are counted over that half, so one more or less is much; nothing is claimed.",
        "- Where the twin does not repeat what was watched, it foresees nothing, and says why.",
        "- How wide an interval is was set after earlier runs: two plays at the low limit fell "
        "outside of one without a VACUUM at half its pace. All lines are of runs since.",
    ]
    for version in dict.fromkeys(line.version for line in lines):
        own = [line for line in lines if line.version == version]
        told = [line for line in own if isinstance(line.foreseen, Foreseen)]
        held = sum(line.is_right for line in told)
        text += [
            "",
            f"## {version}",
            "",
            f"{held} of {len(told)} intervals hold; {len(own) - len(told)} plays without one.",
            "",
            "| case | autovacuum | dead rows foreseen | measured | vacuums a day foreseen "
            "| measured |",
            "|---|---|---:|---:|---:|---:|",
            *map(_cells, own),
        ]
    return "\n".join([*text, ""])


def main() -> int:
    """Play and write the page; 1 where an interval does not hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", action="append", required=True)
    parser.add_argument("--play", type=float, default=120.0, metavar="SECONDS")
    options = parser.parse_args()
    place = "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108 - where there is room
    with TemporaryDirectory(prefix="pgh-foreseen-", dir=place) as folder:
        Path(folder).chmod(0o755)
        os.environ.setdefault("PGHEADROOM_TMPDIR", folder)
        asked = [(find_programs(spec), case) for spec in options.server for case in CASES]
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            played = pool.map(lambda one: lines_of(*one, options.play), asked)
            lines = [line for each in played for line in each]
    PAGE.write_text(page(lines, options.play), encoding="utf-8")
    return int(not all(line.is_right for line in lines))


if __name__ == "__main__":
    sys.exit(main())
