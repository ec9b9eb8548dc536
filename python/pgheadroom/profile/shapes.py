"""
Shapes of foreign data: what may stand where, as values that check.

    a = record({"name": text(), "counters": mapping(nullable(number(0)))}, {"note": text()})
    a(data, "table[0].observed")        raises FieldError with the path, what was found, expected

Nothing is changed or filled in; what a shape does not name is only looked at so far that every
part of it can be kept: finite numbers, text that PostgreSQL could hold, no abyss of nesting.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pgheadroom.forms import FieldError, encodable, fail

Shape = Callable[[Any, str], None]

NUMBER_MAX = 2.0**64  # no counter of PostgreSQL's goes further
INTEGER_MAX = 2**63 - 1
_DEPTH_MAX = 32  # ours has 7; arbitrary


def number(low: float = -NUMBER_MAX, high: float = NUMBER_MAX) -> Shape:
    """A finite number in a range, both ends included."""

    def check(value: Any, path: str) -> None:
        if not _is_number(value) or not low <= value <= high:  # NaN is in no range
            fail(path, value, f"a number from {low:g} to {high:g}")

    return check


def whole(low: int = 0, high: int = INTEGER_MAX) -> Shape:
    """A whole number in a range, both ends included."""

    def check(value: Any, path: str) -> None:
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            fail(path, value, f"a whole number from {low} to {high}")

    return check


def text() -> Shape:
    """A string, empty too."""

    def check(value: Any, path: str) -> None:
        if not isinstance(value, str) or not encodable(value):
            fail(path, value, "a text")

    return check


def choice(*words: str) -> Shape:
    """One of some words."""

    def check(value: Any, path: str) -> None:
        if not isinstance(value, str) or value not in words:
            fail(path, value, "one of " + ", ".join(words))

    return check


def flag() -> Shape:
    """True or false."""

    def check(value: Any, path: str) -> None:
        if not isinstance(value, bool):
            fail(path, value, "true or false")

    return check


def one_of(*shapes: Shape, expected: str) -> Shape:
    """Whatever one of the shapes takes."""

    def check(value: Any, path: str) -> None:
        for shape in shapes:
            try:
                return shape(value, path)
            except FieldError:
                continue
        fail(path, value, expected)

    return check


def nullable(shape: Shape) -> Shape:
    """The same, or null."""

    def check(value: Any, path: str) -> None:
        if value is not None:
            shape(value, path)

    return check


def many(shape: Shape) -> Shape:
    """A list of such."""

    def check(value: Any, path: str) -> None:
        if not isinstance(value, list | tuple):
            fail(path, value, "a list")
        for n, item in enumerate(value):
            shape(item, f"{path}[{n}]")

    return check


def row(*shapes: Shape) -> Shape:
    """A list with as many places, each of its own shape."""

    def check(value: Any, path: str) -> None:
        if not isinstance(value, list | tuple) or len(value) != len(shapes):
            fail(path, value, f"a list of {len(shapes)}")
        for n, (shape, item) in enumerate(zip(shapes, value, strict=True)):
            shape(item, f"{path}[{n}]")

    return check


def mapping(shape: Shape) -> Shape:
    """A table of such under any names."""

    def check(value: Any, path: str) -> None:
        if not isinstance(value, Mapping):
            fail(path, value, "a table of fields")
        for name, item in value.items():
            _check_name(name, path)
            shape(item, f"{path}.{name}")

    return check


def record(
    required: Mapping[str, Shape],
    optional: Mapping[str, Shape] | None = None,
    *,
    also: Shape | None = None,
) -> Shape:
    """
    A table with some fields.

    Args:
        required: Fields that must be there.
        optional: Fields that may be absent, or null.
        also: What holds between the fields, checked last.
    """
    known = {**required, **{name: nullable(shape) for name, shape in (optional or {}).items()}}

    def check(value: Any, path: str) -> None:
        if not isinstance(value, Mapping):
            fail(path, value, "a table of fields")
        for name in required:
            if name not in value:
                raise FieldError(
                    f"{path}.{name}", "missing, expected it as `pgheadroom observe` writes it"
                )
        for name, item in value.items():
            _check_name(name, path)
            (known.get(name) or _keepable)(item, f"{path}.{name}")
        if also is not None:
            also(value, path)

    return check


def _check_name(name: Any, path: str) -> None:
    if not isinstance(name, str) or not encodable(name):
        fail(path, name, "names of fields that are text")


def _keepable(value: Any, path: str) -> None:
    """Something that we do not read: only that it can be kept and written again."""
    level: Sequence[Any] = [value]
    for _ in range(_DEPTH_MAX):
        below: list[Any] = []
        for item in level:
            if isinstance(item, Mapping):
                for name in item:
                    _check_name(name, path)
                below += item.values()
            elif isinstance(item, list | tuple):
                below += item
            elif isinstance(item, str):
                if not encodable(item):
                    fail(path, item, "text that PostgreSQL could hold")
            elif isinstance(item, int | float) and not -NUMBER_MAX <= item <= NUMBER_MAX:
                fail(path, item, "a number of PostgreSQL's")
        if not below:
            return
        level = below
    fail(path, "...", f"at most {_DEPTH_MAX} levels")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
