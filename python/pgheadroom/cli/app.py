"""
The program's commands, and what happens to errors and interrupts.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import typer
from typer.main import get_command

import pgheadroom
from pgheadroom.cli import INTERRUPTED, crash, streams
from pgheadroom.cli.commands import Commands
from pgheadroom.cli.plain_values import read_plainly
from pgheadroom.errors import HeadroomError, OutputFailed, TwinError
from pgheadroom.quoting import printable_lines
from pgheadroom.redaction import process_secrets, redacted
from pgheadroom.servers.signals import terminate_cleanly

app = typer.Typer(
    name="pgheadroom",
    cls=Commands,
    help="How much room should be left on each PostgreSQL page, and what will it change?",
    epilog="Exit codes: 0 done; 1 findings or a failed check; 2 usage or input; "
    "3 database or WAL; 4 lab; 5 twin; 6 cannot be judged (verify); 70 a bug of pgheadroom's; "
    "130 interrupted.",
    no_args_is_help=True,
    add_completion=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-?"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"pgheadroom {pgheadroom.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(
        False, "--version", "-V", callback=_show_version, is_eager=True, help="Show the version."
    ),
) -> None:
    pass


def run_program(arguments: Sequence[str]) -> int:
    """Run as the process's own program: with its standard streams, to their last byte."""
    streams.guard_streams()
    code = run(arguments)
    try:
        sys.stdout.flush()
    except OutputFailed as error:
        _say(f"pgheadroom: {error}")
        return error.exit_code
    return code


def run(arguments: Sequence[str]) -> int:
    """Run the program and return its exit code; errors are shown on standard error."""
    command = get_command(app)
    read_plainly(command)
    try:
        with terminate_cleanly():
            code = command.main(args=list(arguments), prog_name="pgheadroom", standalone_mode=False)
    except HeadroomError as error:
        secrets = process_secrets(arguments)
        _say(redacted(f"pgheadroom: {error.as_option()}", secrets))
        for note in getattr(error, "__notes__", ()):
            _say(redacted(f"  ({note})", secrets))
        return error.exit_code
    except (typer.Abort, KeyboardInterrupt):
        return _interrupted()
    except SystemExit:
        raise
    except MemoryError:
        _say("pgheadroom: out of memory: give it more, or ask for less (fewer rows, fewer tables)")
        return TwinError.exit_code
    except BaseException as error:  # noqa: BLE001 - a panic of the core is no Exception
        if type(error).__name__ == "NoArgsIsHelpError":  # Typer's; a group without a command
            typer.echo(error.format_message())  # type: ignore[attr-defined]
            return 0
        if (usage := _usage_error(error)) is not None:
            _say(redacted(usage, process_secrets(arguments)))
            return 2
        _say(f"pgheadroom: {crash.describe(error, arguments)}")
        return crash.EXIT_CODE
    if code == INTERRUPTED:  # typer's way to tell of Ctrl-C, without a word to the user
        return _interrupted()
    return code if isinstance(code, int) else 0


def _usage_error(error: BaseException) -> str | None:
    """The message of a wrong option or argument, None for anything else."""
    show = getattr(error, "format_message", None)
    if show is None:
        return None
    context = getattr(error, "ctx", None)
    hint = f"\nTry '{context.command_path} --help'." if context is not None else ""
    return f"pgheadroom: {show()}{hint}"


def _interrupted() -> int:
    _say("pgheadroom: interrupted; nothing of the servers is left")
    return INTERRUPTED


def _say(text: str) -> None:
    sys.stderr.write(printable_lines(text) + "\n")
    sys.stderr.flush()
