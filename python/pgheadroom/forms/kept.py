"""
Values of which a file may say more than we read: what it says is kept, and written again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar, dataclass_transform

from pgheadroom.forms.foreign import encodable, keepable, show

T = TypeVar("T")


class Kept(Mapping[str, Any]):
    """
    Base of such a form: its fields are what we rely on, `kept` is all that stands in the file.

    As a mapping it is what is kept.
    """

    __slots__ = ("kept",)
    kept: Mapping[str, Any]

    def __getitem__(self, name: str) -> Any:
        return self.kept[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.kept)

    def __len__(self) -> int:
        return len(self.kept)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({dict(self.kept)!r})"


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
                raise ValueError(f"found {show(name)}, expected names of fields that are text")
            if name not in known:
                try:
                    keepable(value)
                except ValueError as error:
                    raise ValueError(f"{error} (under {show(name)})") from None
        made = handler({name: value for name, value in found.items() if name in known})
        object.__setattr__(made, "kept", found)
        return made

    return read
