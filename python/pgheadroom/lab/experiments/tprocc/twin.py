"""
The workload as a profile, which the twin plays.

A profile's tables have one integer as their key, so some things differ from what runs on a
server: an order takes ten items from stock, not five to fifteen, though it has as many lines as on
a server; the ten districts of a delivery are ten transactions, which take orders by turns from
about as many places of the table as there are districts, each in order; and hot pages of stock and
customer are neighbours (`uneven.py`).

The lines of those orders, 5 to 15 each, are delivered one order's after the other's from one place,
so that none is delivered twice or left out: to one user it makes no difference from how many places
they are taken. To several it would, for a page that is come back to soon cannot be pruned while
others' transactions run.

What is NULL until an order is delivered cannot become a value in a profile. So there are two: for
the sizes after loading one with the NULLs (`loaded.toml` has the tables that differ), and for the
run one whose orders grow by the four bytes that the carrier takes (`twin.toml`, a profile like any
other). Money is text of the length that a numeric has then. What all this amounts
to is measured: predicted values stand beside the server's in every result.
"""

from __future__ import annotations

import functools
import tomllib
from pathlib import Path
from typing import Any

from pgheadroom.lab.experiments.tprocc.run import MIX
from pgheadroom.lab.experiments.tprocc.schedules import fillfactors
from pgheadroom.profile import Profile, parse_profile

_HERE = Path(__file__).parent

DISTRICTS = 10
RECENT_ORDERS = 20
"""Orders whose items a stock-level transaction reads; reading a page prunes it."""

STATEMENTS_PER_MIX = (
    sum(MIX.values()) + (DISTRICTS - 1) * MIX["delivery"] + RECENT_ORDERS * MIX["stock_level"]
)
"""Transactions of the profile for 100 of the mix: a delivery is one for each district, and the
items of each order that a stock-level transaction reads are one."""


def profile_of(
    *, version: str, level: str | int, transactions: int, as_loaded: bool = False
) -> Profile:
    """
    The profile of one warehouse and one user, for a run or for the sizes after loading.

    Args:
        version: Minor version of the server.
        level: Fillfactor of all tables, or a schedule of them.
        transactions: Of the mix.
        as_loaded: For sizes: the columns as they are loaded, whatever the transactions do.
    """
    levels = fillfactors(level)
    form = _read("twin.toml")
    tables, operations = form["table"], form["operation"]
    if as_loaded:
        loaded = {table["name"]: table for table in _read("loaded.toml")["table"]}
        tables = [loaded.get(table["name"], table) for table in tables]
        operations = [_ungrown(operation) for operation in operations]
    return parse_profile(
        {
            **form,
            "server": {**form["server"], "version": version},
            "table": [{**table, "fillfactor": levels[table["name"]]} for table in tables],
            "operation": operations,
            "run": {
                **form["run"],
                "operations": max(transactions * STATEMENTS_PER_MIX // 100, 1),
            },
        }
    )


@functools.cache
def _read(name: str) -> dict[str, Any]:
    return tomllib.loads((_HERE / name).read_text(encoding="utf-8"))


def _ungrown(operation: dict[str, Any]) -> dict[str, Any]:
    """An update of orders without the growth: the carrier is no text where it may be NULL."""
    if operation["table"] != "orders" or operation["kind"] != "update":
        return operation
    return {**operation, "sets": {name: {} for name in operation["sets"]}}
