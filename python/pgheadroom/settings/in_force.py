"""
Settings as they are: of a server, or the defaults of a version where there is none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pgheadroom.settings.arithmetic import GIB, KIB, MIB

_UNIT_BYTES = {"B": 1, "kB": KIB, "8kB": 8 * KIB, "MB": MIB}
_UNIT_S = {"ms": 0.001, "s": 1.0, "min": 60.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingInForce:
    """
    A row of pg_settings.

    Attributes:
        name: Its name.
        value: What sessions begin with, in the unit.
        unit: Of the value; None: a plain number or text.
        context: When it can be changed.
        source: Who has set it.
        is_auto: It stands in postgresql.auto.conf; None: the role does not see where it stands.
        where: File and line, where the role sees them.
        pending_restart: Another value waits for a restart.
        enumvals: What it can be, of an enumeration.
        may_alter: Whether the role may ALTER SYSTEM it.
    """

    name: str
    value: str
    unit: str | None
    context: str
    source: str = "default"
    is_auto: bool | None = False
    where: str | None = None
    pending_restart: bool = False
    enumvals: tuple[str, ...] = ()
    may_alter: bool = True

    @property
    def number(self) -> float:
        """In base units: bytes, seconds, or as it stands; -1 stays itself."""
        found = float(self.value)
        if found < 0:
            return found
        return found * _UNIT_BYTES.get(self.unit or "", _UNIT_S.get(self.unit or "", 1.0))

    @property
    def shown(self) -> str:
        """As SHOW has it, near enough to be read and set again."""
        if self.unit in _UNIT_BYTES and float(self.value) > 0:
            return shown_bytes(int(self.number))
        if self.unit in _UNIT_S and float(self.value) > 0:
            return shown_s(self.number)
        return self.value


def shown_bytes(amount_bytes: int) -> str:
    """A size as settings spell it, in the largest unit that leaves it whole."""
    for unit, size in (("GB", GIB), ("MB", MIB)):
        if amount_bytes % size == 0:
            return f"{amount_bytes // size}{unit}"
    return f"{amount_bytes // KIB}kB"


def shown_s(length_s: float) -> str:
    """A time as settings spell it."""
    for unit, size in (("h", 3600), ("min", 60), ("s", 1)):
        if length_s % size == 0:
            return f"{length_s / size:.0f}{unit}"
    return f"{length_s * 1000:g}ms"


InForce = Mapping[str, SettingInForce]

# boot_val of pg_settings on 15.18, 16.14, 17.10, 18.4 and 19rc1: equal in all but where a major
# stands beside. Read again by tests/postgres/test_settings_fragment.py.
_ALL = """
shared_buffers 16384 8kB postmaster
effective_cache_size 524288 8kB user
work_mem 4096 kB user
hash_mem_multiplier 2 - user
maintenance_work_mem 65536 kB user
autovacuum_work_mem -1 kB sighup
max_connections 100 - postmaster
max_worker_processes 8 - postmaster
max_parallel_workers 8 - user
max_parallel_workers_per_gather 2 - user
max_parallel_maintenance_workers 2 - user
random_page_cost 4 - user
checkpoint_timeout 300 s sighup
max_wal_size 1024 MB sighup
checkpoint_completion_target 0.9 - sighup
wal_compression off - superuser
autovacuum_vacuum_cost_limit -1 - sighup
autovacuum_vacuum_cost_delay 2 ms sighup
vacuum_cost_limit 200 - user
vacuum_cost_delay 0 ms user
vacuum_cost_page_hit 1 - user
vacuum_cost_page_miss 2 - user
vacuum_cost_page_dirty 20 - user
wal_segment_size 16777216 B internal
wal_buffers -1 8kB postmaster
huge_pages try - postmaster
shared_memory_size 0 MB internal
shared_memory_size_in_huge_pages -1 - internal
min_parallel_index_scan_size 64 8kB user
"""
_SINCE = {
    15: """
autovacuum_max_workers 3 - postmaster
effective_io_concurrency 1 - user
jit on - user
""",
    17: """
huge_pages_status unknown - internal
""",
    18: """
autovacuum_max_workers 3 - sighup
autovacuum_worker_slots 16 - postmaster
effective_io_concurrency 16 - user
io_method worker - postmaster
io_workers 3 - sighup
""",
    19: """
jit off - user
io_max_workers 8 - sighup
autovacuum_max_parallel_workers 0 - sighup
""",
}
_UNTIL = {"io_workers": 18}
NAMES = tuple(
    dict.fromkeys(
        line.split()[0] for text in (_ALL, *_SINCE.values()) for line in text.strip().splitlines()
    )
)
"""The settings that rules look at; pg_settings is asked for these and for `autovacuum%`."""


def defaults_of(major: int) -> dict[str, SettingInForce]:
    """The defaults of a version, as if a server had just been made."""
    found: dict[str, SettingInForce] = {}
    for text in (_ALL, *(text for since, text in _SINCE.items() if since <= major)):
        for line in text.strip().splitlines():
            name, value, unit, context = line.split()
            if major <= _UNTIL.get(name, major):
                found[name] = SettingInForce(
                    name=name, value=value, unit=None if unit == "-" else unit, context=context
                )
    return found


def setting_of(row: Mapping[str, Any]) -> SettingInForce:
    """A row of the query for settings."""
    file = row["sourcefile"]
    return SettingInForce(
        name=str(row["name"]),
        value=str(row["reset_val"]),
        unit=row["unit"],
        context=str(row["context"]),
        source=str(row["source"]),
        is_auto=_is_auto(str(row["source"]), file),
        where=None if file is None else f"line {row['sourceline']} of {file}",
        pending_restart=bool(row["pending_restart"]),
        enumvals=tuple(row["enumvals"] or ()),
        may_alter=bool(row["may_alter"]),
    )


def _is_auto(source: str, file: str | None) -> bool | None:
    if source != "configuration file":
        return False
    return None if file is None else file.endswith("postgresql.auto.conf")
