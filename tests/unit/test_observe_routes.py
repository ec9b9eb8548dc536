"""Whose the rows of statements are that name a partitioned table, without a server."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from pgheadroom.observe.answers import Answers
from pgheadroom.observe.classes import Classes, CountedUpdates
from pgheadroom.observe.routes import Routed, Routes
from pgheadroom.sources.recording import RecordedAnswer, Recording

WHOLE, COMMON, OWN = 1, 2, 3


def _update(calls: int, rows: int | None) -> CountedUpdates:
    return CountedUpdates(
        table_oid=WHOLE,
        kind="update",
        attnums=(2,),
        same=(),
        appended=(),
        calls=calls,
        rows=rows,
        source="pg_stat_statements",
    )


def _routed(*classes: CountedUpdates, other: dict[str, int], came: bool = False) -> Routed:
    """Of the common partition of jobs, beside one that had so much written to it."""
    shape = [{"oid": WHOLE, "relkind": "p", "parent_oid": None}]
    shape += [{"oid": oid, "relkind": "r", "parent_oid": WHOLE} for oid in (COMMON, OWN)]
    passes = {"shape": shape[: 2 if came else 3], "end": shape}
    recording = Recording(
        tuple(
            RecordedAnswer(query="tables", moment=moment, rows=tuple(rows))
            for moment, rows in passes.items()
        )
    )
    none = {"n_tup_ins": 0, "n_tup_upd": 0, "n_tup_del": 0}
    given: dict[str, Any] = {field.name: {} for field in fields(Answers)}
    given |= {
        "interval_s": 100.0,
        "columns": {
            oid: ({"attnum": 2, "name": "state", "is_dropped": False},)
            for oid in (WHOLE, COMMON, OWN)
        },
        "before": dict.fromkeys((COMMON, OWN), none),
        "after": {COMMON: none | {"n_tup_upd": 14_000}, OWN: none | other},
    }
    found = Classes(by_table={WHOLE: classes}, reports=())
    return Routes(recording, found, Answers(**given)).classes_of(COMMON)


def test_a_partition_beside_idle_ones_has_all_rows() -> None:
    """
    pg-boss has one partition for all queues that have none of their own, and completes in a WITH.

    What it had was shared out by calls, though all that its statements wrote lay there.
    """
    routed = _routed(_update(1_000, 7_300), _update(900, None), other={})
    assert not routed.is_shared
    assert [(one.calls, one.rows) for one in routed.classes] == [(1_000, 7_300), (900, None)]


@pytest.mark.parametrize(
    ("other", "came"), [({"n_tup_upd": 1}, False), ({"n_tup_ins": 1}, False), ({}, True)]
)
def test_a_partition_beside_busy_ones_shares_them(other: dict[str, int], came: bool) -> None:
    """Also rows that an UPDATE moved there, which are inserted, and those of one that came."""
    assert _routed(_update(1_000, 7_300), other=other, came=came).is_shared
