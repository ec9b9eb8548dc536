"""
Settings that follow from connections, cores and disk.
"""

from __future__ import annotations

from collections.abc import Iterator

from pgheadroom.settings.case import Said, SettingsCase
from pgheadroom.settings.values import OpenSetting

_RANDOM_COST = 1.1
_RANDOM_COST_ON_SSD = (1.0, 2.0)
_RANDOM_COST_ON_HDD = 4.0
_CONCURRENCY_ON_SSD = 200
_CONCURRENCY_ENOUGH = 16  # the default from 18 on
_OF_A_REPORT_MAX = 8  # a plan's workers grow by the logarithm of its table; arbitrary


def decide(case: SettingsCase) -> Iterator[Said]:
    """max_connections; workers by cores; costs by the disk; jit by the workload."""
    yield from _connections(case)
    yield from _workers(case)
    yield from _disk(case)
    yield from _jit(case)


def _connections(case: SettingsCase) -> Iterator[Said]:
    name, given = "max_connections", case.given.connections
    if given is None:
        if not case.is_live:
            yield OpenSetting(
                name=name, by="--connections", reason="only you know how many there are"
            )
        return
    if given == case.number(name):
        yield case.kept(name, "as --connections says")
        return
    yield case.line(
        name,
        given,
        basis="given",
        reason="--connections",
        changes="so many sessions at once; work_mem goes by it",
        rule="max_connections (B6.5)",
    )


def _workers(case: SettingsCase) -> Iterator[Said]:
    cores = case.given.cores
    names = ["max_worker_processes", "max_parallel_workers", "max_parallel_maintenance_workers"]
    io_name = "io_workers" if case.major < 19 else "io_max_workers"
    names += [io_name] if case.major >= 18 else []
    if cores is None:
        for name in names:
            yield OpenSetting(
                name=name, by="--cores", reason="a connection does not tell the cores"
            )
        return
    yield _at_least(
        case,
        "max_worker_processes",
        max(cores, 8),
        f"a process for each of {cores} cores, 8 at least",
        "the pool out of which all parallel workers come is large enough",
        "parallel workers",
    )
    name = "max_parallel_workers"
    now = case.number(name)
    if cores / 2 <= now <= cores:
        yield case.kept(name, f"between half of {cores} cores and all of them")
    else:
        yield case.line(
            name,
            cores,
            basis="rule",
            reason=f"as many as cores: {cores}",
            changes="parallel plans use the cores there are, and no more processes than these",
            rule="parallel workers",
        )
    if case.given.workload == "dw":
        yield _at_least(
            case,
            "max_parallel_workers_per_gather",
            max(min(cores // 2, _OF_A_REPORT_MAX), 2),
            f"half of {cores} cores for one report (--workload dw), 8 at most",
            "one large query uses that many cores; each worker has its own work_mem",
            "parallel workers",
        )
    yield _at_least(
        case,
        "max_parallel_maintenance_workers",
        max(min(cores // 4, 4), 2),
        f"a quarter of {cores} cores, 2 to 4",
        "B-trees are built by so many processes, which share maintenance_work_mem",
        "parallel workers",
    )
    if case.major >= 18 and case.in_force["io_method"].value == "worker":
        yield _at_least(
            case,
            io_name,
            min(max(cores // 4, 3), 32),
            f"a quarter of {cores} cores (io_method = worker)",
            "so many processes read ahead for all sessions together",
            "io_workers",
        )


def _at_least(
    case: SettingsCase, name: str, wanted: int, reason: str, changes: str, rule: str
) -> Said:
    if case.number(name) >= wanted:
        return case.kept(name, f"{wanted} at least: {reason}")
    return case.line(name, wanted, basis="rule", reason=reason, changes=changes, rule=rule)


def _disk(case: SettingsCase) -> Iterator[Said]:
    disk = case.given.disk
    name = "random_page_cost"
    if disk is None:
        for asked in (name, "effective_io_concurrency"):
            yield OpenSetting(name=asked, by="--disk", reason="a connection does not tell the disk")
        return
    now = case.number(name)
    if disk == "hdd":
        if now >= _RANDOM_COST_ON_SSD[1]:
            yield case.kept(name, "a disk that turns seeks")
        else:
            yield case.line(
                name,
                _RANDOM_COST_ON_HDD,
                basis="rule",
                reason="a disk that turns (--disk hdd) seeks for each page",
                changes="plans only: scans by index look as dear as they are",
                rule="random_page_cost (B6.21, B9.11)",
            )
        return
    low, high = _RANDOM_COST_ON_SSD
    if low <= now <= high:
        yield case.kept(name, f"between {low:g} and {high:g} on a disk without seeks")
    else:
        yield case.line(
            name,
            _RANDOM_COST,
            basis="rule",
            reason=f"a disk without seeks (--disk {disk})",
            changes="plans only: more of them use indexes",
            rule="random_page_cost (B6.21, B9.11)",
        )
    name = "effective_io_concurrency"
    if case.number(name) >= _CONCURRENCY_ENOUGH:
        yield case.kept(name, f"{_CONCURRENCY_ENOUGH} or more, the default from 18 on")
        return
    yield case.line(
        name,
        _CONCURRENCY_ON_SSD if case.major < 18 else _CONCURRENCY_ENOUGH,
        basis="rule",
        reason=f"a disk that answers many requests at once (--disk {disk})",
        changes="bitmap scans read ahead so many pages"
        if case.major < 18
        else "scans read ahead so many times",
        rule="effective_io_concurrency",
    )


def _jit(case: SettingsCase) -> Iterator[Said]:
    if case.given.workload not in ("oltp", "web"):
        return
    if case.in_force["jit"].value == "off":
        yield case.kept("jit", "short statements gain nothing by it")
        return
    yield case.line(
        "jit",
        "off",
        basis="rule",
        reason=f"short statements (--workload {case.given.workload}) are over before their "
        "compilation pays; off is the default from 19 on",
        changes="no expression is compiled; a long report may take longer (SET jit = on there)",
        rule="jit",
    )
