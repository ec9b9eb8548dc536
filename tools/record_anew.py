"""
Record on a server what its major has recorded, and say what differs: a release after its candidate.

    python tools/record_anew.py SERVER [NAME ...]

The newest recorded version of the server's major that is no later than the server says which
scenarios and profiles there are, and is what each is held against: 19rc1 for 19.0 at first, later
19.0 itself. Files are written to golden/expected/VERSION; the exit code is 1 where one differs.
Drawn runs (golden/drawn) are left out: they differ from run to run.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import record_profile_golden
import record_scenarios

from pgheadroom.errors import HeadroomError, InputError
from pgheadroom.servers import find_programs
from pgheadroom.types import PgVersion

from scenarios import read_all  # isort: skip - beside this file

EXPECTED = record_scenarios.EXPECTED
SCENARIO = "scenario"
SHOWN_MOST = 8
"""Differences of one file that are shown; the file has all of them."""


def recorded_before(version: PgVersion, recorded: list[PgVersion]) -> PgVersion:
    """
    The version to hold a server against: of its major, newest, no later than it.

    Raises:
        InputError: There is none.
    """
    fitting = [one for one in recorded if one.major == version.major and not version < one]
    if not fitting:
        names = ", ".join(sorted(map(str, recorded)))
        raise InputError(f"nothing of {version.major} up to {version} is recorded, only {names}")
    return max(fitting)


def differences(before: Any, after: Any, place: str = "") -> Iterator[str]:
    """Lines of what differs between two recordings; where they come from does not count."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in sorted(before.keys() | after.keys()):
            if key != "origin":
                inner = f"{place}.{key}" if place else key
                yield from differences(before.get(key), after.get(key), inner)
    elif before != after:
        yield f"{place}: {_short(before)} -> {_short(after)}"


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def record(path: Path, server: str) -> None:
    """Play again what a recording is of, on that server, and write its file."""
    kind, _, name = path.stem.partition("-")
    if kind == SCENARIO:
        (scenario,) = read_all([name])
        record_scenarios.record(scenario, server, None)
        return
    folders = {kind: folder for folder, kind in record_profile_golden.KINDS.items()}
    found = list((record_profile_golden.GOLDEN / folders[kind]).glob(f"{name}.*"))
    if len(found) != 1:
        raise InputError(f"{path.name} is of golden/{folders[kind]}/{name}, found {len(found)}")
    record_profile_golden.record(found[0], server)


def main(arguments: list[str]) -> int:
    """Record anew, and print what differs."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("server", help="version or folder")
    parser.add_argument("names", nargs="*", help="recordings, as scenario-NAME; without any, all")
    options = parser.parse_args(arguments)
    version = find_programs(options.server).version
    known = [PgVersion.parse(folder.name) for folder in EXPECTED.iterdir()]
    base = recorded_before(version, known)
    (EXPECTED / str(version)).mkdir(exist_ok=True)
    kinds = (SCENARIO, *record_profile_golden.KINDS.values())
    paths = [
        path
        for path in sorted((EXPECTED / str(base)).glob("*.json"))
        if path.stem.partition("-")[0] in kinds and path.stem in (options.names or [path.stem])
    ]
    differing = 0
    for path in paths:
        before = json.loads(path.read_text())
        try:
            record(path, options.server)
        except HeadroomError as error:  # a step that never ends, a setting that is gone
            lines = [f"not recorded: {error}"]
        else:
            after = json.loads((EXPECTED / str(version) / path.name).read_text())
            lines = list(differences(before, after))
        differing += bool(lines)
        print(f"{path.stem}: {f'{len(lines)} differ' if lines else 'the same'}", flush=True)
        for line in lines[:SHOWN_MOST]:
            print(f"    {line}")
    print(f"{version} beside {base}: {differing} of {len(paths)} recordings differ")
    return int(differing > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
