"""Keys of a GIN that a sample has counted, as elements of a profile."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest
from observed_table import seen_of_server

from pgheadroom.advise.knobs import Knobs
from pgheadroom.advise.scenario import make_scenario
from pgheadroom.observe.elements import element_type, fitted, read_keys
from pgheadroom.profile import parse_profile
from pgheadroom.profile.elements import Elements, steps_of

ROWS = 20_000


def _drawn(elements: Elements, rows: int, seed: int) -> list[set[int]]:
    """Values as a profile has them: each draw by the steps of `alike`."""
    steps, draws = steps_of(elements), random.Random(seed)

    def one() -> int:
        draw = draws.randrange(steps.draws)
        step = draw // steps.each
        return steps.alike * (2**step - 1) + ((draw - step * steps.each) >> (steps.count - step))

    return [{one() for _ in range(draws.randint(elements.min, elements.max))} for _ in range(rows)]


def _row(values: Sequence[set[int]], opclass: str = "tsvector_ops") -> dict[str, object]:
    """A row of the query `elements`."""
    counts = Counter(key for value in values for key in value)
    return {
        "index_oid": 1,
        "place": 1,
        "opclass": opclass,
        "typlen": -1,
        "rows": len(values),
        "values": len(values),
        "keys": sum(map(len, values)),
        "squares": sum(len(value) ** 2 for value in values),
        "distinct": len(counts),
        "once": sum(n == 1 for n in counts.values()),
        "twice": sum(n == 2 for n in counts.values()),
        "pairs": sum(n * (n - 1) for n in counts.values()),
        "bytes": 6 * sum(counts.values()),
    }


def _fitted(values: Sequence[set[int]], rows: int = ROWS, base: str = "tsvector") -> Elements:
    seen = read_keys([_row(values)])[1, 1]
    return fitted(seen, base, rows=rows, payload_bytes=None)


@pytest.mark.parametrize(
    "elements",
    [
        Elements(min=1, max=39, ndistinct=19_000, alike=8),
        Elements(min=5, max=5, ndistinct=3_000, alike=100),
        Elements(min=2, max=8, ndistinct=500, alike=None),
        Elements(min=4, max=4, ndistinct=1_000_000, alike=None),
    ],
    ids=["words", "tags", "even", "rare"],
)
def test_a_profile_is_found_again(elements: Elements) -> None:
    """What was drawn by three numbers gives these numbers, when all rows are counted."""
    found = _fitted(_drawn(elements, ROWS, seed=1))
    assert found.min == pytest.approx(elements.min, abs=1)
    assert found.max == pytest.approx(elements.max, abs=2)
    assert found.ndistinct == pytest.approx(elements.ndistinct, rel=0.1)
    if elements.alike is None:
        assert found.alike is None
    else:
        assert found.alike == pytest.approx(elements.alike, rel=0.25)
    assert found.width == max(6, len(str(found.ndistinct - 1)))


def test_words_go_on_coming_and_labels_do_not() -> None:
    """
    A twentieth of the rows has half of the words, and all of the labels.

    Of words that end at a last one there are too many; those of texts do not end.
    """
    words = _drawn(Elements(min=1, max=39, ndistinct=19_000, alike=8), ROWS, seed=2)
    labels = _drawn(Elements(min=2, max=8, ndistinct=500), ROWS, seed=2)
    sample = words[: ROWS // 20]
    assert len(set().union(*sample)) < 0.6 * 19_000
    assert _fitted(sample).ndistinct == pytest.approx(19_000, rel=0.4)
    assert _fitted(labels[: ROWS // 20]).ndistinct == pytest.approx(500, rel=0.02)


def test_values_without_a_key_and_with_all_of_them() -> None:
    """An entry is there for an empty value; arrays do not grow by elements drawn again."""
    assert _fitted([set()] * ROWS).max == 1
    every = _fitted([{0, 1}] * ROWS, base="text[]")
    assert every.max <= 3
    assert every.ndistinct >= 2


def test_what_stands_for_a_type() -> None:
    """Arrays of a fixed length become integers of it, others strings; an hstore a jsonb."""
    seen = read_keys([_row([{1}], "array_ops")])[1, 1]
    assert element_type("int4[]", seen) == "int4[]"
    assert element_type("uuid[]", seen) == "text[]"
    seen = read_keys([_row([{1}], "array_ops") | {"typlen": 8}])[1, 1]
    assert element_type("timestamptz[]", seen) == "int8[]"
    seen = read_keys([_row([{1}], "gin_hstore_ops")])[1, 1]
    assert element_type(None, seen) == "jsonb"
    assert read_keys([_row([])]) == {}


def test_a_shrunk_table_has_as_many_rows_a_key() -> None:
    """Keys and the pending list shrink with the rows, so that an entry's WAL stays."""
    elements = {"min": 1, "max": 5, "ndistinct": 40_000, "alike": 8}
    profile = parse_profile(
        {
            "schema_version": 1,
            "server": {"settings": {"gin_pending_list_limit": "8MB"}},
            "table": [
                {
                    "name": "t",
                    "rows": 400_000,
                    "columns": [
                        {"name": "id", "type": "int8"},
                        {"name": "tags", "type": "text[]", "elements": elements},
                    ],
                    "indexes": [
                        {"name": "t_pkey", "columns": ["id"], "unique": True},
                        {"name": "t_tags", "columns": ["tags"], "method": "gin"},
                    ],
                }
            ],
            "operation": [{"table": "t", "kind": "update", "sets": ["tags"]}],
            "run": {"operations": 1000},
        }
    )
    profile = replace(profile, server=replace(profile.server, observed=seen_of_server()))
    scenario = make_scenario(profile, profile.tables[0], Knobs())
    assert scenario is not None
    share = scenario.share
    assert share < 0.2
    made = scenario.table.columns[1].elements
    assert made is not None
    assert (made.ndistinct, made.alike) == (round(40_000 * share), 8)
    assert scenario.table.indexes[1].gin_pending_list_limit == round(8192 * share)
