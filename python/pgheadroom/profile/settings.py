"""
Which PostgreSQL settings a profile may set.

A profile is a file that people pass around, and a setting can make a server run programs
(`archive_command`, `shared_preload_libraries`). So only settings that act on storage, WAL,
vacuum and planning costs are let through; those that a field of the profile stands for, and those
that the conduct of a run fixes, are refused with a hint. Which are which stands, name by name, in
`settings.txt` of the twin.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pgheadroom import _core
from pgheadroom.errors import InputError
from pgheadroom.forms import FieldError, fail

if TYPE_CHECKING:
    from pgheadroom.profile.model import Profile
    from pgheadroom.types import PgVersion

_BY_THE_TWIN = "what "
"""How the reasons begin of settings that a server plays and the twin does not."""

FIELDS = {
    "shared_buffers": "server.shared_buffers",
    "full_page_writes": "server.full_page_writes",
    "wal_level": "server.wal_level",
    "wal_compression": "server.wal_compression",
    "wal_log_hints": "server.wal_log_hints",
    "autovacuum": "server.autovacuum",
    "autovacuum_naptime": "server.autovacuum_naptime_s",
    "checkpoint_timeout": "server.checkpoint_interval_s",
    "max_wal_size": "server.max_wal_size",
}
"""Settings that have a field of their own."""


def check_setting(path: str, name: str, value: str) -> None:
    """
    Refuse a setting that a profile may not set.

    Raises:
        FieldError: With the reason, and the field to use instead where there is one.
    """
    if name in FIELDS:
        raise FieldError(path, f"has a field of its own, expected under {FIELDS[name]}")
    becomes, reason = _core.setting_becomes(name, value)
    if becomes == "unknown":
        raise FieldError(path, "no known PostgreSQL has it, expected a setting of 15 to 19")
    if becomes == "refused" and not reason.startswith(_BY_THE_TWIN):
        expected = "a setting of storage, WAL, vacuum or costs"
        raise FieldError(path, f"a profile may not set this ({reason}), expected {expected}")
    if "\n" in value or "\r" in value:
        fail(path, value, "one line")


def check_values(profile: Profile, version: PgVersion) -> None:
    """
    Refuse by its name what a server would refuse when it starts, or makes the tables.

    Raises:
        InputError: With what this version takes instead.
    """

    def refuse(path: str, value: str, expected: str | None) -> None:
        if expected is not None:
            raise InputError(
                f"{path}: found {value}, expected {expected}, as PostgreSQL {version} takes"
            )

    for name, value in profile.server.settings.items():
        expected = _core.setting_expected(name, value, str(version))
        refuse(f"server.settings.{name}", value, expected)
    for number, table in enumerate(profile.tables):
        for name, value in table.reloptions.items():
            plain = name.removeprefix("toast.")
            expected = _core.setting_expected(plain, value, str(version), storage_parameter=True)
            refuse(f"table[{number}].reloptions.{name}", value, expected)
