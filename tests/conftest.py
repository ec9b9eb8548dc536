"""
Options and header of the whole test suite.

`--server FOLDER` (again for more) or PGHEADROOM_TEST_SERVERS (folders, separated like PATH) add
servers to those that are at hand. A test that takes the argument `programs` runs on each of them;
`@pytest.mark.pg(">= 16, < 18")` skips the others with a reason.
"""

from __future__ import annotations

import operator
import os
import re
import signal

import hypothesis
import pytest

from pgheadroom.servers import ServerPrograms, at_hand, find_programs

# The same examples in every run, however busy the machine is: a failure is one that comes again.
hypothesis.settings.register_profile(
    "repeatable", derandomize=True, deadline=None, database=None, print_blob=True
)
hypothesis.settings.load_profile("repeatable")

SERVERS = pytest.StashKey[list[ServerPrograms]]()
_COMPARE = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
    "==": operator.eq,
    "!=": operator.ne,
}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--server",
        action="append",
        default=[],
        metavar="FOLDER",
        help="test on this PostgreSQL too (bin folder, prefix or npm package); repeatable",
    )


def pytest_configure(config: pytest.Config) -> None:
    # A runner may have been started with these ignored (nohup, a background job), and its children
    # would inherit that: the programs that tests interrupt would never notice.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    named = os.environ.get("PGHEADROOM_TEST_SERVERS", "").split(os.pathsep)
    folders = [*config.getoption("--server"), *filter(None, named)]
    config.stash[SERVERS] = at_hand() + [find_programs(folder) for folder in folders]


def pytest_report_header(config: pytest.Config) -> str:
    return "servers: " + (", ".join(map(str, config.stash[SERVERS])) or "none")


def fits(programs: ServerPrograms, conditions: str) -> bool:
    """Whether the major version fulfils all of `">= 16, < 18"`."""
    for condition in filter(None, map(str.strip, conditions.split(","))):
        match = re.fullmatch(r"(>=|<=|==|!=|>|<)\s*(\d+)", condition)
        if match is None:
            raise pytest.UsageError(f"mark pg({conditions!r}): {condition!r} is no condition")
        if not _COMPARE[match[1]](programs.version.major, int(match[2])):
            return False
    return True


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "programs" not in metafunc.fixturenames:
        return
    conditions = ", ".join(
        str(argument) for mark in metafunc.definition.iter_markers("pg") for argument in mark.args
    )
    parameters = []
    for programs in metafunc.config.stash[SERVERS]:
        marks = []
        if not fits(programs, conditions):
            marks = [pytest.mark.skip(reason=f"{programs}: the test is for {conditions}")]
        identity = f"{programs.version}" + (
            "" if programs.origin == "wheel" else "-" + programs.origin
        )
        parameters.append(pytest.param(programs, id=identity, marks=marks))
    if not parameters:
        parameters = [pytest.param(None, marks=pytest.mark.skip(reason="no server at hand"))]
    metafunc.parametrize("programs", parameters, scope="session")
