"""
`pgheadroom advise` of several servers or profiles: one page, the servers as rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pgheadroom
from pgheadroom.cli import output
from pgheadroom.cli.advising import advice_of
from pgheadroom.cli.connection import profile_or_connection
from pgheadroom.cli.observe_fleet import Wish, observed_side_by_side
from pgheadroom.cli.options import Format
from pgheadroom.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from pgheadroom.advise import Options
    from pgheadroom.advise.fleet import FleetAdvice, ServerAdvice
    from pgheadroom.profile import Profile


def advised(
    targets: Sequence[str],
    parameters: dict[str, str],
    service_file: Path | None,
    options: Options,
    *,
    length: str,
    no_sample: bool,
) -> FleetAdvice:
    """
    Advise on each: connections are observed side by side first, profiles are read.

    Args:
        targets: Connections and profiles.
        parameters: Of all connections.
        service_file: Each section of it is a server too.
        options: Of each advice; the budget too is each one's own.
        length: How long to observe.
        no_sample: Read no rows.

    Raises:
        InputError: A folder, one that is named twice, or no observed profile.
    """
    from pgheadroom.advise.fleet import FleetAdvice, ServerAdvice

    files = {target: _file(target) for target in targets}
    twice = next((target for target in targets if targets.count(target) > 1), None)
    if twice is not None:
        raise InputError(f"{twice} is named twice: expected each once")
    connections = [target for target, path in files.items() if path is None]
    profiles = _profiles(files)
    found: dict[str, ServerAdvice] = {}
    order = [target for target, path in files.items() if path is not None]
    if connections or service_file is not None:
        answers = observed_side_by_side(
            connections,
            parameters,
            service_file,
            Wish(length, options.tables, no_sample),
        )
        for answer in answers:
            name = answer.server.name
            order.append(name)
            if answer.value is None:
                found[name] = ServerAdvice(name=name, error=answer.error, advice=None)
            else:
                profiles[name] = answer.value
    for name, profile in profiles.items():
        found[name] = _of_one(name, profile, options)
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


def _of_one(name: str, profile: Profile, options: Options) -> ServerAdvice:
    from pgheadroom.advise.fleet import ServerAdvice

    made = advice_of(profile, options, f"advise {name}")
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
