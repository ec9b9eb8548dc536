"""What `--help` shows: in the order of work, whole lines, words for values, examples that run."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys

import pytest
from typed_commands import COMMANDS_BY_PATH, path_of, understood

from pgheadroom.cli.app import run
from pgheadroom.cli.commands import COMMANDS
from pgheadroom.cli.examples import EXAMPLES
from pgheadroom.cli.help_page import METAVARS, OF_ONE_COMMAND, PANELS

WIDTH = 80


def _shown(capsys: pytest.CaptureFixture[str], arguments: str) -> str:
    assert run(shlex.split(arguments)) == 0
    return capsys.readouterr().out


@pytest.fixture(autouse=True)
def _narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(WIDTH))


def test_the_program_lists_its_commands_in_the_order_of_work(
    capsys: pytest.CaptureFixture[str],
) -> None:
    shown = _shown(capsys, "--help")
    listed = [
        line.split()[0] for line in shown.splitlines() if line[:2] == "  " and line[2:3] != " "
    ]
    assert [name for name in listed if name in COMMANDS] == list(COMMANDS)
    assert list(COMMANDS)[:3] == ["demo", "observe", "advise"]


@pytest.mark.parametrize("group", ["", "wal", "lab"])
def test_summaries_are_whole(group: str, capsys: pytest.CaptureFixture[str]) -> None:
    shown = _shown(capsys, f"{group} --help")
    assert "..." not in shown.replace("[ARGS]...", "")
    assert max(map(len, shown.splitlines())) <= WIDTH


@pytest.mark.parametrize("group", ["", "wal", "lab"])
def test_without_a_command_the_help_is_the_answer(
    group: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A group that was called by its name alone ended with 2, its help in an error."""
    asked, bare = _shown(capsys, f"{group} --help"), _shown(capsys, group)
    assert bare == asked


@pytest.mark.parametrize("path", list(COMMANDS_BY_PATH))
def test_values_have_words(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Not types of the program: `<str>`, `<list[Path]>`, `<int range>`."""
    shown = _shown(capsys, f"{path} --help")
    assert "<" not in shown.split("Examples:")[0].replace("<=", "")


@pytest.mark.parametrize("path", list(COMMANDS_BY_PATH))
def test_each_command_has_two_examples_that_it_understands(path: str) -> None:
    examples = EXAMPLES[path]
    assert len(examples) == 2
    for what, typed in examples:
        assert what[0].isupper()
        assert not what.endswith((".", ":"))
        assert path_of(typed) == path
        understood(typed)


def test_nothing_is_said_of_what_is_not_there() -> None:
    """Examples, words and headings of commands and options that are gone would stay unseen."""
    assert set(EXAMPLES) == set(COMMANDS_BY_PATH)
    options = {
        (path.split()[-1], name)
        for path, command in COMMANDS_BY_PATH.items()
        for parameter in command.params
        for name in parameter.opts
    }
    names = {name for _, name in options}
    assert set(METAVARS) <= names
    assert set(OF_ONE_COMMAND) <= options
    for of_panel in PANELS.values():
        assert set(of_panel) <= names


@pytest.mark.parametrize(
    ("typed", "offered"), [("pgheadroom ver", "verify"), ("pgheadroom advise --pl", "--plan")]
)
def test_a_shell_completes(typed: str, offered: str) -> None:
    environment = {
        **os.environ,
        "_PGHEADROOM_COMPLETE": "complete_bash",
        "COMP_WORDS": typed,
        "COMP_CWORD": str(len(typed.split()) - 1),
    }
    done = subprocess.run(
        [sys.executable, "-m", "pgheadroom"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == [offered]
