"""
pgheadroom: how much room should be left on each PostgreSQL page, and what will it change?

A laboratory that measures on real servers, a page-level twin that predicts, an adviser, and the
closed loop of apply and verify. `docs/ARCHITECTURE.md` shows how it fits together.

For programs, `import pgheadroom as ph`: `ph.read_profile`, `ph.observe`, `ph.advise`,
`ph.doctor`, `ph.doctor_plan`, `ph.evaluate`, `ph.predict`, `ph.prove`, `ph.layout`, `ph.read_wal`
(docs/python.md). They are loaded when they are first asked for.
"""

from __future__ import annotations

import sys
from types import ModuleType

TYPE_CHECKING = False  # `typing` takes as long as all before it, and Ctrl-C is not handled yet
if TYPE_CHECKING:
    from pgheadroom.api import (
        advise,
        doctor,
        doctor_plan,
        evaluate,
        layout,
        observe,
        predict,
        prove,
        read_profile,
        read_wal,
    )

__version__: str

__all__ = [
    "__version__",
    "advise",
    "doctor",
    "doctor_plan",
    "evaluate",
    "layout",
    "observe",
    "predict",
    "prove",
    "read_profile",
    "read_wal",
]

_FUNCTIONS = frozenset(__all__) - {"__version__"}


class _Package(ModuleType):
    """
    This package: what programs call goes before the parts of the same names.

    Importing `pgheadroom.predict` binds the part to the package's name `predict`; that name is the
    function's, whichever comes first.
    """

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _FUNCTIONS and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


def __getattr__(name: str) -> object:
    """The version is the core's; functions are those of `api` (PEP 562)."""
    if name == "__version__":
        from pgheadroom import _core  # noqa: PLC0415 - Ctrl-C is not handled while it loads

        return _core.__version__
    if name in _FUNCTIONS:
        from pgheadroom import api  # noqa: PLC0415 - most programs need a part of it

        found = getattr(api, name)
        # `import pgheadroom.predict.cells as cells` goes by the name of what `predict` is.
        found.__name__ = f"{__name__}.{name}"
        globals()[name] = found
        return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


sys.modules[__name__].__class__ = _Package
