"""Remarks: who holds the horizon, autovacuum, the row, indexes against their reads."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import observed_table as made
import pytest

from pgheadroom.advise.blame import within
from pgheadroom.advise.cold_updates import Blamed, IndexFinding
from pgheadroom.advise.foreseen import Point
from pgheadroom.advise.remark_index import Reads, index_remark, reads_of, rule_remark
from pgheadroom.advise.remarks import first_remarks, table_remarks
from pgheadroom.advise.table_advice import Gain, Remark
from pgheadroom.outcome import Value, middle
from pgheadroom.profile import Profile
from pgheadroom.types import Interval

BUSY = made.counters(1000, 400, 600)


def _with_server(profile: Profile, **observed: Any) -> Profile:
    facts = {"interval_s": 100.0, "counters": {"xids": 1000}} | observed
    server = replace(profile.server, observed=made.seen_of_server(**facts), autovacuum=True)
    return replace(profile, server=server)


def _holder(kind: str, **facts: Any) -> dict[str, Any]:
    return {
        "kind": kind,
        "name": "4711",
        "backend_type": "client backend",
        "application_name": "psql",
        "usename": "bob",
        "state": "idle in transaction",
        "holds_data": True,
        "age_xids_max": 5000,
        "seen": 3,
        "transaction_age_s": 7500.0,
    } | facts


def _first(*holders: dict[str, Any], **observed: Any) -> tuple[Remark, ...]:
    horizon = {"series": [], "holders": list(holders), "stood_still": []}
    return first_remarks(_with_server(made.profile_of(BUSY), horizon=horizon, **observed))


@pytest.mark.parametrize(
    ("kind", "facts", "said"),
    [
        ("session", {}, "pg_terminate_backend(4711)"),
        ("prepared", {"name": "it's"}, "ROLLBACK PREPARED 'it''s'"),
        ("slot", {"name": "s1", "transaction_age_s": None}, "pg_drop_replication_slot('s1')"),
        ("standby", {"transaction_age_s": None}, "hot_standby_feedback"),
    ],
)
def test_each_holder_is_named_with_what_ends_it(
    kind: str, facts: dict[str, Any], said: str
) -> None:
    """A DBA reads who, how old, and the way out; nothing of it is a statement to execute."""
    (remark,) = _first(_holder(kind, **facts))
    assert said in remark.text
    assert "5,000 transactions back" in remark.text
    assert "No fillfactor helps" in remark.text
    assert (remark.kind, remark.statements) == ("horizon", ())


@pytest.mark.parametrize(
    "harmless",
    [
        {"holds_data": False},
        {"transaction_age_s": 2.0},
        {"age_xids_max": 1},
    ],
)
def test_the_works_own_sessions_are_no_finding(harmless: dict[str, Any]) -> None:
    """Short transactions, other databases' and catalogs' horizons hold nothing here."""
    assert _first(_holder("session", **harmless)) == ()


def test_the_oldest_holder_comes_first_and_says_it_once() -> None:
    """Several holders, one sentence about fillfactors."""
    remarks = _first(_holder("session", name="1"), _holder("prepared", name="2", age_xids_max=9000))
    assert [("No fillfactor" in r.text, r.text.split()[0]) for r in remarks] == [
        (True, "Prepared"),
        (False, "Session"),
    ]


def test_a_horizon_held_by_nobody_that_may_be_seen_is_said() -> None:
    """Without pg_monitor others' sessions do not show their horizon."""
    horizon = {
        "series": [],
        "holders": [],
        "stood_still": [{"start_frac": 0.1, "length_frac": 0.8}],
    }
    (remark,) = first_remarks(_with_server(made.profile_of(BUSY), horizon=horizon))
    assert "stood still for 80 %" in remark.text
    assert "pg_monitor" in remark.text


def _kinds(profile: Profile) -> dict[str, Remark]:
    return {r.kind: r for r in table_remarks(profile.table("jobs"), profile)}


def test_a_small_busy_table_has_no_remarks() -> None:
    """Findings are for what matters: 10,000 rows of usual width have none."""
    assert _kinds(_with_server(made.profile_of(BUSY))) == {}


def test_autovacuum_of_a_big_table_comes_with_its_undo() -> None:
    """A fifth of 100 million rows is what it waits for; one option changes that, one undoes it."""
    profile = _with_server(made.profile_of(BUSY, rows=100_000_000))
    remark = _kinds(profile)["autovacuum"]
    assert "waits for 20,000,050 dead rows" in remark.text
    assert (middle(remark.gain["dead_rows"].then) or 0) < 1_000_000
    (statement,) = remark.statements
    assert statement == {
        "sql": 'ALTER TABLE "public"."jobs" SET (autovacuum_vacuum_scale_factor = 0.007);',
        "undo": 'ALTER TABLE "public"."jobs" RESET (autovacuum_vacuum_scale_factor);',
    }
    masked = _with_server(made.profile_of(BUSY, rows=100_000_000), masked=True)
    assert _kinds(masked)["autovacuum"].statements == ()


def test_autovacuum_that_is_set_already_is_put_back_by_the_undo() -> None:
    """The undo restores the value that was there, not the default."""
    profile = _with_server(made.profile_of(BUSY, rows=100_000_000))
    table = replace(profile.table("jobs"), reloptions={"autovacuum_vacuum_scale_factor": "0.1"})
    (remark,) = [r for r in table_remarks(table, profile) if r.kind == "autovacuum"]
    assert remark.statements[0]["undo"].endswith("SET (autovacuum_vacuum_scale_factor = 0.1);")
    off = replace(table, reloptions={"autovacuum_enabled": "off"})
    (remark,) = [r for r in table_remarks(off, profile) if r.kind == "autovacuum"]
    assert remark.statements[0] == {
        "sql": 'ALTER TABLE "public"."jobs" RESET (autovacuum_enabled);',
        "undo": 'ALTER TABLE "public"."jobs" SET (autovacuum_enabled = off);',
    }


def test_columns_in_a_bad_order_are_counted() -> None:
    """bool, int8, bool, int8 loses 14 bytes of padding that two int8 first do not."""
    columns = [
        {"name": "a", "type": "bool"},
        {"name": "id", "type": "int8", "values": {"kind": "serial"}},
        {"name": "b", "type": "bool"},
        {"name": "c", "type": "int8"},
    ]
    profile = _with_server(made.profile_of(BUSY, columns=columns, indexes=[made.PKEY]))
    remark = _kinds(profile)["column_order"]
    assert remark.gain["row_bytes"] == Gain(now=60, then=52)
    assert "id, c, a, b" in remark.text
    few = replace(profile, tables=(replace(profile.tables[0], rows=2),))
    assert "column_order" not in _kinds(few), "16 bytes in all are no advice"


def test_wide_and_growing_rows_are_told() -> None:
    """No reserve holds a version of 5,000 bytes; rows that grow outgrow any reserve."""
    wide = [
        *made.COLUMNS[:3],
        {"name": "note", "type": "text", "width": {"min_bytes": 5000, "max_bytes": 5000}},
    ]
    remark = _kinds(_with_server(made.profile_of(BUSY, columns=wide)))["row_width"]
    assert "no fillfactor keeps" in remark.text
    classes = [made.a_class(["note"], 1000, appended=["note"])]
    remark = _kinds(_with_server(made.profile_of(BUSY, classes=classes)))["growth"]
    assert "append to a column" in remark.text


def _point(hot: Any, wal: float = 100.0) -> Point:
    return Point(
        fillfactor=100,
        hot_frac=hot,
        newpage_frac=0.0,
        heap_bytes=1e6,
        index_bytes=wal * 1e4,
        wal_bytes_per_update=wal,
        pages_modified_per_update=0.5,
        seq_scan_pages=100,
    )


BLAMED = Blamed(
    name="jobs_state", columns=("state",), updates=600, certainty="certain", scans=3, total_scans=30
)
NOW = _point(Interval(low=0.3, mid=0.4, high=0.5, level=0.9), 300.0)
THEN = _point(0.99)


def _reads(**facts: Any) -> Reads:
    table = made.table_of(BUSY, indexes=[made.PKEY, made.STATE | facts])
    found = reads_of(table, "jobs_state")
    assert found is not None
    return found


def test_an_index_is_weighed_against_its_reads() -> None:
    """Gain first, then reads; never the advice to drop it."""
    remark = index_remark(BLAMED, _reads(), NOW, THEN, major=18)
    assert remark is not None
    assert "from 40.0 % to 99.0 %" in remark.text
    assert "from 300 to 100 bytes" in remark.text
    assert "read 3 times in the interval, 30 times in all, against 600" in remark.text
    assert "BRIN ends no HOT" in remark.text
    assert "drop" not in remark.text.lower()
    assert remark.statements == ()
    assert remark.gain["hot_frac"] == Gain(
        now=Interval(low=0.3, mid=0.4, high=0.5, level=0.9), then=0.99
    )
    old = index_remark(BLAMED, _reads(), NOW, THEN, major=15)
    assert old is not None
    assert "BRIN" not in old.text


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"counters": {}, "totals": {}}, "nobody has counted"),
        ({"counters": {"idx_scan": 0}, "totals": {"idx_scan": 0}}, "was not read since"),
        ({"counters": {"idx_scan": 0}, "totals": {"idx_scan": 7}}, "7 times before"),
        (
            {
                "counters": {"idx_scan": 9000, "idx_tup_read": 9000, "idx_tup_fetch": 10},
                "totals": {"idx_scan": 9000},
            },
            "index-only scans: more often than it ended HOT, so it may well be worth more",
        ),
        ({"columns": ["owner"], "include": ["state"]}, "without state in INCLUDE"),
        (
            {"columns": ["owner", "state"], "ends_hot_by_columns": ["owner", "state"]},
            "narrowed to owner",
        ),
        ({"columns": ["owner"], "predicate": "state = 0"}, "predicate alone names"),
    ],
)
def test_reads_and_alternatives_are_said(facts: dict[str, Any], said: str) -> None:
    """Unread, unknown, read more than it costs; INCLUDE, narrowing, predicates."""
    remark = index_remark(BLAMED, _reads(**facts), NOW, THEN, major=18)
    assert remark is not None
    assert said.lower() in remark.text.lower()


def test_an_index_that_would_become_a_copy_is_said_to_be_one() -> None:
    """Narrowed to id it would have been the primary key once more."""
    reads = replace(_reads(columns=["id", "state"]), others=(("jobs_pkey", ("id", "owner")),))
    for others, said in ((reads.others, True), ((("other", ("owner", "id")),), False)):
        remark = index_remark(BLAMED, replace(reads, others=others), NOW, THEN, major=18)
        assert remark is not None
        assert "arrowed to id it would end no HOT" in remark.text
        assert ("but duplicate jobs_pkey: it may be dropped" in remark.text) == said


FINDING = IndexFinding(
    table="jobs",
    name="jobs_state",
    columns=({"column": "state", "reads": "key", "assigned": "state"},),
    updates_frac=1.0,
    hot_frac_now=None,
    hot_frac_then=None,
    wal_bytes_saved_per_day=None,
    evidence="estimated",
    certainty="certain",
    enforces=None,
    only_with=(),
)


def test_what_another_method_writes_is_not_the_twins() -> None:
    """A B-tree stands for GIN in the twin: HOT is its own, WAL is the statements', or nobody's."""
    finding = replace(
        FINDING, hot_frac_now=0.4, hot_frac_then=0.99, wal_bytes_saved_per_day=3 * 2**30
    )
    unknown = replace(finding, wal_bytes_saved_per_day=None)
    for found, said in ((finding, True), (unknown, False), (None, False)):
        remark = index_remark(BLAMED, _reads(method="gin"), NOW, THEN, major=18, finding=found)
        assert remark is not None
        assert ("3 GiB of WAL a day less" in remark.text) == said
        assert "bytes" not in remark.text
        assert {*remark.gain} == {"hot_frac"}


@pytest.mark.parametrize(
    "facts", [{"is_unique": True}, {"is_exclusion": True}, {"is_replica_identity": True}]
)
def test_what_enforces_something_is_never_remarked(facts: dict[str, Any]) -> None:
    """Unique indexes and constraints are not there for reading."""
    assert index_remark(BLAMED, _reads(**facts), NOW, THEN, major=18) is None


def test_a_share_that_nobody_knows_is_no_gain() -> None:
    """It was shown as "hot_frac - % -> - %"."""
    assert rule_remark(FINDING, BLAMED, _reads(), major=18).gain == {}
    known = replace(FINDING, hot_frac_then=0.99)
    gain = rule_remark(known, BLAMED, _reads(), major=18).gain
    assert gain == {"hot_frac": Gain(now=None, then=0.99)}


@pytest.mark.parametrize(
    ("saved", "said"),
    [
        (within(0.0, 0.0, 3 * 2.0**20), "Without it no more than 3 MiB of WAL a day less"),
        (0.0, "Without it nothing that could be told of WAL a day less"),
        (within(0.0, 2.0**20, 2.0**21), "Without it about 1 MiB of WAL a day less"),
    ],
)
def test_an_index_that_may_cost_nothing_is_bounded(saved: Value, said: str) -> None:
    """A queue's index was said to cost "about 0 B of WAL a day", for 0 was in the middle."""
    finding = replace(FINDING, wal_bytes_saved_per_day=saved)
    assert said in rule_remark(finding, BLAMED, _reads(), major=18).text


def test_no_gain_is_no_remark() -> None:
    """Where the twin sees no HOT to win there is nothing to say."""
    assert index_remark(BLAMED, _reads(), NOW, _point(0.405), major=18) is None
