"""
Tables in bad order become a plan: a step each that clusters one by an index, and its claim.

    planning.py   which tables, by which index and tool
    live.py       looks at a database and plans, on one connection
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pgheadroom.on_demand import on_demand

if TYPE_CHECKING:
    from pgheadroom.clustering.live import order_and_plan

__all__ = ["order_and_plan"]

_HOMES = {"order_and_plan": "live"}

__getattr__ = on_demand(__name__, _HOMES)
