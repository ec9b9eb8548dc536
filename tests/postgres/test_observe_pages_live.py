"""Tables that have lived: `observe` finds how full pages are, and what comes follows from it."""

from __future__ import annotations

import random
from dataclasses import replace

import observed
import pytest

from pgheadroom.outcome import middle
from pgheadroom.predict import predict
from pgheadroom.profile import Operation, Profile, Run
from pgheadroom.profile.change import Change
from pgheadroom.profile.reading import checked_profile
from pgheadroom.profile.workload import Pick
from pgheadroom.servers import Cluster, Host, ServerPrograms

pytestmark = pytest.mark.usefixtures("run_parent")

ROWS, ROUND = 6000, 3000
DDL = f"""
CREATE TABLE aged (id int4 PRIMARY KEY, n int4 NOT NULL, f char(84) NOT NULL)
    WITH (autovacuum_enabled = off);
INSERT INTO aged SELECT i, 0, 'f' FROM generate_series(1, {ROWS}) i;
VACUUM ANALYZE aged;
CREATE TABLE fresh (id int4 PRIMARY KEY, n int4 NOT NULL, s text) WITH (autovacuum_enabled = off);
INSERT INTO fresh SELECT i, 0, repeat('s', 20 + i % 200) FROM generate_series(1, {ROWS}) i;
VACUUM ANALYZE fresh
"""


def _update(cluster: Cluster, seed: int) -> None:
    """So many updates of a row each, any as likely."""
    draws = random.Random(seed)
    with observed.session(cluster) as connection:
        for _ in range(ROUND):
            connection.execute(
                "UPDATE aged SET n = n + 1 WHERE id = %s", (draws.randint(1, ROWS),), prepare=True
            )


def _state(cluster: Cluster) -> tuple[int, int, int]:
    with cluster.connect() as connection:
        row = connection.execute(
            "SELECT n_tup_upd, n_tup_hot_upd, pg_relation_size(relid) / 8192 "
            "FROM pg_stat_user_tables WHERE relname = 'aged'"
        ).fetchone()
    assert row is not None
    return int(row[0]), int(row[1]), int(row[2])


def _round(profile: Profile) -> Profile:
    """A round of the updates, of the table as it was observed."""
    file = profile.in_file()
    update = Operation(
        table="aged",
        kind="update",
        sets=(Change(column="n"),),
        pick=Pick(distribution="uniform"),
    )
    return checked_profile(replace(file, operations=(update,), run=Run(operations=ROUND)))


def _redirects(cluster: Cluster) -> float | None:
    """On the mean page; None where the server has no pageinspect."""
    with cluster.connect() as connection:
        name = "SELECT 1 FROM pg_available_extensions WHERE name = 'pageinspect'"
        if connection.execute(name).fetchone() is None:
            return None
        connection.execute("CREATE EXTENSION pageinspect")
        row = connection.execute(
            "SELECT count(*) FILTER (WHERE lp_flags = 2)::float8 / count(DISTINCT page) "
            "FROM generate_series(0, pg_relation_size('aged') / 8192 - 1) AS page, "
            "heap_page_items(get_raw_page('aged', page::int4))"
        ).fetchone()
    assert row is not None
    return float(row[0])


@pytest.mark.contrib
def test_an_aged_table_is_foreseen_from_its_pages(programs: ServerPrograms) -> None:
    """
    Rows and redirects per page are those that there are; the next round's HOT share follows.

    Loaded anew it would be farther off, and without redirects too: what they take is room here for
    one of three further versions.
    """
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        observed.load(cluster, DDL)
        for seed in range(4):
            _update(cluster, seed)
            with cluster.connect() as connection:
                connection.execute("VACUUM aged")
        profile = observed.profile_of(observed.watched(cluster))
        with cluster.connect() as connection:
            counted = connection.execute(
                "SELECT n, count(*) FROM (SELECT count(*) AS n FROM aged "
                "GROUP BY (ctid::text::point)[0]) AS p GROUP BY n"
            ).fetchall()
        redirects = _redirects(cluster)
        inspected = None if redirects is None else observed.profile_of(observed.watched(cluster))
        before = _state(cluster)
        _update(cluster, 9)
        after = _state(cluster)
    table = profile.table("aged")
    pages = sum(count for _, count in counted)
    mean = sum(kind.rows * kind.pages_frac for kind in table.pages)
    assert mean == pytest.approx(ROWS / pages, abs=0.3)
    assert table.rows_per_page == 65
    assert table.observed is not None
    evidence = table.observed.pages_evidence or ""
    assert evidence.startswith(("measured", "sampled"))
    assert "redirects estimated by" in evidence
    seen = sum(kind.redirects * kind.pages_frac for kind in table.pages)
    if inspected is not None:
        found = inspected.table("aged")
        assert found.observed is not None
        assert "(pageinspect)" in (found.observed.pages_evidence or "")
        counted_ones = sum(kind.redirects * kind.pages_frac for kind in found.pages)
        assert [seen, counted_ones] == pytest.approx([redirects] * 2, abs=2)
    assert 45 < seen < 58  # two updates a row: 62 * (1 - exp(-2)) are 54
    assert not profile.table("fresh").pages
    came = (after[1] - before[1]) / (after[0] - before[0])
    version = str(programs.version)
    without = _without_redirects(profile)
    off = [
        abs(
            float(middle(predict(one, server=version).cells[0].predicted.value("hot_frac")) or 0)
            - came
        )
        for one in (_round(profile), _round(without), _round(profile.loaded_anew()))
    ]
    assert off[0] < 0.01
    assert off[0] < off[1] < off[2]


def _without_redirects(profile: Profile) -> Profile:
    tables = tuple(
        replace(table, pages=tuple(replace(kind, redirects=0) for kind in table.pages))
        for table in profile.tables
    )
    return replace(profile, tables=tables)


ADDED = f"""
CREATE TABLE migrated (id int4 PRIMARY KEY, f char(84) NOT NULL) WITH (autovacuum_enabled = off);
ALTER TABLE migrated ADD COLUMN n int4 DEFAULT 0, ADD COLUMN kind text DEFAULT 'of a kind';
INSERT INTO migrated SELECT i, 'f' FROM generate_series(1, {ROWS}) i;
CREATE TABLE lived (id int4 PRIMARY KEY, f char(84) NOT NULL) WITH (autovacuum_enabled = off);
INSERT INTO lived SELECT i, 'f' FROM generate_series(1, {ROWS}) i;
ALTER TABLE lived ADD COLUMN n int4 DEFAULT 0, ADD COLUMN kind text DEFAULT 'of a kind';
DELETE FROM migrated WHERE id BETWEEN 1000 AND 2000 AND id % 2 = 0;
DELETE FROM lived WHERE id BETWEEN 1000 AND 2000 AND id % 2 = 0;
VACUUM ANALYZE
"""


@pytest.mark.each
def test_rows_that_are_younger_than_a_column_have_it(programs: ServerPrograms) -> None:
    """
    The catalogue says of both tables that rows may lack columns; their fullest pages say which do.

    Migrations add columns before there are rows. Then a page is full with all of them, and how
    full the others are is known; rows of before lie more to a page than whole ones could.
    """
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        observed.load(cluster, ADDED)
        profile = observed.profile_of(observed.watched(cluster))
        with cluster.connect() as connection:
            missing = connection.execute(
                "SELECT count(*) FROM pg_attribute WHERE atthasmissing AND attname IN ('n', 'kind')"
            ).fetchall()
    assert missing == [(4,)]
    migrated, lived = profile.table("migrated"), profile.table("lived")
    assert observed.facts(profile, "migrated").added_columns == ("n", "kind")
    assert lived.pages == ()
    halves = [kind for kind in migrated.pages if kind.rows < 0.7 * (migrated.rows_per_page or 0)]
    assert 0.1 < sum(kind.pages_frac for kind in halves) < 0.25
