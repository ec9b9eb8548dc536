"""
What a migration does to the set of updates that can be HOT, over generated schemas and DDL.

Before, `check` played an added index and found that HOT rises by it ("gains HOT", exit code 0): a
calibration had made up a change that the index then seemed to end. The verdict is the rule's now,
and these are the rule's invariants, whatever stands in a schema, its statements and its DDL.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lengths import examples
from pgheadroom.advise.hot import HotIndex, HotShape, Part, blockers, can_be_hot, outcome, parts_of
from pgheadroom.advise.updates import Updates, updates_of
from pgheadroom.migration import check_migration, judging
from pgheadroom.migration.actions import (
    Action,
    AddIndex,
    DropColumn,
    DropIndex,
    MigrationStatement,
    NamedRelation,
    Rename,
    SetColumn,
    SetExpression,
    SetFillfactor,
    Work,
)
from pgheadroom.migration.catalog import NamedTables
from pgheadroom.migration.figures import Figures
from pgheadroom.migration.following import follow
from pgheadroom.migration.said import REAL_SHARE
from pgheadroom.migration.shape import Altered
from pgheadroom.profile import Profile

sys.path.insert(0, str(Path(__file__).parents[1] / "unit"))
import observed_table as made

bounded = settings(max_examples=examples(60), deadline=None, derandomize=True)

PLAIN = ("a", "b", "c", "d", "e")
COMPUTED = ("g", "h")
NAMES = (*PLAIN, *COMPUTED)
JOBS = NamedRelation(schema=None, name="jobs")
METHODS = ("btree", "hash", "gin", "brin")

some = st.frozensets(st.sampled_from(NAMES), max_size=2)


@st.composite
def hot_indexes(draw: st.DrawFn, name: str = "i") -> HotIndex:
    """An index over some columns, some of them by expression, predicate or INCLUDE."""
    return HotIndex(
        name=name,
        method=draw(st.sampled_from(METHODS)),
        keys=draw(st.frozensets(st.sampled_from(NAMES), min_size=1, max_size=2)),
        expressions=draw(some),
        include=draw(some),
        predicate=draw(some),
        whole_row=draw(st.sampled_from((False, False, False, False, True))),
    )


def _observed(index: HotIndex, name: str) -> dict[str, Any]:
    """The index as `observe` writes it; one that reads the row itself depends on every column."""
    columns = sorted(index.keys) + (["(expression)"] if index.expressions else [])
    found = made.index(name, columns, method=index.method)
    found["is_summarizing"] = index.method == "brin"
    found["ends_hot_by_columns"] = sorted(NAMES if index.whole_row else index.columns)
    if index.include - index.keys:
        found["include"] = sorted(index.include - index.keys)
    if index.expressions:
        found["expressions"] = ["f(" + ", ".join(sorted(index.expressions)) + ")"]
    if index.predicate:
        found["predicate"] = " AND ".join(f"{c} > 0" for c in sorted(index.predicate))
    return found


@st.composite
def profiles(draw: st.DrawFn) -> Profile:
    """A table with indexes, generated columns, classes of updates and counters that fit them."""
    version = draw(st.sampled_from(("15.18", "16.14", "18.4")))
    assigned = draw(
        st.lists(
            st.frozensets(st.sampled_from(PLAIN), min_size=1), min_size=1, max_size=4, unique=True
        )
    )
    rows = [draw(st.integers(1, 1000)) for _ in assigned]
    total = sum(rows) + draw(st.sampled_from((0, 0, 0, 200)))
    hot = draw(st.integers(0, total))
    newpage = None if version.startswith("15") else draw(st.integers(0, total - hot))
    columns = [
        {"name": "id", "type": "int8", "values": {"kind": "serial"}},
        *({"name": name, "type": "int4"} for name in NAMES),
    ]
    profile = made.profile_of(
        made.counters(total, hot, newpage),
        columns=columns,
        indexes=[made.PKEY],
        classes=[made.a_class(sorted(c), n) for c, n in zip(assigned, rows, strict=True)],
    )
    listed = draw(st.lists(hot_indexes(), max_size=3))
    seen = [made.PKEY, *(_observed(index, f"i{n}") for n, index in enumerate(listed))]
    reads = {name: draw(st.frozensets(st.sampled_from(PLAIN), max_size=2)) for name in COMPUTED}
    (table,) = profile.tables
    facts = dict(table.observed or {})
    facts["indexes"] = seen
    facts["columns"] = [
        {**column, "generated": "stored", "generated_from": sorted(reads[column["name"]])}
        if column["name"] in reads
        else column
        for column in facts["columns"]
    ]
    server = replace(
        profile.server,
        version=version,
        observed=made.seen_of_server(interval_s=10.0),
    )
    return replace(
        profile, tables=(replace(table, observed=made.seen_of(table, **facts)),), server=server
    )


@st.composite
def added(draw: st.DrawFn, name: str = "new") -> AddIndex:
    """An index or a constraint, as a parser gives it."""
    index = draw(hot_indexes())
    kind = draw(st.sampled_from(("index", "index", "unique constraint", "primary key")))
    if kind != "index":
        index = replace(
            index, method="btree", expressions=frozenset(), predicate=frozenset(), whole_row=False
        )
    return AddIndex(
        table=JOBS,
        name=name,
        kind=kind,
        method=index.method,
        columns=tuple(sorted(index.keys)),
        include=tuple(sorted(index.include)),
        depends=tuple(sorted(index.columns)),
        has_expressions=bool(index.expressions),
        has_predicate=bool(index.predicate),
        expression_columns=tuple(sorted(index.expressions)),
        predicate_columns=tuple(sorted(index.predicate)),
        whole_row=index.whole_row,
    )


def _follow(profile: Profile, actions: Sequence[Action]) -> Altered:
    catalog = NamedTables(profile)
    follow(
        catalog,
        [MigrationStatement(line=n, text="", actions=(a,)) for n, a in enumerate(actions, 1)],
    )
    # SetFillfactor of nothing: the table is followed, though nothing is done to it.
    if "jobs" not in catalog.altered:
        follow(
            catalog,
            [
                MigrationStatement(
                    line=1, text="", actions=(SetFillfactor(table=JOBS, fillfactor=None),)
                )
            ],
        )
    return catalog.altered["jobs"]


def _updates(profile: Profile) -> Updates:
    found = updates_of(profile.tables[0], int(profile.server.version[:2]))
    assert found is not None
    return found


def _parts(profile: Profile) -> tuple[Part, ...]:
    return parts_of(_updates(profile), _follow(profile, []).before)


def _sets(profile: Profile, actions: Sequence[Action]) -> tuple[frozenset[int], frozenset[int]]:
    """The parts that can be HOT before and after, by their number."""
    altered = _follow(profile, actions)
    parts = _parts(profile)
    return tuple(  # type: ignore[return-value]
        frozenset(n for n, part in enumerate(parts) if can_be_hot(shape, part))
        for shape in (altered.before, altered.after)
    )


@bounded
@given(profiles(), added(), added("newer"))
def test_an_index_more_never_enlarges_the_set(
    profile: Profile, index: AddIndex, second: AddIndex
) -> None:
    """Key, INCLUDE, expression, predicate, constraint: whatever it is over."""
    before, after = _sets(profile, [index])
    assert after <= before
    _, later = _sets(profile, [index, second])
    assert later <= after


@bounded
@given(
    profiles(),
    hot_indexes(),
    some,
    st.sampled_from(("keys", "expressions", "include", "predicate")),
)
def test_a_wider_index_never_enlarges_the_set(
    profile: Profile, index: HotIndex, more: frozenset[str], where: str
) -> None:
    """By a column of whatever part of it."""
    shape = _follow(profile, []).before
    wider = replace(index, **{where: getattr(index, where) | more})
    narrow, wide = (replace(shape, indexes=(*shape.indexes, one)) for one in (index, wider))
    for part in _parts(profile):
        assert can_be_hot(narrow, part) or not can_be_hot(wide, part)


@bounded
@given(profiles(), st.integers(0, 3))
def test_an_index_less_never_shrinks_the_set(profile: Profile, number: int) -> None:
    """Any index, the primary key's too."""
    listed = (profile.tables[0].observed or {})["indexes"]
    name = listed[number % len(listed)]["name"]
    before, after = _sets(profile, [DropIndex(index=NamedRelation(schema=None, name=name))])
    assert before <= after


@bounded
@given(profiles(), st.sampled_from(NAMES))
def test_a_column_less_never_shrinks_the_set(profile: Profile, name: str) -> None:
    """It takes its indexes with it, and the generated columns that read it."""
    before, after = _sets(profile, [DropColumn(table=JOBS, name=name)])
    assert before <= after


@bounded
@given(profiles(), added())
def test_an_index_over_nothing_assigned_leaves_the_set(profile: Profile, index: AddIndex) -> None:
    """Neither assigned, nor computed from what is assigned."""
    shape = _follow(profile, []).before
    touched = {
        name
        for part in _parts(profile)
        for name in (*part.assigned, *shape.computed(part.assigned))
    }
    free = tuple(name for name in index.depends if name not in touched)
    if not free or index.whole_row:
        return
    narrowed = replace(
        index,
        columns=free,
        include=(),
        depends=free,
        expression_columns=(),
        predicate_columns=(),
        has_expressions=False,
    )
    before, after = _sets(profile, [narrowed])
    assert before == after


@bounded
@given(
    profiles(),
    st.sampled_from(PLAIN),
    st.sampled_from(("columns", "include", "expression_columns", "predicate_columns")),
    st.booleans(),
)
def test_whatever_part_of_an_index_reads_a_changed_column_ends_hot(
    profile: Profile, name: str, where: str, is_unique: bool
) -> None:
    """Key, INCLUDE, expression or predicate: each part that changes the column is out."""
    facts: dict[str, Any] = {where: (name,), "depends": ("id", name)}
    facts |= {"columns": ("id", name)} if where == "columns" else {"columns": ("id",)}
    index = AddIndex(
        table=JOBS, name="new", kind="unique constraint" if is_unique else "index", **facts
    )
    after = _follow(profile, [index]).after
    for part in _parts(profile):
        if name in part.assigned - part.steady:
            assert not can_be_hot(after, part)
            (found,) = [b for b in blockers(after, part.assigned, part.steady) if b.index == "new"]
            assert (found.column, found.assigned) == (name, name)


@bounded
@given(profiles(), st.sampled_from(COMPUTED))
def test_an_index_over_a_stored_generated_column_ends_hot_by_what_it_reads(
    profile: Profile, name: str
) -> None:
    """What its expression reads counts as assigned; observed, new, or with a new expression."""
    index = AddIndex(table=JOBS, name="new", kind="index", columns=(name,), depends=(name,))
    fresh = [
        SetColumn(
            table=JOBS, name="z", type="int4", is_new=True, generated="stored", reads=("a", "b")
        ),
        replace(index, columns=("z",), depends=("z",)),
    ]
    again: list[Action] = [SetExpression(table=JOBS, name=name, reads=("a", "b")), index]
    shape = _follow(profile, []).before
    for actions, reads in (
        ([index], shape.generated[name]),
        (fresh, {"a", "b"}),
        (again, {"a", "b"}),
    ):
        after = _follow(profile, actions).after
        for part in _parts(profile):
            changes = part.assigned - part.steady
            if changes & reads and not (actions == [index] and name in part.steady):
                assert not can_be_hot(after, part)
    gone = _follow(profile, [SetExpression(table=JOBS, name=name, reads=None), index])
    before = _follow(profile, [SetExpression(table=JOBS, name=name, reads=None)])
    for part in _parts(profile):  # nothing assigns it any more
        assert can_be_hot(gone.after, part) == can_be_hot(before.after, part)


@bounded
@given(profiles(), added(), st.sampled_from((15, 16, 17, 18)))
def test_brin_ends_hot_on_15_alone(profile: Profile, index: AddIndex, major: int) -> None:
    """From 16 on summarizing indexes leave the set as it is; before, they are as any other."""
    profile = replace(profile, server=replace(profile.server, version=f"{major}.1"))
    counters = (profile.tables[0].observed or {})["counters"]
    if major > 15 and "n_tup_newpage_upd" not in counters:
        return
    brin = replace(index, method="brin", kind="index")
    before, after = _sets(profile, [brin])
    _, as_btree = _sets(profile, [replace(brin, method="btree")])
    assert after == (as_btree if major == 15 else before)


@bounded
@given(profiles(), added(), st.permutations(NAMES))
def test_renames_change_nothing(profile: Profile, index: AddIndex, order: list[str]) -> None:
    """Columns that change their names among each other, then an index by the new ones."""
    new = dict(zip(NAMES, order, strict=True))
    renames: list[Action] = [
        Rename(what="column", old=JOBS, column=name, new=f"{name}_on_its_way") for name in NAMES
    ]
    renames += [
        Rename(what="column", old=JOBS, column=f"{name}_on_its_way", new=new[name])
        for name in NAMES
    ]
    tasks = NamedRelation(schema=None, name="tasks")
    renames.append(Rename(what="table", old=JOBS, new="tasks"))
    turned = {
        field: tuple(new[name] for name in getattr(index, field))
        for field in ("columns", "include", "depends", "expression_columns", "predicate_columns")
    }
    moved = replace(index, table=tasks, **turned)
    assert _sets(profile, [*renames, moved]) == _sets(profile, [index])
    assert _sets(profile, renames) == _sets(profile, [])


@bounded
@given(profiles(), added())
def test_an_index_that_comes_and_goes_leaves_the_set(profile: Profile, index: AddIndex) -> None:
    """Under its own name, or the one that it has been given."""
    drop = DropIndex(index=NamedRelation(schema=None, name="new"))
    renamed = Rename(what="index", old=NamedRelation(schema=None, name="new"), new="other")
    other = DropIndex(index=NamedRelation(schema=None, name="other"))
    for actions in ([index, drop], [index, renamed, other]):
        before, after = _sets(profile, actions)
        assert before == after
        assert _follow(profile, actions).edits == []


@bounded
@given(
    profiles(),
    st.lists(
        st.sampled_from(
            (
                SetColumn(table=JOBS, name="a", type="int8", is_new=False),
                SetColumn(table=JOBS, name="b", type="text", is_new=False, has_using=True),
                SetColumn(table=JOBS, name="z", type="int4", is_new=True, default="volatile"),
                SetFillfactor(table=JOBS, fillfactor=70),
                Work(table=JOBS, kind="set not null", column="a"),
                Work(table=JOBS, kind="cluster"),
                Work(table=JOBS, kind="add check"),
            )
        ),
        max_size=3,
    ),
)
def test_types_rewrites_and_locks_leave_the_set(profile: Profile, actions: list[Action]) -> None:
    """ALTER TYPE that rewrites, a new column, fillfactor, checks: no index reads anything else."""
    before, after = _sets(profile, actions)
    assert before == after


DDL = st.lists(
    st.one_of(
        added("x"),
        added("y"),
        st.sampled_from(
            tuple(DropIndex(index=NamedRelation(schema=None, name=n)) for n in ("i0", "i1", "x"))
        ),
        st.sampled_from(
            tuple(
                Rename(what="column", old=JOBS, column=old, new=new)
                for old, new in (("a", "aa"), ("aa", "a"), ("b", "a"), ("g", "gg"))
            )
        ),
        st.sampled_from(NAMES).map(lambda name: DropColumn(table=JOBS, name=name)),
        st.sampled_from(NAMES).map(
            lambda name: SetColumn(table=JOBS, name=name, type="int8", is_new=False)
        ),
        st.just(
            SetColumn(
                table=JOBS, name="z", type="int4", is_new=True, generated="stored", reads=("c",)
            )
        ),
    ),
    min_size=1,
    max_size=5,
)


@bounded
@given(profiles(), DDL)
def test_the_verdict_is_the_rules(profile: Profile, actions: list[Action]) -> None:
    """`loses HOT` if and only if a real share leaves the set, `gains HOT` only if one joins it."""
    altered = _follow(profile, actions)
    updates, parts = _updates(profile), _parts(profile)
    found = outcome(parts, altered.before, altered.after)
    verdict = judging.judge(updates, altered, found).verdict
    before, after = (
        {n for n, part in enumerate(parts) if can_be_hot(shape, part)}
        for shape in (altered.before, altered.after)
    )
    lost, gained = (
        sum(parts[n].frac for n in numbers) for numbers in (before - after, after - before)
    )
    assert (verdict == "loses HOT") == (lost >= REAL_SHARE)
    if verdict == "gains HOT":
        assert gained >= REAL_SHARE
    if all(isinstance(action, AddIndex | SetColumn) for action in actions):
        assert verdict != "gains HOT"


@bounded
@given(
    profiles(),
    DDL,
    st.floats(0, 1),
    st.floats(0, 1),
    st.sampled_from((None, 70, 100)),
)
def test_figures_follow_the_verdict(
    profile: Profile, actions: list[Action], now: float, then: float, fillfactor: int | None
) -> None:
    """Whatever the twin foresees: it changes no verdict, and is not told where it contradicts."""
    steps: list[Action] = list(actions)
    if fillfactor is not None:
        steps.append(SetFillfactor(table=JOBS, fillfactor=fillfactor))
    listed = [MigrationStatement(line=n, text="", actions=(a,)) for n, a in enumerate(steps, 1)]
    lie = Figures(hot_now=now, hot_then=then, wal_now=100.0, wal_then=200.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(judging, "figures", lambda *_: lie)
        found = check_migration(profile, listed)
    for table in found.tables:
        set_now = table.lost_frac or 0.0, table.gained_frac or 0.0
        if table.verdict == "gains HOT" and set_now[1] < REAL_SHARE:
            assert table.fillfactor_then < table.fillfactor_now
        if table.verdict == "loses HOT" and set_now[0] < REAL_SHARE:
            assert table.fillfactor_then > table.fillfactor_now
        if table.wal_bytes_per_update_now is None:
            continue
        assert table.hot_frac_then == then
        if table.verdict == "loses HOT":
            assert then < now
        elif table.verdict == "gains HOT":
            assert then > now
        else:
            assert abs(then - now) < judging.HOT_CHANGE_MIN


@bounded
@given(st.integers(1, 1000), st.integers(0, 1000), st.sampled_from(("15.18", "18.4")))
def test_what_is_assigned_is_not_taken_to_change_where_hot_shows_otherwise(
    cold: int, hot: int, version: str
) -> None:
    """
    A framework assigns every column at each update, and HOT is high all the same.

    Then the columns that are indexed do not change: another index over them costs nothing. Of a
    column that no index has yet nothing is known: an index over it may cost all.
    """
    newpage = None if version.startswith("15") else 0
    profile = made.profile_of(
        made.counters(cold + hot, hot, newpage),
        classes=[made.a_class(["owner", "state", "note"], cold + hot)],
    )
    server = replace(profile.server, version=version, observed=made.seen_of_server())
    profile = replace(profile, server=server)
    again = AddIndex(table=JOBS, name="n", kind="index", columns=("state",), depends=("state",))
    unknown = replace(again, columns=("note",), depends=("note",))
    parts = _parts(profile)
    altered = _follow(profile, [again])
    found = outcome(parts, altered.before, altered.after)
    assert (found.lost_frac, found.gained_frac) == (0, 0)
    altered = _follow(profile, [unknown])
    share = hot / (cold + hot)
    assert outcome(parts, altered.before, altered.after).lost_frac == pytest.approx(share)


def test_the_whole_row_in_an_index_ends_hot_for_all() -> None:
    """PostgreSQL counts the row itself as changed by every update, an empty one too."""
    shape = HotShape(major=18, indexes=(HotIndex(name="i", whole_row=True),))
    assert not can_be_hot(shape, Part(assigned=frozenset(), frac=1.0))


def _computed_profile() -> Profile:
    """`owner` is indexed and generated from `note`, which all updates assign; all were HOT."""
    profile = made.profile_of(
        made.counters(1000, 1000, 0), classes=[made.a_class(["note"], 1000)], fillfactor=90
    )
    (table,) = profile.tables
    facts = dict(table.observed or {})
    facts["columns"] = [
        {**column, "generated": "stored", "generated_from": ["note"]}
        if column["name"] == "owner"
        else column
        for column in facts["columns"]
    ]
    server = replace(profile.server, observed=made.seen_of_server(interval_s=10.0))
    return replace(
        profile, tables=(replace(table, observed=made.seen_of(table, **facts)),), server=server
    )


def test_a_generated_column_is_steady_until_its_expression_is_another() -> None:
    """All updates were HOT, so its values stayed; those of the new expression nobody has seen."""
    profile = _computed_profile()
    parts = _parts(profile)
    assert [(part.frac, part.steady) for part in parts] == [(1.0, {"owner"})]
    for actions, lost in (
        ([], 0.0),
        ([SetExpression(table=JOBS, name="owner", reads=("note",))], 1.0),
        ([SetExpression(table=JOBS, name="owner", reads=("state",))], 0.0),
    ):
        altered = _follow(profile, actions)
        assert outcome(parts, altered.before, altered.after).lost_frac == lost


def test_a_column_takes_with_it_what_is_generated_from_it() -> None:
    """The generated column goes, and the index over it."""
    altered = _follow(_computed_profile(), [DropColumn(table=JOBS, name="note")])
    assert [index.name for index in altered.after.indexes] == ["jobs_pkey", "jobs_state"]
    assert (altered.after.generated, sorted(altered.names)) == ({}, ["id", "state"])


@pytest.mark.parametrize(
    ("fillfactor", "then", "verdict"),
    [
        (70, 0.8, "gains HOT"),
        (70, 0.505, "as before"),
        (70, 0.2, "as before"),
        (100, 0.2, "loses HOT"),
        (100, 0.495, "as before"),
        (100, 0.8, "as before"),
        (90, 0.2, "as before"),
    ],
)
def test_a_fillfactor_is_judged_by_play_in_its_own_direction(
    monkeypatch: pytest.MonkeyPatch, fillfactor: int, then: float, verdict: str
) -> None:
    """More room never loses HOT and less never gains it, whatever was played."""
    lie = Figures(hot_now=0.5, hot_then=then, wal_now=100.0, wal_then=100.0)
    monkeypatch.setattr(judging, "figures", lambda *_: lie)
    action = SetFillfactor(table=JOBS, fillfactor=fillfactor)
    statement = MigrationStatement(line=1, text="", actions=(action,))
    (found,) = check_migration(_computed_profile(), [statement]).tables
    assert found.verdict == verdict
