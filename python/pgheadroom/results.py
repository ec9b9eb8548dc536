"""
What the functions of `api` return, each loaded with its part when it is asked for (PEP 562).

The functions are annotated with these, so that `typing.get_type_hints` finds them, and reading a
profile loads none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pgheadroom.on_demand import on_demand

if TYPE_CHECKING:
    from pgheadroom.advise.advice import Advice
    from pgheadroom.doctor.planned import DoctorPlan
    from pgheadroom.doctor.values import Diagnosis
    from pgheadroom.layout.values import Layout
    from pgheadroom.predict.values import Prediction
    from pgheadroom.prove import Proof
    from pgheadroom.wal.values import WalStats

__all__ = ["Advice", "Diagnosis", "DoctorPlan", "Layout", "Prediction", "Proof", "WalStats"]

_HOMES = {
    "Advice": "advise.advice",
    "Diagnosis": "doctor.values",
    "DoctorPlan": "doctor.planned",
    "Layout": "layout.values",
    "Prediction": "predict.values",
    "Proof": "prove",
    "WalStats": "wal.values",
}

__getattr__ = on_demand(__name__, _HOMES, below="pgheadroom")
