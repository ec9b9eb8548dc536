"""
Settings of autovacuum: by what it has to do, which follows from the rate at which rows die.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from pgheadroom.settings.arithmetic import (
    COST_LIMIT_MAX,
    VACUUM_BUSY_FRAC_MAX,
    cost_limit_for,
    cost_pace,
    work_per_s,
)
from pgheadroom.settings.case import Said, SettingsCase
from pgheadroom.settings.values import OpenSetting
from pgheadroom.units import PAGE_BYTES, percent, show_bytes, show_count

_LIMIT = "autovacuum_vacuum_cost_limit"
_WORKERS = "autovacuum_max_workers"
_HELPERS = "autovacuum_max_parallel_workers"
_HELPED_FROM_BUSY = 0.5  # workers at work in the mean: less leaves time enough; arbitrary
_WORKERS_BUSY_FRAC_MAX = 0.7  # of the time of all workers, in the mean; arbitrary


def decide(case: SettingsCase) -> Iterator[Said]:
    """autovacuum_vacuum_cost_limit, autovacuum_max_workers, and how many help one of these (19)."""
    if case.counted is None or case.counted.tables is None:
        yield OpenSetting(
            name=_LIMIT,
            by="--for" if case.is_live else "a connection",
            reason=f"how fast rows die is not known: {case.uncounted}",
        )
        return
    yield _cost_limit(case)
    if case.counted.vacuum_busy_workers is not None:
        yield _workers(case, case.counted.vacuum_busy_workers)
        if case.major >= 19:
            yield _helpers(case, case.counted.vacuum_busy_workers)


def _cost_limit(case: SettingsCase) -> Said:
    counted = case.counted
    assert counted is not None
    assert counted.tables is not None
    settings = case.settings()
    limit, delay_s = cost_pace(settings)
    work = work_per_s(counted.tables, settings)
    dead = sum(table.dead_per_s for table in counted.tables)
    busy = [table for table in counted.tables if table.dead_per_s > 0]
    means = (
        f"measured {counted.over}: {dead:,.0f} rows a second die in "
        f"{show_count(len(busy), 'table')} of this database (without those that pruning takes), so "
        f"autovacuum has up to {work.pages:,.0f} pages a second to process"
    )
    if delay_s <= 0:
        return case.kept(_LIMIT, f"{means}; its delay is 0, so nothing holds it back")
    allowed = limit / delay_s
    share = work.cost / allowed
    means += f", {percent(share)} of what its cost limit allows"
    if share <= VACUUM_BUSY_FRAC_MAX:
        return case.kept(_LIMIT, means)
    wanted = cost_limit_for(work, delay_s)
    if wanted <= limit:
        return case.kept(_LIMIT, f"{means}; {COST_LIMIT_MAX:,} is the most there is")
    dirty = float(settings["vacuum_cost_page_dirty"])
    written = (show_bytes(pace / dirty / delay_s * PAGE_BYTES) for pace in (limit, wanted))
    before, after = written
    return case.line(
        _LIMIT,
        wanted,
        basis="measured",
        reason=f"{means}; {wanted:,} makes it {percent(work.cost * delay_s / wanted)}",
        changes=f"all workers together may change {after} a second of pages instead of {before}",
        rule="autovacuum_vacuum_cost_limit (B7.18)",
    )


def workers_of(case: SettingsCase) -> int:
    """autovacuum_max_workers, as it should be by the time that they were at work."""
    now = int(case.number(_WORKERS))
    busy = None if case.counted is None else case.counted.vacuum_busy_workers
    if busy is None or busy <= _WORKERS_BUSY_FRAC_MAX * now:
        return now
    slots = int(case.number("autovacuum_worker_slots"))  # from 18 on, as that counter
    return max(min(math.ceil(busy / _WORKERS_BUSY_FRAC_MAX) + 1, slots), now)


def _workers(case: SettingsCase, busy: float) -> Said:
    assert case.counted is not None
    now, wanted = case.number(_WORKERS), workers_of(case)
    means = (
        f"measured {case.counted.over}: {busy:.2g} workers were at work in this database in the "
        "mean"
    )
    if wanted <= now:
        return case.kept(_WORKERS, means)
    return case.line(
        _WORKERS,
        wanted,
        basis="measured",
        reason=f"{means}, of {now:.0f}",
        changes="more tables are vacuumed at once; the cost limit is shared, so all together "
        "write no more",
        rule="autovacuum_max_workers (B7.18)",
    )


def _helpers(case: SettingsCase, busy: float) -> Said:
    """
    Parallel workers of one autovacuum worker, an index each (`parallel_vacuum_compute_workers`).

    The cost limit does not bind them: each sleeps for its own share of the cost alone, and they
    sleep at the same time (`compute_parallel_delay`, src/backend/commands/vacuum.c). On 19rc1
    VACUUM of two equal indexes, which slept nearly all the time, took 5.1 s for these, and with one
    worker 2.6 s.
    """
    counted, cores = case.counted, case.given.cores
    assert counted is not None
    assert counted.tables is not None
    if busy < _HELPED_FROM_BUSY:
        return case.kept(
            _HELPERS,
            f"measured {counted.over}: {busy:.2g} workers were at work in the mean, so none is "
            "late",
        )
    large = case.number("min_parallel_index_scan_size") / PAGE_BYTES
    indexes = max(
        (
            sum(pages >= large for pages in table.index_pages)
            for table in counted.tables
            if table.dead_per_s > 0
        ),
        default=0,
    )
    if indexes < 2:
        return case.kept(_HELPERS, "no table whose rows die has two large indexes")
    if cores is None:
        return OpenSetting(
            name=_HELPERS, by="--cores", reason="a connection does not tell the cores"
        )
    wanted = min(indexes - 1, max(cores // 4, 1), int(case.number("max_parallel_workers")))
    if wanted <= case.number(_HELPERS):
        return case.kept(_HELPERS, f"{wanted} at least")
    return case.line(
        _HELPERS,
        wanted,
        basis="measured",
        reason=f"measured {counted.over}: {busy:.2g} workers were at work in the mean, and a table "
        f"whose rows die has {indexes} large indexes; a quarter of {cores} cores at most",
        changes="a worker vacuums so many more indexes of its table at once, out of "
        f"max_parallel_workers; each at the pace of {_LIMIT}, so that they read and write so much "
        "more a second",
        rule="autovacuum_max_parallel_workers",
    )
