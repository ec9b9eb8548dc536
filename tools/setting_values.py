"""
Which values a server takes for its settings and storage parameters, by version.

    python tools/setting_values.py --server 15 --server 16 ... --write

asks servers of all versions, oldest first, for each name that a profile may have
(`crates/pgheadroom-twin/src/profile/settings.txt`, `storage_parameters.txt`) and writes
`setting_values.txt` beside them. Without `--write` it prints what differs.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import Any

import psycopg

from pgheadroom import _core
from pgheadroom.servers import Host, find_programs

TABLE = Path(__file__).resolve().parents[1] / "crates/pgheadroom-twin/src/profile"
TARGET = TABLE / "setting_values.txt"
HEAD = """\
# Which values a server takes (`python tools/setting_values.py --write`, from servers).
#
# A line is a name, versions where they differ (`15-16`, `17-`), the type, the unit of a bare
# number, and the least and the greatest number, or the words. Words that depend on how a server
# was built are those of all that were asked.
"""

OLDEST, NEWEST = 15, 19


def values_of(server: str) -> tuple[int, dict[str, str], dict[str, str]]:
    """The server's major version, and the words of each setting and storage parameter."""
    programs = find_programs(server)
    with Host(programs, label="values") as host:
        cluster = host.cluster("values")
        cluster.start({})
        with cluster.connect() as connection:
            rows = connection.execute(
                "SELECT name, vartype, unit, min_val, max_val, enumvals FROM pg_settings"
            ).fetchall()
            known = set(_core.setting_names())
            settings = {row[0]: _words(*row[1:]) for row in rows if row[0] in known}
            connection.execute("CREATE TABLE t (a int, b text)")
            names = _core.setting_names(storage_parameters=True)
            found = {name: _parameter(connection, name) for name in names}
            parameters = {name: words for name, words in found.items() if words}
    return programs.version.major, settings, parameters


def _words(
    kind: str, unit: str | None, low: str | None, high: str | None, among: list[str] | None
) -> str:
    if kind in ("integer", "real"):
        return " ".join(("int" if kind == "integer" else kind, unit or "-", str(low), str(high)))
    if kind == "enum":
        return "enum " + "|".join(sorted(among or ()))
    return kind


def _parameter(connection: psycopg.Connection[Any], name: str) -> str:
    """What a storage parameter takes, by the words in which the server refuses another value."""
    said = _refused(connection, name, "nonsense")
    match = re.search(r"invalid value for (\w+)(?: point)? option", said)
    if match is None:
        return ""
    kind = {"integer": "int", "floating": "real", "boolean": "bool", "enum": "enum"}[match[1]]
    if kind == "bool":
        return "bool"
    if kind == "enum":
        return "enum " + "|".join(sorted(re.findall(r'"(\w+)"', said.split("Valid values", 1)[1])))
    ends = []
    for value in ("-2147483648", "2147483647") if kind == "int" else ("-1e9", "1e9"):
        said = _refused(connection, name, value)
        ends.append(re.findall(r'"(-?[\d.]+)"', said.split("Valid values", 1)[-1])[-2:])
    given = next((pair for pair in ends if len(pair) == 2), ["-2147483648", "2147483647"])
    low, high = (value.removesuffix(".000000") for value in given)
    return f"{kind} - {low} {high}"


def _refused(connection: psycopg.Connection[Any], name: str, value: str) -> str:
    """The server's message, empty if it takes the value."""
    try:
        connection.execute(f"ALTER TABLE t SET ({name} = {value})".encode())
    except psycopg.Error as error:
        return f"{error.diag.message_primary} {error.diag.message_detail or ''}"
    return ""


def lines(by_version: dict[int, dict[str, str]]) -> Iterable[str]:
    """A line for each name and stretch of versions that take the same."""
    for name in sorted({name for words in by_version.values() for name in words}):
        found = [(major, by_version[major].get(name)) for major in sorted(by_version)]
        if all(words and words.startswith("enum ") for _, words in found if words):
            among = {
                word for _, words in found if words for word in words[len("enum ") :].split("|")
            }
            same = "enum " + "|".join(sorted(among))
            found = [(major, same if words else None) for major, words in found]
        for words, group in groupby(found, key=lambda one: one[1]):
            majors = [major for major, _ in group]
            if words is None:
                continue
            versions = ""
            if len(majors) < len(found):
                end = "" if majors[-1] == NEWEST else str(majors[-1])
                versions = f"{majors[0]}-{end} "
            yield f"{name} {versions}{words}"


def text(servers: Iterable[str]) -> str:
    """The file's text."""
    settings, parameters = {}, {}
    for server in servers:
        major, *found = values_of(server)
        settings[major], parameters[major] = found
    missing = set(range(OLDEST, NEWEST + 1)) - set(settings)
    if missing:
        raise SystemExit(f"a server of each version is needed; missing: {sorted(missing)}")
    parts = ["\n== settings", *lines(settings), "\n== storage parameters", *lines(parameters)]
    return HEAD + "\n".join(parts) + "\n"


def main() -> int:
    """Ask, and write or compare."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0])
    parser.add_argument("--server", action="append", required=True)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    found = text(arguments.server)
    if arguments.write:
        TARGET.write_text(found, encoding="utf-8")
        return 0
    before = TARGET.read_text(encoding="utf-8").splitlines()
    differing = sorted(set(found.splitlines()) ^ set(before))
    print("\n".join(differing) or "nothing differs")
    return bool(differing)


if __name__ == "__main__":
    sys.exit(main())
