"""Which index ends HOT, by which column, and what it costs: by rule, without a play."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import observed_table as made
import pytest

from pgheadroom.advise.causes import causes_of
from pgheadroom.advise.cold_updates import IndexFinding
from pgheadroom.advise.foreseen import Point
from pgheadroom.advise.index_finding import findings_of, predicted, ranked
from pgheadroom.advise.remark_index import reads_of, rule_remark
from pgheadroom.advise.row import same_page_bytes
from pgheadroom.advise.updates import updates_of
from pgheadroom.outcome import ends, mid
from pgheadroom.profile import TableProfile
from pgheadroom.types import Interval

DAYS = 86_400 / 10
"""Intervals of `observed_table` in a day."""


def table_of(
    classes: Sequence[dict[str, Any]],
    indexes: Sequence[dict[str, Any]],
    *,
    count: int = 1000,
    hot: int = 0,
    newpage: int = 0,
    **facts: Any,
) -> TableProfile:
    """A table whose updates are those of the classes."""
    return made.table_of(
        made.counters(count, hot, newpage), classes=classes, indexes=indexes, **facts
    )


def found_in(table: TableProfile, major: int = 18) -> tuple[IndexFinding, ...]:
    """The findings of a table."""
    updates = updates_of(table, major)
    return findings_of(table, updates, causes_of(table, major), major, None).each


def together_in(table: TableProfile, major: int = 18) -> list[tuple[str, float, float, float]]:
    """Several indexes of a table: names, updates that change them, HOT now and without all."""
    updates = updates_of(table, major)
    found = findings_of(table, updates, causes_of(table, major), major, None).together
    return [
        (
            " ".join(one.names),
            mid(one.updates_frac),
            mid(one.hot_frac_now),
            mid(one.hot_frac_then),
        )
        for one in found
    ]


def test_the_index_whose_column_is_assigned_is_found_with_its_share_and_its_wal() -> None:
    """Half of the updates assign `state`: those, not the others, could be HOT without the index."""
    classes = [made.a_class(["state"], 500), made.a_class(["note"], 500)]
    table = table_of(classes, [made.PKEY, made.OWNER, made.STATE], hot=500)
    (finding,) = found_in(table)
    assert finding.name == "jobs_state"
    assert finding.columns == ({"column": "state", "reads": "key", "assigned": "state"},)
    assert mid(finding.updates_frac) == pytest.approx(0.5)
    assert (finding.hot_frac_now, mid(finding.hot_frac_then)) == (0.5, pytest.approx(1.0))
    # An entry in each of three indexes goes with the cold update: about 200 bytes.
    assert mid(finding.wal_bytes_saved_per_day) == pytest.approx(500 * 192 * DAYS, rel=0.1)
    assert finding.evidence == "estimated"


@pytest.mark.parametrize(
    ("facts", "reads"),
    [
        ({"columns": ["owner"], "include": ["state"]}, "INCLUDE"),
        ({"columns": ["owner"], "predicate": "state = 0"}, "predicate"),
        ({"columns": ["(expression)"], "expressions": ["abs(state)"]}, "expression"),
    ],
)
def test_the_column_that_does_it_is_named_and_not_another_assigned_one(
    facts: dict[str, Any], reads: str
) -> None:
    """`note` is assigned too, and no index reads it; `owner` is a key, and nobody assigns it."""
    index = made.index("jobs_x", ["owner"])
    table = table_of([made.a_class(["note", "state"], 1000)], [made.PKEY, index])
    assert table.observed is not None
    table.observed["indexes"][1].update(facts, ends_hot_by_columns=["owner", "state"])
    (finding,) = found_in(replace(table, observed=made.seen_of(table)))
    assert finding.by == f"state ({reads})"


@pytest.mark.parametrize(("pages", "is_free"), [(1, True), (2, False)])
def test_a_partial_index_that_never_had_an_entry_saves_nothing(pages: int, is_free: bool) -> None:
    """
    Eleven of pg-boss's indexes are of ways to queue that a program may not use, and are one page.

    A third of all WAL was to be saved without seven of them, of which four were empty.
    """
    indexes = [made.PKEY, made.STATE, made.index("jobs_strict", ["owner"])]
    table = table_of([made.a_class(["state"], 1000)], indexes)
    assert table.observed is not None
    table.observed["indexes"][2].update(
        predicate="state = 4", ends_hot_by_columns=["owner", "state"], main_bytes=8192 * pages
    )
    made_of = [
        replace(one, where="state = 4") if one.name == "jobs_strict" else one
        for one in table.indexes
    ]
    table = replace(table, indexes=tuple(made_of), observed=made.seen_of(table))
    found = {one.name: mid(one.wal_bytes_saved_per_day) for one in found_in(table)}
    assert set(found) == {"jobs_state", "jobs_strict"}
    assert (found["jobs_strict"] == 0) is is_free
    assert found["jobs_state"] > 0


@pytest.mark.parametrize("major", [15, 18])
def test_a_generated_column_is_named_with_what_it_is_made_from(major: int) -> None:
    """
    Nobody assigns `state`, yet it changes with `owner`, of which it is generated.

    On 15 no counter of new pages tells that an index did it: the statements have to.
    """
    table = table_of([made.a_class(["owner"], 1000)], [made.PKEY, made.STATE])
    assert table.observed is not None
    for column in table.observed["columns"]:
        if column["name"] == "state":
            column |= {"generated": "stored", "generated_from": ["owner"]}
    (finding,) = found_in(replace(table, observed=made.seen_of(table)), major)
    assert finding.by == "state (generated from owner)"


def test_two_indexes_over_what_changes_are_only_worth_dropping_together() -> None:
    """Without one of them alone the updates are as cold as before; an entry is all that goes."""
    other = made.index("jobs_both", ["owner", "state"])
    table = table_of([made.a_class(["state"], 1000)], [made.PKEY, made.STATE, other])
    findings = {finding.name: finding for finding in found_in(table)}
    assert findings["jobs_state"].only_with == ("jobs_both",)
    assert findings["jobs_both"].only_with == ("jobs_state",)
    for finding in findings.values():
        assert mid(finding.hot_frac_then) == finding.hot_frac_now == 0
        assert mid(finding.updates_frac) == 1, "each alone ends HOT for all"
        saved = mid(finding.wal_bytes_saved_per_day) / DAYS
        assert 1000 * 50 < saved < 1000 * 90, "its entries, of all of the updates"
    assert together_in(table) == [("jobs_both jobs_state", 1.0, 0.0, 1.0)]


def test_two_indexes_that_change_in_statements_of_their_own_give_their_part_each() -> None:
    """Without one alone its own updates are HOT, and all are without both."""
    classes = [made.a_class(["state"], 600), made.a_class(["owner"], 400)]
    table = table_of(classes, [made.PKEY, made.STATE, made.OWNER])
    findings = {finding.name: finding for finding in found_in(table)}
    for name, part in (("jobs_state", 0.6), ("jobs_owner", 0.4)):
        assert findings[name].only_with == ()
        assert mid(findings[name].updates_frac) == pytest.approx(part)
        assert mid(findings[name].hot_frac_then) == pytest.approx(part)
    assert together_in(table) == [("jobs_owner jobs_state", 1.0, 0.0, 1.0)]


def test_of_three_indexes_those_for_the_same_updates_go_together_and_then_all() -> None:
    """Two are changed by one statement, the third by another; a unique one is in no set."""
    classes = [made.a_class(["state"], 700), made.a_class(["owner"], 300)]
    both = made.index("jobs_more", ["state", "note"])
    table = table_of(classes, [made.PKEY, made.STATE, both, made.OWNER])
    assert together_in(table) == [
        ("jobs_more jobs_state", 0.7, 0.0, 0.7),
        ("jobs_more jobs_owner jobs_state", 1.0, 0.0, 1.0),
    ]
    unique = made.index("jobs_more", ["state", "note"], is_unique=True)
    table = table_of(classes, [made.PKEY, made.STATE, unique, made.OWNER])
    assert together_in(table) == [("jobs_owner jobs_state", 1.0, 0.0, 0.3)]


def test_an_index_among_many_that_change_together_is_a_finding() -> None:
    """Thirty have a thirtieth of the updates each, shared out; each alone ends HOT for all."""
    many = [made.index(f"jobs_{n}", ["state"]) for n in range(30)]
    table = table_of([made.a_class(["state"], 1000)], [made.PKEY, *many])
    assert len(found_in(table)) == 30
    assert [len(names.split()) for names, *_ in together_in(table)] == [30]


def test_a_hash_index_beside_another_is_worth_its_entries() -> None:
    """
    Without one alone the updates stay cold, and its own records go, of 72 bytes.

    So many have 6,000 Hash/INSERT on 18.4, over an integer and over an expression: 432,000.
    """
    ways = [made.index(f"jobs_{n}", ["state"], method="hash") for n in (1, 2)]
    for finding in found_in(table_of([made.a_class(["state"], 1000)], [made.PKEY, *ways])):
        saved = finding.wal_bytes_saved_per_day
        assert mid(saved) == pytest.approx(1000 * 72 * DAYS)


def test_wal_that_was_counted_prices_any_access_method_and_bounds_the_saving() -> None:
    """A GIN index has no layout here: with the statement's own WAL it has a price, else none."""
    gin = made.index("jobs_note", ["note"], method="gin")
    counted = [made.a_class(["note"], 1000, wal_bytes=1000 * 1500)]
    (finding,) = found_in(table_of(counted, [made.PKEY, gin]))
    saved = finding.wal_bytes_saved_per_day
    assert isinstance(saved, Interval)
    assert 0 < saved.low <= saved.mid <= saved.high <= 1000 * 1500 * DAYS
    table = table_of([made.a_class(["note"], 1000)], [made.PKEY, gin])
    (finding,) = found_in(table)
    assert finding.wal_bytes_saved_per_day is None
    reads = reads_of(table, "jobs_note")
    assert reads is not None
    (blamed,) = (one for cause in causes_of(table, 18) for one in cause.indexes)
    said = rule_remark(finding, blamed, reads, major=18).text
    assert "jobs_note (gin) is not priced" in said


@pytest.mark.parametrize("pruning", [5, 30, 57])
def test_pruning_is_no_more_than_what_was_counted_leaves_room_for(pruning: int) -> None:
    """
    A queue's 144 bytes an update were the row's 73, its entry in the key, and little pruning.

    A pruning for each HOT update was taken off, and a saving of 64 bytes became 13.
    """
    indexes = [made.PKEY, made.STATE]  # 64 bytes an entry
    plain = table_of([made.a_class(["state"], 1000)], indexes)
    heap = same_page_bytes(plain, ["state"], wal_level="replica").mid
    counted = 1000 * round(heap + 128 + pruning)
    table = table_of([made.a_class(["state"], 1000, wal_bytes=counted)], indexes)
    (finding,) = found_in(table)
    low, likely, _ = ends(finding.wal_bytes_saved_per_day or 0.0)
    assert low / 1000 / DAYS == pytest.approx(128)
    assert likely / 1000 / DAYS == pytest.approx(128)


def test_a_summarizing_index_is_a_finding_on_15_alone() -> None:
    """BRIN ends HOT before 16."""
    brin = made.index("jobs_brin", ["note"], method="brin", is_summarizing=True)
    classes = [made.a_class(["note"], 1000)]
    assert found_in(table_of(classes, [made.PKEY, brin], hot=1000)) == ()
    old = made.table_of(made.counters(1000, 0), classes=classes, indexes=[made.PKEY, brin])
    assert [finding.name for finding in found_in(old, 15)] == ["jobs_brin"]


def test_what_enforces_something_is_found_and_said_to_stay() -> None:
    """It ends HOT all the same; only the statements can give that back."""
    unique = made.index("jobs_state", ["state"], is_unique=True)
    table = table_of([made.a_class(["state"], 1000)], [made.PKEY, unique])
    (finding,) = found_in(table)
    assert finding.enforces == "unique"
    reads = reads_of(table, "jobs_state")
    assert reads is not None
    (blamed,) = (one for cause in causes_of(table, 18) for one in cause.indexes)
    text = rule_remark(finding, blamed, reads, major=18).text
    assert "so it stays" in text
    assert "Without it" not in text


def test_few_updates_are_no_finding() -> None:
    """Three in a hundred."""
    classes = [made.a_class(["state"], 30), made.a_class(["note"], 970)]
    assert found_in(table_of(classes, [made.PKEY, made.STATE], hot=970)) == ()


def test_they_are_ranked_by_the_wal_they_cost_whatever_they_are_called() -> None:
    """The dearest first; what has no price last."""
    one = found_in(table_of([made.a_class(["state"], 1000)], [made.PKEY, made.STATE]))[0]
    made_of = [
        _named(one, "a", 5.0),
        _named(one, "b", None),
        _named(one, "c", 7.0),
    ]
    assert [finding.name for finding in ranked(made_of)] == ["c", "a", "b"]


def _named(finding: IndexFinding, name: str, saved: float | None) -> IndexFinding:
    return replace(finding, name=name, wal_bytes_saved_per_day=saved)


def _point(hot: float, wal: float) -> Point:
    return Point(
        fillfactor=100,
        hot_frac=hot,
        newpage_frac=0.0,
        heap_bytes=1e6,
        index_bytes=1e6,
        wal_bytes_per_update=Interval(low=wal - 10, mid=wal, high=wal + 10, level=0.9),
        pages_modified_per_update=0.5,
        seq_scan_pages=100,
    )


def test_the_twin_takes_the_estimates_place_but_prices_no_other_method() -> None:
    """What it plays as a B-tree has no WAL of its own."""
    table = table_of([made.a_class(["state"], 1000)], [made.PKEY, made.STATE])
    (finding,) = found_in(table)
    found = predicted(finding, _point(0.0, 400), _point(0.97, 100), 100.0, is_priced=True)
    assert (found.evidence, found.hot_frac_then) == ("predicted", 0.97)
    assert mid(found.wal_bytes_saved_per_day) == pytest.approx(300 * 100 * 86_400)
    gin = made.index("jobs_note", ["note"], method="gin")
    table = table_of([made.a_class(["state"], 1000)], [made.PKEY, made.STATE, gin])
    (finding,) = found_in(table)
    found = predicted(finding, _point(0.0, 400), _point(0.97, 100), 100.0, is_priced=False)
    assert found.hot_frac_then == 0.97
    assert found.wal_bytes_saved_per_day == finding.wal_bytes_saved_per_day
