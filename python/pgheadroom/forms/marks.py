"""
What is said beside a field's annotation: limits, words, how it is stored, its name in the file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass
from typing import TYPE_CHECKING, Annotated, Any

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler

Node = dict[str, Any]
"""A part of what pydantic made of a declaration."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a plain value, by pydantic's names for them."""

    of: tuple[tuple[str, Any], ...]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> Any:
        """What pydantic asks of a part of an annotation."""
        return {**handler(source), **dict(self.of)}


def between(low: float, high: float) -> Limits:
    """A number in a range, both ends included."""
    return Limits((("ge", low), ("le", high)))


@dataclass(frozen=True, slots=True)
class Expected:
    """
    What a message says is expected, where the type alone does not say it well.

    `whole` refuses the value as one: what is wrong inside of it is shown with all of it.
    """

    text: str
    whole: bool = False

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> Any:
        """What pydantic asks of a part of an annotation."""
        made: Node = dict(handler(source))
        made["metadata"] = {**made.get("metadata", {}), "expected": self}
        return made


@dataclass(frozen=True, slots=True)
class Earlier:
    """What files of earlier versions have in the place of a value, made into what they have now."""

    upgrade: Callable[[Any], Any]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> Any:
        """What pydantic asks of a part of an annotation."""
        from pydantic_core import core_schema  # noqa: PLC0415 - loaded with the first file

        return core_schema.no_info_before_validator_function(self.upgrade, handler(source))


def _same(value: Any) -> Any:
    return value


@dataclass(frozen=True, slots=True)
class Stored:
    """
    A value that stands in the file as something else.

    Attributes:
        form: What stands there.
        load: Makes the value of it; raises ValueError with the reason.
        dump: Makes what stands there of the value; none where `load` only looks at it.
    """

    form: Any
    load: Callable[[Any], Any] = _same
    dump: Callable[[Any], Any] = _same

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> Any:
        """What pydantic asks of a part of an annotation."""
        from pydantic_core import core_schema  # noqa: PLC0415 - loaded with the first file

        inner = handler.generate_schema(self.form)
        return core_schema.no_info_after_validator_function(self.load, inner)


Text = Annotated[
    str,
    Limits((("pattern", r"^[^\x00]*[^\s\x00][^\x00]*$"),)),
    Expected("a string that is not empty"),
]
NameList = Annotated[tuple[Text, ...], Expected("a list of strings that are not empty", whole=True)]
GapList = Annotated[
    tuple[Annotated[str, Limits((("pattern", r"^[^\x00]*$"),))], ...],
    Expected("a list of strings", whole=True),
]
"""One for each of something else, empty where nothing is said of that."""


def in_file(
    name: str | None = None,
    *,
    unless_empty: bool = False,
    unless_none: bool = False,
    only: Callable[[Any], bool] | None = None,
    added_later: bool = False,
) -> Mapping[str, Any]:
    """
    Metadata of a field.

    Args:
        name: In the file, where it is another one.
        unless_empty: The file has it only where there is something in it.
        unless_none: The file has it only where there is one.
        only: Of which values the file has it at all.
        added_later: Files of earlier versions do not have it.
    """
    return {
        **{"name": name, "unless_empty": unless_empty, "unless_none": unless_none},
        **{"only": only, "added_later": added_later},
    }


def file_name(item: Field[Any]) -> str:
    """Under which name a field stands in the file."""
    return item.metadata.get("name") or item.name
