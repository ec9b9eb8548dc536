"""
Frozen values to JSON and back, every field checked: a plan is a file that anybody may have edited.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from pgheadroom.errors import InputError
from pgheadroom.types import Interval

T = TypeVar("T")

_NUMBER_MAX = 2**63
"""Beyond it there is nothing that a plan counts; and no float is needed to say so."""


def to_plain(value: Any) -> Any:
    """The value as JSON has it."""
    if is_dataclass(value):
        return {
            item.name: to_plain(found)
            for item in fields(value)
            if (found := getattr(value, item.name)) != item.default
            or not item.metadata.get("is_added")
        }
    if isinstance(value, Mapping):
        return {key: to_plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [to_plain(item) for item in value]
    return value


def from_plain(kind: type[T], data: Any, where: str) -> T:
    """
    A frozen value out of JSON, field by field as its class declares them.

    Args:
        kind: A dataclass.
        data: What JSON holds.
        where: The place in the file, for messages.

    Raises:
        InputError: A field is missing, unknown or of another kind.
    """
    made: T = _value(kind, data, where)
    return made


@functools.cache
def _hints(kind: type[Any]) -> dict[str, Any]:
    return get_type_hints(kind)


def _refuse(where: str, data: Any, expected: str) -> InputError:
    shown = repr(data)
    return InputError(
        f"{where}: found {shown if len(shown) <= 60 else shown[:57] + '...'}, expected {expected}"
    )


def _value(hint: Any, data: Any, where: str) -> Any:
    origin = get_origin(hint)
    if hint is Any:
        return data
    if origin in (Union, types.UnionType):
        return _one_of(get_args(hint), data, where)
    if origin is Literal:
        if data in get_args(hint) and isinstance(data, str):
            return data
        raise _refuse(where, data, " or ".join(map(repr, get_args(hint))))
    if origin is tuple:
        return _tuple(get_args(hint), data, where)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        if not isinstance(data, Mapping):
            raise _refuse(where, data, "an object")
        inner = get_args(hint)[1]
        return {str(key): _value(inner, item, f"{where}.{key}") for key, item in data.items()}
    if is_dataclass(hint):
        return _dataclass(hint, data, where)
    return _plain(hint, data, where)


def _one_of(hints: tuple[Any, ...], data: Any, where: str) -> Any:
    if data is None:
        if types.NoneType in hints:
            return None
        raise _refuse(where, data, "a value")
    choices = [hint for hint in hints if hint is not types.NoneType]
    # An interval stands beside plain numbers; everything else is one kind or nothing.
    if Interval in choices and isinstance(data, Mapping):
        return _value(Interval, data, where)
    choices = [hint for hint in choices if hint is not Interval]
    return _value(choices[0], data, where)


def _tuple(inner: tuple[Any, ...], data: Any, where: str) -> tuple[Any, ...]:
    if not isinstance(data, list | tuple):
        raise _refuse(where, data, "a list")
    if inner[1:] == (Ellipsis,):
        return tuple(_value(inner[0], item, f"{where}[{n}]") for n, item in enumerate(data))
    if len(inner) != len(data):
        raise _refuse(where, data, f"a list of {len(inner)}")
    pairs = zip(inner, data, strict=True)
    return tuple(_value(hint, item, f"{where}[{n}]") for n, (hint, item) in enumerate(pairs))


def _dataclass(kind: Any, data: Any, where: str) -> Any:
    if not isinstance(data, Mapping):
        raise _refuse(where, data, "an object")
    names = {item.name for item in fields(kind)}
    # Plans of earlier versions lack what was added since; left out, it changes no digest of theirs.
    needed = {item.name for item in fields(kind) if not item.metadata.get("is_added")}
    missing, unknown = sorted(needed - set(data)), sorted(set(data) - names)
    if missing or unknown:
        said = [f"lacks {', '.join(missing)}"] if missing else []
        said += [f"has unknown {', '.join(map(str, unknown))}"] if unknown else []
        raise InputError(f"{where} {' and '.join(said)}")
    hints = _hints(kind)
    try:
        return kind(
            **{n: _value(hints[n], data[n], f"{where}.{n}") for n in sorted(names & set(data))}
        )
    except ValueError as error:  # an interval whose ends are not in order
        raise InputError(f"{where}: {error}") from None


def _plain(hint: Any, data: Any, where: str) -> Any:
    is_number = isinstance(data, int | float) and not isinstance(data, bool)
    is_number = is_number and abs(data) < _NUMBER_MAX  # NaN is not
    if hint is float and is_number:
        return float(data)
    if hint is int and is_number and isinstance(data, int):
        return data
    if hint is bool and isinstance(data, bool):
        return data
    if hint is str and isinstance(data, str) and not any("\ud800" <= c <= "\udfff" for c in data):
        return data
    names = {float: "a number", int: "a whole number", bool: "true or false", str: "a text"}
    raise _refuse(where, data, names.get(hint, str(hint)))
