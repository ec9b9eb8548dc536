"""
Plans: an advice as statements with their undo, and carrying them out.

    values.py      the plan as a value          marks.py       fingerprints of tables, the database
    measured.py    what was observed            statements.py  statements, locks, estimates
    making.py      advice -> plan               reading.py     files
    text.py        for people                   form.py        values to JSON and back, checked
    record.py      what was done                apply.py       the only part that writes
    session.py     the writing session
"""

from __future__ import annotations

from pgheadroom.plan.making import check_plannable, make_plan
from pgheadroom.plan.reading import plan_text, read_plan
from pgheadroom.plan.statements import check_rewrite
from pgheadroom.plan.values import Plan

__all__ = ["Plan", "check_plannable", "check_rewrite", "make_plan", "plan_text", "read_plan"]
