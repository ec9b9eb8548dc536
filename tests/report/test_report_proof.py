"""Proofs and predictions as tables, CSV, charts and a page."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import synthetic_proof
import vl_convert
from browser import Browser, opened, shows, with_browser
from rich.cells import cell_len
from rich.console import Console
from test_report_html import Page

import showing
from pgheadroom.accuracy import ProofAnswer, Tally, told
from pgheadroom.outcome import KEYS
from pgheadroom.predict import Prediction
from pgheadroom.prove import Proof, proof_answer
from pgheadroom.report import charts, text
from pgheadroom.report.proof import heading as proof_heading
from pgheadroom.report.proof import tables as proof_tables
from pgheadroom.report.proof import words as proof_words

Json = dict[str, Any]
HOSTILE = "t\x1b[31m <script>alert(1)</script> |`"

SHAPES: dict[str, Json] = {
    "exact": synthetic_proof.proof(),
    "off": synthetic_proof.proof(shift=5),
    "intervals": synthetic_proof.proof(shift=40, intervals=True),
    "one cell": synthetic_proof.proof(fillfactors=(90,)),
    "tables": synthetic_proof.proof(names=("a", "b", "still"), still="still"),
    "prediction": synthetic_proof.prediction(intervals=True),
    "hostile": synthetic_proof.proof(names=(HOSTILE, "b"), shift=3),
}


def _read(result: Json) -> Proof | Prediction:
    found = showing.of(result)
    assert isinstance(found, Proof | Prediction)
    return found


def _text(result: Json, *, width: int = 100, brief: bool = True, colour: bool = False) -> str:
    stream = io.StringIO()
    console = Console(
        file=stream, width=width, highlight=False, force_terminal=colour, no_color=not colour
    )
    text.print_tables(showing.tables(result, brief=brief), console)
    return stream.getvalue()


def test_agreement_is_said_first() -> None:
    """How many figures are equal, and that none differs; a single table is not counted twice."""
    (said,) = proof_heading.findings(_read(SHAPES["exact"]))
    assert said == f"All {5 * len(KEYS)} figures in 5 cells are equal."


def test_what_differs_is_named_with_both_values() -> None:
    """The worst first, one sentence a figure however many cells it differs in."""
    said = proof_heading.findings(_read(SHAPES["off"]))
    assert said[0].startswith("35 of 80")
    assert "n_tup_newpage_upd differs in 5 cells" in said[1]
    assert "predicted 5, measured 0" in said[1]
    assert any("heap_pages differs in 5 cells" in line for line in said)
    assert said[-1] == "5 further figures differ."


def test_intervals_say_how_many_hold() -> None:
    """Their coverage beside the one that they state, and what is beyond its bound."""
    said = proof_heading.findings(_read(SHAPES["intervals"]))
    assert re.search(r"\d+ of \d+ intervals hold what was measured \(\d+ %; 90 %", said[1])
    assert "heap_pages is beyond its bound in 5 cells" in said[2]


@pytest.mark.parametrize("name", ["exact", "off", "intervals", "tables"])
def test_a_proof_keeps_what_it_says(name: str) -> None:
    """The counts and the worst misses are in the file; one from before says the same without."""
    before = _read(SHAPES[name])
    assert isinstance(before, Proof)
    assert before.answer is None
    made = replace(before, answer=proof_answer(before.cells))
    form = json.loads(json.dumps(made.to_json()))
    assert _read(form) == made
    assert "answer" not in before.to_json()
    assert proof_heading.findings(before) == proof_heading.findings(made)
    missed = {(figure.table, figure.key) for cell in made.cells for figure in told(cell.beyond)}
    assert {(miss["table"], miss["key"]) for miss in form["answer"]["missed"]} == missed
    assert (name in ("off", "intervals")) == bool(missed)


def test_further_figures_are_counted_by_what_they_are() -> None:
    """
    One in the singular, and only exact ones differ.

    Of one figure beyond its bound it was said that "1 further figures differ".
    """
    missed = [miss for name in ("off", "intervals") for miss in _answer(name).missed]
    differs = next(miss for miss in missed if miss.verdict == "differs")
    beyond = next(miss for miss in missed if miss.verdict == "beyond")
    for further, said in [
        ([differs], "1 further figure differs."),
        ([beyond], "1 further figure is beyond its bound."),
        ([beyond] * 3, "3 further figures are beyond their bounds."),
        ([beyond, differs, differs], "2 further figures differ, 1 is beyond its bound."),
    ]:
        made = _read(SHAPES["off"])
        assert isinstance(made, Proof)
        tally = Tally(compared=9, equal=0, intervals=0, held=0)
        answer = ProofAnswer(tally=tally, missed=(*[differs] * 4, *further))
        assert proof_heading.findings(replace(made, answer=answer))[-1] == said


def _answer(name: str) -> ProofAnswer:
    made = _read(SHAPES[name])
    assert isinstance(made, Proof)
    return made.answered


def test_interval_and_bound_are_two_columns() -> None:
    """
    Whether the interval holds, and whether the bound does where there is one; a legend says so.

    One column said "within" of the bound in a row and of the interval in the next, "beyond" where
    the interval holds, and nothing where it does not and there is no bound.
    """
    form = synthetic_proof.proof(fillfactors=(90,), shift=40, intervals=True)
    shown = _text(form, width=130)
    heading = next(line for line in shown.splitlines() if line.lstrip().startswith("figure"))
    assert [part.strip() for part in heading.split("|")[-3:]] == ["error", "interval", "bound"]
    ends = {
        parts[0]: tuple(parts[-2:])
        for line in shown.splitlines()
        if (parts := [part.strip() for part in line.split("|")])[0] in KEYS
    }
    assert ends["n_tup_upd"] == ("-", "equal")
    assert ends["heap_pages"] == ("holds", "beyond")
    assert ends["index_pages"] == ("holds", "equal")
    assert ends["n_tup_newpage_upd"] == ("misses", "none")
    assert "Interval: whether it holds what was measured. Bound:" in " ".join(shown.split())
    assert "verdict" not in _text(SHAPES["one cell"])
    (cell,) = form["cells"]
    for side in ("measured", "error"):
        cell[side]["n_tup_newpage_upd"] = None
    line = next(x for x in _text(form, width=130).splitlines() if "newpage_upd" in x)
    assert [part.strip() for part in line.split("|")[-3:]] == ["-", "-", "-"]


@pytest.mark.parametrize("width", range(64, 132, 4))
def test_a_figures_name_is_never_broken(width: int) -> None:
    """At 68 characters it was `wal_nonfpi_bytes_` and `per_update`: the other columns give way."""
    for make in (synthetic_proof.proof, synthetic_proof.prediction):
        shown = _text(make(fillfactors=(90,), intervals=True), width=width)
        assert [key for key in KEYS if f" {key} " not in shown] == []
        assert max(map(cell_len, shown.splitlines())) <= width


def test_a_proof_shows_what_it_keeps() -> None:
    """Counts by another version are shown as they are kept; nothing counts anew."""
    made = _read(SHAPES["off"])
    assert isinstance(made, Proof)
    tally = Tally(compared=77, equal=76, intervals=3, held=2)
    kept = replace(made, answer=ProofAnswer(tally=tally, missed=made.answered.missed[:1]))
    first, second, miss = proof_heading.findings(kept)
    assert first == "76 of 77 figures in 5 cells are equal."
    assert second.startswith("2 of 3 intervals hold what was measured (67 %;")
    assert miss.startswith("n_tup_newpage_upd differs in 5 cells")


def test_equal_figures_take_one_column() -> None:
    """A curve on which both agree is not printed twice."""
    shown = _text(SHAPES["exact"])
    assert "both" in shown
    assert "predicted" not in shown
    assert re.search(r"^ +100 \| +83.40 \| +12.40 \| +1652", shown, re.MULTILINE)


def test_a_single_cell_shows_every_figure() -> None:
    """Key by key, in the order of the format, with unit and error; a 0 needs no verdict."""
    shown = _text(SHAPES["one cell"])
    keys = [line.split()[0] for line in shown.splitlines() if line.split()[:1] and " | " in line]
    assert [key for key in keys if key in KEYS] == list(KEYS)
    assert re.search(r"hot_frac +\| % +\| +100.00 \| +100.00 \| +0$", shown, re.MULTILINE)


def test_a_fixed_tables_fillfactor_is_a_note() -> None:
    """Cells that name all tables are told apart by what was varied."""
    shown = _text(SHAPES["tables"])
    assert "The same in every cell: fillfactor of still 100." in shown
    assert re.search(r"^ +70 \|", shown, re.MULTILINE)


def test_colour_repeats_the_verdict() -> None:
    """Red and green on a terminal only; without, the words say it."""
    assert "\x1b[31mdiffers" in _text(SHAPES["off"], colour=True)
    assert "\x1b[" not in _text(SHAPES["off"])


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("width", [80, 120])
def test_fits_the_terminal(name: str, width: int) -> None:
    """No line is wider, and no foreign escape reaches it."""
    shown = _text(SHAPES[name], width=width, brief=False)
    assert max(map(len, shown.splitlines())) <= width
    assert "\x1b" not in shown


def test_csv_has_every_figure_of_every_table() -> None:
    """One row each, both sides, the interval's ends, the error; nothing is lost."""
    rows = list(csv.DictReader(io.StringIO(proof_tables.as_csv(_read(SHAPES["intervals"])))))
    assert len(rows) == 5 * 2 * len(KEYS)
    row = next(
        r for r in rows if (r["fillfactor"], r["table"], r["figure"]) == ("90", "", "hot_frac")
    )
    assert float(row["predicted_low"]) < float(row["predicted"]) < float(row["predicted_high"])
    assert float(row["error"]) == pytest.approx(-0.004)
    plain = list(csv.DictReader(io.StringIO(proof_tables.as_csv(_read(SHAPES["prediction"])))))
    assert "measured" not in plain[0]
    by_table = list(csv.DictReader(io.StringIO(proof_tables.as_csv(_read(SHAPES["tables"])))))
    assert by_table[-1]["fillfactor"] == '{"a": 70, "b": 70, "still": 100}'


@pytest.mark.parametrize("name", SHAPES)
def test_charts_draw(name: str) -> None:
    """Every chart compiles; a single cell has none, for a curve of one point says nothing."""
    drawn = showing.charts(SHAPES[name], [])
    assert bool(drawn) == (name != "one cell")
    for chart in drawn:
        svg = vl_convert.vegalite_to_svg(charts.resolved(chart.spec))
        assert "<svg" in svg
        assert "<script" not in svg
    if drawn:
        assert [chart.section for chart in drawn] == ["key"] + ["results"] * (len(drawn) - 1)


def test_the_chart_of_wal_has_the_words_of_the_table() -> None:
    """All WAL over the updates, with inserts and images: not what `advise` calls WAL per update."""
    chart = next(c for c in showing.charts(SHAPES["exact"], []) if "WAL" in c.title)
    words = proof_words.TITLES["wal_bytes_per_update"]
    assert chart.title.lower() == words.lower()
    titles = [part["title"]["text"] for part in chart.spec["vconcat"]]
    assert titles[0].startswith(words)
    assert titles[1].startswith(proof_words.TITLES["wal_nonfpi_bytes_per_update"])


def test_measured_are_points_and_predicted_is_the_line() -> None:
    """What was measured is never joined: between the points nothing was."""
    chart = showing.charts(SHAPES["exact"], [])[0]
    layers = chart.spec["vconcat"][0]["layer"]
    datasets = chart.spec["datasets"]
    sides = {
        layer["mark"]["type"]: {row["side"] for row in datasets[layer["data"]["name"]]}
        for layer in layers
    }
    assert sides["line"] == {"predicted"}
    assert {row["side"] for row in datasets[layers[-1]["data"]["name"]]} == {"measured"}
    assert "area" not in sides
    banded = showing.charts(SHAPES["intervals"], [])[0].spec["vconcat"][0]["layer"]
    assert banded[0]["mark"]["type"] == "area"


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return {
        name: showing.page([(result, ())], command="pgheadroom prove x.toml", title=name)
        for name, result in SHAPES.items()
    }


@pytest.mark.parametrize("name", SHAPES)
def test_pages_escape_and_tell(pages: dict[str, str], name: str) -> None:
    """Title, findings, command and every figure's table; a table's name is only text."""
    page = Page(pages[name])
    assert "pgheadroom prove x.toml" in page.words
    assert "Every figure at fillfactor" in page.words
    assert not any(tag == "script" and "alert" in str(attrs) for tag, attrs in page.tags)
    assert "<script>alert" not in pages[name]


def test_the_page_of_a_curve_is_short() -> None:
    """51 fillfactors: charts, one table, and the figures of each folded; under 300 kB."""
    curve = synthetic_proof.prediction(fillfactors=tuple(range(50, 101)), intervals=True)
    page = showing.page([(curve, ())], title="a long curve")
    assert len(page.encode()) < 300_000
    assert page.count('<details class="table">') >= 51
    assert "<summary" in page


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with opened(tmp_path_factory.mktemp("chromium")) as found:
        yield found


@with_browser
@pytest.mark.parametrize("name", ["exact", "intervals", "tables", "hostile", "prediction"])
def test_browser_shows_it(
    pages: dict[str, str], name: str, browser: Browser, tmp_path: Path
) -> None:
    """Charts are in sight and readable in wide and narrow; nothing is said, nothing asked for."""
    shows(browser, pages[name], tmp_path)
    assert browser.run("document.documentElement.scrollHeight") < 12_000
