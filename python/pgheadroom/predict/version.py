"""
The minor version that the twin follows: what it predicts depends on it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from pgheadroom.errors import InputError, ServerNotFound
from pgheadroom.profile import Profile
from pgheadroom.servers import find_programs, is_connection
from pgheadroom.types import Assumed, PgVersion

# Where no server of a major version is at hand: the minors that the golden figures are of.
_RECORDED = {"15": "15.18", "16": "16.14", "17": "17.10", "18": "18.4", "19": "19rc1"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Minor:
    """A minor version; `assumed` says why it is this one, where the profile does not."""

    version: PgVersion
    assumed: Assumed = field(default_factory=dict)


def minor_version(profile: Profile, server: str | None = None) -> Minor:
    """
    The minor for a profile: a stated one, else that of the server at hand.

    Args:
        profile: Its version counts when `server` is None.
        server: A version or a folder with server programs; it wins over the profile.

    Raises:
        InputError: `server` is a connection, or not understood.
        ServerNotFound: No server lies in the folder, or of a version without a recorded minor.
    """
    spec = server or profile.server.version
    said = None
    if is_connection(spec):
        raise InputError("a prediction needs no server: expected a version, not a connection")
    if re.fullmatch(r"\d{1,2}(?:\.\d{1,2}|(?:alpha|beta|rc)\d+|devel)", spec):
        version = PgVersion.parse(spec)
    else:
        try:
            version = find_programs(spec).version
        except ServerNotFound:
            if spec not in _RECORDED:
                raise
            version = PgVersion.parse(_RECORDED[spec])
            said = f"{version}, no server of {spec} is at hand"
    if server is not None and server != profile.server.version:
        said = f"{version}, as asked for"
    return Minor(version=version, assumed={} if said is None else {"server.version": said})
