"""What a command reads of its line by itself is what Typer makes of it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer._click.exceptions import UsageError
from typer.main import get_command

from pgheadroom.cli import plain_values
from pgheadroom.cli.app import app
from pgheadroom.cli.commands import COMMANDS

TEXTS = (
    *("", " ", "a", "100,90", "-", "0", "1", "5", " 5", "5_0", "+5", "-1", "007", "2.0", "0.5"),
    *("1e3", "nan", "9" * 19, "٣", "true", "no", "text", "TEXT", "json", "local", "heap", "None"),
    *(".", "/etc", "/no/such/file", str(Path(__file__)), "\udcff", "a\nb"),
)
NUMBERS = (0, 1, 5, 10**20, 0.5, True, None)


def _parameters() -> Iterator[tuple[str, Any, Any]]:
    """Each parameter of each command, with a context of its command's."""
    root = get_command(app)
    context = root.make_context("pgheadroom", ["--help-is-not-asked"], resilient_parsing=True)
    for name in COMMANDS:
        pairs = [(name, root.get_command(context, name))]  # type: ignore[attr-defined]
        for path, command in pairs:
            pairs += [
                (f"{path} {below}", deeper)
                for below, deeper in getattr(command, "commands", {}).items()
            ]
            inside = type(context)(command, parent=context, info_name=path, resilient_parsing=True)
            for parameter in command.get_params(inside):
                yield path, inside, parameter


PARAMETERS = list(_parameters())


def _typers(parameter: Any, context: Any, value: Any) -> Any:
    """What Typer's own way gives, or the words of its refusal."""
    try:
        return type(parameter).process_value(parameter, context, value)
    except UsageError as error:
        return f"refused: {error.format_message()}"


def _same(found: Any, expected: Any) -> bool:
    """Equal, and of the same types within."""
    if isinstance(found, list):
        return isinstance(expected, list) and all(map(_same, found, expected))
    return type(found) is type(expected) and (found == expected or repr(found) == repr(expected))


@pytest.mark.parametrize(
    ("context", "parameter"),
    [(context, parameter) for _, context, parameter in PARAMETERS],
    ids=[f"{path} {parameter.name}" for path, _, parameter in PARAMETERS],
)
def test_plain_values_are_typers(
    context: Any, parameter: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every parameter of every command, given this and that; a refusal is always Typer's."""
    monkeypatch.setattr(parameter, "callback", None)
    many = parameter.multiple or parameter.nargs == -1
    values = [*TEXTS, *NUMBERS, parameter.default]
    for value in [[item] for item in values] + [(), list(TEXTS[:3])] if many else values:
        try:
            found = plain_values.plain(parameter, value)
        except plain_values._Typers:
            continue
        assert _same(found, _typers(parameter, context, value)), (value, found)


def test_most_of_what_is_given_is_plain() -> None:
    """Else Typer would load pydantic, which takes a third of what `wal stats` imports."""
    for path, _, parameter in PARAMETERS:
        annotation = parameter.type_descriptor.annotation
        given = {str: "a", int: "5", float: "0.5", Path: "a", list[str]: ["a"], list[Path]: ["a"]}
        if annotation in given:
            assert plain_values.plain(parameter, given[annotation]) is not None, path
        if not parameter.required:
            plain_values.plain(parameter, None)


@pytest.mark.parametrize("arguments", ["lab list", "wal stats FOLDER"])
def test_a_command_that_reads_no_file_of_ours_loads_no_pydantic(
    arguments: str, tmp_path: Path
) -> None:
    """Not for its options either, nor for the one for its help."""
    code = (
        "import sys; from pgheadroom.cli.app import run; code = run(sys.argv[1:]); "
        "sys.exit('pydantic' in sys.modules)"
    )
    words = [str(tmp_path) if word == "FOLDER" else word for word in arguments.split()]
    found = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stderr
    assert "Traceback" not in found.stderr
