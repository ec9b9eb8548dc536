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
the sizes after loading one with the NULLs, and for the run one whose orders grow by the four bytes
that the carrier takes. Money is text of the length that a numeric has then. What all this amounts
to is measured: predicted values stand beside the server's in every result.
"""

from __future__ import annotations

import math
from typing import Any

from pgheadroom.lab.experiments.tprocc.run import MIX
from pgheadroom.lab.experiments.tprocc.schedules import fillfactors
from pgheadroom.lab.experiments.tprocc.uneven import hottest, page_shares, prefixes
from pgheadroom.profile import Profile, parse_profile

DISTRICTS = 10
CUSTOMERS = 30_000
STOCK = 100_000
ITEMS = 100_000
NEW_ORDERS = 9_000
LINES_PER_ORDER = 10
LINES = {"min": 5, "max": 15}
"""Of an order, evenly: clause 2.4.1.3."""

RECENT_ORDERS = 20
"""Orders whose items a stock-level transaction reads; reading a page prunes it."""

STATEMENTS_PER_MIX = (
    sum(MIX.values()) + (DISTRICTS - 1) * MIX["delivery"] + RECENT_ORDERS * MIX["stock_level"]
)
"""Transactions of the profile for 100 of the mix: a delivery is one for each district, and the
items of each order that a stock-level transaction reads are one."""

STOCK_ROWS_PER_PAGE, CUSTOMER_ROWS_PER_PAGE = 23, 13
HOT_CUSTOMERS = 0.25
"""Share of the customers that count as hot: about where their density crosses the mean."""

BY_NUMBER = 0.4
"""Payments that name the customer by number; the middle one of a name may be on any page."""

Column = dict[str, Any]


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
    return parse_profile(
        {
            "schema_version": 1,
            "server": {
                "version": version,
                "shared_buffers": "1GB",  # holds the whole warehouse at every fillfactor
                "autovacuum": False,
            },
            "table": [
                {**table, "fillfactor": levels[table["name"]]} for table in _tables(as_loaded)
            ],
            "operation": _operations(as_loaded),
            "run": {
                "operations": max(transactions * STATEMENTS_PER_MIX // 100, 1),
                "clients": 1,
                "seed": 1,
            },
        }
    )


def stride(keys: int, places: int) -> int:
    """
    Step by which keys are taken by turns from that many places, in order at each.

    `places` steps come to one key further, modulo `keys`; a few places more than asked for, so that
    such a step exists.
    """
    while math.gcd(places, keys) != 1:
        places += 1
    return pow(places, -1, keys)


def _int(*names: str) -> list[Column]:
    return [{"name": name, "type": "int4"} for name in names]


def _text(name: str, low: int, high: int) -> Column:
    return {"name": name, "type": "text", "width": {"min_bytes": low, "max_bytes": high}}


def _padded(name: str, length: int) -> Column:
    return {"name": name, "type": f"bpchar({length})"}


def _money(name: str, length: int) -> Column:
    """A numeric, by the bytes of its payload."""
    return _text(name, length, length)


def _address(prefix: str) -> list[Column]:
    return [
        _text(f"{prefix}_street_1", 10, 20),
        _text(f"{prefix}_street_2", 10, 20),
        _text(f"{prefix}_city", 10, 20),
        _padded(f"{prefix}_state", 2),
        _padded(f"{prefix}_zip", 9),
    ]


def _index(name: str, *columns: str, unique: bool = True) -> dict[str, Any]:
    return {"name": name, "columns": list(columns), "unique": unique}


def _tables(as_loaded: bool) -> list[dict[str, Any]]:
    """Columns in the order of `tables.sql`; `key` of each is its serial, the rest is constant."""
    moved = 4 if as_loaded else 6
    time = {"type": "timestamptz"}
    carrier = (
        [*_int("o_ol_cnt", "o_all_local"), {"name": "o_carrier_id", "type": "int4",
                                            "null_frac": 0.3}]
        if as_loaded
        else [*_int("o_ol_cnt"), _text("o_carrier_id", 3, 3)]
    )  # fmt: skip
    delivered = {"name": "ol_delivery_d", **time, "null_frac": 0.3 if as_loaded else 0.0}
    amount = _text("ol_amount", 1, 3) if as_loaded else _money("ol_amount", 6)
    return [
        {
            "name": "warehouse",
            "rows": 1,
            "columns": [*_int("key"), _text("w_name", 6, 10), *_address("w"), _money("w_tax", 4),
                        _money("w_ytd", 8)],
            "indexes": [_index("warehouse_pkey", "key")],
        },
        {
            "name": "district",
            "rows": DISTRICTS,
            "columns": [*_int("key", "d_w_id"), _text("d_name", 6, 10), *_address("d"),
                        _money("d_tax", 4), _money("d_ytd", 8), *_int("d_next_o_id")],
            "indexes": [_index("district_pkey", "key", "d_w_id")],
        },
        {
            "name": "customer",
            "rows": CUSTOMERS,
            "columns": [
                *_int("key", "c_d_id", "c_w_id"), _text("c_first", 8, 16), _padded("c_middle", 2),
                _text("c_last", 9, 15), *_address("c"), _padded("c_phone", 16),
                {"name": "c_since", **time}, _padded("c_credit", 2),
                _money("c_credit_lim", 4), _money("c_discount", 4), _money("c_balance", moved),
                _money("c_ytd_payment", moved), *_int("c_payment_cnt", "c_delivery_cnt"),
                _text("c_data", 300, 500),
            ],
            "indexes": [
                _index("customer_pkey", "key", "c_d_id", "c_w_id"),
                _index("customer_name", "c_w_id", "c_d_id", "c_last", "c_first", unique=False),
            ],
        },
        {
            "name": "history",
            "rows": CUSTOMERS,
            "columns": [*_int("key", "h_c_d_id", "h_c_w_id", "h_d_id", "h_w_id"),
                        {"name": "h_date", **time}, _money("h_amount", moved),
                        _text("h_data", 12, 24)],
            "indexes": [],
        },
        {
            "name": "new_order",
            "rows": NEW_ORDERS,
            "columns": _int("key", "no_d_id", "no_w_id"),
            "indexes": [_index("new_order_pkey", "key", "no_d_id", "no_w_id")],
        },
        {
            "name": "orders",
            "rows": CUSTOMERS,
            "columns": [*_int("key", "o_d_id", "o_w_id", "o_c_id"),
                        {"name": "o_entry_d", **time}, *carrier],
            "indexes": [_index("orders_pkey", "key", "o_d_id", "o_w_id"),
                        _index("orders_customer", "o_w_id", "o_d_id", "o_c_id", "key")],
        },
        {
            "name": "order_line",
            "rows": CUSTOMERS * LINES_PER_ORDER,
            "columns": [*_int("key", "ol_d_id", "ol_w_id", "ol_number", "ol_i_id",
                              "ol_supply_w_id"),
                        delivered, *_int("ol_quantity"), amount, _padded("ol_dist_info", 24)],
            "indexes": [_index("order_line_pkey", "key", "ol_d_id", "ol_w_id", "ol_number")],
        },
        {
            "name": "item",
            "rows": ITEMS,
            "columns": [*_int("key", "i_im_id"), _text("i_name", 14, 24), _money("i_price", 6),
                        _text("i_data", 26, 50)],
            "indexes": [_index("item_pkey", "key")],
        },
        {
            "name": "stock",
            "rows": STOCK,
            "columns": [*_int("key", "s_w_id", "s_quantity"),
                        *(_padded(f"s_dist_{n:02d}", 24) for n in range(1, 11)),
                        *_int("s_ytd", "s_order_cnt", "s_remote_cnt"), _text("s_data", 26, 50)],
            "indexes": [_index("stock_pkey", "key", "s_w_id")],
        },
    ]  # fmt: skip


def _operations(as_loaded: bool) -> list[dict[str, Any]]:
    """The five transactions; the standard's mix are their weights."""
    uniform = {"distribution": "uniform"}
    step = stride(CUSTOMERS, DISTRICTS)
    order = {"distribution": "stride", "n": step}
    lines = {"distribution": "sequential"}
    stock = prefixes(page_shares(8191, STOCK, STOCK_ROWS_PER_PAGE), LINES_PER_ORDER)
    drawn = hottest(
        page_shares(1023, CUSTOMERS // DISTRICTS, CUSTOMER_ROWS_PER_PAGE), HOT_CUSTOMERS
    )
    hot_customers = {
        "distribution": "hot_set",
        "rows_frac": HOT_CUSTOMERS,
        "weight": BY_NUMBER * drawn + (1 - BY_NUMBER) * HOT_CUSTOMERS,
    }
    growth: dict[str, Any] = {} if as_loaded else {"grows_bytes": {"min": 4, "max": 4}}

    def of(transaction: str, weight: int, *parts: dict[str, Any]) -> list[dict[str, Any]]:
        return [{**part, "transaction": transaction, "weight": weight} for part in parts]

    def update(table: str, *sets: str, **more: Any) -> dict[str, Any]:
        return {"table": table, "kind": "update", "sets": list(sets), "pick": uniform, **more}

    def select(table: str, **more: Any) -> dict[str, Any]:
        return {"table": table, "kind": "select", "pick": uniform, **more}

    def insert(table: str, rows: int | dict[str, int] = 1) -> dict[str, Any]:
        return {"table": table, "kind": "insert", "rows_per_statement": rows}

    bad_credit = {"changed_frac": 0.1, "grows_bytes": {"min": 14, "max": 22}}
    payment_sets = {"c_balance": {}, "c_ytd_payment": {}, "c_payment_cnt": {}, "c_data": bad_credit}
    orders = of(
        "new_order",
        MIX["new_order"],
        select("warehouse"),
        update("district", "d_next_o_id"),
        select("customer"),
        insert("orders"),
        insert("new_order"),
        *(
            update("stock", "s_quantity", "s_ytd", "s_order_cnt", pick=_first(rows_frac))
            for rows_frac in stock
        ),
        insert("order_line", LINES),
    )
    orders[0] = {**orders[0], "abort_frac": 0.01}
    return [
        *orders,
        *of(
            "payment",
            MIX["payment"],
            update("warehouse", "w_ytd"),
            update("district", "d_ytd"),
            {**update("customer", pick=hot_customers), "sets": payment_sets},
            insert("history"),
        ),
        *of(
            "delivery",
            MIX["delivery"] * DISTRICTS,
            *(
                {"table": "new_order", "kind": kind, "pick": {"distribution": "oldest"}}
                for kind in ("lock", "delete")
            ),
            {**update("orders", pick=order), "sets": {"o_carrier_id": growth}},
            update("order_line", "ol_delivery_d", pick=lines, rows_per_statement=LINES),
            update("customer", "c_balance", "c_delivery_cnt"),
        ),
        *of(
            "order_status",
            MIX["order_status"],
            select("customer"),
            select("orders"),
            select("order_line", rows_per_statement=LINES),
        ),
        *of(
            "stock_level",
            MIX["stock_level"],
            select("district"),
            select("order_line", rows_per_statement=RECENT_ORDERS * LINES_PER_ORDER),
        ),
        *of(
            "stock_level_items",
            MIX["stock_level"] * RECENT_ORDERS,
            *(select("stock", pick=_first(rows_frac)) for rows_frac in stock),
        ),
    ]


def _first(rows_frac: float) -> dict[str, Any]:
    """A uniform choice among the first rows."""
    if rows_frac >= 1:
        return {"distribution": "uniform"}
    return {"distribution": "hot_set", "rows_frac": rows_frac, "weight": 1.0}
