"""
Undo restores what apply changed: whatever tables a plan names, in whatever order, however far.

The catalogue is modelled: what `ALTER TABLE ... SET` and `RESET (fillfactor)` do to the options of
the table that the text names. Real servers do it in tests/postgres/test_plan_apply.py.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from lengths import examples

sys.path.insert(0, str(Path(__file__).parents[1] / "unit"))

from test_plan import MARK, TARGET, forecast, plan

from pgheadroom.plan.reading import plan_text, read_plan
from pgheadroom.plan.steps import make_step
from pgheadroom.plan.values import Plan, Tool

Catalog = dict[str, dict[str, str]]
"""Options by the table's name as statements write it."""

FILLFACTORS = st.sampled_from([10, 100]) | st.integers(10, 100)
OTHERS = st.dictionaries(
    st.sampled_from(["autovacuum_enabled", "toast_tuple_target", "user_catalog_table"]),
    st.sampled_from(["on", "off", "4080"]),
    max_size=2,
)
NAMES = st.text(
    st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=12
)
_SET = re.compile(
    r"ALTER TABLE (.*) (?:SET \(fillfactor = (\d+)\)|RESET \(fillfactor\))", re.DOTALL
)


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Settings of one to four tables, rewrites among them, tables that had one set or had none."""
    names = draw(st.lists(st.tuples(NAMES, NAMES), min_size=1, max_size=4, unique=True))
    wanted: list[tuple[Tool, int]] = []
    marks = []
    for place, (schema, name) in enumerate(names):
        options = draw(OTHERS)
        before = draw(st.none() | FILLFACTORS)
        if before is not None:
            options = {**options, "fillfactor": str(before)}
        marks.append(replace(MARK, oid=20000 + place, schema=schema, name=name, reloptions=options))
        wanted.append(("ALTER TABLE", place))
        if draw(st.booleans()):
            wanted.append((draw(st.sampled_from(["VACUUM FULL", "pg_repack"])), place))
    steps = []
    for number, (tool, place) in enumerate(draw(st.permutations(wanted)), 1):
        known = replace(forecast(marks[place]), fillfactor=draw(FILLFACTORS))
        steps.append(make_step(number, tool, known, 0 if tool == "ALTER TABLE" else 8192, TARGET))
    return replace(plan(), steps=tuple(steps), offers=(), kept=())


def _run(catalog: Catalog, statement: str) -> None:
    """What the server's catalogue has after a statement of a plan."""
    found = _SET.fullmatch(statement)
    if found is None:
        assert statement.startswith("VACUUM (FULL, ANALYZE) "), "changes no setting"
        return
    options = catalog[found[1]]
    if found[2] is None:
        options.pop("fillfactor", None)
    else:
        options["fillfactor"] = found[2]


def _catalog(made: Plan) -> Catalog:
    def options(found: Mapping[str, str]) -> dict[str, str]:
        return dict(found)

    return {step.table.qualified: options(step.table.reloptions) for step in made.steps}


def _apply_and_undo(made: Plan, done: int) -> tuple[Catalog, Catalog]:
    """The catalogue after so many steps, and after these were taken back, the last one first."""
    catalog = _catalog(made)
    for step in made.steps[:done]:
        if step.sql is not None:
            _run(catalog, step.sql)
    applied = {name: dict(options) for name, options in catalog.items()}
    for step in reversed(made.steps[:done]):
        if step.undo is not None:
            _run(catalog, step.undo)
    return applied, catalog


@settings(derandomize=True, deadline=None, max_examples=examples(150))
@given(made=plans(), share=st.floats(0, 1))
def test_undo_restores_what_apply_changed(made: Plan, share: float) -> None:
    """From anywhere in the plan, read back from its file; no other option is touched."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "plan.json"
        path.write_text(plan_text(made), encoding="utf-8")
        read = read_plan(path)
    done = round(share * len(read.steps))
    before = _catalog(made)
    applied, undone = _apply_and_undo(read, done)
    assert undone == before
    for step in read.steps[:done]:
        if step.kind == "set_fillfactor":
            assert applied[step.table.qualified]["fillfactor"] == str(step.fillfactor)
    for name, options in applied.items():
        others = {key: value for key, value in options.items() if key != "fillfactor"}
        assert others.items() <= before[name].items()
        assert len(others) == len(before[name]) - ("fillfactor" in before[name])
