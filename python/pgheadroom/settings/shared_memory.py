"""
What lies in shared memory beside the cache: the log's buffers, and the pages that all of it is in.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from pgheadroom.settings import memory
from pgheadroom.settings.arithmetic import GIB, KIB, MIB, rounded_down
from pgheadroom.settings.case import Said, SettingsCase
from pgheadroom.units import percent, show_bytes

_WAL_BUFFERS = "wal_buffers"
_WAL_BUFFERS_MIN = 64 * KIB
_WAL_BUFFERS_MAX = 256 * MIB  # it is flushed at each commit, so more is seldom filled; arbitrary
_FULL_EACH_BYTES = 16 * MIB
"""Buffers that are found full once for so much of WAL are too few: that is their own size where
they are sized by themselves, so each turn of them made somebody wait. Arbitrary."""
_DAY_S = 86_400.0

_BY_NOBODY = ("default", "override")
"""Where nobody has set wal_buffers (check_wal_buffers, XLOGShmemSize: xlog.c)."""

_TABLES_FRAC_MIN = 0.02  # of the memory; arbitrary
_SHARED_MIN = GIB  # below nobody misses what page tables take; arbitrary
_SMALL_PAGE_BYTES, _ENTRY_BYTES = 4096, 8  # of x86-64 and of most ARM systems
_HUGE_PAGE_BYTES = 2 * MIB

# shared_memory_size of 15.18, 16.14, 17.12, 18.4 and 19rc1 at 128 MB to 4 GB of shared_buffers and
# 100 to 1,000 connections: at defaults, for each byte of shared_buffers (from 17 on pages of
# transactions' states go by it, up to a bound), for each connection. Held against servers by
# tests/postgres/test_settings_shared_memory.py.
_AT_DEFAULTS = {15: 143 * MIB, 17: 143 * MIB, 18: 150 * MIB, 19: 153 * MIB}
_EACH_BYTE = {15: 1.022, 17: 1.031}
_EACH_CONNECTION = {15: 55 * KIB, 18: 86 * KIB, 19: 107 * KIB}
_ROUNDED_BYTES = 2 * MIB  # those figures are in whole MB


def decide(case: SettingsCase) -> Iterator[Said]:
    """wal_buffers, then huge_pages."""
    yield _wal_buffers(case)
    yield from _huge_pages(case)


def _wal_buffers(case: SettingsCase) -> Said:
    wanted = _more_wal_buffers(case)
    counted = case.counted
    means = f"by itself a 32nd of shared_buffers, at most {show_bytes(_segment(case))}"
    if counted is not None and counted.wal_buffers_full is not None and counted.wal_bytes:
        means = (
            f"measured {counted.wal_over}: found full {counted.wal_buffers_full:,.0f} times in "
            f"{show_bytes(counted.wal_bytes)} of WAL"
        )
    if wanted is not None:
        return case.line(
            _WAL_BUFFERS,
            wanted,
            basis="measured",
            reason=means,
            changes="sessions that write much find room, instead of writing the log out "
            f"themselves before they go on; {show_bytes(wanted)} of memory",
            rule="wal_buffers (B6.15)",
        )
    by_itself = _by_itself(case)
    if _is_set(case) and case.number(_WAL_BUFFERS) < by_itself:
        return case.line(
            _WAL_BUFFERS,
            -1,
            basis="rule",
            reason=f"somebody has set less than the {show_bytes(by_itself)} that it has by itself",
            changes="it goes by shared_buffers again",
            rule="wal_buffers (B6.15)",
        )
    return case.kept(_WAL_BUFFERS, means)


def _more_wal_buffers(case: SettingsCase) -> float | None:
    """What it should be, in bytes, for it was found full too often; None: it was not."""
    counted = case.counted
    full = None if counted is None else counted.wal_buffers_full
    if counted is None or not full or not counted.wal_bytes or not counted.wal_length_s:
        return None
    a_day = counted.wal_bytes * _DAY_S / counted.wal_length_s
    if full * _FULL_EACH_BYTES < counted.wal_bytes or a_day < GIB:
        return None
    now = case.number(_WAL_BUFFERS)
    most = min(float(_WAL_BUFFERS_MAX), memory.shared_buffers_to_be(case) / 8)
    wanted = rounded_down(min(4 * max(now, _by_itself(case)), most))
    return wanted if wanted > now else None


def _is_set(case: SettingsCase) -> bool:
    return case.is_live and case.in_force[_WAL_BUFFERS].source not in _BY_NOBODY


def _by_itself(case: SettingsCase) -> float:
    return max(min(memory.shared_buffers_to_be(case) / 32, _segment(case)), _WAL_BUFFERS_MIN)


def _segment(case: SettingsCase) -> float:
    return case.number("wal_segment_size")


def _huge_pages(case: SettingsCase) -> Iterator[Said]:
    name = "huge_pages"
    tables = _page_tables(case)
    if case.in_force[name].value != "off":
        yield case.kept(name, "taken where the system has them, unless it is on: then at any price")
    elif tables is None or case.given.memory_bytes is None:
        yield case.kept(name, "off, and what page tables take without them is little")
    else:
        yield case.line(
            name,
            "try",
            basis="rule",
            reason=f"up to {show_bytes(tables)} of page tables, "
            f"{percent(tables / case.given.memory_bytes)} of the memory, which huge pages make "
            "500 times smaller",
            changes="taken where the system has reserved them, else the server starts without",
            rule="huge_pages",
        )


def _page_tables(case: SettingsCase) -> float | None:
    """What all sessions' maps of the shared memory can take; None: it does not matter."""
    given = case.given.memory_bytes
    if given is None or case.in_force["shared_memory_size_in_huge_pages"].value == "0":
        return None
    shared = shared_bytes(case)
    tables = shared / _SMALL_PAGE_BYTES * _ENTRY_BYTES * _sessions(case)
    return tables if shared >= _SHARED_MIN and tables >= _TABLES_FRAC_MIN * given else None


def shared_bytes(case: SettingsCase) -> float:
    """
    The shared memory that the server asks for once it has all lines, at most, in bytes.

    Of a server that is there, what it has and the difference; else a version's defaults and that.
    """
    if case.is_live:
        known = case.number("shared_memory_size")
        buffers_now, log_now = case.number("shared_buffers"), case.number(_WAL_BUFFERS)
        sessions_now = case.number("max_connections")
    else:
        known = float(_of(_AT_DEFAULTS, case.major))
        buffers_now, log_now, sessions_now = 128.0 * MIB, 4.0 * MIB, 100.0
    more = (memory.shared_buffers_to_be(case) - buffers_now) * _of(_EACH_BYTE, case.major)
    processes = _sessions(case) - sessions_now
    if case.given.cores is not None:
        # At least so many, as max_worker_processes has it; each is a place like a session's.
        processes += max(case.given.cores - case.number("max_worker_processes"), 0)
    more += processes * _of(_EACH_CONNECTION, case.major)
    log = _more_wal_buffers(case)
    if log is None:
        log = max(log_now, _by_itself(case)) if _is_set(case) else _by_itself(case)
    more += log - log_now
    return known + more + (_ROUNDED_BYTES if more else 0)


def remark(case: SettingsCase) -> str | None:
    """How many huge pages the system has to reserve; None: the server has them, or it is little."""
    tables = _page_tables(case)
    memory_bytes = case.given.memory_bytes
    if tables is None or memory_bytes is None:
        return None
    page_bytes, has_them = float(_HUGE_PAGE_BYTES), False
    shared = shared_bytes(case)
    if case.is_live:
        now = case.number("shared_memory_size_in_huge_pages")
        if now <= 0:
            return None  # the platform has none
        # The size is told in whole MB, and pages are powers of two.
        page_bytes = 2.0 ** round(math.log2(case.number("shared_memory_size") / now))
        status = case.in_force.get("huge_pages_status")
        has_them = status is not None and status.value == "on"
        if has_them and shared <= case.number("shared_memory_size"):
            return None
    pages = math.ceil(shared / page_bytes)
    without = (
        "the server has them, and will need more"
        if has_them
        else f"without them page tables take up to {show_bytes(tables)} "
        f"({percent(tables / memory_bytes)} of the memory), for each of {_sessions(case):,} "
        "sessions maps all of it"
    )
    return (
        f"Huge pages: {without}. The system has to reserve {pages:,} of {show_bytes(page_bytes)} "
        f"before the server starts (vm.nr_hugepages = {pages} on Linux); exactly as many as "
        "`postgres -D FOLDER -C shared_memory_size_in_huge_pages` says of the stopped server."
    )


def _sessions(case: SettingsCase) -> int:
    return case.given.connections or int(case.number("max_connections"))


def _of(by_major: Mapping[int, float], major: int) -> float:
    return by_major[max(since for since in by_major if since <= major)]
