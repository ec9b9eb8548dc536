"""Expressions and predicates that the twin cannot evaluate: stated, or assumed to be anything."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pgheadroom.errors import InputError
from pgheadroom.predict import predict
from pgheadroom.profile import parse_profile, to_json
from pgheadroom.types import Interval

Json = dict[str, Any]
DAY = "date_trunc('day', w)"
LIKE = "s LIKE 'a%'"


def _profile(index: Json, sets: tuple[str, ...] = ("n",)) -> Json:
    return {
        "schema_version": 1,
        "server": {"full_page_writes": False},
        "table": [
            {
                "name": "t",
                "rows": 400,
                "fillfactor": 60,
                "columns": [
                    {"name": "id", "type": "int8"},
                    {"name": "n", "type": "int4"},
                    {"name": "w", "type": "timestamp"},
                    {"name": "s", "type": "text", "width": 20},
                ],
                "indexes": [
                    {"name": "t_pkey", "columns": ["id"], "unique": True},
                    {"name": "i"} | index,
                ],
            }
        ],
        "operation": [{"table": "t", "kind": "update", "sets": list(sets)}],
        "run": {"operations": 400},
    }


def _predicted(index: Json, sets: tuple[str, ...] = ("n",)) -> Any:
    (cell,) = predict(parse_profile(_profile(index, sets)), server="18.4").cells
    return cell.predicted


def _high(value: Any) -> float:
    return value.high if isinstance(value, Interval) else value


@pytest.mark.parametrize(
    ("index", "reads"),
    [
        ({"expressions": [DAY]}, "w"),
        ({"columns": ["id"], "where": LIKE}, "s"),
        ({"columns": ["id"], "where": "n = ANY ('{1,2}')"}, "n"),
        ({"expressions": ["CASE WHEN n > 1 THEN 'x' END"]}, "n"),
        ({"expressions": ["s COLLATE \"C\""]}, "s"),
        ({"expressions": ["substring(s, 1, 3)"]}, "s"),
        ({"columns": ["id"], "where": "w > '2000-01-01'::timestamp"}, "w"),
        ({"method": "gin", "expressions": ["to_tsvector('simple', s)"]}, "s"),
    ],
)  # fmt: skip
def test_hot_follows_from_what_is_read(index: Json, reads: str) -> None:
    """Values are not known, columns are: updates of others are HOT, of these none is."""
    assert _high(_predicted(index, (reads,)).n_tup_hot_upd) == pytest.approx(0, abs=5)
    other = next(name for name in ("n", "w") if name != reads)
    hot = _predicted(index, (other,)).n_tup_hot_upd
    assert hot == 400 or hot.low > 380


@pytest.mark.parametrize(
    "around",
    [
        "({})",
        "lower(CAST({} AS text))",
        "coalesce(CAST(({}) AS text), s)",
        "md5(({})::text)",
        "CASE WHEN {} IS NULL THEN 1 END",
        "abs(length(mine.f({})))",
        "left(mine.f(s, {}), 4)",
    ],
)
@pytest.mark.parametrize(
    "inner",
    [
        DAY,
        "w AT TIME ZONE 'UTC'",
        's COLLATE "C"',
        "s LIKE 'a%'",
        "s ~ '^a'",
        "n BETWEEN SYMMETRIC 5 AND 1",
        "n = ANY ('{1,2}')",
        "CASE WHEN n > 1 THEN s END",
        "CAST(n AS numeric(10,2))",
        "ARRAY[n, 2]",
        "(ARRAY[n, 2])[1]",
        "(n IS DISTINCT FROM 3)",
        "(n & 1)",
        "timestamp '2000-01-01' + w::time",
        "EXTRACT(YEAR FROM w)",
        "substring(s FROM 1 FOR 3)",
        "trim(BOTH 'x' FROM s)",
        "POSITION('x' IN s)",
        "overlay(s PLACING 'x' FROM 1)",
        "s SIMILAR TO 'a%'",
        "(n, s) IS NULL",
        "ROW(n, s) = ROW(1, 'x')",
        "GREATEST(n, 0)",
        "pg_catalog.lower(s)",
        "s::varchar(3)",
        "E'a\\\\n' || s",
        "n::int8 ^ 2",
    ],
)
def test_what_is_not_evaluated_may_stand_anywhere(inner: str, around: str) -> None:
    """`date_trunc('day', w AT TIME ZONE 'UTC')` was refused: "expected ")", found AT"."""
    figures = _predicted({"expressions": [around.replace("{}", inner)]})
    assert _high(figures.heap_pages) > 0


@pytest.mark.parametrize(
    "text",
    ["lower(s", "n +", "n IN 1", "cast(n)", ")", "n; SELECT 1", "CASE WHEN s LIKE 'a' LIKE 'b'"],
)
def test_what_is_no_expression_is_refused(text: str) -> None:
    """PostgreSQL's grammar says so."""
    with pytest.raises(InputError, match="expected an expression by PostgreSQL's grammar"):
        _predicted({"expressions": [text]})


def test_what_nobody_stated_is_anything() -> None:
    """Both ends are played, and it is said what would narrow them."""
    index = {"expressions": [DAY]}
    made = _profile(index, ("w",))
    made["table"][0]["rows"], made["run"]["operations"] = 5000, 5000
    answer = predict(parse_profile(made), server="18.4")
    (cell,) = answer.cells
    assert not cell.predicted.is_exact
    said = answer.assumed["table[0].indexes[1].stated"]
    assert "may be any" in said
    assert DAY in said
    stated = {"expression": DAY, "type": "timestamp", "ndistinct": 10, "changed_frac": 0}
    made["table"][0]["indexes"][1]["stated"] = [stated]
    (known,) = predict(parse_profile(made), server="18.4").cells
    wide, narrow = cell.predicted.index_pages, known.predicted.index_pages
    assert wide.high - wide.low > narrow.high - narrow.low
    assert wide.low <= narrow.mid <= wide.high


def test_what_is_stated_comes_back() -> None:
    """A profile says what it assumed, and reading that again is the same."""
    for index in ({"expressions": [DAY]}, {"columns": ["n"], "where": LIKE}):
        profile = parse_profile(_profile(index))
        assert profile.tables[0].indexes[1].stated[0].assumed
        assert parse_profile(to_json(profile)) == profile


def test_an_expression_that_is_evaluated_stays_exact() -> None:
    """Nothing stands for it, whatever is stated."""
    stated = {"expression": "lower(s)", "type": "text", "width": 3}
    for index in ({"expressions": ["lower(s)"]}, {"expressions": ["lower(s)"], "stated": [stated]}):
        assert _predicted(index, ("s",)).is_exact


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        ({"expressions": [DAY], "stated": [{"expression": "other"}]}, "an expression of the index"),
        ({"expressions": [DAY], "stated": [{"expression": DAY}]}, "missing, expected bytes"),
        ({"expressions": [DAY], "stated": [{"expression": DAY, "type": "json"}]}, "B-tree"),
        ({"columns": ["n"], "where": LIKE, "stated": [{"expression": LIKE}]}, "true_frac: missing"),
        (
            {"expressions": [DAY], "stated": [{"expression": DAY, "type": "date", "width": 4}]},
            "no width",
        ),
        (
            {
                "expressions": [DAY],
                "unique": True,
                "stated": [{"expression": DAY, "type": "timestamp"}],
            },
            "for the index is unique",
        ),
    ],
)
def test_what_does_not_fit_is_refused(index: Json, expected: str) -> None:
    """By its field."""
    with pytest.raises(InputError, match=expected):
        parse_profile(_profile(index))


@settings(max_examples=15, deadline=None)
@given(
    st.integers(1, 400),
    st.floats(0, 1),
    st.sampled_from(["int8", "timestamp", "uuid", "numeric", "date"]),
)
def test_the_heap_does_not_depend_on_what_is_stated(
    ndistinct: int, changed: float, of: str
) -> None:
    """Entries are another thing than rows: pages of the heap are those of any other values."""
    stated = {"expression": DAY, "type": of, "ndistinct": ndistinct, "changed_frac": changed}
    found = _predicted({"expressions": [DAY], "stated": [stated]}, ("w", "n")).heap_pages
    known = _predicted({"columns": ["w"]}, ("w", "n")).heap_pages
    low, high = (found, found) if isinstance(found, int) else (found.low, found.high)
    assert low <= known <= high


@pytest.mark.parametrize(
    "index",
    [
        {"expressions": ["s || now()"]},
        {"expressions": ["w::timestamptz"]},
        {"columns": ["id"], "where": "lower(concat(s, 'x')) = 'x'"},
    ],
)
def test_what_is_not_immutable_is_refused(index: Json) -> None:
    """No server takes such an index, so it is no forecast either."""
    with pytest.raises(InputError, match="which has to be immutable"):
        parse_profile(_profile(index))
