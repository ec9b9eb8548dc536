"""Keys of other types than integers: what of a table does not depend on them."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pgheadroom.predict import predict
from pgheadroom.profile import parse_profile

Json = dict[str, Any]

# Sixteen bytes without a gap behind a header of 24, each in its way.
KEYS: tuple[tuple[Json, ...], ...] = (
    ({"name": "id", "type": "int8"}, {"name": "rest", "type": "int8"}),
    ({"name": "id", "type": "uuid"},),
    ({"name": "id", "type": "uuid", "values": {"kind": "serial", "ordered": True}},),
)

_PICKS = st.sampled_from(
    [
        {"distribution": "uniform"},
        {"distribution": "zipfian", "theta": 1.3, "scatter": True},
        {"distribution": "hot_set", "rows_frac": 0.1, "weight": 0.8},
        {"distribution": "sequential"},
        {"distribution": "newest"},
        {"distribution": "uniform", "among": "live"},
    ]
)
_UPDATES = st.fixed_dictionaries(
    {
        "table": st.just("t"),
        "kind": st.just("update"),
        "sets": st.sampled_from([["n"], ["k"], ["n", "k"]]),
        "pick": _PICKS,
        "weight": st.integers(1, 5),
        "abort_frac": st.sampled_from([0, 0.1]),
        "find": st.sampled_from(["index", "index", "seqscan", "bitmap"]),
    }
)
_OTHERS = st.sampled_from(
    [
        {"table": "t", "kind": "insert", "rows_per_statement": 2},
        {"table": "t", "kind": "delete", "pick": {"distribution": "oldest"}},
        {"table": "t", "kind": "select", "pick": {"distribution": "uniform"}},
    ]
)


def _predicted(key: tuple[Json, ...], drawn: Json) -> Any:
    others = [{"name": "n", "type": "int8"}, {"name": "k", "type": "int8"}]
    table = {
        "name": "t",
        "rows": drawn["rows"],
        "fillfactor": drawn["fillfactor"],
        "columns": [*key, *others],
        "indexes": [
            {"name": "t_pkey", "columns": ["id"], "unique": True},
            {"name": "t_k", "columns": ["k"]},
        ],
    }
    profile = {
        "schema_version": 1,
        "server": {"full_page_writes": False},
        "table": [table],
        "operation": drawn["operations"],
        "run": {"operations": 400, "seed": drawn["seed"]},
    }
    (cell,) = predict(parse_profile(profile), server=drawn["server"]).cells
    return cell.predicted


@settings(max_examples=25, deadline=None)
@given(
    st.fixed_dictionaries(
        {
            "rows": st.integers(50, 800),
            "fillfactor": st.integers(50, 100),
            "operations": st.lists(st.one_of(_UPDATES, _UPDATES, _OTHERS), min_size=1, max_size=4),
            "seed": st.integers(0, 1000),
            "server": st.sampled_from(["15.20", "16.14", "18.4"]),
        }
    )
)
def test_the_heap_does_not_depend_on_the_type_of_the_key(drawn: Json) -> None:
    """Rows of equal length are on the same pages, HOT or not, whatever the order of their keys."""
    found = [_predicted(key, drawn) for key in KEYS]
    for name in ("n_tup_ins", "n_tup_upd", "n_tup_del", "n_tup_hot_upd", "heap_pages"):
        assert len({getattr(one, name) for one in found}) == 1, name
    # In their order the entries of keys are on the pages that integers are on, where these are as
    # long: 16 bytes behind a header of 8 are 24, an int8's are 16.
    assert found[1].index_pages >= found[0].index_pages
    assert found[2].index_pages >= found[0].index_pages
