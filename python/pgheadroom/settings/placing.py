"""
How a value comes into force: ALTER SYSTEM and what takes it back, or who stands before it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from pgheadroom.quoting import shown_literal
from pgheadroom.settings.in_force import InForce, SettingInForce
from pgheadroom.settings.values import SettingLine

PROVIDERS = {
    "rds_superuser": ("Amazon RDS or Aurora", "in a parameter group"),
    "cloudsqlsuperuser": ("Google Cloud SQL", "as its own manual says"),
    "alloydbsuperuser": ("Google AlloyDB", "as its own manual says"),
    "azure_pg_admin": ("Azure Database for PostgreSQL", "as server parameters"),
    "neon_superuser": ("Neon", "for a session, a database or a role alone"),
}
"""Roles by which a managed service is known, its name, and how settings are made there: see
docs/managed.md, where each has its source."""
_BEFORE_FILES = ("command line", "environment variable")
_OF_SESSION = {
    "database": "ALTER DATABASE ... SET",
    "user": "ALTER ROLE ... SET",
    "database user": "ALTER ROLE ... IN DATABASE ... SET",
    "client": "the connection's options",
    "session": "the session",
}


def provider_of(roles: Iterable[str]) -> str | None:
    """What to know about the service that these roles are of; None: none is known."""
    for role in roles:
        if role in PROVIDERS:
            name, how = PROVIDERS[role]
            return (
                f"The role {role} is of {name}, where settings are made {how}, some not at all: "
                "no ALTER SYSTEM is printed (docs/managed.md, which we have not tried there)."
            )
    return None


def placed(line: SettingLine, in_force: InForce, *, is_managed: bool) -> SettingLine:
    """The line of a live server with its statement and undo, or what is to be done instead."""
    setting = in_force[line.name]
    line = replace(line, set_by=setting.where or setting.source)
    if setting.source in _BEFORE_FILES:
        return replace(
            line,
            note=f"set by the server's {setting.source}, which goes before its files: change it "
            "there",
        )
    if is_managed:
        return line
    notes = []
    if setting.source in _OF_SESSION:
        notes.append(
            f"set by {_OF_SESSION[setting.source]}, which goes before: what other sessions have "
            "is not seen from here"
        )
    if setting.is_auto:
        notes.append("set by ALTER SYSTEM, which goes before postgresql.conf: use the statement")
    if not setting.may_alter:
        notes.append("the role that looked may not ALTER SYSTEM SET it")
    return replace(
        line,
        sql=f"ALTER SYSTEM SET {line.name} = {shown_literal(line.value)}",
        undo=_undo(setting),
        note="; ".join(notes) or None,
    )


def _undo(setting: SettingInForce) -> str:
    """RESET where ALTER SYSTEM has not set it; where nobody sees that, the old value."""
    if setting.source == "configuration file" and setting.is_auto is not False:
        return f"ALTER SYSTEM SET {setting.name} = {shown_literal(setting.shown)}"
    return f"ALTER SYSTEM RESET {setting.name}"
