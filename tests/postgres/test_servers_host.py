"""Throw-away servers: settings, copies, logs, connections, templates, room."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from footprint import DEADLINE_S, Footprint

from pgheadroom.errors import DiskFull, InputError, LabError, ServerStartFailed
from pgheadroom.servers import Cluster, Host, ServerPrograms, disk, find_client
from pgheadroom.types import PgVersion

pytestmark = [pytest.mark.pg]


def shown(cluster: Cluster, setting: str) -> str:
    with cluster.connect() as connection:
        row = connection.execute("SELECT current_setting(%s)", (setting,)).fetchone()
    assert row is not None
    return str(row[0])


def only_file(folder: Path, pattern: str) -> Path:
    (found,) = folder.glob(pattern)
    return found


@pytest.mark.minors
def test_a_server_runs_with_the_settings_of_its_start(
    programs: ServerPrograms, run_parent: Path
) -> None:
    """Settings apply, the next start forgets them, and what lives on the machine goes with it."""
    with Host(programs) as host:
        cluster = host.cluster("main")
        assert not cluster.running
        cluster.start({"shared_buffers": "24MB", "cluster_name": "it's \\ here", "Work_Mem": "5MB"})
        assert cluster.running
        with cluster.connect() as connection:
            version = PgVersion.of_server(
                connection.info.server_version, connection.info.parameter_status("server_version")
            )
        assert version == cluster.version == programs.version
        assert shown(cluster, "shared_buffers") == "24MB"
        assert shown(cluster, "work_mem") == "5MB"
        assert shown(cluster, "cluster_name") == "it's \\ here"
        assert shown(cluster, "fsync") == "off"
        assert shown(cluster, "server_encoding") == "UTF8"
        assert any("ready to accept connections" in line for line in cluster.log_tail(50))
        first = Footprint.of(cluster)
        cluster.stop()
        assert not cluster.running
        cluster.start({"fsync": "on"})
        assert shown(cluster, "shared_buffers") != "24MB"
        assert shown(cluster, "fsync") == "on"
        second = Footprint.of(cluster)
        assert len(second.processes) > 4
        assert second.left()
        assert host.folder.parent == run_parent
    assert first.left() == []
    assert second.left() == []


def test_no_tcp_and_a_private_socket(programs: ServerPrograms, run_parent: Path) -> None:
    """A server of ours listens on a Unix socket that only its user and root can reach."""
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({})
        (postmaster, *_) = Footprint.of(cluster).processes
        inodes = set()
        for link in Path(f"/proc/{postmaster}/fd").iterdir():
            with contextlib.suppress(OSError):
                inodes.add(str(link.readlink()).removeprefix("socket:[").removesuffix("]"))
        for table in ("tcp", "tcp6"):
            rows = Path(f"/proc/net/{table}").read_text().splitlines()[1:]
            assert not inodes & {row.split()[9] for row in rows}
        folder = Path(cluster.client_env()["PGHOST"])
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert [path.name for path in folder.glob(".s.PGSQL.*[0-9]")] == [".s.PGSQL.5432"]
        assert stat.S_IMODE((folder / ".s.PGSQL.5432").stat().st_mode) == 0o700
        assert stat.S_IMODE(host.folder.stat().st_mode) & 0o007 == 0
    assert not run_parent.joinpath(host.folder.name).exists()


@pytest.mark.usefixtures("run_parent")
def test_a_setting_that_does_not_exist_is_reported_with_this_starts_log(
    programs: ServerPrograms,
) -> None:
    """The log's tail explains the failure, without lines of earlier starts; nothing runs on."""
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({})
        with cluster.connect() as connection, pytest.raises(psycopg.Error):
            connection.execute("SELECT 'an earlier start' FROM nowhere")
        cluster.stop()
        assert any("an earlier start" in line for line in cluster.log_tail(50))
        with pytest.raises(ServerStartFailed, match="no_such_setting") as caught:
            cluster.start({"no_such_setting": "1"})
        assert any("no_such_setting" in line for line in caught.value.log_tail)
        assert not any("an earlier start" in line for line in caught.value.log_tail)
        assert not cluster.running
        cluster.start({})
        assert shown(cluster, "server_version").startswith(str(programs.version.major))


@pytest.mark.usefixtures("run_parent")
def test_settings_that_would_open_the_server_are_refused(newest: ServerPrograms) -> None:
    """No setting may listen on TCP, move the socket, or smuggle another line into the file."""
    with Host(newest) as host:
        cluster = host.cluster("main")
        for name in ("listen_addresses", "PORT", "unix_socket_directories", "include"):
            with pytest.raises(InputError, match="reserved"):
                cluster.start({name: "x"})
        with pytest.raises(InputError, match="setting's name"):
            cluster.start({"work_mem = 1\nport": "1"})
        with pytest.raises(InputError, match="line break"):
            cluster.start({"work_mem": "1\nport = 1"})
        for name in ("../up", "", "a/b", ".hidden"):
            with pytest.raises(InputError, match="cluster's name"):
                host.cluster(name)
        with pytest.raises(InputError, match="already"):
            host.cluster("main")


@pytest.mark.usefixtures("run_parent")
def test_a_copy_has_the_same_bytes_and_both_run(programs: ServerPrograms) -> None:
    """Restoring by copying the stopped cluster gives the same pages; the two are independent."""
    with Host(programs) as host:
        original = host.cluster("original")
        original.start({"autovacuum": "off"})
        with original.connect() as connection:
            connection.execute(
                "CREATE TABLE t AS SELECT g, g::text AS h FROM generate_series(1, 9999) g"
            )
            row = connection.execute("SELECT pg_relation_filepath('t')").fetchone()
        assert row is not None
        original.stop()
        before = original.relation_path(row[0]).read_bytes()
        assert len(before) % 8192 == 0
        copy = host.copy(original, "copy")
        assert copy.relation_path(row[0]).read_bytes() == before
        assert copy.data_dir.stat().st_uid == original.data_dir.stat().st_uid
        assert stat.S_IMODE(copy.data_dir.stat().st_mode) == 0o700
        original.start({})
        copy.start({})
        with copy.connect() as connection:
            assert connection.execute("DELETE FROM t").rowcount == 9999
        with original.connect() as connection:
            assert connection.execute("SELECT count(*) FROM t").fetchone() == (9999,)
        copy.remove()
        assert not copy.running
        assert not copy.data_dir.parent.exists()
        assert original.running


@pytest.mark.usefixtures("run_parent")
def test_immediate_stop_is_a_crash_that_the_next_start_recovers(programs: ServerPrograms) -> None:
    """Committed rows survive, and the log says that recovery happened."""
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({})
        with cluster.connect() as connection:
            connection.execute("CREATE TABLE t AS SELECT 1 AS a")
        cluster.stop("immediate")
        cluster.stop("immediate")  # nothing more to stop
        cluster.start({})
        assert any("not properly shut down" in line for line in cluster.log_tail(50))
        with cluster.connect() as connection:
            assert connection.execute("SELECT a FROM t").fetchone() == (1,)
        cluster.stop()


@pytest.mark.usefixtures("run_parent")
def test_a_server_that_ended_by_itself_is_noticed(newest: ServerPrograms) -> None:
    """A crash is not taken for a clean stop, but does not hinder cleaning up."""
    with Host(newest) as host:
        cluster = host.cluster("main")
        cluster.start({})
        (postmaster, *_) = Footprint.of(cluster).processes
        os.kill(postmaster, signal.SIGQUIT)
        deadline = time.monotonic() + DEADLINE_S
        while cluster.running and time.monotonic() < deadline:
            time.sleep(0.02)
        with pytest.raises(LabError, match="ended by itself"):
            cluster.stop()


def test_the_users_environment_does_not_reach_our_sessions(
    programs: ServerPrograms, run_parent: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PG* variables meant for the user's own server change neither psycopg nor psql, nor stay."""
    stray = {
        "PGHOST": "elsewhere.invalid",
        "PGPORT": "1",
        "PGSERVICE": "no_such_service",
        "PGOPTIONS": "-c work_mem=77MB",
        "PGSSLMODE": "require",
        "PGTZ": "Asia/Tokyo",
        "PGDATABASE": "nowhere",
        "PGUSER": "nobody",
    }
    for name, value in stray.items():
        monkeypatch.setenv(name, value)
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({})
        assert shown(cluster, "work_mem") == "4MB"
        assert shown(cluster, "timezone") == "UTC"
        assert shown(cluster, "application_name") == "pgheadroom"
        psql, version = find_client("psql", programs)
        assert version.major >= programs.version.major
        done = host.run([psql, "-XAtc", "SHOW work_mem; SHOW timezone"], env=cluster.client_env())
        assert (done.stdout, done.stderr) == ("4MB\nUTC\n", "")
        piped = host.run([psql, "-XAt"], env=cluster.client_env(), input="SELECT 'für';")
        assert piped.stdout == "für\n"
        pgbench, _ = find_client("pgbench", programs)
        made = host.run([pgbench, "-i", "-q"], env=cluster.client_env())
        assert made.returncode == 0, made.stderr
    assert {name: os.environ[name] for name in stray} == stray
    assert list(run_parent.iterdir()) == []


@pytest.mark.usefixtures("run_parent")
@pytest.mark.each
def test_data_checksums_as_asked(programs: ServerPrograms) -> None:
    """On or off as asked; left open it is that version's default: on from 18."""
    default = "on" if programs.version.major >= 18 else "off"
    other = programs.version.major < 18
    for wanted, expected in ((other, "on" if other else "off"), (None, default)):
        with Host(programs, data_checksums=wanted) as host:
            cluster = host.cluster("main")
            cluster.start({})
            assert shown(cluster, "data_checksums") == expected


def test_an_exception_leaves_nothing(newest: ServerPrograms, run_parent: Path) -> None:
    """With a server and a client running; the error itself comes through."""
    psql, _ = find_client("psql", newest)
    with contextlib.suppress(ZeroDivisionError), Host(newest) as host:
        cluster = host.cluster("main")
        cluster.start({})
        client = host.popen([psql, "-c", "SELECT pg_sleep(600)"], env=cluster.client_env())
        footprint = Footprint.of(cluster)
        raise ZeroDivisionError
    assert footprint.left() == []
    assert client.poll() is not None
    assert list(run_parent.iterdir()) == []


@pytest.mark.parametrize("name", ["x" * 120, "with space, \"quotes\" and 'more'"])
def test_any_folder_for_temporary_files(
    newest: ServerPrograms, run_parent: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A path too long for a socket moves the socket; odd characters do no harm."""
    parent = run_parent / name
    parent.mkdir(mode=0o755)
    monkeypatch.setenv("PGHEADROOM_TMPDIR", str(parent))
    with Host(newest) as host:
        cluster = host.cluster("main")
        cluster.start({})
        footprint = Footprint.of(cluster)
        assert len(os.fsencode(footprint.socket_dir)) < 85
        assert shown(cluster, "port") == "5432"
        assert not Path(footprint.socket_dir).is_relative_to(host.folder)
    assert footprint.left() == []
    parent.rmdir()


def test_a_folder_that_the_servers_user_cannot_enter(
    newest: ServerPrograms, run_parent: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As root: TMPDIR inside a 0700 folder is passed over; PGHEADROOM_TMPDIR there is an error."""
    if os.geteuid() != 0:
        pytest.skip("only root starts servers as another user")
    closed = run_parent / "closed"
    inside = closed / "tmp"
    inside.mkdir(parents=True)
    closed.chmod(0o700)
    monkeypatch.setenv("PGHEADROOM_TMPDIR", str(inside))
    with pytest.raises(LabError, match="PGHEADROOM_TMPDIR"), Host(newest):
        pass
    monkeypatch.delenv("PGHEADROOM_TMPDIR")
    monkeypatch.setenv("TMPDIR", str(inside))
    with Host(newest) as host:
        assert not host.folder.is_relative_to(closed)
    assert not host.folder.exists()
    shutil.rmtree(closed)


# Templates


@pytest.mark.usefixtures("run_parent")
def test_a_damaged_template_is_made_anew(newest: ServerPrograms, own_cache: Path) -> None:
    """A truncated or missing file, or a missing mark of completeness, is noticed before copying."""
    with Host(newest) as host:
        host.cluster("first")
        template = only_file(own_cache, "templates/18.*")
        control = template / "data" / "global" / "pg_control"
        control.write_bytes(control.read_bytes()[:100])
        host.cluster("second").start({})
        assert control.stat().st_size == 8192
        (template / "complete.json").write_text("{")
        host.cluster("third")
        assert (template / "complete.json").read_text() != "{"
        assert not any(host.folder.glob("clusters/template-*"))
    assert sorted(path.name for path in own_cache.iterdir()) == ["programs", "templates"]
    assert {path.name for path in (own_cache / "templates").iterdir()} == {template.name, "lock"}


def test_two_runs_that_make_the_same_template_at_once(
    newest: ServerPrograms, run_parent: Path, own_cache: Path
) -> None:
    """Whoever is second throws his away; both get a cluster that starts."""
    script = (
        "import sys; from pgheadroom.servers import Host, find_programs\n"
        "with Host(find_programs(sys.argv[1])) as host:\n"
        "    cluster = host.cluster('main'); cluster.start({}); cluster.stop()\n"
    )
    command = [sys.executable, "-c", script, str(newest.bin_dir)]
    runs = [subprocess.Popen(command) for _ in range(2)]
    assert [run.wait(timeout=120) for run in runs] == [0, 0]
    names = sorted(path.name for path in (own_cache / "templates").iterdir())
    assert len(names) == 2, names  # the template and the lock
    assert list(run_parent.iterdir()) == []


@pytest.fixture
def other_file_system() -> Iterator[Path]:
    """A small file system of its own; needs root and the right to mount."""
    folder = Path("/var/tmp") / f"pgh-mount-{os.getpid()}"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=300m,mode=755", "tmpfs", str(folder)]
    try:
        if os.geteuid() != 0 or subprocess.run(command, check=False).returncode != 0:
            pytest.skip("mounting a file system needs root")
        try:
            yield folder
        finally:
            subprocess.run(["umount", str(folder)], check=True)
    finally:
        folder.rmdir()


@pytest.mark.usefixtures("run_parent")
def test_a_cache_on_another_file_system(
    newest: ServerPrograms, other_file_system: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Renaming does not work across file systems; the template still appears whole."""
    monkeypatch.setenv("PGHEADROOM_CACHE", str(other_file_system))
    with Host(newest) as host:
        host.cluster("main").start({})
    names = {path.name for path in (other_file_system / "templates").iterdir()}
    assert len(names) == 2
    assert "lock" in names


def test_a_full_file_system(
    newest: ServerPrograms, other_file_system: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Too little room is said before copying and starting, and when the server finds out itself."""
    monkeypatch.setenv("PGHEADROOM_TMPDIR", str(other_file_system))
    filler = other_file_system / "filler"
    with Host(newest) as host:
        cluster = host.cluster("main")
        cluster.start({})
        cluster.stop()
        free_bytes = shutil.disk_usage(other_file_system).free
        with filler.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, free_bytes - disk.SPARE_BYTES - 1_000_000)
        with pytest.raises(DiskFull, match="copy") as caught:
            host.copy(cluster, "copy")
        assert caught.value.needed_bytes is not None
        assert caught.value.needed_bytes > caught.value.free_bytes
        with filler.open("ab") as file:
            os.posix_fallocate(file.fileno(), filler.stat().st_size, 2_000_000)
        with pytest.raises(DiskFull, match="start a server"):
            cluster.start({})
        monkeypatch.setattr(disk, "SPARE_BYTES", 0)
        with contextlib.suppress(OSError), filler.open("ab") as file:
            while True:
                file.write(b"\0" * 4096)
        # What the check before could not foresee: our own file, then the server's.
        with pytest.raises(DiskFull, match="start a server"):
            cluster.start({})
        with filler.open("r+b") as file:
            file.truncate(filler.stat().st_size - 4096)
        with pytest.raises(DiskFull, match="start a server"):
            cluster.start({})
        assert not cluster.running
        filler.unlink()
        cluster.start({})
    assert list(other_file_system.iterdir()) == []


@pytest.mark.usefixtures("run_parent")
def test_sessions_of_two_clusters_do_not_mix(newest: ServerPrograms) -> None:
    """Each cluster has its own socket, and a stopped one refuses."""
    with Host(newest) as host:
        one, two = host.cluster("one"), host.cluster("two")
        one.start({"cluster_name": "number one"})
        two.start({"cluster_name": "number two"})
        assert shown(one, "cluster_name") == "number one"
        assert shown(two, "cluster_name") == "number two"
        one.stop()
        with pytest.raises(psycopg.OperationalError):
            one.connect()
        probe = socket.socket(socket.AF_UNIX)
        with probe:
            probe.connect(str(Path(two.client_env()["PGHOST"]) / f".s.PGSQL.{two.port}"))


@pytest.mark.usefixtures("run_parent")
def test_a_restored_copy_equals_its_original_to_the_byte(programs: ServerPrograms) -> None:
    """Whatever a trial did, tables made and dropped, a crash, the next one starts from the same."""
    with Host(programs) as host:
        original = host.cluster("original")
        original.start({"autovacuum": "off"})
        with original.connect() as connection:
            connection.execute("CREATE TABLE t AS SELECT g FROM generate_series(1, 20000) g")
            connection.execute("CREATE TABLE u AS SELECT g FROM generate_series(1, 20000) g")
        original.stop()
        copy = host.copy(original, "copy")
        for mode in ("immediate", "fast"):
            copy.start({"max_wal_size": "64MB"})
            with copy.connect() as connection:
                connection.execute("UPDATE t SET g = -g")
                connection.execute("TRUNCATE u")
                connection.execute("CREATE DATABASE other")
                connection.execute("ALTER SYSTEM SET work_mem = '1MB'")
                connection.execute("CREATE TABLE v AS SELECT g FROM generate_series(1, 99999) g")
                connection.execute("VACUUM t")
                connection.execute("DROP TABLE v")
            copy.stop(mode)
            host.restore(copy, original)
            assert _contents(copy.data_dir) == _contents(original.data_dir)
        copy.start({})
        with copy.connect() as connection:
            assert connection.execute("SELECT sum(g) FROM t").fetchone() == (200010000,)


def _contents(folder: Path) -> dict[str, tuple[int, int, bytes | None]]:
    """Owner, mode and bytes of every entry below a folder."""
    return {
        str(path.relative_to(folder)): (
            path.lstat().st_uid,
            stat.S_IMODE(path.lstat().st_mode),
            path.read_bytes() if path.is_file() else None,
        )
        for path in folder.rglob("*")
    }
