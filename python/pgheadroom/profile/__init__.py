"""
Profiles: tables, server settings and workload as a file says them, checked and frozen.

`read_profile` takes a TOML or JSON file and gives a `Profile`, or an `InputError` that names the
field, what was found, what is expected, and the line. The twin and a real server both start from
this value, so it has no defaults left to fill in: those that were used stand under `assumed`.
"""

from __future__ import annotations

from pgheadroom.profile.change import Change
from pgheadroom.profile.column_types import Kind
from pgheadroom.profile.machine import MachineTimes
from pgheadroom.profile.model import Profile, ServerSettings
from pgheadroom.profile.reading import parse_profile, read_profile, to_json
from pgheadroom.profile.tables import (
    ColumnProfile,
    ForeignKey,
    IndexProfile,
    TableProfile,
    Values,
    Width,
)
from pgheadroom.profile.workload import (
    Maintenance,
    Operation,
    PgbenchBuiltin,
    Pick,
    RowRange,
    Run,
    Snapshot,
    Workload,
)

__all__ = [
    "Change",
    "ColumnProfile",
    "ForeignKey",
    "IndexProfile",
    "Kind",
    "MachineTimes",
    "Maintenance",
    "Operation",
    "PgbenchBuiltin",
    "Pick",
    "Profile",
    "RowRange",
    "Run",
    "ServerSettings",
    "Snapshot",
    "TableProfile",
    "Values",
    "Width",
    "Workload",
    "parse_profile",
    "read_profile",
    "to_json",
]
