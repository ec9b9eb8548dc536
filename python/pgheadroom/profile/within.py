"""
A profile within another file, which has a digest: what it says, and how it stands there.

A later version may write the same profile with more fields. The digest is of the file that was
agreed on, so what stands there stays there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, Any

from pgheadroom.dataclass import dataclass
from pgheadroom.errors import InputError
from pgheadroom.forms import Stored
from pgheadroom.profile.model import Profile
from pgheadroom.profile.reading import parse_profile


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileWithin:
    """A profile, and the data of which it was made."""

    profile: Profile
    written: Mapping[str, Any] = field(compare=False, repr=False)

    @classmethod
    def of(cls, profile: Profile) -> ProfileWithin:
        """A profile that is to be written."""
        return cls(profile=profile, written=profile.to_json())


def _read(written: Mapping[str, Any]) -> ProfileWithin:
    try:
        return ProfileWithin(profile=parse_profile(written), written=written)
    except InputError as error:
        raise ValueError(str(error)) from None


StoredProfile = Annotated[
    ProfileWithin, Stored(Mapping[str, Any], _read, lambda found: found.written)
]
"""A profile that is a part of a file."""
