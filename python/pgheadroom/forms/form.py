"""
A form read, written and described: pydantic's core does it as the declaration says, no more.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import TYPE_CHECKING, Any, TypeVar

from pgheadroom.forms.declared import core_schema
from pgheadroom.forms.filed import Filed
from pgheadroom.forms.foreign import keepable
from pgheadroom.forms.kept import reader
from pgheadroom.forms.marks import Node, file_name
from pgheadroom.forms.refusing import ANY_NUMBER, Found, refusal
from pgheadroom.forms.writing import Kept, stored_fields

if TYPE_CHECKING:
    from pydantic_core import SchemaValidator

T = TypeVar("T")

KEEPABLE = r"^[^\x00]*$"
_KEEP = {"type": "no-info", "function": keepable}


def read(
    kind: type[T], data: object, *, at: str = "", nulls: bool = True, exact: bool = False
) -> T:
    """
    A value out of what JSON or TOML gave.

    Args:
        kind: A frozen dataclass.
        data: What stands in the file.
        at: Its place there, for messages.
        nulls: As for `write`; without them a null is refused like any other value.
        exact: Whether 5 stays 5 where a number need not be whole, or becomes 5.0.

    Raises:
        FieldError: A field is unknown, missing, of another type or out of range.
    """
    from pydantic_core import ValidationError  # noqa: PLC0415 - loaded with the first file

    declared: Any = kind
    schema, validator = _form(declared, nulls, exact)
    try:
        made: T = validator.validate_python(data)
    except ValidationError as error:
        raise refusal(schema, error, data, at) from None
    return made


def defaults(kind: Any) -> dict[str, Any]:
    """What the fields of a form are where the file does not have them, by their names there."""
    return {
        file_name(item): item.default if stored is None else stored.dump(item.default)
        for item, stored in stored_fields(kind)
        if item.default is not MISSING and item.default is not None
    }


def expected_of(kind: Any, name: str) -> str:
    """What a message says is expected of a field, by its name in the file."""
    return Found(_form(kind, False)[0], (name,), {}, "").expected


def json_schema(
    kind: Any, *, title: str, nulls: bool = True, frame: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """
    The JSON Schema (draft 2020-12) of a file that holds such a value.

    Args:
        kind: A frozen dataclass.
        title: Of the file.
        nulls: As for `read`.
        frame: Schemas of what else stands in the file before the value's fields, by name.
    """
    from pydantic.json_schema import GenerateJsonSchema  # noqa: PLC0415 - see above

    made = _tidy(GenerateJsonSchema().generate(_form(kind, nulls)[0]))
    if "$ref" in made:  # a value that holds others of its kind
        made |= made["$defs"].pop(made.pop("$ref").rpartition("/")[2])
    around = dict(frame or {})
    if issubclass(kind, Filed):
        said = {"schema_version": kind.VERSION, "kind": kind.KIND}
        around = {name: {"const": value} for name, value in said.items()} | around
    made["properties"] = around | made["properties"]
    made["required"] = [*around, *made.get("required", ())]
    return {"$schema": GenerateJsonSchema.schema_dialect, **made, "title": title}


def _tidy(schema: Any) -> Any:
    """Without what says nothing, and closed against unknown fields."""
    if isinstance(schema, list):
        return [_tidy(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: item if key == "default" else _tidy(item) for key, item in schema.items()}
    if made.get("pattern") == KEEPABLE:
        del made["pattern"]
    if "patternProperties" in made:
        made["additionalProperties"] = made.pop("patternProperties")[KEEPABLE]
    if made.get("type") in ("integer", "number"):
        ends = ANY_NUMBER["int" if made["type"] == "integer" else "float"]
        if (made.get("minimum"), made.get("maximum")) == ends:
            del made["minimum"], made["maximum"]
    for item in made.get("properties", {}).values():
        item.pop("title", None)
        if not isinstance(item.get("default"), str | bool | int | float):
            item.pop("default", None)
    if "properties" in made:
        made.setdefault("additionalProperties", False)
    return made


@functools.cache
def _form(kind: type[Any], nulls: bool, exact: bool = False) -> tuple[Node, SchemaValidator]:
    from pydantic_core import SchemaValidator  # noqa: PLC0415 - loaded with the first file

    schema = _strict(core_schema(kind), nulls, exact)
    return schema, SchemaValidator(schema)


def _strict(node: Any, nulls: bool, exact: bool) -> Any:
    """
    The same, with our names and without pydantic's good will towards other types.

    pydantic's own means do not suffice: its strict mode refuses lists for tuples, aliases would
    stand in every declaration, and null, exact numbers and unknown fields are not the declaration's
    but the file's.
    """
    if isinstance(node, list):
        return [_strict(item, nulls, exact) for item in node]
    if not isinstance(node, dict):
        return node
    if node.get("type") == "dataclass" and issubclass(node["cls"], Kept):
        nulls = exact = True  # as whatever wrote it has it
    made: Node = {
        key: item if key in ("default", "metadata", "config") else _strict(item, nulls, exact)
        for key, item in node.items()
    }
    kind = made.get("type")
    if kind == "nullable" and not nulls:
        return made["schema"]
    if kind == "any":
        made = {"type": "function-after", "schema": made, "function": _KEEP}
    if kind in ("int", "float") and "ge" not in made:
        made["ge"], made["le"] = ANY_NUMBER[kind]
    if kind in ("int", "float", "bool", "str"):
        made["strict"] = True
    if kind == "float":
        made["allow_inf_nan"] = False
    if kind == "float" and exact:
        ends = {"ge": math.ceil(made["ge"]), "le": math.floor(made["le"])}
        return {"type": "union", "choices": [{"type": "int", "strict": True, **ends}, made]}
    if kind == "str":
        made.setdefault("pattern", KEEPABLE)
    if kind in ("tuple", "list"):
        made["fail_fast"] = True  # the first is said, and a file may have millions
    if kind == "dataclass":
        return _named(made)
    return _tagged(made) if kind == "union" else made


def _named(node: Node) -> Node:
    """A table of fields, under the file's names, closed or kept whole."""
    node["schema"]["extra_behavior"] = "forbid"
    names = {item.name: file_name(item) for item in fields(node["cls"])}
    for item in node["schema"]["fields"]:
        item["validation_alias"] = names[item["name"]]
    return _kept(node, frozenset(names.values())) if issubclass(node["cls"], Kept) else node


def _kept(node: Node, known: frozenset[str]) -> Node:
    extra = {"pydantic_js_extra": {"additionalProperties": True}}
    made: Node = {
        "type": "function-wrap",
        "function": {"type": "no-info", "function": reader(known)},
        "schema": {**node, "metadata": {**node.get("metadata", {}), **extra}},
    }
    if "ref" in made["schema"]:
        made["ref"] = made["schema"].pop("ref")
    return made


def _tagged(node: Node) -> Node:
    """A choice, made by what stands there: a table, a list, or a plain value."""
    choices = {_SHAPES.get(item["type"], "plain"): item for item in node["choices"]}
    if set(choices) == {"table"} and len(node["choices"]) > 1:
        return {
            "type": "tagged-union",
            "choices": {_kind_of(item): item for item in node["choices"]},
            "discriminator": "kind",
        }
    if len(choices) < len(node["choices"]):
        return node  # several plain ones, of which pydantic takes the one that fits
    return {
        "type": "tagged-union",
        "choices": choices,
        "discriminator": _shape_of,
        "metadata": node.get("metadata", {}),
    }


def _kind_of(node: Node) -> str:
    """Which of several tables one is, by the one value that its field `kind` can have."""
    items = {item["name"]: item["schema"] for item in node["schema"]["fields"]}
    found = items["kind"]
    while "schema" in found:
        found = found["schema"]
    (value,) = found["expected"]
    return str(value)


_SHAPES = {
    **dict.fromkeys(("dataclass", "definition-ref", "dict"), "table"),
    **dict.fromkeys(("tuple", "list"), "list"),
}


def _shape_of(found: object) -> str:
    if isinstance(found, Mapping):
        return "table"
    return "list" if isinstance(found, list | tuple) else "plain"
