"""What `advise` says by rule, without a play: on real servers the named index is what ends HOT."""

from __future__ import annotations

from pathlib import Path

import observed
import pytest

from pgheadroom.advise import Options, advise
from pgheadroom.observe import find_classes, observe
from pgheadroom.servers import Cluster, Host, ServerPrograms
from pgheadroom.sources.log import read_statements

pytestmark = pytest.mark.usefixtures("run_parent")

_WITH = "WITH (fillfactor = 50, autovacuum_enabled = off)"
_DDL = f"""
CREATE TABLE made (id int4 PRIMARY KEY, a int4, note int4,
    g int4 GENERATED ALWAYS AS (a * 2) STORED) {_WITH};
CREATE INDEX made_g ON made (g);
CREATE TABLE part (id int4 PRIMARY KEY, owner int4, state int4, note int4) {_WITH};
CREATE INDEX part_owner ON part (owner) WHERE state > 0;
CREATE TABLE expr (id int4 PRIMARY KEY, payload text, note int4) {_WITH};
CREATE INDEX expr_lower ON expr (lower(payload));
CREATE TABLE incl (id int4 PRIMARY KEY, owner int4, seen int4, note int4) {_WITH};
CREATE INDEX incl_owner ON incl (owner) INCLUDE (seen);
CREATE TABLE free (id int4 PRIMARY KEY, owner int4, note int4) {_WITH};
CREATE INDEX free_owner ON free (owner);
INSERT INTO made SELECT i, i, 0 FROM generate_series(1, 400) i;
INSERT INTO part SELECT i, i, i, 0 FROM generate_series(1, 400) i;
INSERT INTO expr SELECT i, 'p' || i, 0 FROM generate_series(1, 400) i;
INSERT INTO incl SELECT i, i, i, 0 FROM generate_series(1, 400) i;
INSERT INTO free SELECT i, i, 0 FROM generate_series(1, 400) i;
VACUUM ANALYZE
"""
_UPDATES = {
    "made": "UPDATE made SET a = a + 1, note = note + 1 WHERE id <= 200",
    "part": "UPDATE part SET state = state + 1, note = note + 1 WHERE id <= 200",
    "expr": "UPDATE expr SET payload = 'q' || id, note = note + 1 WHERE id <= 200",
    "incl": "UPDATE incl SET seen = seen + 1, note = note + 1 WHERE id <= 200",
    "free": "UPDATE free SET note = note + 1 WHERE id <= 200",
}
_BY = {
    "made_g": "g (generated from a)",
    "part_owner": "state (predicate)",
    "expr_lower": "payload (expression)",
    "incl_owner": "seen (INCLUDE)",
}


def _work(cluster: Cluster) -> None:
    with observed.session(cluster) as connection:
        for statement in _UPDATES.values():
            connection.execute(statement.encode())


def _hot(cluster: Cluster) -> dict[str, int]:
    with cluster.connect() as connection:
        rows = connection.execute("SELECT relname, n_tup_hot_upd FROM pg_stat_user_tables")
        return {str(name): int(hot) for name, hot in rows.fetchall()}


def test_the_index_named_by_rule_is_the_one_that_ends_hot(
    programs: ServerPrograms, tmp_path: Path
) -> None:
    """Without a play: index and column; HOT is gone while it is there, and back without it."""
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        observed.load(cluster, _DDL)
        file = tmp_path / "statements.sql"
        file.write_text(";\n".join(_UPDATES.values()))
        recording = observed.watched(cluster, lambda: _work(cluster))
        classes = find_classes(recording, [], [read_statements(file)])
        profile = observe(recording, classes, mask=False, sampled=True)
        advice = advise(profile, Options(budget_s=1e-9))
        before = _hot(cluster)
        with cluster.connect(autocommit=True) as connection:
            for name in _BY:
                connection.execute(f"DROP INDEX {name}".encode())
        observed.load(cluster, "VACUUM")
        _work(cluster)
        after = _hot(cluster)
    assert {found.name: found.by for found in advice.indexes} == _BY
    tables = {table.table: table for table in advice.tables}
    for name in ("made", "part", "expr", "incl"):
        assert before[name] == 0
        assert after[name] > 0
        assert tables[name].verdict == "KEEP", tables[name].reason
        assert tables[name].decided_by == "rule"
    assert before["free"] > 0
    assert advice.budget.played == 0
