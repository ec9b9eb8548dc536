"""
The standard's consistency conditions 1 to 4 (TPC-C clause 3.3.2).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pgheadroom.errors import MeasurementInvalid

if TYPE_CHECKING:
    import psycopg

_SQL = (Path(__file__).parent / "consistency.sql").read_bytes()


def broken_conditions(connection: psycopg.Connection[Any]) -> dict[int, str]:
    """
    The conditions that do not hold.

    Returns:
        By number: the rule and how many warehouses or districts break it.
    """
    return {
        number: f"{rule}: broken in {count}"
        for number, rule, count in connection.execute(_SQL)
        if count
    }


def require_consistent(connection: psycopg.Connection[Any], moment: str) -> None:
    """
    Check all four.

    Args:
        connection: To the database with the nine tables.
        moment: When, for the message ("after loading").

    Raises:
        MeasurementInvalid: One does not hold; what was measured is then no such workload.
    """
    broken = broken_conditions(connection)
    if broken:
        said = "; ".join(f"condition {number}, {text}" for number, text in broken.items())
        raise MeasurementInvalid(f"the data are not consistent {moment}: {said}")
