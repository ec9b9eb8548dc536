"""Laws of the settings' rules: never more than the memory, more gives no less, and an end."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pgheadroom.errors import ParameterError
from pgheadroom.settings import ServerMachine, settings_for
from pgheadroom.settings.arithmetic import (
    GIB,
    MIB,
    DyingTable,
    cost_limit_for,
    distance_bytes,
    rounded_down,
    rounded_up_mib,
    wal_size_for,
    work_of_one,
    work_per_s,
)
from pgheadroom.settings.case import SettingsCase
from pgheadroom.settings.deciding import MAJORS, decided
from pgheadroom.settings.in_force import SettingInForce, defaults_of
from pgheadroom.settings.measured import CountedLoad
from pgheadroom.settings.values import SettingLine
from pgheadroom.units import parse_duration_s, parse_setting_bytes

MEMORY = st.integers(256 * MIB, 16 * 1024 * GIB)
MACHINES = st.builds(
    ServerMachine,
    memory_bytes=MEMORY,
    cores=st.integers(1, 512),
    disk=st.sampled_from(("ssd", "hdd", "network")),
    connections=st.integers(1, 2000),
    workload=st.sampled_from((None, "web", "oltp", "dw", "mixed")),
)
VERSIONS = st.sampled_from(MAJORS)
TABLES = st.lists(
    st.builds(
        DyingTable,
        dead_per_s=st.floats(0, 1e6),
        trigger_rows=st.floats(0, 1e9),
        heap_pages=st.integers(0, 10**8),
        index_pages=st.lists(st.integers(0, 10**8), max_size=4).map(tuple),
    ),
    max_size=4,
).map(tuple)
COUNTED = st.builds(
    CountedLoad,
    over=st.just("in the 60 s watched"),
    wal_over=st.just("in the 60 s watched"),
    is_interval=st.just(True),
    wal_bytes=st.floats(0, 1e13),
    wal_fpi=st.floats(0, 1e9),
    wal_buffers_full=st.one_of(st.none(), st.floats(0, 1e9)),
    wal_length_s=st.floats(60, 1e7),
    checkpoints_requested=st.integers(0, 1000),
    checkpoints_done=st.integers(0, 1000),
    temp_bytes_a_day=st.floats(0, 1e14),
    read_bytes_a_day=st.floats(0, 1e14),
    tables=TABLES,
    vacuum_busy_workers=st.one_of(st.none(), st.floats(0, 10)),
)


def _fits(machine: ServerMachine, major: int) -> dict[str, SettingInForce]:
    """What is in force with the fragment; a machine too small for its sessions is none."""
    try:
        lines = settings_for(machine, major).lines
    except ParameterError:
        assume(False)  # --connections; what is said is tested below
    return _with(defaults_of(major), lines)


def _with(
    before: dict[str, SettingInForce], lines: tuple[SettingLine, ...]
) -> dict[str, SettingInForce]:
    """As a server would have it after these."""
    return before | {
        line.name: replace(before[line.name], value=_raw(line, before[line.name]), source="file")
        for line in lines
    }


def _raw(line: SettingLine, setting: SettingInForce) -> str:
    """The value in the setting's own unit, as the server would round it."""
    sizes = {"B": 1, "kB": 1024, "8kB": 8192, "MB": MIB}
    if setting.unit in sizes:
        found = parse_setting_bytes(line.value) / sizes[setting.unit]
        assert found == int(found), f"{line.name} = {line.value} is no whole {setting.unit}"
        return str(int(found))
    return str(round(parse_duration_s(line.value))) if setting.unit == "s" else line.value


@given(MACHINES, VERSIONS)
def test_never_more_than_the_memory(machine: ServerMachine, major: int) -> None:
    """All sessions sort and hash, all workers vacuum, somebody builds an index: it fits."""
    found = _fits(machine, major)
    assert machine.connections is not None
    assert machine.memory_bytes is not None

    def number(name: str) -> float:
        return found[name].number

    worker = number("autovacuum_work_mem")
    worker = number("maintenance_work_mem") if worker < 0 else worker
    sessions = machine.connections + number("max_parallel_workers")
    whole = (
        number("shared_buffers")
        + min(number("shared_buffers") / 32, 16 * MIB)  # wal_buffers
        + number("maintenance_work_mem")
        + number("autovacuum_max_workers") * worker
        + sessions * number("work_mem") * number("hash_mem_multiplier") * 2
    )
    assert whole <= machine.memory_bytes


SHARING = (
    "shared_buffers",
    "effective_cache_size",
    "maintenance_work_mem",
    "work_mem",
)


@given(MACHINES, MEMORY, VERSIONS)
def test_more_memory_gives_no_less(machine: ServerMachine, more: int, major: int) -> None:
    """A larger machine has no smaller setting."""
    assert machine.memory_bytes is not None
    assume(more >= machine.memory_bytes)
    small = _fits(machine, major)
    large = _fits(replace(machine, memory_bytes=more), major)
    for name in SHARING:
        assert small[name].number <= large[name].number, name


@given(MACHINES, VERSIONS)
def test_its_own_fragment_is_right(machine: ServerMachine, major: int) -> None:
    """A server that has it would change nothing of it."""
    _fits(machine, major)
    case = SettingsCase(given=machine, major=major, in_force=_fits(machine, major), is_live=True)
    assert [each for each in decided(case) if isinstance(each, SettingLine)] == []


@given(MACHINES, VERSIONS, COUNTED)
def test_what_is_measured_ends_too(
    machine: ServerMachine, major: int, counted: CountedLoad
) -> None:
    """By the same counters, a server that was changed by them stays as it is."""
    machine = replace(machine, connections=None)
    if major < 18:
        counted = replace(counted, vacuum_busy_workers=None)
    before = defaults_of(major) | {
        "autovacuum": SettingInForce(name="autovacuum", value="on", unit=None, context="sighup")
    }
    case = SettingsCase(given=machine, major=major, in_force=before, is_live=True, counted=counted)
    lines = tuple(each for each in decided(case) if isinstance(each, SettingLine))
    # What asked for checkpoints, or found buffers full, is no witness against what is there now.
    since = replace(
        counted, checkpoints_requested=None, checkpoints_done=None, wal_buffers_full=None
    )
    again = replace(case, in_force=_with(before, lines), counted=since)
    assert [each for each in decided(again) if isinstance(each, SettingLine)] == []


@given(
    st.floats(0, 1e10),
    st.floats(30, 86_400),
    st.sampled_from((MIB, 16 * MIB, GIB)),
    st.floats(0, 1),
)
def test_the_clock_makes_checkpoints(rate: float, timeout: float, seg: int, target: float) -> None:
    """At the size that is told the distance has a timeout's WAL, as the server computes it."""
    assert distance_bytes(wal_size_for(rate, timeout, seg, target), seg, target) >= rate * timeout


@given(st.integers(0, 2**60), st.integers(0, 2**60))
def test_rounding_keeps_order(one: int, other: int) -> None:
    """A rounded size is never more, at most a sixteenth less; one rounded up never less."""
    low, high = sorted((one, other))
    assert rounded_down(low) <= rounded_down(high)
    assert low * 15 / 16 <= rounded_down(low) <= low
    assert rounded_up_mib(low) >= low


COSTS = {"vacuum_cost_page_hit": "1", "vacuum_cost_page_miss": "2", "vacuum_cost_page_dirty": "20"}


@given(TABLES)
def test_a_limit_has_room(tables: tuple[DyingTable, ...]) -> None:
    """The limit makes the work a quarter of what is allowed, unless none is large enough."""
    work = work_per_s(tables, COSTS)
    limit = cost_limit_for(work, 0.002)
    assert 200 <= limit <= 10_000
    assert limit == 10_000 or work.cost <= 0.2501 * limit / 0.002
    for table in tables:
        one = work_of_one(table, COSTS)
        assert one.dirty_pages <= one.pages * (1 + 1e-9) + 1e-6
        assert one.pages <= 2 * table.heap_pages + sum(table.index_pages) + 1e-6


def test_too_many_sessions_are_refused() -> None:
    """work_mem has a least value, so so many do not fit; the message says how many would."""
    machine = ServerMachine(memory_bytes=256 * MIB, connections=249)
    with pytest.raises(ParameterError, match="connections 249: expected at most 248 with 256 MiB"):
        settings_for(machine, 18)
    assert settings_for(replace(machine, connections=248), 18).lines
