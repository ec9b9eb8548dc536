"""
Options and header of the whole test suite.

`--server FOLDER` (again for more), PGHEADROOM_TEST_SERVERS and PGHEADROOM_LONG_TEST_SERVERS
(folders, separated like PATH) add servers to those that are at hand. A test that takes the argument
`programs` runs on each of them; `@pytest.mark.pg(">= 16, < 18")` skips the others with a reason.

What `make test` has no time for carries the mark `long`, with a reason, and runs by
`make test-long`: single tests; servers of PGHEADROOM_LONG_TEST_SERVERS, but for tests marked
`minors`; second builds of a version; and of the versions all but one, which is each test's own by
turns. A test marked `contrib` has one server with contrib modules and one without, by turns and of
two versions; one marked `each` has every version.
Servers that `--server` names are never left out.

Run folders and `tmp_path` are made in memory where there is room for them.
"""

from __future__ import annotations

import operator
import os
import re
import signal
import zlib

import hypothesis
import pytest

from lengths import examples
from pgheadroom.servers import ServerPrograms, at_hand, find_programs
from places import fast_place

# The same examples in every run, however busy the machine is: a failure is one that comes again.
hypothesis.settings.register_profile(
    "repeatable",
    max_examples=examples(100),
    derandomize=True,
    deadline=None,
    database=None,
    print_blob=True,
)
hypothesis.settings.load_profile("repeatable")

SERVERS = pytest.StashKey[list[ServerPrograms]]()
ASKED_FOR = pytest.StashKey[list[ServerPrograms]]()
FOR_LONG = pytest.StashKey[list[ServerPrograms]]()
_COMPARE = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
    "==": operator.eq,
    "!=": operator.ne,
}


LONGEST = (
    "test_fuzz_inputs.py",
    "test_prove.py",
    "test_cli_runs.py",
    "test_lab_update_cost.py",
    "test_rewrites.py",
    "test_lab_book.py",
    "test_lab_cluster.py",
    "test_observe_live.py",
    "test_verify_grows.py",
    "test_causes_live.py",
    "test_play.py",
    "test_verify.py",
    "test_observe_many.py",
    "test_passwords.py",
    "test_report_advice.py",
    "test_report_charts.py",
    "test_observe_access.py",
    "test_servers_killed.py",
    "test_lab_cluster_decay.py",
    "test_variants_live.py",
    "test_lab_custom.py",
    "test_lab_tprocc.py",
)
"""Files that come first, so that none of them is left to one worker while the others are done."""


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
    os.environ.setdefault("PGHEADROOM_TMPDIR", str(fast_place()))
    # As pytest calls it: where `tmp_path` lies.
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(fast_place(programs=True)))
    config.stash[ASKED_FOR] = [find_programs(folder) for folder in config.getoption("--server")]
    config.stash[FOR_LONG] = _named("PGHEADROOM_LONG_TEST_SERVERS")
    config.stash[SERVERS] = [
        *at_hand(),
        *config.stash[ASKED_FOR],
        *_named("PGHEADROOM_TEST_SERVERS"),
        *config.stash[FOR_LONG],
    ]


def _named(variable: str) -> list[ServerPrograms]:
    """The servers in the folders that an environment variable has."""
    folders = os.environ.get(variable, "").split(os.pathsep)
    return [find_programs(folder) for folder in filter(None, folders)]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files first; everything else stays in its order."""
    places = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path.name, len(places)))


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


def _spared(metafunc: pytest.Metafunc) -> dict[int, str]:
    """Servers that `make test` leaves out of a test, by identity, each with the reason."""
    every = metafunc.config.stash[SERVERS]
    marks = {mark.name for mark in metafunc.definition.iter_markers()}
    conditions = ", ".join(
        str(argument) for mark in metafunc.definition.iter_markers("pg") for argument in mark.args
    )
    fitting = [programs for programs in every if fits(programs, conditions)]
    spared: dict[int, str] = {}
    if "contrib" not in marks:
        for n, programs in enumerate(fitting):
            if any(programs.version == other.version for other in fitting[:n]):
                spared[id(programs)] = f"a second {programs.version}"
    further = metafunc.config.stash[FOR_LONG]
    if "minors" not in marks:
        for programs in further:
            spared.setdefault(id(programs), f"{programs.version} beside the usual versions")
    usual = [each for each in fitting if id(each) not in spared and each not in further]
    groups = [usual]
    if "contrib" in marks:
        groups = [
            [each for each in usual if ("pg_stat_statements" in each.contrib) is has]
            for has in (True, False)
        ]
    taken: list[ServerPrograms] = []
    for group in filter(None, groups if "each" not in marks else ()):
        # The same one in every run: a failure is one that comes again.
        turn = zlib.crc32(metafunc.definition.nodeid.encode()) % len(group)
        order = group[turn:] + group[:turn]
        versions = {programs.version for programs in taken}
        kept = next((each for each in order if each.version not in versions), order[0])
        taken.append(kept)
        for programs in order:
            if programs is not kept:
                spared[id(programs)] = f"by turns on {kept.version}"
    for programs in metafunc.config.stash[ASKED_FOR]:
        spared.pop(id(programs), None)
    return spared


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "programs" not in metafunc.fixturenames:
        return
    conditions = ", ".join(
        str(argument) for mark in metafunc.definition.iter_markers("pg") for argument in mark.args
    )
    parameters = []
    spared = _spared(metafunc)
    for programs in metafunc.config.stash[SERVERS]:
        marks = [pytest.mark.long(reason=spared[id(programs)])] if id(programs) in spared else []
        if not fits(programs, conditions):
            marks.append(pytest.mark.skip(reason=f"{programs}: the test is for {conditions}"))
        identity = f"{programs.version}" + (
            "" if programs.origin == "wheel" else "-" + programs.origin
        )
        parameters.append(pytest.param(programs, id=identity, marks=marks))
    if not parameters:
        parameters = [pytest.param(None, marks=pytest.mark.skip(reason="no server at hand"))]
    metafunc.parametrize("programs", parameters, scope="session")
