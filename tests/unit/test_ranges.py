"""Ranges of whole numbers, for factors of experiments and options of commands alike."""

from __future__ import annotations

import pytest

from pgheadroom.cli.predict import parse_fillfactors
from pgheadroom.errors import InputError, ParameterError
from pgheadroom.lab.design import Factor
from pgheadroom.ranges import parse_range, parse_ranges

BOUNDS = (10, 100)
FACTOR = Factor(name="fillfactor", description="", bounds=BOUNDS)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("70", [70]),
        ("100,90", [100, 90]),
        ("50..100:25", [50, 75, 100]),
        ("10..13", [10, 11, 12, 13]),
        (" 90 , 50..60:7", [90, 50, 57]),
    ],
)
def test_numbers_in_their_order(text: str, numbers: list[int]) -> None:
    """A factor and an option read them alike."""
    assert parse_ranges(text, BOUNDS, parameter="x") == numbers
    assert list(FACTOR.parse(text)) == parse_fillfactors(text) == numbers


@pytest.mark.parametrize("text", ["", "x", "9", "101", "90..80", "50..100:0", "50..200:5", "7.5"])
def test_what_is_no_range(text: str) -> None:
    """Refused by its part, under the name that it was given for."""
    assert parse_range(text, BOUNDS) is None
    with pytest.raises(ParameterError) as caught:
        parse_ranges(f"80,{text}", BOUNDS, parameter="fillfactor")
    assert caught.value.parameter == "fillfactor"
    shown = f"--fillfactor {text}".strip()
    assert caught.value.as_option() == f"{shown}: expected a whole number from 10 to 100"
    with pytest.raises(InputError, match="expected a whole number from 10 to 100"):
        FACTOR.parse(text)


def test_a_number_twice() -> None:
    """Also where ranges overlap."""
    with pytest.raises(ParameterError, match=r"x 50\.\.60:5,55: a number is given twice"):
        parse_ranges("50..60:5,55", BOUNDS, parameter="x")
    assert parse_range("-5..5:5", (-10, 10)) == range(-5, 6, 5)
