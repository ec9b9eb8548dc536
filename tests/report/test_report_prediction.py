"""The answer of a prediction over fillfactors, in its words."""

from __future__ import annotations

import json
from dataclasses import replace
from html import escape
from typing import Any

import pytest

import showing
from pgheadroom.forms import read
from pgheadroom.predict import PredictedCell, Prediction, predict
from pgheadroom.predict.values import answer_by
from pgheadroom.profile import parse_profile
from pgheadroom.report import html, views
from pgheadroom.report.proof import heading
from pgheadroom.types import Version

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
    answer = answer_by([replace(cell, fillfactor=n) for n, cell in cells.items()])
    assert answer is not None
    assert answer.text == said
    assert answer.against == max(cells)
    assert ("There are no updates" in said) == (answer.enough is None)
    assert answer.enough is None or f"illfactor {answer.enough} " in said or "than 100" in said


def test_nothing_is_named_without_a_choice() -> None:
    """One fillfactor; cells that no single number tells apart; nothing that is known."""
    one, other = ACCOUNTS[100], replace(ACCOUNTS[95], fillfactor=95)
    assert answer_by([one, other]) is not None
    assert answer_by([one]) is None
    by_table = ({"a": 100, "b": 90}, {"a": 90, "b": 100})
    parted = (replace(one, fillfactor=by_table[0]), replace(other, fillfactor=by_table[1]))
    assert answer_by(parted) is None
    assert answer_by([showing.cell({}), replace(showing.cell({}), fillfactor=90)]) is None
    altered = [replace(cell, from_fillfactor=100) for cell in (one, other)]
    assert answer_by(altered) is None
    assert answer_by([one, replace(other, variant="without t_a")]) is None


def _prediction() -> Prediction:
    cells = tuple(replace(cell, fillfactor=n) for n, cell in ACCOUNTS.items())
    return Prediction(
        server=Version.parse("18.4"),
        storage="local",
        engine="heap",
        evidence="exact",
        assumed={},
        answer=answer_by(cells),
        cells=cells,
    )


def _again(form: Json) -> Prediction:
    frame = ("schema_version", "kind")
    return read(Prediction, {k: v for k, v in form.items() if k not in frame}, exact=True)


def test_the_answer_is_in_the_file() -> None:
    """It was made when it was shown: a program that read the file had to make it itself."""
    made = _prediction()
    form = json.loads(json.dumps(made.to_json()))
    assert form["answer"]["enough"] == 95
    assert form["answer"]["against"] == 100
    assert form["answer"]["text"].startswith("Fillfactor 95 is enough")
    assert _again(form) == made


def test_a_file_from_before_has_the_same_answer() -> None:
    """Its cells say it; and what is written again is what was read."""
    made = _prediction()
    form = json.loads(json.dumps(made.to_json()))
    del form["answer"]
    before = _again(form)
    assert before.answer is None
    assert before.answered == made.answer
    assert before.to_json() == form
    assert heading.findings(before) == heading.findings(made)


def test_what_is_shown_is_what_is_kept() -> None:
    """Of an answer by another version, in every form; nothing makes it anew. It is foreign text."""
    made = _prediction()
    assert made.answer is not None
    kept = replace(made, answer=replace(made.answer, text="As it was kept \x1b<b>."))
    shown = "As it was kept \\x1b<b>."
    assert heading.findings(kept) == [shown]
    assert "As it was kept" in views.as_markdown(kept)
    pages = (html.render([html.Shown.of(kept)], title="x"), kept._repr_html_())
    for text in (*pages, views.as_markdown(kept)):
        assert "As it was kept" in text
        assert "is enough" not in text
        assert "\x1b" not in text
    for page in pages:
        assert "&lt;b&gt;" in page


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
    assert found.answer is not None
    assert (found.answer.enough, found.answer.text) == (95, said)
    assert f"<p>{escape(said)}</p>" in found._repr_html_()
    assert said.startswith("Fillfactor 95 is enough: HOT 9")
    assert " -> 100 %, " in said
    assert said.endswith(" against 100; lower only costs space.")
