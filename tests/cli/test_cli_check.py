"""`check` from outside: exit codes, each format, what is not understood."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pgheadroom.profile import to_json

sys.path.insert(0, str(Path(__file__).parents[1] / "unit"))
import observed_table as made

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    """2,000 updates of notes and owners, all HOT but those of the owner, at fillfactor 80."""
    note = {"name": "flag", "type": "int4"}
    profile = made.profile_of(
        made.counters(2000, 1500, 0),
        columns=[*made.COLUMNS, note],
        indexes=[made.PKEY, made.OWNER],
        classes=[made.a_class(["flag"], 1500), made.a_class(["owner"], 500)],
        fillfactor=80,
        main_bytes=2_400_000,
        totals={"n_tup_upd": 200_000},
    )
    updates = [
        {
            "table": "jobs",
            "kind": "update",
            "weight": weight,
            "sets": [column],
            "pick": {"distribution": "uniform"},
        }
        for weight, column in ((1500, "flag"), (500, "owner"))
    ]
    table = profile.tables[0]
    table.observed["updates"]["pick"] = {"evidence": "sampled", "why": ""}  # type: ignore[index]
    plain = to_json(replace(profile, server=replace(profile.server, observed=made.SERVER)))
    plain["operation"] = updates
    plain["run"] = {"duration_s": 100, "rate_per_s": 20, "clients": 1, "seed": 1}
    path = tmp_path / "profile.json"
    path.write_text(json.dumps(plain))
    return path


def _migration(tmp_path: Path, text: str) -> str:
    (tmp_path / "migration.sql").write_text(text)
    return "migration.sql"


def test_an_index_that_ends_hot_is_a_finding(
    pgheadroom: Run, profile: Path, tmp_path: Path
) -> None:
    """Three quarters of the updates assign the column: they would not be HOT any more."""
    name = _migration(tmp_path, "BEGIN;\nCREATE INDEX jobs_flag ON jobs (flag);\nCOMMIT;\n")
    done = pgheadroom("check", name, "--profile", str(profile), "-f", "json")
    assert done.returncode == 1, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    assert (found["kind"], found["findings"], found["statements"]) == ("migration_check", 1, 3)
    (table,) = found["tables"]
    assert (table["verdict"], table["lines"], table["evidence"]) == (
        "loses HOT",
        [2],
        "predicted",
    )
    assert table["assigned_frac"] == 0.75
    assert table["assigning"] == [{"columns": ["flag"], "frac": 0.75}]
    now, then = (table[f"hot_frac_{when}"]["mid"] for when in ("now", "then"))
    assert now == pytest.approx(0.75, abs=0.02)
    assert then == pytest.approx(0.0, abs=0.02)
    more = table["wal_bytes_per_day_then"]["mid"] - table["wal_bytes_per_day_now"]["mid"]
    per_update = (
        table["wal_bytes_per_update_then"]["mid"] - table["wal_bytes_per_update_now"]["mid"]
    )
    assert per_update > 50
    assert more == pytest.approx(per_update * 200 * 86_400, rel=1e-6)
    assert "75.0 % of the updates assign flag" in table["text"]
    assert "if every value that is assigned changes" in table["text"]


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("CREATE INDEX ON jobs (state);", "as before"),
        ("CREATE INDEX ON jobs USING brin (flag);", "as before"),
        ("DROP INDEX jobs_owner;", "gains HOT"),
    ],
)
def test_what_costs_no_hot_passes(
    in_process: Run, profile: Path, tmp_path: Path, text: str, verdict: str
) -> None:
    """A column that nobody assigns, BRIN from 16 on, an index that goes: exit code 0."""
    name = _migration(tmp_path, text)
    done = in_process("check", name, "--profile", str(profile), "-f", "csv", "-o", "out.csv")
    assert done.returncode == 0, done.stderr
    (row,) = csv.DictReader(io.StringIO((tmp_path / "out.csv").read_text()))
    assert row["verdict"] == verdict
    assert done.stdout == ""


def test_text_and_markdown_name_what_was_not_understood(
    in_process: Run, profile: Path, tmp_path: Path
) -> None:
    """A check that passes says what it could not look into, with the line."""
    name = _migration(tmp_path, "CREATE TABLE fresh (id int);\nDO $$ BEGIN NULL; END $$;\n")
    for form in ("text", "markdown"):
        done = in_process("check", name, "--profile", str(profile), "-f", form)
        assert done.returncode == 0, done.stderr
        assert "0 tables lose HOT; 2 statements, 1 of them not understood" in done.stdout
        assert "not understood, line 2: DO: what its code does is not known" in done.stdout
        assert "note, line 1: fresh: a new table" in done.stdout


@pytest.mark.parametrize(
    ("text", "options", "code"),
    [
        ("CREATE INDEX ON jobs (state);", ["--strict"], 0),
        ("SET lock_timeout = '1s'; DO $$ BEGIN NULL; END $$;", ["--strict"], 1),
    ],
)
def test_a_strict_check_fails_on_what_it_does_not_know(
    in_process: Run, profile: Path, tmp_path: Path, text: str, options: list[str], code: int
) -> None:
    """CI: not understood, not judged, or writers of a table over the limit would wait."""
    name = _migration(tmp_path, text)
    done = in_process("check", name, "--profile", str(profile), "-f", "json", *options)
    assert done.returncode == code, done.stderr
    found = json.loads(done.stdout)
    assert found["findings"] == 0
    if "--strict" in options:
        assert bool(found["strict_findings"]) == bool(code)


def test_who_has_to_wait_is_said_with_the_size(
    in_process: Run, profile: Path, tmp_path: Path
) -> None:
    """The statement, what it does, its lock and the table's size."""
    name = _migration(tmp_path, "\nCREATE INDEX slow ON jobs (state);")
    asked = ("--profile", str(profile), "--strict", "--rewrite-over", "1MB")
    done = in_process("check", name, *asked)
    assert done.returncode == 1, done.stderr
    said = " ".join(done.stdout.split())
    assert "writers of 1 table over 1 MiB wait" in said
    assert (
        "writers wait: jobs (2.29 MiB), line 2: CREATE INDEX slow: builds an index under SHARE: "
        "nobody can write meanwhile" in said
    )


def test_one_table_may_be_asked_for(in_process: Run, profile: Path, tmp_path: Path) -> None:
    """Its verdict alone; a name that the profile does not have is a mistake."""
    name = _migration(tmp_path, "CREATE INDEX ON jobs (flag); CREATE INDEX ON elsewhere (a);")
    asked = ("check", name, "--profile", str(profile), "-f", "json", "--table")
    done = in_process(*asked, "public.jobs")
    assert done.returncode == 1, done.stderr
    found = json.loads(done.stdout)
    assert ([t["name"] for t in found["tables"]], found["notes"]) == (["jobs"], [])
    done = in_process(*asked, "jops")
    assert done.returncode == 2
    assert "--table jops is not in the profile: expected one of jobs" in done.stderr


def test_statements_may_come_from_a_pipe(
    profile: Path, tmp_path: Path, environment: dict[str, str]
) -> None:
    """A migration tool prints what it would run."""
    done = subprocess.run(
        [sys.executable, "-m", "pgheadroom", "check", "-", "--profile", str(profile)],
        input="CREATE INDEX i ON nowhere (a);",
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert "line 1: nowhere: not in the profile" in done.stdout


@pytest.mark.parametrize(
    ("text", "arguments", "message"),
    [
        (None, ["absent.sql", "--profile", "profile.json"], "no such file: absent.sql"),
        ("", ["migration.sql", "--profile", "profile.json"], "has no statement"),
        ("add an index", ["migration.sql", "--profile", "profile.json"], "no statement of the"),
        ("SELECT 1;", ["migration.sql", "--profile", "absent.json"], "no such file: absent.json"),
        ("SELECT 1;", ["migration.sql", "--profile", "hand.toml"], "not made by"),
        ("SELECT 1;", ["migration.sql"], "--profile"),
        ("SELECT 1;", ["migration.sql", "--profile", "profile.json", "-o", "no/x"], "no does not"),
    ],
)
def test_mistakes(
    in_process: Run,
    profile: Path,
    tmp_path: Path,
    text: str | None,
    arguments: list[str],
    message: str,
) -> None:
    """Each with exit code 2 and one clear message."""
    assert profile.is_file()
    if text is not None:
        _migration(tmp_path, text)
    (tmp_path / "hand.toml").write_text(
        'schema_version = 1\n[[table]]\nname = "t"\nrows = 10\n'
        'columns = [{ name = "id", type = "int4" }]\n'
        '[[operation]]\ntable = "t"\nkind = "insert"\n[run]\noperations = 1\n'
    )
    done = in_process("check", *arguments)
    assert message in done.stderr
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
