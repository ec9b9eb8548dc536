"""
An advice, with its progress for people.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pgheadroom.cli import output
from pgheadroom.progress import RunState

if TYPE_CHECKING:
    from pgheadroom.advise import Advice, Options
    from pgheadroom.profile import Profile


def advice_of(profile: Profile, options: Options, label: str) -> Advice:
    """Advise on a profile, and show under this label how far it is."""
    from pgheadroom.advise import advise

    with output.progress(label) as step:
        return advise(
            profile,
            options,
            say=lambda done, total, name: step(
                RunState(done=done, total=max(total, 1), left_s=0.0, text=name)
            ),
        )
