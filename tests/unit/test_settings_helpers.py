"""When parallel workers of autovacuum are told (19)."""

from __future__ import annotations

from dataclasses import replace

from pgheadroom.settings import ServerMachine, vacuum
from pgheadroom.settings.arithmetic import DyingTable
from pgheadroom.settings.case import Said, SettingsCase
from pgheadroom.settings.in_force import InForce, defaults_of
from pgheadroom.settings.measured import CountedLoad
from pgheadroom.settings.values import KeptSetting, OpenSetting, SettingLine

NAME = "autovacuum_max_parallel_workers"
TABLE = DyingTable(
    dead_per_s=1.0, trigger_rows=20_000.0, heap_pages=1e4, index_pages=(900.0, 800.0, 64.0, 63.0)
)
"""Three of its indexes are large enough (min_parallel_index_scan_size), the fourth is not."""


def said(
    *,
    busy: float = 0.8,
    table: DyingTable = TABLE,
    cores: int | None = 16,
    major: int = 19,
    settings: InForce | None = None,
) -> Said | None:
    case = SettingsCase(
        given=ServerMachine(cores=cores),
        major=major,
        in_force=settings or defaults_of(major),
        is_live=True,
        counted=CountedLoad(
            over="in the hour",
            wal_over="in the hour",
            is_interval=True,
            tables=(table,),
            vacuum_busy_workers=busy,
        ),
    )
    return next((each for each in vacuum.decide(case) if each.name == NAME), None)


def test_helpers_by_what_binds() -> None:
    """Told where workers are busy and indexes are large, by the cores; each has its own pace."""
    line = said()
    assert isinstance(line, SettingLine)
    assert (line.value, line.basis) == ("2", "measured")
    four = said(cores=4)
    assert isinstance(four, SettingLine)
    assert four.value == "1", "a quarter of the cores"
    assert isinstance(said(busy=0.4), KeptSetting), "workers have time"
    assert isinstance(said(cores=None), OpenSetting)
    one = replace(TABLE, index_pages=(900.0, 63.0, 63.0, 63.0))
    assert isinstance(said(table=one), KeptSetting), "one large index is the worker's own"
    # 300 of such a second: the cost limit is what is waited for, by each for its own cost.
    slow = said(table=replace(TABLE, dead_per_s=3e5))
    assert isinstance(slow, SettingLine)
    assert slow.value == "2"
    there = defaults_of(19)
    there[NAME] = replace(there[NAME], value="2")
    assert isinstance(said(settings=there), KeptSetting)
    assert said(major=18) is None
