"""
A profile within another file, which has a digest: how it stands there, and what it says.

A later version may write the same profile with more fields, or refuse what this one did not. The
digest is of the file that was agreed on, so what stands there stays there; and what does not need
the profile does not ask whether it is one: a plan has to be undone by whatever version there is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pgheadroom.forms import Stored
from pgheadroom.profile.model import Profile
from pgheadroom.profile.reading import parse_profile


@dataclass(frozen=True, slots=True)
class ProfileWithin:
    """The data of a profile."""

    written: Mapping[str, Any]

    @classmethod
    def of(cls, profile: Profile) -> ProfileWithin:
        """A profile that is to be written."""
        return cls(profile.to_json())

    def read(self) -> Profile:
        """
        The profile.

        Raises:
            FieldError: It is none, by this version's rules.
        """
        return parse_profile(self.written)


StoredProfile = Annotated[
    ProfileWithin, Stored(Mapping[str, Any], ProfileWithin, lambda found: found.written)
]
"""A profile that is a part of a file."""
