"""The answer of a prediction over fillfactors, in its words."""

from __future__ import annotations

from typing import Any

import pytest

import showing
from pgheadroom.predict import PredictedCell, predict
from pgheadroom.profile import parse_profile
from pgheadroom.report.proof import answer as prediction_answer
from pgheadroom.report.proof import heading

Json = dict[str, Any]


def _cell(hot: object, wal: float | None, heap: float) -> PredictedCell:
    figures = {"hot_frac": hot, "wal_bytes_per_update": wal, "heap_pages": heap}
    return showing.cell({"predicted": figures})


def _spread(low: float, mid: float, high: float) -> Json:
    return {"low": low, "mid": mid, "high": high, "level": 0.9}


ACCOUNTS = {
    100: _cell(0.9167, 939.9, 16667),
    95: _cell(1.0, 831.2, 17242),
    90: _cell(1.0, 831.7, 18182),
    50: _cell(1.0, 837.1, 33334),
}


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        (
            ACCOUNTS,
            "Fillfactor 95 is enough: HOT 91.7 -> 100 %, all WAL per update -12 %, heap +3.4 % "
            "against 100; lower only costs space.",
        ),
        (
            {50: ACCOUNTS[50], 100: ACCOUNTS[100]},
            "Fillfactor 50 is enough: HOT 91.7 -> 100 %, all WAL per update -11 %, heap +100 % "
            "against 100.",
        ),
        (
            {100: _cell(0.0, 700, 240), 80: _cell(0.0, 640, 200), 60: _cell(0.0, 641, 190)},
            "No lower fillfactor than 100 gives more HOT updates than its 0 %; 80 has no more HOT, "
            "but all WAL per update -8.6 %, heap -17 % against 100.",
        ),
        (
            {100: _cell(0.99996, 700, 240), 80: _cell(1.0, 700, 240)},
            "No lower fillfactor than 100 gives more HOT updates than its 99.996 %; lower changes "
            "nothing.",
        ),
        (
            {
                100: _cell(_spread(0.90, 0.92, 0.94), 1000, 300),
                95: _cell(_spread(0.97, 0.98, 0.99), 950, 310),
                80: _cell(_spread(0.975, 0.985, 0.995), 950, 340),
            },
            "Fillfactor 95 is enough: HOT 92.0 -> 98.0 %, all WAL per update -5.0 %, heap +3.3 % "
            "against 100, lower ones being no better beyond their intervals; lower only costs "
            "space.",
        ),
        (
            {100: _cell(None, None, 100), 50: _cell(None, None, 200)},
            "There are no updates that room would serve: lower only costs space, at 50 heap +100 % "
            "against 100.",
        ),
    ],
)  # fmt: skip
def test_which_fillfactor_is_enough(cells: dict[int, PredictedCell], said: str) -> None:
    """Of equal ones the highest, with the trade against the highest that was asked for."""
    assert prediction_answer.sentence(list(cells.values()), list(cells)) == said


def test_nothing_is_named_without_a_choice() -> None:
    """One fillfactor; cells that no single number tells apart; nothing that is known."""
    cells = list(ACCOUNTS.values())
    assert prediction_answer.sentence(cells[:1], [100]) is None
    assert prediction_answer.sentence(cells[:2], ["a 100, b 90", "a 90, b 100"]) is None
    assert prediction_answer.sentence([showing.cell({})] * 2, [100, 90]) is None


def test_a_prediction_answers_with_it() -> None:
    """
    Rows of 121 bytes: at 95 three of them have room on each page, which is enough for all.

    The answer named fillfactor 50, whose share is the same and whose heap is twice as large.
    """
    filler = {"name": "filler", "type": "bpchar(84)"}
    columns = [{"name": name, "type": "int4"} for name in ("aid", "bid", "abalance")]
    profile = parse_profile(
        {
            "schema_version": 1,
            "table": [
                {
                    "name": "accounts",
                    "rows": 20_000,
                    "columns": [*columns, filler],
                    "indexes": [{"name": "pkey", "columns": ["aid"], "unique": True}],
                }
            ],
            "operation": [
                {
                    "table": "accounts",
                    "kind": "update",
                    "sets": ["abalance"],
                    "pick": {"distribution": "uniform"},
                }
            ],
            "run": {"operations": 4000},
        }
    )
    found = predict(profile, [50, 70, 95, 100], server="18.4")
    (said, *_) = heading.findings(found)
    assert said.startswith("Fillfactor 95 is enough: HOT 9")
    assert " -> 100 %, " in said
    assert said.endswith(" against 100; lower only costs space.")
