"""Inputs that calibration set: values with kind and unit, and the names that files have of them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from hypothesis import given

from pgheadroom.advise.foreseen import Calibration
from pgheadroom.advise.inputs import FittedInput, inputs_in_file, inputs_of
from pgheadroom.forms import FieldError, read, write

sys.path.insert(0, str(Path(__file__).parents[1] / "property"))
from values_of import INPUTS_IN_FILE

SET = (
    (
        FittedInput(quantity="changed_frac", of="orders.state", value=0.13),
        {"changed_frac of orders.state": 0.13},
        "frac",
    ),
    (
        FittedInput(
            quantity="changed_frac",
            of="a column of t's indexes, played as v",
            value=0.5,
            because="no known statement assigns (a trigger?)",
        ),
        {
            "changed_frac of a column of t's indexes, played as v, which no known statement "
            "assigns (a trigger?)": 0.5
        },
        "frac",
    ),
    (
        FittedInput(quantity="grows_bytes", of="t.note", value=16),
        {"grows_bytes of t.note": "1 to 16"},
        "bytes",
    ),
    (FittedInput(quantity="held_s", value=30.0), {"seconds that a horizon is held": 30.0}, "s"),
    (
        FittedInput(quantity="lived", value=2.31),
        {"updates a row that the table has lived through": 2.31},
        "updates a row",
    ),
    (
        FittedInput(quantity="scattered", of="t", words="anywhere in the table"),
        {"rows of t that one statement updates": "anywhere in the table"},
        None,
    ),
    (
        FittedInput(quantity="pick", of="t", words="the last inserted"),
        {"rows of t that are updated": "the last inserted"},
        None,
    ),
)


@pytest.mark.parametrize(("fitted", "file", "unit"), SET)
def test_each_kind_is_read_again(
    fitted: FittedInput, file: dict[str, float | str], unit: str | None
) -> None:
    """
    What calibration set comes back from the advice's file as it was, words too.

    Files said `1 to 16` and `the last inserted` where their form and schema had numbers only, so
    that an advice with such an input could not be read again.
    """
    assert inputs_in_file([fitted]) == file
    assert fitted.unit == unit
    made = Calibration(
        observed_hot_frac=0.5,
        predicted_hot_frac=0.5,
        observed_newpage_frac=None,
        predicted_newpage_frac=None,
        agrees=True,
        fitted=(fitted,),
        note="",
    )
    stands = json.loads(json.dumps(write(made)))
    assert stands["fitted"] == file
    assert read(Calibration, stands) == made
    for unlike in (None, ["1"], True):
        with pytest.raises(FieldError, match="fitted"):
            read(Calibration, {**stands, "fitted": dict.fromkeys(file, unlike)})


@given(INPUTS_IN_FILE)
def test_a_file_stays_as_it_is(file: dict[str, float | str]) -> None:
    """Names of another version, and tables whose names look like ours, are written as they were."""
    assert inputs_in_file(inputs_of(file)) == file
