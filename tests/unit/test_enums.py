"""Enums of a profile: predicates over their labels, and their shares."""

from __future__ import annotations

from typing import Any

import pytest

from pgheadroom.errors import InputError
from pgheadroom.predict import predict
from pgheadroom.profile import Profile, parse_profile

LABELS = ["todo", "it's done", "failed"]


def _profile(
    where: str | None = None, pick: dict[str, Any] | None = None, **values: Any
) -> Profile:
    index = {"name": "i", "columns": ["n"]} | ({} if where is None else {"where": where})
    update = {"table": "t", "kind": "update", "sets": ["s"]}
    return parse_profile(
        {
            "schema_version": 1,
            "table": [
                {
                    "name": "t",
                    "rows": 400,
                    "columns": [
                        {"name": "id", "type": "int8"},
                        {"name": "n", "type": "int4"},
                        {
                            "name": "s",
                            "type": "enum",
                            "labels": LABELS,
                            "values": {"kind": "random"} | values,
                        },
                    ],
                    "indexes": [{"name": "p", "columns": ["id"], "unique": True}, index],
                }
            ],
            "operation": [update if pick is None else update | {"pick": pick}],
            "run": {"operations": 40},
        }
    )


@pytest.mark.parametrize(
    "where",
    [
        "s = 'it''s done'",
        "s < 'failed' AND n IS NOT NULL",
        "coalesce(s, 'todo') = 'failed'",
        "s IS NULL OR NOT s IN ('todo')",
    ],
)
def test_predicates_over_labels_are_evaluated(where: str) -> None:
    """`coalesce(s, 'todo')` was what may be anything."""
    (cell,) = predict(_profile(where), server="18.4").cells
    assert cell.predicted.is_exact


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("s = 'nope'", "no label 'nope'"),
        ("s = 'Todo'", "no label 'Todo'"),
        ("n = 1 OR s IN ('todo', 'nope')", "no label 'nope'"),
        ("coalesce(s, 'nope') = 'todo'", "no label 'nope'"),
        ("s", "not boolean"),
        ("n", "not boolean"),
        ("n > 1 AND s", "not boolean"),
    ],
)
def test_what_no_server_takes_is_refused(where: str, said: str) -> None:
    """A label that the enum does not have came to the twin, or to `prove`'s CREATE INDEX."""
    said = rf"expected an expression that PostgreSQL takes: .*{said}"
    with pytest.raises(InputError, match=rf"table\[0\].indexes\[1\].where: .*{said}"):
        _profile(where)
    pick = {"distribution": "head", "using": "i", "where": where}
    with pytest.raises(InputError, match=rf"operation\[0\].pick.where: .*{said}"):
        _profile(pick=pick)


@pytest.mark.parametrize("where", ["'yes'", "NOT 'f' AND s = 'todo'", "s = ANY ('{todo}')"])
def test_what_a_server_judges_is_left_to_it(where: str) -> None:
    """A literal may be a boolean; so such a condition is one that is not evaluated."""
    assert _profile(where).tables[0].indexes[1].stated[0].assumed


def test_shares_are_of_all_labels() -> None:
    """Another number of different values beside them had no effect."""
    shares = [0.2, 0.8, 0]
    assert _profile(shares=shares) == _profile(shares=shares, ndistinct=3)
    with pytest.raises(InputError, match=r"values.ndistinct: found 2, expected none beside shares"):
        _profile(shares=shares, ndistinct=2)
