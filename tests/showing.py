"""Results given as their files have them, read and shown; what a test leaves out is filled in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pgheadroom.forms import read, unframed
from pgheadroom.lab.record import SecondsSeries
from pgheadroom.lab.result import ExperimentResult
from pgheadroom.outcome import KEYS
from pgheadroom.predict import PredictedCell, Prediction
from pgheadroom.prove import Proof
from pgheadroom.report import charts as report_charts
from pgheadroom.report import html, views
from pgheadroom.report.table import Table

Form = Mapping[str, Any]
_LEAST: Form = {"name": "something", "title": "Something", "server": "18.4", "complete": True}
_EFFECT = {
    "verdict": "converges", "still_grows": False, "after_s": None, "after_updates_per_row": None,
    "final_hot_frac": None, "rewritten_hot_frac": None, "pages_added_frac": 0.0,
}  # fmt: skip
_GROWTH = {"verdict": "steady", "pages_added": 0.0, "by_rows_frac": 0.0, "heap_pages": 0.0}
_LEAST_LISTS: Form = {"cells": [], "findings": [], "warnings": []}


def of(form: Form | views.Result) -> views.Result:
    """The value that a file holds, or the value itself."""
    if isinstance(form, ExperimentResult | Proof | Prediction):
        return form
    kinds: dict[str, type[Proof | Prediction]] = {"proof": Proof, "prediction": Prediction}
    if (kind := kinds.get(str(form.get("kind")))) is not None:
        own = unframed(form)
        return read(kind, own, exact=True)
    return read(ExperimentResult, {**_LEAST, **_LEAST_LISTS, **form}, exact=True)


def experiment(form: Form | views.Result) -> ExperimentResult:
    """An experiment's."""
    found = of(form)
    assert isinstance(found, ExperimentResult)
    return found


def cell(form: Form) -> PredictedCell:
    """A cell of a prediction of which only some figures are given."""
    filled: dict[str, Any] = {"fillfactor": 100, **form, "predicted": _figures(form)}
    if "effect" in form:
        filled["effect"] = _EFFECT | form["effect"]
    if "growth" in form:
        filled["growth"] = {name: _GROWTH | found for name, found in form["growth"].items()}
    if (later := form.get("rewritten_later")) is not None:
        at = {"evidence": "exact", "at_frac": 0.5, "until_frac": 0.5, "tables": []}
        effect = _EFFECT | later["effect"]
        filled["rewritten_later"] = {**at, **later, "predicted": _figures({}), "effect": effect}
    return read(PredictedCell, filled, exact=True)


def _figures(form: Form) -> Form:
    return {**dict.fromkeys(KEYS), **form.get("predicted", {})}


def answer(form: Form | views.Result) -> str | None:
    """Its answer in one sentence."""
    return views.heading(of(form)).answer


def tables(form: Form | views.Result, *, brief: bool = False) -> list[Table]:
    """Its tables."""
    return views.tables(of(form), brief=brief)


def charts(form: Form | views.Result, series: Sequence[Form] = ()) -> list[report_charts.Chart]:
    """Its charts."""
    return views.charts(of(form), series_of(series))


def page(
    forms: Sequence[tuple[Form | views.Result, Sequence[Form]]],
    *,
    command: str | None = None,
    **given: Any,
) -> str:
    """The page of some, each with its series."""
    shown = [html.Shown.of(of(form), series_of(series), command=command) for form, series in forms]
    return html.render(shown, **given)


def series_of(forms: Sequence[Form]) -> list[SecondsSeries]:
    """The series that files hold."""
    return [read(SecondsSeries, {"arm": "measured", **form}, exact=True) for form in forms]
