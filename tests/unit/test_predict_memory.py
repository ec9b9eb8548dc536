"""What does not fit is refused beforehand, and memory that runs out ends a run, not the process."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pgheadroom import _core
from pgheadroom.errors import TwinError
from pgheadroom.predict import Timing, memory, predict
from pgheadroom.predict.memory import check_memory
from pgheadroom.predict.sampling import sample_if_big, sample_of
from pgheadroom.profile import Profile, parse_profile, to_json

ID = {"name": "id", "type": "int4", "values": {"kind": "serial"}}
A = {"name": "a", "type": "int4"}
B = {"name": "b", "type": "int4", "values": {"kind": "random", "ndistinct": 1000}}
KEY = {"name": "t_pkey", "columns": ["id"], "unique": True}
ON_B = {"name": "t_b", "columns": ["b"]}
ON_BOTH = {"name": "t_a_id", "columns": ["a", "id"]}
INSERT = {"table": "t", "kind": "insert"}

# Interpreter, buffers and what the estimate always adds hide the rest of a small run.
ALWAYS_BYTES = 16e6


def string(low: int, high: int) -> dict[str, Any]:
    """A column of strings of these lengths."""
    return {
        "name": "s",
        "type": "text",
        "width": {"min_bytes": low, "max_bytes": high},
        "values": {"kind": "random", "ndistinct": 1_000_000},
    }


def update(*columns: str) -> dict[str, Any]:
    """Anything of these columns, any row."""
    sets: dict[str, Any] = {column: {} for column in columns}
    return {"table": "t", "kind": "update", "sets": sets, "pick": {"distribution": "uniform"}}


def own(
    rows: int,
    columns: list[dict[str, Any]],
    indexes: list[dict[str, Any]],
    operation: dict[str, Any],
    operations: int = 1000,
    fillfactor: int = 100,
) -> dict[str, Any]:
    """A profile of one table."""
    table = {
        "name": "t",
        "rows": rows,
        "columns": columns,
        "indexes": indexes,
        "fillfactor": fillfactor,
    }
    return {
        "schema_version": 1,
        "server": {"version": "18.4"},
        "table": [table],
        "operation": [operation],
        "run": {"operations": operations},
    }


def pgbench(
    scale: int, clients: int = 1, builtin: str = "tpcb-like", operations: int = 100
) -> dict[str, Any]:
    """Pgbench's own tables."""
    return {
        "schema_version": 1,
        "server": {"version": "18.4"},
        "pgbench": {"builtin": builtin, "scale": scale},
        "run": {"operations": operations, "clients": clients},
    }


def read(data: dict[str, Any]) -> Profile:
    """As from a file."""
    return parse_profile(data)


def in_child(program: str, data: dict[str, Any], *arguments: str) -> Any:
    """What a process of its own prints last; it has to end by itself."""
    text = json.dumps(to_json(read(data)))
    command = [sys.executable, "-c", program, text, *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, (ended.returncode, ended.stderr)
    return json.loads(ended.stdout.splitlines()[-1])


MEASURE = """
import json, sys
from pgheadroom import _core
def peak():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))
before = peak()
_core.simulate(sys.argv[1], "18.4", events=())
print(json.dumps(peak() - before))
"""

SHAPES = {
    "pgbench, scale 1": pgbench(1),
    "pgbench, scale 4, updated": pgbench(4, operations=200_000),
    "two integers": own(200_000, [ID, A], [KEY], update("a")),
    "no index, inserts": own(1000, [ID, A], [], INSERT, operations=200_000),
    "inserts": own(1000, [ID, A], [KEY], INSERT, operations=200_000),
    "thirty columns": own(
        50_000, [ID, A, *({"name": f"c{n}", "type": "int4"} for n in range(28))], [KEY], update("a")
    ),
    "strings": own(100_000, [ID, A, string(20, 60)], [KEY], update("s"), operations=100_000),
    "index on strings": own(
        100_000, [ID, string(20, 60)], [KEY, {"name": "t_s", "columns": ["s"]}], update("s")
    ),
    "indexes on strings": own(
        100_000,
        [ID, string(1, 200)],
        [KEY, *({"name": f"t_s{n}", "columns": ["s"]} for n in range(4))],
        update("s"),
    ),
    "three indexes": own(100_000, [ID, A, B], [KEY, ON_B, ON_BOTH], update("b"), 100_000),
    "index on what changes": own(50_000, [ID, B], [KEY, ON_B], update("b"), operations=300_000),
    "room": own(100_000, [ID, A], [KEY], update("a"), operations=200_000, fillfactor=50),
    "out of line": own(10_000, [ID, A, string(5000, 5000)], [KEY], update("a")),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_the_estimate_lies_between_the_peak_and_twice_that(shape: str) -> None:
    """Of a process that plays nothing else; a constant aside, which small runs hide behind."""
    needed = _core.needed_bytes(json.dumps(to_json(read(SHAPES[shape]))))
    peak = in_child(MEASURE, SHAPES[shape])
    assert peak <= needed <= ALWAYS_BYTES + 2 * peak


def test_what_does_not_fit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """With what would; nothing is simulated."""
    monkeypatch.setattr(memory, "available_bytes", lambda: 10**9)
    monkeypatch.setattr(memory.os, "sched_getaffinity", lambda _: {0, 1})
    wanted = r"scale 500 would take about 6\.\d+ GiB of memory for a run.*at most scale 6\d with"
    with pytest.raises(TwinError, match=wanted) as told:
        predict(read(pgbench(500)))
    assert told.value.exit_code == 5
    with pytest.raises(TwinError, match=r"2 runs at once.*at most scale \d+ with"):
        predict(read(pgbench(30, clients=2)))
    data = own(10_000_000, [ID, A], [KEY], update("a"), operations=1_000_000)
    wanted = r"table t with 10000000 rows .*at most \d+ rows with \d+ operations, or `sample_pages`"
    with pytest.raises(TwinError, match=wanted):
        predict(read(data))
    assert predict(read(data), sample_pages=200).cells[0].predicted is not None


@pytest.mark.parametrize("builtin", ["tpcb-like", "simple-update"])
@pytest.mark.parametrize(("scale", "clients"), [(140, 1), (150, 4)])
def test_the_sample_that_is_named_fits(
    builtin: str, scale: int, clients: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Below what is sampled unasked: the pages in the message are accepted, many more are not."""
    monkeypatch.setattr(memory, "available_bytes", lambda: 700_000_000)
    monkeypatch.setattr(memory.os, "sched_getaffinity", lambda _: {0, 1})
    profile = read(pgbench(scale, clients, builtin, operations=1_000_000))
    with pytest.raises(TwinError, match=r"or `sample_pages` (\d+)") as told:
        predict(profile)
    assert told.value.exit_code == 5
    pages = int(str(told.value).rpartition("`sample_pages` ")[2].split(",")[0])

    def needed(pages: int) -> int:
        return _core.needed_bytes(sample_of(profile, pages).twin_json(0))

    check_memory([needed(pages)], [profile], 8)
    with pytest.raises(TwinError):
        check_memory([needed(2 * pages)], [profile], 8)
    with pytest.raises(TwinError) as told:
        predict(profile, timing=Timing(windows=4))
    assert "`sample_pages`" not in str(told.value), "a sample gives no series"


@pytest.mark.parametrize("scale", [500, 2000, 10_000])
def test_big_scales_are_small_samples(scale: int) -> None:
    """Unasked; what a run takes is what its accounts, its branches and its tellers take."""
    profile = read(pgbench(scale, 4, operations=10_000_000))
    sample = sample_if_big(profile)
    assert sample is not None
    assert _core.needed_bytes(sample.twin_json(0)) < 120_000_000
    assert _core.needed_bytes(json.dumps(to_json(profile))) > 8_000_000_000


def test_what_fits_is_played(monkeypatch: pytest.MonkeyPatch) -> None:
    """Exactly so much is enough; and where nobody says what is free, nothing is refused."""
    monkeypatch.setattr(memory, "available_bytes", lambda: 50_000_000)
    assert predict(read(pgbench(1))).cells[0].predicted is not None
    monkeypatch.setattr(memory, "available_bytes", lambda: None)
    assert predict(read(pgbench(1))).cells[0].predicted is not None


def test_this_machine_says_what_is_available() -> None:
    """From the kernel, and not more than the machine has."""
    found = memory.available_bytes()
    assert found is not None
    assert 0 < found < 2**50


LIMIT = """
import json, resource, sys
def limit(more):
    pages = int(open("/proc/self/statm").read().split()[0])
    most = pages * resource.getpagesize() + more
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
"""

LIMITED = (
    LIMIT
    + """
from pgheadroom import _core
from pgheadroom.errors import TwinError
limit(int(sys.argv[2]))
try:
    _core.simulate(sys.argv[1], "18.4", events=())
    said = "played"
except TwinError as error:
    said = str(error)
print(json.dumps(said))
"""
)

# What is left is taken by another thread, once the run has come so far.
TAKEN = (
    LIMIT
    + """
import mmap, threading, time
from pgheadroom import _core
from pgheadroom.errors import TwinError
limit(2**30)
taken, progress = [], _core.Progress()
def take():
    while progress.done < int(sys.argv[2]):
        time.sleep(0.0005)
    size = 2**29
    while size >= 2**14:
        try:
            taken.append(mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
        except (OSError, MemoryError):
            size //= 2
threading.Thread(target=take, daemon=True).start()
try:
    _core.simulate(sys.argv[1], "18.4", events=(), progress=progress)
    said = "played"
except TwinError as error:
    said = str(error)
for area in taken:
    area.close()
print(json.dumps(said))
"""
)


def test_a_limit_of_the_process_is_no_abort() -> None:
    """Too small for the estimate, for what is set aside, for a thread: an error each time."""
    for more in (2**20, 2**25, 2**26, 2**27):
        said = in_child(LIMITED, pgbench(3), str(more))
        assert "ulimit" in said, more
    assert in_child(LIMITED, pgbench(1), str(2**30)) == "played"


@pytest.mark.parametrize("at", [1, 100_000, 250_000, 320_000])
def test_memory_that_runs_out_ends_the_run(at: int) -> None:
    """While rows are loaded, and while they are updated; with what the run takes."""
    data = pgbench(3, operations=3_000_000)
    assert "memory ran out for this run, which takes about" in in_child(TAKEN, data, str(at))


def test_the_command_ends_by_5(tmp_path: Path) -> None:
    """The whole program, under a limit."""
    profile = tmp_path / "big.toml"
    profile.write_text(
        "schema_version = 1\n[server]\nversion = '18.4'\n"
        "[pgbench]\nbuiltin = 'tpcb-like'\nscale = 500\n[run]\noperations = 1000\n"
    )
    program = LIMIT + (
        "from pgheadroom.cli.app import run\n"
        "limit(2**30)\n"
        "sys.exit(run(['predict', sys.argv[1]]))\n"
    )
    command = [sys.executable, "-c", program, str(profile)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 5, ended
    assert "expected at most scale" in ended.stderr
