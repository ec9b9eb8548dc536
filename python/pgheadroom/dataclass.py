"""
The standard library's dataclasses, whose methods are compiled when they are first used.

A command loads many kinds of value and makes few of them: compiling `__init__`, `__eq__` and the
others of each took a fifth of a command's start, and eight times what else a class takes.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from functools import partial
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass"]

if TYPE_CHECKING:
    # A type checker knows the standard library's by its name.
    from dataclasses import dataclass
else:

    def dataclass(kind: type | None = None, /, **options: bool):
        """As the standard library's with the options below, and without `InitVar`."""
        return partial(_dataclass, **options) if kind is None else _dataclass(kind, **options)


def _dataclass(
    kind: Any,
    *,
    frozen: bool = False,
    slots: bool = False,
    kw_only: bool = False,
    eq: bool = True,
    repr: bool = True,
) -> Any:
    made: Any = dataclasses.dataclass(
        kind, init=False, repr=False, eq=False, slots=slots, kw_only=kw_only
    )
    own = vars(made)
    for name in ("__init__", *(("__repr__",) if repr else ()), *(("__eq__",) if eq else ())):
        if name not in own:
            setattr(made, name, _Compiled(name, made, frozen))
    # A class with an `__eq__` of its own has None there, which the language put.
    if eq and own.get("__hash__") is None:
        made.__hash__ = _Compiled("__hash__", made, frozen) if frozen else None
    if frozen:
        _freeze(made, slots)
    return made


class _Compiled:
    """Stands where a method will be, and puts it there when it is asked for."""

    __slots__ = ("frozen", "home", "name")

    def __init__(self, name: str, home: type, frozen: bool) -> None:
        self.name, self.home, self.frozen = name, home, frozen

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        home, name = self.home, self.name
        if vars(home)[name] is self:
            setattr(home, name, _compiled(home, name, self.frozen))
        return vars(home)[name].__get__(instance, owner)


def _compiled(home: Any, name: str, frozen: bool) -> Callable[..., Any]:
    """The method that the standard library gives a class with the same fields."""
    fields = dataclasses.fields(home)
    body: dict[str, Any] = {item.name: copy.copy(item) for item in fields}
    body["__annotations__"] = {item.name: item.type for item in fields}
    body["__module__"], body["__qualname__"] = home.__module__, home.__qualname__
    if hasattr(home, "__post_init__"):
        body["__post_init__"] = home.__post_init__
    found: type = dataclasses.dataclass(
        type(home.__name__, (), body),
        init=name == "__init__",
        repr=name == "__repr__",
        eq=name == "__eq__",
        unsafe_hash=name == "__hash__",
        frozen=frozen and name == "__init__",
    )
    made: Callable[..., Any] = vars(found)[name]
    made.__qualname__ = f"{home.__qualname__}.{name}"
    return made


def _freeze(kind: Any, slots: bool) -> None:
    """As the standard library does: its fields are not set, nor is anything on `kind` itself."""
    names = frozenset(item.name for item in dataclasses.fields(kind))

    def __setattr__(self: object, name: str, value: object) -> None:  # noqa: N807
        if type(self) is kind or name in names:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super(kind, self).__setattr__(name, value)

    def __delattr__(self: object, name: str) -> None:  # noqa: N807
        if type(self) is kind or name in names:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        super(kind, self).__delattr__(name)

    kind.__setattr__, kind.__delattr__ = __setattr__, __delattr__
    if slots:
        kind.__getstate__, kind.__setstate__ = _state, _set_state


def _state(self: Any) -> list[Any]:
    return [getattr(self, item.name) for item in dataclasses.fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for item, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, item.name, value)
