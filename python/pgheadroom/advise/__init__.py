"""
Advising: an observed profile becomes, per table, causes, a curve, a verdict.

    advice.py     the advice as a value, and its file's form
    policy.py     goals, prices, what a setting costs
    causes.py     a table's updates by why they were HOT or not
    updates.py    the interval's updates: counters and statements
    blame.py      which index ended HOT
    room.py       which room an update did not find, and why
    row.py        a row's length, and what an update of it writes
    scenario.py   one table as a run of the twin
    runs.py       runs side by side, and their figures
    calibrate.py  does the twin repeat what was observed, and which named input explains it
    curve.py      the steady state over fillfactors, and the way there
    decide.py     CHANGE, KEEP or ABSTAIN, with the reason
    remarks.py    findings beside the fillfactor; remark_index.py an index against its reads
    build.py      all tables
"""

from __future__ import annotations

from pgheadroom.advise.advice import Advice, TableAdvice
from pgheadroom.advise.build import BUDGET_S, Options, advise
from pgheadroom.advise.policy import Policy, make_policy

__all__ = ["BUDGET_S", "Advice", "Options", "Policy", "TableAdvice", "advise", "make_policy"]
