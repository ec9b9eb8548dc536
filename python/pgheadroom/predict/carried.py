"""
Runs of the twin out of other processes: their values, under the names that the core has.

What the core gives cannot leave its process, and all that is read of it are plain values.
"""

from __future__ import annotations

from types import GetSetDescriptorType, SimpleNamespace
from typing import Any, cast

from pgheadroom import _core


def fit_to_travel(run: _core.Simulated) -> _core.Simulated:
    """The same as something that pickle takes."""
    values = _values(run)
    values["tables"] = [SimpleNamespace(**_values(table)) for table in run.tables]
    return cast(_core.Simulated, SimpleNamespace(**values))


def _values(found: object) -> dict[str, Any]:
    return {
        name: getattr(found, name)
        for name, kind in vars(type(found)).items()
        if isinstance(kind, GetSetDescriptorType)
    }
