"""Our dataclasses are the standard library's, but for when their methods are compiled."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import subprocess
import sys
from collections.abc import Callable
from dataclasses import FrozenInstanceError, field, replace
from typing import Any, ClassVar

import pytest

from pgheadroom import dataclass as ours

Decorate = Callable[..., Any]


def _kinds(decorate: Decorate) -> dict[str, Any]:
    """The same declarations by either decorator."""

    @decorate(frozen=True, slots=True, kw_only=True)
    class Size:
        """Of something."""

        KINDS: ClassVar[int] = 3
        rows: int
        names: list[str] = field(default_factory=list, compare=False)
        unit: str = "B"
        secret: str = field(default="", repr=False, hash=False)

    @decorate(frozen=True, slots=True, kw_only=True)
    class Wide(Size):
        """With one more."""

        width: float | None = None

    @decorate(slots=True)
    class Counted:
        """Changes, so it has no hash."""

        count: int
        twice: int = field(init=False)

        def __post_init__(self) -> None:
            self.twice = self.count * 2

    @decorate(frozen=True)
    class Named:
        """Has a hash, an equality and words of its own."""

        name: str
        self: int = 0

        def __eq__(self, other: object) -> bool:
            return isinstance(other, type(self)) and self.name.lower() == other.name.lower()

        def __hash__(self) -> int:
            return hash(self.name.lower())

        def __repr__(self) -> str:
            return f"<{self.name}>"

    @decorate(frozen=True, eq=False, repr=False)
    class Itself:
        """Equal to nothing else."""

        name: str = "a"

    @decorate
    class Bare:
        """Nothing is asked for."""

        name: str
        deeper: Any = None

    return {kind.__name__: kind for kind in (Size, Wide, Counted, Named, Itself, Bare)}


OURS, THEIRS = _kinds(ours.dataclass), _kinds(dataclasses.dataclass)
GIVEN: dict[str, list[dict[str, Any]]] = {
    "Size": [{"rows": 1}, {"rows": 1, "names": ["a"], "secret": "x"}, {"rows": 2, "unit": "kB"}],
    "Wide": [{"rows": 1}, {"rows": 1, "width": 2.0}],
    "Counted": [{"count": 1}, {"count": 2}],
    "Named": [{"name": "a"}, {"name": "A", "self": 3}, {"name": "b"}],
    "Itself": [{}, {"name": "b"}],
    "Bare": [{"name": "a"}, {"name": "a", "deeper": [1]}],
}


def _told(kind: Any, given: list[dict[str, Any]]) -> dict[str, Any]:
    """All that shows of a kind and of its values."""
    made = [kind(**item) for item in given]
    compared = [(a == b, a != b) for a in made for b in made]
    return {
        "equal": compared,
        "repr": [repr(item) for item in made] if kind.__repr__ is not object.__repr__ else [],
        "hash": [_caught(hash, item) for item in made]
        if kind.__hash__ is not object.__hash__
        else [],
        "fields": [item.name for item in dataclasses.fields(kind)],
        "values": [
            {item.name: getattr(value, item.name) for item in dataclasses.fields(kind)}
            for value in made
        ],
        "slots": getattr(kind, "__slots__", None),
        "match": kind.__match_args__,
        "signature": str(inspect.signature(kind)),
        "doc": kind.__doc__,
        "too many": _caught(kind, 1, 2, 3, 4, 5, 6, 7),
        "unknown": _caught(kind, **given[0], other=1),
        "set": _caught(setattr, made[0], dataclasses.fields(kind)[0].name, 7),
        "delete": _caught(delattr, made[0], dataclasses.fields(kind)[0].name),
        "name": kind.__init__.__qualname__,
    }


def _caught(call: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    try:
        return call(*arguments, **named)
    except Exception as error:  # noqa: BLE001 - whatever it is, it has to be the same
        return type(error).__name__, str(error)


@pytest.mark.parametrize("name", OURS)
def test_they_are_the_standard_librarys(name: str) -> None:
    """To the word of a refusal, the signature and the hash."""
    found, expected = (_told(kinds[name], GIVEN[name]) for kinds in (OURS, THEIRS))
    assert found == expected


def test_nothing_is_compiled_before_it_is_used() -> None:
    """A fifth of what a command imported went into methods of values that it never made."""
    kind = _kinds(ours.dataclass)["Wide"]
    held = {name: type(vars(kind)[name]) for name in ("__init__", "__repr__", "__eq__", "__hash__")}
    assert set(held.values()) == {ours._Compiled}
    made = kind(rows=1)
    assert inspect.isfunction(vars(kind)["__init__"])
    assert type(vars(kind)["__eq__"]) is ours._Compiled
    assert made == kind(rows=1)
    assert inspect.isfunction(vars(kind)["__eq__"])
    assert type(vars(kind)["__hash__"]) is ours._Compiled


def test_a_kind_below_does_not_take_its_bases_place() -> None:
    """`super().__init__` from a class that is no dataclass itself, before any use of its base."""
    base = _kinds(ours.dataclass)["Bare"]

    class Deeper(base):  # type: ignore[misc, valid-type]
        def __init__(self, name: str) -> None:
            super().__init__(name + "!")

    assert Deeper("a").name == "a!"
    assert "__eq__" not in vars(Deeper)
    assert Deeper("a") == Deeper("a")
    assert Deeper("a") != base("a!")
    assert repr(Deeper("a")).endswith("Deeper(name='a!', deeper=None)")


@ours.dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """Frozen, with slots: where a copy has to be put together past `__setattr__`."""

    name: str
    parts: list[int] = field(default_factory=list)


def test_values_are_copied_replaced_and_pickled() -> None:
    """As those of the standard library, which has means of its own for frozen slots."""
    value = Kept(name="a", parts=[1])
    for made in (copy.copy(value), copy.deepcopy(value), pickle.loads(pickle.dumps(value))):
        assert made == value
        assert made is not value
    assert replace(value, name="b") == Kept(name="b", parts=[1])
    assert dataclasses.asdict(value) == {"name": "a", "parts": [1]}
    for name in ("name", "another"):
        with pytest.raises(FrozenInstanceError, match=f"cannot assign to field '{name}'"):
            setattr(value, name, "b")


def test_a_command_compiles_what_it_makes() -> None:
    """Of its values' kinds a start uses a part, and no method but of those."""
    code = """
import pgheadroom.dataclass as ours, pgheadroom.profile, pgheadroom.plan, pgheadroom.verify
import gc
kinds = [kind for kind in gc.get_objects() if isinstance(kind, type)
         and kind.__module__.startswith("pgheadroom.") and "__dataclass_fields__" in vars(kind)]
waiting = [kind for kind in kinds if type(vars(kind).get("__init__")) is ours._Compiled]
print(len(kinds), len(waiting))
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    kinds, waiting = map(int, found.stdout.split())
    assert kinds > 50
    assert waiting > kinds * 0.8
