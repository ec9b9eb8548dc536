"""
Foreign values: what they may be, how they are shown, and the error that refuses them.
"""

from __future__ import annotations

import reprlib
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from pgheadroom.errors import InputError

_SHOWN_CHARACTERS = 60
_SHORT = reprlib.Repr()  # of what is nested without end, too, only so much
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 2 * _SHOWN_CHARACTERS
_DEPTH_MAX = 32  # ours has 7; arbitrary
NUMBER_MAX = 2.0**64  # no counter of PostgreSQL's goes further


class FieldError(InputError):
    """A field is wrong; `path` names it, as in `table[0].columns[1].type`."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(f"{path}: {message}" if path else message)
        self.path = path
        self.problem = message


def fail(path: str, found: object, expected: str) -> NoReturn:
    """Refuse a value: what was found and what was expected."""
    raise FieldError(path, f"found {brief(found)}, expected {expected}")


def brief(found: object) -> str:
    """A foreign value for a message: short and printable."""
    try:
        text = _SHORT.repr(found)
    except ValueError:  # Python writes no number of more than 4,300 digits
        text = f"a number of {found.bit_length()} bits" if isinstance(found, int) else "a number"
    return text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 3] + "..."


def encodable(text: str) -> bool:
    """Whether PostgreSQL could hold the text: no NUL, no lone surrogate (which JSON can carry)."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in text


def keepable(value: Any) -> Any:
    """
    The same, where nobody reads it: only that it can be kept and written again.

    Raises:
        ValueError: It holds a number or a text that PostgreSQL could not, or an abyss of nesting.
    """
    level: Sequence[Any] = [value]
    for _ in range(_DEPTH_MAX):
        below: list[Any] = []
        for item in level:
            if isinstance(item, Mapping):
                below += item
                below += item.values()
            elif isinstance(item, list | tuple):
                below += item
            elif isinstance(item, str):
                if not encodable(item):
                    raise ValueError(
                        f"found {brief(item)}, expected text that PostgreSQL could hold"
                    )
            elif isinstance(item, int | float) and not -NUMBER_MAX <= item <= NUMBER_MAX:
                raise ValueError(f"found {brief(item)}, expected a number of PostgreSQL's")
        if not below:
            return value
        level = below
    raise ValueError(f"found '...', expected at most {_DEPTH_MAX} levels")
