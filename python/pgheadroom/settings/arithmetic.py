"""
The arithmetic of settings, in one place: checkpoints, memory, what autovacuum has to do.

Plain numbers in and out, in base units. The doctor's rules price by the same functions.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

KIB, MIB, GIB = 1024, 1024**2, 1024**3

BY_WAL_FRAC_MAX = 0.10
"""Of all checkpoints, until which those that WAL has asked for are few: the rule is 90 % by time
(B11.27)."""
BY_WAL_COUNT_MIN = 3
"""So many at least, before a share of them says anything; arbitrary."""
WAL_PEAK = 2.0
"""A rate is a mean, and checkpoints come by WAL at the peaks. Arbitrary."""
VACUUM_BUSY_FRAC_MAX = 0.5
"""Of what its cost limit allows, until which autovacuum has room for peaks. Arbitrary."""
VACUUM_BUSY_FRAC_AIM = 0.25
"""And after a change: half of that, so that it stands at twice the load too. Arbitrary."""
_SKIP_PAGES = 32
"""All-visible pages that have to follow one another to be left out (SKIP_PAGES_THRESHOLD)."""
COST_LIMIT_MAX = 10_000
"""Of autovacuum_vacuum_cost_limit (guc_tables.c)."""


def rounded_down(amount_bytes: float) -> int:
    """To five binary digits, as people set sizes: monotone, and at most 6 % less."""
    whole = int(amount_bytes)
    return whole if whole < 32 else whole >> (whole.bit_length() - 5) << (whole.bit_length() - 5)


def rounded_up_mib(amount_bytes: float) -> int:
    """Bytes, up to whole GB from one on and to 64 MB below, as people set max_wal_size."""
    step = GIB if amount_bytes > GIB else 64 * MIB
    return max(math.ceil(amount_bytes / step), 1) * step


# Checkpoints


def distance_bytes(max_wal_size_bytes: float, segment_bytes: int, target: float) -> int:
    """
    WAL after which a checkpoint is requested.

    Source: `CalculateCheckpointSegments` and `XLogCheckpointNeeded`, xlog.c.
    """
    segments = max(int(max_wal_size_bytes / segment_bytes / (1.0 + target)), 1)
    return max(segments - 1, 1) * segment_bytes


def wal_size_for(
    wal_bytes_per_s: float, timeout_s: float, segment_bytes: int, target: float
) -> int:
    """
    The least max_wal_size at which the clock makes checkpoints at this rate.

    The inverse of `distance_bytes`: its distance is not less than a timeout's WAL.
    """
    segments = math.ceil(wal_bytes_per_s * timeout_s / segment_bytes) + 1
    return math.ceil(segments * (1.0 + target)) * segment_bytes


def checkpoints_by_wal(requested: int, done: int, wal_bytes: float | None, distance: int) -> int:
    """
    How many checkpoints WAL can have asked for.

    Others are requested too: by hand, for a base backup, a new database. No more can have been by
    WAL than there was WAL for.

    Args:
        requested: As the server counts.
        done: All of them; one that is asked for meanwhile is not done yet.
        wal_bytes: Written in the same time; None: not known.
        distance: After how much one is requested.
    """
    by_wal = min(requested, done)
    return by_wal if wal_bytes is None else min(by_wal, int(wal_bytes / distance))


def are_by_wal(by_wal: int, done: int) -> bool:
    """Whether these are too many."""
    return by_wal >= BY_WAL_COUNT_MIN and done > 0 and by_wal / done > BY_WAL_FRAC_MAX


# Autovacuum


def option_number(name: str, text: str) -> float:
    """
    A storage parameter, which is kept as it was written.

    Source: `parse_int` and `parse_real`, guc.c: as C reads numbers, hexadecimal, and octal where
    it is a whole one.
    """
    written = text.strip().lower()
    if "0x" in written:
        return float.fromhex(written)
    if not name.endswith("_factor") and re.fullmatch(r"[+-]?0[0-7]+", written):
        return float(int(written, 8))
    return float(written)


def trigger_rows(settings: Mapping[str, str], row: Mapping[str, Any]) -> float:
    """
    Dead rows from which on autovacuum vacuums the table.

    Args:
        settings: As pg_settings has them.
        row: The table's `reloptions` as a mapping, and its `reltuples`.

    Source: `relation_needs_vacanalyze`, autovacuum.c.
    """
    options: Mapping[str, str] = row["reloptions"] or {}

    def value(name: str) -> float:
        own = option_number(name, options.get(name, "-1"))
        return float(settings[name]) if own < 0 else own

    rows = max(float(row["reltuples"] or 0), 0.0)
    threshold = value("autovacuum_vacuum_threshold")
    found = threshold + value("autovacuum_vacuum_scale_factor") * rows
    limit = "autovacuum_vacuum_max_threshold"
    if limit not in settings:
        return found
    most = option_number(limit, options.get(limit, "-2"))  # -1 is no limit
    most = float(settings[limit]) if most < -1 else most
    return found if most < 0 else min(found, most)


def is_switched_off(settings: Mapping[str, str], row: Mapping[str, Any]) -> bool:
    """Whether autovacuum comes to the table only to freeze it."""
    own = str((row["reloptions"] or {}).get("autovacuum_enabled", "on")).lower()
    never = {"off", "false", "no", "0", "f", "n", "fa", "fal", "fals", "of"}
    return settings["autovacuum"] == "off" or own in never


def cost_pace(settings: Mapping[str, str]) -> tuple[float, float]:
    """
    Limit and delay (in seconds) of autovacuum's workers together.

    Source: `VacuumUpdateCosts` and `AutoVacuumUpdateCostLimit`, autovacuum.c: the limit is shared
    among the workers, so more of them are not faster together. -1 stands for VACUUM's own.
    """
    limit = float(settings["autovacuum_vacuum_cost_limit"])
    delay_ms = float(settings["autovacuum_vacuum_cost_delay"])
    return (
        float(settings["vacuum_cost_limit"]) if limit <= 0 else limit,
        (float(settings["vacuum_cost_delay"]) if delay_ms < 0 else delay_ms) / 1000.0,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DyingTable:
    """
    A table whose rows die.

    Attributes:
        dead_per_s: Versions that VACUUM has to remove; those of HOT updates go by pruning.
        trigger_rows: Dead rows at which autovacuum comes.
        heap_pages: Its pages.
        index_pages: Those of each of its indexes.
    """

    dead_per_s: float
    trigger_rows: float
    heap_pages: float
    index_pages: Sequence[float]


@dataclass(frozen=True, slots=True, kw_only=True)
class VacuumWork:
    """
    What VACUUM has to do, at most.

    Attributes:
        pages: It reads, those of the heap with dead rows twice.
        dirty_pages: Of these, that it changes.
        cost: By the prices of vacuum_cost_page_*.
    """

    pages: float
    dirty_pages: float
    cost: float

    def times(self, factor: float) -> VacuumWork:
        """The same so many times, or so often a second."""
        return VacuumWork(
            pages=self.pages * factor,
            dirty_pages=self.dirty_pages * factor,
            cost=self.cost * factor,
        )

    @staticmethod
    def sum_of(works: Iterable[VacuumWork]) -> VacuumWork:
        """All of them together."""
        found = list(works)
        return VacuumWork(
            pages=sum(work.pages for work in found),
            dirty_pages=sum(work.dirty_pages for work in found),
            cost=sum(work.cost for work in found),
        )


def work_of_one(table: DyingTable, settings: Mapping[str, str]) -> VacuumWork:
    """
    One VACUUM of a table at its trigger: the most that it costs, with nothing in the cache.

    Dead rows lie anywhere: of n pages, n (1 - e^(-rows/n)) have one. All-visible pages are left out
    where 32 follow one another. Pages with dead rows are read and changed again when their line
    pointers are freed, for by then they have left VACUUM's small ring of buffers. Indexes are read
    whole, and changed where an entry goes. Rows that died side by side cost less, and so do pages
    that are in the cache, or dirty already.

    Source: `lazy_scan_heap`, `find_next_unskippable_block` (SKIP_PAGES_THRESHOLD),
    `lazy_vacuum_heap_rel`, vacuumlazy.c; VacuumCostBalance, bufmgr.c.
    """
    hit, miss, dirty = (
        float(settings[f"vacuum_cost_page_{name}"]) for name in ("hit", "miss", "dirty")
    )
    rows = max(table.trigger_rows, 1.0)

    def touched(pages: float) -> float:
        return pages * -math.expm1(-rows / pages) if pages > 0 else 0.0

    heap = touched(table.heap_pages)
    share = heap / max(table.heap_pages, 1.0)
    in_long_runs = (1 - share) ** _SKIP_PAGES * (_SKIP_PAGES * share + 1 - share)
    read = table.heap_pages * (1 - in_long_runs) + heap + sum(table.index_pages)
    changed = 2 * heap + sum(map(touched, table.index_pages))
    return VacuumWork(
        pages=read, dirty_pages=changed, cost=miss * read + dirty * changed + hit * heap
    )


def work_per_s(tables: Iterable[DyingTable], settings: Mapping[str, str]) -> VacuumWork:
    """What autovacuum has to do a second so that it keeps up with all of them."""
    return VacuumWork.sum_of(
        work_of_one(table, settings).times(table.dead_per_s / max(table.trigger_rows, 1.0))
        for table in tables
    )


def cost_limit_for(work: VacuumWork, delay_s: float) -> int:
    """The limit at which this work takes a quarter of what is allowed, in whole hundreds."""
    wanted = work.cost * delay_s / VACUUM_BUSY_FRAC_AIM
    return min(max(math.ceil(wanted / 100) * 100, 200), COST_LIMIT_MAX)
