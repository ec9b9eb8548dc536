"""
`pgheadroom observe` of several servers: a profile for each in a folder, the servers as rows.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from pgheadroom.cli.idle import refuse
from pgheadroom.cli.on_cluster import executor_at
from pgheadroom.cli.terminal import Terminal
from pgheadroom.errors import InputError, SourceError
from pgheadroom.fleet import FleetServer, ServerAnswer, asked_of, services_from
from pgheadroom.quoting import printable, printable_json
from pgheadroom.units import parse_duration_s

if TYPE_CHECKING:
    from pgheadroom.profile import Profile
    from pgheadroom.progress import Say

Save = Callable[[str, Path], None]
"""Keeps a profile, somewhere in any case: an interval cannot be had again."""
_NAME_MOST = 80  # characters of a file's name; arbitrary


@dataclass(frozen=True, slots=True)
class Wish:
    """
    What is wanted of each server.

    Attributes:
        length: How long to watch, as people write it.
        tables: Only these; empty: all.
        no_sample: Read no rows.
        mask: Put pseudonyms for names.
    """

    length: str
    tables: tuple[str, ...]
    no_sample: bool
    mask: bool = False


@dataclass(frozen=True, slots=True)
class Several:
    """
    Servers that somebody names.

    Attributes:
        targets: Connections, as libpq takes them.
        parameters: Of all of them.
        service_file: Each section of it is a server too.
        scheduler: Of a cluster whose workers look at them; None: this machine does.
    """

    targets: tuple[str, ...]
    parameters: dict[str, str]
    service_file: Path | None
    scheduler: str | None


def refuse_of_one(options: Mapping[str, object], where: str) -> None:
    """
    Refuse options that are of one database.

    Raises:
        InputError: One of them was given.
    """
    refuse(options, where="with several servers, for it is of one", instead=f"give it to {where}")


def observe_several(several: Several, to: Path | None, wish: Wish, save: Save) -> None:
    """Watch several servers and write a profile of each into a folder."""
    folder = check_folder(to)
    put(observed_side_by_side(several, wish), folder, save)


def observed_side_by_side(several: Several, wish: Wish) -> tuple[ServerAnswer[Profile], ...]:
    """Watch the servers that somebody names."""
    from pgheadroom.observe import request_of
    from pgheadroom.observe.fleet import observe_fleet

    seconds = parse_duration_s(wish.length)
    request = request_of(seconds, samples=not wish.no_sample, tables=wish.tables)
    servers = asked_of(several.targets, several.parameters, several.service_file)
    with services_from(several.service_file), executor_at(several.scheduler) as executor:
        return observe_fleet(servers, request, mask=wish.mask, say=_saying, executor=executor)


def _saying(server: str) -> Say:
    def say(text: str) -> None:
        sys.stderr.write(f"observe: {printable(server)}: {printable(text)}\n")
        sys.stderr.flush()

    return say


def check_folder(to: Path | None) -> Path:
    """
    The folder for the profiles, before anything is watched.

    Raises:
        InputError: None was named, or it is none.
    """
    if to is None or not to.is_dir():
        found = "none was given" if to is None else f"{to} is none"
        raise InputError(
            f"several servers give a profile each: expected a folder that is there with -o, {found}"
        )
    return to


def put(answers: Sequence[ServerAnswer[Profile]], folder: Path, save: Save) -> None:
    """
    Write a profile for each, and say which is whose.

    Raises:
        typer.Exit: With 3 where a server did not answer.
    """
    from pgheadroom.profile import to_json
    from pgheadroom.report import text
    from pgheadroom.report.observed import servers_table

    files: dict[str, str] = {}
    for answer in answers:
        if answer.value is not None:
            name = _file_name(answer.server, set(files.values()))
            files[answer.server.name] = name
            content = json.dumps(to_json(answer.value), indent=1, ensure_ascii=False)
            save(printable_json(content) + "\n", folder / name)
    console = Terminal(highlight=False)
    text.print_tables([servers_table(answers, files)], console)
    for answer in answers:
        if answer.value is None:
            console.print(no_answer(answer), markup=False, soft_wrap=True)
    if any(answer.value is None for answer in answers):
        raise typer.Exit(SourceError.exit_code)


def no_answer(answer: ServerAnswer[Profile]) -> str:
    """A line about a server that gave none."""
    why = next(iter((answer.error or "").splitlines()), "")
    return printable(f"! {answer.server.name}: no answer: {why}")


def _file_name(server: FleetServer, taken: set[str]) -> str:
    """The server's name, of letters that every file system has; a number where it is taken."""
    plain = re.sub(r"[^A-Za-z0-9_.-]+", "-", server.name).strip("-.")[:_NAME_MOST] or "server"
    found, number = f"{plain}.json", 1
    while found in taken:
        number += 1
        found = f"{plain}-{number}.json"
    return found
