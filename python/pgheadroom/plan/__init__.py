"""
Plans: an advice as statements with their undo, and carrying them out.

    values.py      the plan as a value          marks.py       fingerprints of tables, the database
    measured.py    what was observed            statements.py  statements, locks, estimates
    making.py      advice -> plan               reading.py     files
    steps.py       what a step rests on         rewrites.py    what can rewrite a table, and where
    text.py        for people                   record.py      what was done
    apply.py       one call of `apply`          session.py     the writing session
    checking.py    whether a plan still fits    execution.py   the only part that writes
    guard.py       a second session beside pg_squeeze
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pgheadroom.on_demand import on_demand

if TYPE_CHECKING:
    from pgheadroom.plan.making import check_plannable, make_plan
    from pgheadroom.plan.reading import plan_text, read_plan
    from pgheadroom.plan.statements import check_rewrite
    from pgheadroom.plan.values import Plan

__all__ = ["Plan", "check_plannable", "check_rewrite", "make_plan", "plan_text", "read_plan"]

_HOMES = {
    "check_plannable": "making",
    "make_plan": "making",
    "plan_text": "reading",
    "read_plan": "reading",
    "check_rewrite": "statements",
    "Plan": "values",
}

__getattr__ = on_demand(__name__, _HOMES)
