"""Causes on real servers: where the split is known, it comes out of an observation."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import observed
import pytest

from pgheadroom.advise.causes import causes_of
from pgheadroom.advise.cold_updates import Cause
from pgheadroom.advise.remarks import first_remarks
from pgheadroom.observe import find_classes, observe
from pgheadroom.outcome import Value
from pgheadroom.profile import Profile
from pgheadroom.servers import Cluster, Host, ServerPrograms
from pgheadroom.sources.log import StatementCounts
from pgheadroom.types import Interval

pytestmark = pytest.mark.usefixtures("run_parent")

DDL = """
CREATE TABLE roomy (id int4 PRIMARY KEY, state int4, v int4, note text)
    WITH (fillfactor = 50, autovacuum_enabled = off);
CREATE INDEX roomy_state ON roomy (state);
CREATE TABLE packed (id int4 PRIMARY KEY, state int4, v int4, note text)
    WITH (autovacuum_enabled = off);
CREATE INDEX packed_state ON packed (state);
INSERT INTO roomy SELECT i, 0, 0, repeat('n', 100) FROM generate_series(1, 2000) i;
INSERT INTO packed SELECT i, 0, 0, repeat('n', 100) FROM generate_series(1, 2000) i;
VACUUM ANALYZE;
"""


@contextmanager
def _started(programs: ServerPrograms, ddl: str = DDL) -> Iterator[tuple[Cluster, bool]]:
    with Host(programs) as host:
        cluster = host.cluster("main")
        has_statements = observed.start_with_contrib(cluster, {"autovacuum": "off"})
        observed.load(cluster, ddl)
        if has_statements:
            observed.load(cluster, "CREATE EXTENSION pg_stat_statements")
        yield cluster, has_statements


def _seen(cluster: Cluster, work: Callable[[], None], statements: tuple[str, ...] = ()) -> Profile:
    """Observe the work; statements stand in for what a server without the extension can tell."""
    recording = observed.watched(cluster, work)
    counts = StatementCounts(source="file", counts=Counter(statements), seen=1, cut=0)
    files = [counts] if statements else []
    return observe(recording, find_classes(recording, [], files), mask=False, sampled=True)


def _causes(profile: Profile, table: str, major: int) -> dict[str, Cause]:
    found = causes_of(profile.table(table), major, profile.server.observed)
    return {cause.kind: cause for cause in found}


def _holds(value: Value, truth: int) -> bool:
    return not value.excludes(truth) if isinstance(value, Interval) else value == truth


def _mid(value: Value) -> float:
    return value.mid if isinstance(value, Interval) else value or 0


def _update(cluster: Cluster, statement: str, rows: range) -> None:
    with observed.session(cluster) as connection:
        for row in rows:
            connection.execute(statement.encode(), (row,))


def test_roomy_pages_tell_hot_from_indexed(programs: ServerPrograms) -> None:
    """70 HOT, 40 that change the index, 25 that set it to its own value: exact from 16 on."""
    major = programs.version.major

    def work(cluster: Cluster) -> None:
        _update(cluster, "UPDATE roomy SET v = v + 1 WHERE id = %s", range(1, 71))
        _update(cluster, "UPDATE roomy SET state = state + 1 WHERE id = %s", range(500, 540))
        _update(cluster, "UPDATE roomy SET state = 0 WHERE id = %s", range(1000, 1025))

    with _started(programs) as (cluster, has_statements):
        profile = _seen(cluster, lambda: work(cluster))
    found = _causes(profile, "roomy", major)
    assert found["hot"].updates == 95
    assert sum(_mid(cause.updates) for cause in found.values()) == 135
    if major >= 16:
        assert {kind: cause.updates for kind, cause in found.items()} == {
            "hot": 95,
            "indexed_column": 40,
        }
        (blamed,) = found["indexed_column"].indexes
        assert (blamed.name, _mid(blamed.updates)) == ("roomy_state", 40)
        # Without statements the primary key may have changed as well.
        assert blamed.certainty == ("certain" if has_statements else "possible")
        assert isinstance(blamed.updates, Interval) is not has_statements
        assert found["indexed_column"].evidence == "measured"
    else:
        assert _holds(found["indexed_column"].updates, 40)
        assert found["indexed_column"].evidence == "estimated"
        assert _mid(found["indexed_column"].updates) == (40 if has_statements else 0)


def test_packed_pages_have_no_room(programs: ServerPrograms) -> None:
    """Nothing indexed is assigned: what was not HOT had no room, for none was ever kept."""
    major = programs.version.major

    def work(cluster: Cluster) -> None:
        # Rows of different pages, far apart: each finds its page full.
        _update(cluster, "UPDATE packed SET v = v + 1 WHERE id = %s", range(1, 1901, 100))

    with _started(programs) as (cluster, has_statements):
        profile = _seen(cluster, lambda: work(cluster))
    counters = observed.facts(profile, "packed")["counters"]
    cold = counters["n_tup_upd"] - counters["n_tup_hot_upd"]
    assert cold >= 15
    found = _causes(profile, "packed", major)
    if has_statements:
        assert found["no_room"].updates == cold
        assert "indexed_column" not in found
        assert found["no_room"].evidence == ("measured" if major >= 16 else "estimated")
    elif major >= 16:
        assert _holds(found["no_room"].updates, cold)
    if "no_room" in found:
        assert "fillfactor 100 keeps no room" in found["no_room"].detail.replace("F", "f", 1)


def test_a_mix_lies_inside_the_intervals(programs: ServerPrograms) -> None:
    """Full pages and an indexed column in one table: the truth is known by construction."""
    major = programs.version.major

    def work(cluster: Cluster) -> None:
        # The first update of a page moves its row; then pruning has made room for the next.
        _update(cluster, "UPDATE packed SET v = v + 1 WHERE id = %s", range(1, 1901, 100))
        _update(cluster, "UPDATE packed SET state = state + 1 WHERE id = %s", range(51, 1951, 100))
        _update(cluster, "UPDATE packed SET v = v + 1 WHERE id = %s", range(31, 1931, 100))

    def newpage(cluster: Cluster) -> int:
        with cluster.connect() as connection:
            row = connection.execute(
                "SELECT n_tup_upd - n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'packed'"
            ).fetchone()
        assert row is not None
        return int(row[0])

    with _started(programs) as (cluster, _):
        profile = _seen(cluster, lambda: work(cluster))
        assert newpage(cluster) >= 19
    counters = observed.facts(profile, "packed")["counters"]
    found = _causes(profile, "packed", major)
    # 19 changed the state, on whatever page; all others that were not HOT had no room.
    cold = counters["n_tup_upd"] - counters["n_tup_hot_upd"]
    assert counters["n_tup_upd"] == 57
    assert _holds(found["indexed_column"].updates, 19)
    assert _holds(found["no_room"].updates, cold - 19)
    assert sum(_mid(cause.updates) for cause in found.values()) == 57


@pytest.mark.parametrize(("fillfactor", "seed"), [(100, 1), (90, 2), (100, 3)])
@pytest.mark.contrib
def test_the_truth_of_each_update_lies_inside(
    programs: ServerPrograms, fillfactor: int, seed: int
) -> None:
    """Random rows, a third of the updates changes the index: each update's page is looked at."""
    drawn = random.Random(seed)
    truth: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    sets = (("v = v + 1", "other"), ("state = state + 1", "changed"), ("state = state", "same"))
    ddl = f"""
    CREATE TABLE mix (id int4 PRIMARY KEY, state int4, v int4, note text)
        WITH (fillfactor = {fillfactor}, autovacuum_enabled = off);
    CREATE INDEX mix_state ON mix (state);
    INSERT INTO mix SELECT i, 0, 0, repeat('n', 300) FROM generate_series(1, 400) i;
    VACUUM ANALYZE
    """

    def work(cluster: Cluster) -> None:
        with observed.session(cluster) as connection:
            for _ in range(700):
                assigned, kind = sets[drawn.randrange(3)]
                text = f"UPDATE mix SET {assigned} WHERE id = %s RETURNING (ctid::text::point)[0]"
                key = (drawn.randrange(1, 401),)
                page = "SELECT (ctid::text::point)[0] FROM mix WHERE id = %s"
                before = connection.execute(page.encode(), key).fetchone()
                after = connection.execute(text.encode(), key).fetchone()
                counts[text.replace("%s", "1")] += 1
                moved = before != after
                truth["indexed_column" if kind == "changed" else "no_room" if moved else "hot"] += 1

    with _started(programs, ddl) as (cluster, _):
        recording = observed.watched(cluster, lambda: work(cluster))
    files = [StatementCounts(source="file", counts=counts, seen=3, cut=0)]
    for given in (files, []):
        classes = find_classes(recording, [], given)
        profile = observe(recording, classes, mask=False, sampled=True)
        found = _causes(profile, "mix", programs.version.major)
        assert sum(_mid(cause.updates) for cause in found.values()) == 700
        assert found["hot"].updates == truth["hot"]
        for kind in ("indexed_column", "no_room"):
            assert _holds(found[kind].updates if kind in found else 0, truth[kind])
        if classes.by_table and programs.version.major >= 16:
            # Likely numbers are near: within a twentieth of the updates.
            assert abs(_mid(found["indexed_column"].updates) - truth["indexed_column"]) <= 35


def test_wal_bytes_are_about_those_of_the_server(newest: ServerPrograms) -> None:
    """Without images and commits the estimate is within a tenth of what was written."""

    def work(cluster: Cluster) -> None:
        _update(cluster, "UPDATE roomy SET v = v + 1 WHERE id = %s", range(1, 301))
        _update(cluster, "UPDATE roomy SET state = state + 1 WHERE id = %s", range(500, 700))
        _update(cluster, "UPDATE packed SET v = v + 1 WHERE id = %s", range(1, 1901, 30))

    statements = (
        "UPDATE roomy SET v = v + 1 WHERE id = 1",
        "UPDATE roomy SET state = state + 1 WHERE id = 1",
        "UPDATE packed SET v = v + 1 WHERE id = 1",
    )
    with Host(newest) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off", "full_page_writes": "off"})
        observed.load(cluster, DDL)
        profile = _seen(cluster, lambda: work(cluster), statements)
    written = profile.server.observed["counters"]["wal"]["wal_bytes"] - (300 + 200 + 64) * 34
    causes = [
        cause
        for table in ("roomy", "packed")
        for cause in causes_of(profile.table(table), newest.version.major)
    ]
    estimated = sum(_mid(cause.wal_bytes) for cause in causes)
    assert estimated == pytest.approx(written, rel=0.1)


def test_rows_that_grow_and_wide_rows(programs: ServerPrograms) -> None:
    """Appending to a row that has a small reserve is growth; a wide row's reserve is no reserve."""
    ddl = """
    CREATE TABLE growing (id int4 PRIMARY KEY, note text)
        WITH (fillfactor = 95, autovacuum_enabled = off);
    CREATE TABLE wide (id int4 PRIMARY KEY, v int4, note text)
        WITH (fillfactor = 90, autovacuum_enabled = off);
    INSERT INTO growing SELECT i, repeat('n', 60) FROM generate_series(1, 800) i;
    INSERT INTO wide SELECT i, 0, string_agg(md5(i::text || j), '')
        FROM generate_series(1, 200) i, generate_series(1, 44) j GROUP BY i;
    VACUUM ANALYZE
    """

    appends = "UPDATE growing SET note = note || repeat('x', 40) WHERE id = %s"

    def work(cluster: Cluster) -> None:
        _update(cluster, appends, range(1, 401))
        _update(cluster, "UPDATE wide SET v = v + 1 WHERE id = %s", range(1, 200, 7))

    statements = (appends.replace("%s", "1"), "UPDATE wide SET v = v + 1 WHERE id = 1")
    with _started(programs, ddl) as (cluster, _):
        # Ages are known to powers of two: what was loaded becomes old.
        observed.load(cluster, "SELECT pg_current_xact_id();" * 800)
        profile = _seen(cluster, lambda: work(cluster), statements)
    major = programs.version.major
    growing = _causes(profile, "growing", major)
    assert _mid(growing["row_grew"].updates) > 100
    assert "append" in growing["row_grew"].detail
    assert "bytes longer" in growing["row_grew"].detail
    wide = _causes(profile, "wide", major)
    assert _mid(wide["no_room"].updates) > 20
    assert "less than one more version" in wide["no_room"].detail


def test_a_held_horizon_is_named(programs: ServerPrograms) -> None:
    """Room for several versions, and a snapshot that keeps all of them."""
    updates = "UPDATE roomy SET v = v + 1 WHERE id = %s"

    def work(cluster: Cluster) -> None:
        for _ in range(40):
            _update(cluster, updates, range(1, 20))

    with _started(programs) as (cluster, _), cluster.connect() as holder:
        holder.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        holder.execute("SELECT count(*) FROM roomy")
        profile = _seen(cluster, lambda: work(cluster), (updates.replace("%s", "1"),))
    found = _causes(profile, "roomy", programs.version.major)
    assert _mid(found["no_room"].updates) > 100
    assert "cleanup horizon stood still" in found["no_room"].detail


def test_what_is_no_update_and_what_looks_like_none(programs: ServerPrograms) -> None:
    """
    Special cases.

    A row that moves to another partition is a delete and an insert; of an upsert only the
    conflicts are updates; an equal value keeps HOT unless it is stored compressed.
    """
    ddl = """
    CREATE TABLE parts (id int4, region int4, v int4, PRIMARY KEY (region, id))
        PARTITION BY LIST (region);
    CREATE TABLE parts_1 PARTITION OF parts FOR VALUES IN (1);
    CREATE TABLE parts_2 PARTITION OF parts FOR VALUES IN (2);
    INSERT INTO parts SELECT i, 1, 0 FROM generate_series(1, 100) i;
    CREATE TABLE merged (id int4 PRIMARY KEY, v int4) WITH (fillfactor = 50);
    INSERT INTO merged SELECT i, 0 FROM generate_series(1, 100) i;
    CREATE TABLE big (id int4 PRIMARY KEY, t text) WITH (fillfactor = 10);
    CREATE INDEX big_md5 ON big (md5(t));
    INSERT INTO big SELECT i, repeat('compressible', 500) FROM generate_series(1, 40) i;
    VACUUM ANALYZE
    """
    merge = (
        "MERGE INTO merged USING (VALUES (%s, 1)) AS s (id, v) ON merged.id = s.id"
        " WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.v)"
    )

    def work(cluster: Cluster) -> None:
        _update(cluster, "UPDATE parts SET region = 2 WHERE id = %s", range(1, 31))
        upsert = "INSERT INTO merged VALUES (%s, 1) ON CONFLICT (id) DO UPDATE SET v = 1"
        _update(cluster, upsert, range(91, 121))
        _update(cluster, merge, range(111, 131))
        _update(cluster, "UPDATE big SET t = t WHERE id = %s", range(1, 21))
        _update(
            cluster, "UPDATE big SET t = repeat('compressible', 500) WHERE id = %s", range(21, 41)
        )

    with _started(programs, ddl) as (cluster, _):
        profile = _seen(cluster, lambda: work(cluster))
    major = programs.version.major
    assert causes_of(profile.table("parts_1"), major) == ()
    assert observed.facts(profile, "parts_1")["counters"]["n_tup_del"] == 30
    merged = _causes(profile, "merged", major)
    assert merged["hot"].updates == 10 + 10
    assert sum(_mid(cause.updates) for cause in merged.values()) == 20
    big = _causes(profile, "big", major)
    assert big["hot"].updates == 20
    assert _holds(big["indexed_column"].updates, 20)


def test_a_page_that_is_marked_full_still_takes_hot_updates(programs: ServerPrograms) -> None:
    """
    What is not HOT on a page with room changed an indexed column: the mark changes nothing.

    A long version did not fit and marked the page; short ones still do, and nothing is pruned.
    """
    ddl = """
    CREATE TABLE mixed (id int4 PRIMARY KEY, v int4, note text) WITH (autovacuum_enabled = off);
    ALTER TABLE mixed ALTER note SET STORAGE PLAIN;
    INSERT INTO mixed VALUES (1, 0, repeat('n', 1800));
    INSERT INTO mixed SELECT i, 0, repeat('n', 1000) FROM generate_series(2, 6) i;
    INSERT INTO mixed SELECT i, 0, 'n' FROM generate_series(11, 15) i
    """
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        observed.load(cluster, ddl)
        with cluster.connect() as holder:
            holder.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            holder.execute("SELECT count(*) FROM mixed")
            update = "UPDATE mixed SET v = v + 1 WHERE id = %s"
            profile = _seen(cluster, lambda: _update(cluster, update, range(1, 12, 10)))
            pages = _pages(cluster)
    assert pages == [(1, 1), (11, 0)]
    found = _causes(profile, "mixed", programs.version.major)
    assert found["hot"].updates == 1


def _pages(cluster: Cluster) -> list[tuple[int, int]]:
    """Rows that were updated, with their page."""
    with cluster.connect() as connection:
        rows = connection.execute(
            "SELECT id, (ctid::text::point)[0]::int FROM mixed WHERE v = 1 ORDER BY 1"
        ).fetchall()
    return [(int(row[0]), int(row[1])) for row in rows]


def test_who_holds_the_horizon_is_said_first(programs: ServerPrograms) -> None:
    """An open transaction and a prepared one: both named, with what ends each."""

    def work(cluster: Cluster) -> None:
        _update(cluster, "UPDATE roomy SET v = v + 1 WHERE id = %s", range(1, 60))

    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off", "max_prepared_transactions": "2"})
        observed.load(cluster, DDL)
        observed.load(
            cluster,
            "BEGIN; UPDATE packed SET v = v + 1 WHERE id = 1; PREPARE TRANSACTION 'left''over'",
        )
        with cluster.connect() as holder:
            holder.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            row = holder.execute("SELECT pg_backend_pid(), count(*) FROM roomy").fetchone()
            profile = _seen(cluster, lambda: work(cluster))
    assert row is not None
    remarks = [remark for remark in first_remarks(profile) if remark.kind == "horizon"]
    assert len(remarks) == 2
    assert "ROLLBACK PREPARED 'left''over'" in "".join(remark.text for remark in remarks)
    assert f"pg_terminate_backend({row[0]})" in "".join(remark.text for remark in remarks)
    assert ["No fillfactor helps" in remark.text for remark in remarks] == [True, False]


def test_without_a_holder_nothing_is_said_first(newest: ServerPrograms) -> None:
    """Ordinary updates hold no horizon."""
    with Host(newest) as host:
        cluster = host.cluster("main")
        cluster.start({})
        observed.load(cluster, DDL)
        statement = "UPDATE roomy SET v = v + 1 WHERE id = %s"
        profile = _seen(cluster, lambda: _update(cluster, statement, range(1, 60)))
    assert first_remarks(profile) == ()
