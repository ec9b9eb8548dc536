"""
The smallest profile, of those tried, that still ends as a given one did.

One change at a time, the largest first: a table, an operation, an index or a column gone, half of
the rows, a field left at its default. A change that keeps the ending is kept.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

Section = dict[str, Any]


def smallest(profile: Section, still: Callable[[Section], bool], tries: int = 120) -> Section:
    """
    Make a profile smaller as long as it ends in the same way.

    Args:
        profile: As a file has it.
        still: Whether a smaller one ends so.
        tries: Profiles to try at most.
    """
    left = tries
    is_smaller = True
    while is_smaller and left > 0:
        is_smaller = False
        for candidate in _candidates(profile):
            if left == 0:
                break
            left -= 1
            if still(candidate):
                profile, is_smaller = candidate, True
                break
    return profile


def _candidates(profile: Section) -> Iterator[Section]:
    yield from _without(profile, ("operation",))
    yield from _smaller_tables(profile)
    yield from _fewer(profile)
    yield from _fields(profile, ("server",), keep=("version",))
    yield from _fields(profile, ("run",), keep=("operations", "duration_s", "clients"))
    for n in range(len(profile["operation"])):
        yield from _fields(profile, ("operation", n), keep=("table", "kind", "sets"))
    for n, table in enumerate(profile["table"]):
        if "fillfactor" in table:
            yield _changed(profile, ("table", n, "fillfactor"), None)
        if "pages" in table:
            without = _changed(profile, ("table", n, "pages"), None)
            yield _changed(without, ("table", n, "rows_per_page"), None)
            yield from _without(profile, ("table", n, "pages"), keep=1)
            for k in range(len(table["pages"])):
                yield from _fields(profile, ("table", n, "pages", k), keep=("pages_frac", "rows"))
        for name in ("unlogged", "reloptions"):
            if name in table:
                yield _changed(profile, ("table", n, name), None)
        for listed in ("indexes", "columns"):
            for k in range(len(table[listed])):
                yield from _fields(profile, ("table", n, listed, k), keep=_SHAPE)


_SHAPE = ("name", "type", "columns", "expressions", "unique", "width")


def _smaller_tables(profile: Section) -> Iterator[Section]:
    for n, table in enumerate(profile["table"]):
        others = [one for one in profile["table"] if one is not table]
        of_others = [one for one in profile["operation"] if one["table"] != table["name"]]
        if others and of_others and not any(_refers(one, table) for one in others):
            yield profile | {"table": others, "operation": of_others}
        if "foreign_keys" in table:
            yield _changed(profile, ("table", n, "foreign_keys"), None)
        yield from _without(profile, ("table", n, "indexes"), keep=1)
        yield from _without(profile, ("table", n, "columns"), keep=2)


def _fewer(profile: Section) -> Iterator[Section]:
    """Fewer transactions, and fewer rows."""
    clients = profile["run"]["clients"]
    places = [("table", n, "rows") for n in range(len(profile["table"]))]
    counted = [("run", name) for name in ("operations",) if name in profile["run"]]
    for path in [*counted, *places]:
        number = _at(profile, path)
        for part in (4, 2, 1.2):
            fewer = int(number / part) // clients * clients
            if 0 < fewer < number:
                yield _changed(profile, path, fewer)


def _fields(profile: Section, path: tuple[Any, ...], keep: tuple[str, ...]) -> Iterator[Section]:
    """The profile with one of a section's fields left at its default."""
    for name in _at(profile, path):
        if name not in keep:
            yield _changed(profile, (*path, name), None)


def _refers(table: Section, parent: Section) -> bool:
    return any(key["references"] == parent["name"] for key in table.get("foreign_keys", ()))


def _at(profile: Section, path: tuple[Any, ...]) -> Any:
    found: Any = profile
    for step in path:
        found = found[step]
    return found


def _changed(profile: Section, path: tuple[Any, ...], value: Any) -> Section:
    """The profile with another value there; without the field for None."""
    made = copy.deepcopy(profile)
    place = _at(made, path[:-1])
    if value is None:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return made


def _without(profile: Section, path: tuple[Any, ...], keep: int = 0) -> Iterator[Section]:
    """The profile without one of a list's items, but for the first so many."""
    items = _at(profile, path)
    for n in range(len(items) - 1, keep - 1, -1):
        if len(items) > 1:
            yield _changed(profile, path, [*items[:n], *items[n + 1 :]])
