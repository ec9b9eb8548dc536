"""
Damage to files that people edit: mutations of JSON values and of text, from a seed.

What editing, cutting, merging and other programs do: a value of another kind, out of range, gone,
doubled, nested without end; a text that is cut, spliced, or has signs that no database holds.
"""

from __future__ import annotations

import copy
import json
import pickle
import random
from typing import Any

VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2, 0.5, -0.0, 1e-300, 1e308, 10**5),
    *(2**15, 2**31 - 1, 2**31, 2**32, 2**53 + 1, 2**63 - 1, 2**63, -(2**63) - 1, 10**40, 10**400),
    *(float("nan"), float("inf"), float("-inf"), "", " ", "x", "0", "NaN", "-1", "1e9", "\0"),
    *("a\0b", "\ud800", "\udfff x", "\x1b[31m", "é" * 70, "x" * 300, "';--", 'a"b', "a\nb", "18"),
    *([], {}, [[]], [None], [0], [1, 2], [1, 2, 3], ["id"], {"": None}, {"x": {}}, [{}], "hidden"),
)
_TOKENS = (
    *("(", ")", "'", '"', "$$", "$1", ";", ",", "--", "/*", "*/", "\\", "\0", "\ud800", "E'", "."),
    *("::", "=", "%", "@", "\n", "\t", "UPDATE", "SET", "WITH", "INSERT INTO", "ON CONFLICT", "é"),
    *("CREATE INDEX", "ALTER TABLE", "DROP", "USING", "ARRAY[", "SELECT", "FROM", "0x", "1e", "AS"),
    *("\\set a 1", "\\;", ":a", "U&'\\0041'", "B'01'", "DO $x$", "BEGIN", "CASE", "((((((("),
)
_NESTED = (5, 40, 300, 900, 1500)


_Path = tuple[Any, ...]


class Mutator:
    """Mutations in an order that the seed decides."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311 - to be repeated, not to be secret
        self._whole: dict[int, tuple[Any, bytes, list[_Path]]] = {}

    def file_of(self, value: Any) -> str:
        """The text of a JSON file after one to three mutations, now and then of the text itself."""
        if id(value) not in self._whole:  # most of the time went into copies, and their places
            self._whole[id(value)] = (value, pickle.dumps(value), _places(value))
        _, copied, places = self._whole[id(value)]
        mutated = pickle.loads(copied)  # noqa: S301 - our own
        for number in range(self._random.choice((1, 1, 1, 2, 3))):
            mutated = self._mutated(mutated, places if number == 0 else _places(mutated))
        text = json.dumps(mutated)
        for levels in _NESTED:  # deeper than Python itself could write
            text = text.replace(f'"[{levels}["', "[" * levels + "1" + "]" * levels)
            text = text.replace(f'"{{{levels}{{"', '{"x":' * levels + "1" + "}" * levels)
        return self._cut(text) if self._random.random() < 0.02 else text

    def text_of(self, text: str) -> str:
        """A text after one to four mutations."""
        for _ in range(self._random.choice((1, 1, 2, 4))):
            text = self._spliced(text)
        return text

    def _mutated(self, value: Any, places: list[_Path]) -> Any:
        path = self._random.choice(places)
        if not path:
            return self._other()
        place = value
        for key in path[:-1]:
            place = place[key]
        key = path[-1]
        kind = self._random.random()
        if kind < 0.2:
            del place[key]
        elif kind < 0.25 and isinstance(place, list):
            place.insert(self._random.randrange(len(place) + 1), copy.deepcopy(place[key]))
        elif kind < 0.3 and isinstance(place, dict):
            place[self._random.choice(("x", "", "\ud800", "a\0", "oid", "rows"))] = place.pop(key)
        elif kind < 0.4:
            place[key] = self._other()
        else:
            place[key] = self._changed(place[key])
        return value

    def _changed(self, old: Any) -> Any:
        if (
            isinstance(old, int | float)
            and not isinstance(old, bool)
            and self._random.random() < 0.4
        ):
            change = self._random.choice((-1, 0.5, 2, 1000, 1e-9, 1e15))
            return type(old)(old * change) if abs(old) < 1e250 else -old
        if isinstance(old, str) and self._random.random() < 0.3:
            return self._spliced(old)
        return self._other()

    def _other(self) -> Any:
        if self._random.random() < 0.04:
            sign = self._random.choice("[{")
            return f"{sign}{self._random.choice(_NESTED)}{sign}"
        return copy.deepcopy(self._random.choice(VALUES))

    def _spliced(self, text: str) -> str:
        start, end = sorted(self._random.randrange(len(text) + 1) for _ in range(2))
        end = min(end, start + 30)
        kind = self._random.random()
        if kind < 0.3:
            return text[:start] + text[end:]
        if kind < 0.4:
            return text[:start] + text[start:end] * 2 + text[end:]
        if kind < 0.45:
            return text[:start]
        return text[:start] + self._random.choice(_TOKENS) + text[end if kind < 0.7 else start :]

    def _cut(self, text: str) -> str:
        kind = self._random.random()
        if kind < 0.2:
            return "[" * 5000 + text
        return self._spliced(text)


def _places(value: Any) -> list[_Path]:
    """Paths to everything in a value, itself first."""
    found: list[_Path] = []
    _add_places(value, (), found)
    return found


def _add_places(value: Any, path: _Path, found: list[_Path]) -> None:
    found.append(path)
    if isinstance(value, dict):
        for key, item in value.items():
            _add_places(item, (*path, key), found)
    elif isinstance(value, list):
        for n, item in enumerate(value):
            _add_places(item, (*path, n), found)
