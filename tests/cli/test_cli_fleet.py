"""Several servers side by side: three real ones, of which one is down."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from jsonschema import Draft202012Validator

from pgheadroom.servers import Cluster, Host, find_programs

Run = Callable[..., "CompletedProcess[str]"]
SCHEMA = Path(__file__).parents[2] / "docs" / "schema" / "doctor-fleet.schema.json"


@dataclass(frozen=True)
class Fleet:
    """Two that run, and one that has run."""

    bad: str
    good: str
    down: str
    services: Path


@pytest.fixture
def fleet(run_parent: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Fleet]:
    """18 with a fault (fsync is off), 16 without, and one of 18 that is stopped."""
    monkeypatch.setenv("PGHEADROOM_TMPDIR", str(run_parent))
    with ExitStack() as stack:
        eighteen = stack.enter_context(Host(find_programs("18")))
        sixteen = stack.enter_context(Host(find_programs("16")))
        bad, good, down = (
            eighteen.cluster("bad"),
            sixteen.cluster("good"),
            eighteen.cluster("down"),
        )
        bad.start({"fsync": "off"})
        good.start({"fsync": "on"})
        down.start({})
        down.stop()
        for cluster in (bad, good):
            with cluster.connect() as connection:
                connection.execute("CREATE TABLE t (id int PRIMARY KEY, v int)")
                connection.execute("INSERT INTO t SELECT i, 0 FROM generate_series(1, 1000) i")
                connection.execute("ANALYZE t")
        services = tmp_path / "services.conf"
        sections = [
            "\n".join((f"[{each.name}]", *(f"{key}={value}" for key, value in _where(each)), ""))
            for each in (bad, good, down)
        ]
        services.write_text("".join(sections))
        yield Fleet(*map(_conninfo, (bad, good, down)), services)


def _where(cluster: Cluster) -> list[tuple[str, str]]:
    env = cluster.client_env()
    return [
        ("host", env["PGHOST"]),
        ("port", env["PGPORT"]),
        ("user", "postgres"),
        ("dbname", "postgres"),
    ]


def _conninfo(cluster: Cluster) -> str:
    return " ".join(f"{key}={value}" for key, value in _where(cluster))


def test_doctor(fleet: Fleet, in_process: Run, tmp_path: Path) -> None:
    """Servers are rows of one page; the one that is down is named, and stops nothing."""

    def doctor(*options: str) -> CompletedProcess[str]:
        return in_process("doctor", "--service-file", str(fleet.services), *options)

    text = doctor()
    assert text.returncode == 3, text.stderr
    assert text.stdout.startswith("1 error on 2 servers, 1 did not answer\n")
    rows = [line.replace("|", " ").split() for line in text.stdout.splitlines()]
    assert ["bad", "18.4", "postgres", "1", "0", "0", "fsync-off:", "fsync"] in rows
    assert ["good", "16.14", "postgres", "0", "0", "0", "none"] in rows
    assert "\nerror: bad: fsync-off: fsync\n" in text.stdout
    assert "! down: no answer: no connection: " in text.stdout

    doctor("-f", "json", "-o", "fleet.json", "--html", "page.html", "--for", "0.2s")
    data = json.loads((tmp_path / "fleet.json").read_text(encoding="utf-8"))
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    assert [error.message for error in Draft202012Validator(schema).iter_errors(data)] == []
    assert (data["kind"], data["schema_version"]) == ("doctor_fleet", 1)
    bad, good, down = data["servers"]
    assert [each["name"] for each in data["servers"]] == ["bad", "good", "down"]
    assert [each["rule"] for each in bad["diagnosis"]["findings"]] == ["fsync-off"]
    assert good["diagnosis"]["findings"] == []
    assert good["diagnosis"]["examined"]["interval_s"] >= 0.2
    assert (bad["error"], down["diagnosis"]) == (None, None)
    assert "no connection" in down["error"]
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.count("<h1") == 1
    for words in ("bad", "good", "down", "no answer", "fsync is off"):
        assert words in page
    assert "<script" not in page

    found = list(csv.DictReader(io.StringIO(doctor("-f", "csv").stdout)))
    assert [(row["server"], row["rule"]) for row in found] == [("bad", "fsync-off")]
    ticket = doctor("-f", "markdown").stdout
    assert "## error: fsync-off, fsync" in ticket
    assert "# down\n\nNo answer: no connection" in ticket


def test_exit_codes_and_names(fleet: Fleet, in_process: Run) -> None:
    """All answer: 0, or 1 where findings fail a check. A password is in no name."""
    both = (f"{fleet.bad} password=hidden", fleet.good)
    assert in_process("doctor", *both).returncode == 0
    done = in_process("doctor", *both, "--fail-on", "error", "-f", "json")
    assert done.returncode == 1
    assert "hidden" not in done.stdout + done.stderr
    aside = ("--accept", "fsync-off:fsync", "--until", "9999-12-31")
    assert in_process("doctor", *both, "--fail-on", "error", *aside).returncode == 0
    assert in_process("doctor", *both, fleet.down, "--fail-on", "error").returncode == 3
    beside = in_process("doctor", fleet.good, "--service-file", str(fleet.services))
    assert beside.stdout.startswith("1 error on 3 servers, 1 did not answer\n")


def test_ctrl_c(fleet: Fleet, environment: dict[str, str], tmp_path: Path) -> None:
    """Whoever has enough is told what was found on each by then."""
    command = [sys.executable, "-m", "pgheadroom", "doctor", fleet.bad, fleet.good, "--for", "1h"]
    with subprocess.Popen(
        command,
        cwd=tmp_path,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stderr is not None
        assert process.stdout is not None
        said = [process.stderr.readline() for _ in range(2)]
        assert all("watching for 1 h 00 min" in line for line in said)
        os.kill(process.pid, signal.SIGINT)
        shown = process.stdout.read()
        assert shown.startswith("1 error on 2 servers\n")
        assert shown.count("over the whole 1 h 00 min, for the interval was cut short after") == 2
        assert process.wait() == 3, "not all that was asked for was found"


def test_mistakes(in_process: Run, tmp_path: Path) -> None:
    """What was found, what was expected; before anybody is asked."""
    (tmp_path / "none.conf").write_text("host=a\n")
    (tmp_path / "before.json").write_text("{}")
    for options, said in (
        (("dbname=a", "dbname=a"), "dbname=a is named twice"),
        (("--service-file", "none.conf"), "none.conf names no service: expected sections"),
        (("--service-file", "nowhere.conf"), "nowhere.conf"),
        (("dbname=a", "dbname=b", "--baseline", "before.json"), "--baseline does nothing"),
        (("dbname=a", "what is this"), "the connection is not understood"),
        (("--explain", "fsync-off", "--service-file", "none.conf"), "--service-file does nothing"),
    ):
        done = in_process("doctor", *options)
        assert done.returncode == 2, (options, done.stderr)
        assert said in done.stderr


def test_observe(fleet: Fleet, in_process: Run, tmp_path: Path) -> None:
    """A profile for each server in a folder, the servers as rows; one that is down is named."""
    (tmp_path / "profiles").mkdir()

    def observe(*options: str) -> CompletedProcess[str]:
        services = ("--service-file", str(fleet.services), "--for", "0.2s")
        return in_process("observe", *services, "-o", "profiles", *options)

    done = observe()
    assert done.returncode == 3, done.stderr
    assert sorted(path.name for path in (tmp_path / "profiles").iterdir()) == [
        "bad.json",
        "good.json",
    ]
    rows = [line.replace("|", " ").split() for line in done.stdout.splitlines()]
    named = {row[0]: row for row in rows if len(row) == 7}
    # The fourth is how long it was: on a busy machine more than was asked for.
    assert named["bad"][1:3] + named["bad"][4:] == ["18.4", "1", "0", "-", "bad.json"]
    assert named["good"][1:3] + named["good"][4:] == ["16.14", "1", "0", "-", "good.json"]
    assert "! down: no answer: no connection" in done.stdout
    for name, version in (("bad", "18.4"), ("good", "16.14")):
        text = (tmp_path / "profiles" / f"{name}.json").read_text(encoding="utf-8")
        profile = json.loads(text)
        assert profile["server"]["version"] == version
        assert [table["name"] for table in profile["table"]] == ["t"]
    assert "observe: good: 0 of 0 s" in done.stderr

    lacking = observe("--table", "nowhere")
    assert lacking.returncode == 3
    assert "! good: no answer: table 'nowhere' is not in the database" in lacking.stdout
    empty = in_process(
        *("observe", fleet.good, fleet.bad.replace("dbname=postgres", "dbname=template1")),
        *("--for", "0.2s", "-o", "profiles"),
    )
    assert empty.returncode == 3
    assert ": no answer: the database has no table of its own: " in empty.stdout


def test_advise(fleet: Fleet, in_process: Run, tmp_path: Path) -> None:
    """Connections and profiles together; each has its row, and its whole answer in JSON."""
    (tmp_path / "profiles").mkdir()
    observed = ("observe", fleet.bad, fleet.good, "--for", "0.2s", "-o", "profiles")
    assert in_process(*observed).returncode == 0
    first, second = sorted(path.name for path in (tmp_path / "profiles").iterdir())
    asked = (f"profiles/{first}", fleet.good, "--for", "0.2s", "--budget", "0")
    text = in_process("advise", *asked)
    assert text.returncode == 0, text.stderr
    assert text.stdout.startswith("Advice for 2 tables on 2 servers: 0 to change\n")
    in_process("advise", *asked, fleet.down, "-f", "json", "-o", "all.json", "--html", "all.html")
    data = json.loads((tmp_path / "all.json").read_text(encoding="utf-8"))
    schema = json.loads(SCHEMA.with_name("advice-fleet.schema.json").read_text(encoding="utf-8"))
    assert [error.message for error in Draft202012Validator(schema).iter_errors(data)] == []
    assert data["kind"] == "advice_fleet"
    named = {each["name"]: each for each in data["servers"]}
    assert set(named) == {f"profiles/{first}", fleet.good, fleet.down}
    assert [table["name"] for table in named[fleet.good]["advice"]["tables"]] == ["t"]
    assert named[fleet.down]["advice"] is None
    page = (tmp_path / "all.html").read_text(encoding="utf-8")
    assert "no answer" in page
    assert "<script" not in page
    both = (f"profiles/{first}", f"profiles/{second}", "--budget", "0")
    rows = list(csv.DictReader(io.StringIO(in_process("advise", *both, "-f", "csv").stdout)))
    assert [(row["server"], row["table"]) for row in rows] == [
        (f"profiles/{name}", "t") for name in (first, second)
    ]
    ticket = in_process("advise", *both, "-f", "markdown")
    assert ticket.returncode == 0
    assert ticket.stdout.count("# Advice for") == 3
    assert in_process("advise", *asked, fleet.down).returncode == 3


def test_mistakes_of_observe_and_advise(in_process: Run, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    two = ("dbname=a", "dbname=b")
    for arguments, said in (
        (("observe", *two), "expected a folder that is there with -o, none was given"),
        (("observe", *two, "-o", "p.json"), "p.json is none"),
        (("observe", *two, "-o", "folder", "--wal"), "--wal does nothing with several servers"),
        (("advise", *two, "--plan", "plan.json"), "--plan does nothing with several servers"),
        (("advise", "dbname=a", "dbname=a"), "dbname=a is named twice"),
        (("advise", "dbname=a", "folder"), "folder is a folder"),
        (("advise", "dbname=a", "nowhere.json"), "no such file: nowhere.json"),
    ):
        done = in_process(*arguments)
        assert done.returncode == 2, (arguments, done.stderr)
        assert said in done.stderr
