"""
pgheadroom: how much room should be left on each PostgreSQL page, and what will it change?

A laboratory that measures on real servers, and (as they land) a page-level twin that predicts, an
adviser, and the closed loop of apply and verify. `docs/ARCHITECTURE.md` shows how it fits together.
"""

from __future__ import annotations

from pgheadroom._core import __version__

__all__ = ["__version__"]
