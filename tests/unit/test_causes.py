"""Updates by cause: parts add up, counters decide, statements bound."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import observed_table as made
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgheadroom.advise.blame import blame
from pgheadroom.advise.causes import causes_of
from pgheadroom.advise.cold_updates import CAUSES, Blamed, Cause
from pgheadroom.advise.updates import updates_of
from pgheadroom.outcome import Value
from pgheadroom.profile import TableProfile
from pgheadroom.types import Interval

WIDE = [
    *made.COLUMNS[:3],
    {"name": "note", "type": "text", "width": {"min_bytes": 1395, "max_bytes": 1395}},
]


def _mid(value: Value) -> float:
    return value.mid if isinstance(value, Interval) else value or 0


def _low_high(value: Value) -> tuple[float, float]:
    if isinstance(value, Interval):
        return value.low, value.high
    return value or 0, value or 0


def _by_kind(table: TableProfile, major: int = 18, **server: Any) -> dict[str, Cause]:
    return {
        cause.kind: cause
        for cause in causes_of(table, major, made.seen_of_server(**server) if server else None)
    }


def _blamed(cause: Cause) -> dict[str, Blamed]:
    return {blamed.name: blamed for blamed in cause.indexes}


@st.composite
def _tables(draw: st.DrawFn) -> tuple[TableProfile, int, int]:
    """Any counters, any classes, any indexes: (table, major, updates)."""
    major = draw(st.sampled_from([15, 16, 18]))
    hot, stayed, moved = (draw(st.integers(0, 5000)) for _ in range(3))
    count = hot + stayed + moved
    indexes = draw(
        st.lists(
            st.sampled_from([made.OWNER, made.STATE, made.BRIN]), unique_by=lambda i: i["name"]
        )
    )
    is_counted = draw(st.booleans())
    classes = [
        made.a_class(
            columns,
            draw(st.integers(1, 9000)) if is_counted else None,
            calls=draw(st.integers(1, 9000)),
            **({"appended": ["note"]} if "note" in columns and draw(st.booleans()) else {}),
        )
        for columns in draw(
            st.lists(
                st.lists(
                    st.sampled_from(["id", "owner", "state", "note"]), unique=True, min_size=1
                ),
                max_size=4,
            )
        )
    ]
    table = made.table_of(
        made.counters(count, hot, None if major == 15 else moved),
        indexes=[made.PKEY, *indexes],
        classes=classes,
        fillfactor=draw(st.sampled_from([100, 99, 80, 50])),
    )
    return table, major, count


@given(_tables())
def test_parts_add_up_and_stay_within_bounds(case: tuple[TableProfile, int, int]) -> None:
    """Whatever was observed: each update has one cause, and shares lie between their bounds."""
    table, major, count = case
    causes = causes_of(table, major)
    if count == 0:
        assert causes == ()
        return
    assert sum(_mid(cause.updates) for cause in causes) == count
    assert [cause.kind for cause in causes] == [
        kind for kind in CAUSES if kind in {cause.kind for cause in causes}
    ]
    for cause in causes:
        low, high = _low_high(cause.updates)
        assert 0 <= low <= _mid(cause.updates) <= high <= count
        assert _mid(cause.frac) == pytest.approx(_mid(cause.updates) / count)
        assert cause.detail.endswith(".")
        low, high = _low_high(cause.wal_bytes)
        assert 0 <= low <= _mid(cause.wal_bytes) <= high
        if cause.kind == "indexed_column" and cause.indexes:
            assert sum(_mid(b.updates) for b in cause.indexes) == _mid(cause.updates)
        for blamed in cause.indexes:
            assert blamed.name != "jobs_brin" or major < 16
            if blamed.certainty == "certain":
                assert _low_high(blamed.updates)[0] > 0
                assert major >= 16, "15 has no counter that proves it"


@given(_tables(), st.data())
def test_the_truth_behind_the_counters_lies_inside(
    case: tuple[TableProfile, int, int], data: st.DataObject
) -> None:
    """From 16 on: whichever new-page updates changed an index, as classes allow, is covered."""
    table, major, count = case
    counters = (table.observed or {})["counters"]
    classes = (table.observed or {})["updates"]["classes"]
    if major < 16 or count == 0 or not classes:
        return
    # Classes that account for all updates, each with as many as the draw says.
    indexed_columns = {
        name
        for index in (table.observed or {})["indexes"]
        if not index["is_summarizing"]
        for name in index["ends_hot_by_columns"]
    }
    hot, moved = counters["n_tup_hot_upd"], counters["n_tup_newpage_upd"]
    stayed = count - hot - moved
    changed_moved = data.draw(st.integers(0, moved))
    unchanged_assigning = data.draw(st.integers(0, hot + moved - changed_moved))
    assigning = stayed + changed_moved + unchanged_assigning
    rows = [
        made.a_class(["owner"], assigning),
        made.a_class(["note"], count - assigning),
    ]
    has_owner = "owner" in indexed_columns
    if not has_owner:
        return
    truth = made.table_of(
        counters,
        indexes=(table.observed or {})["indexes"],
        classes=[found for found in rows if found["rows"]],
        fillfactor=table.fillfactor,
    )
    found = _by_kind(truth, major)
    low, high = _low_high(found["indexed_column"].updates) if "indexed_column" in found else (0, 0)
    assert low <= stayed + changed_moved <= high
    low, high = _low_high(found["no_room"].updates) if "no_room" in found else (0, 0)
    assert low <= moved - changed_moved <= high


def test_same_page_updates_that_are_not_hot_convict_the_only_index() -> None:
    """One index is assigned, and rows stayed on their page: the counters prove it."""
    table = made.table_of(
        made.counters(1000, 600, 0),
        classes=[made.a_class(["state"], 400), made.a_class(["note"], 600)],
        fillfactor=80,
    )
    found = _by_kind(table)
    assert {kind: cause.updates for kind, cause in found.items()} == {
        "hot": 600,
        "indexed_column": 400,
    }
    (blamed,) = found["indexed_column"].indexes
    assert (blamed.name, blamed.updates, blamed.certainty) == ("jobs_state", 400, "certain")
    assert (blamed.columns, blamed.scans, blamed.total_scans) == (("state",), 3, 30)
    assert found["indexed_column"].evidence == "measured"


def test_assigned_is_not_changed() -> None:
    """A framework sets every column, and all updates are HOT: nobody is blamed."""
    table = made.table_of(
        made.counters(1000, 1000, 0), classes=[made.a_class(["owner", "state", "note"], 1000)]
    )
    assert list(_by_kind(table)) == ["hot"]


def test_two_assigned_indexes_are_both_only_possible() -> None:
    """Statements assign the columns of both; which of them changed nobody has counted."""
    table = made.table_of(
        made.counters(1000, 0, 0), classes=[made.a_class(["owner", "state"], 1000)]
    )
    cause = _by_kind(table)["indexed_column"]
    assert cause.updates == 1000
    assert {name: b.certainty for name, b in _blamed(cause).items()} == {
        "jobs_owner": "possible",
        "jobs_state": "possible",
    }
    assert sum(_mid(b.updates) for b in cause.indexes) == 1000


def test_one_column_in_two_indexes_convicts_both() -> None:
    """Neither index alone can go: each of them holds the column that changed."""
    both = made.index("jobs_both", ["state", "owner"])
    table = made.table_of(
        made.counters(1000, 0, 0),
        indexes=[made.PKEY, made.STATE, both],
        classes=[made.a_class(["state"], 1000)],
    )
    cause = _by_kind(table)["indexed_column"]
    # Shared out to half each; each alone has ended HOT for all.
    share = Interval(low=500, mid=500, high=1000, level=0.9)
    assert [(b.certainty, b.updates) for b in cause.indexes] == [("certain", share)] * 2


def test_what_other_classes_can_have_changed_is_taken_off() -> None:
    """300 updates assign the owner; of 500 at least 200 changed the state."""
    table = made.table_of(
        made.counters(1000, 500, 0),
        classes=[made.a_class(["owner"], 300), made.a_class(["state"], 700)],
    )
    blamed = _blamed(_by_kind(table)["indexed_column"])
    assert blamed["jobs_state"].certainty == "certain"
    assert _low_high(blamed["jobs_state"].updates)[0] == 200
    assert blamed["jobs_owner"].certainty == "possible"


def test_an_index_that_no_statement_assigns_has_no_more_than_what_none_accounts_for() -> None:
    """Half set the state; six are nobody's, and only they may have changed the owner."""
    table = made.table_of(
        made.counters(7966, 2612, 2473),
        classes=[made.a_class(["state"], 3980), made.a_class(["note"], 3980)],
    )
    found = updates_of(table, 18)
    assert found is not None
    # Of more likely ones than statements have assigned.
    shared = {one.name: one for one in blame(found, (2881, 4055, 4055), 2881)}
    assert shared["jobs_state"].certainty == "certain"
    assert _mid(shared["jobs_owner"].updates) <= 6
    assert sum(_mid(one.updates) for one in shared.values()) == 4055
    # The text convicts the one, and says how many may be of another.
    table = made.table_of(
        made.counters(1000, 500, 0),
        classes=[made.a_class(["owner"], 30), made.a_class(["state"], 970)],
    )
    cause = _by_kind(table)["indexed_column"]
    assert {b.name: b.certainty for b in cause.indexes} == {
        "jobs_state": "certain",
        "jobs_owner": "possible",
    }
    assert "a column of jobs_state (of another index for 30 at most) has changed" in cause.detail


def test_a_trigger_that_changes_a_column_is_said() -> None:
    """No statement assigns an indexed column, yet one changed: the text says who may do that."""
    table = made.table_of(made.counters(1000, 0, 0), classes=[made.a_class(["note"], 1000)])
    cause = _by_kind(table)["indexed_column"]
    assert cause.updates == 1000
    assert "trigger" in cause.detail


def test_new_page_updates_are_split_by_the_share_of_the_others() -> None:
    """Half of those with room changed an index: so of those without, between none and all."""
    table = made.table_of(
        made.counters(1000, 300, 400),
        classes=[made.a_class(["state"], 800), made.a_class(["note"], 200)],
    )
    found = _by_kind(table)
    # 800 assign it; 300 of them are known, and of the HOT ones at least 100 assigned it too.
    assert found["indexed_column"].updates == Interval(low=300, mid=500, high=700, level=0.9)
    assert found["no_room"].updates == Interval(low=0, mid=200, high=400, level=0.9)
    assert found["no_room"].evidence == "estimated"


def test_without_an_assigned_index_no_room_is_exact() -> None:
    """All statements are known and none assigns an indexed column: the counter is the answer."""
    table = made.table_of(made.counters(1000, 300, 700), classes=[made.a_class(["note"], 1000)])
    found = _by_kind(table)
    assert found["no_room"].updates == 700
    assert found["no_room"].evidence == "measured"
    assert "fillfactor 100 keeps no room" in found["no_room"].detail.replace("F", "f", 1)


def test_fifteen_estimates_everything() -> None:
    """Without the counter of new pages the classes alone tell, and nobody is certain."""
    classes = [made.a_class(["state"], 400), made.a_class(["note"], 600)]
    table = made.table_of(made.counters(1000, 300), classes=classes)
    found = _by_kind(table, 15)
    assert found["hot"].evidence == "measured"
    # Of the 600 that no index minds at most 300 were HOT: 300 had no room.
    assert found["no_room"].updates == Interval(low=300, mid=300, high=700, level=0.9)
    assert found["indexed_column"].updates == Interval(low=0, mid=400, high=400, level=0.9)
    assert {c.evidence for c in found.values() if c.kind != "hot"} == {"estimated"}
    unknown = _by_kind(made.table_of(made.counters(1000, 300)), 15)
    assert _mid(unknown["unknown"].updates) == 700


def test_brin_counts_before_16_only() -> None:
    """A summarizing index ends HOT on 15, and never from 16 on."""
    table = made.table_of(
        made.counters(100, 0, 0),
        indexes=[made.PKEY, made.BRIN],
        classes=[made.a_class(["note"], 100)],
    )
    assert "jobs_brin" not in _blamed(_by_kind(table)["indexed_column"])
    old = made.table_of(
        made.counters(100, 0),
        indexes=[made.PKEY, made.BRIN],
        classes=[made.a_class(["note"], 100)],
    )
    assert list(_blamed(_by_kind(old, 15)["indexed_column"])) == ["jobs_brin"]


@pytest.mark.parametrize(
    ("facts", "server", "said"),
    [
        ({"fillfactor": 100}, {}, "keeps no room"),
        ({"fillfactor": 90, "columns": WIDE}, {}, "less than one more version of 1,439 bytes"),
        (
            {"fillfactor": 70},
            {"horizon": {"holders": [], "stood_still": [{"start_frac": 0.2, "length_frac": 0.6}]}},
            "stood still for 60 % of the interval",
        ),
        (
            {
                "fillfactor": 70,
                "classes": [made.a_class(["note"], 10_000, calls=1)],
                "rows": 10_000,
            },
            {},
            "one statement updates about",
        ),
        (
            {
                "fillfactor": 70,
                "free_space": [
                    {
                        "source": "page_headers",
                        "pages": 10,
                        "class_bytes": 128,
                        "classes": [[0, 9], [20, 1]],
                    },
                ],
            },
            {},
            "90 % of the pages have none now",
        ),
        ({"fillfactor": 70}, {}, "before pruning freed it"),
    ],
)
def test_no_room_says_why(facts: dict[str, Any], server: dict[str, Any], said: str) -> None:
    """Never reserved, too wide, held by the horizon, one big statement, used up, too fast."""
    facts = {"classes": [made.a_class(["note"], 10_000)], "rows": 10_000} | facts
    table = made.table_of(made.counters(10_000, 3000, 7000), **facts)
    assert said in _by_kind(table, **server)["no_room"].detail


def test_rows_that_grow_are_told_from_pages_that_are_full() -> None:
    """Statements append: with a reserve that is growth, without one the page was full anyhow."""
    appending = made.a_class(["note"], 1000, appended=["note"])
    roomy = _by_kind(
        made.table_of(made.counters(1000, 300, 700), classes=[appending], fillfactor=70)
    )
    assert _mid(roomy["row_grew"].updates) == 700
    full = _by_kind(made.table_of(made.counters(1000, 300, 700), classes=[appending]))
    assert _mid(full["row_grew"].updates) == 0
    assert _mid(full["no_room"].updates) == 700
    assert "Rows may grow too" in full["no_room"].detail


def test_growth_is_seen_in_the_lengths_of_young_rows() -> None:
    """Rows written in the interval are longer than the older ones, beyond chance."""
    sample = {
        "pages": 100,
        "rows": 1000,
        "tuple_bytes": {"mean": 150.0, "deviation": 20.0, "min": 100, "max": 200},
        "since_xids": 1023,
        "recent_rows": 400,
        "ages": [[9, 400, 400 * 170.0], [14, 600, 600 * 136.0]],
    }
    facts: dict[str, Any] = {
        "classes": [made.a_class(["note"], 1000)],
        "fillfactor": 70,
        "sample": sample,
    }
    found = _by_kind(made.table_of(made.counters(1000, 300, 700), **facts))
    assert _mid(found["row_grew"].updates) == 700
    assert "34 bytes longer" in found["row_grew"].detail
    sample = sample | {"ages": [[9, 400, 400 * 150.0], [14, 600, 600 * 150.0]]}
    still = _by_kind(made.table_of(made.counters(1000, 300, 700), **facts | {"sample": sample}))
    assert "row_grew" not in still


def test_wal_bytes_follow_the_records() -> None:
    """A HOT update of one column: 68 bytes and the column; a moved row costs row and indexes."""
    table = made.table_of(
        made.counters(2, 1, 1),
        classes=[made.a_class(["state"], 1, same=["state"]), made.a_class(["note"], 1)],
    )
    found = _by_kind(table)
    # 24 + 20 + 16 + 5 and a byte of header; 116 bytes of columns behind it.
    hot = found["hot"].wal_bytes
    assert isinstance(hot, Interval)
    assert hot.low == 70
    # LOCK 54; 24 + 20 + 8 + 16 + 5 + (139 - 23); three leaf entries of 64 bytes; pruning.
    assert _mid(found["no_room"].wal_bytes) == 54 + 73 + 116 + 3 * 64 + 57


@pytest.mark.parametrize(
    ("classes", "inserts", "explained"),
    [
        ([made.a_class(["note"], 100)], 0, True),
        ([made.a_class(["note"], 80)], 0, False),
        ([], 0, False),
        ([made.a_class(["note"], 120, kind="upsert")], 20, True),
        ([made.a_class(["note"], 120, kind="upsert")], 40, False),  # some may have been inserted
        ([made.a_class(["note"], 60), made.a_class(["note"], 50, kind="merge")], 10, True),
        ([made.a_class(["note"], None)], 0, False),
    ],
)
def test_statements_explain_all_updates_where_their_rows_are_all(
    classes: list[dict[str, Any]], inserts: int, explained: bool
) -> None:
    """What an upsert or MERGE has inserted is counted as a row, but is no update."""
    table = made.table_of(made.counters(100, 90, 10) | {"n_tup_ins": inserts}, classes=classes)
    seen = (table.observed or {})["updates"]
    if any(found["kind"] != "update" for found in seen["classes"]):
        seen["unattributed_frac"] = None
    found = updates_of(replace(table, observed=made.seen_of(table)), 18)
    assert found is not None
    assert found.is_explained is explained
