"""
pydantic's errors in our words: walks by data and declaration to what is wrong.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pgheadroom.forms.foreign import NUMBER_MAX, FieldError, brief, encodable
from pgheadroom.forms.marks import Expected, Node

if TYPE_CHECKING:
    from pydantic_core import ValidationError

ANY_NUMBER = {"int": (1 - 2**63, 2**63 - 1), "float": (-NUMBER_MAX, NUMBER_MAX)}
"""Ends of numbers for which the declaration has none."""


def refusal(schema: Node, error: ValidationError, data: object, at: str) -> FieldError:
    """The first thing that is wrong; an unknown field, which may be a misspelt one, before it."""
    wrong = error.errors(include_url=False, include_input=False)
    first = wrong[0]
    for other in wrong:
        above = other["loc"][:-1]
        if other["type"] == "unexpected_keyword_argument" and first["loc"][: len(above)] == above:
            first = other
            break
    found = Found(schema, first["loc"], data, at)
    if first["type"] == "unexpected_keyword_argument":
        return found.unknown()
    if found.unnamed is not None:
        name = brief(found.unnamed)
        return FieldError(found.path, f"found {name}, expected names of fields that are text")
    if first["type"] == "missing":
        return FieldError(found.path, f"missing, expected {found.expected}")
    if first["type"].startswith("union_tag") and first["ctx"]["discriminator"] == "'kind'":
        said = f"found {brief(found.value['kind'])}" if "kind" in found.value else "missing"
        return FieldError(f"{found.path}.kind", f"{said}, expected {found.expected}")
    if first["type"] == "value_error":
        return FieldError(found.path, str(first["ctx"]["error"]))
    return FieldError(found.path, f"found {brief(found.value)}, expected {found.expected}")


class Found:
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
            elif self._node["type"] == "union":
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
            return _Same(node["values_schema"])
        if node["type"] == "tuple":
            items = node["items_schema"]
            return _Same(items[0]) if "variadic_item_index" in node else dict(enumerate(items))
        return None


class _Same(dict[str | int, Node]):
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
    if kind == "tagged-union" and node["discriminator"] == "kind":
        return "one of " + ", ".join(node["choices"])
    if kind == "literal":
        return "one of " + ", ".join(map(str, node["expected"]))
    if kind == "union":
        return _words(node["choices"][-1])
    if kind == "tuple":
        several = "variadic_item_index" in node
        return "a list" if several else f"a list of {len(node['items_schema'])}"
    words = {"int": "a whole number", "float": "a number", "bool": "true or false", "str": "a text"}
    said = words.get(kind, "a table of fields")
    if low is None or (low, high) == ANY_NUMBER[kind]:
        return said
    return f"{said} from {low} to {high}" if kind == "int" else f"{said} from {low:g} to {high:g}"
