"""
Advising: an observed profile becomes, per table, causes, a curve, a verdict.

    advice.py     the advice as a value, and its file's form; table_advice.py: of one table
    cold_updates.py why its updates were HOT or not, and foreseen.py, what the twin has of it
    policy.py     goals, prices, what a setting costs
    causes.py     a table's updates by why they were HOT or not
    updates.py    the interval's updates: counters and statements
    blame.py      which index ended HOT
    room.py       which room an update did not find, and why
    row.py        a row's length, and what an update of it writes
    scenario.py   one table as a run of the twin; duration.py: for how long
    knobs.py      what an observation leaves open and a calibration may set
    runs.py       runs side by side, and their figures
    shares.py     the interval's updates as shares, and what chance does to them
    unplayed.py   WAL of indexes that the twin does not play, as measured
    trial.py      a run of the twin beside them, as old as the table is
    surroundings.py checkpoints and horizon, as they are around it
    explaining.py what an observation leaves open, and what of it explains a difference
    inputs.py     what was set so that the twin repeats the observation
    calibrate.py  does the twin repeat what was observed, and which named input explains it
    curve.py      the steady state over fillfactors, and the way there
    worth.py      what a change has to save: beyond chance, for its room, for a rewrite
    gain.py       what another fillfactor saves, with its error
    counters.py   what is decided before anything is played
    by_rule.py    what an index that ends HOT, or a held horizon, decides
    decide.py     CHANGE, KEEP or ABSTAIN by the curve; reasons.py: why, in words
    playing.py    one table's runs; table.py: all that is found out about it
    remarks.py    findings beside the fillfactor; remark_index.py an index against its reads
    row_locks.py  what other tables lock in it
    build.py      all tables
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pgheadroom.on_demand import on_demand

if TYPE_CHECKING:
    from pgheadroom.advise.advice import Advice
    from pgheadroom.advise.build import Options, advise
    from pgheadroom.advise.policy import Policy, make_policy
    from pgheadroom.advise.table_advice import TableAdvice

__all__ = ["Advice", "Options", "Policy", "TableAdvice", "advise", "make_policy"]

_HOMES = {
    "Advice": "advice",
    "TableAdvice": "table_advice",
    "Options": "build",
    "advise": "build",
    "Policy": "policy",
    "make_policy": "policy",
}

__getattr__ = on_demand(__name__, _HOMES)
