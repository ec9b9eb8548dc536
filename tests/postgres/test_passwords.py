"""
A password that is planted in a connection is in no file, no stream and no process list.

What happened: `advise CONN --html` wrote its command line, password and all, into the report.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import observed
import pytest

from pgheadroom.cli import app
from pgheadroom.servers import Cluster, Host, ServerPrograms

pytestmark = [pytest.mark.pg, pytest.mark.usefixtures("run_parent")]

PLANTED = "pl4nted"
PASSWORD = f"{PLANTED}: s3cr@t/{PLANTED}'\\ &?#"
FORMS = ("uri", "parameter", "keyword", "environment", "service", "passfile")


@pytest.fixture(scope="module")
def guarded(newest: ServerPrograms) -> Iterator[Cluster]:
    """A server on which one role needs its password."""
    with Host(newest, label="test") as host:
        cluster = host.cluster("guarded")
        cluster.start({})
        with cluster.connect() as connection:
            quoted = PASSWORD.replace("'", "''")
            connection.execute(f"CREATE ROLE owner SUPERUSER LOGIN PASSWORD '{quoted}'")
            connection.execute("CREATE TABLE t AS SELECT 1 AS a, 'x' AS b")
            connection.execute("ALTER TABLE t ADD PRIMARY KEY (a)")
        hba = cluster.data_dir / "pg_hba.conf"
        hba.write_text("local all owner scram-sha-256\n" + hba.read_text())
        observed.reload(cluster)
        yield cluster


Run = Callable[..., int]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """The program in this process, as if it had been typed; its exit code."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for name in [name for name in os.environ if name.startswith("PG") and "HEADROOM" not in name]:
        monkeypatch.delenv(name)

    def typed(*arguments: str) -> int:
        monkeypatch.setattr(sys, "argv", ["pgheadroom", *arguments])
        return app.run(arguments)

    return typed


def connection(
    form: str, cluster: Cluster, password: str, monkeypatch: pytest.MonkeyPatch
) -> tuple[str, ...]:
    """Arguments of a connection, its password given in one of the ways that libpq has."""
    given = cluster.client_env()
    host, port = given["PGHOST"], given["PGPORT"]
    plain = f"host={host} port={port} user=owner dbname=postgres"
    place = f"/postgres?host={quote(host, safe='')}&port={port}"
    outside = Path(host)  # the server's sockets: not where the commands write
    if form == "uri":
        return (f"postgresql://owner:{quote(password, safe='')}@{place}",)
    if form == "parameter":
        return (f"postgresql://owner@{place}&password={quote(password, safe='')}",)
    if form == "keyword":
        escaped = password.replace("\\", "\\\\").replace("'", "\\'")
        return (f"{plain} password = '{escaped}'",)
    if form == "environment":
        monkeypatch.setenv("PGPASSWORD", password)
        return ("-h", host, "-p", port, "-U", "owner", "-d", "postgres")
    if form == "service":
        file = outside / "services"
        lines = [f"[here]\nhost={host}\nport={port}\nuser=owner\ndbname=postgres\n"]
        file.write_text("".join([*lines, f"password={password}\n"]))
        monkeypatch.setenv("PGSERVICEFILE", str(file))
        return ("service=here",)
    file = outside / "passwords"
    file.write_text("*:*:*:owner:" + password.replace("\\", "\\\\").replace(":", "\\:") + "\n")
    file.chmod(0o600)
    return (f"{plain} passfile={file}",)


def planted_in(folder: Path) -> list[str]:
    """Files below a folder that hold the password, or whose names do."""
    return [
        str(path)
        for path in folder.rglob("*")
        if PLANTED in path.name or (path.is_file() and PLANTED.encode() in path.read_bytes())
    ]


@pytest.mark.parametrize("form", FORMS)
def test_no_trace_of_a_password(
    form: str,
    guarded: Cluster,
    run: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Every command that takes a connection, with all the files that it can write."""
    to = connection(form, guarded, PASSWORD, monkeypatch)
    assert run("layout", *to, "-o", "layout.txt") == 0
    assert run("observe", *to, "--for", "200ms", "-o", "observed.json") == 0
    assert run("observe", *to, "--print-grants") == 0
    plans = ["--plan", "plan.json", "--plan", "plan.md", "--plan", "plan.sql"]
    assert run("advise", *to, "--for", "200ms", "--html", "advice.html", *plans, "-v") == 0
    page = (tmp_path / "advice.html").read_text()
    assert "pgheadroom advise" in page
    assert ("********" in page) == (form in ("uri", "parameter", "keyword"))
    assert run("apply", "plan.json", *to, "--yes") == 0
    assert run("verify", "plan.json", *to, "--for", "200ms", "-o", "verified.txt") in (0, 1, 6)
    assert json.loads((tmp_path / "plan.json").read_text())["kind"] == "plan"
    said = capfd.readouterr()
    assert PLANTED not in said.out + said.err
    assert planted_in(tmp_path) == []


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("trouble", ["wrong password", "no server", "a bug", "usage"])
def test_no_trace_when_it_fails(
    form: str,
    trouble: str,
    guarded: Cluster,
    run: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Libpq's messages, ours, and the details of an error that nobody expected."""
    password = f"{PASSWORD}x" if trouble == "wrong password" else PASSWORD
    to = list(connection(form, guarded, password, monkeypatch))
    code = 3
    if trouble == "no server":
        port = guarded.client_env()["PGPORT"]
        to = [part.replace(f"port={port}", "port=1") for part in to]
        to = ["1" if part == port else part for part in to]
        monkeypatch.setenv("PGPORT", "1")
        if form == "service":
            file = Path(os.environ["PGSERVICEFILE"])
            file.write_text(file.read_text().replace(f"port={port}", "port=1"))
    elif trouble == "a bug":
        code = 70

        def broken(*arguments: object, **_: object) -> None:
            raise RuntimeError(f"while doing something with {arguments} for {' '.join(to)}")

        monkeypatch.setattr("pgheadroom.sources.session.read_only_session", broken)
    elif trouble == "usage":
        code = 2
        to = [*to, *to]
        if form == "environment":
            to.append("surplus")
    assert run("layout", *to, *(["surplus"] if trouble == "usage" else [])) == code
    said = capfd.readouterr()
    assert PLANTED not in said.out + said.err
    assert planted_in(tmp_path) == []


@pytest.mark.parametrize(
    "target",
    [
        f"postgresql://me:{PLANTED}/x@nowhere.invalid/db",  # libpq takes it for a port
        f"postgresql://me:x@{PLANTED}@nowhere.invalid/db",  # and here for a host
        f"host=/nowhere password=two {PLANTED}",
        f"host=/nowhere passwort={PLANTED}",
        f"host=/nowhere\tpassword = {PLANTED}",
    ],
)
def test_mistyped_connections(target: str, run: Run, capfd: pytest.CaptureFixture[str]) -> None:
    """What libpq misunderstands it repeats: as a port, a host, an option."""
    for command in (["layout"], ["observe"], ["advise"], ["lab", "run", "update-cost", "--server"]):
        assert run(*command, target) in (2, 3)
    said = capfd.readouterr()
    assert PLANTED not in said.out + said.err


def test_the_laboratory(
    guarded: Cluster,
    run: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Records and reports, and the process list: client programs get it in a closed file."""
    (uri,) = connection("uri", guarded, PASSWORD, monkeypatch)
    seen: set[str] = set()
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.02):
            for process in Path("/proc").glob("[0-9]*"):
                try:
                    text = (process / "cmdline").read_bytes() + (process / "comm").read_bytes()
                except OSError:
                    continue
                if PLANTED.encode() in text:
                    seen.add(text.decode(errors="replace"))

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        cells = ["--set", "fillfactor=80", "--set", "filler_length=64", "--set", "update_bid=0"]
        few = ["--scale", "1", "--repetitions", "1", "--record", "record", "--html", "lab.html"]
        assert run("lab", "run", "update-cost", "--server", uri, *cells, *few) == 0
        assert run("lab", "report", "record", "--all", "-o", "report.txt") == 0
    finally:
        done.set()
        watching.join()
    said = capfd.readouterr()
    assert PLANTED not in said.out + said.err
    assert planted_in(tmp_path) == []
    assert seen == set()
