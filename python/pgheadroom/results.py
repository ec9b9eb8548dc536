"""
What the functions of `api` return, each loaded with its part when it is asked for (PEP 562).

The functions are annotated with these, so that `typing.get_type_hints` finds them, and reading a
profile loads none.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pgheadroom.advise.advice import Advice
    from pgheadroom.layout.values import Layout
    from pgheadroom.predict.run import Prediction
    from pgheadroom.prove import Proof
    from pgheadroom.wal.values import WalStats

__all__ = ["Advice", "Layout", "Prediction", "Proof", "WalStats"]

_HOMES = {
    "Advice": "advise.advice",
    "Layout": "layout.values",
    "Prediction": "predict.run",
    "Proof": "prove",
    "WalStats": "wal.values",
}


def __getattr__(name: str) -> object:
    """A result's class is loaded with its module."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"pgheadroom.{_HOMES[name]}"), name)
