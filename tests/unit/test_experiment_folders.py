"""An experiment is one folder: nothing outside knows it, and what it shows is data."""

from __future__ import annotations

import ast
import functools
import json
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from syntax import tree_of

import showing
from pgheadroom.errors import InputError
from pgheadroom.forms import write
from pgheadroom.lab import experiments
from pgheadroom.lab.design import Request
from pgheadroom.lab.experiment import Experiment
from pgheadroom.lab.presentation import Presentation
from pgheadroom.lab.presented import presented
from pgheadroom.lab.record import TrialSample
from pgheadroom.report import text
from pgheadroom.types import PgVersion

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "python" / "pgheadroom"
KEY = "presentation"
FOLDER = PACKAGE / "lab" / "experiments"
FOLDERS = sorted(path.parent for path in FOLDER.glob("*/experiment.py"))
RECORDS = sorted((ROOT / "experiments" / "record").glob("*/result.json"))
EXAMPLE = ROOT / "examples" / "experiment" / "null_share"


@functools.cache
def _imported(path: Path) -> set[str]:
    """Modules that a file imports, `from a import b` as `a.b`."""
    found: set[str] = set()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_nothing_outside_knows_an_experiment(folder: Path) -> None:
    """No module of the package but its own imports from an experiment's folder."""
    module = f"pgheadroom.lab.experiments.{folder.name}"
    outside = [path for path in PACKAGE.rglob("*.py") if folder not in path.parents]
    strangers = {
        str(path.relative_to(PACKAGE))
        for path in outside
        if any(f"{name}.".startswith(f"{module}.") for name in _imported(path))
    }
    assert len(strangers) == 0, f"{strangers} import from the folder of {folder.name}"
    assert len(outside) > 200, "the files that are looked at"


@pytest.mark.parametrize("experiment", experiments.ALL, ids=lambda each: each.name)
def test_the_report_names_no_experiment(experiment: Experiment) -> None:
    """What draws an experiment has no word of it, nor has what runs it."""
    # A word that is a factor of many, too, is looked for where experiments are drawn only.
    places = ["report/experiment", "report/views.py", "report/html.py", "report/site.py"]
    if "-" in experiment.name:
        places = ["report", "cli"]
    files = [
        path
        for place in places
        for path in ([PACKAGE / place] if place.endswith(".py") else (PACKAGE / place).rglob("*"))
        if path.suffix in (".py", ".j2")
    ]
    word = re.compile(rf"(?<![\w-]){re.escape(experiment.name)}(?![\w-])")
    naming = [path.name for path in files if word.search(path.read_text(encoding="utf-8"))]
    # The command line's own words: `--set custom=...` would be one.
    assert len(naming) == 0, f"{naming} name {experiment.name}"
    assert files


def test_every_folder_is_found() -> None:
    """Found and not listed: a folder's experiment has the folder's name."""
    assert sorted(each.name.replace("-", "_") for each in experiments.ALL) == [
        folder.name for folder in FOLDERS
    ]


@pytest.mark.parametrize("experiment", experiments.ALL, ids=lambda each: each.name)
def test_declared_names_exist(experiment: Experiment) -> None:
    """A measure that a table or a figure names with a slip would be left out without a word."""
    known = {measure.name for measure in experiment.measures}
    for form in (*experiment.tables, *experiment.figures):
        # Some experiments of a name are of one server's counters only, so measures may be absent
        # from a result, but not from what the experiment can measure.
        assert set(getattr(form, "measures", None) or ()) <= known
        across = getattr(form, "across", None)
        assert across is None or across in {factor.name for factor in experiment.factors} | known


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.parent.name)
def test_a_kept_presentation_shows_the_same(path: Path) -> None:
    """A result that keeps its presentation is shown as its experiment has it, known or not."""
    result = json.loads(path.read_text(encoding="utf-8"))
    own = presented(showing.experiment(result))
    kept = json.loads(json.dumps(result | {KEY: own.to_json()}))
    assert presented(showing.experiment(kept)) == own
    elsewhere = kept | {"name": "of-somebody-else"}
    assert showing.answer(elsewhere) == showing.answer(result)
    assert text.as_markdown(showing.tables(elsewhere)) == text.as_markdown(showing.tables(result))


def test_a_damaged_presentation_says_where() -> None:
    """A result may come from anywhere: what is wrong, and where, is said."""
    form = Presentation().to_json() | {"tables": [{"kind": "cells", "title": "T", "measures": 3}]}
    with pytest.raises(
        InputError, match=r"presentation\.tables\[0\]\.measures: found 3, expected a list"
    ):
        presented(showing.experiment({KEY: form}))
    form = Presentation().to_json() | {"figures": [{"kind": "pie"}]}
    with pytest.raises(InputError, match=r"figures\[0\]\.kind: found 'pie', expected one of over"):
        presented(showing.experiment({KEY: form}))
    form = Presentation().to_json() | {"figures": [{"kind": "course", "titel": "T"}]}
    with pytest.raises(InputError, match=r"figures\[0\]\.titel: unknown.* did you mean title"):
        presented(showing.experiment({KEY: form}))


def test_a_foreign_presentation_acts_on_nothing() -> None:
    """Its rows fit their columns, and its texts act on no terminal and end no expression."""
    columns = [{"name": "a", "title": "A"}, {"name": "b", "title": "B"}]
    table = {"kind": "given", "title": "T", "columns": columns, "rows": [[1]]}
    form = Presentation().to_json() | {"tables": [table]}
    with pytest.raises(InputError, match="a row has not the 2 values"):
        presented(showing.experiment({KEY: form}))
    result = json.loads(RECORDS[0].read_text(encoding="utf-8"))
    hostile = '\x1b[2J\\" + alert(1) + "'
    figure = {"kind": "levels", "title": hostile, "across": hostile, "measures": ["tps"]}
    curves = {"kind": "curves", "title": "c", "caption": "c", "across": hostile, "panels": [
        {"title": hostile, "curves": [{"name": hostile, "points": [[1, 2.0]]}]}
    ]}  # fmt: skip
    forms = {"answer": hostile, "figures": [figure, curves], "tables": [table | {"rows": []}]}
    shown = result | {KEY: Presentation().to_json() | forms}
    assert "\x1b" not in (showing.answer(shown) or "")
    charts = showing.charts(shown, [])
    assert charts
    for chart in charts:
        assert "\\u001b" not in json.dumps(chart.spec)
        # Titles are pasted into expressions; the names of groups are data.
        titles = list(_titles(chart.spec))
        assert any("alert" in title for title in titles)
        assert [title for title in titles if "\\" in title or '"' in title] == []


def _titles(part: Any) -> Iterator[str]:
    """Every title of a chart's description: of panels, axes, legends."""
    if isinstance(part, dict):
        for name, item in part.items():
            if name == "title":
                yield str(item.get("text", "") if isinstance(item, dict) else item)
            if name != "datasets":
                yield from _titles(item)
    elif isinstance(part, list):
        for item in part:
            yield from _titles(item)


@pytest.fixture
def newcomer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Experiment]:
    """The example of CONTRIBUTING.md, put among the experiments as a newcomer does."""
    shutil.copytree(EXAMPLE, tmp_path / EXAMPLE.name)
    monkeypatch.setattr(experiments, "__path__", [*experiments.__path__, str(tmp_path)])
    found = experiments.found(experiments.__path__)
    monkeypatch.setattr(experiments, "ALL", found)
    yield next(each for each in found if each.name == "null-share")
    for name in [name for name in sys.modules if name.startswith(f"{experiments.__name__}.null_")]:
        del sys.modules[name]


def test_a_new_experiment_is_one_folder(newcomer: Experiment) -> None:
    """Put there, it is known, planned, summarised, answered and shown; nothing else was touched."""
    assert experiments.get("null-share") is newcomer
    assert len(experiments.found()) == len(FOLDERS), "the package itself is as it was"
    levels: dict[str, tuple[Any, ...]] = {"nulls": (0, 8)}
    request = Request(
        experiment=newcomer.name, server="18", scale=1, seed=1, repetitions=5, levels=levels
    )
    samples = [
        TrialSample(
            trial=trial.id,
            cell=trial.cell,
            repetition=trial.repetition,
            arm=trial.arm,
            started_at="2026-11-01T00:00:00+00:00",
            duration_s=1.0,
            measures={
                "heap_pages": 1000.0 - 50 * int(trial.cell["nulls"]),
                "scan_ms": 10.0 + trial.repetition - int(trial.cell["nulls"]),
            },
        )
        for trial in newcomer.trials(request)
    ]
    summary = newcomer.summarise(request, PgVersion.parse("18.4"), samples)
    result = {
        "kind": "experiment",
        "name": newcomer.name,
        "factors": [{"name": "nulls", "levels": [0, 8]}],
        "measures": write(newcomer.measures),
        "cells": summary.cells,
        "comparisons": write(summary.comparisons),
        "controls": write(summary.controls),
    }
    assert "Heap size at nulls 8 against nulls 0" in (showing.answer(result) or "")
    shown = text.as_markdown(showing.tables(result))
    assert "### Size and time" in shown
    assert [chart.section for chart in showing.charts(result, [])] == ["key"]
