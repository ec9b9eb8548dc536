"""What servers do where a BRIN index cannot summarise a range, and that the twin says the same."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from pgheadroom.errors import LabError, TwinError
from pgheadroom.play import play
from pgheadroom.predict import predict
from pgheadroom.profile import parse_profile
from pgheadroom.prove import prove
from pgheadroom.servers import Cluster, Host, ServerPrograms

pytestmark = pytest.mark.usefixtures("run_parent")

Json = dict[str, Any]
NAMES = [f"c{number}" for number in range(32)]
SIZE = re.compile(r'index row size (\d+) exceeds maximum 8152 for index "b"')
TOO_LONG = "index row size 8720 exceeds maximum 8152"


def _long_summaries(after: int) -> Json:
    """Strings of which two a column are above a page, and a BRIN of rows behind `after`."""
    columns: list[Json] = [{"name": "id", "type": "int4", "values": {"kind": "serial"}}]
    values = {"kind": "random", "ndistinct": 1000}
    columns += [
        {"name": name, "type": "text", "width": 130, "values": values, "null_frac": 0.8}
        for name in NAMES
    ]
    brin = {"name": "b", "columns": NAMES, "method": "brin", "pages_per_range": 16}
    return {
        "schema_version": 1,
        "table": [
            {
                "name": "t",
                "rows": 1000,
                "columns": columns,
                "indexes": [brin | {"where": f"id > {after}"}],
            }
        ],
        "operation": [{"table": "t", "kind": "insert"}],
        "run": {
            "operations": 800,
            "maintenance": [{"do": "vacuum", "table": "t", "at_frac": 1.0}],
        },
    }


@pytest.mark.parametrize(
    ("after", "during"), [(0, "transaction 0"), (1001, "transaction"), (1400, "VACUUM")]
)
def test_a_summary_above_a_page_ends_both_players(
    after: int, during: str, programs: ServerPrograms
) -> None:
    """At CREATE INDEX, at an INSERT and at a VACUUM: with the same bytes, by the same name."""
    profile = parse_profile(_long_summaries(after))
    with pytest.raises(LabError) as failed:
        play(profile, server=str(programs.bin_dir))
    with pytest.raises(TwinError, match=during) as said:
        predict(profile, server=str(programs.version))
    sizes = [SIZE.findall(str(error.value)) for error in (failed, said)]
    assert sizes[0], failed.value
    assert set(sizes[0]) == set(sizes[1])
    with pytest.raises(TwinError, match=SIZE.pattern):
        prove(profile, server=str(programs.bin_dir))


@pytest.fixture
def server(programs: ServerPrograms) -> Iterator[Cluster]:
    """A server of the version at hand, whose autovacuum is awake every second."""
    with Host(programs) as host:
        cluster = host.cluster("main")
        settings = {"autovacuum_naptime": "1s", "autovacuum_vacuum_insert_threshold": "1"}
        cluster.start(settings | {"log_min_messages": "warning"})
        yield cluster


def _fill(db: psycopg.Connection[Any], autovacuum: str) -> None:
    """Five ranges of a BRIN, of which the last four are full of strings that are too long."""
    names = NAMES[:9]
    strings = [f"string_agg(md5(i || '{name}' || g), '' ORDER BY g)" for name in names]
    for statement in (
        f"CREATE TABLE t (id int, {' text, '.join(names)} text) WITH (autovacuum_enabled = off)",
        f"CREATE INDEX b ON t USING brin ({', '.join(names)}) WITH (pages_per_range = 2)",
        "INSERT INTO t SELECT generate_series(1, 700)",
        f"INSERT INTO t SELECT i, {', '.join(strings)} FROM generate_series(1, 40) i,"
        " generate_series(1, 15) g GROUP BY i",
        f"ALTER TABLE t SET (autovacuum_enabled = {autovacuum})",
    ):
        db.execute(statement)  # type: ignore[call-overload]


def _vacuumed(db: psycopg.Connection[Any]) -> tuple[int, int]:
    time.sleep(0.2)  # statistics come a little later
    row = db.execute(
        "SELECT vacuum_count, autovacuum_count FROM pg_stat_user_tables WHERE relname = 't'"
    ).fetchone()
    assert row is not None
    return row[0], row[1]


def _fails(db: psycopg.Connection[Any]) -> bool:
    """Whether VACUUM ends with the server's words."""
    try:
        db.execute("VACUUM t")
    except psycopg.errors.ProgramLimitExceeded as error:
        return TOO_LONG in str(error)
    return False


def test_a_vacuum_fails_once_a_range(server: Cluster) -> None:
    """The placeholder of the range stays, so the next VACUUM comes to the next one."""
    with server.connect(autocommit=True) as db:
        _fill(db, "off")
        failures = 0
        while _fails(db):
            failures += 1
            assert _vacuumed(db) == (0, 0)
        assert 2 <= failures <= 5
        assert _vacuumed(db) == (1, 0)
        for statement in ("REINDEX INDEX b", "VACUUM FULL t"):
            with pytest.raises(psycopg.errors.ProgramLimitExceeded, match=TOO_LONG):
                db.execute(statement)  # type: ignore[call-overload]


def test_autovacuum_goes_on(server: Cluster) -> None:
    """It says so in the log, once a range, and the first VACUUM that is counted is the last."""
    with server.connect(autocommit=True) as db:
        _fill(db, "on")
        deadline = time.monotonic() + 60
        while _vacuumed(db) == (0, 0):
            assert time.monotonic() < deadline, server.log_tail()
        said = [line for line in server.log_path.read_text().splitlines() if TOO_LONG in line]
        assert 2 <= len(said) <= 5


def test_a_row_that_waits_ends_a_vacuum(server: Cluster) -> None:
    """Its expression fails for VACUUM before it does for its own insertion; dead, for nobody."""
    filler = "SELECT i, 1, 1, repeat('x', 500) FROM generate_series({}, {}) i"
    with (
        server.connect(autocommit=True) as db,
        server.connect(autocommit=True) as holds,
        server.connect(autocommit=True) as waits,
    ):
        for statement in (
            "CREATE TABLE e (id int PRIMARY KEY, a int, b int, pad text)"
            " WITH (autovacuum_enabled = off)",
            "CREATE INDEX er ON e USING brin ((a / b)) WITH (pages_per_range = 1)",
            "INSERT INTO e " + filler.format(1, 200),
        ):
            db.execute(statement)  # type: ignore[call-overload]
        holds.execute("BEGIN")
        holds.execute("INSERT INTO e VALUES (1000, 1, 1, 'x')")

        def insert() -> None:
            with pytest.raises(psycopg.errors.DivisionByZero):
                waits.execute("INSERT INTO e VALUES (1000, 1, 0, repeat('y', 500))")

        thread = threading.Thread(target=insert)
        thread.start()
        waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted"
        while db.execute(waiting).fetchone() == (0,):
            time.sleep(0.05)
        db.execute("INSERT INTO e " + filler.format(2001, 2100))  # type: ignore[call-overload]
        with pytest.raises(psycopg.errors.DivisionByZero) as failed:
            db.execute("VACUUM e")
        assert failed.value.diag.context == ('while cleaning up index "er" of relation "public.e"')
        db.execute("VACUUM e")
        db.execute("ANALYZE e")
        holds.execute("ROLLBACK")
        thread.join()
        db.execute("VACUUM e")
        db.execute("REINDEX TABLE e")
