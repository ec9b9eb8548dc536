"""The twin behind Python: one call per run, its errors, its progress, and how it is interrupted."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from pgheadroom import _core
from pgheadroom.errors import InputError, TwinError
from pgheadroom.profile import parse_profile, read_profile, to_json

ROOT = Path(__file__).parents[2]
LONG = 50_000_000  # operations: minutes of work


def _profile(**run: Any) -> str:
    data = {
        "schema_version": 1,
        "server": {"full_page_writes": False},
        "table": [
            {
                "name": "t",
                "rows": 2000,
                "columns": [{"name": "id", "type": "int4"}, {"name": "v", "type": "int4"}],
                "indexes": [{"name": "t_pk", "columns": ["id"], "unique": True}],
            }
        ],
        "operation": [{"table": "t", "kind": "update", "sets": ["v"]}],
        "run": {"operations": 500, **run},
    }
    return json.dumps(to_json(parse_profile(data)))


def test_a_result_adds_up() -> None:
    """Sums over tables and transactions are those over record types, whatever the workload."""
    for path in sorted((ROOT / "golden" / "profiles").glob("*.toml"))[::6]:
        text = json.dumps(to_json(read_profile(path)))
        done = _core.simulate(text, "18.4")
        by_type = [sum(column) for column in zip(*done.by_record.values(), strict=True)] or [0] * 3
        tables = done.tables
        assert by_type == [
            sum(table.wal_records for table in tables) + done.transaction_records,
            sum(table.wal_bytes for table in tables) + done.transaction_bytes,
            sum(table.wal_fpi_bytes for table in tables),
        ], path
        # Where ANALYZE may have taken OIDs, the bytes of pointers are in doubt.
        assert done.is_exact == (done.pointers_in_doubt == 0)
        assert done.is_exact == (done.approximations == [])
        assert done.server == "18.4"


def test_analyze_draws_rows_of_larger_tables() -> None:
    """
    ANALYZE reads the arrays of 300 drawn rows of 400, and the run says so; of all, it draws none.

    A server of 18.4 had 10,235 to 10,238 records in three runs with the smaller sample, and in one
    with the larger as many as foreseen.
    """
    text = {"min_bytes": 2900, "max_bytes": 3100}
    columns = [
        {"name": "id", "type": "int4"},
        {"name": "s", "type": "text", "width": text, "storage": "external"},
        {
            "name": "x",
            "type": "int8[]",
            "elements": {"min": 260, "max": 290, "ndistinct": 40},
            "storage": "external",
        },
    ]
    index = {"name": "t_pkey", "columns": ["id"], "unique": True}

    def simulated(target: int, seed: int, columns: list[dict[str, Any]]) -> _core.Simulated:
        data = {
            "schema_version": 1,
            "server": {
                "full_page_writes": False,
                "settings": {"default_statistics_target": str(target)},
            },
            "table": [{"name": "t", "rows": 400, "columns": columns, "indexes": [index]}],
            "operation": [{"table": "t", "kind": "update", "sets": ["s"]}],
            "run": {
                "operations": 1000,
                "maintenance": [{"do": "analyze", "table": "t", "after": 990}],
            },
        }
        text = json.dumps(to_json(parse_profile(data)))
        return _core.simulate(text, "18.4", interleaving=seed)

    def records(target: int, seed: int) -> int:
        done = simulated(target, seed, columns)
        assert done.samples_drawn == (target == 1)
        assert any("of which rows ANALYZE" in said for said in done.approximations) == (target == 1)
        return sum(count for count, *_ in done.by_record.values())

    drawn = {records(1, seed) for seed in range(4)}
    (whole,) = {records(2, seed) for seed in range(2)}
    assert len(drawn) > 1
    assert max(drawn) < whole
    # Strings of 2,900 bytes are too long for statistics: nothing is read of them, so nothing drawn.
    assert simulated(1, 0, columns[:2]).samples_drawn == 0


def test_runs_on_threads_agree() -> None:
    """The same arguments give the same result, also side by side without the GIL."""
    text = _profile()
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda _: _core.simulate(text, "16.14"), range(2))
    assert first.tables == second.tables
    assert hash(first.tables[0]) == hash(second.tables[0])
    assert first.transactions == first.operations == 500


def test_a_run_says_what_it_took() -> None:
    """It has a thread of its own, whose time the caller's clock does not have."""
    before = time.process_time()
    found = _core.simulate(_profile(operations=3_000_000), "18.4")
    passed_s = time.process_time() - before
    # Where the kernel does not count a thread's time, what passed stands for it: more, not less.
    assert found.cpu_s > 0.5 * passed_s


def test_progress_is_seen_from_outside_and_stops_a_run() -> None:
    """Another thread reads how far a run is, and ends it."""
    progress = _core.Progress()
    assert (progress.done, progress.total) == (0, 0)
    ended: list[BaseException] = []

    def work() -> None:
        try:
            _core.simulate(_profile(operations=LONG), "18.4", progress=progress)
        except TwinError as error:
            ended.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    deadline = time.monotonic() + 30
    while progress.done < 3000 and time.monotonic() < deadline:
        time.sleep(0.005)
    assert 3000 <= progress.done < progress.total == LONG + 2000
    progress.cancel()
    thread.join(60)
    assert not thread.is_alive()
    assert "told to stop" in str(ended[0])


def test_ctrl_c_ends_a_long_run() -> None:
    """KeyboardInterrupt comes at once, not when the run is done."""
    code = (
        "import sys\nfrom pgheadroom import _core\nprint('begun', flush=True)\n"
        "_core.simulate(sys.argv[1], '18.4')"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, _profile(operations=LONG)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "begun\n"
        time.sleep(0.3)
        child.send_signal(signal.SIGINT)
        _, errors = child.communicate(timeout=60)
    assert child.returncode == -signal.SIGINT
    assert errors.rstrip().endswith("KeyboardInterrupt")


@pytest.mark.parametrize(
    ("text", "version", "error", "message"),
    [
        ("{}", "18.4", InputError, "not the JSON of a profile: missing field"),
        (_profile(), "18", InputError, "expected 13 to 19"),
        (_profile(), "12.1", InputError, "expected 13 to 19"),
        (_profile().replace('"rows": 2000', '"rows": "many"'), "18.4", InputError, "line 1 column"),
        (
            _profile().replace("1048576kB", "1024kB"),
            "18.4",
            TwinError,
            r"server\.shared_buffers",
        ),
    ],
)
def test_errors_say_whose_they_are(
    text: str, version: str, error: type[Exception], message: str
) -> None:
    """A text that is no profile is the asker's to repair; what is not modelled has exit code 5."""
    with pytest.raises(error, match=message):
        _core.simulate(text, version)


def test_a_run_that_a_server_refuses_too() -> None:
    """A number that outgrows its column ends pgbench, so it ends the twin as well."""
    data = json.loads(_profile(operations=33_000))
    data["table"][0]["rows"] = 1
    data["table"][0]["columns"][1]["type"] = "int2"
    with pytest.raises(TwinError, match=r"a server could not play this: t, transaction 32768: "):
        _core.simulate(json.dumps(data), "18.4")


def test_a_fillfactor_is_set_in_the_middle_of_a_run() -> None:
    """At the beginning it is as after loading, at the end as never; between, pages tell when."""
    profile = parse_profile(
        {
            "schema_version": 1,
            "server": {"full_page_writes": False},
            "table": [
                {
                    "name": "t",
                    "rows": 500,
                    "columns": [{"name": "id", "type": "int4"}, {"name": "v", "type": "char(100)"}],
                    "indexes": [{"name": "t_pk", "columns": ["id"], "unique": True}],
                }
            ],
            "operation": [{"table": "t", "kind": "insert"}],
            "run": {"operations": 4000},
        }
    )
    text = json.dumps(to_json(profile))

    def pages(at_frac: float) -> int:
        done = _core.simulate(text, "18.4", fillfactors_at=[("t", 50, at_frac)])
        return done.tables[0].heap_pages

    whole, never = (
        _core.simulate(text, "18.4", fillfactors_later=[("t", 50)]).tables[0].heap_pages,
        _core.simulate(text, "18.4").tables[0].heap_pages,
    )
    assert pages(0.0) == whole
    assert pages(1.0) == never
    assert pages(0.5) == pytest.approx((whole + never) / 2, abs=2)
    with pytest.raises(TwinError, match="the later fillfactor of t"):
        _core.simulate(text, "18.4", fillfactors_at=[("t", 5, 0.5)])
    with pytest.raises(TwinError, match="the later fillfactor of u"):
        _core.simulate(text, "18.4", fillfactors_at=[("u", 50, 0.5)])


def test_checks_of_foreign_keys_count_as_statements() -> None:
    """Each has a number of its own, of 32 bits: more of them than that would have been a panic."""
    data = json.loads(_profile(operations=2_100_000_000))
    (table,) = data["table"]
    parent = {**table, "name": "p", "indexes": [{**table["indexes"][0], "name": "p_pk"}]}
    table["foreign_keys"] = [{"columns": ["v"], "references": "p"}]
    key, refers = table["columns"]
    table["columns"] = [key, {**refers, "values": {"kind": "parent"}}]
    data["table"] = [parent, table]
    text = json.dumps(to_json(parse_profile(data)))
    with pytest.raises(
        TwinError, match=r"run\.operations: found 2100000000, expected 0 to 1431654"
    ):
        _core.simulate(text, "18.4")
