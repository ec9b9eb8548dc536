"""
Settings that share the machine's memory.

    a quarter                shared_buffers
    a fifth, at most         autovacuum's workers, and a twentieth one maintenance by hand
    a quarter                all sessions' sorts and hashes at once
    the rest, a quarter and more, is the system's cache

So the whole never goes beyond the memory, however many sessions and workers there are.
"""

from __future__ import annotations

from collections.abc import Iterator

from pgheadroom.settings import vacuum
from pgheadroom.settings.arithmetic import GIB, KIB, MIB, rounded_down
from pgheadroom.settings.case import MEMORY_ASKED, Said, SettingsCase
from pgheadroom.settings.values import OpenSetting
from pgheadroom.units import percent, show_bytes, show_share

MEMORY_MIN_BYTES = 256 * MIB  # a quarter of it is shared_buffers' half default; arbitrary
_DEFAULT_WORK_MEM_BYTES = 4096 * KIB  # of work_mem (guc_tables.c)
WORK_MEM_MIN_BYTES = 64 * KIB  # of work_mem (guc_tables.c)
_MAINTENANCE_MAX = 8 * GIB
_AUTOVACUUM_MAX = GIB
_WORKERS_FRAC = 0.2
_DEFAULT_FITS = 1.9
"""Times a quarter of the memory, so just under a half: beside shared_buffers, maintenance, and
wal_buffers (at most a 128th) that is all there is."""
_SHARED_FRAC = (1 / 6, 0.25, 0.4)
_CACHE_FRAC = (0.5, 0.75)
_NODES = {"dw": 4, "mixed": 4}
"""Sorts and hashes of a statement at once: reports have more of them. Else two."""


def decide(case: SettingsCase) -> Iterator[Said]:
    """shared_buffers, effective_cache_size, maintenance, work_mem, in this order."""
    memory = case.given.memory_bytes
    if memory is None:
        for name in ("shared_buffers", "effective_cache_size", "maintenance_work_mem", "work_mem"):
            yield OpenSetting(name=name, by="--memory", reason=MEMORY_ASKED)
        return
    yield _shared_buffers(case, memory)
    yield _effective_cache_size(case, memory)
    yield from _maintenance(case, memory)
    yield _work_mem(case, memory)


def shared_buffers_to_be(case: SettingsCase) -> float:
    """What it is with this fragment, in bytes; without a memory that is given, as it is."""
    memory, now = case.given.memory_bytes, case.number("shared_buffers")
    if memory is None:
        return now
    low, aim, high = _SHARED_FRAC
    wanted = rounded_down(aim * memory)
    return now if case.stands(now, wanted, low * memory, high * memory) else wanted


def _shared_buffers(case: SettingsCase, memory: int) -> Said:
    name = "shared_buffers"
    now, wanted = case.number(name), shared_buffers_to_be(case)
    share = show_share(now / memory)
    if wanted == now:
        return case.kept(name, f"it is {share} of the memory: from a sixth to 40 % is right")
    read = ""
    if case.counted is not None and case.counted.read_bytes_a_day is not None:
        read = (
            f"; {show_bytes(case.counted.read_bytes_a_day)} a day were read into it "
            f"{case.counted.over}"
        )
    return case.line(
        name,
        wanted,
        basis="rule",
        reason=f"a quarter of {show_bytes(memory)} of memory; {case.shown(name)} is {share}{read}",
        changes="pages that are read again and again stay in the server's own cache, and one "
        "that is changed often is written once a checkpoint",
        rule="shared_buffers (B5.19, B11.28)",
    )


def _effective_cache_size(case: SettingsCase, memory: int) -> Said:
    name = "effective_cache_size"
    now = case.number(name)
    low, high = _CACHE_FRAC
    if case.stands(now, rounded_down(high * memory), low * memory, high * memory):
        return case.kept(
            name, f"it is {percent(now / memory)} of the memory: from a half to three quarters"
        )
    return case.line(
        name,
        rounded_down(high * memory),
        basis="rule",
        reason=f"three quarters of {show_bytes(memory)}: shared_buffers and the system's cache",
        changes="plans only: indexes look cheaper the more of them is taken to be cached; no "
        "memory is taken",
        rule="effective_cache_size (B6.17)",
    )


def _maintenance(case: SettingsCase, memory: int) -> Iterator[Said]:
    name = "maintenance_work_mem"
    now, wanted = case.number(name), rounded_down(min(memory / 20, _MAINTENANCE_MAX))
    whole = now
    if case.stands(now, wanted, wanted / 2, 2 * wanted):
        yield case.kept(name, f"{show_bytes(wanted)} are a twentieth of the memory: near enough")
    else:
        whole = wanted
        yield case.line(
            name,
            wanted,
            basis="rule",
            reason=f"a twentieth of {show_bytes(memory)}, at most 8 GB",
            changes="indexes are built and constraints checked with fewer passes over disk; each "
            "such command may take so much",
            rule="maintenance_work_mem (B6.10)",
        )
    workers = vacuum.workers_of(case)
    own = case.number("autovacuum_work_mem")
    each = whole if own < 0 else own
    most = min(_WORKERS_FRAC * memory / workers, float(_AUTOVACUUM_MAX))
    name = "autovacuum_work_mem"
    if each <= most:
        yield case.kept(
            name,
            f"{workers} workers of {show_bytes(each)} each stay under a fifth of the memory",
        )
        return
    limit = (
        "up to 16 a VACUUM uses no more than 1 GB"
        if case.major < 17
        else "from 17 on dead rows take a small part of the memory that they took"
    )
    yield case.line(
        name,
        rounded_down(most),
        basis="rule",
        reason=f"{workers} workers (autovacuum_max_workers) share a fifth of "
        f"{show_bytes(memory)}, at most 1 GB each: {limit}",
        changes=f"a worker takes so much at most, not {show_bytes(each)}",
        rule="autovacuum_work_mem (B6.10, B7.30)",
    )


def most_connections(case: SettingsCase, memory: int) -> int:
    """So many sessions leave each of them 64 kB of work_mem, which is the least there is."""
    return int(_for_all(case, memory) / WORK_MEM_MIN_BYTES) - _parallel(case)


def _parallel(case: SettingsCase) -> int:
    """Workers that sort and hash beside the sessions: what this fragment makes of them."""
    return case.given.cores or int(case.number("max_parallel_workers"))


def _for_all(case: SettingsCase, memory: int) -> float:
    """A quarter of the memory by what a session may have of it at once, in units of work_mem."""
    nodes = _NODES.get(case.given.workload or "", 2)
    return memory / 4 / nodes / case.number("hash_mem_multiplier")


def _work_mem(case: SettingsCase, memory: int) -> Said:
    name = "work_mem"
    connections = case.given.connections
    if connections is None and not case.is_live:
        return OpenSetting(
            name=name,
            by="--connections",
            reason="each session takes its own, so it goes by how many there are",
        )
    sessions = connections or int(case.number("max_connections"))
    # A server may have more sessions than its machine has memory for: there is no less than that.
    wanted = max(
        rounded_down(_for_all(case, memory) / (sessions + _parallel(case))), WORK_MEM_MIN_BYTES
    )
    now = case.number(name)
    aggressive = memory / 4 / sessions
    # Nobody has chosen the default, yet less of it is worth a line only where it does not fit.
    most = max(aggressive, wanted) if case.is_live else _DEFAULT_FITS * wanted
    if wanted <= now <= most:
        return case.kept(name, f"{show_bytes(wanted)} are safe, {show_bytes(most)} the most")
    nodes = _NODES.get(case.given.workload or "", 2)
    share = (
        f"a quarter of {show_bytes(memory)} for {sessions} sessions and {_parallel(case)} parallel "
        f"workers at once, {nodes} sorts or hashes each, a hash "
        f"{case.number('hash_mem_multiplier'):g} times as much (hash_mem_multiplier)"
    )
    if now > wanted:
        if wanted < _DEFAULT_WORK_MEM_BYTES:
            changes = (
                f"the machine does not run out of memory when all {sessions} sort at once. Fewer "
                "sessions, by a pooler and a lower max_connections, are the better way: with less "
                "than 4MB small sorts and hashes go to temporary files"
            )
        else:
            changes = (
                "larger sorts and hashes go to temporary files; the machine does not run out of "
                "memory when all sort at once. Fewer sessions, by a pooler, would leave each more"
            )
        return case.line(
            name,
            wanted,
            basis="rule",
            reason=f"{share}; {case.shown(name)} could take "
            f"{show_bytes(now * sessions * nodes * case.number('hash_mem_multiplier'))}",
            changes=changes,
            rule="work_mem (B6.19, B10.14)",
        )
    temp = None if case.counted is None else case.counted.temp_bytes_a_day
    if case.counted is not None and temp is not None and temp < GIB:
        return case.kept(
            name,
            f"sorts and hashes wrote {show_bytes(temp)} a day into temporary files "
            f"{case.counted.over}: more would change little",
        )
    spilled = ""
    if case.counted is not None and temp is not None:
        spilled = f"; {show_bytes(temp)} a day went into temporary files {case.counted.over}"
    return case.line(
        name,
        wanted,
        basis="rule" if not spilled else "measured",
        reason=f"{share}{spilled}",
        changes="sorts and hashes of that size stay in memory instead of temporary files",
        rule="work_mem (B6.19, B10.14)",
    )
