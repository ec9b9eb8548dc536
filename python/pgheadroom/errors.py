"""
The exception tree: every error that a user can meet, with its exit code.

First step of the layers: imports nothing of ours. The message says what was found, what was
expected and what to do; what a program may want to know is an attribute too.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any


class HeadroomError(Exception):
    """
    Base of all errors that pgheadroom raises on purpose.

    Args:
        message: What was found, what was expected, what to do.
        mentions: Parameters, as Python has them, that the message names in backquotes; the command
            line puts its options' names in their place. `name=value` is a factor of an experiment
            at a level, `--set name=value` there.
    """

    exit_code = 2

    def __init__(self, message: str = "", *, mentions: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.mentions = mentions

    def __reduce__(self) -> tuple[Any, ...]:
        """
        What another process makes it of: all that it is, notes too.

        `BaseException` calls the class with the message alone, and some of ours take more.
        """
        return _again, (type(self), self.args, self.__dict__)

    def as_option(self) -> str:
        """The message with the options of the command line that the parameters are."""
        return _with_options(str(self), self.mentions)


class InputError(HeadroomError):
    """The user can repair it: an option, a file, a schema version."""

    exit_code = 2


class ParameterError(InputError):
    """
    What was asked for by a parameter is not possible.

    The command line puts its option's name for the parameter's: `--sample-pages 0: ...`.

    Args:
        parameter: Its name, as Python has it: `sample_pages`.
        problem: What follows the name: `0: expected at least 1`, or `: ...`; a space is put before
            anything but a colon.
        mentions: Other parameters that the problem names, there in backquotes.
    """

    def __init__(self, parameter: str, problem: str, *, mentions: tuple[str, ...] = ()) -> None:
        self.parameter = parameter
        self.problem = problem
        super().__init__(_joined(parameter, problem), mentions=mentions)

    def as_option(self) -> str:
        """The message with the options of the command line that the parameters are."""
        return _joined(_option(self.parameter), _with_options(self.problem, self.mentions))


def _again(
    kind: type[HeadroomError], args: tuple[Any, ...], attributes: dict[str, Any]
) -> HeadroomError:
    """An error as it was where it was raised."""
    made = kind.__new__(kind, *args)
    made.__dict__.update(attributes)
    return made


def _with_options(text: str, parameters: tuple[str, ...]) -> str:
    for name in parameters:
        text = text.replace(f"`{name}`", _option(name))
    return text


def _option(parameter: str) -> str:
    if "=" in parameter:
        return f"--set {parameter}"
    return f"--{parameter.replace('_', '-')}"


def _joined(name: str, problem: str) -> str:
    return f"{name}{'' if problem.startswith(':') else ' '}{problem}"


class ConnectionMisread(InputError):  # noqa: N818 - reads as what happened
    """What names a database is neither a URI nor keywords as libpq has them."""

    def as_option(self) -> str:
        """The message, and the options that say a connection in parts."""
        return f"{self}, or --host, --port, --username, --dbname"


class OutputFailed(InputError):  # noqa: N818 - reads as what happened
    """What the user has us print cannot be written: standard output is full, or closed."""


class SourceError(HeadroomError):
    """A database or its write-ahead log did not give what was asked."""

    exit_code = 3


class ConnectionFailed(SourceError):  # noqa: N818 - the contract names it so
    """No connection to the server, or it ended."""


class PrivilegeMissing(SourceError):  # noqa: N818 - the contract names it so
    """The role lacks a right; `grant` is the statement that would give it, if there is one."""

    def __init__(self, message: str, *, grant: str | None = None) -> None:
        super().__init__(message if grant is None else f"{message}\nWhat would help: {grant}")
        self.grant = grant


class UnsupportedServer(SourceError):  # noqa: N818 - the contract names it so
    """The server's version or build cannot do what was asked."""


class WalError(SourceError):
    """
    Write-ahead log that was not to be read.

    Args:
        message: What was found, what was expected, what to do.
        lsn: Where, as PostgreSQL writes a position; None where the message names files alone.
        path: The file; None where there are several, or none.
    """

    def __init__(
        self, message: str = "", *, lsn: str | None = None, path: str | None = None
    ) -> None:
        super().__init__(message)
        self.lsn = lsn
        self.path = path


class WalCorrupt(WalError):  # noqa: N818 - the contract names it so
    """A file that is no WAL, or cannot be read."""


class WalIncomplete(WalError):  # noqa: N818 - the contract names it so
    """A part of the log is missing, or all of it."""


class WalUnsupported(WalError):  # noqa: N818 - the contract names it so
    """WAL of a version that is not read here, or of several servers."""


class LabError(HeadroomError):
    """A throw-away server or an experiment failed, or a run is invalid."""

    exit_code = 4


class ServerNotFound(LabError):  # noqa: N818 - reads as what happened
    """No server program of the wanted version is at hand; `at_hand` names those that are."""

    def __init__(
        self, message: str, *, at_hand: tuple[str, ...] = (), mentions: tuple[str, ...] = ()
    ) -> None:
        super().__init__(message, mentions=mentions)
        self.at_hand = at_hand


class ServerStartFailed(LabError):  # noqa: N818 - reads as what happened
    """A throw-away server did not start; `log_tail` holds its log's last lines."""

    def __init__(self, message: str, *, log_tail: tuple[str, ...] = ()) -> None:
        shown = "".join(f"\n  | {line}" for line in log_tail)
        super().__init__(message + (f"\nThe server's log ends with:{shown}" if shown else ""))
        self.log_tail = log_tail


class ProgramMissing(LabError):  # noqa: N818 - reads as what happened
    """A client program (pgbench, say) is nowhere to be found."""


class DiskFull(LabError):  # noqa: N818 - reads as what happened
    """Too little room on a file system; `path`, `needed_bytes` and `free_bytes` say where."""

    def __init__(
        self,
        message: str,
        *,
        path: Path,
        needed_bytes: int | None = None,
        free_bytes: int,
        mentions: tuple[str, ...] = (),
    ) -> None:
        super().__init__(message, mentions=mentions)
        self.path = path
        self.needed_bytes = needed_bytes
        self.free_bytes = free_bytes


class MeasurementInvalid(LabError):  # noqa: N818 - reads as what happened
    """What ran was not the intended workload, so its numbers are thrown away."""


class TwinError(HeadroomError):
    """A scenario is invalid for the twin, or one of its limits was reached."""

    exit_code = 5
