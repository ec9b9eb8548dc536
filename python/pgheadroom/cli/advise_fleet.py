"""
`pgheadroom advise` of several servers or profiles: one page, the servers as rows.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pgheadroom
from pgheadroom.cli import output
from pgheadroom.cli.advising import advice_of
from pgheadroom.cli.connection import profile_or_connection
from pgheadroom.cli.observe_fleet import Several, Wish, observed_side_by_side
from pgheadroom.cli.on_cluster import executor_at
from pgheadroom.cli.options import Format
from pgheadroom.errors import InputError
from pgheadroom.schedule import run_pieces

if TYPE_CHECKING:
    from rich.console import Console

    from pgheadroom.advise import Advice, Options
    from pgheadroom.advise.fleet import FleetAdvice, ServerAdvice
    from pgheadroom.profile import Profile


def advised(
    several: Several,
    options: Options,
    *,
    length: str,
    no_sample: bool,
) -> FleetAdvice:
    """
    Advise on each: connections are observed side by side first, profiles are read.

    Args:
        several: Connections and profiles.
        options: Of each advice; the budget too is each one's own.
        length: How long to observe.
        no_sample: Read no rows.

    Raises:
        InputError: A folder, one that is named twice, or no observed profile.
    """
    from pgheadroom.advise.fleet import FleetAdvice, ServerAdvice

    targets = several.targets
    files = {target: _file(target) for target in targets}
    twice = next((target for target in targets if targets.count(target) > 1), None)
    if twice is not None:
        raise InputError(f"{twice} is named twice: expected each once")
    connections = [target for target, path in files.items() if path is None]
    profiles = _profiles(files)
    found: dict[str, ServerAdvice] = {}
    order = [target for target, path in files.items() if path is not None]
    if connections or several.service_file is not None:
        answers = observed_side_by_side(
            replace(several, targets=tuple(connections)),
            Wish(length, options.tables, no_sample),
        )
        for answer in answers:
            name = answer.server.name
            order.append(name)
            if answer.value is None:
                found[name] = ServerAdvice(name=name, error=answer.error, advice=None)
            else:
                profiles[name] = answer.value
    if several.scheduler is None:
        for name, profile in profiles.items():
            found[name] = _of_one(name, advice_of(profile, options, f"advise {name}"))
    else:
        with executor_at(several.scheduler) as executor:
            for (name, _), made in run_pieces(
                partial(_advised_there, options), profiles.items(), executor=executor
            ):
                found[name] = _of_one(name, made)
    return FleetAdvice(
        tool_version=pgheadroom.__version__, servers=tuple(found[name] for name in order)
    )


def _file(target: str) -> Path | None:
    path = profile_or_connection(target, {})
    if path is not None and path.is_dir():
        raise InputError(f"{target} is a folder: expected profiles and connections, or it alone")
    return path


def _profiles(files: dict[str, Path | None]) -> dict[str, Profile]:
    from pgheadroom.profile import read_profile

    return {name: read_profile(path) for name, path in files.items() if path is not None}


def _advised_there(options: Options, named: tuple[str, Profile]) -> Advice:
    """On a worker, whom nobody sees."""
    from pgheadroom.advise import advise

    return advise(named[1], options)


def _of_one(name: str, made: Advice) -> ServerAdvice:
    from pgheadroom.advise.fleet import ServerAdvice

    return ServerAdvice(name=name, error=None, advice=made)


def put(
    found: FleetAdvice, form: Format, to: Path | None, html: Path | None, *, verbose: bool
) -> None:
    """Write it in one of its forms, and its page."""
    from pgheadroom.report import advice_fleet as fleet_report
    from pgheadroom.report import text

    if html is not None:
        from pgheadroom.report.html import Shown, render

        shown = Shown(
            heading=fleet_report.heading(found), tables=fleet_report.tables(found), charts=()
        )
        output.write(render([shown], title=found.summary()), html)
    output.put(
        form,
        to,
        json=lambda: text.as_json(found.to_json()),
        csv=lambda: fleet_report.as_csv(found),
        markdown=lambda: fleet_report.as_markdown(found, verbose=verbose),
        show=lambda console, _: _print(found, console, verbose=verbose),
    )


def _print(found: FleetAdvice, console: Console, *, verbose: bool) -> None:
    from pgheadroom.report import advice_fleet as fleet_report
    from pgheadroom.report import text
    from pgheadroom.report.advice import text as advice_text

    console.print(found.summary(), style="bold", markup=False)
    text.print_tables([fleet_report.servers_table(found)], console)
    for one in found.servers:
        if one.advice is not None:
            console.print()
            console.print(one.name, style="bold", markup=False)
            advice_text.print_advice(one.advice, console, verbose=verbose)
    for line in fleet_report.unseen_lines(found):
        console.print(f"! {line}", markup=False)
