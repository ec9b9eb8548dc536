"""
pgheadroom: how much room should be left on each PostgreSQL page, and what will it change?

A laboratory that measures on real servers, and (as they land) a page-level twin that predicts, an
adviser, and the closed loop of apply and verify. `docs/ARCHITECTURE.md` shows how it fits together.
"""

from __future__ import annotations

__version__: str

__all__ = ["__version__"]


def __getattr__(name: str) -> object:
    """The version is the core's, which is loaded when it is asked for (PEP 562)."""
    if name == "__version__":
        from pgheadroom import _core  # noqa: PLC0415 - Ctrl-C is not handled while it loads

        return _core.__version__
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
