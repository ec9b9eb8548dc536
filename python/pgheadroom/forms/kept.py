"""
Values of which a file may say more than we read: what it says is kept, and written again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar, dataclass_transform

from pgheadroom.forms.foreign import brief, encodable, keepable

T = TypeVar("T")


@dataclass_transform(
    frozen_default=True, kw_only_default=True, eq_default=False, field_specifiers=(field,)
)
def kept(kind: type[T]) -> type[T]:
    """A form that is `Kept`; two are equal where the same is kept."""
    return dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)(kind)


def reader(known: frozenset[str]) -> Callable[[Any, Callable[[Any], Any]], Any]:
    """
    What pydantic calls around the reading of such a form.

    Args:
        known: Names of its fields in the file.
    """

    def read(found: Any, handler: Callable[[Any], Any]) -> Any:
        if not isinstance(found, dict):
            return handler(found)
        for name, value in found.items():
            if not isinstance(name, str) or not encodable(name):
                raise ValueError(f"found {brief(name)}, expected names of fields that are text")
            if name not in known:
                try:
                    keepable(value)
                except ValueError as error:
                    raise ValueError(f"{error} (under {brief(name)})") from None
        made = handler({name: value for name, value in found.items() if name in known})
        object.__setattr__(made, "kept", found)
        return made

    return read
