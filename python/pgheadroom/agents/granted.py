"""
What an agent may ask about: profiles and connections, by the names that a person gave them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pgheadroom.errors import ConnectionFailed, HeadroomError, InputError
from pgheadroom.profile import Profile, read_profile
from pgheadroom.redaction import HIDDEN, redacted, secrets_of

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
"""What something may be called."""

_PART_CHARACTERS_MIN = 4
"""Shorter values of a connection string, such as a port, stand in many texts; as for passwords."""
_SAID = frozenset({"postgres", "localhost", "dbname", "user", "host"})
"""Values that are in every connection, and tell nothing of this one."""


@dataclass(frozen=True, slots=True)
class Granted:
    """
    What was named at the start.

    Attributes:
        profiles: Files by name.
        connections: Connection strings by name; they stay here.
    """

    profiles: Mapping[str, Path]
    connections: Mapping[str, str]

    def profile(self, name: str) -> Profile:
        """
        A profile.

        Raises:
            InputError: None of that name was granted, or its file is none.
        """
        if name not in self.profiles:
            raise InputError(_unknown("profile", name, self.profiles))
        return read_profile(self.profiles[name])

    def connection(self, name: str) -> str:
        """
        A connection string.

        Raises:
            InputError: None of that name was granted.
        """
        if name not in self.connections:
            raise InputError(_unknown("connection", name, self.connections))
        return self.connections[name]

    def told(self, error: HeadroomError) -> str:
        """An error's words for an agent: nothing of a connection string is in them."""
        if isinstance(error, ConnectionFailed):
            return (
                "no connection to the server, or it ended; the standard error of this tool's "
                "process says why"
            )
        return self.without_secrets(str(error))

    def without_secrets(self, text: str) -> str:
        """A text with nothing of a connection string, nor of where a profile lies, in it."""
        for path in self.profiles.values():
            text = text.replace(str(path), path.name)
        hidden = {part for conninfo in self.connections.values() for part in _parts(conninfo)}
        for part in sorted(hidden, key=len, reverse=True):
            text = text.replace(part, HIDDEN)
        return redacted(text)


def _parts(conninfo: str) -> set[str]:
    """The string, its secrets, and where and who it is."""
    from psycopg.conninfo import conninfo_to_dict  # noqa: PLC0415 - loads libpq

    found = {conninfo, *secrets_of((conninfo,), {})}
    for name, value in conninfo_to_dict(conninfo).items():
        if name in ("host", "hostaddr", "user", "password", "service", "passfile", "options"):
            found.update(str(value).split(","))
    return {part for part in found if len(part) >= _PART_CHARACTERS_MIN and part not in _SAID}


def _unknown(what: str, name: str, there: Mapping[str, object]) -> str:
    names = ", ".join(sorted(there)) or "none"
    return f"no {what} of the name {name[:64]!r}: expected one of those granted: {names}"
