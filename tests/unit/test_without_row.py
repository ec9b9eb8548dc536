"""Turns in which an operation finds no row: said where they are many, by both players."""

from __future__ import annotations

from typing import Any

from pgheadroom.forms import read
from pgheadroom.outcome import SUMMED, of_sums
from pgheadroom.play.without_row import turns_without_row
from pgheadroom.predict import predict
from pgheadroom.predict.page import predict_page
from pgheadroom.predict.values import Prediction
from pgheadroom.predict.without_row import Turns
from pgheadroom.profile import parse_profile
from pgheadroom.report import views
from pgheadroom.report.page_life import html as life_html
from pgheadroom.types import Interval

Json = dict[str, Any]


def _profile(rows: int, operation: list[Json], **run: Any) -> Json:
    key = {"name": "t_pkey", "columns": ["id"], "unique": True}
    columns = [{"name": "id", "type": "int4"}, {"name": "n", "type": "int4"}]
    return {
        "schema_version": 1,
        "table": [{"name": "t", "rows": rows, "columns": columns, "indexes": [key]}],
        "operation": [{"table": "t"} | made for made in operation],
        "run": {"operations": 1000} | run,
    }


DELETE = {"kind": "delete", "pick": {"distribution": "oldest"}}
UPDATE = {"kind": "update", "sets": ["n"], "pick": {"distribution": "uniform"}}


def test_a_queue_that_runs_empty_is_said() -> None:
    """Its number and its turns, in the file, its findings and on its page; one that does not."""
    empty = predict(parse_profile(_profile(300, [DELETE])))
    (cell,) = empty.cells
    assert cell.predicted.operations_without_row == {"0": 700}
    assert empty.warnings == (
        "operation[0], delete on t by oldest, found no row in 700 of 1,000 turns (70.0 %): the "
        "figures are those of the other turns.",
    )
    data = empty.to_json()
    assert data["cells"][0]["predicted"]["operations_without_row"] == {"0": 700}
    assert views.heading(empty).warnings == empty.warnings
    form = {key: value for key, value in data.items() if key not in ("schema_version", "kind")}
    assert read(Prediction, form).cells == empty.cells
    full = predict(parse_profile(_profile(990, [DELETE])))
    assert full.cells[0].predicted.operations_without_row == {}
    assert full.warnings == ()
    assert not {"warnings"} & set(full.to_json())
    assert "operations_without_row" not in full.to_json()["cells"][0]["predicted"]


def test_more_than_one_in_a_hundred_is_said() -> None:
    """10 of 1,000 are not, 11 are."""
    found = [predict(parse_profile(_profile(rows, [DELETE]))) for rows in (990, 989)]
    assert [len(prediction.warnings) for prediction in found] == [0, 1]


def test_several_clients_have_a_range() -> None:
    """Who deletes first is drawn: from the fewest to the most turns of the runs."""
    data = _profile(400, [UPDATE, DELETE], clients=4, operations=2000)
    (cell,) = predict(parse_profile(data)).cells
    assert cell.predicted.operations_without_row is not None
    found = cell.predicted.operations_without_row["0"]
    assert isinstance(found, Interval)
    assert 0 < found.low <= found.mid <= found.high < 1000 * 1.2


def test_a_range_is_said_as_one() -> None:
    """
    From the least to the most, as the file has it; about how many turns where they are drawn too.

    It was "5,265 of 5,279 turns" where the file had 5,261 to 5,268.
    """
    prediction = predict(parse_profile(_queue()))
    told = prediction.cells[0].predicted.operations_without_row
    assert told is not None
    counted = told["0"]
    assert isinstance(counted, Interval)
    span = f"found no row in {counted.low:,.0f} to {counted.high:,.0f} of "
    assert span in prediction.warnings[0]
    assert Turns(turns=500, without_row=20).written == "20 of 500 turns (4.0 %)"
    drawn = Turns(turns=500.4, without_row=20, are_equal=False)
    assert drawn.written == "20 of about 500 turns (4.0 %)"


def _queue() -> dict[str, Any]:
    """Two scripts, dealt to four clients, of which one finds ever fewer rows."""
    delete = DELETE | {"transaction": "take"}
    update = UPDATE | {"transaction": "look", "table": "u"}
    data = _profile(300, [delete, update], clients=4, operations=4000)
    data["table"].append(data["table"][0] | {"name": "u", "rows": 3000})
    data["table"][1]["indexes"] = [{"name": "u_pkey", "columns": ["id"], "unique": True}]
    return data


def test_a_pages_life_says_it_too() -> None:
    """Before the first picture in text, in the file, and on the page."""
    life = predict_page(parse_profile(_profile(300, [DELETE])), 0).life
    (said,) = life.warnings
    assert "found no row in 700 of 1,000 turns" in said
    assert life.to_json()["warnings"] == [said]
    page = life_html.render(life, command="pgheadroom predict p.toml --page 0", server="18.4")
    assert "found no row in 700 of 1,000 turns" in page
    full = predict_page(parse_profile(_profile(990, [DELETE])), 0).life
    assert "warnings" not in full.to_json()
    shrinks = _profile(900, [DELETE, DELETE, {"kind": "insert"}], operations=900)
    played = parse_profile(shrinks)
    assert predict_page(played, 0).life.warnings == predict(played).warnings != ()


def test_counters_tell_of_operations_that_move_them_alone() -> None:
    """Not of several rows a turn, of two that share a counter, or of one that only reads."""
    counted = {"t": of_sums(dict.fromkeys(SUMMED, 0) | {"n_tup_upd": 90, "n_tup_del": 10})}

    def told(*operations: Json) -> dict[str, tuple[int, int]]:
        profile = parse_profile(_profile(300, list(operations)))
        counts = [100] * len(profile.workload.transactions())
        return turns_without_row(profile, counts, counted)

    select = {"kind": "select", "pick": {"distribution": "uniform"}}
    upsert = UPDATE | {"kind": "upsert"}
    assert told(UPDATE, DELETE, select) == {"0": (100, 10), "1": (100, 90)}
    assert told(UPDATE | {"transaction": "a"}, DELETE | {"transaction": "a"}) == {
        "0": (100, 10),
        "1": (100, 90),
    }
    assert told(UPDATE, UPDATE, DELETE) == {"2": (100, 90)}
    assert told(UPDATE, upsert) == {}
    assert told(UPDATE | {"rows_per_statement": 2}) == {}
