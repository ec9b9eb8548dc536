"""An undo leaves a database as it was, with what no definition of an index has."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from doctor_sides import conninfo, run
from test_doctor_plan import OFTEN, SETTINGS, planned, states, written

from pgheadroom.cli.app import run as command
from pgheadroom.doctor import rule_named
from pgheadroom.doctor.live_plan import examine_and_plan
from pgheadroom.doctor.planning import PlanWish
from pgheadroom.plan import read_plan
from pgheadroom.plan.record import record_path
from pgheadroom.servers import Cluster, Host, ServerPrograms
from pgheadroom.servers.run_folder import RunFolder

pytestmark = pytest.mark.usefixtures("run_parent")

RULES = ("unused-index", "duplicate-index", "foreign-key-without-index", "autovacuum-off")
NAME = '"Ü ""x"."I ""1"'
MAKE = r"""
CREATE SCHEMA "Ü ""x";
SET search_path = "Ü ""x", pg_catalog;
CREATE FUNCTION f(int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT $1';
CREATE TABLE "T t" (a int, b text);
INSERT INTO "T t" SELECT i, i FROM generate_series(1, 60000) i;
CREATE INDEX "I ""1" ON "T t" (b text_pattern_ops DESC) INCLUDE (a) WITH (fillfactor = 70)
  WHERE b <> 'it''s';
COMMENT ON INDEX "I ""1" IS E'it''s on\ntwo \\ lines';
CREATE INDEX "I 2" ON "T t" ("Ü ""x".f(a), (a + 1)) TABLESPACE here;
ALTER INDEX "I 2" ALTER COLUMN 1 SET STATISTICS 500;
ALTER INDEX "I 2" ALTER COLUMN 2 SET STATISTICS 0;
CREATE INDEX "I 3" ON "T t" (a);
CREATE INDEX "I 4" ON "T t" (a);
CREATE INDEX "I 5" ON "T t" (a, b);
ALTER INDEX "I 5" DEPENDS ON EXTENSION plpgsql;
CREATE TABLE parent (id int PRIMARY KEY);
INSERT INTO parent VALUES (1);
CREATE TABLE child (p int REFERENCES parent, q int REFERENCES parent);
INSERT INTO child SELECT 1, 1 FROM generate_series(1, 30000);
CREATE TABLE off (v text) WITH (autovacuum_enabled = NO, autovacuum_vacuum_threshold = 7);
CREATE TABLE also_off (v text) WITH (autovacuum_enabled = 'F');
INSERT INTO off SELECT repeat('x', 200) FROM generate_series(1, 20000);
INSERT INTO also_off TABLE off;
VACUUM ANALYZE;
DELETE FROM off;
DELETE FROM also_off;
ALTER DATABASE postgres SET default_tablespace = 'there'
"""
STATE = (
    "SELECT concat_ws(' | ', c.relname, pg_get_indexdef(c.oid), t.spcname,"
    " obj_description(c.oid, 'pg_class'), (SELECT string_agg(o, ',' ORDER BY o)"
    " FROM unnest(c.reloptions) o), (SELECT string_agg(a.attnum || ':' || a.attstattarget, ','"
    " ORDER BY a.attnum) FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attstattarget >= 0))"
    " FROM pg_class c LEFT JOIN pg_tablespace t ON t.oid = c.reltablespace"
    " WHERE c.oid >= 16384 AND c.relkind IN ('r', 'i') ORDER BY 1"
)


def state(cluster: Cluster) -> list[str]:
    """Tables and indexes with all that belongs to them."""
    with cluster.connect() as connection:
        return [str(row[0]) for row in connection.execute(STATE)]


def made(host: Host) -> Cluster:
    cluster = host.cluster("main")
    cluster.start(SETTINGS)
    owner = cluster.data_dir.stat()
    for name in ("here", "there"):
        folder = cluster.data_dir.parent / name
        folder.mkdir()
        os.chown(folder, owner.st_uid, owner.st_gid)
        run(cluster, "postgres", f"CREATE TABLESPACE {name} LOCATION '{folder}'")
    run(cluster, "postgres", MAKE)
    return cluster


def test_an_undo_leaves_no_trace(programs: ServerPrograms, tmp_path: Path) -> None:
    """Comments, statistics targets, places and words of options are what they were."""
    with Host(programs) as host:
        cluster = made(host)
        before = state(cluster)
        plan = planned(cluster, rules=RULES)
        assert {step.about.partition(".")[2] for step in plan.work} == {
            'I "1',
            "I 2",
            "I 4",
            "child_p_fkey_idx",
            "child_q_fkey_idx",
            "off",
            "also_off",
        }
        (note,) = plan.notes
        assert "I 5: it depends on an extension" in note
        path, target = written(plan, tmp_path), conninfo(cluster, "postgres")
        assert command(["apply", str(path), target, "--yes"]) == 0
        assert set(states(path)) == {"done"}
        assert state(cluster) != before
        assert command(["apply", str(path), target, "--yes", "--undo"]) == 0
        assert state(cluster) == before


def test_what_is_back_already(
    newest: ServerPrograms, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever made an index again has undone its step; what an undo had not come to is done."""
    with Host(newest) as host:
        cluster = made(host)
        before = state(cluster)
        path, target = (
            written(planned(cluster, rules=RULES), tmp_path),
            conninfo(cluster, "postgres"),
        )
        assert command(["apply", str(path), target, "--yes"]) == 0
        kept = record_path(path).read_text(encoding="utf-8")
        steps = {step.about.partition(".")[2]: step for step in read_plan(path).remedies or ()}
        first = steps.pop('I "1').undo_statements
        assert len(first) == 4, "a place, the index, back, its comment"
        for step in steps.values():
            run(cluster, "postgres", ";\n".join(step.undo_statements))
        run(cluster, "postgres", first[1].replace(" CONCURRENTLY", "").replace("DESC", ""))
        assert command(["apply", str(path), target, "--yes", "--undo"]) == 1
        said = capsys.readouterr()
        assert "an index of its name is there already" in said.out
        assert said.err.count("is as it was before it, by somebody else") == len(steps)
        assert sorted(set(states(path))) == ["done", "undone"]
        # As if an undo had ended between the build and the comment.
        run(cluster, "postgres", f"DROP INDEX {NAME};\n" + ";\n".join(first[:3]))
        record_path(path).write_text(kept.replace('"done"', '"undoing"'), encoding="utf-8")
        assert command(["apply", str(path), target, "--yes", "--undo"]) == 0
        assert set(states(path)) == {"undone"}
        assert state(cluster) == before


def test_where_an_index_was_has_to_be_allowed(
    newest: ServerPrograms, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An owner who may not make an index in its tablespace could drop it, and not make it again."""
    with Host(newest) as host:
        cluster = made(host)
        run(
            cluster,
            "postgres",
            'CREATE ROLE owner LOGIN;\nALTER SCHEMA "Ü ""x" OWNER TO owner;\n'
            'ALTER TABLE "Ü ""x"."T t" OWNER TO owner',
        )
        path = written(planned(cluster, rules=("unused-index",)), tmp_path)
        target = f"{conninfo(cluster, 'postgres')} user=owner"
        before = state(cluster)
        assert command(["apply", str(path), target, "--yes"]) == 3
        assert "role owner, which has no CREATE on tablespace here" in capsys.readouterr().err
        assert state(cluster) == before
        run(cluster, "postgres", "GRANT CREATE ON TABLESPACE here TO owner")
        for undo in ([], ["--undo"]):
            assert command(["apply", str(path), target, "--yes", *undo]) == 0
        assert state(cluster) == before


def test_a_setting_of_the_command_line_is_no_step(
    newest: ServerPrograms, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ALTER SYSTEM would write it, and change nothing: neither doctor nor plan has it."""
    started = RunFolder.popen

    def with_setting(self: RunFolder, args: Sequence[Any], **more: Any) -> Any:
        return started(self, [*args, "-c", "max_wal_size=32MB"], **more)

    with Host(newest) as host:
        cluster = host.cluster("main")
        with monkeypatch.context() as patched:
            patched.setattr(RunFolder, "popen", with_setting)
            cluster.start(SETTINGS)
        run(cluster, "postgres", OFTEN)
        (found, plan) = examine_and_plan(
            conninfo(cluster, "postgres"),
            {},
            PlanWish(settings=True),
            rules=[rule_named("checkpoints-by-wal")],
            ahead_s=7200.0,  # a rate is told from an hour on, and a cluster may be new
        )
    (finding,) = found.findings
    assert (finding.remedy.sql, finding.remedy.undo) == ((), None)
    said = "set by the server's command line, which goes before its files: there, max_wal_size = '"
    assert said in finding.remedy.text
    assert plan is not None
    assert plan.work == ()
    assert said in plan.notes[0]
