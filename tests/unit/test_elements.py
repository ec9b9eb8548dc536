"""Values of several elements: what a profile may say of them, and the bytes that follow."""

from __future__ import annotations

from typing import Any

import pytest

from pgheadroom.errors import InputError
from pgheadroom.profile import Profile, parse_profile
from pgheadroom.profile.elements import (
    ELEMENTS_MAX,
    TYPES,
    WIDTH_MAX,
    Elements,
    mean_payload,
    payload_range,
)

FEW = {"min": 1, "max": 3, "ndistinct": 50}


def _profile(of: str, elements: Any, **column: Any) -> Profile:
    columns = [{"name": "id", "type": "int8"}, {"name": "e", "type": of, "elements": elements}]
    columns[1] |= column
    return parse_profile(
        {
            "schema_version": 1,
            "table": [
                {
                    "name": "t",
                    "rows": 10,
                    "columns": columns,
                    "indexes": [{"name": "t_pkey", "columns": ["id"], "unique": True}],
                }
            ],
            "operation": [{"table": "t", "kind": "insert"}],
            "run": {"operations": 1},
        }
    )


@pytest.mark.parametrize(
    ("of", "elements", "said"),
    [
        ("text", FEW, r"elements: found 'text', expected a type that has elements: int2\[\]"),
        ("int4", FEW, "elements: found 'int4', expected a type that has elements"),
        ("text[]", FEW | {"min": 4}, r"elements.max: found 3, expected a whole number from 4"),
        ("text[]", FEW | {"min": 0}, r"elements.min: found 0"),
        ("text[]", FEW | {"max": ELEMENTS_MAX + 1}, "elements.max: found 10001"),
        ("text[]", FEW | {"ndistinct": 0}, "elements.ndistinct: found 0"),
        ("jsonb", FEW | {"width": WIDTH_MAX + 1}, "elements.width: found 101"),
        ("tsvector", FEW | {"ndistinct": 101, "width": 2}, "found 2, expected at least 3, the dig"),
        ("int4[]", FEW | {"width": 4}, "elements.width: found 4, expected none, for elements of"),
        ("int2[]", FEW | {"ndistinct": 32769}, "ndistinct: found 32769, expected at most 32768"),
        ("int4[]", FEW | {"ndistinct": 2**31 + 1}, "expected at most 2147483648, as int4"),
        ("text[]", {"min": 1, "max": 2}, "elements.ndistinct: missing"),
        ("text[]", FEW | {"alike": 0}, "elements.alike: found 0"),
        ("text[]", FEW | {"alike": 51}, "alike: found 51, expected at most 50, as many as there"),
        (
            "text[]",
            FEW | {"ndistinct": 2**51, "alike": 1},
            "expected at most 1125899906842624, for",
        ),
    ],
)
def test_what_does_not_fit_is_refused(of: str, elements: Any, said: str) -> None:
    """By its field."""
    with pytest.raises(InputError, match=said):
        _profile(of, elements)


@pytest.mark.parametrize("of", TYPES)
def test_what_fits_is_taken(of: str) -> None:
    """Digits of a string are as many as the largest number needs; integers have none."""
    most = FEW | {"ndistinct": 1001}
    found = _profile(of, most).tables[0].column("e").elements
    assert found is not None
    assert found.width == (None if of.startswith("int") else 4)
    narrow = _profile(of, FEW | {"ndistinct": 1000}).tables[0].column("e").elements
    assert narrow is not None
    assert narrow.width == (None if of.startswith("int") else 3)


def test_bytes_of_values_are_said_by_their_elements() -> None:
    """A width beside them would be a second word on the same."""
    with pytest.raises(InputError, match="width"):
        _profile("text[]", FEW, width=30)


def test_a_tsvector_has_each_word_once() -> None:
    """Of ten draws among three words at least one and at most three are left."""
    words = Elements(min=10, max=10, ndistinct=3, width=1)
    assert payload_range(words, "tsvector") == (4 + 5, 4 + 3 * 5)
    assert payload_range(words, "jsonb") == (4 + 10 * 5, 4 + 10 * 5)


def test_the_mean_value() -> None:
    """Of k draws among n words n (1 - (1 - 1/n)^k) are there; other types have all."""
    words = Elements(min=2, max=2, ndistinct=2, width=1)
    assert mean_payload(words, "tsvector") == pytest.approx(4 + 1.5 * 5)
    assert mean_payload(words, "jsonb") == 4 + 2 * 5
    alone = Elements(min=1, max=7, ndistinct=1, width=1)
    assert mean_payload(alone, "tsvector") == 4 + 5
    assert mean_payload(Elements(min=1, max=4, ndistinct=9), "int4[]") == 20 + 2.5 * 4
