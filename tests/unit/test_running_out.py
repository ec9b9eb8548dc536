"""Tables from which more goes than comes: which are told of, and how."""

from __future__ import annotations

from typing import Any

import pytest

from pgheadroom import predict
from pgheadroom.predict.running_out import flow_of, sentences
from pgheadroom.profile import Profile, parse_profile

Json = dict[str, Any]
INSERT: Json = {"kind": "insert", "weight": 90}
OLDEST: Json = {"kind": "delete", "weight": 100, "pick": {"distribution": "oldest"}}


def _profile(*operations: Json, rows: int = 200, **run: Any) -> Profile:
    return parse_profile(
        {
            "schema_version": 1,
            "table": [
                {
                    "name": "jobs",
                    "rows": rows,
                    "columns": [{"name": "id", "type": "int8"}, {"name": "n", "type": "int4"}],
                    "indexes": [{"name": "jobs_pkey", "columns": ["id"], "unique": True}],
                }
            ],
            "operation": [{"table": "jobs"} | one for one in operations],
            "run": {"operations": 1900} | run,
        }
    )


def test_a_table_that_shrinks_is_said_before_it_is_empty() -> None:
    """
    A table that lost 39 % of its rows within the run was predicted without a word.

    Longer runs of it were then refused, as if the ages of its rows were not known.
    """
    (said, *_) = predict(_profile(INSERT, OLDEST)).warnings
    assert said == (
        "jobs shrinks: 11.1 % more rows are deleted from it than inserted, and of its 200 about "
        "100 are left when the run ends."
    )
    (gone, *_) = sentences(_profile(INSERT, OLDEST), 19_000)
    assert gone.endswith("its 200 none is left after about 3,800 of the run's 19,000 transactions.")


@pytest.mark.parametrize(
    "operations",
    [
        (INSERT, OLDEST | {"weight": 90}),
        (INSERT, OLDEST | {"weight": 91}),  # 21 rows of 1,900 transactions
        (OLDEST,),  # plain to see
        (INSERT, OLDEST | {"pick": {"distribution": "head", "using": "jobs_pkey"}}),
        (INSERT, OLDEST | {"pick": {"distribution": "uniform"}}),
        (INSERT | {"rows_per_statement": 2}, OLDEST),
        (INSERT, OLDEST | {"abort_frac": 0.2}),
        (INSERT, OLDEST, {"kind": "upsert", "sets": ["n"]}),
    ],
)
def test_others_are_not(operations: tuple[Json, ...]) -> None:
    """That stay, grow, hardly shrink, or of which nobody knows how much is deleted."""
    assert sentences(_profile(*operations), 1900) == ()


def test_rows_come_and_go_by_transactions() -> None:
    """What stands in one transaction counts as often as its first operation."""
    insert = INSERT | {"transaction": "turn", "rows_per_statement": 3}
    delete = OLDEST | {"transaction": "turn", "weight": 1}
    update = {"kind": "update", "sets": ["n"], "weight": 10}
    flow = flow_of(_profile(insert, delete, update).workload.operations, "jobs")
    assert flow is not None
    assert (flow.inserted, flow.deleted) == pytest.approx((2.7, 0.9))
    assert flow.more_deleted_frac == 0
