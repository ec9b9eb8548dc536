"""What the doctor says of indexes, all rules together: it agrees, it can be run and taken back."""

from __future__ import annotations

import pytest
from doctor_sides import DAY_S, examined_by_all, run

from pgheadroom.doctor import Diagnosis, Finding
from pgheadroom.servers import Cluster, Host, ServerPrograms

pytestmark = pytest.mark.usefixtures("run_parent")

RULES = ("duplicate-index", "overlapping-index", "unused-index")
MAKE = """
SET allow_in_place_tablespaces = on;
CREATE TABLESPACE "other place" LOCATION '';
CREATE TABLE held (v int8, w int8);
CREATE INDEX held_v ON held (v);
CREATE INDEX held_again ON held (v);
CREATE INDEX held_vw ON held (v, w);
CREATE TABLE "odd `table" (v int8, w int8, t text);
CREATE INDEX "it's one" ON "odd `table" (v, lower(t)) TABLESPACE "other place" WHERE w > 0;
CREATE INDEX read ON "odd `table" (v);
CREATE INDEX unread ON "odd `table" (v);
CREATE INDEX wide ON "odd `table" (v, w);
CREATE TABLE p (v int8) PARTITION BY LIST (v);
CREATE TABLE p_one PARTITION OF p FOR VALUES IN (1);
CREATE TABLE p_two PARTITION OF p FOR VALUES IN (2);
CREATE INDEX "p V" ON p (v);
CREATE INDEX p_again ON p (v);
CREATE INDEX p_one_again ON p_one (v);
INSERT INTO held SELECT i, i FROM generate_series(1, 60000) i;
INSERT INTO "odd `table" SELECT i, i, i FROM generate_series(1, 60000) i;
INSERT INTO p SELECT 1 + i % 2 FROM generate_series(1, 400000) i;
VACUUM ANALYZE;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT count(w) FROM "odd `table" WHERE v = 7
"""
_ALL = """
SELECT indexrelid::regclass::text, pg_get_indexdef(indexrelid), indisvalid,
       (SELECT spcname FROM pg_tablespace s WHERE s.oid = c.reltablespace)
FROM pg_index JOIN pg_class c ON c.oid = indexrelid
WHERE indrelid >= 16384 AND c.relnamespace = 'public'::regnamespace ORDER BY 1
"""


def of_indexes(diagnosis: Diagnosis) -> dict[str, Finding]:
    assert not {each.rule for each in diagnosis.blind if each.cut_off}
    found = [each for each in diagnosis.findings if each.rule in RULES]
    by_name = {each.object: each for each in found if each.remedy.sql}
    assert len(by_name) == sum(bool(each.remedy.sql) for each in found), "one drop an index"
    return by_name


def indexes(cluster: Cluster) -> list[tuple[object, ...]]:
    with cluster.connect() as connection:
        return connection.execute(_ALL.encode()).fetchall()


def test_indexes_that_agree(newest: ServerPrograms) -> None:
    """Dropped as printed, made again as printed; a table that somebody holds stops nothing."""
    with Host(newest) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        run(cluster, "postgres", MAKE)
        with cluster.connect(autocommit=False) as holder:
            holder.execute("LOCK TABLE held IN ACCESS EXCLUSIVE MODE")
            beside = of_indexes(examined_by_all(cluster, "postgres", 31 * DAY_S))
        found = of_indexes(examined_by_all(cluster, "postgres", 31 * DAY_S))
        assert found.keys() == beside.keys()
        for name, finding in beside.items():
            assert (finding.remedy.undo is None) == name.startswith("held_"), name
            assert ("pg_get_indexdef" in finding.remedy.text) == name.startswith("held_"), name
        # Of two that are the same the one that is read stays; of a chain the widest is not unused.
        assert "read" not in found
        assert found["unread"].numbers["kept"] == "read"
        before = indexes(cluster)
        for finding in found.values():
            (drop,) = finding.remedy.sql
            run(cluster, "postgres", drop)
        left = {str(name) for name, *_ in indexes(cluster)}
        assert {"read", "held_v", '"p V"'} <= left
        for finding in found.values():
            assert finding.remedy.undo is not None
            if finding.object != "p_one_again":  # it took the name of a part of p_again
                assert ("CONCURRENTLY" in finding.remedy.undo) == (finding.object != "p_again")
            run(cluster, "postgres", finding.remedy.undo.replace("; ", ";\n"))
        assert indexes(cluster) == before
