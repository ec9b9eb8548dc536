"""
pgbench's own tables as they are loaded, and a smaller scale that stands for a larger one.

A transaction of `simple-update` and `select-only` touches one account, picked uniformly, and adds
one line to the history; so a smaller scale with as many transactions for each account is a sample
as any other. Branches and tellers are not touched: their sizes are computed. `tpcb-like` updates a
branch and a teller each time; a few rows that everybody meets have no smaller likeness, so they are
played whole, all transactions of it, and only accounts and history are a sample.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pgheadroom import _core
from pgheadroom.profile import Profile
from pgheadroom.profile.workload import PgbenchBuiltin

ACCOUNTS = "pgbench_accounts"
ROWS_A_SCALE: Mapping[str, int] = {
    "pgbench_branches": 1,
    "pgbench_tellers": 10,
    ACCOUNTS: 100_000,
}
"""Rows of each unit of the scale (nbranches, ntellers, naccounts: src/bin/pgbench/pgbench.c)."""

_INT4 = ("int4", 4)
_COLUMNS: Mapping[str, tuple[tuple[str, int | None], ...]] = {
    # Type, and bytes of the value; the filler of branches and tellers is NULL.
    "pgbench_branches": (_INT4, _INT4, ("bpchar(88)", None)),
    "pgbench_tellers": (_INT4, _INT4, _INT4, ("bpchar(84)", None)),
    ACCOUNTS: (_INT4, _INT4, _INT4, ("bpchar(84)", 84)),
}
_KEY_TUPLE_BYTES = 16  # of an int4
_MET_BY_ALL = ("pgbench_branches", "pgbench_tellers")


def entire(builtin: PgbenchBuiltin) -> frozenset[str]:
    """Tables whose few rows all transactions meet: a sample has them whole."""
    return frozenset(_MET_BY_ALL if builtin.builtin == "tpcb-like" else ())


def heap_pages(builtin: PgbenchBuiltin, table: str = ACCOUNTS) -> int:
    """Heap pages of a table that was loaded."""
    return _core.heap_pages(
        ROWS_A_SCALE[table] * builtin.scale,
        _core.heap_tuple_bytes(_COLUMNS[table]),
        builtin.fillfactor.get(table, 100),
    )


def loaded(builtin: PgbenchBuiltin) -> dict[str, dict[str, int]]:
    """Sizes of the tables that have rows as they are loaded."""
    return {
        name: {
            "heap_pages": heap_pages(builtin, name),
            "index_pages": _core.btree_build_pages(
                ROWS_A_SCALE[name] * builtin.scale, _KEY_TUPLE_BYTES
            ),
        }
        for name in ROWS_A_SCALE
    }


def untouched(builtin: PgbenchBuiltin) -> dict[str, dict[str, int]]:
    """Sizes of the tables that the script leaves as they were loaded."""
    return {
        name: pages
        for name, pages in loaded(builtin).items()
        if name not in entire(builtin) and (name != ACCOUNTS or builtin.builtin == "select-only")
    }


def at_scale(profile: Profile, scale: int) -> Profile:
    """The same script on so many accounts."""
    builtin = profile.workload.builtin
    assert builtin is not None, "a profile of pgbench's own tables"
    workload = replace(profile.workload, builtin=replace(builtin, scale=scale))
    return replace(profile, workload=workload)
