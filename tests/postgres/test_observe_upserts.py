"""Upserts that find their row: counters, heartbeats, the last time that somebody was seen."""

from __future__ import annotations

from pathlib import Path

import observed
import pytest

from pgheadroom.advise import advise
from pgheadroom.observe import find_classes, observe
from pgheadroom.outcome import middle
from pgheadroom.predict import predict
from pgheadroom.servers import Host, ServerPrograms
from pgheadroom.sources.log import read_statements

pytestmark = pytest.mark.usefixtures("run_parent")

DDL = """
CREATE TABLE visits (page int8 PRIMARY KEY, n int8) WITH (autovacuum_enabled = off);
CREATE TABLE places (page int8, host int8, n int8, PRIMARY KEY (page, host))
    WITH (autovacuum_enabled = off);
INSERT INTO visits SELECT i, 0 FROM generate_series(1, 500) i;
INSERT INTO places SELECT i, i, 0 FROM generate_series(1, 500) i;
VACUUM ANALYZE
"""
VISIT = "INSERT INTO visits VALUES (%s, 1) ON CONFLICT (page) DO UPDATE SET n = visits.n + 1"
PLACE = (
    "INSERT INTO places VALUES (%s, %s, 1) ON CONFLICT (page, host) DO UPDATE SET n = places.n + 1"
)


def test_an_upsert_that_finds_its_row_locks_it(programs: ServerPrograms, tmp_path: Path) -> None:
    """
    It was played as an UPDATE, without the record of the lock: 71 bytes an update for 125.

    One by several columns is no upsert of a profile, and stays an UPDATE.
    """
    path = tmp_path / "statements.sql"
    path.write_text(f"{VISIT};\n{PLACE};\n".replace("%s", "$1"), encoding="utf-8")

    def work() -> None:
        with observed.session(cluster) as connection:
            for page in range(1, 401):
                connection.execute(VISIT.encode(), (page,))
                connection.execute(PLACE.encode(), (page, page))

    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        observed.load(cluster, DDL)
        recording = observed.watched(cluster, work)
    classes = find_classes(recording, [], [read_statements(path)])
    profile = observe(recording, classes, mask=False, sampled=True)
    kinds = {o.table: o.kind for o in profile.workload.operations}
    assert kinds == {"visits": "upsert", "places": "update"}
    (cell,) = predict(profile, server=str(programs.version)).cells
    tables = cell.predicted.by_table
    assert tables is not None
    figure = "wal_nonfpi_bytes_per_update"
    upserted, updated = (middle(tables[name].value(figure)) for name in ("visits", "places"))
    assert upserted is not None
    assert updated is not None
    # A LOCK record is 54 bytes; an update that leaves its page writes one in any case.
    assert 30 < upserted - updated <= 64
    assert {item.table for item in advise(profile).tables} == {"visits", "places"}
