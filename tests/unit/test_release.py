"""
What a release is made of: the changelog out of its fragments, the GitHub Action, the image's pins.

What only GitHub or Docker can run is linted (`make lint-release`); its steps are run here.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LEDGER = ROOT / "tests" / "unit" / "observed" / "ledger.json"
CREATES = "CREATE INDEX {name} ON {table} ({column});"


def _run(
    *command: str | Path, cwd: Path = ROOT, **environment: str
) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=os.environ | {"PATH": path} | environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_every_fragment_gets_into_the_changelog() -> None:
    """Each one, under a heading of its kind."""
    done = _run("towncrier", "build", "--draft", "--version", "9.9.9")
    assert done.returncode == 0, done.stderr
    sections = re.split(r"^### ", done.stdout, flags=re.MULTILINE)
    assert "## 9.9.9 (" in sections[0]
    kinds = {
        "accuracy": "Accuracy of forecasts",
        "added": "Added",
        "changed": "Changed",
        "fixed": "Fixed",
    }
    for path in (ROOT / "changelog.d").glob("*.*.md"):
        title = kinds[path.name.split(".")[-2]]
        (section,) = [text for text in sections if text.startswith(f"{title}\n")]
        assert f"- {path.read_text(encoding='utf-8').splitlines()[0].rstrip()}" in section


def test_release_notes_are_one_section(tmp_path: Path) -> None:
    """The version that is built, and that alone."""
    for name in ("Cargo.toml", "tools/release-notes"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    version = re.search(r'^version = "(.+)"', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)
    assert version is not None
    log = tmp_path / "CHANGELOG.md"
    log.write_text(f"# Changelog\n\n## {version[1]} (today)\n\n- new\n\n## 0.0.1 (then)\n\n- old\n")
    done = _run(tmp_path / "tools" / "release-notes", version[1])
    assert (done.returncode, done.stdout.strip()) == (0, "- new")
    for wrong in ("9.9.9", "0.0.1"):
        done = _run(tmp_path / "tools" / "release-notes", wrong)
        assert (done.returncode, done.stdout) == (1, "")
        assert version[1] in done.stderr
    log.write_text("# Changelog\n")
    assert _run(tmp_path / "tools" / "release-notes", version[1]).returncode == 1


def _observed() -> tuple[str, str]:
    """A table of the ledger's profile and a column that its updates assign, not indexed yet."""
    data = json.loads(LEDGER.read_text(encoding="utf-8"))
    for table in data["table"]:
        observed = table["observed"]
        indexed = {column for index in observed["indexes"] for column in index["columns"]}
        for item in observed["updates"]["classes"]:
            for column in item["columns"]:
                if column not in indexed:
                    return f"{observed['schema']}.{observed['name']}", column
    raise AssertionError("the profile has no such column")


def _act(folder: Path, migrations: str) -> tuple[subprocess.CompletedProcess[str], str, str]:
    """The step of the action, with what it puts into the job's summary and outputs."""
    summary, output = folder / "summary", folder / "output"
    for path in (summary, output):
        path.write_text("")
    done = _run(
        ROOT / "tools" / "action-check",
        cwd=folder,
        MIGRATIONS=migrations,
        PROFILE=str(LEDGER),
        STRICT="true",
        REWRITE_OVER="1GB",
        GITHUB_STEP_SUMMARY=str(summary),
        GITHUB_OUTPUT=str(output),
    )
    return done, summary.read_text(), output.read_text()


def test_the_action_fails_by_findings_and_by_what_is_missing(tmp_path: Path) -> None:
    """Exit code of the check as the step's own; the answer in the summary."""
    table, column = _observed()
    (tmp_path / "1_note.sql").write_text(f"COMMENT ON TABLE {table} IS 'x'")
    (tmp_path / "2_index.sql").write_text(CREATES.format(name="x", table=table, column=column))
    done, summary, output = _act(tmp_path, "1_note.sql")
    assert (done.returncode, output) == (0, "exit-code=0\n"), done.stderr
    done, summary, output = _act(tmp_path, "*.sql")
    assert (done.returncode, output) == (1, "exit-code=1\n"), done.stderr
    assert "1_note.sql 2_index.sql" in summary
    assert "loses HOT" in summary
    assert "loses HOT" in done.stdout
    done, summary, output = _act(tmp_path, "1_note.sql 3_forgotten.sql")
    assert (done.returncode, summary) == (2, "")
    assert "3_forgotten.sql" in done.stderr


@pytest.mark.parametrize("name", ["migrations", "profile", "strict", "rewrite-over"])
def test_the_action_hands_its_inputs_over(name: str) -> None:
    """By the environment, so that no input is ever part of a shell's text."""
    action = (ROOT / "action.yml").read_text(encoding="utf-8")
    variable = name.upper().replace("-", "_")
    assert f"        {variable}: ${{{{ inputs.{name} }}}}\n" in action
    assert f"${variable}" in (ROOT / "tools" / "action-check").read_text(encoding="utf-8")
    for block in re.findall(r"run: \|?\n?((?: {8}.*\n)+|.*\n)", action):
        assert "${{" not in block


def test_the_image_takes_the_pinned_versions() -> None:
    """The constraints that the Dockerfile makes of the lock are its versions, one a line."""
    dockerfile = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    script = re.search(r"RUN sed -E '([^']+)'", dockerfile)
    assert script is not None
    done = _run("sed", "-E", script[1], ROOT / "requirements.lock")
    lines = [line for line in done.stdout.splitlines() if line]
    assert len(lines) > 20
    assert all(re.fullmatch(r"[a-z0-9._-]+==[^ \\]+( ; .+)?", line) for line in lines)
