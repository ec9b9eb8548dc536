"""Which figures are exact of tables with types that others stand for, and of rows that are long."""

from __future__ import annotations

from typing import Any

import pytest

from pgheadroom.predict import predict
from pgheadroom.profile import Profile, parse_profile
from pgheadroom.profile.standing_in import standing_in


def table(
    *columns: dict[str, Any], index: dict[str, Any] | None = None, sets: Any = ("n",), **server: Any
) -> Profile:
    """A profile of a table with these columns, and an index of it."""
    listed = [{"name": "id", "type": "int4"}, {"name": "n", "type": "int4"}, *columns]
    indexes: list[dict[str, Any]] = [{"name": "t_pkey", "columns": ["id"], "unique": True}]
    if index is not None:
        indexes.append({"name": "u"} | index)
    return parse_profile(
        {
            "schema_version": 1,
            "server": server,
            "table": [{"name": "t", "rows": 100, "columns": listed, "indexes": indexes}],
            "operation": [
                {
                    "table": "t",
                    "kind": "update",
                    "sets": sets if isinstance(sets, dict) else list(sets),
                }
            ],
            "run": {"operations": 20},
        }
    )


def is_exact(profile: Profile) -> bool:
    (cell,) = predict(profile, server="18.4").cells
    return cell.predicted.is_exact


@pytest.mark.parametrize(
    ("index", "is_unknown"),
    [
        ({"columns": ["p"]}, True),
        ({"columns": ["n", "p"]}, True),
        ({"columns": ["p"], "method": "hash"}, True),
        ({"columns": ["p"], "method": "brin"}, True),
        ({"expressions": ["lower(p)"]}, True),
        ({"expressions": ["f(p)"]}, True),
        ({"columns": ["n"], "where": "p IS NOT NULL"}, True),
        ({"columns": ["n"], "include": ["p"]}, False),
        ({"expressions": ["lower(s)"]}, False),
        ({"columns": ["p"], "method": "spgist"}, False),
    ],
)
def test_an_index_that_compares_another_type_is_not_exact(
    index: dict[str, Any], is_unknown: bool
) -> None:
    """Neither the order of such values nor which are equal is known, wherever they are compared."""
    text = {"type": "text", "width": 30}
    profile = table({"name": "p", "stands_for": "pair"} | text, {"name": "s"} | text, index=index)
    assert [one.name for one in standing_in(profile.table("t"))] == ["u"] * is_unknown
    assert is_exact(profile) is not is_unknown


PATH = {"name": "p", "type": "path"}
RANGES = [{"name": f"m{n}", "type": "int8multirange"} for n in range(70)]
LONG = {"name": "s", "type": "text", "width": 3000}
PGLZ = {"settings": {"default_toast_compression": "pglz"}}


@pytest.mark.parametrize(
    ("columns", "server", "expected"),
    [
        ([PATH, LONG], {}, False),
        ([PATH, LONG], PGLZ, True),
        ([PATH | {"compression": "pglz"}, LONG], {}, True),
        ([PATH, LONG | {"width": 1500}], {}, True),
        ([RANGES[0], LONG], {}, True),
        ([RANGES[0], LONG | {"storage": "main"}], {}, False),
        (RANGES, {}, False),
        (RANGES[:30], {}, True),
        ([LONG | {"storage": "main"}], {}, True),
    ],
)
def test_values_that_a_server_may_shorten_are_not_exact(
    columns: list[dict[str, Any]], server: dict[str, Any], expected: bool
) -> None:
    """Paths and wide multiranges stay in their row here, a server moves them where nothing else."""
    assert is_exact(table(*columns, **server)) is expected


def test_a_string_that_grows_makes_a_row_long() -> None:
    """What it is loaded with says nothing of what it becomes."""
    columns = (PATH, LONG | {"width": 100})
    assert is_exact(table(*columns))
    assert is_exact(table(*columns, sets={"s": {"changed_frac": 0.5}}))
    assert not is_exact(table(*columns, sets={"s": {"grows_bytes": {"min": 0, "max": 2}}}))
