"""`watch` as a user calls it: lines for scripts, the screen on a terminal, and how it ends."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from jsonschema import Draft202012Validator
from prometheus_client.parser import text_string_to_metric_families

from pgheadroom.servers import Cluster, Host, find_programs

Run = Callable[..., "CompletedProcess[str]"]
SCHEMA = Path(__file__).parents[2] / "docs" / "schema" / "watch.schema.json"
DEADLINE_S = 60.0
ENTERS, LEAVES = "\x1b[?1049h", "\x1b[?1049l"  # the alternate screen
HIDES, SHOWS = "\x1b[?25l", "\x1b[?25h"  # the cursor


@pytest.fixture
def server(run_parent: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    monkeypatch.setenv("PGHEADROOM_TMPDIR", str(run_parent))
    with Host(find_programs("18")) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        with cluster.connect() as connection:
            connection.execute("CREATE TABLE t (v int)")
            connection.execute("INSERT INTO t VALUES (1)")
            connection.execute("CREATE TABLE other (v int)")
            connection.execute("INSERT INTO other VALUES (1)")
        yield cluster


def where(cluster: Cluster) -> tuple[str, ...]:
    env = cluster.client_env()
    return ("-h", env["PGHOST"], "-p", env["PGPORT"], "-U", "postgres", "-d", "postgres")


def test_lines_for_scripts(server: Cluster, in_process: Run, tmp_path: Path) -> None:
    """So many as were asked for, of the form that the schema says; the monitoring has its file."""
    quick = ("--every", "0.5s")
    done = in_process(
        "watch",
        *where(server),
        *quick,
        "--count",
        "2",
        "-f",
        "json",
        "--sort",
        "name",
        "--prometheus",
        "w.prom",
    )
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(lines) == 2
    schema = Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))
    for line in lines:
        assert [error.message for error in schema.iter_errors(line)] == []
        assert line["interval_s"] > 0
        assert [table["name"] for table in line["tables"]] == ["other", "t"]
    read = list(text_string_to_metric_families((tmp_path / "w.prom").read_text(encoding="utf-8")))
    assert {"pgheadroom_up", "pgheadroom_table_n_tup_upd"} <= {each.name for each in read}

    text = in_process("watch", *where(server), *quick, "--for", "0.5s", "--filter", "OTH")
    assert text.returncode == 0, text.stderr
    assert text.stdout.startswith("postgres, PostgreSQL 18.4, ")
    lines_of_text = text.stdout.splitlines()
    head = next(n for n, line in enumerate(lines_of_text) if line.lstrip().startswith("table "))
    assert [line.split()[0] for line in lines_of_text[head + 1 :] if line] == ["other"]


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (("--every", "0.1s"), 2, "--every 0.1s: expected at least 0.5 s"),
        (("--every", "soon"), 2, "soon"),
        (("--count", "0"), 2, "--count"),
        (("--sort", "size"), 2, "size"),
        (("--format", "csv"), 2, "csv"),
        (("--prometheus", "nowhere/w.prom"), 2, "nowhere does not exist"),
        (("-h", "/nowhere", "--prometheus", "w.prom"), 3, "no connection"),
    ],
)
def test_mistakes(
    options: tuple[str, ...], code: int, said: str, in_process: Run, tmp_path: Path
) -> None:
    """Told before anything is read; a server that is not there is told to the monitoring too."""
    done = in_process("watch", *options)
    assert done.returncode == code
    assert said in done.stderr
    assert (tmp_path / "w.prom").exists() is (code == 3)
    if code == 3:
        text = (tmp_path / "w.prom").read_text(encoding="utf-8")
        assert text.splitlines()[2:] == ['pgheadroom_up{server="/nowhere:5432"} 0']


def test_several_servers(server: Cluster, in_process: Run, tmp_path: Path) -> None:
    """Each by its name; one that does not answer stops nothing, and counts as down."""
    env = server.client_env()
    with server.connect() as connection:
        connection.execute("CREATE DATABASE books")
    here = f"host={env['PGHOST']} port={env['PGPORT']} user=postgres"
    (tmp_path / "services.conf").write_text(
        f"[shop]\nhost={env['PGHOST']}\nport={env['PGPORT']}\nuser=postgres\ndbname=postgres\n",
        encoding="utf-8",
    )
    asked = (f"{here} dbname=postgres", f"{here} dbname=books", "host=/nowhere password=secret-9")
    options = ("--every", "0.5s", "--count", "2", "-f", "json", "--prometheus", "w.prom")
    done = in_process("watch", *asked, "--service-file", "services.conf", *options)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["answered"] for line in lines] == [True, True, False, True] * 2
    assert [line["database"] for line in lines[:4]] == ["postgres", "books", None, "postgres"]
    names = [line["asked"] for line in lines[:4]]
    assert names == [*asked[:2], "/nowhere:5432", "service=shop"]
    assert "no connection" in lines[2]["notes"][0]
    assert "secret-9" not in done.stdout + done.stderr
    text = (tmp_path / "w.prom").read_text(encoding="utf-8")
    assert "secret-9" not in text
    families = {each.name: each for each in text_string_to_metric_families(text)}
    up = {one.labels["server"]: one.value for one in families["pgheadroom_up"].samples}
    assert up == dict(zip(names, (1.0, 1.0, 0.0, 1.0), strict=True))
    for family in families.values():
        series = [tuple(sorted(one.labels.items())) for one in family.samples]
        assert len(series) == len(set(series)), family.name

    words = in_process("watch", *asked[:2], "--every", "0.5s", "--count", "1")
    assert words.stdout.count("== host=") == 2
    assert words.stdout.count(" PostgreSQL 18.4, ") == 2


class Screen:
    """The program on a terminal of its own."""

    def __init__(
        self,
        cluster: Cluster,
        environment: dict[str, str],
        *options: str,
        program: tuple[str, ...] = ("-m", "pgheadroom"),
    ) -> None:
        self.ours, theirs = pty.openpty()
        termios.tcsetwinsize(theirs, (24, 80))
        self.before = termios.tcgetattr(theirs)
        self.theirs = theirs
        self.text = ""
        self.process = subprocess.Popen(
            [sys.executable, *program, "watch", *where(cluster), *options],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**environment, "TERM": "xterm-256color"},
            start_new_session=True,
        )

    def wait_for(self, text: str) -> None:
        """Read until it is there."""
        deadline = time.monotonic() + DEADLINE_S
        while text not in self.text:
            assert time.monotonic() < deadline, self.text[-3000:]
            self._read(0.1)

    def ends(self) -> int:
        """The exit code; what it wrote until then is read."""
        deadline = time.monotonic() + DEADLINE_S
        while self.process.poll() is None:
            assert time.monotonic() < deadline, self.text[-3000:]
            self._read(0.1)
        while self._read(0.0):
            pass
        return self.process.returncode

    def _read(self, wait_s: float) -> bool:
        ready, _, _ = select.select([self.ours], [], [], wait_s)
        if ready:
            self.text += os.read(self.ours, 65536).decode("utf-8", "replace")
        return bool(ready)

    def press(self, keys: str) -> None:
        os.write(self.ours, keys.encode())

    def is_as_it_was(self) -> bool:
        """Modes, screen and cursor."""
        modes = termios.tcgetattr(self.theirs) == self.before
        screen = self.text.rfind(LEAVES) > self.text.rfind(ENTERS) >= 0
        cursor = self.text.rfind(SHOWS) > self.text.rfind(HIDES) >= 0
        return modes and screen and cursor

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.ours)
        os.close(self.theirs)


@pytest.fixture
def screen(server: Cluster, environment: dict[str, str]) -> Iterator[Screen]:
    environment.pop("COLUMNS", None)
    found = Screen(server, environment, "--every", "0.5s")
    try:
        yield found
    finally:
        found.close()


def test_the_screen_quits_by_q(screen: Screen) -> None:
    """Keys sort and filter meanwhile; the terminal is left as it was found."""
    screen.wait_for("other")
    assert termios.tcgetattr(screen.theirs) != screen.before
    screen.press("n")
    screen.wait_for(" s)*")
    screen.press("/oth\r")
    screen.wait_for("[oth]")
    screen.press("q")
    assert screen.ends() == 0, screen.text[-2000:]
    assert screen.is_as_it_was()


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 0)],
    ids=["term", "hup", "int"],
)
def test_the_screen_quits_by_signals(screen: Screen, number: signal.Signals, code: int) -> None:
    """By whoever ends it, in the middle of whatever it does."""
    screen.wait_for("other")
    screen.process.send_signal(number)
    assert screen.ends() == code, screen.text[-2000:]
    assert screen.is_as_it_was()


def test_the_screen_outlives_its_server(screen: Screen, server: Cluster) -> None:
    """It says that nobody answers, connects again by itself, and quits while nobody answers."""
    screen.wait_for("other")
    server.stop()
    screen.wait_for("no answer; last: postgres")
    server.start({"autovacuum": "off"})
    screen.wait_for("the server was started again")
    server.stop()
    screen.text = screen.text[screen.text.index(ENTERS) :]
    screen.press("q")
    assert screen.ends() == 0
    assert screen.is_as_it_was()


def test_an_error_of_ours_leaves_the_terminal(
    server: Cluster, environment: dict[str, str], tmp_path: Path
) -> None:
    """An error in the middle is told after the screen is left, on the terminal as it was."""
    code = (
        "import sys; from pgheadroom.cli import app, watch_screen\n"
        "def broken(*_): raise RuntimeError('a bug')\n"
        "watch_screen.ScreenState.take = broken\n"
        "sys.exit(app.run(sys.argv[1:]))"
    )
    # Where the file about the error comes to.
    found = Screen(server, environment | {"TMPDIR": str(tmp_path)}, program=("-c", code))
    try:
        assert found.ends() == 70, found.text
        assert found.is_as_it_was()
        assert found.text.index(LEAVES) < found.text.index("a bug")
    finally:
        found.close()


def test_a_history_is_kept_and_read(server: Cluster, in_process: Run, tmp_path: Path) -> None:
    """Watch begins it and goes on with it; advise and doctor take its hours, with its day."""
    for _ in range(2):
        watched = ("--every", "0.5s", "--count", "1", "--history", "h.sqlite", "--keep", "2d")
        done = in_process("watch", *where(server), *watched)
        assert done.returncode == 0, done.stderr
        assert "history" not in done.stdout
        with server.connect() as connection:
            connection.execute("UPDATE t SET v = v + 1")
            connection.execute("SELECT pg_stat_force_next_flush()")
    found = in_process("doctor", *where(server), "--history", "h.sqlite", "--html", "d.html")
    assert found.returncode == 0, found.stderr
    assert found.stderr.startswith("history: ")
    assert "counters are those of " in found.stdout
    advised = in_process(
        "advise", *where(server), "--history", "h.sqlite", "--budget", "1s", "--html", "a.html"
    )
    assert advised.returncode == 0, advised.stderr
    for name in ("d.html", "a.html"):
        page = (tmp_path / name).read_text(encoding="utf-8")
        assert "The server on 20" in page
        assert "counters used are those of 20" in page
        assert "<svg" in page


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("watch", "--keep", "2d"), "--keep does nothing without a history"),
        (("watch", "--history", "nowhere/h"), "nowhere does not exist"),
        (("watch", "dbname=a", "dbname=b", "--history", "h"), "does nothing with several servers"),
        (("watch", "dbname=a", "dbname=a"), "dbname=a is named twice"),
        (("doctor", "--from", "09:00"), "--from does nothing without a history"),
        (("advise", "--to", "09:00"), "--to does nothing without a history"),
        (("doctor", "--history", "none"), "no such file: none"),
        (("advise", "--history", "text"), "text is no history"),
        (("doctor", "--explain", "unused-index", "--history", "text"), "--history does nothing"),
    ],
)
def test_mistakes_with_a_history(
    options: tuple[str, ...], said: str, in_process: Run, tmp_path: Path
) -> None:
    """Told before a server is asked."""
    (tmp_path / "text").write_text("no history\n" * 100, encoding="utf-8")
    done = in_process(*options)
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
