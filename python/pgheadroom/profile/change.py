"""
What an update does to columns: the `sets` of an operation, a list or a table of changes in a file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from pgheadroom.forms import Text, between, brief, in_file

GROWTH_BYTES_MAX = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """
    What an update does to one column; `grows_*_bytes` are both 0 when it keeps its length.

    `to` is the label that an enum gets; None: the next one.
    """

    column: str
    changed_frac: float = 1.0
    grows_min_bytes: int = 0
    grows_max_bytes: int = 0
    to: str | None = None

    @property
    def draws(self) -> bool:
        """Whether each execution draws a random number for it."""
        return self.changed_frac < 1 or self.grows_max_bytes > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Growth:
    min_bytes: Annotated[int, between(0, GROWTH_BYTES_MAX)] = field(metadata=in_file("min"))
    max_bytes: Annotated[int, between(0, GROWTH_BYTES_MAX)] = field(metadata=in_file("max"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeInFile:
    """A change under its column's name."""

    changed_frac: Annotated[float, between(0, 1)] = 1.0
    grows_bytes: _Growth | None = None
    to: Text | None = field(default=None, metadata=in_file(unless_none=True))


SETS_EXPECTED = "a list of columns, or a table of columns and changes, not empty"


def changes_of(found: tuple[str, ...] | Mapping[str, ChangeInFile]) -> tuple[Change, ...]:
    """Of a table of columns and changes, or of a list of columns that just change."""
    if isinstance(found, tuple):
        if len(set(found)) != len(found):
            raise ValueError(f"found {brief(list(found))}, expected each column once")
        return tuple(Change(column=column) for column in found)
    return tuple(
        Change(
            column=column,
            changed_frac=change.changed_frac,
            grows_min_bytes=0 if change.grows_bytes is None else change.grows_bytes.min_bytes,
            grows_max_bytes=0 if change.grows_bytes is None else change.grows_bytes.max_bytes,
            to=change.to,
        )
        for column, change in found.items()
    )


def changes_in_file(changes: tuple[Change, ...]) -> dict[str, ChangeInFile]:
    """Changes under their columns' names."""
    return {
        change.column: ChangeInFile(
            changed_frac=change.changed_frac,
            grows_bytes=_Growth(min_bytes=change.grows_min_bytes, max_bytes=change.grows_max_bytes)
            if change.grows_max_bytes
            else None,
            to=change.to,
        )
        for change in changes
    }
