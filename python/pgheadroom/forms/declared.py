"""
What a declaration says, as pydantic's core has it.

pydantic itself makes the same of it, and a test holds both beside each other for every file of
ours; but importing it and making a profile's schema took half of a command's start, most of it for
what no form has: models, generics, serialization, plugins.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pgheadroom.forms.marks import Node
from pgheadroom.forms.writing import hints_of

_PLAIN = {bool: "bool", int: "int", float: "float", str: "str", NoneType: "none"}
_PLAIN |= {Any: "any", object: "any"}


def core_schema(kind: Any) -> Node:
    """
    The core schema of a declaration: what pydantic checks a file by.

    It is no public interface, so pyproject.toml holds pydantic to the minor version whose schemas
    these are; tests/unit/test_forms.py fails by name where a newer one makes another thing of a
    declaration.

    Raises:
        TypeError: An annotation is nothing that a form can hold.
    """
    found = _Declaration()
    made = found.placed(found.node(kind))
    shared = [found.placed(node) for node in found.shared()]
    return {"type": "definitions", "schema": made, "definitions": shared} if shared else made


class _Declaration:
    """A declaration, taken apart; every dataclass in it is a reference first."""

    def __init__(self) -> None:
        self._dataclasses: dict[str, Node] = {}
        self._uses: Counter[str] = Counter()

    def shared(self) -> list[Node]:
        """Dataclasses that stand in several places, or in themselves."""
        return [node for ref, node in self._dataclasses.items() if self._uses[ref] > 1]

    def placed(self, node: Any) -> Any:
        """The same; what stands in one place alone stands there instead of its reference."""
        if isinstance(node, list):
            return [self.placed(item) for item in node]
        if not isinstance(node, dict):
            return node
        if node.get("type") == "definition-ref" and self._uses[node["schema_ref"]] == 1:
            said = {"metadata": node["metadata"]} if "metadata" in node else {}
            return self.placed({**self._dataclasses[node["schema_ref"]], **said})
        kept = ("default", "metadata", "config")
        return {key: item if key in kept else self.placed(item) for key, item in node.items()}

    def node(self, hint: Any) -> Node:
        """Of an annotation."""
        if is_dataclass(hint):
            return self._reference(hint)
        try:
            return {"type": _PLAIN[hint]}
        except (KeyError, TypeError):
            return self._compound(hint, get_origin(hint), get_args(hint))

    def _compound(self, hint: Any, origin: Any, inside: tuple[Any, ...]) -> Node:
        if origin is Annotated:
            return self._marked(hint.__origin__, hint.__metadata__)
        if origin is Literal:
            return {"type": "literal", "expected": list(inside)}
        if origin in (Union, UnionType):
            return self._choice(inside)
        if origin is tuple and inside[-1] is ...:
            items = [self.node(inside[0])]
            return {"type": "tuple", "items_schema": items, "variadic_item_index": 0}
        if origin is tuple:
            return {"type": "tuple", "items_schema": list(map(self.node, inside))}
        if origin in (dict, Mapping):
            keys, values = map(self.node, inside)
            return {"type": "dict", "keys_schema": keys, "values_schema": values}
        raise TypeError(f"{hint!r} is nothing that a form can hold")

    def _choice(self, kinds: tuple[Any, ...]) -> Node:
        choices = [self.node(kind) for kind in kinds if kind is not NoneType]
        made: Node = choices[0] if len(choices) == 1 else {"type": "union", "choices": choices}
        return made if NoneType not in kinds else {"type": "nullable", "schema": made}

    def _marked(self, hint: Any, marks: Sequence[Any]) -> Node:
        """The last mark has its say over what those before it made, if it asks for that."""
        if not marks:
            return self.node(hint)
        *before, mark = marks
        inner = _Inner(lambda: self._marked(hint, before), self.node)
        made: Node = mark.__get_pydantic_core_schema__(hint, inner)
        return made

    def _reference(self, kind: Any) -> Node:
        reference = f"{kind.__module__}.{kind.__qualname__}:{id(kind)}"
        self._uses[reference] += 1
        if reference not in self._dataclasses:
            self._dataclasses[reference] = {}  # it may hold others of its kind
            self._dataclasses[reference] = self._dataclass(kind, reference)
        return {"type": "definition-ref", "schema_ref": reference}

    def _dataclass(self, kind: Any, reference: str) -> Node:
        hints, items = hints_of(kind), fields(kind)
        name = kind.__name__
        held = [
            {"type": "dataclass-field", "name": item.name, "schema": _defaulted(item, node)}
            for item, node in ((item, self.node(hints[item.name])) for item in items)
        ]
        return {
            "type": "dataclass",
            "cls": kind,
            "fields": [item.name for item in items],
            "schema": {"type": "dataclass-args", "dataclass_name": name, "fields": held},
            "post_init": hasattr(kind, "__post_init__"),
            "slots": hasattr(kind, "__slots__"),
            "config": {"title": name},
            "ref": reference,
        }


class _Inner:
    """What a mark asks for the rest of its annotation (pydantic's GetCoreSchemaHandler)."""

    def __init__(self, rest: Callable[[], Node], node: Callable[[Any], Node]) -> None:
        self._rest, self.generate_schema = rest, node

    def __call__(self, _source: Any) -> Node:
        return self._rest()


def _defaulted(item: Field[Any], node: Node) -> Node:
    if item.default is not MISSING:
        return {"type": "default", "schema": node, "default": item.default}
    if item.default_factory is not MISSING:
        return {"type": "default", "schema": node, "default_factory": item.default_factory}
    return node
