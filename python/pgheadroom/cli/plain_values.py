"""
Options and arguments as they are mostly given, read without pydantic.

Typer makes a validator of pydantic's for every option of a command that is called, given or not,
and loads pydantic for it: more than half of what `wal stats` imported. What is plain is read here,
to the same value; everything else, and whatever is refused, stays with Typer.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Any, get_args, get_origin

_WHOLE = re.compile(r"[0-9]{1,18}", re.ASCII)
_NUMBER = re.compile(r"[0-9]{1,15}(\.[0-9]{1,15})?", re.ASCII)


class _Typers(Exception):  # noqa: N818 - no error
    """A value that is not plain."""


def read_plainly(command: Any) -> None:
    """
    Let a command, and those below it, read plain values of its options and arguments by themselves.

    Args:
        command: As Typer made it.
    """
    command.get_params = partial(_parameters, command.get_params)
    for deeper in getattr(command, "commands", {}).values():
        read_plainly(deeper)


def _parameters(of: Callable[[Any], list[Any]], context: Any) -> list[Any]:
    """Those of a command, with the option for its help, which it makes when it is asked."""
    found = of(context)
    for parameter in found:
        if "process_value" not in vars(parameter):
            parameter.process_value = partial(_process, parameter, parameter.process_value)
    return found


def _process(parameter: Any, otherwise: Callable[[Any, Any], Any], context: Any, value: Any) -> Any:
    try:
        found = plain(parameter, value)
    except _Typers:
        return otherwise(context, value)
    return found if parameter.callback is None else parameter.callback(context, parameter, found)


def plain(parameter: Any, value: Any) -> Any:
    """
    What Typer would make of a value; a value that is not plain is an exception of this module's.

    Args:
        parameter: Typer's, of a command.
        value: A text of the command line, several of them, a default, or None.
    """
    said = parameter.type_descriptor
    annotation, info = said.annotation, said.parameter_info
    many = parameter.multiple or parameter.nargs == -1
    if info.parser is not None or (value in (None, (), []) and parameter.required):
        raise _Typers
    if value is None:
        return () if many else None
    if not many:
        return _one(annotation, info, value)
    if get_origin(annotation) is not list or not isinstance(value, list | tuple):
        raise _Typers
    (kind,) = get_args(annotation)
    return [_one(kind, info, item) for item in value]


def _one(kind: Any, info: Any, value: Any) -> Any:
    if kind is str and type(value) is str:
        return value
    if kind is Path and isinstance(value, str | Path):
        return _path(info, Path(value))
    if kind in (int, float):
        return _bounded(info, _number(kind, value))
    if isinstance(kind, type) and issubclass(kind, Enum) and info.case_sensitive:
        for item in kind:
            if value is item or (type(value) is str and value == item.value):
                return item
    raise _Typers


def _number(kind: type[int | float], value: Any) -> int | float:
    if type(value) is kind:
        return value
    if type(value) is str and (_WHOLE if kind is int else _NUMBER).fullmatch(value):
        return kind(value)
    raise _Typers


def _bounded(info: Any, value: int | float) -> int | float:
    if info.clamp or not (
        (info.min is None or value >= info.min) and (info.max is None or value <= info.max)
    ):
        raise _Typers
    return value


def _path(info: Any, value: Path) -> Path:
    asked = info.exists, info.writable, info.resolve_path, info.allow_dash, info.path_type
    if any(asked) or not (info.file_okay and info.dir_okay):
        raise _Typers
    if os.path.lexists(value) and not os.access(value, os.R_OK):
        raise _Typers
    return value
