"""
A run that ends in any way leaves nothing: no process, no folder, no shared memory.

Each test starts `run_in_child.py` in a process group of its own and ends it.
"""

from __future__ import annotations

import os
import pwd
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from footprint import DEADLINE_S, Footprint, segments, start_time

from pgheadroom.servers import Host, ServerPrograms

pytestmark = [pytest.mark.pg]

CHILD = Path(__file__).with_name("run_in_child.py")


@dataclass
class Run:
    """A run in another process."""

    process: subprocess.Popen[str]
    footprint: Footprint
    watchdog: int
    worker: int | None

    def kill(self, pid: int) -> None:
        os.kill(pid, signal.SIGKILL)

    def kill_with_watchdog(self) -> None:
        """The watchdog first: nobody is left to clean up."""
        self.kill(self.watchdog)
        self.process.kill()
        self.process.wait()
        deadline = time.monotonic() + DEADLINE_S
        while start_time(self.watchdog) is not None:  # it is reaped by init
            assert time.monotonic() < deadline
            time.sleep(0.02)


Starter = Callable[..., Run]


@pytest.fixture
def start(run_parent: Path) -> Iterator[Starter]:  # noqa: ARG001 - sets the environment
    """Start a run in a child process; at the end every child is dead, whatever happened."""
    started: list[subprocess.Popen[str]] = []

    def start_one(
        programs: ServerPrograms,
        *words: str,
        prefix: Sequence[str] = (),
        python: str = sys.executable,
    ) -> Run:
        process = subprocess.Popen(
            [*prefix, python, "-W", "error", CHILD, programs.bin_dir, *words],
            stdout=subprocess.PIPE,
            text=True,
            process_group=0,
        )
        started.append(process)
        assert process.stdout is not None
        pids = {}
        for line in process.stdout:
            if line.startswith("{"):
                return Run(process, Footprint.from_json(line), pids["watchdog"], pids.get("worker"))
            name, pid = line.split()
            pids[name] = int(pid)
        raise AssertionError(f"the run ended with {process.wait()} before it had begun")

    yield start_one
    for process in started:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def test_ctrl_c(programs: ServerPrograms, start: Starter, run_parent: Path) -> None:
    """SIGINT to the whole group, as a terminal sends it: the run ends as Python does, and clean."""
    run = start(programs, "client")
    assert len(run.footprint.processes) > 5
    os.killpg(run.process.pid, signal.SIGINT)
    assert run.process.wait(timeout=DEADLINE_S) == -signal.SIGINT
    assert run.footprint.left() == []
    assert list(run_parent.iterdir()) == []


def test_sigterm_unwinds(programs: ServerPrograms, start: Starter) -> None:
    """With `terminate_cleanly`, SIGTERM and SIGHUP wait for the cleaning and tell by exit code."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        run = start(programs, "polite")
        run.process.send_signal(number)
        assert run.process.wait(timeout=DEADLINE_S) == 128 + number
        assert run.footprint.left() == []


def test_killed(programs: ServerPrograms, start: Starter) -> None:
    """After kill -9 of the run, with a client and a busy backend: the watchdog does the rest."""
    run = start(programs, "client")
    run.process.kill()
    run.footprint.wait_until_gone()


def test_killed_with_its_whole_process_group(programs: ServerPrograms, start: Starter) -> None:
    """The watchdog is in another session, so that kill -9 of the group does not reach it."""
    run = start(programs, "client")
    os.killpg(run.process.pid, signal.SIGKILL)
    run.footprint.wait_until_gone()


def test_unpolite_sigterm(newest: ServerPrograms, start: Starter) -> None:
    """Without `terminate_cleanly` SIGTERM ends Python at once; nothing is left all the same."""
    run = start(newest)
    run.process.terminate()
    assert run.process.wait(timeout=DEADLINE_S) == -signal.SIGTERM
    run.footprint.wait_until_gone()


def test_the_watchdog_is_killed(newest: ServerPrograms, start: Starter) -> None:
    """Then the run itself cleans up at its end."""
    run = start(newest, "polite", "client")
    run.kill(run.watchdog)
    run.process.terminate()
    assert run.process.wait(timeout=DEADLINE_S) == 128 + signal.SIGTERM
    assert run.footprint.left() == []


def test_the_watchdog_ignores_polite_signals(newest: ServerPrograms, start: Starter) -> None:
    """SIGTERM to every process of the user, as at shutdown, must not leave the run unguarded."""
    run = start(newest)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        os.kill(run.watchdog, number)
    run.process.kill()
    run.footprint.wait_until_gone()


def test_killed_with_the_watchdog(
    programs: ServerPrograms, start: Starter, run_parent: Path
) -> None:
    """Nobody is left to clean up but the kernel: it ends servers and clients; files stay."""
    run = start(programs, "client")
    run.kill_with_watchdog()
    assert Path(run.footprint.folder).parent == run_parent
    deadline = time.monotonic() + DEADLINE_S
    while any(start_time(pid) == start for pid, start in run.footprint.processes.items()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert run.footprint.segment not in segments()
    assert Path(run.footprint.folder).exists()
    with Host(programs) as host:
        assert run.footprint.left() == []
        assert list(run_parent.iterdir()) == [host.folder]


def test_sweep_of_shared_memory(programs: ServerPrograms, start: Starter) -> None:
    """Everything killed, the postmaster too: it could not remove its shared memory; we do."""
    run = start(programs)
    postmaster = min(run.footprint.processes)
    run.kill(postmaster)
    run.kill_with_watchdog()
    deadline = time.monotonic() + DEADLINE_S
    while any(start_time(pid) == start for pid, start in run.footprint.processes.items()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert run.footprint.segment in segments()
    assert run.footprint.dynamic_segments
    assert all(Path(path).exists() for path in run.footprint.dynamic_segments)
    with Host(programs):
        assert run.footprint.left() == []


def test_two_runs_side_by_side(newest: ServerPrograms, start: Starter) -> None:
    """A run that starts, ends or dies does not touch a live one."""
    one, two = start(newest), start(newest, "client")
    before = len(one.footprint.left())
    with Host(newest) as host:
        host.cluster("main").start({})
        two.process.kill()
        two.footprint.wait_until_gone()
    assert len(one.footprint.left()) == before
    one.process.send_signal(signal.SIGINT)
    one.process.wait(timeout=DEADLINE_S)
    assert one.footprint.left() == []


def test_a_forked_worker_does_not_hide_the_end(newest: ServerPrograms, start: Starter) -> None:
    """A worker process forked from the run lives on, without the lifeline and the lock."""
    run = start(newest, "fork")
    assert run.worker is not None
    run.process.kill()
    try:
        assert start_time(run.worker) is not None
        run.footprint.wait_until_gone()
        assert start_time(run.worker) is not None
    finally:
        run.kill(run.worker)


def test_bystanders_live(newest: ServerPrograms, start: Starter) -> None:
    """A user's process that stands in the run folder is none of the run's."""
    run = start(newest)
    bystander = subprocess.Popen(["sleep", "600"], cwd=run.footprint.folder)
    try:
        run.process.kill()
        run.footprint.wait_until_gone()
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


def test_look_alikes_are_left_alone(newest: ServerPrograms, run_parent: Path) -> None:
    """The sweep touches only what one of our dead runs made, and follows no links."""
    elsewhere = run_parent / "elsewhere"
    elsewhere.mkdir()
    for name in ("lock", "owner.json", "precious"):
        (elsewhere / name).write_text("{}")
    (run_parent / "pgheadroom-linkaaaa").symlink_to(elsewhere)
    shutil.copytree(elsewhere, run_parent / "pgheadroom-damaged1")
    shutil.copytree(elsewhere, run_parent / "pgheadroom-too-long-a-name")
    no_lock = run_parent / "pgheadroom-nolock01"
    no_lock.mkdir()
    (no_lock / "precious").touch()
    empty = run_parent / "pgheadroom-empty001"
    empty.mkdir()
    strange = run_parent / "pgheadroom-strange1"
    shutil.copytree(elsewhere, strange)
    job = f'{{"server_ids": null, "socket_folder": "{elsewhere}"}}'
    (strange / "owner.json").write_text(job)
    if os.geteuid() == 0:
        others = run_parent / "pgheadroom-another1"
        shutil.copytree(elsewhere, others)
        os.chown(others, pwd.getpwnam("nobody").pw_uid, -1)
    before = {path: path.is_dir() for path in run_parent.rglob("*")}
    del before[empty]
    with Host(newest):
        pass
    assert {path: path.is_dir() for path in run_parent.rglob("*")} == before
    for path in run_parent.iterdir():
        path.unlink() if path.is_symlink() else shutil.rmtree(path)


def test_interrupted_while_it_starts(newest: ServerPrograms, run_parent: Path) -> None:
    """Ctrl-C or kill -9 at any moment of making, starting and stopping a server."""
    script = (
        "import sys\n"
        "from pgheadroom.servers import Host, find_programs\n"
        "print('begun', flush=True)\n"
        "while True:\n"
        "    with Host(find_programs(sys.argv[1])) as host:\n"
        "        cluster = host.cluster('main'); cluster.start({}); cluster.stop()\n"
    )
    seed = random.randrange(2**32)
    print("seed", seed)  # shown when the test fails
    generator = random.Random(seed)
    for number in (signal.SIGINT, signal.SIGKILL) * 4:
        process = subprocess.Popen(
            [sys.executable, "-c", script, newest.bin_dir],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            process_group=0,
        )
        assert process.stdout is not None
        # Until then Python itself starts, which ends by SIGINT in a way of its own.
        assert process.stdout.readline() == b"begun\n"
        process.stdout.close()
        time.sleep(generator.uniform(0, 1.1))
        os.killpg(process.pid, number)
        assert process.wait(timeout=DEADLINE_S) == -number
    # A kill -9 before the watchdog has begun, nothing else has then, leaves the folder to the next
    # run, which a busy machine gives time for; one before it is locked leaves it hidden.
    with Host(newest):
        pass
    deadline = time.monotonic() + DEADLINE_S
    while left := [path for path in run_parent.iterdir() if not path.name.startswith(".")]:
        assert time.monotonic() < deadline, left
        time.sleep(0.05)
    shutil.rmtree(run_parent)
    run_parent.mkdir()


def test_no_signal_is_lost_in_a_fork(newest: ServerPrograms, run_parent: Path) -> None:
    """A signal that comes while a program is started, which Python alone would forget."""
    script = (
        "import os, signal, sys\n"
        "from pgheadroom.servers import Host, find_programs, terminate_cleanly\n"
        "number = int(sys.argv[2])\n"
        "with terminate_cleanly(), Host(find_programs(sys.argv[1])) as host:\n"
        "    os.register_at_fork(after_in_parent=lambda: signal.raise_signal(number))\n"
        "    host.popen(['sleep', '600'])\n"
        "    print('lost', flush=True)\n"
    )
    for number, ending in (
        (signal.SIGINT, -signal.SIGINT),
        (signal.SIGTERM, 128 + signal.SIGTERM),
        (signal.SIGHUP, 128 + signal.SIGHUP),
    ):
        command = [sys.executable, "-c", script, newest.bin_dir, str(int(number))]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.stdout, done.returncode) == ("", ending), done.stderr
        assert list(run_parent.iterdir()) == []


def test_killed_while_it_makes_a_template(
    newest: ServerPrograms, run_parent: Path, own_cache: Path
) -> None:
    """The run's initdb is killed with the run, and the cache never shows a half template."""
    script = (
        "import sys; from pgheadroom.servers import Host, find_programs\n"
        "with Host(find_programs(sys.argv[1])) as host:\n"
        "    host.cluster('main')\n"
    )
    process = subprocess.Popen([sys.executable, "-c", script, newest.bin_dir], process_group=0)
    deadline = time.monotonic() + DEADLINE_S
    while not list(run_parent.glob("*/clusters/template-*/data/base")):
        assert time.monotonic() < deadline
        time.sleep(0.005)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    while list(run_parent.iterdir()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert [path.name for path in (own_cache / "templates").iterdir()] == ["lock"]
    with Host(newest) as host:
        host.cluster("main").start({})


def test_as_root_without_the_right_to_see_others_processes(
    newest: ServerPrograms, start: Starter
) -> None:
    """In containers root often lacks CAP_SYS_PTRACE: it cannot see where a server works."""
    setpriv = shutil.which("setpriv")
    if os.geteuid() != 0 or setpriv is None:
        pytest.skip("needs root and setpriv")
    run = start(newest, "client", prefix=[setpriv, "--bounding-set=-sys_ptrace"])
    os.killpg(run.process.pid, signal.SIGKILL)
    run.footprint.wait_until_gone()


def _python_for(prefix: list[str]) -> str | None:
    """A Python of our version that another user can run: ours may lie in a closed folder."""
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for python in (sys.executable, f"/usr/bin/{name}", f"/usr/local/bin/{name}"):
        # Through a shell: setpriv itself still starts its program with root's rights.
        script = 'exec "$0" -c "import psycopg, pgheadroom.servers"'
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
        command = [*prefix, "/bin/sh", "-c", script, python]
        tried = subprocess.run(command, capture_output=True, check=False, env=environment)
        if tried.returncode == 0:
            return python
    return None


def test_as_root_that_may_not_become_another_user(run_parent: Path) -> None:
    """In a container without CAP_SETUID the reason is named, not taken for unreachable files."""
    setpriv = shutil.which("setpriv")
    if os.geteuid() != 0 or setpriv is None:
        pytest.skip("needs root and setpriv")
    script = "from pgheadroom.servers import Host, at_hand; Host(at_hand()[0]).__enter__()"
    command = [setpriv, "--bounding-set=-setuid,-setgid", sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "LabError: PostgreSQL refuses to run as root" in done.stderr
    assert "SETUID" in done.stderr
    assert list(run_parent.iterdir()) == []


def test_as_an_ordinary_user(
    newest: ServerPrograms,
    start: Starter,
    run_parent: Path,
    own_cache: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without root there is one user only; he cleans up as well, and has a cache of his own."""
    setpriv = shutil.which("setpriv")
    if os.geteuid() != 0 or setpriv is None:
        pytest.skip("the other tests run as an ordinary user")
    nobody = pwd.getpwnam("nobody")
    prefix = [
        setpriv, f"--reuid={nobody.pw_uid}", f"--regid={nobody.pw_gid}", "--clear-groups"
    ]  # fmt: skip
    python = _python_for(prefix)
    if python is None:
        pytest.skip("the user nobody can reach no Python of this version")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    for folder in (run_parent, own_cache):
        os.chown(folder, nobody.pw_uid, nobody.pw_gid)
    run = start(newest, "client", prefix=prefix, python=python)
    assert Path(run.footprint.folder).stat().st_uid == nobody.pw_uid
    os.killpg(run.process.pid, signal.SIGKILL)
    run.footprint.wait_until_gone()
