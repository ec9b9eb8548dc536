"""
The queries that a live database is asked: one file each, `queries/NAME.sql`.

`NAME_17.sql` stands for it from version 17 on. A file may name variables as psql does (`:seed`,
`:'fsm_schema'`) and take in by psql's `ir` what several have in common (`queries/parts`), so that
the same text runs here and in psql. Those in `queries/apply` are asked by `apply` alone, with bound
parameters, those in `queries/wal` by `wal`.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from importlib import resources

from pgheadroom import quoting

_FILE = re.compile(r"(?P<name>[a-z_]+?)(?:_(?P<since>\d\d))?\.sql")
_PART = re.compile(r"^\\ir (?:parts/)?(?P<name>[a-z_]+)\.sql$", re.MULTILINE)
_VARIABLE = re.compile(r"(?<![:\w]):(?:'(?P<quoted>[a-z_]+)'|(?P<bare>[a-z_]+)\b)")


@functools.cache
def _variants() -> Mapping[str, tuple[tuple[int, str], ...]]:
    """Each query's texts by the major version from which they stand, newest first; 0: any."""
    found: dict[str, list[tuple[int, str]]] = {}
    for file in resources.files("pgheadroom.sources").joinpath("queries").iterdir():
        match = _FILE.fullmatch(file.name)
        if match is not None:
            text = _whole(file.read_text(encoding="utf-8").rstrip())
            found.setdefault(match["name"], []).append((int(match["since"] or 0), text))
    return {name: tuple(sorted(texts, reverse=True)) for name, texts in found.items()}


def _whole(text: str) -> str:
    """The text with the parts that it takes in."""
    parts = resources.files("pgheadroom.sources").joinpath("queries", "parts")

    def part(match: re.Match[str]) -> str:
        return _whole(parts.joinpath(f"{match['name']}.sql").read_text(encoding="utf-8").rstrip())

    return _PART.sub(part, text)


def names() -> tuple[str, ...]:
    """All queries."""
    return tuple(sorted(_variants()))


def variants(name: str) -> tuple[tuple[int, str], ...]:
    """The texts of a query, newest first, with the major version from which each stands."""
    return _variants()[name]


def text(name: str, major: int) -> str | None:
    """The query's text for that version; None where the version has nothing to ask."""
    return next((found for since, found in variants(name) if major >= since), None)


@functools.cache
def apply_text(name: str) -> str:
    """A query that only `apply` asks."""
    file = resources.files("pgheadroom.sources").joinpath("queries", "apply", f"{name}.sql")
    return file.read_text(encoding="utf-8").rstrip()


@functools.cache
def wal_text(name: str) -> str:
    """A query that only `wal` asks."""
    file = resources.files("pgheadroom.sources").joinpath("queries", "wal", f"{name}.sql")
    return file.read_text(encoding="utf-8").rstrip()


def bound(query: str, values: Mapping[str, int | str]) -> str:
    """
    Put values in the place of psql variables.

    Args:
        query: Text of a query.
        values: Whole numbers as they are; strings as identifiers (`:name`) or literals
            (`:'name'`). A variable without a value stays.
    """

    def value(match: re.Match[str]) -> str:
        name = match["quoted"] or match["bare"]
        if name not in values:
            return match[0]
        found = values[name]
        if isinstance(found, int):
            return str(found)
        return quoting.literal(found) if match["quoted"] else quoting.identifier(found)

    return _VARIABLE.sub(value, query)


def as_line(name: str, moment: str, query: str) -> str:
    """
    The statement whose one row is the query's rows as one line of JSON.

    json, for jsonb costs the server twice the time; json_agg breaks lines between rows, and no
    string of JSON holds a line break.
    """
    return (
        f"SELECT replace(json_build_object('query', {quoting.literal(name)}, "
        f"'pass', {quoting.literal(moment)},\n"
        "  'rows', coalesce(json_agg(row_to_json(q)), '[]'::json))::text, chr(10), '')\n"
        f"FROM (\n{query}\n) AS q"
    )
