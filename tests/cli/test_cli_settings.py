"""`settings` as a user calls it: forms, what is asked, and mistakes."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from jsonschema import Draft202012Validator

from pgheadroom.servers import Cluster, Host, find_programs

Run = Callable[..., "CompletedProcess[str]"]
SCHEMA = Path(__file__).parents[2] / "docs" / "schema" / "settings.schema.json"
MACHINE = ("--memory", "64GB", "--cores", "16", "--disk", "ssd")


@pytest.fixture
def server(run_parent: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    monkeypatch.setenv("PGHEADROOM_TMPDIR", str(run_parent))
    with Host(find_programs("18")) as host:
        cluster = host.cluster("main")
        cluster.start({"fsync": "on", "max_wal_size": "10GB", "wal_compression": "on"})
        yield cluster


def test_forms(server: Cluster, in_process: Run, tmp_path: Path) -> None:
    """The text is a configuration file, whatever else it says; json has all of it."""
    env = server.client_env()
    where = ("-h", env["PGHOST"], "-p", env["PGPORT"], "-U", "postgres", "-d", "postgres")

    def settings(*options: str) -> CompletedProcess[str]:
        done = in_process("settings", *where, *options)
        assert done.returncode == 0, done.stderr
        return done

    text = settings(*MACHINE, "--for", "0.2s").stdout
    kept = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert "shared_buffers = 16GB" in kept
    assert {line.split(" = ")[0] for line in kept} == {
        "shared_buffers",
        "effective_cache_size",
        "maintenance_work_mem",
        "autovacuum_work_mem",
        "max_worker_processes",
        "max_parallel_maintenance_workers",
        "io_workers",
        "random_page_cost",
        "checkpoint_timeout",
    }, "nothing spills, rows do not die, 10 GB of WAL are enough: these stay"
    assert re.search(r"# Counted in the [\d.]+ s watched", text)
    assert "taken for a load that lasts" in " ".join(text.replace("#  ", "").split())

    settings(*MACHINE, "-f", "json", "-o", "settings.json")
    data = json.loads((tmp_path / "settings.json").read_text(encoding="utf-8"))
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    assert [error.message for error in Draft202012Validator(schema).iter_errors(data)] == []
    assert data["kind"] == "settings"
    assert data["lines"][0]["name"] == "shared_buffers"
    assert data["lines"][0]["sql"] == "ALTER SYSTEM SET shared_buffers = '16GB'"

    script = settings(*MACHINE, "--alter-system").stdout
    assert "ALTER SYSTEM SET shared_buffers = '16GB';\n" in script
    assert "-- Then restart, for shared_buffers, max_worker_processes.\n" in script
    assert "-- ALTER SYSTEM RESET shared_buffers;\n" in script.split("-- Undo:\n")[1]
    rows = list(csv.DictReader(io.StringIO(settings(*MACHINE, "-f", "csv").stdout)))
    assert (rows[0]["name"], rows[0]["value"], rows[0]["now"]) == (
        "shared_buffers",
        "16GB",
        "128MB",
    )
    ticket = settings(*MACHINE, "-f", "markdown").stdout
    assert "## `shared_buffers`: 128MB -> 16GB\n" in ticket

    asked = settings().stdout
    assert "shared_buffers, effective_cache_size, maintenance_work_mem, work_mem: say --memory" in (
        " ".join(asked.replace("#  ", "").split())
    )
    assert "\nshared_buffers" not in asked


def test_without_a_server(in_process: Run) -> None:
    """Rules alone, for each version; what needs a load is asked."""
    for version in ("15", "16.3", "17", "18", "19rc1"):
        done = in_process("settings", "--server", version, *MACHINE, "--workload", "dw")
        assert done.returncode == 0
        assert "\nmax_wal_size = 16GB\n" in done.stdout
        assert "\nmax_parallel_workers_per_gather = 8\n" in done.stdout
        assert "# work_mem, max_connections" not in done.stdout
        assert "# work_mem: say --connections" in done.stdout


def test_by_the_log(server: Cluster, in_process: Run) -> None:
    """Files beside a connection; the rate is the log's own."""
    with server.connect() as connection:
        connection.execute("CREATE TABLE t AS SELECT i FROM generate_series(1, 50000) i")
        connection.execute("CHECKPOINT")
        connection.execute("INSERT INTO t SELECT i FROM generate_series(1, 50000) i")
        connection.execute("INSERT INTO t SELECT i FROM generate_series(1, 50000) i")
    env = server.client_env()
    where = ("-h", env["PGHOST"], "-p", env["PGPORT"], "-U", "postgres", "-d", "postgres")
    done = in_process("settings", *where, "-f", "json", "--wal", str(server.data_dir / "pg_wal"))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    (size,) = (each for each in (*found["lines"], *found["kept"]) if each["name"] == "max_wal_size")
    assert "of the log: " in size["reason"]
    assert "of WAL a second" in size["reason"]


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (("--server", "18", "--memory", "64"), 2, "--memory: size '64' is not understood"),
        (("--server", "18", "--memory", "64MB"), 2, "--memory 64 MiB: expected 256 MiB"),
        (("--server", "14"), 2, "--server 14: expected one of 15, 16, 17, 18, 19"),
        (("--server", "new"), 2, "no PostgreSQL version in 'new'"),
        (("--server", "18", "--cores", "0"), 2, "--cores 0: expected 1 to 1024"),
        (
            ("--server", "18", "--memory", "1GB", "--connections", "9000"),
            2,
            "--connections 9000: expected at most",
        ),
        (("--server", "18", "--for", "1s"), 2, "--for does nothing"),
        (("--server", "18", "--alter-system"), 2, "--alter-system does nothing"),
        (("--server", "18", "-d", "shop"), 2, "a connection or --server"),
        (("-d", "shop", "--alter-system", "-f", "json"), 2, "--alter-system does nothing"),
        (("--disk", "tape"), 2, "tape"),
        (("--server", "18", "--wal", "nowhere"), 2, "nowhere"),
        (("-h", "/nowhere"), 3, "no connection"),
    ],
)
def test_mistakes(options: tuple[str, ...], code: int, said: str, in_process: Run) -> None:
    """What was found, what was expected, and which option it was."""
    done = in_process("settings", *options)
    assert done.returncode == code
    assert said in done.stderr
