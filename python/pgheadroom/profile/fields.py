"""
Reading one table of a TOML or JSON file: each field with its type, its range and its path.

Foreign input ends in an `InputError` that names the path, what was found and what was expected.
What a field falls back to is noted under its path.
"""

from __future__ import annotations

import difflib
import math
import reprlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from pgheadroom.errors import InputError

_SHOWN_CHARACTERS = 60
_SHORT = reprlib.Repr()  # of what is nested without end, too, only so much
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 2 * _SHOWN_CHARACTERS


class FieldError(InputError):
    """A field is wrong; `path` names it, as in `table[0].columns[1].type`."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(f"{path}: {message}" if path else message)
        self.path = path
        self.problem = message


def fail(path: str, found: object, expected: str) -> NoReturn:
    """Refuse a value: what was found and what was expected."""
    raise FieldError(path, f"found {show(found)}, expected {expected}")


def show(found: object) -> str:
    """A foreign value for a message: short and printable."""
    try:
        text = _SHORT.repr(found)
    except ValueError:  # Python writes no number of more than 4,300 digits
        text = f"a number of {found.bit_length()} bits" if isinstance(found, int) else "a number"
    return text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 3] + "..."


class Fields:
    """
    One mapping of the file.

    Args:
        value: What stands there; anything but a mapping is refused.
        path: Its path, empty for the whole file.
        known: The names that may stand in it; others are refused at once, with a near match.
        assumed: Where defaults that were used are noted.
    """

    def __init__(
        self, value: object, path: str, known: Sequence[str], assumed: dict[str, Any]
    ) -> None:
        if not isinstance(value, Mapping):
            fail(path, value, "a table of fields")
        self._value: Mapping[str, Any] = value
        self.path = path
        self._assumed = assumed
        for name in value:
            if name not in known:
                near = difflib.get_close_matches(str(name), known, n=1)
                hint = f"did you mean {near[0]}? " if near else ""
                raise FieldError(
                    self.at(str(name)), f"unknown field; {hint}known here: {', '.join(known)}"
                )

    def at(self, name: str) -> str:
        """The path of a field in here."""
        return f"{self.path}.{name}" if self.path else name

    def has(self, name: str) -> bool:
        """Whether the file gives the field."""
        return name in self._value

    def get(self, name: str) -> Any:
        """The field as it stands, which the caller checks; None if absent."""
        return self._value.get(name)

    @property
    def noted(self) -> dict[str, Any]:
        """Where defaults are noted."""
        return self._assumed

    def assume(self, name: str, value: Any) -> None:
        """Note a default under the field's path."""
        self._assumed[self.at(name)] = value

    def _present(self, name: str, default: Any, required: str) -> bool:
        """Whether to read the field; else the default is noted, or its absence is an error."""
        if self.has(name):
            return True
        if default is ...:
            raise FieldError(self.at(name), f"missing, expected {required}")
        if default is not None:
            self.assume(name, default)
        return False

    def text(self, name: str, default: Any = ...) -> Any:
        """A string that is not empty."""
        if not self._present(name, default, "a string"):
            return default
        found = self._value[name]
        if not isinstance(found, str) or not found.strip() or not encodable(found):
            fail(self.at(name), found, "a string that is not empty")
        return found

    def choice(self, name: str, choices: Sequence[str], default: Any = ...) -> Any:
        """One of some words."""
        expected = "one of " + ", ".join(choices)
        if not self._present(name, default, expected):
            return default
        found = self._value[name]
        if found not in choices or not isinstance(found, str):
            fail(self.at(name), found, expected)
        return found

    def flag(self, name: str, default: Any = ...) -> Any:
        """True or false."""
        if not self._present(name, default, "true or false"):
            return default
        found = self._value[name]
        if not isinstance(found, bool):
            fail(self.at(name), found, "true or false")
        return found

    def integer(self, name: str, low: int, high: int, default: Any = ...) -> Any:
        """A whole number in a range, both ends included."""
        expected = f"a whole number from {low} to {high}"
        if not self._present(name, default, expected):
            return default
        found = self._value[name]
        if isinstance(found, bool) or not isinstance(found, int) or not low <= found <= high:
            fail(self.at(name), found, expected)
        return found

    def number(self, name: str, low: float, high: float, default: Any = ...) -> Any:
        """A number in a range, both ends included."""
        expected = f"a number from {low:g} to {high:g}"
        if not self._present(name, default, expected):
            return default
        found = self._value[name]
        if (
            isinstance(found, bool)
            or not isinstance(found, int | float)
            or not low <= found <= high
            or not math.isfinite(found)
        ):
            fail(self.at(name), found, expected)
        return float(found)

    def names(self, name: str) -> tuple[str, ...]:
        """A list of strings; absent: empty."""
        if not self.has(name):
            return ()
        found = self._value[name]
        if not isinstance(found, list) or not all(
            isinstance(item, str) and item.strip() and encodable(item) for item in found
        ):
            fail(self.at(name), found, "a list of strings that are not empty")
        return tuple(found)

    def items(self, name: str, expected: str, *, required: bool = False) -> list[Any]:
        """A list whose items the caller reads; absent: empty."""
        if not self.has(name):
            if required:
                raise FieldError(self.at(name), f"missing, expected {expected}")
            return []
        found = self._value[name]
        if not isinstance(found, list) or (required and not found):
            fail(self.at(name), found, expected)
        return found

    def words(self, name: str) -> dict[str, str]:
        """A table of strings, in the file's order; numbers and booleans are taken as text."""
        if not self.has(name):
            return {}
        found = self._value[name]
        if not isinstance(found, Mapping):
            fail(self.at(name), found, "a table of strings")
        words = {}
        for key, value in found.items():
            if isinstance(value, bool):
                words[str(key)] = "on" if value else "off"
            elif isinstance(value, str | int | float) and encodable(str(value)):
                words[str(key)] = str(value)
            else:
                fail(f"{self.at(name)}.{key}", value, "a string")
        return words

    def opaque(self, name: str) -> Mapping[str, Any] | None:
        """A table that the caller reads; None if absent."""
        found = self._value.get(name)
        if found is not None and not isinstance(found, Mapping):
            fail(self.at(name), found, "a table of fields")
        return found

    def checked(self, name: str, shape: Callable[[Any, str], None]) -> Mapping[str, Any] | None:
        """A table that is kept as it is, once the shape has taken it; None if absent."""
        found = self.opaque(name)
        if found is not None:
            shape(found, self.at(name))
        return found


def encodable(text: str) -> bool:
    """Whether PostgreSQL could hold the text: no NUL, no lone surrogate (which JSON can carry)."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in text
