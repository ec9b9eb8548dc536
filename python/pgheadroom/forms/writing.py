"""
Values as JSON has them; of those that were read with more than their form says, all of it.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass, replace
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from pgheadroom.forms.marks import Stored, file_name


class Kept(Mapping[str, Any]):
    """
    Base of such a form: its fields are what we rely on, `kept` is all that stands in the file.

    One of our own making has its fields and nothing else, and no `kept`. As a mapping it is what
    stands in the file, or would.
    """

    __slots__ = ("kept",)
    kept: Mapping[str, Any]

    def __getitem__(self, name: str) -> Any:
        return _stands(self)[name]

    def __iter__(self) -> Iterator[str]:
        return iter(_stands(self))

    def __len__(self) -> int:
        return len(_stands(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({dict(self)!r})"


K = TypeVar("K", bound=Kept)
# Asked first: a profile may have a hundred thousand numbers.
_PLAIN = frozenset({str, int, float, bool, type(None)})


def changed(value: K, **found: Any) -> K:
    """The same with other values of these fields; what else stands in its file stays there."""
    made = replace(value, **found)  # type: ignore[type-var]  # a dataclass, as every form
    if hasattr(value, "kept"):
        names = {file_name(item) for item, _ in stored_fields(type(value)) if item.name in found}
        now = {name: item for name, item in write(made).items() if name in names}
        stays = {name: item for name, item in value.kept.items() if name not in names - set(now)}
        object.__setattr__(made, "kept", stays | now)
    return made


def write(value: Any, *, nulls: bool = True, added: bool = True, whole: bool = True) -> Any:
    """
    The value as JSON has it, its fields in their order.

    Args:
        value: A frozen value, or anything that stands in one.
        nulls: Whether the file says of a field that it is None, or leaves it out.
        added: Whether it has those fields that earlier versions do not have (`added_later`) where
            they are as they are by default; left out, an earlier file keeps its digest.
        whole: Whether it has fields that are as they are by default, besides a `kind`.
    """
    found_kind = type(value)
    if found_kind in _PLAIN:
        return value
    if found_kind is tuple or found_kind is list:
        return [
            item if type(item) in _PLAIN else write(item, nulls=nulls, added=added, whole=whole)
            for item in value
        ]
    if isinstance(value, Kept) and hasattr(value, "kept"):
        return value.kept
    if is_dataclass(value) and not isinstance(value, type):
        nulls = nulls or isinstance(value, Kept)  # as they are read
        made = {}
        kind: Any = type(value)
        for item, stored in stored_fields(kind):
            found = getattr(value, item.name)
            if stored is not None and found is not None:
                found = stored.dump(found)
            if _is_left_out(item, value, found, nulls=nulls, added=added):
                continue
            if not whole and item.name != "kind" and found == _default(item):
                continue
            made[file_name(item)] = write(found, nulls=nulls, added=added, whole=whole)
        return made
    if isinstance(value, Mapping):
        return {
            key: write(item, nulls=nulls, added=added, whole=whole) for key, item in value.items()
        }
    if isinstance(value, tuple | list):
        return write(tuple(value), nulls=nulls, added=added, whole=whole)
    return value


def _is_left_out(item: Field[Any], owner: Any, found: Any, *, nulls: bool, added: bool) -> bool:
    marks = item.metadata
    only = marks.get("only")
    return (
        (found is None and (not nulls or bool(marks.get("unless_none"))))
        # Last whether it is empty: to ask that of a `Kept` is to write it.
        or (bool(marks.get("unless_empty")) and not found)
        or (only is not None and not only(owner))
        or (not added and bool(marks.get("added_later")) and found == item.default)
    )


def _default(item: Field[Any]) -> Any:
    return item.default if item.default_factory is MISSING else item.default_factory()


def _stands(value: Kept) -> Mapping[str, Any]:
    """What stands in the file, or would."""
    found: Mapping[str, Any] = write(value)
    return found


@functools.cache
def stored_fields(kind: Any) -> tuple[tuple[Field[Any], Stored | None], ...]:
    """The fields of a form, each with how it is stored if that is otherwise."""
    hints = hints_of(kind)
    return tuple((item, _stored(hints[item.name])) for item in fields(kind))


@functools.cache
def hints_of(kind: Any) -> Mapping[str, Any]:
    """The annotations of a form's fields, with what is said beside them."""
    return get_type_hints(kind, include_extras=True)


def _stored(hint: Any) -> Stored | None:
    """How a field is stored, which may be None too."""
    hints = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    marks = (mark for one in hints for mark in getattr(one, "__metadata__", ()))
    return next((mark for mark in marks if isinstance(mark, Stored)), None)
