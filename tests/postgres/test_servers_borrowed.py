"""A database of our own on somebody's server: made, used, dropped; nothing else is touched."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from footprint import DEADLINE_S, start_time

from pgheadroom.errors import ConnectionFailed, InputError, PrivilegeMissing, UnsupportedServer
from pgheadroom.servers import BorrowedServer, Cluster, Host, ServerPrograms, borrowed, find_client
from pgheadroom.types import PgVersion

pytestmark = [pytest.mark.pg, pytest.mark.usefixtures("run_parent")]

CHILD = Path(__file__).with_name("borrow_in_child.py")
PASSWORD = r"s3:cr\et 'x'"


@pytest.fixture(scope="module")
def lender(programs: ServerPrograms) -> Iterator[Cluster]:
    """Somebody's server, with roles and databases of his."""
    with Host(programs, label="test") as host:
        cluster = host.cluster("lender")
        cluster.start({})
        with cluster.connect() as connection:
            connection.execute("CREATE ROLE tester LOGIN CREATEDB")
            connection.execute("CREATE ROLE reader LOGIN")
            connection.execute("CREATE ROLE guarded LOGIN CREATEDB PASSWORD 's3:cr\\et ''x'''")
            connection.execute("CREATE DATABASE precious OWNER tester")
        with cluster.connect("precious") as connection:
            connection.execute("CREATE TABLE t AS SELECT 1 AS a")
        # Only this role needs its password; the superuser of tests does not.
        hba = cluster.data_dir / "pg_hba.conf"
        hba.write_text("local all guarded scram-sha-256\n" + hba.read_text())
        with cluster.connect() as connection:
            connection.execute("SELECT pg_reload_conf()")
        yield cluster


def conninfo(lender: Cluster, user: str, **more: str) -> str:
    environment = lender.client_env()
    parameters = {
        "host": environment["PGHOST"],
        "port": environment["PGPORT"],
        "user": user,
        "dbname": "postgres",
    }
    return psycopg.conninfo.make_conninfo(**(parameters | more))


def databases(lender: Cluster) -> set[str]:
    with lender.connect() as connection:
        rows = connection.execute("SELECT datname FROM pg_database").fetchall()
    return {name for (name,) in rows}


OTHERS = {"postgres", "template0", "template1", "precious"}


def wait_for(lender: Cluster, expected: set[str]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while (found := databases(lender)) != expected:
        assert time.monotonic() < deadline, found
        time.sleep(0.05)


def test_a_database_of_our_own(lender: Cluster, run_parent: Path) -> None:
    """It exists while the block runs, in UTF8 and locale C, for sessions and client programs."""
    before = databases(lender)
    with BorrowedServer(conninfo(lender, "tester"), label="Fill-Factor!") as server:
        assert server.version == lender.version
        assert server.dbname.startswith("pgheadroom_fill_factor_")
        assert databases(lender) == before | {server.dbname}
        with server.connect() as connection:
            row = connection.execute(
                "SELECT current_database(), current_user, getdatabaseencoding(), datcollate, "
                "current_setting('application_name') "
                "FROM pg_database WHERE datname = current_database()"
            ).fetchone()
        assert row == (server.dbname, "tester", "UTF8", "C", "pgheadroom")
        pgbench, _ = find_client("pgbench", None)
        made = server.run([pgbench, "-i", "-q"])
        assert made.returncode == 0, made.stderr
        with server.connect() as connection:
            row = connection.execute("SELECT count(*) FROM pgbench_accounts").fetchone()
            assert row == (100000,)
        # A session that is still open does not hinder the end.
        still_open = server.connect()
    assert databases(lender) == before
    with pytest.raises(psycopg.OperationalError):
        still_open.execute("SELECT 1")
    still_open.close()
    assert list(run_parent.iterdir()) == []


def test_an_exception_drops_it_too(lender: Cluster) -> None:
    """And the error itself comes through."""
    with pytest.raises(ZeroDivisionError), BorrowedServer(conninfo(lender, "tester")):
        raise ZeroDivisionError
    assert databases(lender) == OTHERS


def test_the_right_to_create_a_database_is_missing(lender: Cluster, run_parent: Path) -> None:
    """The message names the role and the statement that would help."""
    with (
        pytest.raises(PrivilegeMissing, match="role reader") as caught,
        BorrowedServer(conninfo(lender, "reader")),
    ):
        pass
    assert caught.value.grant == 'ALTER ROLE "reader" CREATEDB;'
    assert list(run_parent.iterdir()) == []


def test_a_password_goes_to_clients_by_file_only(lender: Cluster) -> None:
    """Not in an environment or a command line; odd characters survive; wrong ones are not shown."""
    with BorrowedServer(conninfo(lender, "guarded", password=PASSWORD)) as server:
        environment = server.client_env()
        assert not any(PASSWORD in value for value in environment.values())
        passfile = Path(environment["PGPASSFILE"])
        assert passfile.stat().st_mode & 0o777 == 0o600
        psql, _ = find_client("psql", None)
        done = server.run([psql, "-XAtc", "SELECT current_database()"])
        assert (done.stdout, done.stderr) == (server.dbname + "\n", "")
        assert server._watchdog is not None
        for pid in (server._watchdog.pid, os.getpid()):
            for name in ("cmdline", "environ"):
                assert PASSWORD.encode() not in Path(f"/proc/{pid}/{name}").read_bytes()
    assert not passfile.exists()
    wrong = "wrong-" + PASSWORD
    with (
        pytest.raises(ConnectionFailed, match="guarded") as caught,
        BorrowedServer(conninfo(lender, "guarded", password=wrong)),
    ):
        pass
    assert wrong not in str(caught.value)
    assert databases(lender) == OTHERS


@pytest.mark.parametrize(
    "text",
    ["postgresql://u:secret@@host/db", "host=localhost secret", "postgresql://u:secret@h:port:x/"],
)
def test_a_malformed_connection_does_not_show_the_password(text: str) -> None:
    """What libpq could not read may be part of a password, so it is not repeated."""
    with pytest.raises((InputError, ConnectionFailed)) as caught, BorrowedServer(text):
        pass
    assert "secret" not in str(caught.value)


def test_no_server_there(run_parent: Path) -> None:
    """The error says what libpq says, and nothing is left."""
    with (
        pytest.raises(ConnectionFailed, match="No such file"),
        BorrowedServer(f"host={run_parent} user=u dbname=d password=hidden"),
    ):
        pass


def test_a_service_that_names_another_database(
    lender: Cluster, run_parent: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PGSERVICE tells how to connect; but its database is for maintenance only, not for clients."""
    environment = lender.client_env()
    file = run_parent / "service.conf"
    file.write_text(
        f"[mine]\nhost={environment['PGHOST']}\nport={environment['PGPORT']}\n"
        "user=tester\ndbname=precious\n"
    )
    monkeypatch.setenv("PGSERVICEFILE", str(file))
    monkeypatch.setenv("PGSERVICE", "mine")
    monkeypatch.setenv("PGDATABASE", "precious")
    psql, _ = find_client("psql", None)
    for given in ("", "service=mine"):
        with BorrowedServer(given) as server:
            with server.connect() as connection:
                assert connection.info.dbname == server.dbname
            done = server.run([psql, "-XAtc", "SELECT current_database()"])
            assert done.stdout == server.dbname + "\n", done.stderr
    file.unlink()
    assert databases(lender) == OTHERS


class Child:
    """A run with a borrowed database in another process."""

    def __init__(self, connection: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, CHILD, connection], stdout=subprocess.PIPE, text=True, process_group=0
        )
        assert self.process.stdout is not None
        told: dict[str, Any] = json.loads(self.process.stdout.readline())
        self.process.stdout.close()
        self.client: int = told["client"]
        self.watchdogs: list[int] = told["watchdogs"]
        self.dbname: str = told["dbname"]

    def kill_with_watchdogs(self) -> None:
        for pid in self.watchdogs:
            os.kill(pid, signal.SIGKILL)
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def test_killed_with_its_process_group(lender: Cluster, run_parent: Path) -> None:
    """The watchdogs end the client, drop the database and remove the folder."""
    child = Child(conninfo(lender, "guarded", password=PASSWORD))
    assert databases(lender) == OTHERS | {child.dbname}
    os.killpg(child.process.pid, signal.SIGKILL)
    child.process.wait()
    wait_for(lender, OTHERS)
    deadline = time.monotonic() + DEADLINE_S
    while list(run_parent.iterdir()) or any(map(start_time, [child.client, *child.watchdogs])):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_ctrl_c(lender: Cluster) -> None:
    """SIGINT to the group: dropped before the run has ended."""
    child = Child(conninfo(lender, "tester"))
    os.killpg(child.process.pid, signal.SIGINT)
    child.process.wait(timeout=DEADLINE_S)
    assert databases(lender) == OTHERS


def test_sweep(lender: Cluster) -> None:
    """
    The next run drops what a dead run of its role left, and nothing else.

    Not a live run's database, one of another role, one without our comment, or one whose name is
    not quite ours.
    """
    live = Child(conninfo(lender, "tester"))
    dead = Child(conninfo(lender, "tester"))
    dead.kill_with_watchdogs()
    mark = borrowed._MARK
    kept = {
        "pgheadroom_other_0123456789ab": ("postgres", mark),
        "pgheadroom_plain_0123456789ab": ("tester", "my own"),
        "pgheadroom_mine": ("tester", mark),
        "xpgheadroom_lab_0123456789ab": ("tester", mark),
    }
    with lender.connect() as connection:
        for name, (owner, comment) in kept.items():
            connection.execute(f"CREATE DATABASE {name} OWNER {owner}")
            connection.execute(f"COMMENT ON DATABASE {name} IS '{comment}'")
    try:
        # The dead run's session ends when the server notices; until then its lock is held.
        deadline = time.monotonic() + DEADLINE_S
        while dead.dbname in databases(lender):
            assert time.monotonic() < deadline
            # From another maintenance database: the lock of a live run must be seen there too.
            with BorrowedServer(conninfo(lender, "tester", dbname="precious")):
                pass
        assert databases(lender) == OTHERS | {live.dbname} | set(kept)
        with lender.connect("precious") as connection:
            assert connection.execute("SELECT a FROM t").fetchone() == (1,)
    finally:
        os.killpg(live.process.pid, signal.SIGINT)
        live.process.wait()
        with lender.connect() as connection:
            for name in kept:
                connection.execute(f"DROP DATABASE {name}")
    assert databases(lender) == OTHERS


def test_the_server_restarts_meanwhile(lender: Cluster) -> None:
    """The run says that it could not drop; the watchdog does it when the server is back."""
    server = BorrowedServer(conninfo(lender, "tester"))
    with pytest.raises(ConnectionFailed, match="could not be dropped"), server:
        lender.stop("immediate")
    lender.start({})
    wait_for(lender, OTHERS)


def test_a_standby(programs: ServerPrograms) -> None:
    """No database can be made there, and the message says so."""
    with Host(programs, label="test") as host:
        cluster = host.cluster("standby")
        (cluster.data_dir / "standby.signal").touch(mode=0o600)
        if os.geteuid() == 0:
            found = cluster.data_dir.stat()
            os.chown(cluster.data_dir / "standby.signal", found.st_uid, found.st_gid)
        cluster.start({"hot_standby": "on"})
        environment = cluster.client_env()
        connection = f"host={environment['PGHOST']} user=postgres dbname=postgres"
        with pytest.raises(UnsupportedServer, match="standby"), BorrowedServer(connection):
            pass


def test_the_version_is_known(lender: Cluster) -> None:
    """The server's, not that of any program at hand."""
    with BorrowedServer(conninfo(lender, "tester")) as server, server.connect() as connection:
        assert server.version == PgVersion.of_server(connection.info.server_version, "")
