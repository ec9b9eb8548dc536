"""Steps of a doctor's plan that are of a table's statistics, and of its TOAST table."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from doctor_sides import DAY_S, conninfo, run
from test_doctor_plan import SETTINGS, planned, states, verdicts, verified, written
from test_doctor_rules import asked, servers

import pgheadroom as ph
from pgheadroom.cli.app import run as command
from pgheadroom.errors import InputError
from pgheadroom.plan import Plan, read_plan
from pgheadroom.plan.remedies import RemedyStep
from pgheadroom.servers import Cluster, Host, ServerPrograms

pytestmark = pytest.mark.usefixtures("run_parent")

STATISTICS = ("never-analyzed", "parent-never-analyzed", "statistics-behind")
_MADE = (
    "CREATE TABLE behind (id int, v int);\n"
    "INSERT INTO behind SELECT i, 0 FROM generate_series(1, 10000) i;\nANALYZE behind;\n"
    "UPDATE behind SET v = 1 WHERE id <= 6000;\n"
    "CREATE TABLE fresh (v int);\nINSERT INTO fresh SELECT generate_series(1, 1000);\n"
    "CREATE TABLE parts (v int) PARTITION BY RANGE (v);\n"
    "CREATE TABLE part PARTITION OF parts FOR VALUES FROM (0) TO (10000);\n"
    "INSERT INTO parts SELECT generate_series(1, 1000);\nANALYZE part;\n"
)
_TOASTED = (
    "CREATE TABLE {0} (id int PRIMARY KEY, v text NOT NULL);\n"
    "ALTER TABLE {0} ALTER COLUMN v SET STORAGE EXTERNAL;\n"
    "INSERT INTO {0} SELECT i, repeat(md5(i::text), {1}) FROM generate_series(1, 200) i;\n"
    "VACUUM ANALYZE {0};\nUPDATE {0} SET v = v || 'x';\n"
)


@contextmanager
def server(programs: ServerPrograms, made: str) -> Iterator[Cluster]:
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start(SETTINGS)
        run(cluster, "postgres", made)
        yield cluster


def steps(plan: Plan) -> dict[str, RemedyStep]:
    found = {step.about: step for step in plan.remedies or ()}
    assert len(found) == len(plan.remedies or ()), "one a table"
    return found


@pytest.mark.parametrize("programs_of", servers())
def test_statistics_are_taken(
    programs_of: ServerPrograms, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Old ones, none at all, those of a partitioned table: each is a step without an undo."""
    with server(programs_of, _MADE) as cluster:
        plan = planned(cluster, rules=STATISTICS, ahead_s=60 * DAY_S)
        found = steps(plan)
        assert set(found) == {"behind", "fresh", "parts"}
        assert found["behind"].statements == ('ANALYZE "public"."behind"',)
        assert all(step.undo is None for step in found.values())
        assert "There is no undo" in found["behind"].undo_note
        path, target = written(plan, tmp_path), conninfo(cluster, "postgres")
        assert set(verdicts(verified(cluster, path, "")).values()) == {"not comparable"}
        assert command(["apply", str(path), target, "--yes"]) == 0
        assert states(path) == ["done"] * 3
        assert planned(cluster, rules=STATISTICS).remedies == ()
        held = verdicts(verified(cluster, path, ""))
        assert held == {
            ("behind", "n_mod_since_analyze"): "held",
            ("fresh", "is_analyzed"): "held",
            ("parts", "is_analyzed"): "held",
        }
        # What changes in the interval may be what autovacuum is about to come for.
        again = verdicts(verified(cluster, path, "UPDATE behind SET v = 2 WHERE id <= 3000"))
        assert again["behind", "n_mod_since_analyze"] == "undecided"
        assert verdicts(verified(cluster, path, ""))["behind", "n_mod_since_analyze"] == "failed"
        capsys.readouterr()
        assert command(["apply", str(path), target, "--yes"]) == 0
        assert "Nothing is left to do" in capsys.readouterr().out
        assert command(["apply", str(path), target, "--yes", "--undo"]) == 0


@pytest.mark.parametrize("programs_of", servers())
def test_autovacuum_of_toast(programs_of: ServerPrograms, tmp_path: Path) -> None:
    """Switched off for it alone, or with its table's: one step, whose undo puts back what was."""
    options = (
        "SELECT coalesce(c.reloptions::text, '-') || coalesce(t.reloptions::text, '-')"
        " FROM pg_class c JOIN pg_class t ON t.oid = c.reltoastrelid WHERE c.relname = '{}'"
    )
    made = _TOASTED.format("alone", 700) + _TOASTED.format("whole", 700)
    made += "ALTER TABLE alone SET (toast.autovacuum_enabled = off);\n"
    made += "ALTER TABLE whole SET (autovacuum_enabled = off);\n"
    with server(programs_of, made) as cluster:
        before = [asked(cluster, options.format(name)) for name in ("alone", "whole")]
        plan = planned(cluster, rules=("autovacuum-off",))
        found = steps(plan)
        assert found["alone"].statements == (
            'ALTER TABLE "public"."alone" RESET (toast.autovacuum_enabled)',
        )
        assert found["alone"].undo_statements == (
            'ALTER TABLE "public"."alone" SET (toast.autovacuum_enabled = off)',
        )
        assert found["whole"].statements == (
            'ALTER TABLE "public"."whole" RESET (autovacuum_enabled)',
        )
        path, target = written(plan, tmp_path), conninfo(cluster, "postgres")
        assert command(["apply", str(path), target, "--yes"]) == 0
        assert [asked(cluster, options.format(name)) for name in ("alone", "whole")] == ["--", "--"]
        assert planned(cluster, rules=("autovacuum-off",)).remedies == ()
        # Nobody has come yet: a naptime of this server is weeks.
        waiting = verdicts(verified(cluster, path, ""))
        assert waiting["alone", "toast_n_dead_tup"] == "undecided"
        run(cluster, "postgres", "VACUUM alone;\nVACUUM whole")
        held = verdicts(verified(cluster, path, ""))
        assert held["alone", "toast_n_dead_tup"] == "held"
        assert held["whole", "toast_n_dead_tup"] == "held"
        run(cluster, "postgres", "UPDATE alone SET v = v || 'y'")
        assert verdicts(verified(cluster, path, ""))["alone", "toast_n_dead_tup"] == "failed"
        assert command(["apply", str(path), target, "--yes", "--undo"]) == 0
        assert [asked(cluster, options.format(name)) for name in ("alone", "whole")] == before


@pytest.mark.parametrize("programs_of", servers())
def test_a_toast_table_is_vacuumed(programs_of: ServerPrograms, tmp_path: Path) -> None:
    """With its table, by one statement: that is how it is called."""
    with server(programs_of, _TOASTED.format("late", 3800)) as cluster:
        plan = planned(cluster, rules=("autovacuum-late",))
        (step,) = plan.remedies or ()
        assert step.statements == ('VACUUM "public"."late"',)
        path, target = written(plan, tmp_path), conninfo(cluster, "postgres")
        assert command(["apply", str(path), target, "--yes"]) == 0
        assert verdicts(verified(cluster, path, "")) == {("late", "toast_n_dead_tup"): "held"}
        run(cluster, "postgres", "UPDATE late SET v = v || 'y'")
        assert verdicts(verified(cluster, path, "")) == {("late", "toast_n_dead_tup"): "failed"}


def test_by_a_program(newest: ServerPrograms, tmp_path: Path) -> None:
    """A program plans and saves; the command line carries out what it saved."""
    told: list[str] = []
    with server(newest, _MADE) as cluster:
        target = conninfo(cluster, "postgres")
        made = ph.doctor_plan(target, progress=lambda *step: told.append(step[2]), seconds=0.01)
        rules = {one.rule for one in made.found.findings}
        assert rules >= {"never-analyzed", "parent-never-analyzed"}
        assert "statistics-behind" not in rules, "it was analyzed a moment ago"
        assert [row["sql"] for row in made.rows()] == [step.sql for step in made.steps]
        assert made.summary().startswith("2 steps for ")
        assert told == ["watching for 0.01 s"]
        path = made.save(tmp_path / "plan.json")
        assert json.loads(path.read_text(encoding="utf-8")) == made.to_json()
        assert read_plan(path) == made.plan
        assert planned(cluster, rules=STATISTICS).remedies, "nothing was changed by that"
        assert command(["apply", str(path), target, "--yes"]) == 0
        assert states(path) == ["done"] * 2
        standby = ph.doctor_plan(target, standbys=())
        assert standby.steps == ()
        with pytest.raises(InputError, match="is no standby"):
            ph.doctor_plan(target, standbys=target)
