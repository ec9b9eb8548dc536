"""
Frozen values and their form in a file: one declaration reads, refuses, writes and describes it.

A form is a frozen dataclass. pydantic reads its annotations; what is ours is said beside them:

    rows: Annotated[int, between(0, 5)]
    snapshots: tuple[Snapshot, ...] = field(default=(), metadata=in_file("snapshot"))
    size_bytes: Annotated[int, Stored(str, load=parse_bytes, dump=show_bytes)]

Nothing is coerced: a number in quotes is a text, and `true` is no number. What is refused ends in a
`FieldError` with the path, what was found and what was expected. Values that our own code makes
are not checked again, and pydantic is loaded with the first file.
"""

from __future__ import annotations

import difflib
import functools
import reprlib
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    NoReturn,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from pgheadroom.errors import InputError

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler
    from pydantic_core import SchemaValidator, ValidationError

T = TypeVar("T")
Node = dict[str, Any]
"""A part of what pydantic made of a declaration."""

_SHOWN_CHARACTERS = 60
_SHORT = reprlib.Repr()  # of what is nested without end, too, only so much
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 2 * _SHOWN_CHARACTERS
_KEEPABLE = r"^[^\x00]*$"


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


def encodable(text: str) -> bool:
    """Whether PostgreSQL could hold the text: no NUL, no lone surrogate (which JSON can carry)."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in text


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
    load: Callable[[Any], Any]
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
Names = Annotated[tuple[Text, ...], Expected("a list of strings that are not empty", whole=True)]


def in_file(
    name: str | None = None,
    *,
    unless_empty: bool = False,
    only: Callable[[Any], bool] | None = None,
) -> Mapping[str, Any]:
    """
    Metadata of a field.

    Args:
        name: In the file, where it is another one.
        unless_empty: The file has it only where there is something in it.
        only: Of which values the file has it at all.
    """
    return {"name": name, "unless_empty": unless_empty, "only": only}


def file_name(item: Field[Any]) -> str:
    """Under which name a field stands in the file."""
    return item.metadata.get("name") or item.name


def read(kind: type[T], data: object, *, at: str = "", nulls: bool = True) -> T:
    """
    A value out of what JSON or TOML gave.

    Args:
        kind: A frozen dataclass.
        data: What stands in the file.
        at: Its place there, for messages.
        nulls: As for `write`; without them a null is refused like any other value.

    Raises:
        FieldError: A field is unknown, missing, of another type or out of range.
    """
    from pydantic_core import ValidationError  # noqa: PLC0415 - loaded with the first file

    declared: Any = kind
    schema, validator = _form(declared, nulls)
    try:
        made: T = validator.validate_python(data)
    except ValidationError as error:
        raise _refusal(schema, error, data, at) from None
    return made


def write(value: Any, *, nulls: bool = True) -> Any:
    """
    The value as JSON has it, its fields in their order.

    Args:
        value: A frozen value, or anything that stands in one.
        nulls: Whether the file says of a field that it is None, or leaves it out.
    """
    if is_dataclass(value) and not isinstance(value, type):
        made = {}
        kind: Any = type(value)
        for item, stored in _written(kind):
            found = getattr(value, item.name)
            if stored is not None and found is not None:
                found = stored.dump(found)
            only = item.metadata.get("only")
            if (
                (found is None and not nulls)
                or (not found and item.metadata.get("unless_empty"))
                or (only is not None and not only(value))
            ):
                continue
            made[file_name(item)] = write(found, nulls=nulls)
        return made
    if isinstance(value, Mapping):
        return {key: write(item, nulls=nulls) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [write(item, nulls=nulls) for item in value]
    return value


def defaults(kind: Any) -> dict[str, Any]:
    """What the fields of a form are where the file does not have them, by their names there."""
    return {
        file_name(item): item.default if stored is None else stored.dump(item.default)
        for item, stored in _written(kind)
        if item.default is not MISSING and item.default is not None
    }


def expected_of(kind: Any, name: str) -> str:
    """What a message says is expected of a field, by its name in the file."""
    return _Found(_form(kind, False)[0], (name,), {}, "").expected


def json_schema(kind: Any, *, title: str, nulls: bool = True) -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a file that holds such a value."""
    from pydantic.json_schema import GenerateJsonSchema  # noqa: PLC0415 - see above

    made = GenerateJsonSchema().generate(_form(kind, nulls)[0])
    return {"$schema": GenerateJsonSchema.schema_dialect, **_tidy(made), "title": title}


def _tidy(schema: Any) -> Any:
    """Without what says nothing, and closed against unknown fields."""
    if isinstance(schema, list):
        return [_tidy(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: item if key == "default" else _tidy(item) for key, item in schema.items()}
    if made.get("pattern") == _KEEPABLE:
        del made["pattern"]
    if "patternProperties" in made:
        made["additionalProperties"] = made.pop("patternProperties")[_KEEPABLE]
    for item in made.get("properties", {}).values():
        item.pop("title", None)
        if not isinstance(item.get("default"), str | bool | int | float):
            item.pop("default", None)
    if "properties" in made:
        made["additionalProperties"] = False
    return made


@functools.cache
def _written(kind: type[Any]) -> tuple[tuple[Field[Any], Stored | None], ...]:
    hints = get_type_hints(kind, include_extras=True)
    return tuple((item, _stored(hints[item.name])) for item in fields(kind))


def _stored(hint: Any) -> Stored | None:
    """How a field is stored, which may be None too."""
    hints = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    marks = (mark for one in hints for mark in getattr(one, "__metadata__", ()))
    return next((mark for mark in marks if isinstance(mark, Stored)), None)


@functools.cache
def _form(kind: type[Any], nulls: bool) -> tuple[Node, SchemaValidator]:
    from pydantic import TypeAdapter  # noqa: PLC0415 - loaded with the first file
    from pydantic_core import SchemaValidator  # noqa: PLC0415 - see above

    schema = _strict(TypeAdapter(kind).core_schema, nulls)
    return schema, SchemaValidator(schema)


def _strict(node: Any, nulls: bool) -> Any:
    """The same, with our names and without pydantic's good will towards other types."""
    if isinstance(node, list):
        return [_strict(item, nulls) for item in node]
    if not isinstance(node, dict):
        return node
    made: Node = {
        key: item if key in ("default", "metadata", "config") else _strict(item, nulls)
        for key, item in node.items()
    }
    kind = made.get("type")
    if kind == "nullable" and not nulls:
        return made["schema"]
    if kind in ("int", "float", "bool", "str"):
        made["strict"] = True
    if kind == "float":
        made["allow_inf_nan"] = False
    if kind == "str":
        made.setdefault("pattern", _KEEPABLE)
    if kind in ("tuple", "list"):
        made["fail_fast"] = True  # the first is said, and a file may have millions
    if kind == "dataclass":
        made["schema"]["extra_behavior"] = "forbid"
        names = {item.name: file_name(item) for item in fields(made["cls"])}
        for item in made["schema"]["fields"]:
            item["validation_alias"] = names[item["name"]]
    return _tagged(made) if kind == "union" else made


def _tagged(node: Node) -> Node:
    """A choice, made by what stands there: a table, a list, or a plain value."""
    choices = {_SHAPES.get(item["type"], "plain"): item for item in node["choices"]}
    if len(choices) < len(node["choices"]):
        return node  # several plain ones, of which pydantic takes the one that fits
    return {
        "type": "tagged-union",
        "choices": choices,
        "discriminator": _shape_of,
        "metadata": node.get("metadata", {}),
    }


_SHAPES = {
    **dict.fromkeys(("dataclass", "definition-ref", "dict"), "table"),
    **dict.fromkeys(("tuple", "list"), "list"),
}


def _shape_of(found: object) -> str:
    if isinstance(found, Mapping):
        return "table"
    return "list" if isinstance(found, list | tuple) else "plain"


def _refusal(schema: Node, error: ValidationError, data: object, at: str) -> FieldError:
    """The first thing that is wrong; an unknown field, which may be a misspelt one, before it."""
    wrong = error.errors(include_url=False, include_input=False)
    first = wrong[0]
    for other in wrong:
        above = other["loc"][:-1]
        if other["type"] == "unexpected_keyword_argument" and first["loc"][: len(above)] == above:
            first = other
            break
    found = _Found(schema, first["loc"], data, at)
    if first["type"] == "unexpected_keyword_argument":
        return found.unknown()
    if found.unnamed is not None:
        name = show(found.unnamed)
        return FieldError(found.path, f"found {name}, expected names of fields that are text")
    if first["type"] == "missing":
        return FieldError(found.path, f"missing, expected {found.expected}")
    if first["type"] == "value_error":
        return FieldError(found.path, str(first["ctx"]["error"]))
    return FieldError(found.path, f"found {show(found.value)}, expected {found.expected}")


class _Found:
    """
    Where something is wrong: walks from the whole file to it, by data and declaration alike.

    Attributes:
        path: As in `table[0].columns[1].type`.
        value: What stands there; None if nothing.
        expected: In words.
    """

    def __init__(self, schema: Node, loc: Sequence[str | int], data: object, at: str) -> None:
        self.path = at
        self.value: Any = data
        self._refs = {item["ref"]: item for item in schema.get("definitions", ())}
        self._node = schema
        self._step: str | int = ""
        said = self._unwrap()
        # What is said of a name stands below it, and the name itself may be damaged.
        for step in loc[:-2] if loc[-1:] == ("[key]",) else loc:
            if said is not None and said.whole:
                break
            if self._node["type"] == "tagged-union":
                self._node = self._node["choices"][step]
                if step == "plain" and said is not None:
                    break
            else:
                known = self._known()
                self._enter(step)
                if known is None or step not in known:
                    self.expected = ", ".join(map(str, known or ()))
                    return
                self._node = known[step]
            said = self._unwrap()
        self.expected = _words(self._node) if said is None else said.text

    @property
    def unnamed(self) -> Any:
        """The name of a field in here that PostgreSQL could not hold; None without one."""
        if self._node["type"] not in ("dataclass-args", "dict") or not isinstance(self.value, dict):
            return None
        bad = (name for name in self.value if not isinstance(name, str) or not encodable(name))
        return next(bad, None)

    def unknown(self) -> FieldError:
        """A field that is not known in its table."""
        known = self.expected
        near = difflib.get_close_matches(str(self._step), known.split(", "), n=1)
        hint = f"did you mean {near[0]}? " if near else ""
        return FieldError(self.path, f"unknown field; {hint}known here: {known}")

    def _enter(self, step: str | int) -> None:
        self._step = step
        if isinstance(step, int):
            self.path += f"[{step}]"
            inside = isinstance(self.value, list | tuple) and step < len(self.value)
        else:
            self.path += f".{step}" if self.path else step
            inside = isinstance(self.value, Mapping) and step in self.value
        self.value = self.value[step] if inside else None

    def _unwrap(self) -> Expected | None:
        """Go to what holds fields or is a plain value; the first words on the way there."""
        said: Expected | None = None
        while True:
            node = self._node
            said = said or node.get("metadata", {}).get("expected")
            if node["type"] == "definition-ref":
                self._node = self._refs[node["schema_ref"]]
            elif "schema" in node and node["type"] != "dataclass-args":
                self._node = node["schema"]
            else:
                return said

    def _known(self) -> dict[str | int, Node] | None:
        """What can stand inside, by the step to it; None where nothing can."""
        node = self._node
        if node["type"] == "dataclass-args":
            return {item["validation_alias"]: item["schema"] for item in node["fields"]}
        if node["type"] == "dict":
            return _Any(node["values_schema"])
        if node["type"] == "tuple":
            items = node["items_schema"]
            return _Any(items[0]) if "variadic_item_index" in node else dict(enumerate(items))
        return None


class _Any(dict[str | int, Node]):
    """The same under every step."""

    def __init__(self, node: Node) -> None:
        super().__init__()
        self._same = node

    def __contains__(self, step: object) -> bool:
        return True

    def __getitem__(self, step: str | int) -> Node:
        return self._same


def _words(node: Node) -> str:
    """What a plain value, or the shell of one that holds others, has to be."""
    kind, low, high = node["type"], node.get("ge"), node.get("le")
    if kind == "literal":
        return "one of " + ", ".join(map(str, node["expected"]))
    if kind == "tuple":
        several = "variadic_item_index" in node
        return "a list" if several else f"a list of {len(node['items_schema'])}"
    words = {"int": "a whole number", "float": "a number", "bool": "true or false", "str": "a text"}
    said = words.get(kind, "a table of fields")
    if low is None:
        return said
    return f"{said} from {low} to {high}" if kind == "int" else f"{said} from {low:g} to {high:g}"
